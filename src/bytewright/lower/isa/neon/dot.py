"""Dot products of four bytes: four output channels at once, of one group of four input channels."""

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.neon.lanes import FEATURE, LANES, VECTORS
from bytewright.lower.isa.vector_unit import lane_wise, memory_parameter, register_parameter

I8, I32 = ir.DType.I8, ir.DType.I32
GROUP = 4
"""Input channels that one dot product takes."""
BYTES = LANES * GROUP


def bytes_(name: str, access: ir.Access = ir.Access.READ) -> ir.BufferParameter:
    """Sixteen signed bytes."""
    return register_parameter(name, BYTES, I8, "int8x16_t", access)


LOAD_BYTES = lane_wise(
    "neon_load_bytes",
    BYTES,
    (bytes_("values", ir.Access.WRITE), memory_parameter("elements", BYTES, I8)),
    lambda given: given[0],
    "return vld1q_s8(elements);",
    FEATURE,
    "Sixteen bytes that lie one after another.",
)


def _repeat() -> ir.Instruction:
    values, elements = bytes_("values", ir.Access.WRITE), memory_parameter("elements", GROUP, I8)
    body = BodyBuilder(("values", "elements"))
    with body.for_("neon_repeat.copy", 0, LANES) as copy, body.for_("neon_repeat.lane", 0, GROUP) as lane:
        body.store(values.buffer, copy * GROUP + lane, load(elements.buffer, lane))
    text = (
        "int32_t word;\n__builtin_memcpy(&word, elements, sizeof word);\n"
        "return vreinterpretq_s8_s32(vdupq_n_s32(word));"
    )
    comment = "Four bytes that lie one after another, four times."
    return ir.Instruction("neon_repeat", (values, elements), body.finish(), text, FEATURE, comment)


def _dot() -> ir.Instruction:
    totals = VECTORS.vector("totals", access=ir.Access.READ_WRITE)
    left, right = bytes_("left"), bytes_("right")
    body = BodyBuilder(("totals", "left", "right"))
    with body.for_("neon_dot.lane", 0, LANES) as lane, body.for_("neon_dot.k", 0, GROUP) as k:
        index = lane * GROUP + k
        product = ir.cast(load(left.buffer, index), I32) * ir.cast(load(right.buffer, index), I32)
        body.add_to(totals.buffer, lane, product)
    return ir.Instruction(
        "neon_dot",
        (totals, left, right),
        body.finish(),
        "return vdotq_s32(totals, left, right);",
        FEATURE,
        "Adds to each lane of 32 bits the products of its four pairs of bytes.",
    )


REPEAT = _repeat()
DOT = _dot()
