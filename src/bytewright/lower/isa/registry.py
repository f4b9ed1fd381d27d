"""The instruction sets that kernels are written for, best first, and how one is chosen."""

from collections.abc import Collection, Mapping

from bytewright.lower.isa.dsp import DSP
from bytewright.lower.isa.fpu import FPU
from bytewright.lower.isa.instruction_set import InstructionSet, IsaTemplate
from bytewright.lower.isa.mve import MVE, MVE_FLOAT, MVE_HYBRID
from bytewright.lower.isa.neon import NEON
from bytewright.lower.isa.rvv import RVV
from bytewright.lower.isa.x86 import AVX2, AVX512_VNNI
from bytewright.lower.kernels.context import Template

INSTRUCTION_SETS: tuple[InstructionSet, ...] = (
    *(MVE_HYBRID, MVE, MVE_FLOAT),
    *(DSP, FPU, NEON, AVX512_VNNI, AVX2, RVV),
)


def instruction_sets(features: Collection[str]) -> tuple[InstructionSet, ...]:
    """Those that a core with these features has."""
    return tuple(each for each in INSTRUCTION_SETS if each.features <= set(features))


def choose(
    template: Template, features: Collection[str], left_out: Mapping[str, str]
) -> tuple[IsaTemplate | None, tuple[str, ...]]:
    """The first template that takes the anchor; None if none does. And why those before it declined.

    Templates that are left out are named with the reason.
    """
    operation = template.anchor.operation
    reasons: list[str] = []
    for each in instruction_sets(features):
        for candidate in each.templates.get(type(operation), ()):
            reason = left_out.get(candidate.name) or candidate.declines(template, operation)
            if reason is None:
                return candidate, tuple(reasons)
            reasons.append(f"not by {candidate.name}: {reason}")
    return None, tuple(reasons)
