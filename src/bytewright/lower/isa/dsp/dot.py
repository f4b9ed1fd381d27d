"""Dot products of two output channels at once, over activations that are halves of words."""

from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.dsp.pairing import PAIRINGS
from bytewright.lower.isa.dsp.words import BYTES, FEATURE, I8, I32, high_half, low_half
from bytewright.lower.isa.vector_unit import memory_parameter, variable_parameter

# Groups of four products that a loop's turn has.
_UNROLLED = 4
_STRAIGHT = 6


@cache
def dot(num_pixels: int, depth: int, element: ir.DType = I8, pitch: int = 0) -> ir.Instruction:
    """Adds the products of one pixel or two with two channels, `depth` each, a multiple of 4.

    Parameters: for each pixel its two sums, as the pairing has them; the activations; the weights, i32[depth / 2].

    Args:
        num_pixels: 1 or 2.
        depth: Elements of each.
        element: Type of activations.
        pitch: Of int16, elements from the first pixel's to the second's, fewer than 2048; 0 if they are words of two,
            those of both pixels in turns.
    """
    pairing = PAIRINGS[element]
    name = f"dsp_dot_{num_pixels}x2x{depth}{pairing.suffix}" + (f"_{pitch}" if pitch else "")
    sums = [
        variable_parameter(f"{sum_name}{p}", I32, ir.Access.READ_WRITE)
        for p in range(num_pixels)
        for sum_name in pairing.sums
    ]
    if pitch:
        activations = memory_parameter("activations", (num_pixels - 1) * pitch + depth, element)
    else:
        activations = memory_parameter("activations", num_pixels * depth // 2, I32)
    weights = memory_parameter("weights", depth // 2, I32)
    parameters = (*sums, activations, weights)
    body = BodyBuilder(p.name for p in parameters)
    with body.for_(f"{name}.group", 0, depth // BYTES) as group:
        filters = load(weights.buffer, group * 2), load(weights.buffer, group * 2 + 1)
        for pixel in range(num_pixels):
            if pitch:
                places = (pixel * pitch + group * BYTES + i for i in range(BYTES))
                halves = [ir.cast(load(activations.buffer, place), I32) for place in places]
            else:
                words = (load(activations.buffer, (group * 2 + i) * num_pixels + pixel) for i in range(2))
                halves = [half for word in words for half in (low_half(word), high_half(word))]
            added = pairing.added(halves, filters)
            for total, value in zip(sums[2 * pixel :], added, strict=False):
                body.add_to(total.buffer, (), value)
    pixels = "two pixels" if num_pixels == 2 else "a pixel"
    return ir.Instruction(
        name,
        parameters,
        body.finish(),
        _text(num_pixels, depth, element, pitch),
        FEATURE,
        f"Adds {depth} products of {pixels}: {pairing.story}.",
    )


def _text(num_pixels: int, depth: int, element: ir.DType, pitch: int) -> str:
    """One asm statement: compilers keep all of it in registers, where they would spill intrinsics."""
    pairing = PAIRINGS[element]
    step, groups = _step(num_pixels, element, pitch), depth // BYTES
    turns, rest = (0, groups) if groups <= _STRAIGHT else divmod(groups, _UNROLLED)
    pixels = [[f"{name}{p}" for name in pairing.sums] for p in range(num_pixels)]
    lines = [f"int32_t {', '.join(f'{name} = *{name}_at' for name in names)};" for names in pixels]
    lines.append("int32_t w0, w1, x0, x1, bytes;")
    if turns:
        lines.append(f"int32_t turns = {turns};")
    lines.append("__asm inline volatile (")
    if turns:
        lines += ['    "1:\\n\\t"', *step * _UNROLLED, '    "subs %[turns], #1\\n\\t"', '    "bne 1b\\n\\t"']
    lines += step * rest
    sums = ", ".join(f'[{name}] "+r"({name})' for names in pixels for name in names)
    lines += [
        f"    : {sums},",
        '      [x] "+r"(activations), [w] "+r"(weights),' + (' [turns] "+r"(turns),' if turns else ""),
        '      [w0] "=&r"(w0), [w1] "=&r"(w1), [x0] "=&r"(x0), [x1] "=&r"(x1), [bytes] "=&r"(bytes)',
        "    :",
        '    : "memory"' + (', "cc");' if turns else ");"),
    ]
    lines += ["\n".join(f"*{name}_at = {name};" for name in names) for names in pixels]
    return "\n".join(lines)


def _step(num_pixels: int, element: ir.DType, pitch: int) -> list[str]:
    """The instructions of a group."""
    products = PAIRINGS[element].products
    loads = ["ldrd %[x0], %[x1], [%[x]], #8"]
    if pitch:
        # Elements of 16 bits may lie where `ldrd` does not load.
        second = "[%[x]], #4" if num_pixels == 1 else f"[%[x], #{pitch * element.size_bytes - 4}]"
        loads = ["ldr %[x0], [%[x]], #4", f"ldr %[x1], {second}"]
    if num_pixels == 2:
        words = [line for i in range(2) for line in (*loads, *products(i, ("x0", "x1")))]
    else:
        words = [*loads, *products(0, ("x0",)), *products(1, ("x1",))]
    return [f'    "{line}\\n\\t"' for line in ("ldrd %[w0], %[w1], [%[w]], #8", *words)]
