"""float32 conv2d: a block of output channels is accumulated side by side, tap by tap.

Sums of floats may not be reordered, so compilers vectorise over output channels instead of over the sum; weights
are packed [KH][KW][IC][OC] for that. Each sum runs in the reference's order: rows, columns, channels; the bias
comes last.
"""

from __future__ import annotations

import numpy as np

from bytewright.ir.builder import load
from bytewright.ir.expr import Buffer, Expr
from bytewright.ir.prim import LoopKind
from bytewright.ir.types import DType
from bytewright.lower.kernels.context import blocks, counted, repeated
from bytewright.lower.kernels.dense import Convolution, Pixel
from bytewright.lower.scalar import Scalar

F32 = DType.F32
LANES = 16


def write_lanes(convolution: Convolution) -> None:
    """Writes the loop over pixels and blocks of channels."""
    template = convolution.template
    body = template.body
    packed = np.ascontiguousarray(np.transpose(convolution.weights, (1, 2, 3, 0)))
    weights = template.kernel.constant("weights", packed, F32)
    bias = template.kernel.constant("bias", template.constant(2), F32)
    with (
        counted(body, "n", convolution.num) as n,
        template.kernel.rows(convolution.out_height) as y,
        counted(body, "x", convolution.out_width) as x,
    ):
        for first, repeats, size in blocks(convolution.out_channels, LANES):
            with repeated(body, "block", repeats) as block:
                _write_block(convolution, (n, y, x), weights, bias, block * size + first, size)


def _write_block(
    convolution: Convolution, pixel: Pixel, weights: Buffer, bias: Buffer, first: Expr, lanes: int
) -> None:
    template, window = convolution.template, convolution.window
    body = template.body
    sums = template.kernel.scratch("sums", (lanes,), F32)
    with body.for_("lane", 0, lanes, LoopKind.VECTORISED) as lane:
        body.store(sums, lane, 0.0)
    with (
        counted(body, "ky", window.rows.kernel) as ky,
        counted(body, "kx", window.columns.kernel) as kx,
    ):
        tap = convolution.tap(pixel, ky, kx)
        with counted(body, "k", convolution.in_channels) as k:
            value = body.let("value", load(tap, k))
            with body.for_("lane", 0, lanes, LoopKind.VECTORISED) as lane:
                body.add_to(sums, lane, value * load(weights, ky, kx, k, first + lane))
    with body.for_("lane", 0, lanes, LoopKind.VECTORISED) as lane:
        total = load(sums, lane) + load(bias, first + lane)
        template.epilogue.store((*pixel, first + lane), Scalar(total))
