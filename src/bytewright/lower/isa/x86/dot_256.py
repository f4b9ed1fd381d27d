"""AVX2: sums of two products of 16 bits in each of eight lanes, and of one product of float32.

Sums of two products of bytes (`vpmaddubsw`) saturate, which no reference does; so activations are copied as 16 bits,
and weights are widened as they are loaded, once for all pixels of a tile.
"""

from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.scalar_functions import FMA
from bytewright.lower.isa.vector_unit import lane_wise, memory_parameter, register_parameter
from bytewright.lower.isa.x86.dot_unit import DotUnit
from bytewright.lower.isa.x86.lanes_256 import FEATURE, LANES, VECTORS, unit_of

I8, I16, I32, F32 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.F32
READ, WRITE, READ_WRITE = ir.Access.READ, ir.Access.WRITE, ir.Access.READ_WRITE
GROUP = 2
WORDS = 16
INTEGERS = "__m256i"


def _words(name: str, access: ir.Access = READ) -> ir.BufferParameter:
    return register_parameter(name, WORDS, I16, INTEGERS, access)


def _broadcast_pair() -> ir.Instruction:
    name = "avx2_broadcast_2_i16"
    values, elements = _words("values", WRITE), memory_parameter("elements", GROUP, I16)
    body = BodyBuilder(("values", "elements"))
    with body.for_(f"{name}.lane", 0, LANES) as lane, body.for_(f"{name}.word", 0, GROUP) as word:
        body.store(values.buffer, lane * GROUP + word, load(elements.buffer, word))
    text = "int32_t pair;\n__builtin_memcpy(&pair, elements, 4);\nreturn _mm256_set1_epi32(pair);"
    return ir.Instruction(
        name, (values, elements), body.finish(), text, FEATURE, "Two words again and again."
    )


def _dot_words() -> ir.Instruction:
    name = "avx2_dot_words"
    sums = VECTORS.vector("sums", I32, READ_WRITE)
    activations, filters = _words("activations"), _words("filters")
    body = BodyBuilder(("sums", "activations", "filters"))
    with body.for_(f"{name}.lane", 0, LANES) as lane, body.for_(f"{name}.word", 0, GROUP) as word:
        index = lane * GROUP + word
        left, right = (ir.cast(load(p.buffer, index), I32) for p in (activations, filters))
        body.add_to(sums.buffer, lane, left * right)
    text = "return _mm256_add_epi32(sums, _mm256_madd_epi16(activations, filters));"
    comment = "Adds two products of 16 bits to each sum."
    return ir.Instruction(name, (sums, activations, filters), body.finish(), text, FEATURE, comment)


@cache
def _copy_words(num: int) -> ir.Instruction:
    if num == WORDS:
        loaded = "const __m128i bytes = _mm_loadu_si128((const __m128i *)elements);\n"
        stored = "_mm256_storeu_si256((__m256i *)copy, words);"
    else:
        loaded = f"__m128i bytes = _mm_setzero_si128();\n__builtin_memcpy(&bytes, elements, {num});\n"
        stored = f"__builtin_memcpy(copy, &words, {2 * num});"
    return lane_wise(
        f"avx2_copy_words_{num}",
        num,
        (memory_parameter("copy", num, I16, WRITE), memory_parameter("elements", num, I8)),
        lambda given: ir.cast(given[0], I16),
        f"{loaded}const __m256i words = _mm256_cvtepi8_epi16(bytes);\n{stored}",
        FEATURE,
        f"Copies {num} bytes as 16 bits each.",
    )


WORD_DOTS = DotUnit(
    units=unit_of,
    lanes=LANES,
    element=I8,
    held=I16,
    offset=0,
    group=GROUP,
    max_vectors=2,
    max_sums=6,
    activations=(WORDS, I16, INTEGERS),
    broadcasts={I16: _broadcast_pair()},
    filters=(WORDS, I16, INTEGERS),
    load=lane_wise(
        "avx2_load_words",
        WORDS,
        (_words("values", WRITE), memory_parameter("elements", WORDS, I8)),
        lambda given: ir.cast(given[0], I16),
        "return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)elements));",
        FEATURE,
        "Sixteen bytes that lie one after another, as 16 bits each.",
    ),
    dot=_dot_words(),
    chunk=WORDS,
    copies=_copy_words,
    fill=lane_wise(
        "avx2_fill_words",
        WORDS,
        (memory_parameter("copy", WORDS, I16, WRITE), ir.ScalarParameter(ir.Var("value", I32))),
        lambda given: ir.cast(given[0], I16),
        "_mm256_storeu_si256((__m256i *)copy, _mm256_set1_epi16((short)value));",
        FEATURE,
        "Sixteen words of one value.",
    ),
)


def _multiply_add() -> ir.Instruction:
    name = "avx2_multiply_add"
    sums = VECTORS.vector("sums", F32, READ_WRITE)
    activations, filters = VECTORS.vector("activations", F32), VECTORS.vector("filters", F32)
    body = BodyBuilder(("sums", "activations", "filters"))
    with body.for_(f"{name}.lane", 0, LANES) as lane:
        left, right, total = (load(p.buffer, lane) for p in (activations, filters, sums))
        body.store(sums.buffer, lane, FMA(left, right, total))
    text = "return _mm256_fmadd_ps(activations, filters, sums);"
    comment = "Adds a product to each sum, rounded once."
    return ir.Instruction(name, (sums, activations, filters), body.finish(), text, FEATURE, comment)


def _broadcast_float() -> ir.Instruction:
    name = "avx2_broadcast_f32_at"
    values, elements = VECTORS.vector("values", F32, WRITE), memory_parameter("elements", 1, F32)
    body = BodyBuilder(("values", "elements"))
    with body.for_(f"{name}.lane", 0, LANES) as lane:
        body.store(values.buffer, lane, load(elements.buffer, 0))
    text = "return _mm256_set1_ps(elements[0]);"
    return ir.Instruction(name, (values, elements), body.finish(), text, FEATURE, "A float in every lane.")


@cache
def _copy_floats(num: int) -> ir.Instruction:
    whole = "_mm256_storeu_ps(copy, _mm256_loadu_ps(elements));"
    some = f"__builtin_memcpy(copy, elements, {4 * num});"
    parameters = (memory_parameter("copy", num, F32, WRITE), memory_parameter("elements", num, F32))
    return lane_wise(
        f"avx2_copy_f32_{num}",
        num,
        parameters,
        lambda given: given[0],
        whole if num == LANES else some,
        FEATURE,
        f"Copies {num} floats.",
    )


FLOAT_DOTS = DotUnit(
    units=unit_of,
    lanes=LANES,
    element=F32,
    held=F32,
    offset=0,
    group=1,
    max_vectors=2,
    max_sums=12,
    activations=(LANES, F32, "__m256"),
    broadcasts={F32: _broadcast_float()},
    filters=(LANES, F32, "__m256"),
    load=unit_of(LANES).loads[F32],
    dot=_multiply_add(),
    chunk=LANES,
    copies=_copy_floats,
    fill=lane_wise(
        "avx2_fill_f32",
        LANES,
        (memory_parameter("copy", LANES, F32, WRITE), ir.ScalarParameter(ir.Var("value", F32))),
        lambda given: given[0],
        "_mm256_storeu_ps(copy, _mm256_set1_ps(value));",
        FEATURE,
        "Eight floats of one value.",
    ),
)
