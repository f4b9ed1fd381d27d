"""QUANTIZE and DEQUANTIZE: between float32 and integers, two quantisations, and of float16 and int4 constants."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.accumulator import checked_multiplier, limited, rescale
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_moved, emit_scaled
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.islands import emit_quantized
from bytewright.frontends.tflite.lookup import emit_table
from bytewright.frontends.tflite.model import BlocksRecord
from bytewright.ops.arithmetic import tables
from bytewright.ops.arithmetic.multiplier import INT32_MAX, quantize_multiplier, single
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.quantization import TflDequantize, TflQuantize

# What TflQuantize rounds to.
_MOST_FAKED_BITS = 16


def convert_quantize(at: Conversion) -> None:
    """QUANTIZE of float32, int8, uint8, int16 or int32 to int8, uint8, int16 or int32."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input", ir.DType.I32)
    wanted = at.output_tensor().element_type
    is_known = wanted in ("INT8", "UINT8", "INT16", "INT32")
    at.require(is_known, f"the result is {wanted}, not INT8, UINT8, INT16 or INT32")
    dtype = {"INT16": ir.DType.I16, "INT32": ir.DType.I32}.get(wanted, ir.DType.I8)
    if source.is_float:
        target = at.affine(at.output_tensor())
        operation = TflQuantize(target.scale, target.zero_point, dtype)
        result = emit_quantized(at, at.value_of(source), operation)
    elif not {source.dtype, dtype}.isdisjoint((ir.DType.I16, ir.DType.I32)):
        at.define(_requantised(at, source, dtype))
        return
    else:
        result = emit_table(at, source, tables.quantize)
    at.define(result)


def convert_dequantize(at: Conversion) -> None:
    """DEQUANTIZE of integers and int4 constants to float32; float16 constants are that when they are read."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require_result("FLOAT32")
    if source.tensor.element_type == "FLOAT16":
        at.define(at.value_of(source, "input"))
        return
    at.require(not source.is_float, "the input is float32 already")
    if source.data is not None:
        at.graph.dequantised[at.operator.outputs[0]] = source
    if len(source.tensor.quantization.scales) > 1:
        at.define(_dequantized_channels(at))
        return
    at.define(real_value(at, source))


def convert_fake_quant(at: Conversion) -> None:
    """FAKE_QUANT: floats as whole steps of a range, which is moved so that 0 is one of them."""
    at.require_counts((1,))
    source = at.typed_operand(0, "input", (ir.DType.F32,))
    at.require_same_dtype(source)
    low, high = (np.float32(at.options.real(slot)) for slot in (0, 1))
    bits = at.options.integer(2)
    at.require(bool(low <= 0 <= high and low < high), f"the range {low}..{high} is empty, or without 0")
    at.require(2 <= bits <= _MOST_FAKED_BITS, f"{bits} bits, 2 to {_MOST_FAKED_BITS} are supported")
    at.require(not at.options.boolean(3), "a narrow range is of weights alone, in LiteRT as well")
    steps = np.float32((1 << bits) - 1)
    scale = (high - low) / steps
    zero = np.floor(min(max(-low / scale, np.float32(0)), steps) + np.float32(0.5))
    ends = [(end - zero) * scale for end in (np.float32(0), steps)]
    clamped = limited(at, at.value_of(source), float(ends[0]), float(ends[1]))
    moved = emit_scaled(at, emit_moved(at, clamped, -ends[0]), np.float32(1) / scale)
    least = ir.DType.I16.bounds[0]  # so that 16 bits fit
    whole = at.emit(TflQuantize(1.0, least, ir.DType.I16), (moved,), "whole")
    real = at.emit(TflDequantize(float(scale), least), (whole,), "real")
    at.define(emit_moved(at, real, ends[0]))


def convert_densify(at: Conversion) -> None:
    """DENSIFY of a sparse constant, which is dense when it is read."""
    at.require_counts((1,))
    operand, _ = at.constant_operand(0, "input")
    at.define(at.value_of(operand, "input"))


def real_value(at: Conversion, source: Operand) -> str:
    """An operand with one scale in float32."""
    own = at.affine(source.tensor)
    return at.emit(TflDequantize(own.scale, own.zero_point), (at.value_of(source),), "result")


def _requantised(at: Conversion, source: Operand, dtype: ir.DType) -> str:
    """To or from int16 or int32: a rescale by a factor in double.

    The two numerics sets agree, but for zero points of int16, which LiteRT refuses where the result is int16.
    """
    is_symmetric = at.numerics is Numerics.LITERT_REF and dtype is ir.DType.I16
    own, target = (
        at.affine(tensor, is_symmetric=is_symmetric) for tensor in (source.tensor, at.output_tensor())
    )
    factor = quantize_multiplier(single(own.scale) / single(target.scale))
    # The least number of 32 bits is scaled as well as its negative would be.
    reach = own.reach if own.zero_point else min(own.reach, INT32_MAX)
    checked = checked_multiplier(at, factor, reach, target.zero_point)
    value = at.value_of(source)
    return rescale(at, value, [checked], own.zero_point, target.zero_point, dtype, "result")


def _dequantized_channels(at: Conversion) -> str:
    """Constant weights with a scale a channel, as float constants.

    TensorFlow Lite Micro takes the first scale and zero point for all channels, which nobody can mean.
    """
    operand, values = at.constant_operand(0, "input with several scales")
    record = operand.tensor.quantization
    parameters = set(zip(record.scales, record.zero_points, strict=True))
    if at.numerics is Numerics.TFLM and len(parameters) > 1:
        at.fail(
            f"'{operand.tensor.name}' has {len(record.scales)} scales, of which TensorFlow Lite Micro takes the first "
            "for all channels",
            tensor=operand.tensor,
            help="quantise the weights with one scale, or compile for --numerics litert-ref",
        )
    return at.constant("result", dequantised(at, operand, values), ir.DType.F32)


def blocks_of(at: Conversion, weights: Operand) -> BlocksRecord | None:
    """The blocks of weights [OC,K], if they have any; they fill rows, and each has a scale."""
    blocks = weights.tensor.quantization.blocks
    if blocks is None:
        return None
    at.require(
        len(weights.shape) == 2, f"weights {list(weights.shape)} with a scale a block do not have 2 axes"
    )
    channels, depth = weights.shape
    fits = (
        blocks.size >= 1 and depth % blocks.size == 0 and blocks.size * len(blocks.scales) == channels * depth
    )
    at.require(
        fits, f"weights {list(weights.shape)} have {len(blocks.scales)} scales for blocks of {blocks.size}"
    )
    usable = bool((np.isfinite(blocks.scales) & (blocks.scales > 0)).all())
    at.require(usable, "the scale of a block is not positive")
    return blocks


def dequantised(at: Conversion, operand: Operand, values: NDArray[Any]) -> NDArray[np.float32]:
    """The real values of an integer constant with one scale, one along an axis or a block, as DEQUANTIZE gives them."""
    record, rank = operand.tensor.quantization, len(operand.shape)
    if (blocks := blocks_of(at, operand)) is not None:
        by_block = values.astype(np.float32).reshape(-1, blocks.size) * blocks.scales[:, None]
        return by_block.reshape(operand.shape)
    if len(record.scales) == 1:
        scale, zero_point, _ = at.affine(operand.tensor)
        return (values.astype(np.float32) - np.float32(zero_point)) * np.float32(scale)
    fits = 0 <= record.axis < rank and operand.shape[record.axis] == len(record.scales)
    at.require(fits, f"{len(record.scales)} scales along axis {record.axis} of {list(operand.shape)}")
    along = tuple(-1 if axis == record.axis else 1 for axis in range(rank))
    scales = np.array(record.scales, dtype=np.float32).reshape(along)
    # As exact as integers, and shorter.
    zero_points = np.array(at.zero_points(operand.tensor), dtype=np.float32).reshape(along)
    return (values.astype(np.float32) - zero_points) * scales
