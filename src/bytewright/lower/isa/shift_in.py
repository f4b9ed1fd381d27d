"""What is kept between two runs moves up by copies of whole lines: for sets that copy many bytes at once."""

from collections.abc import Callable
from functools import partial

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, region
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.data import Place, lower_shift_in
from bytewright.ops.data import ShiftIn

_LEAST_BYTES = 8  # of a line; of fewer a copy is not faster than what compilers make of a loop


def shift_in_template(name: str, copy: Callable[[int, ir.DType], ir.Instruction]) -> IsaTemplate:
    """Shifts of integers by copies of so many elements, `target` and `source`, which have none in common."""

    def write(body: BodyBuilder, target: Place, source: Place, count: int) -> None:
        (to, first), (of, origin) = target, source
        body.execute(copy(count, to.dtype), region(to, *first), region(of, *origin))

    return IsaTemplate(f"{name}.shift_in", partial(lower_shift_in, copy=write, are_apart=True), _declines)


def _declines(template: Template, operation: ShiftIn) -> str | None:
    result, new = template.result_type, template.type(1)
    is_last = operation.axis == len(result.shape) - 1
    num = (new if is_last else result).fixed_shape[-1] * result.dtype.size_bytes
    if not result.dtype.is_integer:
        return "its elements are no integers"
    return f"a line is {num} bytes" if num < _LEAST_BYTES else None
