"""NEON's products: four of bytes in each of four lanes (`sdot`), one of 16 bits (`smlal`), one of float32.

A product of 16 bits takes its activation from a lane of a register of four, so weights of one element lie together.
Depthwise convolutions widen a tap's channels and their weights to 16 bits.
"""

from collections.abc import Callable

from bytewright import ir
from bytewright.lower.isa.neon.lanes import F32, I8, I16, I32, LANES, VECTORS, unit_of
from bytewright.lower.isa.products import Products
from bytewright.lower.isa.taps import tap_products

_BYTES = 16
# Sixteen sums, four vectors of weights and one of activations are 21 of 32 registers.
_MOST_SUMS = 16


def _copied(whole: str, dtype: ir.DType) -> Callable[[int], str]:
    """The text that copies so many elements: a register full of them by `whole`."""
    num_full = _BYTES // dtype.size_bytes
    return lambda num: (
        whole if num == num_full else f"__builtin_memcpy(copy, elements, {dtype.size_bytes * num});"
    )


BYTE_DOTS = Products(VECTORS, I32, 4, I8, I8, I8, I8, "int8x16_t", "bytes").tile(
    units=unit_of,
    max_vectors=4,
    max_sums=_MOST_SUMS,
    broadcasts={
        I8: """int32_t word;
__builtin_memcpy(&word, elements, sizeof word);
return vreinterpretq_s8_s32(vdupq_n_s32(word));"""
    },
    load="return vld1q_s8(elements);",
    dot="return vdotq_s32(sums, activations, filters);",
    chunk=_BYTES,
    copy=_copied("vst1q_s8(copy, vld1q_s8(elements));", I8),
    fill="vst1q_s8(copy, vdupq_n_s8((int8_t)value));",
)


_HALVES = Products(
    VECTORS, I32, 4, I16, I8, I16, I16, "int16x8x2_t", "halves", scalar="int16x4_t", by_element=True
)
HALF_DOTS = _HALVES.tile(
    units=unit_of,
    max_vectors=4,
    max_sums=_MOST_SUMS,
    broadcasts={I16: "return vld1_s16(elements);"},
    load="""const int8x16_t bytes = vld1q_s8(elements);
const int16x8x2_t words = {{vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)}};
return words;""",
    dot="""const int32x4_t one = vmlal_lane_s16(sums, vget_low_s16(filters.val[0]), activations, 0);
const int32x4_t two = vmlal_high_lane_s16(one, filters.val[0], activations, 1);
const int32x4_t three = vmlal_lane_s16(two, vget_low_s16(filters.val[1]), activations, 2);
return vmlal_high_lane_s16(three, filters.val[1], activations, 3);""",
    chunk=_BYTES // 2,
    copy=_copied("vst1q_s16(copy, vld1q_s16(elements));", I16),
    fill="vst1q_s16(copy, vdupq_n_s16((int16_t)value));",
)
TAPS = tap_products(
    VECTORS,
    "int16x8_t",
    loads={I8: "return vmovl_s8(vld1_s8(elements));", I16: "return vld1q_s16(elements);"},
    adds=(
        "return vmlal_s16(sums, vget_low_s16(elements), vget_low_s16(weights));",
        "return vmlal_high_s16(sums, elements, weights);",
    ),
)
FLOAT_DOTS = Products(VECTORS, F32, 1, F32, F32, F32, F32, "float32x4_t", "floats").tile(
    units=unit_of,
    max_vectors=4,
    max_sums=_MOST_SUMS,
    broadcasts={F32: "return vld1q_dup_f32(elements);"},
    load=unit_of(LANES).loads[F32],
    dot="return vfmaq_f32(sums, activations, filters);",
    chunk=LANES,
    copy=_copied("vst1q_f32(copy, vld1q_f32(elements));", F32),
    fill="vst1q_f32(copy, vdupq_n_f32(value));",
)
