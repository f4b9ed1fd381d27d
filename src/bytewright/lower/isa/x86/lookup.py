"""Tables of bytes on x86. AVX-512 looks up words, each of two entries, in pairs of registers; AVX2 has rows of sixteen
entries, of which places beyond a row are zero.
"""

from bytewright.lower.isa.lookup import byte_lookup
from bytewright.lower.isa.x86.simd import AVX2, AVX512, I32

_ROWS_512 = ", ".join(f"part{part} = _mm512_loadu_si512(table + {64 * part})" for part in range(4))
# Of a place in the lower eight bits of each of 32 lanes, the words 0 to 63 and 64 to 127 are looked up apart.
_WORDS = """const __m512i {0}_words = _mm512_srli_epi16({0}, 1);
const __m512i {0}_first = _mm512_permutex2var_epi16(part0, {0}_words, part1);
const __m512i {0}_last = _mm512_permutex2var_epi16(part2, {0}_words, part3);
const __mmask32 {0}_high = _mm512_test_epi16_mask({0}, _mm512_set1_epi16(128));
const __m512i {0}_both = _mm512_mask_blend_epi16({0}_high, {0}_first, {0}_last);
const __m512i {0}_down = _mm512_slli_epi16(_mm512_and_si512({0}, _mm512_set1_epi16(1)), 3);
const __m512i {0}_found = _mm512_srlv_epi16({0}_both, {0}_down);
"""
_LOOK_UP_512 = f"""const __m512i {_ROWS_512};
const __m512i places = _mm512_xor_si512(values, _mm512_set1_epi8(-128));
const __m512i even = _mm512_and_si512(places, _mm512_set1_epi16(255));
const __m512i odd = _mm512_srli_epi16(places, 8);
{_WORDS.format("even")}{_WORDS.format("odd")}const __mmask64 odds = UINT64_C(0xaaaaaaaaaaaaaaaa);
return _mm512_mask_blend_epi8(odds, even_found, _mm512_slli_epi16(odd_found, 8));"""


def _look_up_256() -> str:
    """A place less the first one of a row is below 16 within it alone, and plus 112 then has no sign."""
    lines = ["const __m256i places = _mm256_xor_si256(values, _mm256_set1_epi8(-128));"]
    lines.append("const __m256i most = _mm256_set1_epi8(112);")
    for row in range(16):
        loaded = f"_mm_loadu_si128((const __m128i *)(table + {16 * row}))"
        own = f"_mm256_sub_epi8(places, _mm256_set1_epi8((char){16 * row}))" if row else "places"
        found = f"_mm256_shuffle_epi8(_mm256_broadcastsi128_si256({loaded}), _mm256_adds_epu8({own}, most))"
        lines.append(
            f"const __m256i row{row} = "
            + (f"_mm256_or_si256(row{row - 1}, {found});" if row else f"{found};")
        )
    return "\n".join([*lines, "return row15;"])


LOOKUP_512 = byte_lookup(
    AVX512.prefix,
    64,
    AVX512.types[I32],
    AVX512.feature,
    load_text="return _mm512_loadu_si512(elements);",
    look_up=_LOOK_UP_512,
    store="_mm512_storeu_si512(elements, values);",
)
LOOKUP_256 = byte_lookup(
    AVX2.prefix,
    32,
    AVX2.types[I32],
    AVX2.feature,
    load_text="return _mm256_loadu_si256((const __m256i *)elements);",
    look_up=_look_up_256(),
    store="_mm256_storeu_si256((__m256i *)elements, values);",
)
