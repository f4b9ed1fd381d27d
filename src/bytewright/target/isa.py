"""The instruction sets that a device may have, each with the width of its addresses.

Kernels, compiler flags and what an object may measure at most are chosen by it, so a name that nobody knows would be a
choice made in silence. RISC-V names are a grammar, all others a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.target.mistake import closest, listing, shown


@dataclass(frozen=True, slots=True)
class Isa:
    """An instruction set.

    Attributes:
        name: As target files have it.
        address_bits: The width of an address, unless a device says otherwise.
    """

    name: str
    address_bits: int


_WIDTHS: dict[int, str] = {
    64: "host x86-64 cortex-a34 cortex-a35 cortex-a53 cortex-a55 cortex-a57 cortex-a65 cortex-a72 cortex-a73 "
    "cortex-a75 cortex-a76 cortex-a77 cortex-a78 cortex-a510 cortex-a520 cortex-a710 cortex-a715 cortex-a720 "
    "neoverse-n1 neoverse-n2 neoverse-v1 neoverse-v2 npu dma",
    32: "cortex-m cortex-m0 cortex-m0plus cortex-m1 cortex-m3 cortex-m4 cortex-m7 cortex-m23 cortex-m33 cortex-m35p "
    "cortex-m52 cortex-m55 cortex-m85 cortex-r4 cortex-r5 cortex-r7 cortex-r8 cortex-r52 cortex-a5 cortex-a7 "
    "cortex-a8 cortex-a9 cortex-a12 cortex-a15 cortex-a17 cortex-a32 arc-em arc-hs x86 xtensa-lx6 xtensa-lx7 hifi1 "
    "hifi3 hifi4 hifi5 hexagon ceva-bx1 ceva-bx2 dsp ethos-u55 ethos-u65 ethos-u85",
}
ISAS: dict[str, Isa] = {name: Isa(name, bits) for bits, names in _WIDTHS.items() for name in names.split()}
# `rv32imac`, `rv64gc`: the width, the base, and single letters of extensions.
_RISC_V = re.compile(r"rv(32|64)(?:[ig][mafdqcbvph]*|e[mac]*)", re.ASCII)
RISC_V_FORM = "rv32... and rv64... (rv32imac)"


def find_isa(name: str) -> Isa | None:
    """The instruction set of this name, if there is one."""
    match = _RISC_V.fullmatch(name)
    return Isa(name, int(match[1])) if match else ISAS.get(name)


def isa_note() -> str:
    """The note that lists all names."""
    return listing("instruction sets", (*sorted(ISAS), RISC_V_FORM))


def isa_help(name: str) -> str | None:
    """What may have been meant; for a name of RISC-V without its extensions, one with some."""
    if re.match(r"riscv|rv(32|64)", name):
        return f"did you mean 'rv{'64' if '64' in name else '32'}imac'?"
    return closest(name, ISAS)


def require_isa(name: str) -> Isa:
    """The instruction set of this name.

    Raises:
        CompileError: BW204, with the list.
    """
    isa = find_isa(name)
    if isa is None:
        message = f"there is no instruction set {shown(name)}"
        raise CompileError(Diagnostic("BW204", message, (isa_note(),), isa_help(name), f"--isa {name}"))
    return isa
