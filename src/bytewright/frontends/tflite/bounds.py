"""What the run alone knows, and its bounds, `--bound PATTERN=N`: turns of loops, and extents that the data decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import compile_error
from bytewright.target.mistake import closest

SIZE = "size"
"""What the result that says how large such an extent is has behind the name of its operator."""
NO_BOUNDS: Mapping[str, int] = FrozenMapping({})


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a file, of all its graphs.

    Attributes:
        most: Turns, or what an extent may be, by shell patterns of the names of operators, or of their kind.
        bounded: The names and kinds of the loops, and of what has such extents, that there are so far.
        counted: Such extents by the names of their operators.
        chosen: What these are taken to be in a graph that is read; their bound, where nothing is said.
    """

    most: Mapping[str, int] = field(default_factory=lambda: NO_BOUNDS)
    bounded: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    counted: dict[str, ir.Counted] = field(default_factory=dict[str, ir.Counted])
    chosen: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def allows_none(self) -> bool:
        """Whether this graph may have values without elements: a size is 0 in it."""
        return 0 in self.chosen.values()

    @property
    def has_single(self) -> bool:
        """Whether the most of a size is 1: what is written otherwise for an extent of 1 is none that is common."""
        return any(each.extent.upper == 1 for each in self.counted.values())

    def of(self, name: str, kind: str) -> int | None:
        """The bound of an operator, which is noted; None if nothing was said. Of several patterns the last counts."""
        self.bounded.append((name, kind))
        found = [most for pattern, most in self.most.items() if _matches(pattern, (name, kind))]
        return found[-1] if found else None

    def extent(self, name: str, kind: str, natural: int | None, *, is_sure: bool) -> int | None:
        """What an extent that the data decides is in this graph; None without a bound.

        Args:
            name: Of the operator.
            kind: Of the operator.
            natural: The most that is possible, as shapes say it.
            is_sure: Whether data cannot ask for more than that.
        """
        stated = self.of(name, kind)
        if name not in self.counted:
            known = [each for each in (natural, stated) if each is not None]
            if not known:
                return None
            most = min(known)
            is_checked = not is_sure or (natural is not None and most < natural)
            self.counted[name] = ir.Counted(
                f"{name}/{SIZE}", ir.Symbol(f"{name}_size", 0, most), is_checked or natural is None
            )
        return self.chosen.get(name, self.counted[name].extent.upper)

    def require_matches(self, where: str) -> None:
        """Refuses a bound of nothing.

        Raises:
            CompileError: BW204.
        """
        for pattern, most in self.most.items():
            if not any(_matches(pattern, each) for each in self.bounded):
                names = list(dict.fromkeys(name for name, _ in self.bounded))
                listed = ", ".join(map(repr, names))
                message = f"--bound {pattern}={most} matches no loop, and no size that the data decides; " + (
                    f"there are {listed}" if listed else "the model has none"
                )
                help_text = closest(pattern, names) if names else "leave out --bound"
                raise compile_error("BW204", message, help=help_text, where=where)


def _matches(pattern: str, each: tuple[str, str]) -> bool:
    return any(fnmatchcase(text, pattern) for text in each)
