"""The registers of AVX2 and of AVX-512: how the intrinsics of each are spelled, and what only one of them has.

Texts are written once, with `W` for the bits of a register: `_mmW_add_epi32`, `__mWi`, `_mmW_and_siW`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.lower.isa.width import Width

I8, I16, I32, F32 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.F32
_BITS = re.compile(r"(?<=_mm)W(?=_)|(?<=__m)W|(?<=_si)W")


@dataclass(frozen=True, slots=True)
class Elements:
    """As many elements of a type in memory as a register has lanes of 32 bits.

    Attributes:
        c_type: Of the register that they fill.
        load: All of them, of `elements`.
        ones: What stands in lanes without an element: every rescale of 1 is defined.
        widen: Makes lanes of 32 bits of that register; empty if it has such.
        store: All of them, of `{0}`; empty if elements of the type are not stored.
        masked: Loads some of them under a mask, and stores them: `_mm_mask_{0}_epi8`.
    """

    c_type: str
    load: str
    ones: str
    widen: str = ""
    store: str = ""
    masked: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Simd:
    """Registers of one size.

    Attributes:
        prefix: What the names of instructions begin with.
        bits: Of a register.
        feature: What the instructions need.
        elements: Elements of memory, by type.
        packed: What makes narrower elements of `values`, by their type and by whether they are limited to its range:
            statements, and then the register that they are in.
        set_64: The intrinsic for one number in all lanes of 64 bits.
        merge: What is computed of `even` and `odd` products: their high halves, shifted down by 32 bits and by 31.
        count_above: What ends DOUBLE_ROUND_WIDE: adds 1 to the lanes of `scaled`, shifted, whose rest is above half.
        choose_below: `chosen`: lanes of `below` where `value` is negative, else of `offset`.
    """

    prefix: str
    bits: int
    feature: ir.Feature
    elements: Mapping[ir.DType, Elements]
    packed: Mapping[tuple[ir.DType, bool], tuple[str, str]]
    set_64: str
    merge: tuple[str, str]
    count_above: str
    choose_below: str

    @property
    def lanes(self) -> int:
        """Lanes of 32 bits."""
        return self.bits // 32

    @property
    def has_masks(self) -> bool:
        """Whether some lanes are loaded and stored under a mask; else they are copied by `memcpy`.

        Compilers turn that into a few moves as the size is constant.
        """
        return bool(self.elements[I32].masked)

    @property
    def types(self) -> Mapping[ir.DType, str]:
        """The C type of a register, by the type of its lanes."""
        return {I32: self.text("__mWi"), F32: self.text("__mW")}

    @property
    def width(self) -> Width:
        """Its vectors."""
        return Width(self.prefix, self.lanes, self.types, self.feature)

    def text(self, template: str) -> str:
        """The C text of a template."""
        return _BITS.sub(str(self.bits), template)

    def load(self, dtype: ir.DType, num: int) -> str:
        """Loads the first so many elements, each to a lane of 32 bits."""
        elements = self.elements[dtype]
        if num == self.lanes:
            return self._returned(elements, elements.load)
        if self.has_masks:
            masked = elements.masked.format("loadu")
            return self._returned(elements, f"{masked}({elements.ones}, {self.mask(num)}, elements)")
        copied = f"__builtin_memcpy(&some, elements, {num * dtype.size_bytes});"
        declared = self.text(f"{elements.c_type} some = {elements.ones};")
        return f"{declared}\n{copied}\n{self._returned(elements, 'some')}"

    def _returned(self, elements: Elements, value: str) -> str:
        return self.text(f"return {elements.widen}({value});" if elements.widen else f"return {value};")

    def store(self, dtype: ir.DType, num: int, *, saturates: bool = False) -> str:
        """Stores the first so many lanes as elements."""
        elements = self.elements[dtype]
        computed, result = self.packed.get((dtype, saturates), ("", "values"))
        if num == self.lanes:
            stored = elements.store.format(result)
        elif self.has_masks:
            stored = f"{elements.masked.format('storeu')}(elements, {self.mask(num)}, {result});"
        else:
            stored = f"__builtin_memcpy(elements, &{result}, {num * dtype.size_bytes});"
        return self.text(computed + stored)

    def mask(self, num: int) -> str:
        """The first so many of sixteen lanes."""
        return f"(__mmask16)0x{(1 << num) - 1:04x}u"


_VALUES = Elements(
    c_type="__mWi",
    load="_mmW_loadu_siW((const __mWi *)elements)",
    ones="_mmW_set1_epi32(1)",
    store="_mmW_storeu_siW((__mWi *)elements, {0});",
)
_FLOATS = Elements(
    c_type="__mW",
    load="_mmW_loadu_ps(elements)",
    ones="_mmW_set1_ps(1.0f)",
    store="_mmW_storeu_ps(elements, {0});",
)

AVX2 = Simd(
    prefix="avx2",
    bits=256,
    feature=ir.Feature("avx2", "defined(__AVX2__) && defined(__FMA__)", "immintrin.h"),
    elements={
        I8: Elements(
            c_type="__m128i",
            load="_mm_loadl_epi64((const __m128i *)elements)",
            ones="_mm_set1_epi8(1)",
            widen="_mm256_cvtepi8_epi32",
            store="_mm_storel_epi64((__m128i *)elements, {0});",
        ),
        I16: Elements(
            c_type="__m128i",
            load="_mm_loadu_si128((const __m128i *)elements)",
            ones="_mm_set1_epi16(1)",
            widen="_mm256_cvtepi16_epi32",
            store="_mm_storeu_si128((__m128i *)elements, {0});",
        ),
        I32: _VALUES,
        F32: _FLOATS,
    },
    packed={
        (I16, False): (
            """const __m256i low = _mm256_and_si256(values, _mm256_set1_epi32(65535));
const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
""",
            "packed",
        ),
        (I16, True): (
            """const __m128i high = _mm256_extracti128_si256(values, 1);
const __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(values), high);
""",
            "packed",
        ),
        (I8, False): (
            """const __m256i low = _mm256_and_si256(values, _mm256_set1_epi32(255));
const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
const __m128i packed = _mm_packus_epi16(halves, halves);
""",
            "packed",
        ),
        (I8, True): (
            """const __m128i high = _mm256_extracti128_si256(values, 1);
const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(values), high);
const __m128i packed = _mm_packs_epi16(halves, halves);
""",
            "packed",
        ),
    },
    set_64="_mm256_set1_epi64x",
    merge=(
        "_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa)",
        "_mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa)",
    ),
    count_above="""const __m256i above = _mm256_cmpgt_epi32(_mm256_and_si256(scaled, mask), threshold);
return _mm256_sub_epi32(_mm256_srav_epi32(scaled, shift), above);""",
    choose_below="const __m256 chosen = _mm256_blendv_ps(offset, below, _mm256_castsi256_ps(value));",
)
AVX512 = Simd(
    prefix="avx512",
    bits=512,
    feature=ir.Feature(
        "avx512vnni",
        "defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512VNNI__)",
        "immintrin.h",
    ),
    elements={
        I8: Elements(
            c_type="__m128i",
            load="_mm_loadu_si128((const __m128i *)elements)",
            ones="_mm_set1_epi8(1)",
            widen="_mm512_cvtepi8_epi32",
            store="_mm_storeu_si128((__m128i *)elements, {0});",
            masked="_mm_mask_{0}_epi8",
        ),
        I16: Elements(
            c_type="__m256i",
            load="_mm256_loadu_si256((const __m256i *)elements)",
            ones="_mm256_set1_epi16(1)",
            widen="_mm512_cvtepi16_epi32",
            store="_mm256_storeu_si256((__m256i *)elements, {0});",
            masked="_mm256_mask_{0}_epi16",
        ),
        I32: replace(
            _VALUES,
            load="_mm512_loadu_si512(elements)",
            store="_mm512_storeu_si512(elements, {0});",
            masked="_mm512_mask_{0}_epi32",
        ),
        F32: replace(_FLOATS, masked="_mm512_mask_{0}_ps"),
    },
    packed={
        (I16, False): ("", "_mm512_cvtepi32_epi16(values)"),
        (I16, True): ("", "_mm512_cvtsepi32_epi16(values)"),
        (I8, False): ("", "_mm512_cvtepi32_epi8(values)"),
        (I8, True): ("", "_mm512_cvtsepi32_epi8(values)"),
    },
    set_64="_mm512_set1_epi64",
    merge=(
        "_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB)",
        "_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1))",
    ),
    count_above="""const __mmask16 above = _mm512_cmpgt_epi32_mask(_mm512_and_si512(scaled, mask), threshold);
const __m512i down = _mm512_srav_epi32(scaled, shift);
return _mm512_mask_sub_epi32(down, above, down, _mm512_set1_epi32(-1));""",
    choose_below="""const __mmask16 is_below = _mm512_cmplt_epi32_mask(value, _mm512_setzero_si512());
const __m512 chosen = _mm512_mask_blend_ps(is_below, offset, below);""",
)
