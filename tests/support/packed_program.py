"""A program whose calls pass all that a call can pass, and C of an application that knows nothing of forms of calls.

It doubles, calls a function of the application that returns a status and has scratch, and adds a number.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.ir.packed import Form
from bytewright.options import Options
from bytewright.target import Target, load_target
from support.parsing import parse_module

PROGRAM = """\
module mix

input %x : tensor<8xi16>
output %y : tensor<8xi16>

extern app_reverse(x : buffer<8xi16> r, y : buffer<8xi16> w, gain : f32, bias : i64) on cpu stack=4096 status {
  allocate work : buffer<8xi32>
  allocate more : buffer<4xi8, align=64>
}

kernel mix_twice(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu {
  for i : i32 in 0 .. 8 {
    y[i] = x[i] * 2:i16
  }
}

kernel mix_shift(x : buffer<8xi16> r, y : buffer<8xi16> w, by : i16, up : bool) on cpu {
  for i : i32 in 0 .. 8 {
    y[i] = i16(i32(x[i]) + select(up, i32(by), 0))
  }
}

entry main(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu {
  allocate t : buffer<8xi16>
  allocate u : buffer<8xi16>
  call_extern mix_twice(&x, &t)
  call_extern app_reverse(&t, &u, 0.5:f32, -3:i64)
  call_extern mix_shift(&u, &y, -1:i16, true)
}
"""
# The most arguments of a call: two tensors, two numbers, two of scratch.
MOST_ARGUMENTS = 6
INPUT = np.array([1, -2, 30, -40, 500, -600, 7000, -8000], np.int16)
APPLICATION = """
#include "mix_externals.h"

int32_t app_reverse(const int16_t *x, int16_t *y, float gain, int64_t bias, int32_t *work, int8_t *more)
{
    for (int i = 0; i < 8; ++i) {
        work[i] = x[7 - i];
    }
    for (int i = 0; i < 4; ++i) {
        more[i] = (int8_t)i;
    }
    for (int i = 0; i < 8; ++i) {
        y[i] = (int16_t)((float)work[i] * gain + (float)bias);
    }
    return x[0] == 200 ? 7 : 0;
}
"""
# A program that calls packed forms; `main` is open.
RUN = """
#include "mix_packed.h"

static mix_context context;
static int16_t x[8] = {1, -2, 30, -40, 500, -600, 7000, -8000}, y[8];

static int32_t run_packed(int32_t num_arguments, int32_t *codes, void *resource)
{
    mix_argument arguments[3] = {{.pointer = &context}, {.constant = x}, {.pointer = y}};
    memset(y, 0, sizeof y);
    return mix_run_packed(arguments, codes, num_arguments, NULL, NULL, resource);
}

int main(void)
{
    static int64_t memory[MIX_RAM_WORKSPACE_SIZE / 8 + 17];
    static int32_t work[8];
    static MIX_ALIGNED(64) int8_t more[4];
    int32_t codes[3] = {MIX_ARG_POINTER, MIX_ARG_POINTER, MIX_ARG_POINTER};
    uint8_t *const base = (uint8_t *)memory + (128 - (uintptr_t)memory % 128) % 128;
    const mix_workspaces workspaces = {{base, MIX_RAM_WORKSPACE_SIZE}};

    (void)work;
    (void)more;
    SHOW("set", mix_set_workspaces(&context, &workspaces));
"""


def result(x: NDArray[np.int16]) -> NDArray[np.int16]:
    """What comes out."""
    reversed_ = (2 * x).astype(np.int16)[::-1].astype(np.float32)
    return (np.trunc(reversed_ * np.float32(0.5) + np.float32(-3)) - 1).astype(np.int16)


def compiled(text: str = PROGRAM, target: Target | None = None, **forms: Form) -> Compiled:
    """The bundle of a program, with `calling_form` and `entry_form`."""
    return compile_model(parse_module(text, {}, {}), target or load_target("host"), Options(**forms))


def bundle(folder: Path, text: str = PROGRAM, target: Target | None = None, **forms: Form) -> Path:
    """The same, in a folder."""
    write_bundle(compiled(text, target, **forms).files, folder / "bundle")
    return folder / "bundle"
