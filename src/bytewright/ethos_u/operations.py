"""What a stream does, as values: one class for each kind of operation of the NPU."""

from dataclasses import dataclass
from enum import Enum, IntEnum


class Element(Enum):
    """The type of a feature map's elements, by numpy's name."""

    U8 = "uint8"
    I8 = "int8"
    U16 = "uint16"
    I16 = "int16"
    I32 = "int32"

    @property
    def size_bytes(self) -> int:
        """Bytes of one element."""
        return _SIZE_BYTES[self]


_SIZE_BYTES = {Element.U8: 1, Element.I8: 1, Element.U16: 2, Element.I16: 2, Element.I32: 4}


class Rounding(IntEnum):
    """How a scaled value is rounded: TFLite's double rounding, towards minus infinity, half up."""

    DOUBLE = 0
    TRUNCATE = 1
    NATURAL = 2


class Upscale(IntEnum):
    """What stands between the input's elements when it is read at twice its size."""

    NONE = 0
    NEAREST = 1
    ZEROS = 2


class PoolingMode(IntEnum):
    """The kinds of pooling."""

    MAX = 0
    AVERAGE = 1
    REDUCE_SUM = 2


class ElementwiseMode(IntEnum):
    """The kinds of element-wise operations."""

    MUL = 0
    ADD = 1
    SUB = 2
    MIN = 3
    MAX = 4
    LRELU = 5
    ABS = 6
    CLZ = 7
    SHR = 8
    SHL = 9


UNARY = frozenset({ElementwiseMode.LRELU, ElementwiseMode.ABS, ElementwiseMode.CLZ})


class OperandScale(IntEnum):
    """Which operands of a sum are scaled before it: both by 16 bits, or one by 32 bits."""

    BOTH = 0
    FIRST = 1
    SECOND = 2


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes in a row: of a region, or of the shared buffer where `region` is `SHRAM`."""

    region: int
    first: int
    size_bytes: int


SHRAM = -1
"""The region of the NPU's own shared buffer."""


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A three-dimensional array in a region, in up to four tiles.

    Attributes:
        region: The base pointer's number.
        bases: Of the tiles at the top left, top right, bottom left and bottom right.
        left_width: Columns of the left tiles.
        left_height, right_height: Rows of the upper tile on the left and on the right.
        height, width, depth: Of the whole array.
        stride_y, stride_x, stride_c: Bytes; stride_c goes from 16 channels to the next 16, in blocks only.
        element: The type.
        blocked: 16 channels of a pixel lie together (NHCWB16); else all of them do (NHWC).
        zero_point: What stands for zero.
    """

    region: int
    bases: tuple[int, int, int, int]
    left_width: int
    left_height: int
    right_height: int
    height: int
    width: int
    depth: int
    stride_y: int
    stride_x: int
    stride_c: int
    element: Element
    blocked: bool
    zero_point: int


@dataclass(frozen=True, slots=True)
class Window:
    """How a kernel slides over the input; `height` and `width` are those of the dilated kernel."""

    height: int
    width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    pad_top: int
    pad_left: int
    pad_bottom: int
    pad_right: int
    part_kernel_first: bool


@dataclass(frozen=True, slots=True)
class Result:
    """How sums become the output.

    Attributes:
        rounding: Of the scaling.
        multiplier, shift: The scale of all channels; None where each channel has its own, in a scale stream.
        minimum, maximum: The clamp, before a table.
        table: The lookup table's slot of 256 bytes, or None.
        force_i8: The clamp is to int8, whatever the output's type: the index of a table of 32-bit entries.
    """

    rounding: Rounding
    multiplier: int | None
    shift: int
    minimum: int
    maximum: int
    table: int | None
    force_i8: bool


@dataclass(frozen=True, slots=True)
class DmaCopy:
    """`num_rows` rows of `row_bytes` are copied; from row to row lie `source_step` and `destination_step` bytes."""

    source_region: int
    source: int
    source_step: int
    destination_region: int
    destination: int
    destination_step: int
    row_bytes: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution; with `depthwise`, each channel is its own.

    Attributes:
        weights, scales: One span a core.
        block_depth: Output channels that are made at once: the weight stream is in their order.
        wide: Sums of 40 bits; else of 32.
    """

    depthwise: bool
    ifm: FeatureMap
    ofm: FeatureMap
    window: Window
    upscale: Upscale
    weights: tuple[Span, ...]
    scales: tuple[Span, ...]
    block_depth: int
    wide: bool
    result: Result


@dataclass(frozen=True, slots=True)
class Pooling:
    """The greatest, the mean or the sum of a window, or the sum of all channels."""

    mode: PoolingMode
    ifm: FeatureMap
    ofm: FeatureMap
    window: Window
    upscale: Upscale
    wide: bool
    result: Result


@dataclass(frozen=True, slots=True)
class Elementwise:
    """An operation on one or two arrays.

    Attributes:
        ifm2: The second operand, of extent 1 where it is broadcast; None where it is a scalar or there is none.
        scalar: The second operand's value, where it is a scalar.
        ifm2_zero_point: Of the second operand, array or scalar.
        reversed_order: The second operand stands first.
        operand_scale, first_multiplier, first_shift, second_multiplier: Of the operands of a sum.
        operand_rounding: Of the 32-bit scaling of an operand.
    """

    mode: ElementwiseMode
    ifm: FeatureMap
    ifm2: FeatureMap | None
    scalar: int | None
    ifm2_zero_point: int
    reversed_order: bool
    ofm: FeatureMap
    operand_scale: OperandScale
    operand_rounding: Rounding
    first_multiplier: int
    first_shift: int
    second_multiplier: int
    result: Result


Operation = DmaCopy | Convolution | Pooling | Elementwise
