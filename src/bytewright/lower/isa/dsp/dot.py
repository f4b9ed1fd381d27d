"""Dot products of two output channels at once, over activations that were widened to halves of words.

A weight of one channel and the one of the next that meets the same activation share half a word: `h = a + 256 * b`. One
multiplication adds `x * h` to a sum for both, and another, by the byte `a` alone, `x * a` to the sum of the first.
Their difference is 256 times the sum of the second. So of two words only one is extracted, where each weight on its own
would need both.
"""

from functools import cache

import numpy as np

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.dsp.words import BYTES, FEATURE, I32, high_half, low_byte, low_half
from bytewright.lower.isa.vector_unit import memory_parameter, variable_parameter
from bytewright.lower.kernels.layout import Layout

# Groups of four products that a loop's turn has.
_UNROLLED = 4
_STRAIGHT = 6


@cache
def dot(num_pixels: int, depth: int) -> ir.Instruction:
    """Adds the products of one pixel or two with two channels, `depth` each, a multiple of 4.

    Parameters: for each pixel the sum of the first channel and the sum of both; the activations as words of two, those
    of two pixels in turns; the weights, i32[depth / 2].
    """
    name = f"dsp_dot_{num_pixels}x2x{depth}"
    lows = [variable_parameter(f"low{p}", I32, ir.Access.READ_WRITE) for p in range(num_pixels)]
    boths = [variable_parameter(f"both{p}", I32, ir.Access.READ_WRITE) for p in range(num_pixels)]
    sums = [s for pair in zip(lows, boths, strict=True) for s in pair]
    activations = memory_parameter("activations", num_pixels * depth // 2, I32)
    weights = memory_parameter("weights", depth // 2, I32)
    parameters = (*sums, activations, weights)
    body = BodyBuilder(p.name for p in parameters)
    with body.for_(f"{name}.k", 0, depth // 2) as k:
        for pixel in range(num_pixels):
            x, w = load(activations.buffer, k * num_pixels + pixel), load(weights.buffer, k)
            first = low_half(x) * low_byte(w) + high_half(x) * low_byte(high_half(w))
            body.add_to(lows[pixel].buffer, (), first)
            both = low_half(x) * low_half(w) + high_half(x) * high_half(w)
            body.add_to(boths[pixel].buffer, (), both)
    pixels = "two pixels" if num_pixels == 2 else "a pixel"
    return ir.Instruction(
        name,
        parameters,
        body.finish(),
        _text(num_pixels, depth),
        FEATURE,
        f"Adds {depth} products of {pixels}: with the lower bytes of the weights, and with their whole halves.",
    )


def _text(num_pixels: int, depth: int) -> str:
    """One asm statement: compilers keep all of it in registers, where they would spill intrinsics."""
    step = _PAIR if num_pixels == 2 else _SINGLE
    groups = depth // BYTES
    turns, rest = (0, groups) if groups <= _STRAIGHT else divmod(groups, _UNROLLED)
    lines = [f"int32_t low{p} = *low{p}_at, both{p} = *both{p}_at;" for p in range(num_pixels)]
    lines.append("int32_t w0, w1, x0, x1, bytes;")
    if turns:
        lines.append(f"int32_t turns = {turns};")
    lines.append("__asm inline volatile (")
    if turns:
        lines += ['    "1:\\n\\t"', *step * _UNROLLED, '    "subs %[turns], #1\\n\\t"', '    "bne 1b\\n\\t"']
    lines += step * rest
    sums = ", ".join(f'[low{p}] "+r"(low{p}), [both{p}] "+r"(both{p})' for p in range(num_pixels))
    lines += [
        f"    : {sums},",
        '      [x] "+r"(activations), [w] "+r"(weights),' + (' [turns] "+r"(turns),' if turns else ""),
        '      [w0] "=&r"(w0), [w1] "=&r"(w1), [x0] "=&r"(x0), [x1] "=&r"(x1), [bytes] "=&r"(bytes)',
        "    :",
        '    : "memory"' + (', "cc");' if turns else ");"),
    ]
    lines += [f"*low{p}_at = low{p};\n*both{p}_at = both{p};" for p in range(num_pixels)]
    return "\n".join(lines)


def _quoted(*instructions: str) -> list[str]:
    return [f'    "{instruction}\\n\\t"' for instruction in instructions]


def _products(word: str, activations: tuple[str, ...]) -> list[str]:
    """A word of weights with one word of activations of each pixel."""
    boths = (f"smlad %[both{p}], %[{x}], %[{word}], %[both{p}]" for p, x in enumerate(activations))
    lows = (f"smlad %[low{p}], %[{x}], %[bytes], %[low{p}]" for p, x in enumerate(activations))
    return _quoted(f"sxtb16 %[bytes], %[{word}]", *boths, *lows)


_LOAD_WEIGHTS = _quoted("ldrd %[w0], %[w1], [%[w]], #8")
_LOAD_ACTIVATIONS = _quoted("ldrd %[x0], %[x1], [%[x]], #8")
_PAIR = [
    *_LOAD_WEIGHTS,
    *_LOAD_ACTIVATIONS,
    *_products("w0", ("x0", "x1")),
    *_LOAD_ACTIVATIONS,
    *_products("w1", ("x0", "x1")),
]
_SINGLE = [*_LOAD_WEIGHTS, *_LOAD_ACTIVATIONS, *_products("w0", ("x0",)), *_products("w1", ("x1",))]


def pack(weights: np.ndarray) -> np.ndarray | None:
    """Weights [OC, K] as words for `dot`, i32[ceil(OC / 2), ceil(K / 4) * 2]; None if some do not fit 16 bits."""
    ordered = Layout(lanes=2, group=BYTES).pack(weights).astype(np.int32).reshape(-1, 2, BYTES)
    halves = ordered[:, 0] + 256 * ordered[:, 1]
    if halves.size and (halves.min() < -(2**15) or halves.max() >= 2**15):
        return None
    # The first and the third of a group are a word, then the second and the fourth.
    words = halves.reshape(-1, 2, 2).transpose(0, 2, 1).astype("<i2", order="C").view("<i4")
    return words.reshape(-(-weights.shape[0] // 2), -1)
