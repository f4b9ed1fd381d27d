"""Products of matrices that are both computed at run time, or of which either is constant."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.checks import broadcast, require, require_dtype, two
from bytewright.ops.result import in_integers

_SUMS = {
    ir.DType.F32: ir.DType.F32,
    ir.DType.I8: ir.DType.I32,
    ir.DType.I16: ir.DType.I64,
}


@dataclass(frozen=True, slots=True)
class TflBatchMatMul(ir.Operation):
    """x [...,H,K] and y [...,K,W] -> [...,H,W], whose leading axes are broadcast.

    Integers give the accumulator sum((x - first_zero_point) * (y - second_zero_point)), i32 of i8 and i64 of i16; f32
    gives f32.

    Attributes:
        adjoint_first: Whether x is stored as [...,K,H].
        adjoint_second: Whether y is stored as [...,W,K].
        first_zero_point, second_zero_point: Of integers only.
    """

    name: ClassVar[str] = "tfl_batch_matmul"
    operand_names: ClassVar[tuple[str, ...]] = ("first", "second")
    adjoint_first: bool = False
    adjoint_second: bool = False
    first_zero_point: int = 0
    second_zero_point: int = 0

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """[...,H,W] of the sums' type."""
        first, second = two(inputs)
        require_dtype(first, tuple(_SUMS), "the first operand")
        require_dtype(second, (first.dtype,), "the second operand")
        shapes = [ir.format_shape(operand.shape) for operand in inputs]
        enough = min(len(first.shape), len(second.shape)) >= 2
        require(enough, f"[{shapes[0]}] and [{shapes[1]}] have not both 2 axes and more")
        height, depth = _swapped(first.shape[-2:], self.adjoint_first)
        other, width = _swapped(second.shape[-2:], self.adjoint_second)
        require(
            depth == other, f"[{shapes[0]}] and [{shapes[1]}] have rows of {depth} and columns of {other}"
        )
        batches = broadcast(first.shape[:-2], second.shape[:-2])
        return (ir.TensorType((*batches, height, width), _SUMS[first.dtype]),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers, whose sums float64 holds; float64 then rounded for f32."""
        first, second = (
            operand.astype(np.float64) - zero_point
            for operand, zero_point in zip(
                inputs, (self.first_zero_point, self.second_zero_point), strict=True
            )
        )
        first = np.swapaxes(first, -1, -2) if self.adjoint_first else first
        second = np.swapaxes(second, -1, -2) if self.adjoint_second else second
        total = first @ second
        if inputs[0].dtype == np.float32:
            return (total.astype(np.float32),)
        sums = _SUMS[ir.DType.of(inputs[0].dtype)].numpy
        return (in_integers(total, sums, "an accumulator of a matrix product"),)

    def depth(self, first: tuple[int, ...]) -> int:
        """Products of one element, of the first operand's shape."""
        return first[-2] if self.adjoint_first else first[-1]

    def num_macs(self, inputs: tuple[ir.TensorType, ...], results: tuple[ir.TensorType, ...]) -> int:
        """A row of products for each element."""
        return self.work_per_element(inputs) * results[0].sample_elements

    def work_per_element(self, inputs: tuple[ir.TensorType, ...]) -> int:
        """One product for each element of a row."""
        return self.depth(inputs[0].fixed_shape)


def _swapped(extents: tuple[ir.Extent, ...], swapped: bool) -> tuple[ir.Extent, ...]:
    return extents[::-1] if swapped else extents


OPERATIONS = (TflBatchMatMul,)
