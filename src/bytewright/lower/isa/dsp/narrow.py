"""Sums and extrema of four bytes at a time: sums as halves of two words, extrema as the bytes of one.

The first word has the sums of the first and the third byte, the second those of the others, as `sxtab16` adds them.
"""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.lower.isa.dsp.words import BYTES, FEATURE
from bytewright.lower.isa.narrow import narrow_lanes

_LOAD = "uint32_t bytes;\n__builtin_memcpy(&bytes, elements, 4);"
SUMS = narrow_lanes(
    "dsp",
    BYTES,
    ir.DType.I16,
    "struct { uint32_t even, odd; }",
    FEATURE,
    fill="const uint32_t both = (value & 0xffff) * UINT32_C(0x10001);\nreturn (i16x4){both, both};",
    combines={
        BinaryOperator.ADD: f"""{_LOAD}
__asm inline ("sxtab16 %0, %0, %1" : "+r"(results.even) : "r"(bytes));
__asm inline ("sxtab16 %0, %0, %1, ror #8" : "+r"(results.odd) : "r"(bytes));
return results;"""
    },
    store="""const uint32_t low = (results.even & 0xffff) | (results.odd << 16);
const uint32_t high = (results.even >> 16) | (results.odd & UINT32_C(0xffff0000));
__builtin_memcpy(elements, &low, 4);
__builtin_memcpy(elements + 2, &high, 4);""",
    channel=lambda lane: (lane & 1) * 2 + (lane >> 1),
)


def _extremum(first: str, second: str) -> str:
    """Of each byte the one that is not less, or not greater: what `ssub8` found of them says `sel` which."""
    return f"""{_LOAD}
uint32_t chosen;
__asm inline ("ssub8 %0, %1, %2\\n\\tsel %0, {first}, {second}" : "=&r"(chosen) : "r"(results), "r"(bytes) : "cc");
return chosen;"""


EXTREMA = narrow_lanes(
    "dsp",
    BYTES,
    ir.DType.I8,
    "uint32_t",
    FEATURE,
    fill="return (value & 0xff) * UINT32_C(0x1010101);",
    combines={BinaryOperator.MAX: _extremum("%1", "%2"), BinaryOperator.MIN: _extremum("%2", "%1")},
    store="__builtin_memcpy(elements, &results, 4);",
)
