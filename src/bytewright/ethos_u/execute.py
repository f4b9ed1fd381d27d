"""A functional model of the NPU: carries out a stream on arrays of bytes, exactly.

Operations are carried out one after the other. Before the first one, every access of the stream is found to lie within
the region that it names; what the NPU would do outside of that is nobody's guess. Sums are checked to fit the NPU's
accumulators, of 32 or 40 bits.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bytewright.ethos_u import operations as op
from bytewright.ethos_u.accesses import Access, accesses
from bytewright.ethos_u.faults import out_of_reach, unsupported
from bytewright.ethos_u.known import check_known
from bytewright.ethos_u.memory import Bytes, Integers, Memory
from bytewright.ethos_u.scaling import scaled, shifted_right
from bytewright.ethos_u.weights import read_scales, read_weights
from bytewright.target.isa.accelerator import Accelerator

_RANGE = {op.Element.I8: (-128, 127), op.Element.I32: (-(1 << 31), (1 << 31) - 1)}


def execute(
    operations: Sequence[op.Operation], regions: Mapping[int, Bytes], accelerator: Accelerator
) -> None:
    """Carries out a stream; the arrays of the regions that it writes are changed.

    Raises:
        CompileError: BW743 where the stream touches what no region has; BW742 for what is not supported; BW501 where
            weights are to be decoded and Vela's decoder is missing.
    """
    check_within(accesses(operations), {region: data.size for region, data in regions.items()})
    check_known(operations, accelerator)
    memory = Memory(regions, np.zeros(accelerator.core_shram_bytes, np.uint8))
    for operation in operations:
        match operation:
            case op.DmaCopy():
                _dma_copy(operation, memory)
                continue
            case op.Convolution():
                values = _convolution(operation, memory, accelerator)
            case op.Pooling():
                values = _pooling(operation, memory)
            case op.Elementwise():
                values = _elementwise(operation, memory)
        memory.store(operation.ofm, _finished(values, operation.ofm, operation.result, memory, accelerator))


def check_within(found: Sequence[Access], sizes: Mapping[int, int]) -> None:
    """Whether every access lies within the bytes of its region.

    Raises:
        CompileError: BW743 with the first access that does not.
    """
    for access in found:
        size_bytes = sizes.get(access.region, 0)
        if access.first < 0 or access.last >= size_bytes:
            verb = "writes" if access.writes else "reads"
            raise out_of_reach(
                f"operation {access.operation} of the stream {verb} bytes {access.first} to {access.last} of region "
                f"{access.region}, which has {size_bytes} bytes"
            )


def _dma_copy(operation: op.DmaCopy, memory: Memory) -> None:
    for row in range(operation.num_rows):
        memory.copy(
            operation.source_region,
            operation.source + row * operation.source_step,
            operation.destination_region,
            operation.destination + row * operation.destination_step,
            operation.row_bytes,
        )


def _convolution(operation: op.Convolution, memory: Memory, accelerator: Accelerator) -> Integers:
    weights = read_weights(operation, tuple(memory.span(span) for span in operation.weights), accelerator)
    scales = read_scales(operation, tuple(memory.span(span) for span in operation.scales))
    window, ofm = operation.window, operation.ofm
    image = memory.load(operation.ifm) - operation.ifm.zero_point
    image = _padded(image, window, 0)
    # Sums of products stay below 2^53, so that float64 holds them exactly, and its products are fast.
    sums = np.zeros((ofm.height, ofm.width, ofm.depth), np.float64)
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            taken = _taps(image, window, ofm, row * window.dilation_y, column * window.dilation_x).astype(
                np.float64
            )
            factors = weights[row, column].astype(np.float64)
            sums += taken * factors[0] if operation.depthwise else taken @ factors
    totals = sums.astype(np.int64) + scales.bias
    _check_sums(totals, operation.wide)
    return scaled(totals, scales.multiplier, scales.shift, operation.result.rounding)


def _pooling(operation: op.Pooling, memory: Memory) -> Integers:
    window, ofm, result = operation.window, operation.ofm, operation.result
    image = memory.load(operation.ifm) - operation.ifm.zero_point
    if operation.mode is op.PoolingMode.REDUCE_SUM:
        image = image.sum(axis=-1, keepdims=True)
    greatest = operation.mode is op.PoolingMode.MAX
    lowest = _RANGE[operation.ifm.element][0] - operation.ifm.zero_point
    image = _padded(image, window, lowest if greatest else 0)
    sums = np.full((ofm.height, ofm.width, ofm.depth), lowest if greatest else 0, np.int64)
    for row in range(0, window.height, window.dilation_y):
        for column in range(0, window.width, window.dilation_x):
            taken = _taps(image, window, ofm, row, column)
            sums = np.maximum(sums, taken) if greatest else sums + taken
    _check_sums(sums, operation.wide)
    if operation.mode is op.PoolingMode.AVERAGE and _is_padded(window):
        return _averages(sums, operation)
    return (
        sums if result.multiplier is None else scaled(sums, result.multiplier, result.shift, result.rounding)
    )


def _is_padded(window: op.Window) -> bool:
    return bool(window.pad_top or window.pad_left or window.pad_bottom or window.pad_right)


def _averages(sums: Integers, operation: op.Pooling) -> Integers:
    """The sums divided by how many elements of each window are no padding, half away from zero.

    The NPU takes a reciprocal that is a little too large, which is what Vela states where all windows are full.
    """
    window, ifm = operation.window, operation.ifm
    ones = _padded(np.ones((ifm.height, ifm.width, 1), np.int64), window, 0)
    count = np.zeros((*sums.shape[:2], 1), np.int64)
    for row in range(0, window.height, window.dilation_y):
        for column in range(0, window.width, window.dilation_x):
            count += _taps(ones, window, operation.ofm, row, column)
    if int(count.min()) < 1:
        raise unsupported("a window of an average pooling has nothing but padding")
    places = np.array([int(number - 1).bit_length() for number in count.ravel()], np.int64).reshape(
        count.shape
    )
    multiplier = (np.left_shift(np.int64(1), 31 + places) + np.left_shift(np.int64(1), places)) // count
    return scaled(sums, multiplier, 31 + places, operation.result.rounding)


def _padded(image: Integers, window: op.Window, value: int) -> Integers:
    around = ((window.pad_top, window.pad_bottom), (window.pad_left, window.pad_right), (0, 0))
    return np.pad(image, around, constant_values=value)


def _taps(image: Integers, window: op.Window, ofm: op.FeatureMap, row: int, column: int) -> Integers:
    """Of each window the element at (row, column)."""
    bottom, right = (
        row + (ofm.height - 1) * window.stride_y + 1,
        column + (ofm.width - 1) * window.stride_x + 1,
    )
    return image[row : bottom : window.stride_y, column : right : window.stride_x]


def _check_sums(sums: Integers, wide: bool) -> None:
    bits = 40 if wide else 32
    if int(np.abs(sums).max(initial=0)) >= 1 << bits - 1:
        raise unsupported(f"a sum is beyond the {bits} bits of its accumulator")


def _elementwise(operation: op.Elementwise, memory: Memory) -> Integers:
    mode, result = operation.mode, operation.result
    first = memory.load(operation.ifm) - operation.ifm.zero_point
    if mode is op.ElementwiseMode.CLZ:
        return _leading_zeros(first)
    if operation.ifm2 is None:
        second = np.full((1, 1, 1), operation.scalar or 0, np.int64) - operation.ifm2_zero_point
    else:
        second = memory.load(operation.ifm2) - operation.ifm2_zero_point
    if mode in {op.ElementwiseMode.ADD, op.ElementwiseMode.SUB}:
        first, second = _operands_of_sum(operation, first, second)
    if operation.reversed_order:
        first, second = second, first
    match mode:
        case op.ElementwiseMode.MUL:
            _check_factors(first, second)
            if operation.ifm.element is op.Element.I32:
                # Products of two numbers of 32 bits are shifted alone: their multiplier is not used.
                return scaled(first * second, 1, result.shift, result.rounding)
            values = first * second
        case op.ElementwiseMode.ADD:
            values = first + second
        case op.ElementwiseMode.SUB:
            values = first - second
        case op.ElementwiseMode.SHR:
            return shifted_right(*_shift_operands(first, second), result.rounding)
        case _:
            return np.left_shift(*_shift_operands(first, second))
    assert result.multiplier is not None, "it is known"
    return scaled(values, result.multiplier, result.shift, result.rounding)


def _leading_zeros(values: Integers) -> Integers:
    lengths = np.floor(np.log2(np.maximum(values, 1).astype(np.float64))).astype(np.int64) + 1
    return np.where(values < 0, 0, np.where(values == 0, 32, 32 - lengths))


def _operands_of_sum(
    operation: op.Elementwise, first: Integers, second: Integers
) -> tuple[Integers, Integers]:
    """The operands of a sum, brought to one scale."""
    if operation.operand_scale is op.OperandScale.BOTH:
        return first * operation.first_multiplier, second * operation.second_multiplier
    # The NPU shifts the other one, of the greater scale, by the places that 8 bits leave free.
    multiplier, shift, rounding = (
        operation.first_multiplier,
        operation.first_shift,
        operation.operand_rounding,
    )
    if (operation.operand_scale is op.OperandScale.FIRST) != operation.reversed_order:
        return scaled(first, multiplier, shift, rounding), second << 19
    return first << 19, scaled(second, multiplier, shift, rounding)


def _check_factors(first: Integers, second: Integers) -> None:
    greatest = int(np.abs(first).max(initial=0)) * int(np.abs(second).max(initial=0))
    if greatest >= 1 << 62:
        raise unsupported(f"a product of {greatest} is beyond 62 bits")


def _shift_operands(values: Integers, places: Integers) -> tuple[Integers, Integers]:
    if int(places.min(initial=0)) < 0 or int(places.max(initial=0)) > 31:
        raise unsupported(f"an array is shifted by {int(places.min())} to {int(places.max())} places")
    return values, places


def _finished(
    values: Integers, ofm: op.FeatureMap, result: op.Result, memory: Memory, accelerator: Accelerator
) -> Integers:
    """Zero point, clamp and table.

    Numbers of 32 bits have no zero point, whatever the register was left at; the int8 index of a table has.
    """
    element = op.Element.I8 if result.force_i8 else ofm.element
    low, high = _RANGE[element]
    zero_point = 0 if element is op.Element.I32 else ofm.zero_point
    values = np.clip(np.broadcast_to(values, (ofm.height, ofm.width, ofm.depth)) + zero_point, low, high)
    if ofm.element is not op.Element.I32 or result.force_i8:
        values = np.clip(values, result.minimum, result.maximum)
    if result.table is None:
        return values
    wide = ofm.element is op.Element.I32
    table = memory.table(result.table, 4 if wide else 1, accelerator)
    # Tables begin with the entry of the lowest index.
    return table[values - low]
