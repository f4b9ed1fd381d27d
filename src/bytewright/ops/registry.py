"""The one table of all graph operators, by the name that printed IR uses."""

from __future__ import annotations

from bytewright.ir.graph import Operation
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Concat, Identity, Pad, Reshape, Slice, Transpose
from bytewright.ops.elementwise import (
    Add,
    Clamp,
    Mul,
    Sigmoid,
    Sub,
    Table,
    Tanh,
    TflDequantize,
    TflHardSwish,
    TflLeakyRelu,
    TflQuantize,
)
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean
from bytewright.ops.rescale import Rescale, TflRealRescale
from bytewright.ops.softmax import TflSoftmax

OPERATIONS: dict[str, type[Operation]] = {
    Conv2d.name: Conv2d,
    DepthwiseConv2d.name: DepthwiseConv2d,
    Rescale.name: Rescale,
    TflRealRescale.name: TflRealRescale,
    Clamp.name: Clamp,
    Add.name: Add,
    Sub.name: Sub,
    Mul.name: Mul,
    Table.name: Table,
    Sigmoid.name: Sigmoid,
    Tanh.name: Tanh,
    TflHardSwish.name: TflHardSwish,
    TflLeakyRelu.name: TflLeakyRelu,
    TflQuantize.name: TflQuantize,
    TflDequantize.name: TflDequantize,
    MaxPool2d.name: MaxPool2d,
    TflAveragePool2d.name: TflAveragePool2d,
    TflMean.name: TflMean,
    TflSoftmax.name: TflSoftmax,
    Pad.name: Pad,
    Reshape.name: Reshape,
    Transpose.name: Transpose,
    Concat.name: Concat,
    Slice.name: Slice,
    Identity.name: Identity,
}
