"""The two references themselves: published checksums, intermediate tensors, other batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.reference import LiteRt, TfLiteMicro, run_litert
from tflite_writer import ModelBuilder

MODELS = Path(__file__).resolve().parents[4] / "shared" / "models"

CHECKSUMS = {
    "kws_ref_model": ((1, 49, 10, 1), 119849144, 2287096408),
    "vww_96_int8": ((1, 96, 96, 3), 2150813085, 2772717821),
    "pretrainedResnet_quant": ((1, 32, 32, 3), 4165154186, 2220957671),
    "ad01_int8": ((1, 640), 2194976754, 1441320309),
}
"""Input shape, and FNV-1a 32 of the output for the ramp and for zeros."""


def fnv1a(content: bytes) -> int:
    state = 2166136261
    for byte in content:
        state = ((state ^ byte) * 16777619) & 0xFFFFFFFF
    return state


@pytest.mark.parametrize("name", list(CHECKSUMS))
def test_tflm_gives_the_published_checksums(name: str) -> None:
    path = MODELS / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"shared model {path.name} is missing")
    shape, ramp_checksum, zeros_checksum = CHECKSUMS[name]
    index = np.arange(int(np.prod(shape)))
    ramp = (((index * 37 + 11 * (index >> 5)) & 255) - 128).astype(np.int8).reshape(shape)
    interpreter = TfLiteMicro(path)
    assert fnv1a(interpreter.run(ramp)[0].tobytes()) == ramp_checksum
    assert fnv1a(interpreter.run(np.zeros(shape, np.int8))[0].tobytes()) == zeros_checksum


def two_operators() -> bytes:
    """`y = relu(x + x)`, with an open batch."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 3], "float32", shape_signature=[-1, 3])
    middle = builder.tensor("middle", [1, 3], "float32", shape_signature=[-1, 3])
    y = builder.tensor("y", [1, 3], "float32", shape_signature=[-1, 3])
    builder.operator("ADD", [x, x], [middle])
    builder.operator("RELU", [middle], [y])
    return builder.build([x], [y])


def test_intermediate_tensors_and_batches() -> None:
    model = two_operators()
    one = np.array([[-1, 2, -3]], np.float32)
    assert run_litert(model, [one])[0].tolist() == [[0, 4, 0]]
    assert run_litert(model, [one], tensors=["middle"])[0].tolist() == [[-2, 4, -6]]
    interpreter = LiteRt(model, keep_all_tensors=True)
    assert interpreter.run(np.concatenate([one, -one]))[0].tolist() == [[0, 4, 0], [2, 0, 6]]
    assert interpreter.tensor("middle").tolist() == [[-2, 4, -6], [2, -4, 6]]
    with pytest.raises(KeyError):
        interpreter.tensor("absent")


def test_an_interpreter_serves_many_runs() -> None:
    interpreter = TfLiteMicro(two_operators())
    first = interpreter.run(np.array([[1, 2, 3]], np.float32))[0]
    second = interpreter.run(np.array([[4, 5, 6]], np.float32))[0]
    assert first.tolist() == [[2, 4, 6]], "the second run left the first one's result alone"
    assert second.tolist() == [[8, 10, 12]]
