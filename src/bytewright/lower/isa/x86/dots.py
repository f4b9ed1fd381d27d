"""x86's dot products: of bytes with VNNI, of words with AVX2, of float32 with either.

AVX-512: sums of four products of bytes in each lane (`vpdpbusd`), for which activations become unsigned. AVX2 has no
such sums that do not saturate (`vpmaddubsw` does), so there activations are copied as 16 bits, and weights are widened
as they are loaded, once for all pixels of a tile.
"""

from functools import partial

from bytewright import ir
from bytewright.lower.isa.products import Products, Tile
from bytewright.lower.isa.x86.lanes import unit_of
from bytewright.lower.isa.x86.simd import AVX2, AVX512, F32, I8, I16, I32, Simd

U8 = ir.DType.U8


def _copied_bytes(num: int) -> str:
    mask = f"(__mmask64)UINT64_C(0x{(1 << num) - 1:x})"
    loaded = "_mm512_loadu_si512(elements)" if num == 64 else f"_mm512_maskz_loadu_epi8({mask}, elements)"
    stored = (
        "_mm512_storeu_si512(copy, raised);"
        if num == 64
        else f"_mm512_mask_storeu_epi8(copy, {mask}, raised);"
    )
    return f"const __m512i raised = _mm512_xor_si512({loaded}, _mm512_set1_epi8(-128));\n{stored}"


BYTES = Products(AVX512.width, I32, 4, I8, I8, U8, I8, "__m512i", "bytes", offset=128)
# Not `_mm_loadu_si32`: gcc has none before version 11, and that of 11.1 puts the bytes elsewhere.
_LOAD_WORD = "int32_t word;\n__builtin_memcpy(&word, elements, 4);\n"
BYTE_DOTS = BYTES.tile(
    units=partial(unit_of, AVX512),
    max_vectors=4,
    max_sums=16,
    broadcasts={
        I8: f"{_LOAD_WORD}return _mm512_xor_si512(_mm512_set1_epi32(word), _mm512_set1_epi8(-128));",
        U8: f"{_LOAD_WORD}return _mm512_set1_epi32(word);",
    },
    load="return _mm512_loadu_si512(elements);",
    dot="return _mm512_dpbusd_epi32(sums, activations, filters);",
    chunk=64,
    copy=_copied_bytes,
    fill="_mm512_storeu_si512(copy, _mm512_set1_epi8((char)value));",
)


def _copied_words(num: int) -> str:
    if num == 16:
        loaded = "const __m128i bytes = _mm_loadu_si128((const __m128i *)elements);\n"
        stored = "_mm256_storeu_si256((__m256i *)copy, words);"
    else:
        loaded = f"__m128i bytes = _mm_setzero_si128();\n__builtin_memcpy(&bytes, elements, {num});\n"
        stored = f"__builtin_memcpy(copy, &words, {2 * num});"
    return f"{loaded}const __m256i words = _mm256_cvtepi8_epi16(bytes);\n{stored}"


WORD_DOTS = Products(AVX2.width, I32, 2, I8, I8, I16, I16, "__m256i", "words").tile(
    units=partial(unit_of, AVX2),
    max_vectors=2,
    max_sums=6,
    broadcasts={I16: "int32_t pair;\n__builtin_memcpy(&pair, elements, 4);\nreturn _mm256_set1_epi32(pair);"},
    load="return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)elements));",
    dot="return _mm256_add_epi32(sums, _mm256_madd_epi16(activations, filters));",
    chunk=16,
    copy=_copied_words,
    fill="_mm256_storeu_si256((__m256i *)copy, _mm256_set1_epi16((short)value));",
)


def _copied_halves(num: int) -> str:
    if num == 16:
        return "_mm256_storeu_si256((__m256i *)copy, _mm256_loadu_si256((const __m256i *)elements));"
    return f"__builtin_memcpy(copy, elements, {2 * num});"


def _half_dots(
    simd: Simd, max_vectors: int, max_sums: int, broadcast: str | ir.Instruction, load: str, dot: str
) -> Tile:
    """Of activations of 16 bits, and weights that are widened as they are loaded."""
    return Products(simd.width, I32, 2, I16, I8, I16, I16, simd.types[I32], "halves").tile(
        units=partial(unit_of, simd),
        max_vectors=max_vectors,
        max_sums=max_sums,
        broadcasts={I16: broadcast},
        load=load,
        dot=dot,
        chunk=16,
        copy=_copied_halves,
        fill="_mm256_storeu_si256((__m256i *)copy, _mm256_set1_epi16((short)value));",
    )


HALF_DOTS_512 = _half_dots(
    AVX512,
    4,
    16,
    f"{_LOAD_WORD}return _mm512_set1_epi32(word);",
    load="return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)elements));",
    dot="return _mm512_dpwssd_epi32(sums, activations, filters);",
)
HALF_DOTS_256 = _half_dots(
    AVX2,
    2,
    6,
    WORD_DOTS.broadcasts[I16],  # as activations of bytes are copied
    load="return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)elements));",
    dot="return _mm256_add_epi32(sums, _mm256_madd_epi16(activations, filters));",
)


def _float_dots(simd: Simd, max_vectors: int, max_sums: int) -> Tile:
    lanes = simd.lanes

    def copied(num: int) -> str:
        if num == lanes:
            return simd.text("_mmW_storeu_ps(copy, _mmW_loadu_ps(elements));")
        if simd.has_masks:
            mask = simd.mask(num)
            return f"_mm512_mask_storeu_ps(copy, {mask}, _mm512_maskz_loadu_ps({mask}, elements));"
        return f"__builtin_memcpy(copy, elements, {F32.size_bytes * num});"

    return Products(simd.width, F32, 1, F32, F32, F32, F32, simd.types[F32], "floats").tile(
        units=partial(unit_of, simd),
        max_vectors=max_vectors,
        max_sums=max_sums,
        broadcasts={F32: simd.text("return _mmW_set1_ps(elements[0]);")},
        load=unit_of(simd, lanes).loads[F32],
        dot=simd.text("return _mmW_fmadd_ps(activations, filters, sums);"),
        chunk=lanes,
        copy=copied,
        fill=simd.text("_mmW_storeu_ps(copy, _mmW_set1_ps(value));"),
    )


FLOAT_DOTS_512 = _float_dots(AVX512, 4, 16)
FLOAT_DOTS_256 = _float_dots(AVX2, 2, 12)
