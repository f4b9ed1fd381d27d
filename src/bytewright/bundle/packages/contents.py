"""What all packages know of a bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bytewright import __version__
from bytewright.record.names import GLUE_FOLDER, Names, names_of
from bytewright.record.plan import Plan


@dataclass(frozen=True, slots=True)
class PackageContents:
    """What a package is made of.

    Attributes:
        sources: The C files, by their paths in the bundle.
        included: Files that the C includes or that the assembler does, in `include/`.
        needs_math: Whether a program links the library of <math.h>.
        has_self_test: Whether there is a function that runs stored inputs.
    """

    plan: Plan
    names: Names
    sources: tuple[str, ...]
    included: tuple[str, ...]
    needs_math: bool
    has_self_test: bool

    @staticmethod
    def of(plan: Plan, c_files: Mapping[str, bytes], *, uses_math: bool) -> PackageContents:
        """Those of a bundle."""
        names = names_of(plan)
        paths = sorted(path for path in c_files if not path.startswith(GLUE_FOLDER))
        return PackageContents(
            plan,
            names,
            tuple(path for path in paths if path.endswith(".c")),
            tuple(path for path in paths if path.startswith("include/")),
            uses_math,
            names.self_test_source in c_files,
        )

    @property
    def model(self) -> str:
        """Its name in C."""
        return self.plan.model

    @property
    def flags(self) -> tuple[str, ...]:
        """Those that the C is exact with, but for the language."""
        return tuple(self.plan.build.flags[1:])

    @property
    def version(self) -> str:
        """Of the package: that of what generated it."""
        return __version__

    @property
    def summary(self) -> str:
        """One line about it."""
        return f"Neural network '{self.model}' for {self.plan.target}, in C99"
