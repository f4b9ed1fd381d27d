"""Instruction sets by their names: in target files, on the command line, in devicetrees.

What a core has is chosen by its name, so one that nobody knows would be a choice made in silence.
"""

import re
from collections.abc import Sequence

from bytewright.diagnostics import compile_error
from bytewright.target.isa.arm import ARM
from bytewright.target.isa.ethos_u import ETHOS_U
from bytewright.target.isa.isa import Isa
from bytewright.target.isa.others import OTHERS
from bytewright.target.isa.risc_v import FORM, devicetree_name, find_risc_v, risc_v_help
from bytewright.target.isa.x86 import X86
from bytewright.target.mistake import closest, listing, shown

ISAS: dict[str, Isa] = {isa.name: isa for isa in (*OTHERS, *X86, *ARM, *ETHOS_U)}
TRIPLES = tuple(
    dict.fromkeys(isa.triple for isa in ISAS.values() if isa.triple and isa.is_micro)
)  # of bare machines
ASSUMED_ISA = "cortex-m"  # of a board whose description does not say


def find_isa(name: str) -> Isa | None:
    """The instruction set of this name, if there is one; of a core also as vendors write it, such as `Cortex-M4F`."""
    return find_risc_v(name) or ISAS.get(name) or ISAS.get(_core_of(name.lower()) or "")


def isa_note() -> str:
    """The note that lists all names."""
    return listing("instruction sets", (*sorted(ISAS), FORM))


def isa_help(name: str) -> str | None:
    """What may have been meant."""
    return risc_v_help(name) or closest(name, ISAS)


def require_isa(name: str) -> Isa:
    """The instruction set of this name.

    Raises:
        CompileError: BW204, with the list.
    """
    isa = find_isa(name)
    if isa is None:
        message = f"there is no instruction set {shown(name)}"
        raise compile_error("BW204", message, (isa_note(),), isa_help(name), f"--isa {name}")
    return isa


def _core_of(text: str) -> str | None:
    """The core that a text names, without what says that it has floating point; None if it names none."""
    match = re.fullmatch(r"(cortex-[amr][0-9]+)(\+|plus)?f?", text)
    return None if match is None else f"{match[1]}{'plus' if match[2] else ''}"


def devicetree_isa(compatible: Sequence[str], risc_v: Sequence[str]) -> str | None:
    """The name that a processor's node in a devicetree gives, known or not; None if it is of no known kind.

    Args:
        compatible: The strings of `compatible`.
        risc_v: Those of `riscv,isa`.
    """
    for entry in compatible:
        core = _core_of(entry.removeprefix("arm,")) if entry.startswith("arm,") else None
        if core is not None:
            return core
    return next((name for name in map(devicetree_name, risc_v) if name), None)
