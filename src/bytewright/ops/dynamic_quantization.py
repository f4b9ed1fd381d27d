"""Quantisation of floats by their own range, found at run time: what LiteRT's hybrid kernels do to their input.

The range is that of a row, which `reduce_min` and `reduce_max` give; scale and zero point are broadcast over the row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from bytewright import ir
from bytewright.ops.arithmetic.dynamic import dynamic_scale, dynamic_zero_point, quantize_dynamically
from bytewright.ops.checks import broadcast, require_count, require_dtype


class _Broadcast(ir.Operation):
    """Abstract: a function of two operands with numpy's broadcasting.

    Attributes:
        operand_dtypes: Of the operands.
        result_dtype: Of the result.
        function: Of arrays, what it computes.
    """

    __slots__ = ()
    operand_dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.F32, ir.DType.F32)
    result_dtype: ClassVar[ir.DType]
    function: ClassVar[Callable[..., ir.Array]]

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The broadcast shape."""
        require_count(inputs, 2)
        for operand, dtype, role in zip(inputs, self.operand_dtypes, self.operand_names, strict=True):
            require_dtype(operand, (dtype,), f"the {role.replace('_', ' ')}")
        return (ir.TensorType(broadcast(inputs[0].shape, inputs[1].shape), self.result_dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return (type(self).function(*inputs),)


@dataclass(frozen=True, slots=True)
class TflDynamicScale(_Broadcast):
    """The least and the greatest of some values -> their scale in int8, f32: f32(greatest - least) / 255.

    Zero is among the values, whatever they are. Where the quotient is 0, the scale is 1.
    """

    name: ClassVar[str] = "tfl_dynamic_scale"
    operand_names: ClassVar[tuple[str, ...]] = ("least_value", "greatest_value")
    result_dtype: ClassVar[ir.DType] = ir.DType.F32
    function: ClassVar[Callable[..., ir.Array]] = dynamic_scale


@dataclass(frozen=True, slots=True)
class TflDynamicZeroPoint(_Broadcast):
    """The least and the greatest of some values -> their zero point in int8.

    Zero is among the values, whatever they are.
    """

    name: ClassVar[str] = "tfl_dynamic_zero_point"
    operand_names: ClassVar[tuple[str, ...]] = ("least_value", "greatest_value")
    result_dtype: ClassVar[ir.DType] = ir.DType.I8
    function: ClassVar[Callable[..., ir.Array]] = dynamic_zero_point


@dataclass(frozen=True, slots=True)
class TflDynamicQuantize(_Broadcast):
    """x f32, already divided by its scale, and a zero point i8 -> i8: saturate(round_half_away(x) + zero_point)."""

    name: ClassVar[str] = "tfl_dynamic_quantize"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "zero_point")
    operand_dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.F32, ir.DType.I8)
    result_dtype: ClassVar[ir.DType] = ir.DType.I8
    function: ClassVar[Callable[..., ir.Array]] = quantize_dynamically


OPERATIONS = (TflDynamicQuantize, TflDynamicScale, TflDynamicZeroPoint)
