"""Products of a depthwise window with four channels at once: two taps a multiplication.

Four bytes of one tap and the four of another that meet the same channels become, by two packs and four extractions,
one word of halves for each channel: `smlad` multiplies both and adds them to the channel's sum. Elements of 16 bits are
two words of a tap, which packs alone make such words of. Weights are such words
too: stored so, in 16 bits each, or in 8 bits, and extracted. A tap that has no partner is multiplied half by half.
"""

from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.dsp.words import BYTES, FEATURE, I8, I16, I32, byte, high_half, low_half
from bytewright.lower.isa.vector_unit import memory_parameter, variable_parameter

# The least offset that `ldr` cannot have.
MAX_OFFSET = 4096
BITS = (8, 16)
_SUFFIX = {I8: "", I16: "_i16"}


def _pair_weights(
    weights: ir.BufferParameter, pair: ir.Expr | int, channel: int, bits: int
) -> tuple[ir.Expr, ...]:
    """The weights of one channel in both taps of a pair."""
    if bits == 16:
        word = load(weights.buffer, pair * BYTES + channel)
        return low_half(word), high_half(word)
    word = load(weights.buffer, pair * (BYTES // 2) + channel // 2)
    return byte(word, channel % 2), byte(word, channel % 2 + 2)


def _single_weight(weights: ir.BufferParameter, first: int, channel: int, bits: int) -> ir.Expr:
    """The weight of one channel in a tap that is alone."""
    if bits == 16:
        word = load(weights.buffer, first + channel % 2)
        return high_half(word) if channel >= 2 else low_half(word)
    return byte(load(weights.buffer, first), channel)


@cache
def two_rows(num_taps: int, pitch: int, bits: int, element: ir.DType = I8) -> ir.Instruction:
    """Adds the products of the taps of two rows: those of one column are a pair.

    Parameters: the sums of four channels; the first tap of each row; weights, i32[bits / 4 * num_taps].

    Args:
        num_taps: Of a row.
        pitch: Elements from a tap to the next.
        bits: Of a stored weight, 8 or 16.
        element: Of the rows, I8 or I16.
    """
    name = f"dsp_rows{bits}_2x{num_taps}x{pitch}{_SUFFIX[element]}"
    sums, rows, weights = _parameters(("upper", "lower"), num_taps, pitch, bits // 4 * num_taps, element)
    body = BodyBuilder(p.name for p in (*sums, *rows, weights))
    with body.for_(f"{name}.tap", 0, num_taps) as tap:
        for channel, total in enumerate(sums):
            upper, lower = (ir.cast(load(row.buffer, tap * pitch + channel), I32) for row in rows)
            _add_pair(body, total, upper, lower, _pair_weights(weights, tap, channel, bits))
    text = [
        line
        for tap in range(num_taps)
        for line in _pair(("upper", tap * pitch), ("lower", tap * pitch), bits, element)
    ]
    return ir.Instruction(
        name,
        (*sums, *rows, weights),
        body.finish(),
        _text(text, ("upper", "lower")),
        FEATURE,
        f"Adds the products of two rows of {num_taps} taps, {pitch} elements apart, to the sums of four channels.",
    )


@cache
def one_row(num_taps: int, pitch: int, bits: int, element: ir.DType = I8) -> ir.Instruction:
    """Adds the products of the taps of one row: the first two are a pair, the next two, and a last one goes alone.

    Parameters: the sums of four channels; the first tap; weights, i32[num_words(num_taps, bits)].
    """
    name = f"dsp_row{bits}_{num_taps}x{pitch}{_SUFFIX[element]}"
    sums, (row,), weights = _parameters(("row",), num_taps, pitch, num_words(num_taps, bits), element)
    body = BodyBuilder(p.name for p in (*sums, row, weights))
    for tap in range(0, num_taps - 1, 2):
        for channel, total in enumerate(sums):
            left, right = (ir.cast(load(row.buffer, t * pitch + channel), I32) for t in (tap, tap + 1))
            _add_pair(body, total, left, right, _pair_weights(weights, tap // 2, channel, bits))
    if num_taps % 2:
        for channel, total in enumerate(sums):
            weight = _single_weight(weights, num_taps // 2 * (bits // 4), channel, bits)
            body.add_to(
                total.buffer, (), ir.cast(load(row.buffer, (num_taps - 1) * pitch + channel), I32) * weight
            )
    text = [
        line
        for tap in range(0, num_taps - 1, 2)
        for line in _pair(("row", tap * pitch), ("row", (tap + 1) * pitch), bits, element)
    ]
    text += _single("row", (num_taps - 1) * pitch, bits, element) if num_taps % 2 else []
    return ir.Instruction(
        name,
        (*sums, row, weights),
        body.finish(),
        _text(text, ("row",)),
        FEATURE,
        f"Adds the products of a row of {num_taps} taps, {pitch} elements apart, to the sums of four channels.",
    )


def num_words(num_taps: int, bits: int) -> int:
    """Words of weights of one row of taps, for four channels."""
    return num_taps // 2 * (bits // 4) + num_taps % 2 * (bits // 8)


def _parameters(
    names: tuple[str, ...], num_taps: int, pitch: int, num_weights: int, element: ir.DType
) -> tuple[list[ir.BufferParameter], list[ir.BufferParameter], ir.BufferParameter]:
    sums = [variable_parameter(f"sum{c}", I32, ir.Access.READ_WRITE) for c in range(BYTES)]
    rows = [memory_parameter(name, (num_taps - 1) * pitch + BYTES, element) for name in names]
    return sums, rows, memory_parameter("weights", num_weights, I32)


def _add_pair(
    body: BodyBuilder,
    total: ir.BufferParameter,
    first: ir.Expr,
    second: ir.Expr,
    weights: tuple[ir.Expr, ...],
) -> None:
    body.add_to(total.buffer, (), first * weights[0])
    body.add_to(total.buffer, (), second * weights[1])


def _pair(first: tuple[str, int], second: tuple[str, int], bits: int, element: ir.DType) -> list[str]:
    """Two taps, each a row and the number of an element of it."""
    if element is I16:
        return [line for channel in (0, 2) for line in _pair_of_words(first, second, channel, bits)]
    return [
        *_two_loads(first, second, element),
        "pkhbt %[u], %[t], %[v], lsl #16",
        "pkhtb %[v], %[v], %[t], asr #16",
        *_two_channels("u", 0, bits),
        *_two_channels("v", 2, bits),
    ]


def _pair_of_words(first: tuple[str, int], second: tuple[str, int], channel: int, bits: int) -> list[str]:
    """Two taps of two channels of 16 bits."""
    upper, lower = ((row, place + channel) for row, place in (first, second))
    return [
        *_two_loads(upper, lower, I16),
        *_two_words(bits),
        "pkhbt %[u], %[t], %[v], lsl #16",
        "pkhtb %[v], %[v], %[t], asr #16",
        f"smlad %[sum{channel}], %[u], %[w0], %[sum{channel}]",
        f"smlad %[sum{channel + 1}], %[v], %[w1], %[sum{channel + 1}]",
    ]


def _two_loads(first: tuple[str, int], second: tuple[str, int], element: ir.DType) -> list[str]:
    return [
        f"ldr %[{word}], [%[{row}], #{place * element.size_bytes}]"
        for word, (row, place) in (("t", first), ("v", second))
    ]


def _two_words(bits: int) -> list[str]:
    """The next two words of weights, or the next word of bytes as two."""
    if bits == 16:
        return ["ldrd %[w0], %[w1], [%[w]], #8"]
    return ["ldr %[w0], [%[w]], #4", "sxtb16 %[w1], %[w0], ror #8", "sxtb16 %[w0], %[w0]"]


def _two_channels(word: str, channel: int, bits: int) -> list[str]:
    return [
        *_two_words(bits),
        f"sxtb16 %[t], %[{word}]",
        f"sxtb16 %[u], %[{word}], ror #8",
        f"smlad %[sum{channel}], %[t], %[w0], %[sum{channel}]",
        f"smlad %[sum{channel + 1}], %[u], %[w1], %[sum{channel + 1}]",
    ]


def _single(row: str, place: int, bits: int, element: ir.DType) -> list[str]:
    """A tap that is alone. The first word of weights is of the first and the third channel."""
    if element is I16:
        loads = _two_loads((row, place), (row, place + 2), element)
        halves = (("bb", "t"), ("tb", "t"), ("bt", "v"), ("tt", "v"))
    else:
        loads = [f"ldr %[v], [%[{row}], #{place}]", "sxtb16 %[t], %[v]", "sxtb16 %[v], %[v], ror #8"]
        halves = (("bb", "t"), ("bb", "v"), ("tt", "t"), ("tt", "v"))
    products = [
        f"smla{which} %[sum{c}], %[{word}], %[w{c % 2}], %[sum{c}]" for c, (which, word) in enumerate(halves)
    ]
    return [*loads, *_two_words(bits), *products]


def _text(instructions: list[str], rows: tuple[str, ...]) -> str:
    """One asm statement: compilers keep all of it in registers, where they would spill intrinsics."""
    channels = range(BYTES)
    operands = ", ".join(f'[sum{c}] "+r"(sum{c})' for c in channels)
    inputs = ", ".join(f'[{row}] "r"({row})' for row in rows)
    return "\n".join(
        (
            f"int32_t {', '.join(f'sum{c} = *sum{c}_at' for c in channels)};",
            "int32_t t, u, v, w0, w1;",
            "__asm inline volatile (",
            *(f'    "{instruction}\\n\\t"' for instruction in instructions),
            f"    : {operands},",
            '      [w] "+r"(weights), [t] "=&r"(t), [u] "=&r"(u), [v] "=&r"(v), [w0] "=&r"(w0), [w1] "=&r"(w1)',
            f"    : {inputs}",
            '    : "memory");',
            *(f"*sum{c}_at = sum{c};" for c in channels),
        )
    )
