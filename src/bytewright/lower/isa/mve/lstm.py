"""LSTM layers of integers on MVE: four units at a time, whose sums of a gate are those of a block of four channels."""

from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.isa.lines import write_elements
from bytewright.lower.isa.mve.convolve import sum_block
from bytewright.lower.isa.mve.dot_products import CHANNELS, LEAST_DEPTH, Chunks, packed_weights
from bytewright.lower.isa.mve.lanes import UNIT
from bytewright.lower.kernels.context import Template, counted
from bytewright.lower.kernels.lstm import (
    BIAS,
    RECURRENT,
    RECURRENT_BIAS,
    WEIGHTS,
    Sums,
    WriteUnit,
    lower_quantized_lstm,
    sum_type_of,
)
from bytewright.ops.lstm import GATES, TflQuantizedLstm

I8, I32 = ir.DType.I8, ir.DType.I32


def lstm_declines(template: Template, operation: TflQuantizedLstm) -> str | None:
    """Why this is no layer for the kernel below."""
    depths = [template.type(number).fixed_shape[2] for number in (WEIGHTS, RECURRENT)]
    if min(depths) < LEAST_DEPTH:
        return f"a sum is over {min(depths)} elements"
    if sum_type_of(template, operation) is not I32:
        return "32 bits are not proved to hold its sums"
    return None


def write_lstm(template: Template, operation: TflQuantizedLstm) -> None:
    """Writes the kernel."""
    lower_quantized_lstm(template, operation, _GateSums)


@dataclass(frozen=True, slots=True)
class _Packed:
    """Weights and biases of blocks, and memory for the sums of four units' gates."""

    chunks: Chunks
    weights: ir.Buffer
    bias: ir.Buffer
    sums: ir.Buffer


class _GateSums:
    """Blocks of a gate of four units, over the input and over the hidden state."""

    def __init__(self, template: Template, sum_type: ir.DType) -> None:
        assert sum_type is I32
        self.template, self.body, self.input = template, template.body, template.input(0)
        self.dtype, self.units = self.input.dtype, template.type(WEIGHTS).fixed_shape[1]
        self.over_input = self._packed("weights", WEIGHTS, BIAS)
        self.over_hidden = self._packed("recurrent", RECURRENT, RECURRENT_BIAS)

    def _packed(self, name: str, weights: int, bias: int) -> _Packed:
        kernel, more = self.template.kernel, -self.units % CHANNELS
        values = np.pad(self.template.constant(weights), ((0, 0), (0, more), (0, 0)))
        biases = np.pad(self.template.constant(bias), ((0, 0), (0, more)))
        depth, blocks = values.shape[2], (len(GATES), -1, CHANNELS)
        by_block = values.reshape(*blocks, depth).swapaxes(0, 1).reshape(-1, depth)
        return _Packed(
            Chunks(depth, self.dtype),
            kernel.constant(name, packed_weights(by_block, self.dtype), I8),
            kernel.constant(f"{name}_bias", biases.reshape(blocks).swapaxes(0, 1).reshape(-1), I32),
            kernel.scratch(f"{name}_sums", (len(GATES) * CHANNELS,), I32),
        )

    def __call__(self, n: ir.Expr, t: ir.Expr, before: ir.Buffer, write: WriteUnit) -> None:
        """Four units after another; they are lanes."""
        sources = region(self.input, n, t, 0), region(before, 0)
        whole, rest = divmod(self.units, CHANNELS)
        with counted(self.body, "block", whole) as block:
            self._write_block(block, CHANNELS, sources, write)
        if rest:
            self._write_block(ir.const(whole), rest, sources, write)

    def _write_block(
        self, block: ir.Expr, count: int, sources: tuple[ir.Region, ir.Region], write: WriteUnit
    ) -> None:
        with counted(self.body, "gate", len(GATES)) as gate:
            for packed, source in zip((self.over_input, self.over_hidden), sources, strict=True):
                self._write_sums(packed, source, block * len(GATES) + gate, gate)
        write_elements(self.body, UNIT, count, lambda lane: write(block * CHANNELS + lane, self._sums(lane)))

    def _write_sums(self, packed: _Packed, source: ir.Region, number: ir.Expr, gate: ir.Expr) -> None:
        chunks, total = packed.chunks, UNIT.register(self.body, "total")
        weights, bias = (
            region(packed.weights, number * chunks.block_bytes),
            region(packed.bias, number * CHANNELS),
        )
        self.body.execute(sum_block(1, chunks.depth, self.dtype), total, source, weights, bias)
        self.body.execute(UNIT.stores[I32], region(packed.sums, gate * CHANNELS), total)

    def _sums(self, lane: ir.Expr) -> Sums:
        first, second = (
            tuple(load(packed.sums, gate * CHANNELS + lane) for gate in range(len(GATES)))
            for packed in (self.over_input, self.over_hidden)
        )
        return first, second
