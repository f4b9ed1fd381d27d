"""What of a stream is known exactly, as far as the stream alone says it: the rest is refused before anything runs.

A stream that passes may still be refused while it is carried out, but for what its data is: weights that are damaged,
sums beyond their accumulator.
"""

from collections.abc import Iterator, Sequence

from bytewright.ethos_u import operations as op
from bytewright.ethos_u.faults import unsupported
from bytewright.ethos_u.memory import TABLE_BYTES, TABLES_BYTES
from bytewright.target.isa.accelerator import Accelerator

# What has been compared with a reference, bit for bit; the rest is refused.
KNOWN_ELEMENTS = frozenset({op.Element.I8, op.Element.I32})
_UNKNOWN_MODES = {
    op.ElementwiseMode.MIN,
    op.ElementwiseMode.MAX,
    op.ElementwiseMode.LRELU,
    op.ElementwiseMode.ABS,
}
_WITH_SCALE = {op.ElementwiseMode.MUL, op.ElementwiseMode.ADD, op.ElementwiseMode.SUB}
WIDE_PRODUCT_SCALES = frozenset({1, 1 << 30})
"""The multipliers of products of 32 bits, which are shifted alone: neither is used."""


def check_known(operations: Sequence[op.Operation], accelerator: Accelerator) -> None:
    """Refuses what has not been compared with a reference, bit for bit.

    Raises:
        CompileError: BW742 with the first operation of that kind and what it does.
    """
    have_tables = False
    for number, operation in enumerate(operations):
        if isinstance(operation, op.DmaCopy):
            what = _unknown_copy(operation, accelerator)
            have_tables = have_tables or operation.destination_region == op.SHRAM
        else:
            what = next(_unknown(operation), None)
            uses_table = operation.result.table is not None
            if uses_table and not have_tables:
                what = (
                    what or "uses a lookup table that the stream never loaded, or that sums have overwritten"
                )
            have_tables = have_tables and (accelerator.keeps_tables or uses_table)
        if what is not None:
            raise unsupported(
                f"operation {number} of the stream {what}, which the functional model does not do"
            )


def _unknown_copy(operation: op.DmaCopy, accelerator: Accelerator) -> str | None:
    if operation.source_region == op.SHRAM:
        return "copies out of the NPU's shared buffer"
    if operation.destination_region != op.SHRAM:
        return None
    last = operation.destination + (operation.num_rows - 1) * operation.destination_step
    end, tables = accelerator.core_shram_bytes, accelerator.core_shram_bytes - TABLES_BYTES
    if tables <= operation.destination <= last + operation.row_bytes <= end:
        return None
    size_bytes = last + operation.row_bytes - operation.destination
    return f"writes {size_bytes} bytes at {operation.destination} of the shared buffer, whose tables are at {tables}"


def _unknown(operation: op.Convolution | op.Pooling | op.Elementwise) -> Iterator[str]:
    """What one operation does that is not known."""
    arrays, roundings = [operation.ifm, operation.ofm], {operation.result.rounding}
    if isinstance(operation, op.Elementwise):
        roundings.add(operation.operand_rounding)
        if operation.ifm2 is not None:
            arrays.insert(1, operation.ifm2)
    yield from (f"is of {array.element.value}" for array in arrays if array.element not in KNOWN_ELEMENTS)
    if op.Rounding.TRUNCATE in roundings:
        yield "rounds towards minus infinity"
    for array in arrays[:-1]:
        if array.element is op.Element.I32 and array.zero_point:
            yield f"has the zero point {array.zero_point} on an input of 32 bits"
    yield from _unknown_table(operation.result, operation.ofm)
    match operation:
        case op.Elementwise():
            yield from _unknown_elementwise(operation)
        case op.Pooling() if operation.mode is op.PoolingMode.AVERAGE and _has_empty_corner(operation.window):
            yield "averages windows with nothing but padding"
        case _:
            if operation.upscale is not op.Upscale.NONE:
                yield "reads an upscaled input"


def _unknown_table(result: op.Result, ofm: op.FeatureMap) -> Iterator[str]:
    """A table has 256 entries of the output's type, and is indexed by an int8."""
    if result.table is None:
        return
    if ofm.element is op.Element.I32 and not result.force_i8:
        yield "indexes a table with more than 8 bits"
    size_bytes = 256 * ofm.element.size_bytes
    if result.table * TABLE_BYTES + size_bytes > TABLES_BYTES:
        yield f"has a table of {size_bytes} bytes in slot {result.table}, beyond the tables"


def _has_empty_corner(window: op.Window) -> bool:
    return window.height <= max(window.pad_top, window.pad_bottom) or window.width <= max(
        window.pad_left, window.pad_right
    )


def _unknown_elementwise(operation: op.Elementwise) -> Iterator[str]:
    mode, element, multiplier = operation.mode, operation.ifm.element, operation.result.multiplier
    if mode in _UNKNOWN_MODES:
        yield f"is an element-wise {mode.name}"
    if mode is op.ElementwiseMode.CLZ and element is not op.Element.I32:
        yield "counts leading zeros in an array that is not of 32 bits"
    if mode in _WITH_SCALE and multiplier is None:
        yield f"is an element-wise {mode.name} without a scale"
    wide_product = mode is op.ElementwiseMode.MUL and element is op.Element.I32
    if wide_product and multiplier is not None and multiplier not in WIDE_PRODUCT_SCALES:
        yield f"scales products of 32 bits by {multiplier}, which is not 1 or 2^30"
    if mode not in {op.ElementwiseMode.ADD, op.ElementwiseMode.SUB}:
        return
    if operation.operand_scale is not op.OperandScale.BOTH:
        if element is not op.Element.I8:
            yield f"scales one operand of a sum of {element.value} by 32 bits"
    elif max(operation.first_multiplier, operation.second_multiplier) > 0xFFFF or operation.first_shift:
        yield "scales both operands of a sum by more than 16 bits"
