"""Sums of two quantised tensors in float32: rescale, rescale, add, rescale as two multiply-adds, where that is exact.

The result depends on two bytes, so all 65536 pairs are compared with what the operators' own references compute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bytewright import ir
from bytewright.ir.scalar_functions import FLOAT_SUM
from bytewright.lower.scalar import Scalar, clamped
from bytewright.ops.arithmetic.fit_float import FloatSum, fit_float_sum
from bytewright.ops.elementwise import Add, Sub
from bytewright.ops.rescale import Rescale

F32 = ir.DType.F32
_Bytes = tuple[tuple[bytes, str], ...]


@dataclass(frozen=True, slots=True)
class SumOfTwo:
    """What a rescale gives of two tensors of 8 bits.

    Attributes:
        operands: The names of the tensors.
    """

    operands: tuple[str, str]
    fit: FloatSum

    def write(self, left: Scalar, right: Scalar) -> Scalar:
        """The element of the result."""
        numbers = (self.fit.left_scale, self.fit.right_scale, self.fit.offset)
        value = FLOAT_SUM(left.expr, right.expr, *(ir.const(float(number), F32) for number in numbers))
        return clamped(Scalar(value, -(2**30), 2**30), *ir.DType.I8.bounds)


def sum_of_two(
    node: ir.Node,
    producer: Mapping[str, ir.Node],
    types: Mapping[str, ir.TensorType],
    constants: Mapping[str, ir.Constant],
) -> SumOfTwo | None:
    """The sum that a node rescales, in float32, if it is one of two rescaled tensors and that is exact."""
    operation = node.operation
    middle = producer.get(node.inputs[0])
    if not isinstance(operation, Rescale) or operation.dtype is not ir.DType.I8 or middle is None:
        return None
    sides = [producer.get(name) for name in middle.inputs]
    if not isinstance(middle.operation, Add | Sub) or types[node.inputs[0]].dtype is not ir.DType.I32:
        return None
    names: list[str] = []
    steps: list[tuple[Rescale, _Bytes]] = []
    for step in (*sides, node):
        if step is None or not isinstance(step.operation, Rescale):
            return None
        arrays = [constants[name].data.array for name in step.inputs[1:]]
        steps.append((step.operation, tuple((array.tobytes(), array.dtype.str) for array in arrays)))
        names.append(step.inputs[0])
        if any(array.size != 1 for array in arrays):
            return None
    if any(types[name].dtype is not ir.DType.I8 for name in names[:2]):
        return None
    fit = _fit(middle.operation, tuple(steps))
    return None if fit is None else SumOfTwo((names[0], names[1]), fit)


@lru_cache(maxsize=1 << 8)
def _fit(operation: Add | Sub, steps: tuple[tuple[Rescale, _Bytes], ...]) -> FloatSum | None:
    least, most = ir.DType.I8.bounds
    every, middle = np.arange(least, most + 1, dtype=np.int8), -least

    def rescaled(step: tuple[Rescale, _Bytes], values: ir.Array) -> ir.Array:
        operands = (np.frombuffer(data, np.dtype(name)) for data, name in step[1])
        return step[0].evaluate((values, *operands))[0]

    left, right = rescaled(steps[0], every), rescaled(steps[1], every)
    sums = operation.evaluate((left[:, None], right[None, :]))[0]
    multiplier, shift = (np.frombuffer(data, np.dtype(name))[0] for data, name in steps[2][1])
    scale = float(multiplier) * 2.0 ** (int(shift) - 31)
    zero = float(sums[middle, middle]) - steps[2][0].input_zero_point
    about = (
        float(int(sums[-1, middle]) - int(sums[0, middle])) / (most - least) * scale,
        float(int(sums[middle, -1]) - int(sums[middle, 0])) / (most - least) * scale,
        zero * scale + steps[2][0].output_zero_point,
    )
    return fit_float_sum(rescaled(steps[2], sums).astype(np.int8), about)
