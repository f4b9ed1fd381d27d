"""Pads wider than the window reaches, taken up by a convolution: windows that lie beside the input altogether.

Kernels of every instruction set equal LiteRT: in plain C with sanitizers, and where this machine has the instructions
with those too.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.target.isa.find import require_isa
from bytewright.target.isa.this_machine import this_machine
from support.against_reference import assert_equals_reference
from support.many_models import SANITIZERS
from support.random_models import RandomModel
from support.tiers import some
from tflite_writer import ModelBuilder

DTYPES = ("int8", "float32")
TARGETS = ("x86-64-v4-vnni", "x86-64-v3", "mps3-an547", "mps2-an386", "aarch64")
SANITIZED = ("-O0", *SANITIZERS)
DEPTH = 16
# Height and width of the input; top, bottom, left and right of the pad; kernel, stride and dilation.
WINDOWS = (
    ((1, 1), (0, 0, 2, 0), (1, 1), 4, 1),
    ((1, 1), (2, 1, 2, 1), (1, 1), 4, 1),
    ((3, 2), (0, 0, 5, 0), (2, 2), 4, 1),
    ((3, 2), (3, 1, 7, 0), (2, 3), 4, 2),
    ((3, 2), (3, 4, 7, 9), (3, 2), 3, 1),
    ((4, 5), (0, 0, 0, 9), (2, 2), 1, 1),
    ((4, 5), (6, 0, 9, 0), (3, 3), 2, 1),
)


def padded(dtype: str, number: int, *, is_depthwise: bool) -> RandomModel:
    """PAD, then a convolution without padding of its own."""
    (height, width), (top, bottom, left, right), (rows, columns), stride, dilation = WINDOWS[number]
    generator, builder, is_int8 = np.random.default_rng(number), ModelBuilder(), dtype == "int8"

    def scaled(scale: Any, zero_point: int = 0) -> dict[str, Any]:
        return {"scale": scale, "zero_point": zero_point} if is_int8 else {}

    def values(*shape: int) -> np.ndarray:
        drawn = generator.integers(-127, 128, shape)
        return drawn.astype(np.int8) if is_int8 else (drawn / 8).astype(np.float32)

    tall, wide = height + top + bottom, width + left + right
    outputs = [
        (extent - (size - 1) * dilation - 1) // stride + 1 for extent, size in ((tall, rows), (wide, columns))
    ]
    source = builder.tensor("x", (1, height, width, DEPTH), dtype, **scaled(0.05, 7))
    widths = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
    pads = builder.constant("pads", widths)
    middle = builder.tensor("padded", (1, tall, wide, DEPTH), dtype, **scaled(0.05, 7))
    builder.operator("PAD", [source, pads], [middle])
    shape = (1, rows, columns, DEPTH) if is_depthwise else (DEPTH, rows, columns, DEPTH)
    weights = builder.constant("weights", values(*shape), **scaled(0.01))
    bias_values = generator.integers(-4000, 4000, DEPTH)
    bias = builder.constant(
        "bias",
        bias_values.astype(np.int32) if is_int8 else (bias_values / 8).astype(np.float32),
        **scaled(0.05 * 0.01),
    )
    result = builder.tensor("y", (1, *outputs, DEPTH), dtype, **scaled(0.5, -3))
    options: dict[str, Any] = {"padding": "VALID", "stride_h": stride, "stride_w": stride}
    options |= {"dilation_h_factor": dilation, "dilation_w_factor": dilation, "activation": "NONE"}
    if is_depthwise:
        options["depth_multiplier"] = 1
    kind = "DEPTHWISE_CONV_2D" if is_depthwise else "CONV_2D"
    builder.operator(kind, [middle, weights, bias], [result], **options)
    content = builder.build([source], [result])
    return RandomModel(content, f"{kind} {dtype} {WINDOWS[number]}", ((1, height, width, DEPTH),), dtype)


def models(dtype: str) -> list[RandomModel]:
    """Both kinds of convolution over all windows."""
    kinds = (False, True)
    return [padded(dtype, number, is_depthwise=kind) for number in range(len(WINDOWS)) for kind in kinds]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_plain_c(tmp_path: Path, target: str, dtype: str) -> None:
    assert_equals_reference(models(dtype), tmp_path, target=target)


@pytest.mark.parametrize(("target", "dtype"), some(product(TARGETS, DTYPES), every=5))
def test_plain_c_with_sanitizers(tmp_path: Path, target: str, dtype: str) -> None:
    assert_equals_reference(models(dtype), tmp_path, target=target, flags=SANITIZED)


@pytest.mark.parametrize(("target", "dtype"), some(product(TARGETS[:2], DTYPES), every=2))
def test_instructions_of_this_machine(tmp_path: Path, target: str, dtype: str) -> None:
    isa = require_isa(target)
    if not this_machine().executes(isa) or this_machine().lacks(isa):
        pytest.skip(f"this machine does not have what {target} needs")
    assert_equals_reference(models(dtype), tmp_path, target=target, flags=(*SANITIZED, *isa.flags))
