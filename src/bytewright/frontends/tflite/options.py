"""Options of operators as typed records, from the tables of the file. Slots are those of the public schema.

A file without an options table means the defaults, as it does for the schema's accessors; an options table of
another operator is damage.
"""

from __future__ import annotations

from dataclasses import dataclass

from bytewright.frontends.tflite.flatbuffer import DamagedError, File, Table
from bytewright.frontends.tflite.model import OperatorRecord

Pair = tuple[int, int]

_ACTIVATIONS = {0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6", 4: "TANH", 5: "SIGN_BIT"}
_PADDINGS = {0: "SAME", 1: "VALID"}


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """A sliding window: CONV_2D, DEPTHWISE_CONV_2D and the pools. Pairs are (vertical, horizontal).

    Attributes:
        kernel: Of pools only; convolutions have it from the weights' shape.
        depth_multiplier: Of DEPTHWISE_CONV_2D only; 0 where the file leaves it to the shapes.
    """

    padding: str
    stride: Pair
    dilation: Pair
    activation: str
    kernel: Pair = (0, 0)
    depth_multiplier: int = 0


@dataclass(frozen=True, slots=True)
class FullyConnectedOptions:
    """Options of FULLY_CONNECTED."""

    activation: str
    is_shuffled: bool
    keep_num_dims: bool


@dataclass(frozen=True, slots=True)
class StridedSliceOptions:
    """Bit masks over the positions of begin, end and strides."""

    begin_mask: int
    end_mask: int
    ellipsis_mask: int
    new_axis_mask: int
    shrink_axis_mask: int
    end_is_size: bool


def conv2d_options(operator: OperatorRecord) -> WindowOptions:
    """Conv2DOptions."""
    table = _table(operator, "Conv2DOptions")
    return WindowOptions(
        padding=_named(operator, _PADDINGS, table.integer(0, "b")),
        stride=(table.integer(2), table.integer(1)),
        dilation=(table.integer(5, default=1), table.integer(4, default=1)),
        activation=_named(operator, _ACTIVATIONS, table.integer(3, "b")),
    )


def depthwise_options(operator: OperatorRecord) -> WindowOptions:
    """DepthwiseConv2DOptions."""
    table = _table(operator, "DepthwiseConv2DOptions")
    return WindowOptions(
        padding=_named(operator, _PADDINGS, table.integer(0, "b")),
        stride=(table.integer(2), table.integer(1)),
        dilation=(table.integer(6, default=1), table.integer(5, default=1)),
        activation=_named(operator, _ACTIVATIONS, table.integer(4, "b")),
        depth_multiplier=table.integer(3),
    )


def pool_options(operator: OperatorRecord) -> WindowOptions:
    """Pool2DOptions."""
    table = _table(operator, "Pool2DOptions")
    return WindowOptions(
        padding=_named(operator, _PADDINGS, table.integer(0, "b")),
        stride=(table.integer(2), table.integer(1)),
        dilation=(1, 1),
        activation=_named(operator, _ACTIVATIONS, table.integer(5, "b")),
        kernel=(table.integer(4), table.integer(3)),
    )


def fully_connected_options(operator: OperatorRecord) -> FullyConnectedOptions:
    """FullyConnectedOptions."""
    table = _table(operator, "FullyConnectedOptions")
    return FullyConnectedOptions(
        activation=_named(operator, _ACTIVATIONS, table.integer(0, "b")),
        is_shuffled=table.integer(1, "b") != 0,
        keep_num_dims=table.boolean(2),
    )


def fused_activation(operator: OperatorRecord) -> str:
    """The activation of ADD, SUB, MUL or CONCATENATION."""
    slots = {"ADD": 0, "SUB": 0, "MUL": 0, "CONCATENATION": 1}
    tables = {
        "ADD": "AddOptions",
        "SUB": "SubOptions",
        "MUL": "MulOptions",
        "CONCATENATION": "ConcatenationOptions",
    }
    table = _table(operator, tables[operator.kind])
    return _named(operator, _ACTIVATIONS, table.integer(slots[operator.kind], "b"))


def concatenation_axis(operator: OperatorRecord) -> int:
    """The axis of CONCATENATION, which may count from the end."""
    return _table(operator, "ConcatenationOptions").integer(0)


def keep_dims(operator: OperatorRecord) -> bool:
    """True if MEAN keeps reduced axes."""
    return _table(operator, "ReducerOptions").boolean(0)


def new_shape(operator: OperatorRecord) -> tuple[int, ...] | None:
    """The shape in RESHAPE's options; None if there is none."""
    return _table(operator, "ReshapeOptions").numbers(0, "<i4")


def squeeze_axes(operator: OperatorRecord) -> tuple[int, ...]:
    """Axes of SQUEEZE; none means every axis of extent 1."""
    return _table(operator, "SqueezeOptions").numbers(0, "<i4") or ()


def strided_slice_options(operator: OperatorRecord) -> StridedSliceOptions:
    """StridedSliceOptions."""
    table = _table(operator, "StridedSliceOptions")
    masks = [table.integer(slot) for slot in range(5)]
    return StridedSliceOptions(*masks, end_is_size=table.boolean(5))


def num_splits(operator: OperatorRecord) -> int:
    """Number of results of SPLIT."""
    return _table(operator, "SplitOptions").integer(0)


def softmax_beta(operator: OperatorRecord) -> float:
    """The factor of SOFTMAX's exponents."""
    return _table(operator, "SoftmaxOptions").real(0)


def leaky_relu_alpha(operator: OperatorRecord) -> float:
    """The slope of LEAKY_RELU below zero."""
    return _table(operator, "LeakyReluOptions").real(0)


def _table(operator: OperatorRecord, expected: str) -> Table:
    """The operator's options table, or one with nothing in it."""
    if operator.options is None:
        return Table(File(b"", 0), 0, 0, 0)
    if operator.options_type != expected:
        raise DamagedError(f"operator {operator.label} has {operator.options_type}, not {expected}")
    return operator.options


def _named(operator: OperatorRecord, names: dict[int, str], number: int) -> str:
    """The name of an enumeration's member."""
    if number not in names:
        raise DamagedError(f"operator {operator.label} has an option of the unknown value {number}")
    return names[number]
