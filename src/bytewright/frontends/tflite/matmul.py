"""BATCH_MATMUL, and FULLY_CONNECTED whose weights are computed, which is a product of the same kind.

TensorFlow 2.13 writes every product of matrices in a model with a fixed batch so.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.accumulator import (
    MOST_OF_64_BITS,
    accumulator_reach,
    checked_multiplier,
    clamp_float,
    reduced_multiplier,
    require_reach,
    rescale,
    rescale_accumulator,
)
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.convolution import (
    are_of_layer,
    check_bias_scale,
    convert_layer,
    fully_connected_form,
    product_with_matrix,
)
from bytewright.frontends.tflite.elementwise import emit_sum
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.hybrid import hybrid_product, weights_operand
from bytewright.frontends.tflite.kernels_of import refuse_kernel
from bytewright.ops.arithmetic.factors import prepare_batch_matmul
from bytewright.ops.arithmetic.multiplier import INT32_MAX, Affine
from bytewright.ops.arithmetic.numerics import Numerics, convolution_rounding
from bytewright.ops.matmul import TflBatchMatMul

# LiteRT takes no more.
MAX_RANK = 5


def convert_batch_matmul(at: Conversion) -> None:
    """Matrices in the last two axes; axes before them are broadcast."""
    at.require_counts((2,))
    adjoint = at.options.boolean(0), at.options.boolean(1)
    first, second = at.activation_operand(0, "first operand"), at.activation_operand(1, "second operand")
    if first.is_float and not second.is_float:
        second, _ = weights_operand(at, under_floats=True, axis=None)
    is_hybrid = first.is_float and not second.is_float
    is_narrow = (first.dtype, second.dtype) == (ir.DType.I16, ir.DType.I8)
    at.require_same_dtype(first, *(() if is_hybrid or is_narrow or second.is_expanded else (second,)))
    ranks = len(first.shape), len(second.shape)
    at.require(
        min(ranks) >= 2 and max(ranks) <= MAX_RANK,
        f"operands of {ranks[0]} and {ranks[1]} axes; 2 to {MAX_RANK} are supported",
    )
    if is_hybrid:
        at.define(_hybrid_product(at, TflBatchMatMul(*adjoint), first, second))
        return
    if first.is_float:
        operation = TflBatchMatMul(*adjoint)
        at.define(_product(at, operation, first, second)[0])
        return
    left, target = at.affine(first.tensor), at.affine(at.output_tensor())
    scales, zero_point = _second_scales(at, first, second, adjoint)
    if is_narrow:
        at.require(zero_point == 0, "int8 under int16 has a zero point that is not 0")
        if at.numerics is Numerics.TFLM:
            refuse_kernel(at, " for INT16 and INT8", (Numerics.LITERT_REF,))
    operation = TflBatchMatMul(*adjoint, left.zero_point, zero_point)
    accumulator, reach = _product(at, operation, first, second)
    factors = [prepare_batch_matmul(left.scale, scale, target.scale, at.numerics) for scale in scales]
    is_wide = first.dtype is ir.DType.I16
    rounding = convolution_rounding(at.operator.kind, at.numerics, is_wide=is_wide)
    check = reduced_multiplier if is_wide else checked_multiplier
    multipliers = [check(at, factor, reach, target.zero_point) for factor in factors]
    zero_points = 0, target.zero_point
    result = rescale(at, accumulator, multipliers, *zero_points, first.dtype, "rescaled", rounding=rounding)
    at.define(result)


def _second_scales(
    at: Conversion, first: Operand, second: Operand, adjoint: tuple[bool, bool]
) -> tuple[Sequence[float], int]:
    """Scales of the second operand, one or one for each column, and its zero point.

    LiteRT's kernels take a scale of 0 where there are several, and give zeros; each column is computed as they compute
    it alone.
    """
    count = len(second.tensor.quantization.scales)
    if count <= 1 or at.numerics is Numerics.TFLM:
        right = at.affine(second.tensor)
        return (right.scale,), right.zero_point
    at.require(
        _is_one_matrix(first, second) and not adjoint[0],
        f"'{second.tensor.name}' has {count} scales, and is not one constant matrix under a first operand that is "
        "computed, and not adjoint",
    )
    axis = len(second.shape) - (2 if adjoint[1] else 1)
    return at.weight_scales(second.tensor, second.shape[axis], axis), 0


def _is_one_matrix(first: Operand, second: Operand) -> bool:
    return second.data is not None and first.data is None and prod(second.shape[:-2]) == 1


def convert_fully_connected(at: Conversion) -> None:
    """FULLY_CONNECTED: a layer where the weights are known, else a product of two matrices that are computed."""
    at.require_counts((2, 3))
    source, weights = at.activation_operand(0, "input"), at.operand(1, "weights")
    if weights.data is not None:
        convert_layer(at)
        return
    at.require_same_dtype(source, weights)
    at.require(source.dtype is not ir.DType.I16, "weights that are computed are int8 or float32")
    form = fully_connected_form(at, source, weights)
    bias = at.operand(2, "bias") if at.is_present(2) else None
    if bias is not None:
        at.require(bias.shape == (form.channels,), f"biases {list(bias.shape)} for {form.channels} channels")
    rows = at.reshape(at.value_of(source), (form.rows, form.depth), "rows")
    operands = (rows, at.value_of(weights))
    if source.is_float:
        result = at.emit(TflBatchMatMul(adjoint_second=True), operands, "product")
        if bias is not None:
            at.require(bias.is_float, f"the bias is {bias.tensor.element_type}")
            result = emit_sum(at, result, at.value_of(bias, "bias"))
        result = clamp_float(at, result, form.activation)
    else:
        result = _integer_product(at, operands, source, weights, bias, form.activation)
    at.define(at.reshape(result, form.result_shape))


def _integer_product(
    at: Conversion,
    operands: tuple[str, str],
    source: Operand,
    weights: Operand,
    bias: Operand | None,
    activation: str,
) -> str:
    """Rows times computed weights of int8, whose zero point counts, as both references have it; rescaled."""
    left, right, target = (at.affine(each) for each in (source.tensor, weights.tensor, at.output_tensor()))
    operation = TflBatchMatMul(
        adjoint_second=True, first_zero_point=left.zero_point, second_zero_point=right.zero_point
    )
    greatest_bias = 0
    accumulator = at.emit(operation, operands, "product")
    if bias is not None:
        at.require(bias.dtype is ir.DType.I32, f"the bias is {bias.tensor.element_type}")
        check_bias_scale(at, source, (right.scale,), bias)
        values = at.fixed_operand(2, "bias").astype(np.int64)
        greatest_bias = int(np.abs(values).max(initial=0))
    reach = _reach(at, (left, right), weights.shape[1], greatest_bias)
    if bias is not None:
        accumulator = emit_sum(at, accumulator, at.value_of(bias, "bias"))
    scales = (left, (right.scale,), target)
    return rescale_accumulator(at, accumulator, np.array([reach], np.int64), scales, activation)


def _product(at: Conversion, operation: TflBatchMatMul, first: Operand, second: Operand) -> tuple[str, int]:
    """The product, and of integers the greatest magnitude that it can have."""
    is_weights = (
        _is_one_matrix(first, second)
        and not operation.adjoint_first
        and operation.second_zero_point == 0
        and are_of_layer(first.dtype, second.dtype)
    )
    if is_weights:
        return _layer(at, operation, first, second)
    reach = 0
    if not first.is_float:
        sources = at.affine(first.tensor), at.affine(second.tensor)
        most = MOST_OF_64_BITS if first.dtype is ir.DType.I16 else INT32_MAX
        reach = _reach(at, sources, operation.depth(first.shape), most=most)
    values = at.value_of(first), at.value_of(second)
    if second.dtype is not first.dtype:
        values = values[0], emit_cast(at, values[1], first.dtype, "widened")
    return at.emit(operation, values, "product"), reach


def _layer(at: Conversion, operation: TflBatchMatMul, first: Operand, second: Operand) -> tuple[str, int]:
    """A product with one constant matrix is a convolution with a 1x1 window over rows, as FULLY_CONNECTED is."""
    assert second.data is not None
    (result,) = _inferred(at, operation, first, second)
    matrix = second.data.array.reshape(second.shape[-2:])
    weights = matrix if operation.adjoint_second else np.ascontiguousarray(matrix.T)
    if first.is_float:
        product = product_with_matrix(at, at.value_of(first), weights, 0)
        return at.reshape(product, result.fixed_shape), 0
    reach = accumulator_reach(weights, np.zeros(len(weights), np.int64), at.affine(first.tensor))
    is_wide = first.dtype is ir.DType.I16
    require_reach(at, reach, MOST_OF_64_BITS if is_wide else INT32_MAX)
    sums = ir.DType.I32 if reach.fits_32_bits else ir.DType.I64
    product = product_with_matrix(at, at.value_of(first), weights, operation.first_zero_point, sums)
    return at.reshape(product, result.fixed_shape), int(reach.greatest.max())


def _hybrid_product(at: Conversion, operation: TflBatchMatMul, first: Operand, second: Operand) -> str:
    """A product of floats with one constant matrix of int8, whose rows are quantised at run time."""
    at.require(
        second.data is not None and prod(second.shape[:-2]) == 1 and not operation.adjoint_first,
        "int8 under float32 must be one constant matrix, and the second operand, of a first one that is not adjoint",
    )
    assert second.data is not None
    matrix = second.data.array.reshape(second.shape[-2:])
    weights = matrix if operation.adjoint_second else np.ascontiguousarray(matrix.T)
    (result,) = _inferred(at, operation, first, second)
    product = hybrid_product(at, at.value_of(first), weights, at.weight_scales(second.tensor, 1, 0), slot=2)
    return at.reshape(product, result.fixed_shape)


def _inferred(
    at: Conversion, operation: TflBatchMatMul, first: Operand, second: Operand
) -> tuple[ir.TensorType, ...]:
    """The type of a product of operands as if they were of one type."""
    try:
        return operation.infer((first.type, replace(second.type, dtype=first.dtype)))
    except ValueError as error:
        at.fail(str(error))


def _reach(
    at: Conversion, sources: tuple[Affine, Affine], depth: int, bias: int = 0, most: int = INT32_MAX
) -> int:
    """The greatest magnitude of a sum of so many products, and a bias.

    Raises:
        CompileError: BW110, it can be beyond `most`.
    """
    reach = bias + depth * prod(source.reach for source in sources)
    if reach > most:
        at.fail(
            f"the sum of {depth} products can reach {reach}, beyond {most.bit_length() + 1} bits",
            code="BW110",
            help="split the inner axis, and add the products",
        )
    return reach
