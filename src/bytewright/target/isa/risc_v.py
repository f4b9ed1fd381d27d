"""RISC-V, whose names are a grammar: `rv32imac`, `rv64gc` say the width, the base, and letters of extensions."""

import re

from bytewright.target.isa.isa import Emulator, Isa
from bytewright.target.isa.style import SIGNED_VECTOR, VECTOR

_NAME = re.compile(r"rv(32|64)((?:[ig][mafdqcbvph]*|e[mac]*))", re.ASCII)
FORM = "rv32... and rv64... (rv32imac)"
DEVICETREE_PROPERTY = "riscv,isa"  # of a processor's node


def find_risc_v(name: str) -> Isa | None:
    """The instruction set of this name, if it is one; its features are the letters.

    Of 64 bits with what `gc` stands for it runs programs of Linux.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    features = tuple(match[2])
    has_vectors = "v" in features
    style = SIGNED_VECTOR if has_vectors else VECTOR
    if match[1] == "32":
        return Isa(name, 32, features, style, is_micro=True)
    if not {"g", "c"} <= set(features):
        return Isa(name, 64, features, style)
    return Isa(
        name,
        64,
        features,
        style,
        stack_allowance_bytes=4096 if has_vectors else 512,
        triple="riscv64-linux-gnu",
        flags=(f"-march={name}",),
        processor="riscv64",
        processor_flags=("v",) if has_vectors else (),
        # Of 128 bits, the least that V has: what is right there is right with longer ones.
        emulator=Emulator("qemu-riscv64", "rv64,v=true,vlen=128" if has_vectors else "rv64"),
    )


def risc_v_help(name: str) -> str | None:
    """For a name of RISC-V without its extensions, one with some."""
    is_meant = re.match(r"riscv|rv(32|64)", name)
    return f"did you mean 'rv{'64' if '64' in name else '32'}imac'?" if is_meant else None


def devicetree_name(text: str) -> str | None:
    """The name in the value of a devicetree's property, which goes on with extensions of several letters."""
    return text.partition("_")[0] if re.fullmatch(r"rv[0-9a-z_]+", text) else None
