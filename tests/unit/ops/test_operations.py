"""Each graph operator: the type of its result, what it refuses, and its reference on numbers worked out by hand."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

import bytewright.ops
from bytewright.diagnostics import InternalError
from bytewright.ir.graph import Array, ControlOperation, Operation
from bytewright.ir.types import DType, TensorType
from bytewright.ops import fourier, sizes, spectrum
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.cast import TflCast
from bytewright.ops.comparisons import Equal, Greater, GreaterEqual, LogicalAnd, LogicalNot, LogicalOr
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, ShiftIn, Slice, Tile, Transpose
from bytewright.ops.detection import TflDecodeBoxes, TflSelectDetections, TflSuppress
from bytewright.ops.dynamic_quantization import TflDynamicQuantize, TflDynamicScale, TflDynamicZeroPoint
from bytewright.ops.elementwise import (
    Add,
    Atan2,
    BitwiseAnd,
    BitwiseXor,
    Bucketize,
    Clamp,
    IntDiv,
    LeftShift,
    Maximum,
    Minimum,
    Mul,
    Pow,
    RightShift,
    Select,
    Sub,
    TflDiv,
    TflFloorDiv,
    TflFloorMod,
    TflIntegerDiv,
    TflIntegerPower,
    TflPrelu,
    WrappingAdd,
    WrappingMul,
    WrappingSub,
)
from bytewright.ops.ethos_u import EthosU
from bytewright.ops.float_functions import (
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Negate,
    Rsqrt,
    Sigmoid,
    Sin,
    Tanh,
    TflElu,
    TflGelu,
    TflHardSwish,
    TflLeakyRelu,
    TflRound,
    TflSign,
    TflSqrt,
)
from bytewright.ops.interpolation import Interpolate, TflSigmoid16, TflSoftmax16
from bytewright.ops.lstm import TflHybridLstm, TflLstm, TflQuantizedLstm
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.placement import DeviceCopy, OnDevice
from bytewright.ops.places import ArgMax, ArgMin, CumulativeSum, GatherNd, ScatterNd, TopKPlaces, UpdateSlice
from bytewright.ops.pooling import (
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
from bytewright.ops.quantization import Recentre, Table, TflDequantize, TflQuantize
from bytewright.ops.registry import OPERATIONS
from bytewright.ops.rescale import Rescale, TflFloatRescale, TflRealRescale
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest
from bytewright.ops.roots import TflInverseRoot, TflL2Normalization
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax
from bytewright.ops.spectrum import TflFixedLog

I8, I16, I32, I64 = DType.I8, DType.I16, DType.I32, DType.I64
F32, F64, BOOL = DType.F32, DType.F64, DType.BOOL
NO_PADDING = (0, 0, 0, 0)
CONVOLUTION = {"stride": (1, 1), "padding": NO_PADDING, "dilation": (1, 1)}


def kind(dtype: DType, *shape: int) -> TensorType:
    return TensorType(shape, dtype)


def typed(array: Any, dtype: DType) -> Array:
    return np.array(array, dtype=dtype.numpy)


def evaluated(operation: Operation, *inputs: Array) -> Array:
    """The one result, which must have the type that `infer` states."""
    types = tuple(TensorType(a.shape, next(d for d in DType if d.numpy == a.dtype)) for a in inputs)
    (result,) = operation.evaluate(inputs)
    (expected,) = operation.infer(types)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype.numpy
    return result


def test_the_registry_has_every_operator_under_its_name() -> None:
    found: dict[str, type] = {}
    for module_info in pkgutil.iter_modules(bytewright.ops.__path__):
        module = importlib.import_module(f"bytewright.ops.{module_info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Operation) and "name" in vars(value):
                found[value.name] = value
    assert found == OPERATIONS
    for name, operation in OPERATIONS.items():
        assert operation.name == name
        assert dataclasses.is_dataclass(operation)
        assert all("name" not in vars(base) for base in operation.__mro__[1:]), "it derives from an operator"
        assert "__dict__" not in dir(operation)


CONV_TYPES = (kind(I8, 1, 5, 6, 3), kind(I8, 4, 3, 2, 3), kind(I32, 4))


@pytest.mark.parametrize(
    ("operation", "inputs", "result"),
    [
        (Conv2d((2, 1), (1, 1, 0, 1), (1, 2)), CONV_TYPES, kind(I32, 1, 3, 5, 4)),
        (
            DepthwiseConv2d((1, 1), NO_PADDING, (1, 1)),
            (kind(F32, 2, 5, 6, 3), kind(F32, 3, 2, 3, 2), kind(F32, 6)),
            kind(F32, 2, 3, 5, 6),
        ),
        (
            Rescale(Rounding.DOUBLE_ROUND, 0, 3, 0, I8),
            (kind(I32, 2, 4), kind(I32, 4), kind(I8, 4)),
            kind(I8, 2, 4),
        ),
        (TflRealRescale(0, I8), (kind(I32, 2, 4), kind(F64, 1)), kind(I8, 2, 4)),
        (Add(), (kind(I32, 2, 1, 4), kind(I32, 3, 1)), kind(I32, 2, 3, 4)),
        (TflQuantize(0.5, 0), (kind(F32, 7),), kind(I8, 7)),
        (TflDynamicScale(), (kind(F32, 4, 1), kind(F32, 4, 1)), kind(F32, 4, 1)),
        (TflDynamicZeroPoint(), (kind(F32, 4, 1), kind(F32, 4, 1)), kind(I8, 4, 1)),
        (TflDynamicQuantize(), (kind(F32, 4, 7), kind(I8, 4, 1)), kind(I8, 4, 7)),
        (TflDequantize(0.5, 0), (kind(I8, 7),), kind(F32, 7)),
        (Recentre(I8), (kind(DType.U8, 7),), kind(I8, 7)),
        (Recentre(DType.U8), (kind(I8, 7),), kind(DType.U8, 7)),
        (MaxPool2d((2, 3), (2, 2), (0, 1, 1, 1)), (kind(I8, 1, 5, 6, 3),), kind(I8, 1, 3, 3, 3)),
        (TflMean((1, 2), True), (kind(F32, 1, 5, 6, 3),), kind(F32, 1, 1, 1, 3)),
        (TflMean((0,), False), (kind(F32, 5),), kind(F32)),
        (Pad((0, 1), (2, 3), 0), (kind(I8, 1, 1),), kind(I8, 3, 5)),
        (Reshape((3, 4)), (kind(I8, 2, 6),), kind(I8, 3, 4)),
        (Transpose((2, 0, 1)), (kind(I8, 2, 3, 4),), kind(I8, 4, 2, 3)),
        (Concat(1), (kind(I8, 2, 3), kind(I8, 2, 4)), kind(I8, 2, 7)),
        (ShiftIn(1), (kind(I8, 2, 4), kind(I8, 2, 3)), kind(I8, 2, 4)),
        (Slice((5, 0), (3, 2), (-2, 1)), (kind(I8, 6, 2),), kind(I8, 3, 2)),
        (Tile((2, 1, 3)), (kind(I8, 2, 3, 1),), kind(I8, 4, 3, 3)),
        (Gather(1), (kind(F32, 2, 9, 4), kind(I32, 3, 5)), kind(F32, 2, 3, 5, 4)),
        (Gather(2, 1), (kind(I8, 2, 3, 9, 4), kind(I32, 2, 5)), kind(I8, 2, 3, 5, 4)),
        (Gather(0), (kind(I8, 9, 4), kind(I32)), kind(I8, 4)),
        (TflSoftmax(1.0), (kind(F32, 2, 5000),), kind(F32, 2, 5000)),
    ],
)
def test_types_of_results(operation: Operation, inputs: tuple[TensorType, ...], result: TensorType) -> None:
    assert operation.infer(inputs) == (result,)


@pytest.mark.parametrize(
    ("operation", "inputs", "text"),
    [
        (Conv2d(**CONVOLUTION), CONV_TYPES[:2], "2 operands where 3"),
        (Conv2d(**CONVOLUTION), (kind(I8, 5, 6, 3), *CONV_TYPES[1:]), "not 4 axes"),
        (Conv2d(**CONVOLUTION), (kind(F32, 1, 5, 6, 3), *CONV_TYPES[1:]), "the bias is i32, not f32"),
        (Conv2d(**CONVOLUTION), (CONV_TYPES[0], kind(F32, 4, 3, 3, 3), CONV_TYPES[2]), "the weights is f32"),
        (Conv2d(**CONVOLUTION), (kind(I8, 1, 5, 6, 2), *CONV_TYPES[1:]), "2 input channels"),
        (Conv2d(**CONVOLUTION), (*CONV_TYPES[:2], kind(I32, 3)), "4 channels"),
        (Conv2d((0, 1), NO_PADDING, (1, 1)), CONV_TYPES, "stride"),
        (Conv2d((1, 1), (0, -1, 0, 0), (1, 1)), CONV_TYPES, "negative"),
        (Conv2d((1, 1), NO_PADDING, (3, 1)), CONV_TYPES, "does not fit"),
        (
            DepthwiseConv2d(**CONVOLUTION),
            (kind(I8, 1, 5, 6, 3), kind(I8, 3, 2, 2, 1), kind(I32, 2)),
            "3 input",
        ),
        (
            Rescale(Rounding.DOUBLE_ROUND, 0, 0, 0, I8),
            (kind(I32, 2, 4), kind(I32, 3), kind(I8, 3)),
            "neither 1 nor 4",
        ),
        (
            Rescale(Rounding.REAL_ROUND, 0, 0, 0, I8),
            (kind(I32, 2, 4), kind(I32, 1), kind(I8, 1)),
            "real scale",
        ),
        (Add(), (kind(I32, 2, 3), kind(I32, 2)), "do not broadcast"),
        (Mul(), (kind(I8, 2), kind(I8, 2)), "i32 or f32"),
        (Sub(), (kind(I32, 2), kind(F32, 2)), "the second operand is f32"),
        (Clamp(3, 2), (kind(I8, 2),), "empty"),
        (Clamp(-200, 2), (kind(I8, 2),), "leaves i8"),
        (Table(), (kind(I8, 2), kind(I8, 255)), "256"),
        (Sigmoid(), (kind(I8, 2),), "not f32"),
        (TflQuantize(0.0, 0), (kind(F32, 2),), "not positive"),
        (TflDynamicQuantize(), (kind(F32, 2), kind(F32, 1)), "the zero point is f32, not i8"),
        (TflDynamicScale(), (kind(F32, 2), kind(F32, 3)), "do not broadcast"),
        (Recentre(I8), (kind(I8, 2),), "the input is i8, not u8"),
        (Recentre(F32), (kind(I8, 2),), "no recentre to f32"),
        (MaxPool2d((2, 2), (1, 1), (2, 0, 0, 0)), (kind(I8, 1, 5, 6, 3),), "not smaller"),
        (
            MaxPool2d((2, 2), (2, 1), NO_PADDING, is_same=True),
            (kind(I8, 1, 5, 6, 3),),
            r"pads 5 rows by \(0, 1\), not by \(0, 0\)",
        ),
        (TflMean((1, 0), True), (kind(F32, 2, 2),), "ascending"),
        (TflMean((2,), True), (kind(F32, 2, 2),), "ascending"),
        (Pad((1,), (1,), 0), (kind(I8, 2, 2),), "2 axes"),
        (Pad((1,), (1,), 300), (kind(I8, 2),), "leaves i8"),
        (Reshape((5,)), (kind(I8, 2, 2),), "cannot become"),
        (Transpose((0, 0)), (kind(I8, 2, 2),), "permutation"),
        (Concat(0), (kind(I8, 2, 2), kind(I8, 2, 3)), "does not continue"),
        (ShiftIn(0), (kind(I8, 2, 2), kind(I8, 2, 3)), "does not continue"),
        (ShiftIn(0), (kind(I8, 2, 2), kind(I8, 3, 2)), "3 are shifted in where 2 are kept"),
        (Slice((1,), (2,), (1,)), (kind(I8, 2),), "leave the extent"),
        (Slice((0,), (1,), (0,)), (kind(I8, 2),), "stride 0"),
        (Tile((2,)), (kind(I8, 2, 2),), "2 axes"),
        (Tile((-1,)), (kind(I8, 2),), "multiples"),
        (Gather(2), (kind(I8, 2, 2), kind(I32, 3)), "axis 2"),
        (Gather(0), (kind(I8, 2, 2), kind(F32, 3)), "what is taken is f32"),
        (Gather(0, 1), (kind(I8, 2, 2), kind(I32, 2)), "1 batch axes for axis 0"),
        (Gather(1, 1), (kind(I8, 2, 2), kind(I32, 3, 2)), "do not begin"),
        (TflSoftmax(1.0), (kind(I8, 1, 4096),), "4095"),
        (TflSoftmax(1.0), (kind(F32),), "scalar"),
    ],
)
def test_operands_that_do_not_fit(operation: Operation, inputs: tuple[TensorType, ...], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        operation.infer(inputs)


def test_convolution_by_hand() -> None:
    x = typed(np.arange(9).reshape(1, 3, 3, 1), I8)
    weights = typed(np.array([[1, 2], [3, 4]]).reshape(1, 2, 2, 1), I8)
    found = evaluated(Conv2d((1, 1), (0, 1, 0, 0), (1, 1), 1), x, weights, typed([100], I32))
    # Padding holds the zero point, so the last row sees two taps only.
    expected = [[117, 127], [147, 157], [100 + 5 + 12, 100 + 6 + 14]]
    np.testing.assert_array_equal(found[0, :, :, 0], expected)


def test_depthwise_channels_go_by_input_channel_first() -> None:
    x = typed(np.array([1, 10]).reshape(1, 1, 1, 2), I8)
    weights = typed(np.array([[1, 2, 3], [4, 5, 6]]).reshape(1, 1, 2, 3), I8)
    found = evaluated(DepthwiseConv2d(**CONVOLUTION), x, weights, typed([0] * 5 + [7], I32))
    np.testing.assert_array_equal(found.reshape(-1), [1, 2, 3, 40, 50, 67])


def test_groups_read_their_own_channels() -> None:
    x = typed([[[[1, 2, 3, 4]]]], I8)
    weights = typed([[[[1, 1]]], [[[2, 0]]], [[[1, 1]]], [[[0, -1]]]], I8)
    operation = GroupedConv2d(**CONVOLUTION, input_zero_point=1, groups=2)
    result = evaluated(operation, x, weights, typed([0, 0, 0, 10], I32))
    assert result.tolist() == [[[[1, 0, 5, 7]]]]
    with pytest.raises(ValueError, match="4 channels are not in 3 groups"):
        GroupedConv2d(**CONVOLUTION, groups=3).infer(
            (kind(I8, 1, 1, 1, 6), kind(I8, 4, 1, 1, 2), kind(I32, 4))
        )


def test_a_transposed_convolution_spreads_each_element_over_a_window() -> None:
    """Rows 2 and 4, of zero point 1, times 1, 10, 100 at a distance of two; the first row is cut, one is added."""
    x, weights = typed([[[[3]], [[5]]]], I8), typed([[[[1]], [[10]], [[100]]]], I8)
    operation = TransposeConv2d((2, 1), (-1, 1, 0, 0), input_zero_point=1)
    result = evaluated(operation, x, weights, typed([7], I32))
    assert result.reshape(-1).tolist() == [27, 211, 47, 407, 7]
    with pytest.raises(ValueError, match="has no element"):
        TransposeConv2d((1, 1), (-3, 0, 0, 0)).infer(
            (kind(I8, 1, 1, 1, 1), kind(I8, 1, 3, 1, 1), kind(I32, 1))
        )


def test_products_of_matrices_by_hand() -> None:
    a, b = typed([[[1, 2]], [[3, 4]]], I8), typed([[1, 0, 2], [0, 1, 3]], I8)
    result = evaluated(TflBatchMatMul(first_zero_point=1, second_zero_point=-1), a, b)
    assert result.tolist() == [[[1, 2, 4]], [[7, 8, 18]]]
    other = evaluated(TflBatchMatMul(True, True), np.swapaxes(a, 1, 2).copy(), b.T.copy())
    assert other.tolist() == [[[1, 2, 8]], [[3, 4, 18]]]
    for shapes, text in ((((2, 3), (4, 5)), "rows of 3 and columns of 4"), (((3,), (3, 4)), "2 axes")):
        with pytest.raises(ValueError, match=text):
            TflBatchMatMul().infer(tuple(kind(I8, *shape) for shape in shapes))


def test_resizes_by_hand() -> None:
    row = typed([[[[0], [100]]]], I8)
    assert evaluated(TflResizeNearest((1, 4)), row).reshape(-1).tolist() == [0, 0, 100, 100]
    assert evaluated(TflResizeNearest((1, 3), True), row).reshape(-1).tolist() == [0, 100, 100]
    assert evaluated(TflResizeBilinear((1, 4)), row).reshape(-1).tolist() == [0, 50, 100, 100]
    assert evaluated(TflResizeBilinear((1, 4), False, True), row).reshape(-1).tolist() == [0, 25, 75, 100]
    assert evaluated(TflResizeBilinear((1, 5), True), row).reshape(-1).tolist() == [0, 25, 50, 75, 100]
    unsigned = TflResizeBilinear((1, 4), False, True, unsigned=True)
    assert evaluated(unsigned, typed([[[[-128], [-123]]]], I8)).reshape(-1).tolist() == [
        -128,
        -127,
        -124,
        -123,
    ]
    with pytest.raises(ValueError, match="i16 elements stand for no uint8"):
        unsigned.infer((kind(I16, 1, 1, 2, 1),))
    with pytest.raises(ValueError, match="element 54 of 55 would lie at 1 of 1: the reference reads beyond"):
        TflResizeBilinear((1, 55)).infer((kind(I8, 1, 1, 1, 1),))


def test_accumulators_beyond_32_bits_are_noticed() -> None:
    x, weights = typed(np.ones((1, 1, 1, 1)), I8), typed(np.ones((1, 1, 1, 1)), I8)
    with pytest.raises(OverflowError):
        Conv2d(**CONVOLUTION).evaluate((x, weights, typed([2**31 - 1], I32)))
    large = typed([2**30], I32)
    for operation in (Add(), Mul()):
        with pytest.raises(OverflowError):
            operation.evaluate((large, large))
    with pytest.raises(OverflowError):
        Rescale(Rounding.DOUBLE_ROUND, 0, 0, 0, I8).evaluate((large, typed([1 << 30], I32), typed([2], I8)))


def test_rescale_rounds_as_its_attribute_says() -> None:
    accumulators = typed([-6, -2, -1, 1, 2, 3, 6], I32)
    quarter = (typed([1 << 30], I32), typed([-1], I8))
    double = evaluated(Rescale(Rounding.DOUBLE_ROUND, 0, 0, 0, I8), accumulators, *quarter)
    single = evaluated(Rescale(Rounding.SINGLE_ROUND, 0, 0, 0, I8), accumulators, *quarter)
    # x/4: the first rounding of DOUBLE_ROUND goes up at ties, the second away from zero.
    np.testing.assert_array_equal(double, [-2, -1, 0, 1, 1, 1, 2])
    np.testing.assert_array_equal(single, [-1, 0, 0, 0, 1, 1, 2])
    real = evaluated(TflRealRescale(0, I8), accumulators, typed([0.25], F64))
    np.testing.assert_array_equal(real, [-2, -1, 0, 0, 1, 1, 2])


def test_rescale_takes_zero_points_channels_and_shifts() -> None:
    x = typed([[10, 10], [-128, 127]], I8)
    operation = Rescale(Rounding.DOUBLE_ROUND, 2, 5, 3, I32)
    found = evaluated(operation, x, typed([1 << 30, 0], I32), typed([1, 0], I8))
    np.testing.assert_array_equal(found, [[69, 5], [-1035, 5]])
    saturated = evaluated(TflRealRescale(100, I8), typed([[50, -500]], I32), typed([1.0], F64))
    np.testing.assert_array_equal(saturated, [[127, -128]])
    with pytest.raises(InternalError):
        Rescale(Rounding.REAL_ROUND, 0, 0, 0, I8).evaluate((x, typed([1], I32), typed([0], I8)))


def test_elementwise_by_hand() -> None:
    x, y = typed([[1, 2]], I32), typed([[10], [20]], I32)
    np.testing.assert_array_equal(evaluated(Add(), x, y), [[11, 12], [21, 22]])
    np.testing.assert_array_equal(evaluated(Sub(), x, y), [[-9, -8], [-19, -18]])
    np.testing.assert_array_equal(evaluated(Mul(), x, y), [[10, 20], [20, 40]])
    np.testing.assert_array_equal(evaluated(Clamp(-1, 3), typed([-5, 0, 9], I8)), [-1, 0, 3])
    table = typed(np.arange(256)[::-1] - 128, I8)
    np.testing.assert_array_equal(evaluated(Table(), typed([-128, 0, 127], I8), table), [127, -1, -128])


def test_float_functions_by_hand() -> None:
    x = typed([-200.0, -4.0, 0.0, 1.0, 200.0], F32)
    expected = [0.0, 0.01798621, 0.5, 0.7310586, 1.0]
    np.testing.assert_allclose(evaluated(Sigmoid(), x), expected, rtol=1e-6)
    np.testing.assert_allclose(evaluated(Tanh(), x), [-1, -0.9993293, 0, 0.7615942, 1], rtol=1e-6)
    np.testing.assert_allclose(evaluated(TflHardSwish(), x), [0, 0, 0, 4 / 6, 200], rtol=1e-6)
    np.testing.assert_allclose(evaluated(TflLeakyRelu(0.5), x), [-100, -2, 0, 1, 200], rtol=1e-6)
    softmax = evaluated(TflSoftmax(2.0), typed([[0.0, 1.0]], F32))
    np.testing.assert_allclose(softmax, [[0.11920292, 0.880797]], rtol=1e-6)
    np.testing.assert_array_equal(evaluated(Clamp(0.0, float("inf")), x), [0, 0, 0, 1, 200])


def test_comparisons_by_hand() -> None:
    x, y = typed([[1, 2, 3]], I32), typed([[2]], I32)
    np.testing.assert_array_equal(evaluated(Greater(), x, y), [[False, False, True]])
    np.testing.assert_array_equal(evaluated(GreaterEqual(), x, y), [[False, True, True]])
    np.testing.assert_array_equal(evaluated(Equal(), x, y), [[False, True, False]])
    nan = typed([float("nan")], F32)
    for operation in (Greater(), GreaterEqual(), Equal()):
        np.testing.assert_array_equal(evaluated(operation, nan, nan), [False])


def test_quantise_rounds_half_away_and_saturates() -> None:
    x = typed([0.25, -0.25, 0.75, 1e30, -1e30], F32)
    np.testing.assert_array_equal(evaluated(TflQuantize(0.5, 10), x), [11, 9, 12, 127, -128])
    np.testing.assert_array_equal(evaluated(TflDequantize(0.5, 10), typed([11, 9], I8)), [0.5, -0.5])


def test_pools_by_hand() -> None:
    x = typed(np.array([[-3, -4], [5, 100]]).reshape(1, 2, 2, 1), I8)
    everything = {"kernel": (2, 2), "stride": (1, 1)}
    found = evaluated(TflAveragePool2d(**everything, padding=(0, 1, 0, 1)), x)
    # 98/4 and 105/1; the pairs give -3.5 -> -4 and 1, 96/2, 105/2.
    np.testing.assert_array_equal(found[0, :, :, 0], [[25, 48], [53, 100]])
    found = evaluated(MaxPool2d(**everything, padding=(1, 0, 1, 0)), x)
    np.testing.assert_array_equal(found[0, :, :, 0], [[-3, -3], [5, 100]])
    ties = typed(np.array([-3, -4]).reshape(1, 1, 2, 1), I8)
    found = evaluated(TflAveragePool2d((1, 2), (1, 1), NO_PADDING), ties)
    np.testing.assert_array_equal(found.reshape(-1), [-4])


def test_mean_by_hand() -> None:
    x = typed([[1, 2], [4, 9]], I8)
    operation = TflMean((0,), False, input_zero_point=1, output_zero_point=3, multiplier=1 << 30, exponent=1)
    np.testing.assert_array_equal(evaluated(operation, x), [3 + 2, 3 + 5])
    np.testing.assert_array_equal(evaluated(TflMean((0, 1), True), x.astype(np.float32)), [[4.0]])


def test_softmax_in_fixed_point_by_hand() -> None:
    # A factor of 2^26 is scale 1: equal values share, a distance of 100 gets nothing.
    operation = TflSoftmax(1.0, multiplier=1 << 30, left_shift=27, difference_min=-31)
    found = evaluated(operation, typed([[5, 5, -95, -95]], I8))
    np.testing.assert_array_equal(found, [[0, 0, -128, -128]])


def test_moves_by_hand() -> None:
    x = typed([[1, 2, 3], [4, 5, 6]], I8)
    np.testing.assert_array_equal(evaluated(Pad((0, 1), (1, 0), 9), x), [[9, 1, 2, 3], [9, 4, 5, 6], [9] * 4])
    np.testing.assert_array_equal(evaluated(Reshape((3, 2)), x), [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(evaluated(Transpose((1, 0)), x), [[1, 4], [2, 5], [3, 6]])
    np.testing.assert_array_equal(evaluated(Concat(1), x, x[:, :1]), [[1, 2, 3, 1], [4, 5, 6, 4]])
    np.testing.assert_array_equal(evaluated(ShiftIn(1), x, x[:, :1]), [[2, 3, 1], [5, 6, 4]])
    np.testing.assert_array_equal(evaluated(Slice((1, 2), (2, 2), (-1, -2)), x), [[6, 4], [3, 1]])
    np.testing.assert_array_equal(evaluated(Tile((2, 1)), x), [[1, 2, 3], [4, 5, 6]] * 2)
    np.testing.assert_array_equal(evaluated(Tile((1, 2)), x), [[1, 2, 3] * 2, [4, 5, 6] * 2])
    picked = typed([2, 0, 9, -1], I32)
    np.testing.assert_array_equal(evaluated(Gather(1), x, picked), [[3, 1, 3, 1], [6, 4, 6, 4]])
    own = typed([[2, 2], [1, 0]], I32)
    np.testing.assert_array_equal(evaluated(Gather(1, 1), x, own), [[3, 3], [5, 4]])
    scalar = typed(7, I8)
    assert evaluated(Slice((), (), ()), scalar) == 7
    assert evaluated(Pad((), (), 0), scalar) == 7


# One of each operator that admits a tensor without axes, with the operands that it is given.
WITHOUT_AXES: tuple[tuple[Operation, tuple[Array, ...], Any], ...] = (
    (
        Rescale(Rounding.DOUBLE_ROUND, 1, 2, 0, I8),
        (typed(9, I32), typed([1 << 30], I32), typed([1], I8)),
        10,
    ),
    (
        Rescale(Rounding.SINGLE_ROUND, 1, 2, 0, I32),
        (typed(9, I8), typed([1 << 30], I32), typed([1], I8)),
        10,
    ),
    (TflRealRescale(3, I8), (typed(9, I32), typed([0.5], F64)), 8),
    (Clamp(0, 5), (typed(9, I8),), 5),
    (Clamp(0, 5), (typed(-9, I32),), 0),
    (Clamp(0.0, 5.0), (typed(9, F32),), 5),
    (Add(), (typed(4, I32), typed(5, I32)), 9),
    (Add(), (typed(4, F32), typed(5, F32)), 9),
    (Sub(), (typed(4, I32), typed(5, I32)), -1),
    (Sub(), (typed(4, F32), typed(5, F32)), -1),
    (Mul(), (typed(4, I32), typed(5, I32)), 20),
    (Mul(), (typed(4, F32), typed(5, F32)), 20),
    (WrappingAdd(), (typed(2**31 - 1, I32), typed(2, I32)), -(2**31) + 1),
    (WrappingSub(), (typed(-(2**31), I32), typed(1, I32)), 2**31 - 1),
    (WrappingMul(), (typed(65537, I32), typed(65537, I32)), 131073),
    (TflCast(I8), (typed(-129, I32),), 127),
    (TflCast(I32, 2**31 - 1), (typed(np.nan, F32),), 2**31 - 1),
    (TflCast(I8), (typed(-200.5, F32),), -128),
    (TflCast(F32), (typed(True, BOOL),), 1),
    (TflCast(BOOL), (typed(0.5, F32),), True),
    (Greater(), (typed(5, I32), typed(4, I32)), True),
    (GreaterEqual(), (typed(4, I32), typed(5, I32)), False),
    (Equal(), (typed(4, F32), typed(4, F32)), True),
    (Maximum(), (typed(4, I8), typed(5, I8)), 5),
    (Maximum(), (typed(4, F32), typed(5, F32)), 5),
    (Minimum(), (typed(4, I32), typed(5, I32)), 4),
    (TflDiv(), (typed(3, F32), typed(4, F32)), 0.75),
    (TflIntegerDiv(1, 2, 3, 1 << 30, 1), (typed(81, I8), typed(10, I8)), 13),
    (Pow(), (typed(3, F32), typed(4, F32)), 81),
    (Atan2(), (typed(-1, F32), typed(0, F32)), np.float32(-np.pi / 2)),
    (Bucketize(), (typed(2, F32), typed([-1, 2, 3], F32)), 2),
    (BitwiseAnd(), (typed(-4, I16), typed(7, I16)), 4),
    (BitwiseXor(), (typed(-4, I16), typed(3, I16)), -1),
    (LeftShift(), (typed(-5, I8), typed(5, I8)), 96),
    (LeftShift(), (typed(3, I32), typed(31, I32)), -(1 << 31)),
    (LeftShift(), (typed(3, I16), typed(-1, I16)), 3),
    (RightShift(), (typed(-5, I8), typed(1, I8)), -3),
    (RightShift(), (typed(-5, I32), typed(40, I32)), -1),
    (LogicalAnd(), (typed(True, BOOL), typed(False, BOOL)), False),
    (LogicalOr(), (typed(True, BOOL), typed(False, BOOL)), True),
    (LogicalNot(), (typed(True, BOOL),), False),
    (Equal(), (typed(True, BOOL), typed(False, BOOL)), False),
    (Select(), (typed(True, BOOL), typed(4, I8), typed(5, I8)), 4),
    (Select(), (typed(False, BOOL), typed(4, F32), typed(5, F32)), 5),
    (TflPrelu(), (typed(-4, F32), typed(0.25, F32)), -1),
    (TflPrelu(0, 0, 3, (1 << 30, 0), (1 << 30, 0)), (typed(-4, I8), typed(5, I8)), -7),
    (TflPrelu(0, 0, 3, (1 << 30, 0), (1 << 30, 0)), (typed(4, I8), typed(5, I8)), 5),
    (Table(), (typed(3, I8), typed(np.arange(-128, 128), I8)), 3),
    (Abs(), (typed(-3, F32),), 3),
    (Ceil(), (typed(-1.5, F32),), -1),
    (Cos(), (typed(0, F32),), 1),
    (Exp(), (typed(0, F32),), 1),
    (Floor(), (typed(-1.5, F32),), -2),
    (Log(), (typed(1, F32),), 0),
    (Negate(), (typed(3, F32),), -3),
    (Rsqrt(), (typed(4, F32),), 0.5),
    (Sin(), (typed(0, F32),), 0),
    (TflElu(), (typed(-1e9, F32),), -1),
    (TflElu(), (typed(3, F32),), 3),
    (TflGelu(False), (typed(9, F32),), 9),
    (TflGelu(True), (typed(-9, F32),), 0),
    (TflRound(), (typed(2.5, F32),), 2),
    (TflSign(), (typed(-7, F32),), -1),
    (TflSqrt(), (typed(9, F32),), 3),
    (Sigmoid(), (typed(0, F32),), 0.5),
    (Tanh(), (typed(0, F32),), 0),
    (TflHardSwish(), (typed(3, F32),), 3),
    (TflFixedLog(64, 0), (typed(8, DType.U32),), 133),
    (TflFixedLog(64, 31), (typed(2, DType.U32),), 0),
    (TflLeakyRelu(0.5), (typed(-4, F32),), -2),
    (TflQuantize(0.5, 1), (typed(4, F32),), 9),
    (TflDynamicScale(), (typed(-1, F32), typed(254, F32)), 1),
    (TflDynamicScale(), (typed(0, F32), typed(0, F32)), 1),
    (TflDynamicZeroPoint(), (typed(-1, F32), typed(254, F32)), -127),
    (TflDynamicZeroPoint(), (typed(-255, F32), typed(-3, F32)), 127),
    (TflDynamicQuantize(), (typed(2.5, F32), typed(-127, I8)), -124),
    (TflDynamicQuantize(), (typed(np.nan, F32), typed(100, I8)), -128),
    (TflDynamicQuantize(), (typed(1e9, F32), typed(-128, I8)), 127),
    (TflDequantize(0.5, 1), (typed(9, I8),), 4),
    (Recentre(DType.U8), (typed(-128, I8),), 0),
    (TflMean((), False, 0, 0, 1 << 30, 1), (typed(7, I8),), 7),
    (TflMean((), True), (typed(7, F32),), 7),
    (TflMean((0,), False, 0, 0, 1 << 30, 1), (typed([7, 9], I8),), 8),
    (TflMean((0,), False), (typed([7, 9], F32),), 8),
    (ReduceMax((), False), (typed(7, I8),), 7),
    (ReduceMax((0,), False), (typed([7, 9, 8], F32),), 9),
    (ReduceMin((0,), False), (typed([7, 9, -8], I8),), -8),
    (ReduceSum((), False), (typed(7, I8),), 7),
    (ReduceAll((0,), False), (typed([True, False], BOOL),), False),
    (ReduceAny((0,), False), (typed([True, False], BOOL),), True),
    (ReduceProduct((0,), False), (typed([2**16, 2**16, 3], I64),), 3 * 2**32),
    (ReduceProduct((0,), False), (typed([2**16, 2**16, 3], I32),), 0),
    (ReduceProduct((0,), False), (typed([1.5, -2.0], F32),), -3),
    (WrappingReduceSum((0,), False), (typed([2**31 - 1, 1], I32),), -(2**31)),
    (TflIntegerMean((0,), False), (typed([-7, 0], I32),), -3),
    (TflIntegerMean((0,), False), (typed([2**31 - 1, 2**31 - 1], I32),), 2**31 - 1),
    (IntDiv(), (typed(-7, I32), typed(2, I32)), -3),
    (IntDiv(), (typed(-7, I32), typed(0, I32)), -7),
    (IntDiv(), (typed(-(2**31), I32), typed(-1, I32)), 2**31 - 1),
    (TflFloorDiv(), (typed(-7, I32), typed(2, I32)), -4),
    (TflFloorDiv(), (typed(-7, F32), typed(2, F32)), -4),
    (TflFloorMod(), (typed(-7, I32), typed(2, I32)), 1),
    (TflFloorMod(), (typed(7, F32), typed(-2, F32)), -1),
    (ReduceSum((0,), False), (typed([100, 100, -8], I8),), 192),
    (ReduceSum((0,), False), (typed([0.5, 0.25], F32),), 0.75),
    (TflFloatRescale(0.5, 0.5, 3), (typed(4, I32),), 6),
    (TflFloatRescale(0.5, -0.5, 3), (typed(-4, I32),), 0),
    (TflFloatRescale(100.0, 0.0, 3), (typed(4, I32),), 127),
    (Interpolate(), (typed(-1, I16), typed(range(-256, 257), I16)), 0),
    (Interpolate(), (typed(64, I16), typed(range(0, 5130, 10), I16)), 2565),
    (TflSigmoid16(3, 0, False), (typed(0, I16),), 16384),
    (TflSigmoid16(3, 0, True), (typed(-32768, I16),), -32767),
    (Pad((), (), 0), (typed(7, I8),), 7),
    (Reshape(()), (typed([[7]], I8),), 7),
    (Reshape(()), (typed(7, I8),), 7),
    (Transpose(()), (typed(7, I8),), 7),
    (Slice((), (), ()), (typed(7, I8),), 7),
    (Tile(()), (typed(7, I8),), 7),
    (Gather(0), (typed([5, 7], I8), typed(1, I32)), 7),
    (GatherNd(), (typed([[5, 7], [8, 9]], I8), typed([1, -4], I32)), 8),
    (UpdateSlice(), (typed(3, I8), typed(7, I8), typed(np.zeros(0), I32)), 7),
    (TflInverseRoot(1 << 30, -9), (typed(4, I16),), 512),
    (TflInverseRoot(1 << 30, -9), (typed(-4, I16),), 32767),
    (TflIntegerPower(), (typed(-3, I32), typed(5, I32)), -243),
    (TflIntegerPower(), (typed(-3, I32), typed(21, I32)), -(2**31)),
    (TflIntegerPower(), (typed(7, I32), typed(-1, I32)), 1),
    (TflQuantizedProduct((0,), False, 1, -2, 1 << 14, 17), (typed([3, -4, 6], I8),), -52),
    (Identity(), (typed(7, I8),), 7),
    (OnDevice("npu"), (typed(7, I8),), 7),
    (DeviceCopy(), (typed(7, I8),), 7),
)


@pytest.mark.parametrize(("operation", "inputs", "expected"), WITHOUT_AXES)
def test_tensors_without_axes_stay_so(operation: Operation, inputs: tuple[Array, ...], expected: Any) -> None:
    """An array of no axes, of the type that `infer` states; numpy makes scalars of such arrays by itself."""
    result = evaluated(operation, *inputs)
    assert isinstance(result, np.ndarray)
    assert result.shape == ()
    assert result == expected


def test_every_operator_without_axes_is_tried() -> None:
    """Those that are left out need axes, and refuse operands that have none; an NPU's have what its file says."""
    tried = {operation.name for operation, _, _ in WITHOUT_AXES}
    needing_axes: tuple[tuple[Operation, int], ...] = (
        (ArgMax(0, I32), 1),
        (ArgMin(0, I64), 1),
        (CumulativeSum(0), 1),
        (TopKPlaces(1), 1),
        (Conv2d(**CONVOLUTION), 3),
        (DepthwiseConv2d(**CONVOLUTION), 3),
        (GroupedConv2d(**CONVOLUTION), 3),
        (TransposeConv2d((1, 1), NO_PADDING), 3),
        (TflBatchMatMul(), 2),
        (TflResizeBilinear((2, 2)), 1),
        (TflResizeNearest((2, 2)), 1),
        (MaxPool2d((1, 1), (1, 1), NO_PADDING), 1),
        (TflAveragePool2d((1, 1), (1, 1), NO_PADDING), 1),
        (TflSoftmax(1.0), 1),
        (TflLogSoftmax(), 1),
        (Concat(0), 2),
        (ShiftIn(0), 2),
    )
    # Of int8 alone, and of indices.
    with pytest.raises(ValueError, match="scalar"):
        TflL2Normalization(0).infer((kind(I8),))
    with pytest.raises(ValueError, match="axis"):
        ScatterNd((2,)).infer((kind(I32), kind(F32)))
    scatters = {name for name in OPERATIONS if name.startswith("scatter_")}
    # Of int16 alone.
    with pytest.raises(ValueError, match="scalar"):
        TflSoftmax16(0, 0).infer((kind(I16), *(kind(I16, 513),) * 2))
    # An LSTM's operands are of several types; boxes are rows (`test_detection_operators.py`), spectra vectors
    # (`test_spectrum.py`), and operators that find sizes out have several results (`test_sizes_found_out.py`).
    others = (
        *(
            ControlOperation,
            EthosU,
            TflHybridLstm,
            TflLstm,
            TflQuantizedLstm,
            TflDecodeBoxes,
            TflSelectDetections,
            TflSuppress,
        ),
        *fourier.OPERATIONS,
        *sizes.OPERATIONS,
        *(operation for operation in spectrum.OPERATIONS if operation is not TflFixedLog),
    )
    elsewhere = {TflSoftmax16.name, TflL2Normalization.name, *scatters}
    assert tried | {operation.name for operation, _ in needing_axes} | elsewhere == {
        name for name, operation in OPERATIONS.items() if not issubclass(operation, others)
    }
    for operation, count in needing_axes:
        for dtype in (I8, F32):
            with pytest.raises(ValueError, match=r"axes|axis|scalar"):
                operation.infer((kind(dtype),) * count)
