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
            those of both pixels in turns. A pixel's begin with a word.
    """
    pairing = PAIRINGS[element]
    name = f"dsp_dot_{num_pixels}x2x{depth}{pairing.suffix}" + (f"_{pitch}" if pitch else "")
    sums = [
        variable_parameter(f"{sum_name}{p}", I32, ir.Access.READ_WRITE)
        for p in range(num_pixels)
        for sum_name in pairing.sums
    ]
    if pitch:
        elements = (num_pixels - 1) * pitch + depth
        buffer = ir.Buffer("activations", (elements,), element, BYTES)
        activations = ir.BufferParameter(buffer, ir.Access.READ, scope=ir.GLOBAL)
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
    pairing = PAIRINGS[element]
    pixels = [[f"{name}{p}" for name in pairing.sums] for p in range(num_pixels)]
    step = _step(num_pixels, element, pitch)
    return _loop(pixels, step, depth // BYTES, ("activations", "weights"), ("x0", "x1", "w0", "w1", "bytes"))


def _loop(
    sums: list[list[str]],
    step: list[str],
    num_steps: int,
    pointers: tuple[str, str],
    registers: tuple[str, ...],
    c_type: str = "int32_t",
) -> str:
    """One asm statement: compilers keep all of it in registers, where they would spill intrinsics.

    Args:
        sums: Names of sums, in groups; a sum of its own is a value, and others are where pointers say.
        step: The instructions of a step, which have the pointers as `x` and `w`.
        num_steps: How many there are.
        pointers: To what is read.
        registers: That a step needs besides.
        c_type: Of a sum.
    """
    names = [name for group in sums for name in group]
    straight = [f'    "{line}\\n\\t"' for line in step]
    turns, rest = (0, num_steps) if num_steps <= _STRAIGHT else divmod(num_steps, _UNROLLED)
    first, second = pointers
    lines: list[str] = []
    if len(names) > 1:
        lines += [f"{c_type} {', '.join(f'{name} = *{name}_at' for name in group)};" for group in sums]
    lines.append(f"int32_t {', '.join(registers)};")
    if turns:
        lines.append(f"int32_t turns = {turns};")
    lines.append("__asm inline volatile (")
    if turns:
        lines += [
            '    "1:\\n\\t"',
            *straight * _UNROLLED,
            '    "subs %[turns], #1\\n\\t"',
            '    "bne 1b\\n\\t"',
        ]
    lines += straight * rest
    lines += [
        "    : " + ", ".join(f'[{name}] "+r"({name})' for name in names) + ",",
        f'      [x] "+r"({first}), [w] "+r"({second}),' + (' [turns] "+r"(turns),' if turns else ""),
        "      " + ", ".join(f'[{name}] "=&r"({name})' for name in registers),
        "    :",
        '    : "memory"' + (', "cc");' if turns else ");"),
    ]
    if len(names) > 1:
        lines += ["\n".join(f"*{name}_at = {name};" for name in group) for group in sums]
    else:
        lines.append(f"return {names[0]};")
    return "\n".join(lines)


def _step(num_pixels: int, element: ir.DType, pitch: int) -> list[str]:
    """The instructions of a group."""
    products = PAIRINGS[element].products
    loads = ["ldrd %[x0], %[x1], [%[x]], #8"]
    if pitch and num_pixels == 2:
        loads = ["ldr %[x0], [%[x]], #4", f"ldr %[x1], [%[x], #{pitch * element.size_bytes - 4}]"]
    if num_pixels == 2:
        words = [line for i in range(2) for line in (*loads, *products(i, ("x0", "x1")))]
    else:
        words = [*loads, *products(0, ("x0",)), *products(1, ("x1",))]
    return ["ldrd %[w0], %[w1], [%[w]], #8", *words]


@cache
def dot_of_halves(num_rows: int, num_columns: int, num_words: int, dtype: ir.DType) -> ir.Instruction:
    """Adds the products of one row or two with one column or two, of words of two halves each.

    Parameters: the sums, those of a row after one another; the rows' words, in turns, and those of the columns.

    Args:
        num_rows: 1 or 2.
        num_columns: 1 or 2; with sums of 64 bits 1.
        num_words: Of a row.
        dtype: Of the sums, I32 or I64.
    """
    name = f"dsp_halves_{num_rows}x{num_columns}x{num_words}" + ("" if dtype is I32 else f"_{dtype.value}")
    places = [(r, c) for r in range(num_rows) for c in range(num_columns)]
    sums = [variable_parameter(f"sum{r}{c}", dtype, ir.Access.READ_WRITE) for r, c in places]
    rows = memory_parameter("rows", num_rows * num_words, I32)
    columns = memory_parameter("columns", num_columns * num_words, I32)
    body = BodyBuilder(p.name for p in (*sums, rows, columns))
    with body.for_(f"{name}.word", 0, num_words) as word:
        for total, (r, c) in zip(sums, places, strict=True):
            left, right = load(rows.buffer, word * num_rows + r), load(columns.buffer, word * num_columns + c)
            for half in (low_half, high_half):
                body.add_to(total.buffer, (), ir.cast(half(left) * half(right), dtype))
    registers = (*(f"x{r}" for r in range(num_rows)), *(f"w{c}" for c in range(num_columns)))
    names = [[f"sum{r}{c}" for c in range(num_columns)] for r in range(num_rows)]
    return ir.Instruction(
        name,
        (*sums, rows, columns),
        body.finish(),
        _loop(
            names,
            _step_of_halves(num_rows, num_columns, dtype),
            num_words,
            ("rows", "columns"),
            registers,
            "int32_t" if dtype is I32 else "int64_t",
        ),
        FEATURE,
        f"Adds {2 * num_words} products of each of {num_rows} rows with each of {num_columns} columns.",
    )


def _step_of_halves(num_rows: int, num_columns: int, dtype: ir.DType) -> list[str]:
    loads = {1: "ldr %[{0}0], [%[{0}]], #4", 2: "ldrd %[{0}0], %[{0}1], [%[{0}]], #8"}
    product = "smlad %[sum{0}{1}]" if dtype is I32 else "smlald %Q[sum{0}{1}], %R[sum{0}{1}]"
    added = ", %[sum{0}{1}]" if dtype is I32 else ""
    products = [
        (product + ", %[x{0}], %[w{1}]" + added).format(r, c)
        for r in range(num_rows)
        for c in range(num_columns)
    ]
    return [loads[num_rows].format("x"), loads[num_columns].format("w"), *products]
