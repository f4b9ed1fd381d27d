"""A program of two devices, for boards with a second core: four steps, of which the middle two run on core 1.

What they compute is small enough for numpy; tests change its generated C to see what a run makes of it.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bytewright

BOARD = "mps2-an521"
PAIR = """\
module pair

input %x : tensor<64xi8>
output %y : tensor<64xi8>

constant weights : buffer<4xi8> = data<4xi8> [1, 2, 3, 4]

kernel pair_scale(x : buffer<64xi8> r, by : buffer<4xi8> r parameter, y : buffer<64xi8> w) on cpu {
  for i : i32 in 0 .. 64 {
    y[i] = i8(i32(x[i]) * i32(by[i % 4]))
  }
}

kernel pair_sum(x : buffer<64xi8> r, by : buffer<4xi8> r parameter, y : buffer<64xi8> w) on core1 {
  for i : i32 in 0 .. 64 {
    y[i] = i8(i32(x[i]) + i32(by[(i + 1) % 4]))
  }
}

kernel pair_turn(x : buffer<64xi8> r, y : buffer<64xi8> w, by : i32) on core1 {
  allocate wide : buffer<64xi8>
  for i : i32 in 0 .. 64 {
    wide[i] = x[(i + by) % 64]
  }
  for k : i32 in 0 .. 64 {
    y[k] = wide[63 - k]
  }
}

entry main(x : buffer<64xi8> r, y : buffer<64xi8> w) on cpu {
  allocate own : buffer<64xi8>
  allocate scaled : buffer<64xi8>
  allocate sums : buffer<64xi8>
  allocate turned : buffer<64xi8>
  call_extern pair_scale(&x, &weights, &own)
  call_extern pair_scale(&own, &weights, &scaled)
  call_extern pair_sum(&scaled, &weights, &sums)
  call_extern pair_turn(&sums, &turned, 5)
  call_extern pair_scale(&turned, &weights, &y)
}
"""


def write_pair(folder: Path, text: str = PAIR) -> Path:
    """The bundle of the program."""
    source = folder / "pair.bw"
    source.write_text(text)
    bytewright.compile(source, target=BOARD).write(folder / "pair")
    return folder / "pair"


def pair_input(seed: int) -> NDArray[np.int8]:
    return np.random.default_rng(seed).integers(-128, 128, 64).astype(np.int8)


def pair_output(x: NDArray[np.int8]) -> NDArray[np.int8]:
    weights = np.tile(np.array([1, 2, 3, 4], np.int8), 16)
    sums = x * weights * weights + np.tile(np.array([2, 3, 4, 1], np.int8), 16)
    return (np.roll(sums, -5)[::-1] * weights).astype(np.int8)


def changed(bundle: Path, folder: Path, file: str, pattern: str, replacement: str) -> Path:
    """A copy of the bundle in which one place of one file is another."""
    shutil.copytree(bundle, folder)
    path = folder / file
    text, count = re.subn(pattern, replacement, path.read_text(), count=1, flags=re.DOTALL)
    assert count == 1, f"{file} has no {pattern}"
    path.write_text(text)
    return folder
