"""Tables of bytes on NEON: four lookups, each of 64 entries, of which places beyond leave what was found."""

from bytewright.lower.isa.lookup import byte_lookup
from bytewright.lower.isa.neon.lanes import FEATURE

_PART = 64


def _look_up() -> str:
    lines = ["uint8x16_t places = veorq_u8(vreinterpretq_u8_s8(values), vdupq_n_u8(128));"]
    for part in range(4):
        loads = ", ".join(f"vld1q_s8(table + {_PART * part + 16 * row})" for row in range(4))
        lines.append(f"const int8x16x4_t part{part} = {{{{{loads}}}}};")
    lines.append("int8x16_t result = vqtbl4q_s8(part0, places);")
    for part in range(1, 4):
        lines.append(f"places = vsubq_u8(places, vdupq_n_u8({_PART}));")
        lines.append(f"result = vqtbx4q_s8(result, part{part}, places);")
    return "\n".join([*lines, "return result;"])


LOOKUP = byte_lookup(
    "neon",
    16,
    "int8x16_t",
    FEATURE,
    load_text="return vld1q_s8(elements);",
    look_up=_look_up(),
    store="vst1q_s8(elements, values);",
)
