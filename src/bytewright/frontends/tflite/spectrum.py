"""Customs of TensorFlow Lite Micro from samples to features of a spectrum, as its audio front ends have them."""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.ops.arithmetic.spectrum import gain_bounds
from bytewright.ops.fourier import TflInverseRealFft, TflRealFft
from bytewright.ops.spectrum import (
    TflAutoScale,
    TflEnergy,
    TflFilterBank,
    TflFixedLog,
    TflGainControl,
    TflRoundedRoot,
    TflSpectralSubtraction,
)

_MOST_SAMPLES = 1 << 15


def convert_real_fft(at: Conversion) -> None:
    """SignalRfft: of each row a spectrum."""
    source, length = _transformed(at)
    samples = source.shape[-1]
    at.require(samples <= length, f"{samples} samples in a transform of {length}")
    rows = at.reshape(at.value_of(source), (source.type.num_elements // samples, samples), "rows")
    spectra = at.emit(TflRealFft(length), (rows,), "spectra")
    at.define(at.reshape(spectra, (*source.shape[:-1], length + 2)))


def convert_inverse_real_fft(at: Conversion) -> None:
    """SignalIrfft: of each spectrum a row."""
    source, length = _transformed(at)
    numbers = source.shape[-1]
    at.require(numbers == length + 2, f"a spectrum of {numbers} elements for {length} samples")
    spectra = at.reshape(at.value_of(source), (source.type.num_elements // numbers, numbers), "spectra")
    rows = at.emit(TflInverseRealFft(length), (spectra,), "rows")
    at.define(at.reshape(rows, (*source.shape[:-1], length)))


def _transformed(at: Conversion) -> tuple[Operand, int]:
    """The operand, and the length of a transform."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input", ir.DType.I32)
    at.require(bool(source.shape), "an input without an axis")
    length = int(at.custom_options.get("fft_length", 0))
    fits = 4 <= length <= _MOST_SAMPLES and length % 2 == 0
    at.require(fits, f"a transform of {length} samples, which is no even number from 4 to {_MOST_SAMPLES}")
    return source, length


def _vector(at: Conversion, position: int, role: str, dtype: ir.DType) -> Operand:
    """An operand of one axis, of this type."""
    found = at.typed_operand(position, role, (dtype,))
    at.require(len(found.shape) == 1, f"the {role} has {len(found.shape)} axes, not 1")
    return found


def convert_auto_scale(at: Conversion) -> None:
    """SignalFftAutoScale: samples, and by how many bits they are scaled."""
    at.require_counts((1,), outputs=2)
    source = _vector(at, 0, "input", ir.DType.I16)
    for position, name in enumerate(at.emit_all(TflAutoScale(), (at.value_of(source),), ("samples", "bits"))):
        at.define(name, position)


def convert_energy(at: Conversion) -> None:
    """SignalEnergy: what TensorFlow Lite Micro leaves as it was is 0."""
    at.require_counts((1,))
    source = _vector(at, 0, "input", ir.DType.I16)
    start, end = (int(at.custom_options.get(name, 0)) for name in ("start_index", "end_index"))
    at.define(at.emit(TflEnergy(start, end), (at.value_of(source),), "energies"))


def convert_filter_bank(at: Conversion) -> None:
    """SignalFilterBank: constant weights, which are not negative, so that 63 bits hold each sum."""
    at.require_counts((6,))
    energies = _vector(at, 0, "input", ir.DType.U32)
    roles = ("weights", "unweights", "starts", "weight starts", "widths")
    arrays = [at.fixed_operand(position, role) for position, role in enumerate(roles, start=1)]
    operands = [_vector(at, position, role, ir.DType.I16) for position, role in enumerate(roles, start=1)]
    channels = int(at.custom_options.get("num_channels", 0))
    sizes = [len(array) for array in arrays]
    at.require(set(sizes[2:]) == {channels + 1}, f"bands {sizes[2:]} of {channels} channels")
    weights, unweights, starts, firsts, widths = (array.astype(np.int64) for array in arrays)
    ends = ((starts, energies.shape[0]), (firsts, min(sizes[:2])))
    fits = all(bool(((begin >= 0) & (widths >= 0) & (begin + widths <= size)).all()) for begin, size in ends)
    at.require(fits, f"bands that leave {energies.shape[0]} energies or {min(sizes[:2])} weights")
    at.require(min(weights.min(), unweights.min()) >= 0, "weights below zero")
    values = [at.value_of(energies), *map(at.value_of, operands, roles)]
    at.define(at.emit(TflFilterBank(), values, "sums"))


def convert_square_root(at: Conversion) -> None:
    """SignalFilterBankSquareRoot."""
    at.require_counts((2,))
    source, bits = _vector(at, 0, "input", ir.DType.U64), at.operand(1, "number of bits")
    values = at.value_of(source), at.value_of(bits)
    at.define(at.emit(TflRoundedRoot(), values, "roots"))


def convert_spectral_subtraction(at: Conversion) -> None:
    """SignalFilterBankSpectralSubtraction: the estimate of the noise, which is a result, is a state."""
    at.require_counts((1,), outputs=2)
    source, options = _vector(at, 0, "input", ir.DType.U32), at.custom_options
    channels = int(options.get("num_channels", 0))
    at.require(source.shape == (channels,), f"{source.shape[0]} signals of {channels} channels")

    def option(name: str) -> int:
        return int(options.get(name, 0))

    operation = TflSpectralSubtraction(
        (option("smoothing"), option("alternate_smoothing")),
        (option("one_minus_smoothing"), option("alternate_one_minus_smoothing")),
        option("min_signal_remaining"),
        option("smoothing_bits"),
        option("spectral_subtraction_bits"),
        bool(option("clamping")),
    )
    stated = f"spectral_subtraction_{at.operator.index}_noise"
    kept = at.graph.keep(stated, stated, source.tensor, ir.TensorType(source.shape, ir.DType.U32), None)
    values = at.value_of(source), kept.current
    for position, name in enumerate(at.emit_all(operation, values, ("signal", "noise"))):
        at.define(name, position)
    at.keep(kept, at.results[1])


def convert_gain_control(at: Conversion) -> None:
    """SignalPCAN: constant gains, which are not negative."""
    at.require_counts((3,))
    signal, estimate = (
        _vector(at, position, role, ir.DType.U32) for position, role in enumerate(("input", "noise"))
    )
    gains = _vector(at, 2, "gains", ir.DType.I16)
    table = at.fixed_operand(2, "gains")
    operation = TflGainControl(int(at.custom_options.get("snr_shift", 0)))
    values = at.value_of(signal), at.value_of(estimate), at.value_of(gains, "gains")
    result = at.emit(operation, values, "signal")
    least = gain_bounds(table)[0]
    at.require(least >= 0, f"a gain of {least}, below zero")
    at.define(result)


def convert_fixed_log(at: Conversion) -> None:
    """SignalFilterBankLog."""
    at.require_counts((1,))
    source, options = _vector(at, 0, "input", ir.DType.U32), at.custom_options
    operation = TflFixedLog(int(options.get("output_scale", 0)), int(options.get("input_correction_bits", 0)))
    at.define(at.emit(operation, (at.value_of(source),), "logarithms"))
