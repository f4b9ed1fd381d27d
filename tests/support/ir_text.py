"""A small program as IR text, written as a person writes it, and what it computes, by numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SMALL = """\
# Three kernels by hand: y = (2 x) * w + b, with an array of scratch in the second one.
module small

constant weights : buffer<8xi8> = data<8xi8> "w"
constant bias : buffer<8xi16> = data<8xi16> [1, -2, 3, -4, 5, -6, 7, -8]

kernel small_twice(x : buffer<8xi8> r, y : buffer<8xi16> w) on cpu {
  for i : i32 in 0 .. 8 {
    y[i] = i16(i32(x[i]) * 2)
  }
}

kernel small_scale(x : buffer<8xi16> r, w : buffer<8xi8> r parameter, y : buffer<8xi32> w) on cpu {
  allocate work : buffer<8xi32>
  for i : i32 in 0 .. 8 {
    work[i] = i32(x[i]) * i32(w[i])
  }
  for k : i32 in 0 .. 8 {
    y[k] = work[k]
  }
}

kernel small_add(x : buffer<8xi32> r, b : buffer<8xi16> r parameter, y : buffer<8xi32> w) on cpu {
  for i : i32 in 0 .. 8 {
    y[i] = x[i] + i32(b[i])
  }
}

entry main(x : buffer<8xi8> r, y : buffer<8xi32> w) on cpu {
  allocate doubled : buffer<8xi16>
  allocate scaled : buffer<8xi32>
  call_extern small_twice(&x, &doubled)
  call_extern small_scale(&doubled, &weights, &scaled)
  call_extern small_add(&scaled, &bias, &y)
}
"""
WEIGHTS = np.array([3, -1, 4, -1, 5, -9, 2, -6], np.int8)
BIAS = np.array([1, -2, 3, -4, 5, -6, 7, -8], np.int16)


def write_small(folder: Path, text: str = SMALL) -> Path:
    """The text and its constants in a folder; the text's path."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "small.npz", w=WEIGHTS)
    path = folder / "small.bw"
    path.write_text(text)
    return path


def small_result(x: np.ndarray) -> np.ndarray:
    """What `SMALL` computes."""
    return 2 * x.astype(np.int32) * WEIGHTS + BIAS
