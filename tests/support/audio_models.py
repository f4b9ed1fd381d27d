"""Models of one Signal operator each, as audio front ends of TensorFlow Lite Micro have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.recurrent_models import Writer

Array = NDArray[Any]
Shape = tuple[int, ...]
ELEMENT_TYPES = {"float32": 0, "int32": 2, "int16": 7}
SUBTRACTION = {
    "alternate_one_minus_smoothing": 15401,
    "alternate_smoothing": 983,
    "clamping": 0,
    "min_signal_remaining": 819,
    "one_minus_smoothing": 15975,
    "smoothing": 409,
    "smoothing_bits": 10,
    "spectral_subtraction_bits": 14,
}


def transform(shape: Shape, length: int, dtype: str, *, is_inverse: bool = False) -> bytes:
    """Rows of samples, or of spectra."""
    writer = Writer()
    source = writer.tensor(shape, dtype)
    result = writer.tensor((*shape[:-1], length if is_inverse else length + 2), dtype)
    kind = "SignalIrfft" if is_inverse else "SignalRfft"
    writer.custom(kind, [source], [result], T=ELEMENT_TYPES[dtype], fft_length=length)
    return writer.build([source], [result])


def auto_scale(count: int) -> bytes:
    writer = Writer()
    source, result = (writer.tensor((count,), "int16") for _ in range(2))
    bits = writer.tensor((), "int32")
    writer.custom("SignalFftAutoScale", [source], [result, bits])
    return writer.build([source], [result, bits])


def energy(count: int, start: int, end: int) -> bytes:
    """Behind it a slice of what it computes, as the rest is left to chance."""
    writer = Writer()
    source = writer.tensor((count,), "int16")
    energies = writer.tensor((count // 2,), "uint32")
    signed = writer.tensor((count // 2,), "int32")
    result = writer.tensor((max(end - start, 1),), "int32")
    begin, size = (writer.tensor((1,), "int32", values=np.array([n], np.int32)) for n in (start, end - start))
    writer.custom("SignalEnergy", [source], [energies], start_index=start, end_index=end)
    writer.operator("CAST", [energies], [signed], ("CastOptions", {}))
    writer.operator("SLICE", [signed, begin, size], [result], ("SliceOptions", {}))
    return writer.build([source], [result])


def filter_bank(
    count: int, widths: Sequence[int], starts: Sequence[int], weights: Array | None = None, **options: int
) -> bytes:
    """Bands of so many energies from the given ones on; weights lie one band's after the other."""
    writer, random = Writer(), np.random.default_rng(sum(widths))
    given = random.integers(0, 2**15, sum(widths)) if weights is None else weights
    firsts = np.cumsum([0, *widths])[:-1]
    values = [given, 4096 - np.minimum(given, 4096), np.array(starts), firsts, np.array(widths)]
    source = writer.tensor((count,), "uint32")
    constants = [writer.tensor(each.shape, "int16", values=each.astype(np.int16)) for each in values]
    result = writer.tensor((len(widths) - 1,), "uint64")
    options = {"num_channels": len(widths) - 1, **options}
    writer.custom("SignalFilterBank", [source, *constants], [result], **options)
    return writer.build([source], [result])


def square_root(count: int) -> bytes:
    writer = Writer()
    source, bits = writer.tensor((count,), "uint64"), writer.tensor((), "int32")
    result = writer.tensor((count,), "uint32")
    writer.custom("SignalFilterBankSquareRoot", [source, bits], [result])
    return writer.build([source, bits], [result])


def spectral_subtraction(count: int, **changed: int) -> bytes:
    writer = Writer()
    source, result, noise = (writer.tensor((count,), "uint32") for _ in range(3))
    options = {**SUBTRACTION, "num_channels": count, **changed}
    writer.custom("SignalFilterBankSpectralSubtraction", [source], [result, noise], **options)
    return writer.build([source], [result, noise])


def gains(strength: float = 0.95, offset: float = 80.0, bits: int = 21) -> Array:
    """(x + offset)^-strength as a parabola through three points of each power of two, after the values of 0 and 1."""

    def gain(x: float) -> int:
        return min(int((x + offset) ** -strength * 2.0**bits + 0.5), 2**15 - 1)

    found = [gain(0), gain(1)]
    for exponent in range(1, 32):
        low, middle, high = (gain(2.0**exponent * factor) for factor in (1, 1.5, 2))
        slope = 4 * (middle - low) - (high - low)
        found += [low, slope, high - low - slope, 0]
    return np.array(found[:125], np.int16)


def gain_control(count: int, table: Array, shift: int) -> bytes:
    writer = Writer()
    source, noise, result = (writer.tensor((count,), "uint32") for _ in range(3))
    constant = writer.tensor(table.shape, "int16", values=table.astype(np.int16))
    writer.custom("SignalPCAN", [source, noise, constant], [result], snr_shift=shift)
    return writer.build([source, noise], [result])


def fixed_log(count: int, scale: int, bits: int) -> bytes:
    writer = Writer()
    source, result = writer.tensor((count,), "uint32"), writer.tensor((count,), "int16")
    options = {"input_correction_bits": bits, "output_scale": scale}
    writer.custom("SignalFilterBankLog", [source], [result], **options)
    return writer.build([source], [result])


def framer(shape: Shape, size: int, step: int, *, is_filled: bool) -> bytes:
    writer = Writer()
    source = writer.tensor(shape, "int16")
    result = writer.tensor((*shape[:-1], shape[-1] // max(step, 1), size), "int16")
    valid = writer.tensor((), "bool")
    options = {"frame_size": size, "frame_step": step, "prefill": int(is_filled)}
    writer.custom("SignalFramer", [source], [result, valid], **options)
    return writer.build([source], [result, valid])


def stacker(channels: int, left: int, right: int, step: int, **changed: int) -> bytes:
    writer = Writer()
    source = writer.tensor((channels,), "int16")
    result = writer.tensor((channels * (left + right + 1),), "int16")
    valid = writer.tensor((), "bool")
    options = {
        "num_channels": channels,
        "stacker_left_context": left,
        "stacker_right_context": right,
        "stacker_step": step,
    }
    writer.custom("SignalStacker", [source], [result, valid], **(options | changed))
    return writer.build([source], [result, valid])
