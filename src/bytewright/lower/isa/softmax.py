"""Softmax of int8 along the last axis, in lanes of vectors that gather: exponentials are looked up, none by itself.

Distances beyond the table of the reference have its last entry here, which is zero, so that no element is an exception.
"""

from collections.abc import Callable
from functools import partial
from operator import add

import numpy as np

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load
from bytewright.ir.scalar_functions import DOUBLE_ROUND_WIDE
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.lines import write_line
from bytewright.lower.isa.range import combine_lanes
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.vectorise import vectorise
from bytewright.lower.kernels.context import Template, counted, loops
from bytewright.lower.kernels.softmax import (
    NUM_DISTANCES,
    Row,
    exponential_table,
    in_sums,
    reciprocal,
)
from bytewright.lower.scalar import lowest
from bytewright.ops.softmax import TflSoftmax

I8, I32 = ir.DType.I8, ir.DType.I32
# Of as many exponentials a sum may take shares to be shifted by 32 bits.
MOST_SUMMED = 511


def softmax_template(name: str, unit: VectorUnit) -> IsaTemplate:
    """That of an instruction set of some name."""
    return IsaTemplate(f"{name}.softmax", partial(_write_softmax, unit), partial(_softmax_declines, unit))


def _softmax_declines(unit: VectorUnit, template: Template, operation: TflSoftmax) -> str | None:
    del operation
    depth = template.type(0).shape[-1]
    if template.type(0).dtype is not I8:
        return "its elements are not int8"
    if not isinstance(depth, int) or not unit.lanes <= depth <= MOST_SUMMED:
        return f"its rows are not of {unit.lanes} to {MOST_SUMMED} elements"
    return None


def _write_softmax(unit: VectorUnit, template: Template, operation: TflSoftmax) -> None:
    """Writes the kernel. x: [..., C]; result: [..., C]."""
    shape, values = template.type(0).fixed_shape, exponential_table(operation)
    if len(values) < NUM_DISTANCES:
        values = np.append(values, 0)
    table = template.kernel.constant("exponentials", values, I32)
    with loops(template.kernel, template.type(0).shape, range(len(shape) - 1)) as outer:
        row = Row(template, template.input(0), tuple(outer.values()), shape[-1])
        _write_row(unit, row, operation, table)


def _write_row(unit: VectorUnit, row: Row, operation: TflSoftmax, table: ir.Buffer) -> None:
    body, (low, high) = row.body, operation.dtype.bounds
    body.note("the greatest element")
    greatest = _over_row(unit, row, "greatest", lowest(row.source.dtype), ir.maximum, row.value)

    def exponential(c: ir.Expr) -> ir.Expr:
        distance, last = greatest - row.value(c), ir.num_elements(table) - 1
        return load(table, distance if last == NUM_DISTANCES - 1 else ir.minimum(distance, last))

    body.note("the sum of exponentials, with 12 integer bits")
    total = _over_row(unit, row, "total", ir.const(0), add, lambda c: in_sums(exponential(c)))
    share, shift = (ir.cast(each, I32) for each in reciprocal(body, total, 8 * operation.dtype.size_bytes))
    share, shift = body.let("share", share), body.let("down", shift)

    def store(c: ir.Expr) -> None:
        rounded = DOUBLE_ROUND_WIDE(exponential(c), share, shift)
        row.store(c, ir.cast(ir.minimum(rounded + low, high), operation.dtype))

    body.note("shares of the sum")
    if reason := write_line(body, unit, _depth(row), store):
        raise InternalError(f"the shares of '{operation.name}' are no vectors: {reason}")


def _depth(row: Row) -> int:
    assert isinstance(row.depth, int)
    return row.depth


def _over_row(
    unit: VectorUnit,
    row: Row,
    name: str,
    start: ir.Expr,
    combine: Callable[[ir.Expr, ir.Expr], ir.Expr],
    value: Callable[[ir.Expr], ir.Expr],
) -> ir.Expr:
    """What is made, in any order, of the values that a row has for its elements."""
    body, (num_vectors, num_left) = row.body, divmod(_depth(row), unit.lanes)
    vector, lane = unit.register(body, "lanes"), ir.Var(body.unique_name("lane"), I32)
    body.execute(unit.broadcasts[I32], vector, start)
    with counted(body, "vector", num_vectors) as index:
        with body.captured() as statements:
            body.store(vector, lane, combine(load(vector, lane), value(index * unit.lanes + lane)))
        if not vectorise(body, unit, lane, statements):
            raise InternalError(f"the vectors of '{name}' lack an instruction")
    result = body.scalar(name, I32, start)
    combine_lanes(row.template, unit, vector, result, combine)
    if num_left:
        with counted(body, "rest", num_left) as rest:
            body.store(result, (), combine(load(result), value(num_vectors * unit.lanes + rest)))
    return load(result)
