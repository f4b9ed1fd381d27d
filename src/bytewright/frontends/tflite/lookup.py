"""Unary operators on int8: a table of what each of the 256 values becomes, or less where that says the same."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.accumulator import limited
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.ops.arithmetic.tables import Int8Function, int8_table
from bytewright.ops.quantization import Table


def emit_table(at: Conversion, source: Operand, int8: Int8Function) -> str:
    """An int8 unary operator: the value itself, a clamp, or a table, whichever says the same with least."""
    table = int8_table(int8, at.affine(source.tensor), at.affine(at.output_tensor()), at.numerics)
    return emit_lookup(at, table, at.value_of(source))


def emit_lookup(at: Conversion, table: NDArray[Any], value: str) -> str:
    """What a table of 256 makes of an int8 value: the value itself, a clamp, or the table."""
    least, most = ir.DType.I8.bounds
    inputs = np.arange(least, most + 1)
    low, high = int(table[0]), int(table[-1])
    if low <= high and np.array_equal(table, np.clip(inputs, low, high)):
        return value if (low, high) == (least, most) else limited(at, value, low, high, "result")
    return at.emit(Table(), (value, at.constant("table", table, ir.DType.I8)), "result")
