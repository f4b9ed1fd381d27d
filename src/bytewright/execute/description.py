"""A bundle folder, understood: its plan, its files, and the names of its error codes, which the header alone has.

A folder that is not a bundle, or lacks a file, is refused here, so that the rest of the stage looks nothing up twice.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bytewright.bundle.folder import is_inside
from bytewright.record.buffers import PlannedPool
from bytewright.record.extents import largest_extents
from bytewright.record.names import GLUE_FOLDER, Names, names_of
from bytewright.record.plan import Plan
from bytewright.record.plan_file import PLAN_FILE, not_a_bundle, read_plan


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle folder.

    Attributes:
        files: What plan.json lists and is there, as sorted paths in the folder; nothing else of it is built.
        error_names: Of the codes that the C returns.
    """

    directory: Path
    plan: Plan
    files: tuple[str, ...]
    error_names: Mapping[int, str]

    @property
    def sources(self) -> tuple[Path, ...]:
        """The C files of the library."""
        own = (path for path in self.files if not path.startswith(GLUE_FOLDER))
        return tuple(self.directory / path for path in own if path.endswith(".c"))

    @property
    def include_directories(self) -> tuple[Path, ...]:
        """Where the C files look for what they include."""
        folders = {path.partition("/")[0] for path in self.files if "/" in path}
        return tuple(self.directory / name for name in ("include", "src") if name in folders)

    @property
    def names(self) -> Names:
        """The names of its files and of its C."""
        return names_of(self.plan)

    def blob(self, pool: PlannedPool) -> Path:
        """The file with a caller-provided parameter pool."""
        return self.directory / self.names.blob(pool.name)

    def status_name(self, status: int) -> str:
        """An error code as the header names it, else its number."""
        name = self.error_names.get(status)
        return f"{name} ({status})" if name else str(status)


def read_bundle(directory: str | PathLike[str]) -> Bundle:
    """Reads a bundle folder.

    Raises:
        CompileError: BW207 if plan.json, the header, the sources or a parameter blob are missing or cannot be
            understood.
    """
    directory = Path(directory)
    plan = read_plan(directory)
    fault = _fault_of(plan)
    if fault is not None:
        raise not_a_bundle(directory, f"{PLAN_FILE} cannot be understood: {fault}")
    names = names_of(plan)
    for path in (names.header, *(names.blob(pool.name) for pool in plan.caller_parameters)):
        if not (directory / path).is_file():
            raise not_a_bundle(directory, f"{path} is missing")
        if path not in plan.files:
            raise not_a_bundle(directory, f"{PLAN_FILE} does not list {path}")
    files = tuple(path for path in sorted(plan.files) if (directory / path).is_file())
    bundle = Bundle(directory, plan, files, _error_names(directory / names.header, names.error("")))
    if not bundle.sources:
        raise not_a_bundle(directory, f"{PLAN_FILE} lists no C files")
    return bundle


def _fault_of(plan: Plan) -> str | None:
    """What would lead a build out of the folder, or a run beyond its arrays."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", plan.model):
        return f"model {plan.model!r} is not a C identifier"
    if not all(map(is_inside, plan.files)):
        return "its files are not paths in the folder"
    for tensor in (*plan.inputs, *plan.outputs):
        if tensor.size_bytes != math.prod(tensor.shape) * tensor.dtype.size_bytes:
            return f"size_bytes of {tensor.name!r} is not that of its shape"
        if largest_extents(tensor.extents, plan.symbols) != tensor.shape:
            return f"extents of {tensor.name!r} are not those of its shape"
        if tensor.sized and largest_extents(tensor.sized, (*plan.symbols, *plan.sizes)) != tensor.shape:
            return f"what a run makes of {tensor.name!r} is not of its shape"
    return None


def _error_names(header: Path, front: str) -> dict[int, str]:
    """The codes of the header's `<MODEL>_ERROR_...` macros or enumerators."""
    pattern = re.compile(rf"\b({re.escape(front)}\w+)\s*=?\s*\(?\s*(-\d+)")
    text = header.read_text(encoding="utf-8", errors="replace")
    return {int(number): name for name, number in pattern.findall(text)}
