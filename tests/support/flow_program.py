"""The program of two devices with control flow: jobs in both arms of a branch, inside of a loop, and their numbers.

What it branches on is computed on the other device. Numpy computes the same in `flow_output`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from support.two_devices import PROGRAM, TARGET

STATE = """
kernel pair_judge(x : buffer<32xi16> r, flag : buffer<1xbool> w, limit : i32) on core1 {
  flag[0] = i32(x[0]) < limit
}

"""
# Jobs in both arms of a branch on what another device computed, inside of a loop; and a branch on (numbers).
FLOW = (
    PROGRAM.replace("entry main", STATE + "entry main")
    .replace("allocate shifted : buffer<32xi32>", "allocate shifted : buffer<64xi32>")
    .replace("allocate lent :", 'allocate flag : buffer<1xbool, "global.shared">\n  allocate lent :')
    .replace(
        "  call_extern pair_filter(&lent, &taps, &filtered, 7, true)\n"
        "  call_extern pair_shift(&filtered, &shifted)\n"
        "  call_extern pair_narrow(&shifted, &narrow)\n",
        "  for turn : i32 in 0 .. 2 {\n"
        "    let part : i32 = turn * 32\n"
        "    call_extern pair_judge(&lent, &flag, part - 40)\n"
        "    if flag[0] {\n"
        "      call_extern pair_filter(&lent, &taps, &filtered, turn * 3 + 7, true)\n"
        "      call_extern pair_shift(&filtered, &shifted[part])\n"
        "    } else {\n"
        "      call_extern pair_filter(&lent, &taps, &filtered, 5, false)\n"
        "      call_extern pair_shift(&filtered, &shifted[part])\n"
        "    }\n"
        "    if turn < 1 {\n"
        "      call_extern pair_shift(&filtered, &shifted[32])\n"
        "    }\n"
        "    call_extern pair_narrow(&shifted[turn * 32], &narrow)\n"
        "  }\n",
    )
)
# The same; jobs have scratch of an extent that each call decides, and so have the calls between them, which request it.
EXTENTS = (
    FLOW.replace("padded : buffer<35xi16>", 'padded : buffer<n[1..3]x35xi16, "global.shared">')
    .replace("padded[i]", "padded[n - 1, i]")
    .replace("padded[k + 3]", "padded[n - 1, k + 3]")
    .replace("padded[row + tap]", "padded[n - 1, row + tap]")
    .replace("first : i32, wide : bool\n", "first : i32, wide : bool, n : i32\n")
    .replace("turn * 3 + 7, true)", "turn * 3 + 7, true, turn + 2)")
    .replace("5, false)", "5, false, turn + 1)")
    .replace(
        "y : buffer<32xi32> w) on cpu {\n  for i : i32 in 0 .. 32 {\n    y[i] = double_round(x[i], 1431655765, 1)\n",
        "y : buffer<32xi32> w, m : i32) on cpu {\n  allocate own : buffer<m[1..3]x32xi32>\n"
        "  for i : i32 in 0 .. 32 {\n"
        "    own[m - 1, i] = double_round(x[i], 1431655765, 1)\n    y[i] = own[m - 1, i]\n",
    )
    .replace("&shifted[part])", "&shifted[part], turn + 1)")
    .replace("&shifted[32])\n    }", "&shifted[32], 3)\n    }")
)
REQUESTING = TARGET.replace("[device.cpu]\n", "[device.cpu]\nuse-backend-alloc-workspace = true\n")
JUDGE, FIRST, SECOND, NARROW = 2, 3, 5, 8  # steps


def _double_round(x: NDArray[np.int64], multiplier: int, shift: int) -> NDArray[np.int64]:
    """Fixed-point multiplication with two roundings, halves away from zero: the product's upper half, then a shift."""
    product = x * multiplier
    nudge = np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    total = product + nudge
    high = np.where(total >= 0, total >> 31, -((-total) >> 31))
    half = 1 << (shift - 1)
    return np.where(high >= 0, (high + half) >> shift, -((-high + half) >> shift))


def flow_output(x: NDArray[np.int16]) -> NDArray[np.int16]:
    """What `FLOW` computes."""
    lent = x.astype(np.int64)
    padded = np.concatenate([np.zeros(3, np.int64), lent])
    taps = sum(padded[tap : tap + 32] * weight for tap, weight in enumerate((1, -3, 3, -1)))
    shifted, narrow = np.zeros(64, np.int64), np.zeros(32, np.int64)
    for turn in range(2):
        is_low = lent[0] < turn * 32 - 40
        filtered = taps + turn * 3 + 7 if is_low else np.full(32, 5, np.int64)
        shifted[turn * 32 : turn * 32 + 32] = _double_round(filtered, 1431655765, 1)
        if turn < 1:
            shifted[32:] = _double_round(filtered, 1431655765, 1)
        narrow = np.clip(_double_round(shifted[turn * 32 : turn * 32 + 32], 1431655765, 2), -30000, 30000)
    return narrow.astype(np.int16)
