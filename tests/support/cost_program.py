"""A program whose calls of one kernel cost what numbers say: in a loop, in both arms of a branch, and by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bytewright

TURNS, IN_THEN, IN_OTHERWISE, AFTER = 6, 3, 11, 20
JUDGE, THEN, OTHERWISE, LAST = 0, 1, 2, 3  # steps
_KERNELS = """\
module costs

input %x : tensor<64xi8>
output %y : tensor<64xi8>

kernel costs_judge(x : buffer<64xi8> r, flag : buffer<1xbool> w, turn : i32) on cpu {
  flag[0] = i32(x[turn]) < 0
}

kernel costs_work(x : buffer<64xi8> r, y : buffer<64xi8> w, times : i32) on cpu {
  for i : i32 in 0 .. 64 {
    y[i] = x[i]
  }
  for turn : i32 in 0 .. times {
    for k : i32 in 0 .. 64 {
      y[k] = i8(i32(y[k]) * 3 + turn)
    }
  }
}

"""
FLOW = f"""{_KERNELS}entry main(x : buffer<64xi8> r, y : buffer<64xi8> w) on cpu {{
  allocate flag : buffer<1xbool>
  allocate made : buffer<64xi8>
  for turn : i32 in 0 .. {TURNS} {{
    call_extern costs_judge(&x, &flag, turn)
    if flag[0] {{
      call_extern costs_work(&x, &made, {IN_THEN})
    }} else {{
      call_extern costs_work(&x, &made, {IN_OTHERWISE})
    }}
  }}
  call_extern costs_work(&made, &y, {AFTER})
}}
"""
# One call, of memory of the application: there is no workspace.
ALONE = f"""{_KERNELS}entry main(x : buffer<64xi8> r, y : buffer<64xi8> w) on cpu {{
  call_extern costs_work(&x, &y, @times@)
}}
"""


def write_flow(folder: Path, target: str) -> Path:
    """The bundle with all of it."""
    return _write(folder, FLOW, target)


def write_alone(folder: Path, target: str, times: int) -> Path:
    """The bundle with one call."""
    return _write(folder, ALONE.replace("@times@", str(times)), target)


def _write(folder: Path, text: str, target: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "costs.bw").write_text(text, encoding="utf-8")
    return bytewright.compile(folder / "costs.bw", target=target).write(folder / "costs")


def cost_input(num_negative: int) -> NDArray[np.int8]:
    """An input with which so many of the turns go into the first arm."""
    x = np.arange(1, 65, dtype=np.int8)
    x[:num_negative] *= -1
    return x
