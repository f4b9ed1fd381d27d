"""Fourier transforms: loops over the blocks and the numbers of each stage, in the place of the result.

The first stage reads the samples in the order in which stages want them; the others, and the pass over both ends of a
spectrum, change the result where it lies, or doubles that become the result. Roots of unity are constants.
"""

from collections.abc import Callable, Sequence

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Template, counted, named, nest
from bytewright.lower.scalar import computed_on
from bytewright.ops.arithmetic.fourier import (
    FIXED,
    FLOAT,
    Complex,
    Environment,
    Stage,
    butterfly,
    roots,
    spectrum_ends,
    spectrum_of_zero,
    stages,
    super_roots,
    transform_ends,
    transform_of_zero,
)
from bytewright.ops.fourier import TflFft, TflInverseRealFft, TflRealFft, Transform

# One of those that are transformed, of a row.
_Number = Callable[[ir.Expr, ir.Expr], Complex]


def lower_real_fft(template: Template, operation: TflRealFft) -> None:
    """Writes the kernel of a spectrum."""
    transform = _Transform(template, operation)
    turns = transform.super_roots()
    rows, samples = template.type(0).fixed_shape
    source, count, body = template.input(0), operation.count, template.body
    zero = ir.const(0, source.dtype)

    def sample(row: ir.Expr, place: ir.Expr) -> ir.Expr:
        """What is behind the last one is zero."""
        found = load(source, row, place)
        return found if samples == operation.length else ir.select(place < samples, found, zero)

    def number(row: ir.Expr, place: ir.Expr) -> Complex:
        return sample(row, place * 2), sample(row, place * 2 + 1)

    with counted(body, "row", rows) as row:
        transform.write(row, number)
        at, read, write = transform.at, transform.read, transform.store
        first, last = spectrum_of_zero(at, read(row, ir.const(0)))
        write(row, ir.const(0), (first, transform.zero))
        write(row, ir.const(count), (last, transform.zero))
        body.note("both ends of the spectrum")
        with body.for_("low", 1, count // 2 + 1) as low:
            high = body.let("high", count - low)
            turn = transform.root(turns, low - 1)
            ends = spectrum_ends(at, read(row, low), read(row, high), turn)
            write(row, low, ends[0])
            write(row, high, ends[1])
        transform.round(row)


def lower_fft(template: Template, operation: TflFft) -> None:
    """Writes the kernel of a spectrum of complex numbers."""
    transform, source = _Transform(template, operation), template.input(0)
    with counted(template.body, "row", template.type(0).fixed_shape[0]) as row:
        transform.write(row, lambda row, place: transform.loaded(source, row, place))
        transform.round(row)


def lower_inverse_real_fft(template: Template, operation: TflInverseRealFft) -> None:
    """Writes the kernel of samples from a spectrum, which becomes that of half as many complex numbers first."""
    transform = _Transform(template, operation)
    turns = transform.super_roots()
    source, count, body = template.input(0), operation.count, template.body
    halves = template.kernel.scratch("halves", (count, 2), source.dtype)

    def number(row: ir.Expr, place: ir.Expr) -> Complex:
        return transform.loaded(source, row, place)

    def put(place: ir.Expr, parts: Complex) -> None:
        for part, value in enumerate(parts):
            body.store(halves, (place, part), ir.cast(value, source.dtype))

    with counted(body, "row", template.type(0).fixed_shape[0]) as row:
        ends = number(row, ir.const(0))[0], number(row, ir.const(count))[0]
        put(ir.const(0), transform_of_zero(transform.at, *ends))
        with body.for_("low", 1, count // 2 + 1) as low:
            high = body.let("high", count - low)
            turn = transform.root(turns, low - 1)
            pair = transform_ends(transform.at, number(row, low), number(row, high), turn)
            put(low, pair[0])
            put(high, pair[1])
        transform.write(row, lambda _, place: (load(halves, place, 0), load(halves, place, 1)))
        if transform.at.arithmetic is FLOAT:
            output = template.epilogue.output
            with body.for_("sample", 0, operation.length) as place:
                body.store(output, (row, place), load(output, row, place) / float(operation.length))


class _Transform:
    """One under construction, in the place of the kernel's result, or of a row of doubles that becomes one of it."""

    def __init__(self, template: Template, operation: Transform) -> None:
        self.body, self.output, self.count = template.body, template.epilogue.output, operation.count
        self.dtype = operation.kept_as(template.type(0).dtype)
        self.size = template.anchor.outputs[0].type.fixed_shape[-1]
        self.doubles = (
            template.kernel.scratch("doubles", (self.size,), self.dtype)
            if self.dtype is ir.DType.F64
            else None
        )
        # Products of numbers of 32 bits are computed in 64.
        self.wide = ir.DType.I64 if self.dtype is ir.DType.I32 else computed_on(self.dtype)
        self.zero = ir.const(0, self.wide)
        arithmetic = FIXED[self.dtype.size_bytes] if self.dtype.is_integer else FLOAT
        self.at = Environment(arithmetic, operation.is_inverse, self.body.let, self._wrapped)
        self.kernel, self.is_inverse = template.kernel, operation.is_inverse
        self.own_roots = roots(self.count, self.dtype.numpy, is_inverse=self.is_inverse)
        self.roots = self.kernel.constant("roots", self.own_roots, self.dtype)

    def _wrapped(self, number: ir.Expr) -> ir.Expr:
        return ir.cast(ir.cast(number, self.dtype), self.wide)

    def loaded(self, buffer: ir.Buffer, row: ir.Expr, place: ir.Expr) -> Complex:
        """A number of a row of pairs."""
        return self._widened((load(buffer, row, place * 2), load(buffer, row, place * 2 + 1)))

    def _widened(self, number: Complex) -> Complex:
        return ir.cast(number[0], self.wide), ir.cast(number[1], self.wide)

    def read(self, row: ir.Expr, place: ir.Expr) -> Complex:
        """A number of the result so far."""
        if self.doubles is None:
            return self.loaded(self.output, row, place)
        return load(self.doubles, place * 2), load(self.doubles, place * 2 + 1)

    def store(self, row: ir.Expr, place: ir.Expr, number: Complex) -> None:
        """Makes it one of the result."""
        for part, value in enumerate(number):
            element = place * 2 + part
            if self.doubles is None:
                self.body.store(self.output, (row, element), ir.cast(value, self.dtype))
            else:
                self.body.store(self.doubles, (element,), value)

    def round(self, row: ir.Expr) -> None:
        """Makes doubles, where there are any, floats of the result."""
        if self.doubles is not None:
            self.body.note("rounded once")
            with self.body.for_("element", 0, self.size) as element:
                value = ir.cast(load(self.doubles, element), self.output.dtype)
                self.body.store(self.output, (row, element), value)

    def root(self, table: ir.Buffer, place: ir.Expr) -> Complex:
        """A number of a table."""
        return self._widened((load(table, place, 0), load(table, place, 1)))

    def super_roots(self) -> ir.Buffer:
        """What the odd parts of two numbers of a spectrum each are turned by."""
        values = super_roots(self.count, self.dtype.numpy, is_inverse=self.is_inverse)
        return self.kernel.constant("super_roots", values, self.dtype)

    def _known_root(self, place: int) -> Complex:
        real, imaginary = self.own_roots[place % self.count].tolist()
        return ir.const(real, self.wide), ir.const(imaginary, self.wide)

    def write(self, row: ir.Expr, number: _Number) -> None:
        """Writes all stages, of which the first one takes the numbers that it is given."""
        first, *others = stages(self.count)
        self._write_first(row, first, [stage.radix for stage in others], number)
        for stage in others:
            self.body.note(f"groups of {stage.size} become groups of {stage.radix * stage.size}")
            with (
                counted(self.body, "block", stage.stride) as block,
                counted(self.body, "k", stage.size) as k,
            ):
                base = named(self.body, "base", block * (stage.radix * stage.size) + k)
                places = [base + each * stage.size for each in range(stage.radix)]
                turn = named(self.body, "turn", k * stage.stride)
                turns = [self.root(self.roots, turn * each) for each in range(1, stage.radix)]
                points = [self.read(row, place) for place in places]
                self._finish(row, stage, places, points, turns)

    def _write_first(self, row: ir.Expr, stage: Stage, others: Sequence[int], number: _Number) -> None:
        """Of a place in the result the digits, by the radices of the stages, are those of one in the input, reversed.

        A loop for each digit: the last stage's is the outermost, by whose radix a place in the input is lowest.
        """
        radices = others[::-1]
        names = [f"digit{index}" for index in range(len(radices))]
        with nest(self.body, names, tuple(radices)) as digits:
            base: ir.Expr = ir.const(0)
            place: ir.Expr = ir.const(0)
            size, weight = self.count, 1
            for digit, radix in zip(digits, radices, strict=True):
                size //= radix
                base, place, weight = base + digit * size, place + digit * weight, weight * radix
            base, place = named(self.body, "base", base), named(self.body, "place", place)
            points = [self._widened(number(row, place + each * weight)) for each in range(stage.radix)]
            turns = [self._known_root(0)] * (stage.radix - 1)
            self._finish(row, stage, [base + each for each in range(stage.radix)], points, turns)

    def _finish(
        self,
        row: ir.Expr,
        stage: Stage,
        places: Sequence[ir.Expr],
        points: Sequence[Complex],
        turns: Sequence[Complex],
    ) -> None:
        unit = stage.stride * stage.size
        found = butterfly(self.at, points, turns, [self._known_root(unit * each) for each in (1, 2)])
        for place, value in zip(places, found, strict=True):
            self.store(row, place, value)
