"""RISC-V, whose names are a grammar: `rv32imac`, `rv64gc` say the width, the base, and letters of extensions."""

import re

from bytewright.target.isa.isa import Isa

_NAME = re.compile(r"rv(32|64)((?:[ig][mafdqcbvph]*|e[mac]*))", re.ASCII)
FORM = "rv32... and rv64... (rv32imac)"
DEVICETREE_PROPERTY = "riscv,isa"  # of a processor's node


def find_risc_v(name: str) -> Isa | None:
    """The instruction set of this name, if it is one; its features are the letters."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return Isa(name, int(match[1]), features=tuple(match[2]), is_micro=match[1] == "32")


def risc_v_help(name: str) -> str | None:
    """For a name of RISC-V without its extensions, one with some."""
    is_meant = re.match(r"riscv|rv(32|64)", name)
    return f"did you mean 'rv{'64' if '64' in name else '32'}imac'?" if is_meant else None


def devicetree_name(text: str) -> str | None:
    """The name in the value of a devicetree's property, which goes on with extensions of several letters."""
    return text.partition("_")[0] if re.fullmatch(r"rv[0-9a-z_]+", text) else None
