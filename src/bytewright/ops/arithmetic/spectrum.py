"""Tables and bounds of what TensorFlow Lite Micro makes of a spectrum.

Source: `signal/src/log.cc` and `pcan_argc_fixed.cc` of github.com/tensorflow/tflite-micro, measured.
"""

import math

import numpy as np
from numpy.typing import NDArray

U32_MAX = 2**32 - 1
LOG_FRACTION_BITS = 16
"""Of a logarithm, before it is scaled."""
LOG_SEGMENT_BITS = 7
LOG_OF_TWO = 45426
"""ln 2 with 16 fraction bits."""
GAIN_SEGMENTS = 33
"""Lengths of a number of 32 bits: 0 to 32 bits."""
GAIN_FRACTION_BITS = 10
SHRINK_FROM = 2 << 12
"""From here on what is above the noise is shrunk along a line, below along a parabola."""


def log_corrections() -> NDArray[np.int32]:
    """By how much the binary logarithm of 1 + i/128 exceeds i/128, with 16 fraction bits, for i of 0 to 129.

    The last entry, which only the end of the last segment reads, is 0.
    """
    segments = 1 << LOG_SEGMENT_BITS
    exact = [math.log2(1 + i / segments) - i / segments for i in range(segments + 1)]
    scaled = [round(each * (1 << LOG_FRACTION_BITS)) for each in exact]
    return np.array([*scaled, 0], np.int32)


GAIN_STEP, GAIN_FIRST = 4, -6
"""Where the three numbers of a segment of gains begin: of estimates of so many bits, from two on."""
MOST_GAINS = GAIN_STEP * 32 + GAIN_FIRST + 3
"""Entries that the greatest estimate needs."""


def gains_of(estimates: NDArray[np.int64], table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The gain for each estimate of the noise: a parabola in each power of two, the first entries up to two."""
    bits = np.array([int(each).bit_length() for each in estimates.reshape(-1)]).reshape(estimates.shape)
    bits = np.maximum(bits, 2)
    wide = estimates << np.maximum(11 - bits, 0) >> np.maximum(bits - 11, 0)
    fraction = wide & ((1 << GAIN_FRACTION_BITS) - 1)
    first = GAIN_STEP * bits + GAIN_FIRST
    slope = (table[first + 2] * fraction >> 5) + (table[first + 1] << 5)
    found = ((slope * fraction + (1 << 14)) >> 15) + table[first]
    return np.where(estimates <= 2, table[np.minimum(estimates, 2)], found.astype(np.int16))


def gain_bounds(table: NDArray[np.int16]) -> tuple[int, int]:
    """The least and the greatest gain that a table of them has for any estimate."""
    wide = table.astype(np.int64)
    fractions = np.arange(1 << GAIN_FRACTION_BITS, dtype=np.int64)
    found = [wide[:3]]
    for bits in range(2, GAIN_SEGMENTS):
        power = np.int64(1) << (bits - 1)
        within = power + (fractions << (bits - 11) if bits >= 11 else fractions >> (11 - bits))
        found.append(gains_of(np.maximum(within, 3), wide))
    return min(int(each.min()) for each in found), max(int(each.max()) for each in found)
