"""Arm's M-profile vector extension (Helium): vectors of 16 bytes, on Cortex-M52, M55 and M85."""

from dataclasses import replace
from functools import partial
from typing import Any

from bytewright import ir
from bytewright.lower.isa.conv2d import conv2d_templates
from bytewright.lower.isa.instruction_set import InstructionSet, IsaTemplate
from bytewright.lower.isa.lines import pad_template
from bytewright.lower.isa.mve.conv2d import conv2d_declines, write_conv2d
from bytewright.lower.isa.mve.convolve import sum_block
from bytewright.lower.isa.mve.copy_elements import copy_elements
from bytewright.lower.isa.mve.depthwise import depthwise_declines, write_depthwise
from bytewright.lower.isa.mve.floats import FLOAT_DOTS, MIXED
from bytewright.lower.isa.mve.floats import UNIT as FLOAT_UNIT
from bytewright.lower.isa.mve.floats import VECTORS as MIXED_VECTORS
from bytewright.lower.isa.mve.lanes import UNIT, VECTORS
from bytewright.lower.isa.mve.lstm import lstm_declines, write_lstm
from bytewright.lower.isa.mve.matmul import matmul_declines, write_matmul
from bytewright.lower.isa.mve.narrow import EXTREMA, SUMS
from bytewright.lower.isa.mve.transpose_conv2d import transpose_conv2d_declines, write_transpose_conv2d
from bytewright.lower.isa.mve.wide_matmul import SIZES, wide_dot, wide_matmul_declines, write_wide_matmul
from bytewright.lower.isa.reduce import depthwise_lanes, matmul_lanes, ranges, with_reductions
from bytewright.lower.isa.shift_in import shift_in_template
from bytewright.lower.isa.softmax import softmax_template
from bytewright.lower.isa.transpose_conv2d import transpose_conv2d_templates
from bytewright.lower.kernels.context import Template
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, TransposeConv2d
from bytewright.ops.data import Pad, ShiftIn
from bytewright.ops.lstm import TflQuantizedLstm
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.softmax import TflSoftmax

I16 = ir.DType.I16
# Of the instructions that there are for each size, one of every form.
_SIZED = (
    *(copy_elements(size) for size in (9, 48, 142, 200)),
    *(copy_elements(size, I16) for size in (1, 3, 24, 71)),
    *(sum_block(num_pixels, depth) for num_pixels, depth in ((1, 4), (2, 13), (1, 27), (2, 144), (2, 301))),
    *(
        sum_block(num_pixels, depth, I16)
        for num_pixels, depth in ((1, 4), (2, 13), (1, 8), (2, 72), (2, 101))
    ),
    *map(wide_dot, SIZES),
)

MVE = InstructionSet(
    name="mve",
    features=frozenset({"mve"}),
    templates=with_reductions(
        "mve",
        UNIT,
        {
            Conv2d: (
                IsaTemplate("mve.conv2d", partial(write_conv2d, UNIT), conv2d_declines, by_columns=True),
            ),
            DepthwiseConv2d: (IsaTemplate("mve.depthwise_conv2d", write_depthwise, depthwise_declines),),
            TransposeConv2d: (
                IsaTemplate("mve.transpose_conv2d", write_transpose_conv2d, transpose_conv2d_declines),
            ),
            TflQuantizedLstm: (IsaTemplate("mve.lstm", write_lstm, lstm_declines),),
            ShiftIn: (shift_in_template("mve", copy_elements),),
            TflSoftmax: (softmax_template("mve", UNIT),),
            TflBatchMatMul: (
                IsaTemplate("mve.matmul_by_dots", write_matmul, matmul_declines),
                IsaTemplate("mve.matmul_by_wide_dots", write_wide_matmul, wide_matmul_declines),
                *matmul_lanes("mve", UNIT)[TflBatchMatMul],
            ),
        },
        (SUMS, EXTREMA),
    ),
    instructions=(*_SIZED, *UNIT.instructions, *SUMS.instructions, *EXTREMA.instructions),
    operands={
        **VECTORS.operands,
        **{(wide_dot(size).name, "total"): (-(2**62), 2**62) for size in SIZES},
    },
    unit=UNIT,
)


def _of_floats(each: IsaTemplate) -> IsaTemplate:
    """The same for integers whose sums become floats, and for nothing else."""

    def declines(template: Template, operation: Any) -> str | None:
        output = template.epilogue.types[template.epilogue.group.output.name].dtype
        if template.type(0).dtype.is_integer and output is ir.DType.F32:
            return each.declines(template, operation)
        return "its elements are no integers, or its results no floats"

    return replace(each, declines=declines)


MVE_HYBRID = InstructionSet(
    name="mve_hybrid",
    features=frozenset({"mve", "mve-float"}),
    templates={
        Conv2d: (
            _of_floats(
                IsaTemplate(
                    "mve_hybrid.conv2d", partial(write_conv2d, MIXED), conv2d_declines, by_columns=True
                )
            ),
        ),
        DepthwiseConv2d: (_of_floats(depthwise_lanes("mve_hybrid", MIXED)),),
    },
    instructions=(),
)
MVE_FLOAT = InstructionSet(
    name="mve_float",
    features=frozenset({"mve-float"}),
    templates=with_reductions(
        "mve_float",
        FLOAT_UNIT,
        {
            **matmul_lanes("mve_float", FLOAT_UNIT),
            Conv2d: conv2d_templates("mve_float", FLOAT_DOTS),
            TransposeConv2d: transpose_conv2d_templates("mve_float", FLOAT_DOTS),
            Pad: (pad_template("mve_float", MIXED),),
            **ranges("mve_float", MIXED),
        },
    ),
    instructions=tuple(dict.fromkeys((*FLOAT_DOTS.instructions, *MIXED.instructions))),
    operands=MIXED_VECTORS.operands,
    unit=MIXED,
)
