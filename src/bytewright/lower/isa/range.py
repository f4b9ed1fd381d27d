"""Least and greatest values of whole rows: lanes of a vector take turns, and are compared with each other at the end.

A row is all that lies along the last axes. Which of several equal values remains, such as of zeros with and without a
sign, and of what is no number, depends on the order.
"""

from collections.abc import Callable

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load, region
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.vectorise import vectorise
from bytewright.lower.kernels.context import Template, counted, loops
from bytewright.lower.kernels.reduction import num_reduced, reduction
from bytewright.ops.pooling import ReduceMax, ReduceMin

# Vectors a turn of the loop, as it does little more than count.
_UNROLLED = 4


def lower_range(template: Template, operation: ReduceMax | ReduceMin, unit: VectorUnit) -> None:
    """Writes the kernel of a reduction over the last axes."""
    body, shape = template.body, template.type(0).shape
    how, count = reduction(template, operation), num_reduced(template, operation)
    kept = range(len(shape) - len(operation.axes))
    source = template.input_as(0, (*(shape[axis] for axis in kept), count))
    lane = ir.Var(body.unique_name("lane"), ir.DType.I32)
    with loops(template.kernel, shape, kept, by_rows=operation.keep_dims) as outer:
        row = tuple(outer[axis] for axis in kept)

        def combined(result: ir.Expr, element: ir.Expr | int) -> ir.Expr:
            return how.combine(result, load(source, *row, element))

        num_vectors, num_left = divmod(count, unit.lanes)
        vector = unit.register(body, "lanes", how.start.dtype)
        body.execute(unit.loads[how.start.dtype], vector, region(source, *row, 0))

        def update(element: ir.Expr) -> None:
            with body.captured() as statements:
                body.store(vector, lane, combined(load(vector, lane), element + lane))
            if not vectorise(body, unit, lane, statements):
                raise InternalError(f"a step of '{operation.name}' is no vector")

        turns, rest = divmod(num_vectors - 1, _UNROLLED)
        for number in range(rest):
            update(ir.const((1 + number) * unit.lanes))
        if turns:
            with counted(body, "turn", turns) as turn:
                for number in range(_UNROLLED):
                    update(turn * (_UNROLLED * unit.lanes) + (1 + rest + number) * unit.lanes)
        result = body.scalar(how.hint, how.start.dtype, how.start)
        combine_lanes(template, unit, vector, result, how.combine)
        for number in range(num_left):
            body.store(result, (), combined(load(result), num_vectors * unit.lanes + number))
        own = (*row, *(ir.const(0) for _ in operation.axes)) if operation.keep_dims else row
        template.epilogue.store(own, how.finish(load(result)))


def combine_lanes(
    template: Template,
    unit: VectorUnit,
    vector: ir.Buffer,
    result: ir.Buffer,
    combine: Callable[[ir.Expr, ir.Expr], ir.Expr],
) -> None:
    """Combines a variable with the lanes of a vector, one after another."""
    body = template.body
    results = template.kernel.scratch("results", (unit.lanes,), vector.dtype)
    body.execute(unit.stores[vector.dtype], region(results, 0), vector)
    with body.for_("each", 0, unit.lanes) as each:
        body.store(result, (), combine(load(result), load(results, each)))
