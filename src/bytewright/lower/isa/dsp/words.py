"""Words of four bytes or of two 16-bit halves: what they are in expressions, and the instructions that make them."""

from collections.abc import Sequence
from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.lower.isa.vector_unit import memory_parameter
from bytewright.lower.kernels.context import counted

I8, I16, I32, I64 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.I64
# Words are loaded from bytes anywhere, the lowest byte first; the text is assembler as gcc and clang take it, of Thumb,
# whose `ldrd` loads any two registers. Whether words may lie anywhere clang 14 does not say.
FEATURE = ir.Feature(
    "dsp",
    "defined(__ARM_FEATURE_DSP) && defined(__ARMEL__) && defined(__thumb2__) && defined(__GNUC__) && "
    "(defined(__clang__) || defined(__ARM_FEATURE_UNALIGNED))",
)
BYTES = 4
_COPIED = 16  # elements that one instruction copies
_GROUPS = 4  # of four elements that one instruction widens


def low_half(word: ir.Expr) -> ir.Expr:
    """The lower 16 bits of a word, with their sign."""
    return ir.cast(ir.cast(word, I16), I32)


def high_half(word: ir.Expr) -> ir.Expr:
    """The upper 16 bits of a word, with their sign."""
    return word >> 16


def low_byte(word: ir.Expr) -> ir.Expr:
    """The lowest byte of a word, with its sign."""
    return ir.cast(ir.cast(word, I8), I32)


def byte(word: ir.Expr, number: int) -> ir.Expr:
    """A byte of a word, the lowest first, with its sign."""
    return low_byte(word >> 8 * number)


def halves(low: ir.Expr, high: ir.Expr) -> ir.Expr:
    """Two elements as the halves of a word."""
    return ir.cast(high, I32) * 2**16 + (ir.cast(low, I32) & 0xFFFF)


@cache
def widen(num_sources: int, num_groups: int, element: ir.DType = I8) -> ir.Instruction:
    """Groups of four elements as two words of halves each.

    Those of bytes are the first and the third, and the second and the fourth; those of halves are as they lie.

    Args:
        num_sources: How many rows of elements are read; their words take turns.
        num_groups: How many groups there are in each.
        element: Type of the elements, I8 or I16.
    """
    are_bytes = element is I8
    words = memory_parameter("words", 2 * num_sources * num_groups, I32, ir.Access.WRITE)
    names = ("first", "second")[:num_sources]
    sources = [memory_parameter(name, BYTES * num_groups, element) for name in names]
    body = BodyBuilder(("words", *names))
    name = f"dsp_{'widen' if are_bytes else 'words'}_{num_sources}x{BYTES * num_groups}"
    with body.for_(f"{name}.group", 0, num_groups) as group:
        for odd in range(2):
            places = (odd, odd + 2) if are_bytes else (2 * odd, 2 * odd + 1)
            for number, source in enumerate(sources):
                low, high = (load(source.buffer, group * BYTES + place) for place in places)
                at = group * (2 * num_sources) + (odd * num_sources + number)
                body.store(words.buffer, at, halves(low, high))
    return ir.Instruction(
        name,
        (words, *sources),
        body.finish(),
        (_widen_text if are_bytes else _words_text)(names, num_groups),
        FEATURE,
        f"{'Bytes as halves of words' if are_bytes else 'Words'}, "
        f"of {'two rows in turns' if num_sources == 2 else 'a row'}"
        + (": of each four the first and the third, then the second and the fourth." if are_bytes else "."),
    )


def _widen_text(names: tuple[str, ...], num_groups: int) -> str:
    lines = ["uint32_t bytes;", "int32_t halves;"]
    count = len(names)
    for group in range(num_groups):
        for number, name in enumerate(names):
            at = group * 2 * count + number
            lines += [
                f"__builtin_memcpy(&bytes, {name}{f' + {BYTES * group}' if group else ''}, 4);",
                '__asm inline ("sxtb16 %0, %1" : "=r"(halves) : "r"(bytes));',
                f"words[{at}] = halves;",
                '__asm inline ("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(bytes));',
                f"words[{at + count}] = halves;",
            ]
    return "\n".join(lines)


def _words_text(names: tuple[str, ...], num_groups: int) -> str:
    words = [(name, 2 * word) for word in range(2 * num_groups) for name in names]
    return "\n".join(
        f"__builtin_memcpy(&words[{at}], {name}{f' + {first}' if first else ''}, 4);"
        for at, (name, first) in enumerate(words)
    )


@cache
def copy_elements(count: int, element: ir.DType = I8) -> ir.Instruction:
    """So many elements, word by word."""
    num_bytes = count * element.size_bytes
    target = memory_parameter("target", count, element, ir.Access.WRITE)
    source = memory_parameter("source", count, element)
    name = f"dsp_copy_{count}" + ("" if element is I8 else f"_{element.value}")
    body = BodyBuilder(("target", "source"))
    with body.for_(f"{name}.i", 0, count) as i:
        body.store(target.buffer, i, load(source.buffer, i))
    text = f"__builtin_memcpy(target, source, {num_bytes});"
    return ir.Instruction(name, (target, source), body.finish(), text, FEATURE, f"Copies {num_bytes} bytes.")


def copy_run(
    body: BodyBuilder, element: ir.DType, run: ir.Buffer, target: tuple[ir.Buffer, ir.Expr], length: int
) -> None:
    """Copies elements to a place of others."""
    (buffer, begin), (whole, rest) = target, divmod(length, _COPIED)
    if whole:
        with counted(body, "chunk", whole) as chunk:
            at = chunk * _COPIED
            body.execute(copy_elements(_COPIED, element), region(buffer, begin + at), region(run, at))
    if rest:
        done = whole * _COPIED
        body.execute(copy_elements(rest, element), region(buffer, begin + done), region(run, done))


def widen_runs(
    body: BodyBuilder,
    element: ir.DType,
    sources: Sequence[ir.Buffer],
    target: tuple[ir.Buffer, ir.Expr],
    length: int,
) -> None:
    """Elements of each source, a multiple of four, as words from one on."""
    (words, first), groups = target, runs(length // BYTES, _GROUPS)
    with counted(body, "run", length // BYTES // groups) as run:
        at = region(words, first + run * (2 * len(sources) * groups))
        where = [region(source, run * (BYTES * groups)) for source in sources]
        body.execute(widen(len(sources), groups, element), at, *where)


def runs(count: int, largest: int) -> int:
    """The largest power of two up to `largest` that divides a count."""
    size = largest
    while count % size:
        size //= 2
    return size
