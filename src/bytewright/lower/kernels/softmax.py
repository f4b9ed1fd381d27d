"""Softmax along the last axis.

The int8 operator is gemmlowp's fixed point, in both numerics sets. The differences from a row's maximum are
integers, so the exponentials are a table that is computed at compile time by that very algorithm; what remains is
a sum, one reciprocal a row, and one multiplication an element.
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.scalar_functions import EXP, MULTIPLY_Q31, SHIFT_ROUND
from bytewright.lower.kernels.context import Template, loops
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import element, lowest
from bytewright.ops.arithmetic.fixedpoint import (
    FORTY_EIGHT_OVER_SEVENTEEN,
    MINUS_THIRTY_TWO_OVER_SEVENTEEN,
    exp_on_negative_values,
)
from bytewright.ops.arithmetic.rescale import high_multiply
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax

I8, I32, I64, F32 = ir.DType.I8, ir.DType.I32, ir.DType.I64, ir.DType.F32
INTEGER_BITS_OF_DIFFERENCE = 5
INTEGER_BITS_OF_SUM = 12
# The sum lies in [2^19, 2^31): at most this many doublings bring it to [2^31, 2^32).
MAX_LEADING_ZEROS = 12
# Two int8 values have so many distances, the smallest of which is 0.
NUM_DISTANCES = I8.bounds[1] - I8.bounds[0] + 1


def lower_softmax(template: Template, operation: TflSoftmax) -> None:
    """Writes the kernel of a softmax. x: [..., C]; result: [..., C]."""
    with rows_of(template) as row:
        write = _write_fixed if row.source.dtype.is_integer else _write_float
        write(row, operation)


@dataclass(frozen=True, slots=True)
class Row:
    """The elements of one row: `depth` of them, at the indices `outer` and their own."""

    template: Template
    source: ir.Buffer
    outer: Coordinates
    depth: ir.Extent

    @property
    def body(self) -> BodyBuilder:
        """The statements so far."""
        return self.template.body

    def elements(self) -> AbstractContextManager[ir.Expr]:
        """A loop over the row."""
        return self.body.for_("c", 0, ir.extent_expr(self.depth))

    def value(self, c: ir.Expr) -> ir.Expr:
        """An element of the operand, widened if it is an integer."""
        return element(load(self.source, *self.outer, c)).expr

    def result(self, c: ir.Expr) -> ir.Expr:
        """An element of the result, as far as it is computed."""
        return load(self.template.epilogue.output, *self.outer, c)

    def store(self, c: ir.Expr, value: ir.Expr | int) -> None:
        """Writes an element of the result."""
        self.body.store(self.template.epilogue.output, (*self.outer, c), value)

    def greatest(self) -> ir.Expr:
        """The greatest element of the operand."""
        start = lowest(self.source.dtype)
        greatest = self.body.scalar("greatest", start.dtype, start)
        self.body.note("the greatest element")
        with self.elements() as c:
            self.body.store(greatest, (), ir.maximum(load(greatest), self.value(c)))
        return load(greatest)


@contextmanager
def rows_of(template: Template) -> Generator[Row, None, None]:
    """Loops over the rows of the operand, which are along its last axis."""
    operand = template.type(0)
    source = template.input(0)
    with loops(template.kernel, operand.shape, range(len(operand.shape) - 1)) as outer:
        yield Row(template, source, tuple(outer.values()), operand.shape[-1])


def _write_float(row: Row, operation: TflSoftmax) -> None:
    body = row.body
    beta = ir.const(float(np.float32(operation.beta)), F32)
    greatest = row.greatest()
    total = body.scalar("total", F32, 0.0)
    body.note("exponentials, and their sum")
    with row.elements() as c:
        row.store(c, EXP((row.value(c) - greatest) * beta))
        body.add_to(total, (), row.result(c))
    with row.elements() as c:
        row.store(c, row.result(c) / load(total))


def exponential_table(operation: TflSoftmax | TflLogSoftmax) -> np.ndarray:
    """Exp of every difference 0, -1, ... in Q0.31, as far as differences count: i32[at most 256]."""
    differences = np.arange(min(-operation.difference_min + 1, NUM_DISTANCES), dtype=np.int64)
    scaled = high_multiply(-differences << operation.left_shift, operation.multiplier)
    return exp_on_negative_values(scaled, INTEGER_BITS_OF_DIFFERENCE)


def _write_fixed(row: Row, operation: TflSoftmax) -> None:
    body = row.body
    table = row.template.kernel.constant("exponentials", exponential_table(operation), I32)
    greatest = row.greatest()
    dtype = operation.dtype
    total = sum_of_exponentials(row, greatest, table)
    reciprocal, shift = _reciprocal(body, total, 8 * dtype.size_bytes)
    body.note("elements too far from the greatest are 0; the others are shares of the sum")
    low, high = dtype.bounds
    with row.elements() as c:
        row.store(c, low)
    with _counted_elements(row, greatest, table) as (c, exponential):
        share = MULTIPLY_Q31(reciprocal, ir.cast(exponential, I64))
        rounded = ir.cast(SHIFT_ROUND(share, shift), I32)
        row.store(c, ir.cast(ir.minimum(rounded + low, high), dtype))


def sum_of_exponentials(row: Row, greatest: ir.Expr, table: ir.Buffer) -> ir.Expr:
    """Over the elements that take part, with 12 integer bits: I32."""
    total = row.body.scalar("total", I32, 0)
    row.body.note("the sum of exponentials, with 12 integer bits")
    with _counted_elements(row, greatest, table) as (_, exponential):
        # Exponentials are not negative, so rounding half away from zero is rounding half up.
        row.body.add_to(total, (), ((exponential >> (INTEGER_BITS_OF_SUM - 1)) + 1) >> 1)
    return load(total)


@contextmanager
def _counted_elements(
    row: Row, greatest: ir.Expr, table: ir.Buffer
) -> Generator[tuple[ir.Expr, ir.Expr], None, None]:
    """A loop over the elements that take part; yields the index and the exponential of each."""
    num_entries = ir.num_elements(table)
    with row.elements() as c:
        distance = row.body.let("distance", greatest - row.value(c))
        is_any = num_entries == NUM_DISTANCES
        with nullcontext() if is_any else row.body.if_(distance < num_entries):
            yield c, load(table, distance)


def _reciprocal(body: BodyBuilder, total: ir.Expr, num_bits: int) -> tuple[ir.Expr, ir.Expr]:
    """1 / total in Q0.31, and the shift that takes the product with an exponential to steps of 2^-num_bits.

    gemmlowp's one_over_one_plus_x_for_x_in_0_1: a linear guess and three Newton steps, on the sum normalised to
    [2^31, 2^32). Both results are I64.
    """
    normalised = body.scalar("normalised", I64, ir.cast(total, I64))
    shift = body.scalar("shift", I64, 31 - num_bits + INTEGER_BITS_OF_SUM)
    body.note("normalise the sum to [2^31, 2^32)")
    with body.for_("bit", 0, MAX_LEADING_ZEROS), body.if_(load(normalised) < 2**31):
        body.store(normalised, (), load(normalised) * 2)
        body.add_to(shift, (), -1)
    reciprocal = reciprocal_of_half(body, body.let("half", load(normalised) >> 1))
    return reciprocal, body.let("bits", load(shift))


def reciprocal_of_half(body: BodyBuilder, half: ir.Expr) -> ir.Expr:
    """1 / (2 half) in Q0.31 for a half in [1/2, 1], in I64."""
    estimate = body.scalar("estimate", I64, MULTIPLY_Q31(half, MINUS_THIRTY_TWO_OVER_SEVENTEEN))
    body.add_to(estimate, (), FORTY_EIGHT_OVER_SEVENTEEN)
    body.note("its reciprocal, by Newton's method")
    with body.for_("step", 0, 3):
        error = body.let("error", 2**29 - MULTIPLY_Q31(half, load(estimate)))
        correction = body.let("correction", MULTIPLY_Q31(load(estimate), error) * 4)
        body.add_to(estimate, (), _saturated(correction))
    return body.let("reciprocal", _saturated(load(estimate) * 2))


def _saturated(value: ir.Expr) -> ir.Expr:
    return ir.clamp(value, *I32.bounds)
