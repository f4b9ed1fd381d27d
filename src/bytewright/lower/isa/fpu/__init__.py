"""Arm's floating-point unit for float32, of cores without vectors (Cortex-M4, M7): fused multiply-add.

The tile is that of vectors, of one lane: pixels share a weight, and output channels an activation. Of 32 registers
sixteen are sums.
"""

from functools import cache

from bytewright import ir
from bytewright.lower.isa.conv2d import conv2d_templates
from bytewright.lower.isa.instruction_set import InstructionSet
from bytewright.lower.isa.one_lane import one_lane
from bytewright.lower.isa.products import Products
from bytewright.lower.isa.reduce import matmul_lanes, with_reductions
from bytewright.lower.isa.transpose_conv2d import transpose_conv2d_templates
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.width import Width
from bytewright.ops.convolution import Conv2d, TransposeConv2d

F32 = ir.DType.F32
# Compilers for AArch64, where the registers have other names, define these macros of floats as well.
_FEATURE = ir.Feature(
    "fp32",
    "defined(__arm__) && defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && (__ARM_FP & 4) && "
    "defined(__GNUC__)",
)
_LANE = Width("fpu", 1, {F32: "float"}, _FEATURE)


@cache
def _unit(num: int = 1) -> VectorUnit:
    return one_lane(_LANE, {F32: "float"}, num)


DOTS = Products(_LANE, F32, 1, F32, F32, F32, F32, "float", "floats", scalar="float").tile(
    units=_unit,
    max_vectors=8,
    max_sums=16,
    broadcasts={F32: "return elements[0];"},
    load=_unit().loads[F32],
    # clang 14 makes a call of a function of `fmaf`.
    dot="""__asm("vfma.f32 %0, %1, %2" : "+t"(sums) : "t"(activations), "t"(filters));
return sums;""",
)
FPU = InstructionSet(
    name="fpu",
    features=frozenset({"fp32"}),
    templates=with_reductions(
        "fpu",
        _unit(),
        {
            **matmul_lanes("fpu", _unit()),
            Conv2d: conv2d_templates("fpu", DOTS),
            TransposeConv2d: transpose_conv2d_templates("fpu", DOTS),
        },
    ),
    instructions=tuple(dict.fromkeys((*DOTS.instructions, *_unit().instructions))),
)
