"""Which template writes the kernel of which operator: the one visible table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bytewright.ir.graph import Operation
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.conv2d import lower_conv2d
from bytewright.lower.kernels.data import (
    lower_concat,
    lower_identity,
    lower_pad,
    lower_slice,
    lower_transpose,
)
from bytewright.lower.kernels.depthwise import lower_depthwise_conv2d
from bytewright.lower.kernels.pooling import lower_mean, lower_pool
from bytewright.lower.kernels.softmax import lower_softmax
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Concat, Identity, Pad, Slice, Transpose
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean
from bytewright.ops.softmax import TflSoftmax

# A template takes the operator's own descriptor as its second argument.
TEMPLATES: dict[type[Operation], Callable[[Template, Any], None]] = {
    Concat: lower_concat,
    Conv2d: lower_conv2d,
    DepthwiseConv2d: lower_depthwise_conv2d,
    Identity: lower_identity,
    MaxPool2d: lower_pool,
    Pad: lower_pad,
    Slice: lower_slice,
    TflAveragePool2d: lower_pool,
    TflMean: lower_mean,
    TflSoftmax: lower_softmax,
    Transpose: lower_transpose,
}
