"""conv2d by lanes: a block of output channels is accumulated side by side, tap by tap.

Sums of floats may not be reordered, so for float32 compilers vectorise over output channels instead of over the
sum; each sum runs in the reference's order, and the bias comes last. For int8 it serves convolutions with so few
output channels that dot products would leave vector units idle. Weights are packed [K][OC].
"""

from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.accumulator import Folded
from bytewright.lower.kernels.context import blocks, counted, named, note_block, repeated
from bytewright.lower.kernels.conv2d_dot import folded_bias
from bytewright.lower.kernels.dense import Convolution, Pixel
from bytewright.lower.kernels.window import Axis
from bytewright.lower.scalar import Scalar

I8, I32, F32 = ir.DType.I8, ir.DType.I32, ir.DType.F32
INTEGER_LANES = 16


@dataclass(frozen=True, slots=True)
class _Operands:
    """The kernel's parameters; `folded` is None for float32."""

    weights: ir.Buffer
    bias: ir.Buffer
    folded: Folded | None

    @property
    def sum_type(self) -> ir.DType:
        """Type of the accumulators."""
        return F32 if self.folded is None else I32


def write_lanes(convolution: Convolution) -> None:
    """Writes the loop over pixels and blocks of channels."""
    template = convolution.template
    body, kernel = template.body, template.kernel
    packed = np.ascontiguousarray(convolution.weights.reshape(convolution.out_channels, -1).T)
    if template.type(0).dtype is F32:
        bias = kernel.constant("bias", template.constant(2), F32)
        operands = _Operands(kernel.constant("weights", packed, F32), bias, None)
        lanes = template.style.float_lanes
    else:
        folded = folded_bias(convolution, 0)
        bias = kernel.constant("bias", folded.bias, I32)
        operands = _Operands(kernel.constant("weights", packed, I8), bias, folded)
        lanes = INTEGER_LANES
    with (
        counted(body, "n", convolution.num) as n,
        kernel.rows(convolution.out_height) as y,
        counted(body, "x", convolution.out_width) as x,
    ):
        for first, repeats, size in blocks(convolution.out_channels, lanes):
            note_block(body, size, repeats)
            with repeated(body, "block", repeats) as block:
                _write_block(convolution, (n, y, x), operands, block * size + first, size)


def _write_block(
    convolution: Convolution, pixel: Pixel, operands: _Operands, first: ir.Expr, lanes: int
) -> None:
    template = convolution.template
    body, dtype = template.body, operands.sum_type
    sums = template.kernel.scratch("sums", (lanes,), dtype)
    is_float = operands.folded is None
    with body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane:
        body.store(sums, lane, ir.const(0, dtype) if is_float else load(operands.bias, first + lane))
    accumulate = _accumulate_taps if is_float else _accumulate_rows
    accumulate(convolution, pixel, operands.weights, sums, first)
    with body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane:
        total = load(sums, lane)
        if operands.folded is None:
            value = Scalar(total + load(operands.bias, first + lane))
        else:
            value = Scalar(total, operands.folded.low, operands.folded.high)
        template.epilogue.store((*pixel, first + lane), value)


def _accumulate_taps(
    convolution: Convolution, pixel: Pixel, weights: ir.Buffer, sums: ir.Buffer, first: ir.Expr
) -> None:
    """Tap by tap; a tap outside the input is a view of zeros."""
    body, window = convolution.template.body, convolution.window
    with (
        counted(body, "ky", window.rows.kernel) as ky,
        counted(body, "kx", window.columns.kernel) as kx,
    ):
        tap = convolution.tap(pixel, ky, kx)
        with counted(body, "k", convolution.in_channels) as k:
            index = (ky * window.columns.kernel + kx) * convolution.in_channels + k
            _multiply_add(convolution, load(tap, k), weights, index, sums, first)


def _accumulate_rows(
    convolution: Convolution, pixel: Pixel, weights: ir.Buffer, sums: ir.Buffer, first: ir.Expr
) -> None:
    """Row by row of the window, columns and channels as one axis; outside the input, the zero point."""
    body, window, depth = convolution.template.body, convolution.window, convolution.in_channels
    n, y, x = pixel
    row_length = window.columns.kernel * depth
    merged = Axis(
        size=window.columns.size * depth,
        out=window.columns.out,
        kernel=row_length,
        stride=window.columns.stride * depth,
        dilation=1,
        pad_before=window.columns.pad_before * depth,
    )
    with counted(body, "ky", window.rows.kernel) as ky:
        iy = named(body, "iy", window.rows.tap(y, ky))
        with counted(body, "k", row_length) as k:
            ix = named(body, "ix", merged.tap(x, k))
            inside = merged.contains(ix, k, window.rows.contains(iy, ky))
            rows = convolution.template.input_as(0, (convolution.num, window.rows.size, merged.size))
            value = ir.select(inside, load(rows, n, iy, ix), ir.const(convolution.zero_point, I8))
            _multiply_add(convolution, value, weights, ky * row_length + k, sums, first)


def _multiply_add(
    convolution: Convolution,
    activation: ir.Expr,
    weights: ir.Buffer,
    index: ir.Expr,
    sums: ir.Buffer,
    first: ir.Expr,
) -> None:
    body = convolution.template.body
    value = body.let("value", ir.cast(activation, sums.dtype))
    lanes = ir.num_elements(sums)
    with body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane:
        body.add_to(sums, lane, value * ir.cast(load(weights, index, first + lane), sums.dtype))
