"""The error for a status that a model returned to a harness which did all that its plan asks for."""

from collections.abc import Iterable, Mapping, Sequence

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import CompileError, Diagnostic, compile_error
from bytewright.execute.description import Bundle
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import BOUND

_OF_SIZES = "_size"
_UNKNOWN: Mapping[str, int] = FrozenMapping({})


class SizeError(CompileError):
    """Inputs asked for more of what the data decides than there is room for.

    Attributes:
        asked: How much, by the outputs that say sizes; empty where that was not read.
    """

    def __init__(
        self, diagnostics: Diagnostic | Iterable[Diagnostic], asked: Mapping[str, int] = _UNKNOWN
    ) -> None:
        super().__init__(diagnostics)
        self.asked = asked


def model_error(bundle: Bundle, status: int, asked: Mapping[str, int] = _UNKNOWN) -> CompileError:
    """The error for a status.

    Args:
        bundle: The model's.
        status: What it returned.
        asked: What outputs that say sizes say, where they can be read.
    """
    plan, name = bundle.plan, bundle.status_name(status)
    if plan.externals and name.startswith(f"{bundle.names.error('EXTERNAL')} "):
        names = ", ".join(f"'{name}'" for name in plan.externals)
        return compile_error(
            "BW502",
            f"a function of the application ended the run: {name}",
            notes=(f"model '{plan.model}' calls {names}, and one of them did not return 0",),
        )
    if plan.checked_sizes and name.startswith(f"{bundle.names.error(BOUND)} "):
        return _size_error(plan.checked_sizes, name, asked)
    return compile_error(
        "BW402",
        f"model '{plan.model}' refused to run and returned {name}",
        notes=("the harness passed memory of exactly the sizes and alignments that the header states",),
        help="compile the model again; the bundle's files do not belong together",
    )


def _size_error(sizes: Sequence[PlannedTensor], status: str, asked: Mapping[str, int]) -> SizeError:
    """What the data asked for, and the bound of it; of all sizes where that is not known."""
    exceeded = [size for size in sizes if not 0 <= asked.get(size.name, -1) <= size.most]
    texts = [
        f"{asked.get(size.name, 'more')} of '{size.name}', which has room for {size.most}"
        for size in exceeded
    ]
    bounds = [
        f"--bound {size.name.removesuffix(_OF_SIZES)}={asked.get(size.name, 'N')}"
        for size in exceeded
        if asked.get(size.name, 0) >= 0
    ]
    either = f"compile with {' '.join(bounds)}, or " if bounds else ""
    advice = f"{either}give inputs that ask for {'less' if bounds else 'no less than 0'}"
    how = " and " if asked else " or "
    message = f"the data asks for {how.join(texts)}: the run returned {status}"
    return SizeError(Diagnostic("BW205", message, help=advice), asked)
