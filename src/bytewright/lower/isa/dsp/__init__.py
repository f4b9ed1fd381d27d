"""Arm's DSP extension (Armv7E-M, Armv8-M): two products of 16 bits at once, on Cortex-M4, M7, M33 and later."""

from itertools import product

from bytewright.lower.isa.dsp.conv2d import conv2d_declines, write_conv2d
from bytewright.lower.isa.dsp.depthwise import depthwise_declines, write_depthwise
from bytewright.lower.isa.dsp.dot import dot, dot_of_halves
from bytewright.lower.isa.dsp.lstm import lstm_declines, write_lstm
from bytewright.lower.isa.dsp.matmul import matmul_declines, write_matmul
from bytewright.lower.isa.dsp.narrow import EXTREMA, SUMS
from bytewright.lower.isa.dsp.requantise import SCALE, SCALE_ONCE, SCALE_UP
from bytewright.lower.isa.dsp.taps import BITS, one_row, two_rows
from bytewright.lower.isa.dsp.transpose_conv2d import transpose_conv2d_declines, write_transpose_conv2d
from bytewright.lower.isa.dsp.words import FEATURE, I8, I16, I32, I64, copy_elements, widen
from bytewright.lower.isa.instruction_set import Fields, InstructionSet, IsaTemplate
from bytewright.lower.isa.one_lane import one_lane
from bytewright.lower.isa.reduce import with_reductions
from bytewright.lower.isa.shift_in import shift_in_template
from bytewright.lower.isa.width import Width
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, TransposeConv2d
from bytewright.ops.data import ShiftIn
from bytewright.ops.lstm import TflQuantizedLstm
from bytewright.ops.matmul import TflBatchMatMul

# Instructions are made for the sizes of a kernel. Straight and looped dot products, with and without a rest.
_DOTS, _DOTS_16 = (
    tuple(dot(num_pixels, depth, element) for num_pixels in (1, 2) for depth in (4, 24, 32, 44))
    for element in (I8, I16)
)
_DOTS_APART = tuple(
    dot(*sizes, I16, pitch) for *sizes, pitch in ((1, 4, 4), (1, 36, 40), (2, 8, 8), (2, 28, 44))
)
_HALVES = {
    dtype: tuple(dot_of_halves(*size, num, dtype) for size in sizes for num in (1, 6, 15))
    for dtype, sizes in ((I32, product((1, 2), repeat=2)), (I64, ((1, 1), (2, 1))))
}
_TAPS = {
    (element, bits): (
        *(two_rows(*sizes, bits, element) for sizes in ((1, 4), (3, 12), (5, 8))),
        *(one_row(*sizes, bits, element) for sizes in ((1, 4), (2, 8), (3, 12), (4, 4))),
    )
    for element in (I8, I16)
    for bits in BITS
}
# What neither halves nor bytes of words serve.
_LANE = Width("dsp", 1, {I32: "int32_t"}, FEATURE)
UNIT = one_lane(_LANE, {I8: "int8_t", I16: "int16_t", I32: "int32_t"})
_SCALES = (*SCALE.values(), SCALE_UP, SCALE_ONCE)
DSP = InstructionSet(
    name="dsp",
    features=frozenset({"dsp"}),
    templates=with_reductions(
        "dsp",
        UNIT,
        with_reductions(
            "dsp",
            None,
            {
                Conv2d: (IsaTemplate("dsp.conv2d", write_conv2d, conv2d_declines, by_columns=True),),
                DepthwiseConv2d: (
                    IsaTemplate("dsp.depthwise_conv2d", write_depthwise, depthwise_declines, by_columns=True),
                ),
                TransposeConv2d: (
                    IsaTemplate("dsp.transpose_conv2d", write_transpose_conv2d, transpose_conv2d_declines),
                ),
                ShiftIn: (shift_in_template("dsp", copy_elements),),
                TflQuantizedLstm: (IsaTemplate("dsp.lstm", write_lstm, lstm_declines),),
                TflBatchMatMul: (IsaTemplate("dsp.matmul", write_matmul, matmul_declines),),
            },
            (SUMS, EXTREMA),
        ),
    ),
    instructions=(
        *(*_DOTS, *_DOTS_16, *_DOTS_APART, *_HALVES[I32], *_HALVES[I64]),
        *(widen(*sizes, element) for sizes in ((1, 1), (1, 4), (2, 1), (2, 4)) for element in (I8, I16)),
        *(copy_elements(count, element) for count in (1, 3, 4, 16) for element in (I8, I16)),
        *(each for taps in _TAPS.values() for each in taps),
        *_SCALES,
        *UNIT.instructions,
        *(*SUMS.instructions, *EXTREMA.instructions),
    ),
    operands={
        **_LANE.operands,
        **{(each.name, "activations"): Fields(16, *I8.bounds) for each in _DOTS},
        **{(each.name, "activations"): Fields(16, *I16.bounds) for each in _DOTS_16},
        # Of int8 they are halves for two channels, of int16 bytes.
        **{(each.name, "weights"): Fields(16, *I16.bounds) for each in _DOTS},
        **{(each.name, "weights"): Fields(8, *I8.bounds) for each in (*_DOTS_16, *_DOTS_APART)},
        # Bytes less a zero point, or halves.
        **{
            (each.name, name): Fields(16, *bounds)
            for dtype, bounds in ((I32, (-255, 255)), (I64, I16.bounds))
            for each in _HALVES[dtype]
            for name in ("rows", "columns")
        },
        **{(each.name, f"sum{r}0"): (-(2**62), 2**62) for each in _HALVES[I64] for r in range(2)},
        # In whatever they are stored, weights of taps are bytes.
        **{
            (each.name, "weights"): Fields(bits, *I8.bounds)
            for (_, bits), taps in _TAPS.items()
            for each in taps
        },
        **{
            (each.name, name): bounds
            for each in _SCALES
            for name, bounds in (
                ("value", (-(2**29), 2**29)),
                ("multiplier", (0, 2**31 - 2**16) if each is SCALE_ONCE else (-(2**31), -2)),
                ("shift", (0, 20)),
                ("offset", (-255, 255)),
            )
        },
    },
)
