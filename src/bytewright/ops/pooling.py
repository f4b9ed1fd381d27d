"""Reductions over windows and axes, with TFLite's arithmetic. Fused activations are a `Clamp` after them."""

from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar, Self

import numpy as np

from bytewright import ir
from bytewright.ir.graph import OMIT_DEFAULT
from bytewright.ops.arithmetic.factors import divided_by
from bytewright.ops.arithmetic.multiplier import Multiplier
from bytewright.ops.arithmetic.rescale import Int64, double_round_by, single_round
from bytewright.ops.checks import ARITHMETIC, QUANTISED, WIDE, only, require, require_dtype, require_rank
from bytewright.ops.result import in_32_bits, saturate
from bytewright.ops.window import Padding, Pair, padding_for, turned_padding, window_shape, windows


@dataclass(frozen=True, slots=True)
class _Pool(ir.Operation):
    """Abstract: one value of each window of an NHWC tensor, from the elements that are not padding.

    Attributes:
        is_same: As of convolutions.
    """

    kernel: Pair
    stride: Pair
    padding: Padding
    is_same: bool = field(default=False, kw_only=True, metadata=OMIT_DEFAULT)

    @property
    def turned(self) -> Self:
        """The operator with rows and columns swapped."""
        padding = turned_padding(self.padding)
        return replace(self, kernel=self.kernel[::-1], stride=self.stride[::-1], padding=padding)

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """[N,OH,OW,C]; padding must be smaller than the kernel, so that each window sees an element."""
        operand = only(inputs)
        require_rank(operand, 4, "the input")
        require_dtype(operand, ARITHMETIC, "the input")
        spatial = window_shape(operand, self.kernel, self.stride, self.padding, is_same=self.is_same)
        seen = max(self.padding[:2]) < self.kernel[0] and max(self.padding[2:]) < self.kernel[1]
        require(seen, f"padding {self.padding} is not smaller than the kernel {self.kernel}")
        return (ir.TensorType((*spatial, operand.shape[3]), operand.dtype),)

    def work_per_element(self, inputs: tuple[ir.TensorType, ...]) -> int:
        """The elements of a window."""
        del inputs
        return prod(self.kernel)

    def windows(self, x: ir.Array, outside: float) -> ir.Array:
        """What each element of the window sees: [KH*KW, N, OH, OW, C], with `outside` in the padding."""
        padding = padding_for(x.shape, self.kernel, self.stride, self.padding, is_same=self.is_same)
        seen = windows(x, self.kernel, self.stride, padding, outside=outside)
        return np.moveaxis(seen, (4, 5), (0, 1)).reshape((-1, *seen.shape[:4]))


@dataclass(frozen=True, slots=True)
class MaxPool2d(_Pool):
    """Greatest value of each window; padding never wins."""

    name: ClassVar[str] = "max_pool2d"

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        lowest = -np.inf if x.dtype == np.float32 else ir.DType.of(x.dtype).bounds[0]
        return (np.ascontiguousarray(self.windows(x, lowest).max(axis=0)),)


@dataclass(frozen=True, slots=True)
class TflAveragePool2d(_Pool):
    """Mean of each window; of integers, that of the raw values (no zero point), rounded half away from zero.

    Attributes:
        rounds_up: Whether halves are rounded up in place of that: the values stand for others, none of them negative.
    """

    name: ClassVar[str] = "tfl_average_pool2d"
    rounds_up: bool = field(default=False, kw_only=True, metadata=OMIT_DEFAULT)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; float64 then rounded for f32."""
        (x,) = inputs
        count = self.windows(np.ones((1, *x.shape[1:3], 1), dtype=np.float64), 0).sum(axis=0)
        total = self.windows(x.astype(np.float64), 0).sum(axis=0)
        if x.dtype == np.float32:
            return ((total / count).astype(np.float32),)
        elements = count.astype(np.int64)
        if self.rounds_up:
            return (np.floor_divide(total.astype(np.int64) + elements // 2, elements).astype(x.dtype),)
        magnitude = (np.abs(total.astype(np.int64)) + elements // 2) // elements
        return (np.where(total > 0, magnitude, -magnitude).astype(x.dtype),)


@dataclass(frozen=True, slots=True)
class _Reduction(ir.Operation):
    """Abstract: one value of all elements along some axes.

    Attributes:
        axes: Reduced axes, ascending, not negative.
        keep_dims: True if reduced axes stay with extent 1.
    """

    axes: tuple[int, ...]
    keep_dims: bool
    dtypes: ClassVar[tuple[ir.DType, ...]] = ARITHMETIC

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The shape without the reduced axes, or with extents 1 there."""
        operand = only(inputs, *self.dtypes)
        rank = len(operand.shape)
        ascending = all(0 <= axis < rank for axis in self.axes) and list(self.axes) == sorted(set(self.axes))
        require(ascending, f"axes {self.axes} are not ascending axes of a tensor of rank {rank}")
        shape = [1 if axis in self.axes else extent for axis, extent in enumerate(operand.shape)]
        kept = [extent for axis, extent in enumerate(shape) if self.keep_dims or axis not in self.axes]
        return (ir.TensorType(tuple(kept), self.result_dtype(operand.dtype)),)

    def result_dtype(self, dtype: ir.DType) -> ir.DType:
        """Of what type results are for operands of a type."""
        return dtype

    def reduced(self, function: np.ufunc, x: ir.Array) -> ir.Array:
        """The elements along the axes, two by two."""
        return np.asarray(function.reduce(x, axis=self.axes, keepdims=self.keep_dims))


@dataclass(frozen=True, slots=True)
class _OfPairs(_Reduction):
    """Abstract: what one exact function of two makes of the elements.

    Attributes:
        function: The one.
    """

    function: ClassVar[np.ufunc]

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return (self.reduced(self.function, inputs[0]),)


@dataclass(frozen=True, slots=True)
class ReduceMax(_OfPairs):
    """Greatest value along axes."""

    name: ClassVar[str] = "reduce_max"
    dtypes: ClassVar[tuple[ir.DType, ...]] = (*ARITHMETIC, *WIDE)
    function: ClassVar[np.ufunc] = np.maximum


@dataclass(frozen=True, slots=True)
class ReduceMin(_OfPairs):
    """Least value along axes."""

    name: ClassVar[str] = "reduce_min"
    dtypes: ClassVar[tuple[ir.DType, ...]] = (*ARITHMETIC, *WIDE)
    function: ClassVar[np.ufunc] = np.minimum


@dataclass(frozen=True, slots=True)
class ReduceSum(_Reduction):
    """Sum over axes: of integers the raw values, in i32; of f32 in f32."""

    name: ClassVar[str] = "reduce_sum"

    def result_dtype(self, dtype: ir.DType) -> ir.DType:
        """Wider for integers."""
        return ir.DType.I32 if dtype.is_integer else dtype

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; float64 then rounded for f32."""
        (x,) = inputs
        if x.dtype == np.float32:
            return (self.reduced(np.add, x.astype(np.float64)).astype(np.float32),)
        return (in_32_bits(self.reduced(np.add, x.astype(np.int64)), "a sum"),)


@dataclass(frozen=True, slots=True)
class WrappingReduceSum(_Reduction):
    """Sum over axes: of i32 modulo 2^32, of i64 modulo 2^64."""

    name: ClassVar[str] = "wrapping_reduce_sum"
    dtypes: ClassVar[tuple[ir.DType, ...]] = WIDE

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        return (self.reduced(np.add, x).astype(x.dtype),)


@dataclass(frozen=True, slots=True)
class ReduceProduct(_Reduction):
    """Product over axes: of i32 modulo 2^32, of i64 modulo 2^64, of f32 in f32."""

    name: ClassVar[str] = "reduce_product"
    dtypes: ClassVar[tuple[ir.DType, ...]] = (*WIDE, ir.DType.F32)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; float64 then rounded for f32."""
        (x,) = inputs
        wide = x.astype(np.float64) if x.dtype == np.float32 else x
        return (self.reduced(np.multiply, wide).astype(x.dtype),)


@dataclass(frozen=True, slots=True)
class TflQuantizedProduct(_Reduction):
    """Product over axes of quantised integers, scaled at each step as LiteRT does, so that it rarely leaves 32 bits.

    p = x[0] - input_zero_point; for each further element p = scaled(p * (x[i] - input_zero_point)); and
    saturate(scaled(p) + output_zero_point), where scaled(v) = single_round(v * multiplier * 2^(exponent - 31)) modulo
    2^32.

    Attributes:
        multiplier: Of 16 bits.
        exponent: At most 30.
    """

    name: ClassVar[str] = "tfl_quantized_product"
    input_zero_point: int
    output_zero_point: int
    multiplier: int
    exponent: int
    dtypes: ClassVar[tuple[ir.DType, ...]] = QUANTISED

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The shape without the reduced axes, or with extents 1 there."""
        require(0 <= self.multiplier < 1 << 15, f"multiplier {self.multiplier} is not of 16 bits")
        require(-31 <= self.exponent <= 30, f"exponent {self.exponent} is not in -31..30")
        return _Reduction.infer(self, inputs)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        kept = [axis for axis in range(x.ndim) if axis not in self.axes]
        (result,) = self.infer((ir.TensorType(x.shape, ir.DType.of(x.dtype)),))
        rows = x.transpose(*kept, *self.axes).reshape(prod(result.fixed_shape), -1)
        centred: Int64 = rows.astype(np.int64) - self.input_zero_point
        product: Int64 = centred[:, 0]
        for place in range(1, centred.shape[1]):
            product = self._scaled(product * centred[:, place])
        scaled = self._scaled(product) + self.output_zero_point
        return (saturate(scaled, result.dtype).reshape(result.fixed_shape),)

    def _scaled(self, values: Int64) -> Int64:
        """i64 -> i64 within 32 bits."""
        return single_round(values, self.multiplier, 31 - self.exponent).astype(np.int32).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ReduceAll(_OfPairs):
    """Whether all values along axes are true."""

    name: ClassVar[str] = "reduce_all"
    dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.BOOL,)
    function: ClassVar[np.ufunc] = np.logical_and


@dataclass(frozen=True, slots=True)
class ReduceAny(_OfPairs):
    """Whether a value along axes is true."""

    name: ClassVar[str] = "reduce_any"
    dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.BOOL,)
    function: ClassVar[np.ufunc] = np.logical_or


@dataclass(frozen=True, slots=True)
class TflIntegerMean(_Reduction):
    """Mean over axes of i32 or i64: their sum modulo 2^64, divided by their number without what is behind the point."""

    name: ClassVar[str] = "tfl_integer_mean"
    dtypes: ClassVar[tuple[ir.DType, ...]] = WIDE

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        total = self.reduced(np.add, x.astype(np.int64))
        count = prod(x.shape[axis] for axis in self.axes)
        floor = np.floor_divide(total, count)
        truncated = floor + (np.less(floor, 0) & np.not_equal(floor * count, total))
        return (np.asarray(truncated, x.dtype),)


@dataclass(frozen=True, slots=True)
class TflMean(_Reduction):
    """Mean over axes.

    Integers: saturate(double_round((sum(x) - input_zero_point * n) * q * 2^(e - 31)) + output_zero_point) for n
    reduced elements, where (q, e) is what the division by n makes of multiplier and exponent (`divided_by`).

    Attributes:
        input_zero_point, output_zero_point: Of integers only.
        multiplier, exponent: Of integers only: the input's scale by the output's.
        sums_of: How many elements each of the input's is the sum of; n counts these.
    """

    name: ClassVar[str] = "tfl_mean"
    input_zero_point: int = 0
    output_zero_point: int = 0
    multiplier: int = 0
    exponent: int = 0
    sums_of: int = field(default=1, metadata=OMIT_DEFAULT)

    def factor(self, count: int) -> Multiplier:
        """Of sums of so many integers."""
        return divided_by(Multiplier(self.multiplier, self.exponent), count)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; float64 then rounded for f32."""
        (x,) = inputs
        if x.dtype == np.float32:
            mean = np.mean(x.astype(np.float64), axis=self.axes, keepdims=self.keep_dims)
            return (np.asarray(mean / self.sums_of, dtype=np.float32),)
        count = prod(x.shape[axis] for axis in self.axes) * self.sums_of
        total = x.astype(np.int64).sum(axis=self.axes, keepdims=self.keep_dims)
        factor = self.factor(count)
        centred = total - self.input_zero_point * count
        scaled = double_round_by(centred, factor)
        return (np.asarray(saturate(scaled + self.output_zero_point, ir.DType.of(x.dtype))),)


OPERATIONS = (
    MaxPool2d,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProduct,
    ReduceSum,
    TflAveragePool2d,
    TflIntegerMean,
    TflMean,
    TflQuantizedProduct,
    WrappingReduceSum,
)
