"""Kernels of what audio front ends make of samples and spectra, in 64 bits where 32 do not do."""

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.expr import equal
from bytewright.ir.scalar_functions import BIT_LENGTH
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.scalar import Scalar
from bytewright.ops.arithmetic.spectrum import U32_MAX
from bytewright.ops.spectrum import (
    TflAutoScale,
    TflEnergy,
    TflFilterBank,
    TflRoundedRoot,
    TflSpectralSubtraction,
)

I16, I32, U32, I64 = ir.DType.I16, ir.DType.I32, ir.DType.U32, ir.DType.I64


def lower_auto_scale(template: Template, _: TflAutoScale) -> None:
    """Writes the kernel of samples that are scaled: a pass for the greatest magnitude, and one for them."""
    body, source = template.body, template.input(0)
    (count,) = template.type(0).fixed_shape
    greatest = body.scalar("greatest", I32, 0)
    with counted(body, "n", count) as n:
        sample = body.let("sample", ir.cast(load(source, n), I32))
        magnitude = ir.select(sample > load(greatest), sample, ir.maximum(0 - sample, load(greatest)))
        body.store(greatest, (), ir.cast(ir.cast(magnitude, I16), I32))
    found = load(greatest)
    room = 15 - BIT_LENGTH(ir.cast(ir.maximum(found, 0), I64))
    bits = body.let("bits", ir.select(found > 0, room, ir.const(0)))
    factor = body.let("factor", ir.const(1) << bits)
    with counted(body, "n", count) as n:
        scaled = ir.cast(load(source, n), I32) * factor
        body.store(template.epilogue.output, n, ir.cast(scaled, I16))
    body.store(template.output(1), (), bits)


def lower_energy(template: Template, operation: TflEnergy) -> None:
    """Writes the kernel of squares of magnitudes, and of zeros before and after them."""
    body, source = template.body, template.input(0)
    (count,) = template.result_type.fixed_shape
    zero = Scalar(ir.const(0, I64))
    for begin, end in ((0, operation.start), (operation.end, count)):
        if begin < end:
            with body.for_("n", begin, end) as n:
                template.epilogue.store((n,), zero)
    if operation.start < operation.end:
        with body.for_("n", operation.start, operation.end) as n:
            real, imaginary = (
                body.let(name, ir.cast(load(source, n * 2 + part), I64))
                for part, name in enumerate(("real", "imaginary"))
            )
            most = 2 * I16.bounds[0] ** 2
            template.epilogue.store((n,), Scalar(real * real + imaginary * imaginary, 0, most))


def lower_filter_bank(template: Template, _: TflFilterBank) -> None:
    """Writes the kernel of a bank of filters, which reads each band of energies once, for two channels."""
    body, weights, unweights = template.body, template.input(1), template.input(2)
    bands = [template.constant(operand) for operand in range(3, 6)]
    tables = [template.input(operand) for operand in range(3, 6)]
    # Two bands of at most as many weights, each at most as great, and the greatest energies.
    most = 2 * I16.bounds[1] ** 2 * U32_MAX
    carried = body.scalar("carried", I64, 0)

    def energy(place: ir.Expr) -> ir.Expr:
        return body.let("energy", ir.cast(load(template.input(0), place), I64))

    def by(values: ir.Buffer, place: ir.Expr) -> ir.Expr:
        return ir.cast(load(values, place), I64)

    start, first, width = (int(band[0]) for band in bands)
    with body.for_("k", 0, width) as k:
        body.add_to(carried, (), energy(k + start) * by(unweights, k + first))
    with counted(body, "channel", len(bands[0]) - 1) as channel:
        start, first, width = (
            body.let(name, ir.cast(load(table, channel + 1), I32))
            for name, table in zip(("start", "first", "width"), tables, strict=True)
        )
        total, rising = body.scalar("total", I64, load(carried)), body.scalar("rising", I64, 0)
        with body.for_("k", 0, width) as k:
            own, place = energy(start + k), named(body, "place", first + k)
            body.add_to(total, (), own * by(weights, place))
            body.add_to(rising, (), own * by(unweights, place))
        template.epilogue.store((channel,), Scalar(load(total), 0, most))
        body.store(carried, (), load(rising))


def lower_rounded_root(template: Template, _: TflRoundedRoot) -> None:
    """Writes the kernel of square roots: two bits of what they are of give one of the root, from the highest on."""
    body = template.body
    limited = ir.clamp(ir.cast(load(template.input(1), *(0,) * len(template.type(1).shape)), I32), 0, 31)
    bits = body.let("bits", ir.cast(limited, I64))
    with counted(body, "n", template.result_type.shape[0]) as n:
        value = body.let("value", ir.cast(load(template.input(0), n), I64))
        upper = body.let("upper", (value >> 32) & U32_MAX)
        is_wide = body.let("is_wide", upper > 0)
        length = BIT_LENGTH(ir.select(is_wide, upper, value & U32_MAX)) + ir.select(
            is_wide, ir.const(32), ir.const(0)
        )
        pairs = body.let("pairs", (length + 1) >> 1)
        root, rest = body.scalar("root", I64, 0), body.scalar("rest", I64, 0)
        with body.for_("pair", 0, pairs) as pair:
            pair_of = (value >> ir.cast((pairs - pair - 1) * 2, I64)) & 3
            grown = body.let("grown", load(rest) * 4 + pair_of)
            trial = body.let("trial", load(root) * 4 + 1)
            fits = body.let("fits", grown >= trial)
            body.store(rest, (), ir.select(fits, grown - trial, grown))
            body.store(root, (), load(root) * 2 + ir.select(fits, ir.const(1, I64), ir.const(0, I64)))
        raised = load(root) + ir.select(load(rest) > load(root), ir.const(1, I64), ir.const(0, I64))
        most = ir.select(is_wide, ir.const(U32_MAX, I64), ir.const(U32_MAX >> 16, I64))
        template.epilogue.store((n,), Scalar(ir.minimum(raised, most) >> bits, 0, U32_MAX))


def lower_spectral_subtraction(template: Template, operation: TflSpectralSubtraction) -> None:
    """Writes the kernel of a signal less its noise."""
    body = template.body
    with counted(body, "channel", template.result_type.shape[0]) as channel:
        is_even = equal(channel % 2, ir.const(0))
        signal, estimate = (
            body.let(name, ir.cast(load(template.input(operand), channel), I64))
            for operand, name in enumerate(("signal", "estimate"))
        )

        def factor(pair: tuple[int, ...]) -> ir.Expr:
            even, odd = (ir.const(each, I64) for each in pair)
            return even if even == odd else ir.select(is_even, even, odd)

        scaled = body.let("scaled", (signal * (1 << operation.smoothing_bits)) & U32_MAX)
        mixed = scaled * factor(operation.smoothing) + estimate * factor(operation.rest)
        moved = body.let("moved", (mixed >> operation.bits) & U32_MAX)
        noise = body.let("noise", ir.minimum(moved, scaled))
        floor = (signal * operation.remaining >> operation.bits) & U32_MAX
        cleaned = ir.maximum((scaled - noise) >> operation.smoothing_bits, floor)
        body.store(template.epilogue.output, channel, ir.cast(cleaned, U32))
        body.store(template.output(1), channel, ir.cast(noise if operation.clamps else moved, U32))
