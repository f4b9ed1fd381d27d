"""Options that several operators have, from the tables of the file. Slots are those of the public schema."""

import struct
from dataclasses import dataclass

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.flatbuffer import DamagedError
from bytewright.frontends.tflite.model import schema_names

Pair = tuple[int, int]
_BIASED_TRANSPOSE = struct.Struct("<3i")
_PADDINGS = {1: "SAME", 2: "VALID"}  # as the C interface of TensorFlow Lite numbers them


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """A sliding window: convolutions and pools. Pairs are (vertical, horizontal).

    Attributes:
        kernel: Of pools only; convolutions have it from the weights' shape.
        depth_multiplier: Of DEPTHWISE_CONV_2D only; 0 where the file leaves it to the shapes.
        bias_type: What is said of the bias under int16 activations, `stated_bias_type`.
    """

    padding: str
    stride: Pair
    dilation: Pair
    activation: str
    kernel: Pair = (0, 0)
    depth_multiplier: int = 0
    bias_type: str | None = None


def conv2d_options(at: Conversion) -> WindowOptions:
    """Conv2DOptions."""
    dilation, activation = _pair(at, 4, default=1), fused_activation(at, 3)
    return WindowOptions(*_window(at), dilation, activation, bias_type=stated_bias_type(at, 6))


def depthwise_options(at: Conversion) -> WindowOptions:
    """DepthwiseConv2DOptions."""
    dilation, activation = _pair(at, 5, default=1), fused_activation(at, 4)
    return WindowOptions(*_window(at), dilation, activation, depth_multiplier=at.options.integer(3))


def conv3d_options(at: Conversion) -> tuple[WindowOptions, Pair]:
    """Conv3DOptions: the window over rows and columns, and the stride and dilation of its depth."""
    padding, activation = _named(at, "Padding", 0), fused_activation(at, 4)
    along_depth = (at.options.integer(1), at.options.integer(5, default=1))
    return WindowOptions(padding, _pair(at, 2), _pair(at, 6, default=1), activation), along_depth


def transpose_options(at: Conversion) -> WindowOptions:
    """TransposeConvOptions."""
    activation = fused_activation(at, 3)
    return WindowOptions(*_window(at), (1, 1), activation, bias_type=stated_bias_type(at, 4))


def biased_transpose_options(at: Conversion) -> WindowOptions:
    """Those of MediaPipe's operator: a structure of C, of which its kernel reads padding, and stride, width first."""
    content = at.operator.custom_options
    if len(content) < _BIASED_TRANSPOSE.size:
        raise DamagedError(f"operator {at.operator.label} has {len(content)} bytes of options")
    padding, horizontal, vertical = _BIASED_TRANSPOSE.unpack_from(content)
    at.require(padding in _PADDINGS, f"padding {padding}, which is neither 1 (SAME) nor 2 (VALID)")
    return WindowOptions(_PADDINGS[padding], (vertical, horizontal), (1, 1), "NONE")


def pool_options(at: Conversion) -> WindowOptions:
    """Pool2DOptions."""
    return WindowOptions(*_window(at), (1, 1), fused_activation(at, 5), kernel=_pair(at, 3))


def activation_name(at: Conversion, slot: int) -> str:
    """What a field says of an activation."""
    return _named(at, "ActivationFunctionType", slot)


def fused_activation(at: Conversion, slot: int) -> str:
    """What is applied to the operator's result; of those that are no clamps, none is supported."""
    activation = activation_name(at, slot)
    at.require(activation not in ("TANH", "SIGN_BIT"), f"the fused activation {activation} is not supported")
    return activation


def stated_bias_type(at: Conversion, slot: int) -> str | None:
    """The integer type that an operator is told its bias has; None where nothing is said."""
    name = schema_names("TensorType").get(at.options.integer(slot, "b"))
    return name if name in ("INT32", "INT64") else None


def _window(at: Conversion) -> tuple[str, Pair]:
    """Padding and stride, which stand first in all tables of windows."""
    return _named(at, "Padding", 0), _pair(at, 1)


def _pair(at: Conversion, slot: int, default: int = 0) -> Pair:
    """Two numbers that stand in the file with the horizontal one first."""
    return at.options.integer(slot + 1, default=default), at.options.integer(slot, default=default)


def _named(at: Conversion, enumeration: str, slot: int) -> str:
    """The name of a member of one of the schema's enumerations."""
    number = at.options.integer(slot, "b")
    names = schema_names(enumeration)
    if number not in names:
        raise DamagedError(f"operator {at.operator.label} has an option of the unknown value {number}")
    return names[number]
