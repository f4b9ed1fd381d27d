"""What TensorFlow Lite Micro makes of samples and of their spectrum, in unsigned integers: features of sound."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.arithmetic.spectrum import (
    LOG_FRACTION_BITS,
    LOG_OF_TWO,
    LOG_SEGMENT_BITS,
    MOST_GAINS,
    SHRINK_FROM,
    U32_MAX,
    gain_bounds,
    gains_of,
    log_corrections,
)
from bytewright.ops.checks import only, require, require_count, require_dtype, require_rank, two

I16, I32, U32, U64 = ir.DType.I16, ir.DType.I32, ir.DType.U32, ir.DType.U64


def _vector(operand: ir.TensorType, dtype: ir.DType, role: str) -> int:
    """The number of elements of an operand of one axis."""
    require_dtype(operand, (dtype,), role)
    require_rank(operand, 1, role)
    return operand.fixed_shape[0]


@dataclass(frozen=True, slots=True)
class TflAutoScale(ir.Operation):
    """samples i16 [N] -> samples times the greatest power of two that 16 bits have room for, and its exponent i32 [].

    The room is that of the greatest magnitude, kept in 16 bits: -32768 is its own, and what follows it is greater.
    """

    name: ClassVar[str] = "tfl_auto_scale"

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Samples, and a number."""
        count = _vector(only(inputs), I16, "what is scaled")
        return ir.TensorType((count,), I16), ir.TensorType((), I32)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (samples,) = inputs
        greatest = 0
        for sample in samples.tolist():
            if sample > greatest:
                greatest = sample
            elif -sample > greatest:
                greatest = -sample if sample > I16.bounds[0] else sample
        bits = 15 - greatest.bit_length() if greatest > 0 else 0
        return (samples.astype(np.int64) << bits).astype(np.int16), np.array(bits, np.int32)


@dataclass(frozen=True, slots=True)
class TflEnergy(ir.Operation):
    """spectrum i16 [2N] -> squares of the magnitudes of its complex numbers, u32 [N], of `start` to before `end`.

    The others are 0.
    """

    name: ClassVar[str] = "tfl_energy"
    start: int
    end: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Half as many numbers."""
        count = _vector(only(inputs), I16, "the spectrum")
        require(count % 2 == 0, f"a spectrum of {count} elements, an odd number")
        require(
            0 <= self.start <= self.end <= count // 2,
            f"the numbers {self.start} to {self.end} of {count // 2}",
        )
        return (ir.TensorType((count // 2,), U32),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        squares = (inputs[0].astype(np.int64).reshape(-1, 2) ** 2).sum(axis=1)
        places = np.arange(len(squares))
        is_within = (places >= self.start) & (places < self.end)
        return (np.where(is_within, squares, 0).astype(np.uint32),)


@dataclass(frozen=True, slots=True)
class TflFilterBank(ir.Operation):
    """energies u32 [N], falling and rising weights i16 [W], and of C+1 bands first energy, first weight and width.

    -> sums u64 [C]: of each band but the first the energies by the falling weights, and those of the band before by the
    rising ones. Bands are i16 [C+1], and constant, as the weights are, which are not negative: widths and weights have
    15 bits and energies 32, so that a sum has 63.
    """

    name: ClassVar[str] = "tfl_filter_bank"
    operand_names: ClassVar[tuple[str, ...]] = (
        *("energies", "weights", "unweights", "starts", "weight_starts", "widths"),
    )

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """A sum a channel."""
        require_count(inputs, len(self.operand_names))
        _vector(inputs[0], U32, "the energies")
        sizes = [
            _vector(operand, I16, name)
            for operand, name in zip(inputs[1:], self.operand_names[1:], strict=True)
        ]
        require(sizes[0] == sizes[1], f"{sizes[0]} weights and {sizes[1]} of the next band")
        require(len(set(sizes[2:])) == 1 and sizes[2] >= 2, f"bands of {sizes[2:]} numbers")
        return (ir.TensorType((sizes[2] - 1,), U64),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        energies, weights, unweights, starts, weight_starts, widths = (
            each.astype(np.int64) for each in inputs
        )
        sums: list[int] = []
        carried = 0
        for start, first, width in zip(starts, weight_starts, widths, strict=True):
            own = energies[start : start + width]
            sums.append(carried + int(own @ weights[first : first + width]))
            carried = int(own @ unweights[first : first + width])
        return (np.array(sums[1:], np.uint64),)


@dataclass(frozen=True, slots=True)
class TflRoundedRoot(ir.Operation):
    """x u64 [N], bits i32 [] of 0 to 31 -> square roots u32 [N], rounded to the nearest, divided by 2^bits.

    A root of what 32 bits hold is 16 bits long at most, others 32.
    """

    name: ClassVar[str] = "tfl_rounded_root"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "bits")

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """As many roots."""
        operand, bits = two(inputs)
        require_dtype(bits, (I32,), "the number of bits")
        require(bits.num_elements == 1, f"{bits.num_elements} numbers of bits")
        return (ir.TensorType((_vector(operand, U64, "what roots are of"),), U32),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        values, bits = inputs
        return (
            np.array([_rounded_root(int(value)) >> int(bits.reshape(())) for value in values], np.uint32),
        )


def _rounded_root(value: int) -> int:
    root = math.isqrt(value)
    most = U32_MAX if value > U32_MAX else U32_MAX >> 16
    return min(root + (value - root * root > root), most)


@dataclass(frozen=True, slots=True)
class TflSpectralSubtraction(ir.Operation):
    """signal, noise estimate u32 [C] -> signal without the noise, and the noise estimate from here on, both u32 [C].

    The estimate, of `smoothing_bits` more, moves towards the signal by a factor in units of 2^-bits; even channels and
    odd ones have one each. It wraps at 32 bits, as the signal does with these bits more.

    Attributes:
        smoothing, rest: What signal and estimate go into the next estimate by, of even and odd channels.
        remaining: Of the signal, what stays at least, in the same units.
        clamps: Whether the estimate is not above the signal.
    """

    name: ClassVar[str] = "tfl_spectral_subtraction"
    operand_names: ClassVar[tuple[str, ...]] = ("signal", "estimate")
    smoothing: tuple[int, ...]
    rest: tuple[int, ...]
    remaining: int
    smoothing_bits: int
    bits: int
    clamps: bool

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operands' types."""
        signal, estimate = (_vector(operand, U32, "an operand") for operand in two(inputs))
        require(signal == estimate, f"{estimate} estimates for {signal} channels")
        factors = (*self.smoothing, *self.rest, self.remaining)
        require(len(factors) == 5 and min(factors) >= 0, f"the factors {factors}")
        most = max(*(sum(pair) for pair in zip(self.smoothing, self.rest, strict=True)), self.remaining)
        require(most < 2**31, f"factors of {most} in all, for which 64 bits do not do")
        require(0 <= self.smoothing_bits < 32 and 0 <= self.bits < 63, "shifts that leave the numbers")
        return (ir.TensorType((signal,), U32),) * 2

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        signal, estimate = (each.astype(np.int64) for each in inputs)
        parity = np.arange(len(signal)) % 2
        smoothing, rest = (np.array(each, np.int64)[parity] for each in (self.smoothing, self.rest))
        scaled = (signal << self.smoothing_bits) & U32_MAX
        moved = ((scaled * smoothing + estimate * rest) >> self.bits) & U32_MAX
        noise = np.minimum(moved, scaled)
        floor = ((signal * self.remaining) >> self.bits) & U32_MAX
        cleaned = np.maximum((scaled - noise) >> self.smoothing_bits, floor)
        return cleaned.astype(np.uint32), (noise if self.clamps else moved).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class TflGainControl(ir.Operation):
    """signal, noise estimate u32, gains i16 [G] -> signal u32 times the gain of its noise, shrunk (PCAN).

    Gains are constant, three entries for each power of two, and not negative; `arithmetic.spectrum` has the formula.

    Attributes:
        shift: The bits that the product loses.
    """

    name: ClassVar[str] = "tfl_gain_control"
    operand_names: ClassVar[tuple[str, ...]] = ("signal", "estimate", "gains")
    shift: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The signal's type."""
        require_count(inputs, 3)
        signal, estimate = (_vector(operand, U32, "an operand") for operand in inputs[:2])
        require(signal == estimate, f"{estimate} estimates for {signal} channels")
        found = _vector(inputs[2], I16, "the gains")
        require(
            found >= MOST_GAINS, f"{found} gains, where the greatest estimate has its at {MOST_GAINS - 1}"
        )
        require(0 <= self.shift < 63, f"a shift of {self.shift}")
        return (ir.TensorType((signal,), U32),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        signal, estimate, table = (each.astype(np.int64) for each in inputs)
        require(gain_bounds(inputs[2].astype(np.int16))[0] >= 0, "gains below zero")
        ratio = ((signal * gains_of(estimate, table)) >> self.shift) & U32_MAX
        parabola = np.minimum(ratio, SHRINK_FROM) ** 2 >> 20
        return (np.where(ratio < SHRINK_FROM, parabola, (ratio >> 6) - 64).astype(np.uint32),)


@dataclass(frozen=True, slots=True)
class TflFixedLog(ir.Operation):
    """x u32 -> i16: natural logarithm of x times 2^input_bits, modulo 2^32, in units of 1/output_scale, saturating.

    0 up to one. The binary one is a line in each of 128 parts of a power of two, with 16 fraction bits.
    """

    name: ClassVar[str] = "tfl_fixed_log"
    output_scale: int
    input_bits: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape."""
        operand = only(inputs, U32)
        require(0 <= self.output_scale < 2**31, f"an output scale of {self.output_scale}")
        require(0 <= self.input_bits < 32, f"a shift of {self.input_bits}")
        return (ir.TensorType(operand.shape, I16),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        table = log_corrections().tolist()
        scaled = (inputs[0].astype(np.int64) << self.input_bits) & U32_MAX
        found = [self._logarithm(value, table) for value in scaled.reshape(-1).tolist()]
        return (np.array(found, np.int16).reshape(inputs[0].shape),)

    def _logarithm(self, value: int, table: list[int]) -> int:
        if value <= 1:
            return 0
        whole = value.bit_length() - 1
        fraction = ((value - (1 << whole)) << LOG_FRACTION_BITS) >> whole
        segment = fraction >> (LOG_FRACTION_BITS - LOG_SEGMENT_BITS)
        within = fraction - (segment << (LOG_FRACTION_BITS - LOG_SEGMENT_BITS))
        slope = (table[segment + 1] - table[segment]) * within >> LOG_FRACTION_BITS
        binary = (whole << LOG_FRACTION_BITS) + fraction + table[segment] + slope
        half = 1 << (LOG_FRACTION_BITS - 1)
        natural = (LOG_OF_TWO * binary + half) >> LOG_FRACTION_BITS
        return min(((self.output_scale * natural + half) & U32_MAX) >> LOG_FRACTION_BITS, I16.bounds[1])


OPERATIONS = (
    TflAutoScale,
    TflEnergy,
    TflFilterBank,
    TflFixedLog,
    TflGainControl,
    TflRoundedRoot,
    TflSpectralSubtraction,
)
