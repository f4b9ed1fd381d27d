"""The TFLite operators that Bytewright compiles: their converters, and what users are told of their limits."""

from __future__ import annotations

from collections.abc import Callable

from bytewright.frontends.registry import SupportedOperator
from bytewright.frontends.tflite.activation import convert_softmax, convert_unary
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.convolution import (
    convert_conv2d,
    convert_depthwise,
    convert_fully_connected,
)
from bytewright.frontends.tflite.elementwise import convert_binary
from bytewright.frontends.tflite.pooling import convert_mean, convert_pool
from bytewright.frontends.tflite.quantization import convert_dequantize, convert_quantize
from bytewright.frontends.tflite.shape import (
    convert_concatenation,
    convert_expand_dims,
    convert_pad,
    convert_reshape,
    convert_slice,
    convert_split,
    convert_squeeze,
    convert_transpose,
)
from bytewright.frontends.tflite.strided_slice import convert_strided_slice

Converter = Callable[[Conversion], None]

CONVERTERS: dict[str, Converter] = {
    "ADD": convert_binary,
    "AVERAGE_POOL_2D": convert_pool,
    "CONCATENATION": convert_concatenation,
    "CONV_2D": convert_conv2d,
    "DEPTHWISE_CONV_2D": convert_depthwise,
    "DEQUANTIZE": convert_dequantize,
    "EXPAND_DIMS": convert_expand_dims,
    "FULLY_CONNECTED": convert_fully_connected,
    "HARD_SWISH": convert_unary,
    "LEAKY_RELU": convert_unary,
    "LOGISTIC": convert_unary,
    "MAX_POOL_2D": convert_pool,
    "MEAN": convert_mean,
    "MUL": convert_binary,
    "PAD": convert_pad,
    "PADV2": convert_pad,
    "QUANTIZE": convert_quantize,
    "RELU": convert_unary,
    "RELU6": convert_unary,
    "RELU_N1_TO_1": convert_unary,
    "RESHAPE": convert_reshape,
    "SLICE": convert_slice,
    "SOFTMAX": convert_softmax,
    "SPLIT": convert_split,
    "SQUEEZE": convert_squeeze,
    "STRIDED_SLICE": convert_strided_slice,
    "SUB": convert_binary,
    "TANH": convert_unary,
    "TRANSPOSE": convert_transpose,
}


_BOTH = ("int8", "float32")
_CLAMPS = "fused activation: none, RELU, RELU6, RELU_N1_TO_1"
_LIMITS: dict[str, str] = {
    "ADD": f"broadcasting; {_CLAMPS}",
    "AVERAGE_POOL_2D": f"tflm: input and output quantised alike; {_CLAMPS}",
    "CONCATENATION": "operands quantised as the result is; no fused activation",
    "CONV_2D": f"constant weights, per tensor or per channel, zero point 0; no groups; {_CLAMPS}",
    "DEPTHWISE_CONV_2D": f"constant weights, per tensor or per channel, zero point 0; {_CLAMPS}",
    "DEQUANTIZE": "int8 to float32; constants also per channel",
    "EXPAND_DIMS": "constant axis",
    "FULLY_CONNECTED": f"constant weights, per tensor or per channel, zero point 0, not shuffled; {_CLAMPS}",
    "HARD_SWISH": "int8: input scale at most 128 times the output's",
    "LEAKY_RELU": "",
    "LOGISTIC": "int8: output scale 1/256 with any zero point (litert-ref), zero point -128 with any scale (tflm)",
    "MAX_POOL_2D": f"tflm: input and output quantised alike; {_CLAMPS}",
    "MEAN": "constant axes",
    "MUL": f"broadcasting; {_CLAMPS}",
    "PAD": "constant paddings",
    "PADV2": "constant paddings and value; int8: value quantised as the result is",
    "QUANTIZE": "float32 or int8 to int8",
    "RELU": "",
    "RELU6": "",
    "RELU_N1_TO_1": "not with tflm",
    "RESHAPE": "constant shape",
    "SLICE": "constant begin and size",
    "SOFTMAX": "last axis; int8: output scale 1/256, zero point -128, at most 4095 values a row",
    "SPLIT": "constant axis",
    "SQUEEZE": "",
    "STRIDED_SLICE": "constant begin, end and strides; all masks; strides of either sign",
    "SUB": f"broadcasting; {_CLAMPS}",
    "TANH": "tflm: the result is taken to have scale 1/128 and zero point 0, as its kernel does",
    "TRANSPOSE": "constant permutation",
}
_TYPES: dict[str, tuple[str, ...]] = {"DEQUANTIZE": ("int8",)}

SUPPORTED: tuple[SupportedOperator, ...] = tuple(
    SupportedOperator(name, _TYPES.get(name, _BOTH), _LIMITS[name]) for name in CONVERTERS
)
