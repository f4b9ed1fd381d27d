"""From the words of a stream to typed operations.

Registers keep their values until they are set again, so each operation is what the registers say when its command
comes. The order of the commands is the order of the operations: waits and block dependencies let the NPU overlap what
does not depend on each other, and change no result.
"""

from bytewright.ethos_u import operations as op
from bytewright.ethos_u.commands import LONG_REGISTERS, OPERATIONS, SHORT_REGISTERS
from bytewright.ethos_u.faults import damaged, unsupported
from bytewright.ethos_u.registers import Registers
from bytewright.target.isa.accelerator import Accelerator

_ELEMENTS = {
    (0, 0): op.Element.U8,
    (1, 0): op.Element.I8,
    (0, 1): op.Element.U16,
    (1, 1): op.Element.I16,
    (1, 2): op.Element.I32,
}
_WITHOUT_EFFECT = {"DMA_WAIT", "KERNEL_WAIT"}
_FORMAT_BITS = 0xC0
_BLOCKED = 0x40


def decode(code: tuple[int, ...], accelerator: Accelerator) -> tuple[op.Operation, ...]:
    """The operations of a stream, in order.

    Raises:
        CompileError: BW740 where the stream is cut short or goes on after its end, BW742 for what is not understood.
    """
    registers = Registers()
    operations: list[op.Operation] = []
    index = 0
    while index < len(code):
        word = code[index]
        number, mode, parameter = word & 0x3FF, word & 0xFC00, word >> 16
        index += 1
        if mode == 0x4000:
            name = LONG_REGISTERS.get(number)
            if name is None:
                raise unsupported(_unknown(index, word))
            if index >= len(code):
                raise damaged(f"the stream ends after {index} words, within a command: it is cut short")
            registers.values[name] = parameter << 32 | code[index]
            index += 1
            continue
        name = None if mode else SHORT_REGISTERS.get(number)
        if name is not None:
            registers.values[name] = parameter
            continue
        name = None if mode else OPERATIONS.get(number)
        if name == "STOP":
            if index != len(code):
                raise damaged(
                    f"the stream stops after {index} words and goes on for {len(code) - index} more"
                )
            return tuple(operations)
        if name is None or name in {"IRQ", "PMU_MASK"}:
            raise unsupported(_unknown(index, word))
        if name not in _WITHOUT_EFFECT:
            registers.operation = f"operation {len(operations)} ({name})"
            operations.append(_operation(registers, name, parameter, accelerator))
    raise damaged(f"the stream of {len(code)} words has no end: it is cut short")


def _unknown(index: int, word: int) -> str:
    return f"word {index - 1} of the stream is command 0x{word & 0xFFFF:04x}, which is not known"


def _operation(registers: Registers, name: str, parameter: int, accelerator: Accelerator) -> op.Operation:
    if accelerator.product == 1:
        cores = registers.plus_one("PARALLEL_MODE")
        if cores != accelerator.num_cores:
            raise unsupported(
                f"the stream uses {cores} cores of {accelerator.name}, which has {accelerator.num_cores}"
            )
    if name == "DMA_START":
        return _dma_copy(registers)
    if name == "POOL":
        return _pooling(registers, op.PoolingMode(registers.choice("POOL", parameter, len(op.PoolingMode))))
    if name == "ELEMENTWISE":
        return _elementwise(
            registers, op.ElementwiseMode(registers.choice("ELEMENTWISE", parameter, len(op.ElementwiseMode)))
        )
    return _convolution(registers, name == "DEPTHWISE", accelerator)


def _dma_copy(registers: Registers) -> op.DmaCopy:
    source, source_strided = _dma_end(registers, "DMA0_SRC_REGION")
    destination, destination_strided = _dma_end(registers, "DMA0_DST_REGION")
    row_bytes = registers.get("DMA0_LEN")
    strided = source_strided or destination_strided
    skip = registers.stride("DMA0_SKIP0") if strided else 0
    num_rows = registers.get("DMA0_SIZE0") if strided else 1
    if not row_bytes or not num_rows or skip < 0:
        raise unsupported(
            f"{registers.operation} copies {num_rows} rows of {row_bytes} bytes, {skip} bytes apart"
        )
    return op.DmaCopy(
        source,
        registers.address("DMA0_SRC"),
        row_bytes + skip * source_strided,
        destination,
        registers.address("DMA0_DST"),
        row_bytes + skip * destination_strided,
        row_bytes,
        num_rows,
    )


def _dma_end(registers: Registers, name: str) -> tuple[int, bool]:
    """The region of one end of a copy, and whether its rows lie apart."""
    value = registers.bits(name, 0x707)
    stride_mode = value >> 9
    if stride_mode > 1:
        raise unsupported(f"{registers.operation} copies in more than two dimensions ({name} is 0x{value:x})")
    return op.SHRAM if value & 0x100 else value & 0x7, bool(stride_mode)


def _convolution(registers: Registers, depthwise: bool, accelerator: Accelerator) -> op.Convolution:
    ofm = _output(registers)
    window = _window(registers)
    upscale = _upscale(registers)
    ifm = _input(
        registers, ofm, window, upscale, ofm.depth if depthwise else registers.plus_one("IFM_DEPTH_M1")
    )
    cores = range(accelerator.num_cores)
    result = _result(registers, registers.bits("OFM_PRECISION", 0xC1C7))
    if result.multiplier is not None:
        raise unsupported(f"{registers.operation} is a convolution with one scale for all channels")
    return op.Convolution(
        depthwise,
        ifm,
        ofm,
        window,
        upscale,
        tuple(_stream(registers, "WEIGHT", core) for core in cores),
        tuple(_stream(registers, "SCALE", core) for core in cores),
        registers.plus_one("OFM_BLK_DEPTH_M1"),
        _wide(registers),
        result,
    )


def _pooling(registers: Registers, mode: op.PoolingMode) -> op.Pooling:
    ofm = _output(registers)
    window = _window(registers)
    upscale = _upscale(registers)
    depth = registers.plus_one("IFM_DEPTH_M1")
    ifm = _input(registers, ofm, window, upscale, depth if mode is op.PoolingMode.REDUCE_SUM else ofm.depth)
    result = _result(registers, registers.bits("OFM_PRECISION", 0xC1C7))
    padded = window.pad_top or window.pad_left or window.pad_bottom or window.pad_right
    scaled = (result.multiplier, result.shift) != (1, 0)
    if mode is not op.PoolingMode.MAX and result.multiplier is None:
        raise unsupported(
            f"{registers.operation} is a {mode.name.lower()} pooling with a scale for each channel"
        )
    if padded and (mode is op.PoolingMode.REDUCE_SUM or (mode is op.PoolingMode.AVERAGE and scaled)):
        raise unsupported(
            f"{registers.operation} is a {mode.name.lower()} pooling over padding, with a scale"
        )
    if mode is op.PoolingMode.REDUCE_SUM and ofm.depth != 1:
        raise unsupported(f"{registers.operation} sums channels into {ofm.depth} channels")
    return op.Pooling(mode, ifm, ofm, window, upscale, _wide(registers), result)


def _elementwise(registers: Registers, mode: op.ElementwiseMode) -> op.Elementwise:
    ofm = _output(registers)
    precision = registers.bits("IFM_PRECISION", 0xC3CD)
    if _upscale(registers) is not op.Upscale.NONE:
        raise unsupported(f"{registers.operation} reads an upscaled input")
    ifm = _feature_map(registers, "IFM", precision, precision >> 2 & 3, (ofm.height, ofm.width, ofm.depth))
    ifm2, scalar, zero_point, reversed_order = None, None, 0, False
    if mode not in op.UNARY:
        broadcast = registers.bits("IFM2_BROADCAST", 0xC7)
        reversed_order = bool(broadcast & 0x40)
        zero_point = registers.signed("IFM2_ZERO_POINT")
        if broadcast & 0x80:
            unsigned = ifm.element in {op.Element.U8, op.Element.U16}
            scalar = registers.get("IFM2_SCALAR") if unsigned else registers.signed("IFM2_SCALAR")
        else:
            second = registers.bits("IFM2_PRECISION", 0xCD)
            extents = (ofm.height, ofm.width, ofm.depth)
            height, width, depth = (
                1 if broadcast >> axis & 1 else extent for axis, extent in enumerate(extents)
            )
            ifm2 = _feature_map(registers, "IFM2", second, second >> 2 & 3, (height, width, depth))
    sums = mode in {op.ElementwiseMode.ADD, op.ElementwiseMode.SUB}
    return op.Elementwise(
        mode,
        ifm,
        ifm2,
        scalar,
        zero_point,
        reversed_order,
        ofm,
        op.OperandScale(registers.choice("IFM_PRECISION", precision >> 8 & 3, len(op.OperandScale))),
        op.Rounding(registers.choice("IFM_PRECISION", precision >> 14, len(op.Rounding))),
        registers.payload("OPA_SCALE") if sums else 1,
        registers.parameter("OPA_SCALE") & 0x3F if sums else 0,
        registers.payload("OPB_SCALE") if sums else 1,
        _result(registers, registers.bits("OFM_PRECISION", 0xC1C7)),
    )


def _output(registers: Registers) -> op.FeatureMap:
    precision = registers.bits("OFM_PRECISION", 0xC1C7)
    extents = (
        registers.plus_one("OFM_HEIGHT_M1"),
        registers.plus_one("OFM_WIDTH_M1"),
        registers.plus_one("OFM_DEPTH_M1"),
    )
    return _feature_map(registers, "OFM", precision, precision >> 1 & 3, extents)


def _input(
    registers: Registers, ofm: op.FeatureMap, window: op.Window, upscale: op.Upscale, depth: int
) -> op.FeatureMap:
    """The input whose extents follow from the output's: what the windows read, without padding."""
    precision = registers.bits("IFM_PRECISION", 0xC3CD)
    height = (ofm.height - 1) * window.stride_y + window.height - window.pad_top - window.pad_bottom
    width = (ofm.width - 1) * window.stride_x + window.width - window.pad_left - window.pad_right
    if upscale is not op.Upscale.NONE:
        height, width = -(-height // 2), -(-width // 2)
    if height < 1 or width < 1:
        raise unsupported(f"{registers.operation} reads an input of {height} x {width}: all of it is padding")
    return _feature_map(registers, "IFM", precision, precision >> 2 & 3, (height, width, depth))


def _feature_map(
    registers: Registers, prefix: str, precision: int, size: int, extents: tuple[int, int, int]
) -> op.FeatureMap:
    element = _ELEMENTS.get((precision & 1, size))
    layout = precision & _FORMAT_BITS
    if element is None or layout not in {0, _BLOCKED}:
        raise unsupported(
            f"{registers.operation} has {prefix}_PRECISION at 0x{precision:x}, a type that is not known"
        )
    base0, base1, base2, base3 = (registers.address(f"{prefix}_BASE{tile}") for tile in range(4))
    return op.FeatureMap(
        registers.region(f"{prefix}_REGION"),
        (base0, base1, base2, base3),
        registers.plus_one(f"{prefix}_WIDTH0_M1"),
        registers.plus_one(f"{prefix}_HEIGHT0_M1"),
        registers.plus_one(f"{prefix}_HEIGHT1_M1"),
        *extents,
        registers.stride(f"{prefix}_STRIDE_Y"),
        registers.stride(f"{prefix}_STRIDE_X"),
        registers.stride(f"{prefix}_STRIDE_C") if layout else 0,
        element,
        bool(layout),
        registers.signed(f"{prefix}_ZERO_POINT"),
    )


def _window(registers: Registers) -> op.Window:
    value = registers.bits("KERNEL_STRIDE", 0xFFF)
    if value & 0x20:
        raise unsupported(f"{registers.operation} has weights in pieces of 4 x 4")
    window = op.Window(
        registers.plus_one("KERNEL_HEIGHT_M1"),
        registers.plus_one("KERNEL_WIDTH_M1"),
        1 + (value >> 1 & 1 | value >> 9 << 1),
        1 + (value & 1 | (value >> 6 & 7) << 1),
        1 + (value >> 4 & 1),
        1 + (value >> 3 & 1),
        registers.get("IFM_PAD_TOP"),
        registers.get("IFM_PAD_LEFT"),
        registers.get("IFM_PAD_BOTTOM"),
        registers.get("IFM_PAD_RIGHT"),
        bool(value & 4),
    )
    if (window.height - 1) % window.dilation_y or (window.width - 1) % window.dilation_x:
        raise unsupported(f"{registers.operation} has a kernel that is no multiple of its dilation")
    return window


def _upscale(registers: Registers) -> op.Upscale:
    return op.Upscale(registers.choice("IFM_UPSCALE", registers.get("IFM_UPSCALE"), len(op.Upscale)))


def _wide(registers: Registers) -> bool:
    return bool(registers.choice("ACC_FORMAT", registers.get("ACC_FORMAT"), 2))


def _stream(registers: Registers, kind: str, core: int) -> op.Span:
    """Where one core's weights or scales lie; of no bytes where the core has no channel."""
    number = "1" if core else ""
    size_bytes = registers.payload(f"{kind}{number}_LENGTH")
    first = registers.address(f"{kind}{number}_BASE") if size_bytes else 0
    return op.Span(registers.region(f"{kind}_REGION"), first, size_bytes)


def _result(registers: Registers, precision: int) -> op.Result:
    activation = registers.bits("ACTIVATION", 0x701F)
    function, clip = activation & 0x1F, activation >> 12
    if 0 < function < 16 or function >= 24:
        kind = {3: "TANH", 4: "SIGMOID"}.get(function, str(function))
        raise unsupported(f"{registers.operation} has the activation {kind}, whose table is within the NPU")
    if clip not in {0, 3}:
        raise unsupported(f"{registers.operation} clamps to range {clip}, which is not known")
    shared = precision & 0x100
    unsigned = not precision & 1
    return op.Result(
        op.Rounding(registers.choice("OFM_PRECISION", precision >> 14, len(op.Rounding))),
        registers.payload("OFM_SCALE") if shared else None,
        registers.parameter("OFM_SCALE") & 0x3F if shared else 0,
        registers.get("ACTIVATION_MIN") if unsigned else registers.signed("ACTIVATION_MIN"),
        registers.get("ACTIVATION_MAX") if unsigned else registers.signed("ACTIVATION_MAX"),
        function - 16 if function >= 16 else None,
        clip == 3,
    )
