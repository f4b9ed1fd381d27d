"""LSTM layers of integers on MVE: the sums of a unit's four gates are those of a block of four channels."""

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.isa.mve.convolve import sum_block
from bytewright.lower.isa.mve.dot_products import CHANNELS, LEAST_DEPTH, Chunks, packed_weights
from bytewright.lower.isa.mve.lanes import UNIT
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.lstm import (
    BIAS,
    RECURRENT,
    RECURRENT_BIAS,
    WEIGHTS,
    Sums,
    lower_quantized_lstm,
    sum_type_of,
)
from bytewright.ops.lstm import GATES, TflQuantizedLstm

I8, I32 = ir.DType.I8, ir.DType.I32
assert len(GATES) == CHANNELS


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


class _GateSums:
    """Blocks of the gates of one unit, over the input and over the hidden state."""

    def __init__(self, template: Template, sum_type: ir.DType) -> None:
        assert sum_type is I32
        self.template, self.body, self.input = template, template.body, template.input(0)
        self.dtype = self.input.dtype
        self.over_input = self._packed("weights", WEIGHTS, BIAS)
        self.over_hidden = self._packed("recurrent", RECURRENT, RECURRENT_BIAS)

    def _packed(self, name: str, weights: int, bias: int) -> tuple[Chunks, ir.Buffer, ir.Buffer]:
        """How elements are read; weights and biases, unit by unit."""
        values = self.template.constant(weights)
        depth, kernel = values.shape[2], self.template.kernel
        by_unit = packed_weights(values.swapaxes(0, 1).reshape(-1, depth), self.dtype)
        biases = self.template.constant(bias).T.reshape(-1)
        return (
            Chunks(depth, self.dtype),
            kernel.constant(name, by_unit, I8),
            kernel.constant(f"{name}_bias", biases, I32),
        )

    def __call__(self, n: ir.Expr, t: ir.Expr, unit: ir.Expr, before: ir.Buffer) -> Sums:
        over_input = self._summed("input_sums", self.over_input, region(self.input, n, t, 0), unit)
        return over_input, self._summed("hidden_sums", self.over_hidden, region(before, 0), unit)

    def _summed(
        self,
        name: str,
        packed: tuple[Chunks, ir.Buffer, ir.Buffer],
        source: ir.Region,
        unit: ir.Expr,
    ) -> tuple[ir.Expr, ...]:
        chunks, weights, bias = packed
        total = UNIT.register(self.body, "total")
        block, first = region(weights, unit * chunks.block_bytes), region(bias, unit * CHANNELS)
        self.body.execute(sum_block(1, chunks.depth, self.dtype), total, source, block, first)
        sums = self.template.kernel.scratch(name, (CHANNELS,), I32)
        self.body.execute(UNIT.stores[I32], region(sums, 0), total)
        return tuple(load(sums, gate) for gate in range(CHANNELS))
