"""LSTM layers of integers on the DSP extension: the sums of two gates of a unit are those of a pair of channels."""

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.isa.dsp.pairing import PAIRINGS, Int64
from bytewright.lower.isa.dsp.pairs import Pairs, are_held
from bytewright.lower.isa.dsp.pixels import MAX_PATCH_BYTES
from bytewright.lower.isa.dsp.words import BYTES, I8, I32, copy_run, widen_runs
from bytewright.lower.kernels.context import Template
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

_PAIRS = len(GATES) // 2
_OPERANDS = ((WEIGHTS, BIAS), (RECURRENT, RECURRENT_BIAS))


def lstm_declines(template: Template, operation: TflQuantizedLstm) -> str | None:
    """Why this is no layer for the kernel below."""
    pairing = PAIRINGS[template.type(0).dtype]
    if sum_type_of(template, operation) is not I32:
        return "32 bits are not proved to hold its sums"
    for weights, bias in (_by_unit(template, *each) for each in _OPERANDS):
        if 2 * weights.shape[1] > MAX_PATCH_BYTES:
            return (
                f"{weights.shape[1]} elements as halves would need more than {MAX_PATCH_BYTES} B of scratch"
            )
        if pairing.packed(weights) is None:
            return "weights of -128 beside negative ones"
        if not are_held(pairing, weights, bias):
            return "32 bits are not proved to hold the sums of two gates"
    return None


def _by_unit(template: Template, weights: int, bias: int) -> tuple[Int64, Int64]:
    """Weights [units * gates, K], with zeros up to a multiple of four elements, and biases, of unit after unit."""
    values = template.constant(weights).astype(np.int64).swapaxes(0, 1)
    values = values.reshape(-1, values.shape[2])
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % BYTES)))
    return padded, template.constant(bias).astype(np.int64).T.reshape(-1)


def write_lstm(template: Template, operation: TflQuantizedLstm) -> None:
    """Writes the kernel."""
    lower_quantized_lstm(template, operation, _GateSums)


class _GateSums:
    """The gates of a unit, over the input and over the hidden state."""

    def __init__(self, template: Template, sum_type: ir.DType) -> None:
        assert sum_type is I32
        self.template, self.body, self.input = template, template.body, template.input(0)
        self.units = template.type(WEIGHTS).fixed_shape[1]
        self.depths = [template.type(number).fixed_shape[2] for number in (WEIGHTS, RECURRENT)]
        self.over_input = self._pairs("weights", WEIGHTS, BIAS)
        self.over_hidden = self._pairs("recurrent", RECURRENT, RECURRENT_BIAS)

    def _pairs(self, name: str, weights: int, bias: int) -> Pairs:
        kernel, pairing = self.template.kernel, PAIRINGS[self.input.dtype]
        values, biases = _by_unit(self.template, weights, bias)
        packed = pairing.packed(values)
        assert packed is not None
        initial = kernel.constant(f"{name}_bias", biases, I32)
        own = kernel.constant(name, packed, I32)
        pitch = 0 if pairing.element is I8 else values.shape[1]
        return Pairs(self.body, pairing, own, lambda channel: load(initial, channel), pitch)

    def __call__(self, n: ir.Expr, t: ir.Expr, before: ir.Buffer, write: WriteUnit) -> None:
        """Elements become halves of words once, for all units."""
        sources = region(self.input, n, t, 0), region(before, 0)
        patches = [self._read(*each) for each in zip(("input", "hidden"), sources, self.depths, strict=True)]
        with self.body.for_("unit", 0, self.units) as unit:
            sums = self._of_unit(unit, patches)
            write(unit, sums)

    def _read(self, name: str, source: ir.Region, depth: int) -> ir.Buffer:
        """Elements of a row as dot products take them."""
        body, kernel, element = self.body, self.template.kernel, self.input.dtype
        run = body.view(f"{name}_run", source, element, depth)
        size = depth + -depth % BYTES
        if depth % BYTES:
            whole = kernel.scratch(f"{name}_elements", (size,), element, BYTES)
            copy_run(body, element, run, (whole, ir.const(0)), depth)
            for place in range(depth, size):
                body.store(whole, place, 0)
            run = whole
        if element is not I8:
            return run
        words = kernel.scratch(f"{name}_words", (size // 2,), I32)
        widen_runs(body, element, [run], (words, ir.const(0)), size)
        return words

    def _of_unit(self, unit: ir.Expr, patches: list[ir.Buffer]) -> Sums:
        first, second = (
            tuple(
                total for number in range(_PAIRS) for (total,) in pairs.sums(1, patch, unit * _PAIRS + number)
            )
            for pairs, patch in zip((self.over_input, self.over_hidden), patches, strict=True)
        )
        return first, second
