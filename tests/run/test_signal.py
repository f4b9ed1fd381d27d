"""Customs of TensorFlow Lite Micro over time, run after run against it; and what is refused of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from run.test_recurrent import assert_the_c_gives, drawn, evaluated
from support.recurrent_models import Writer
from support.reference import TfLiteMicro

pytestmark = pytest.mark.run

Array = NDArray[Any]
RUNS = 7


def circular_buffer(frames: int, zero_point: int = 3, *, is_variable: bool = True, **options: int) -> bytes:
    """Frames of 2x3, behind them an operator that reads what is kept."""
    writer, affine = Writer(), (0.5, zero_point)
    source = writer.tensor((1, 1, 2, 3), "int8", affine)
    kept = writer.tensor((1, frames, 2, 3), "int8", affine, is_variable=is_variable)
    result = writer.tensor((1, frames, 2, 3), "int8", affine)
    writer.custom("CIRCULAR_BUFFER", [source], [kept], **options)
    writer.operator("ADD", [kept, kept], [result], ("AddOptions", {}))
    return writer.build([source], [result])


def delay(shape: tuple[int, ...], length: int) -> bytes:
    writer = Writer()
    source, result = (writer.tensor(shape, "int16") for _ in range(2))
    writer.custom("SignalDelay", [source], [result], delay_length=length)
    return writer.build([source], [result])


def two_delays(first: int, second: int) -> bytes:
    """One behind the other."""
    writer = Writer()
    source, between, result = (writer.tensor((5,), "int16") for _ in range(3))
    writer.custom("SignalDelay", [source], [between], delay_length=first)
    writer.custom("SignalDelay", [between], [result], delay_length=second)
    return writer.build([source], [result])


def window(shape: tuple[int, ...], shift: int, num_weights: int | None = None) -> bytes:
    writer = Writer()
    values = np.random.default_rng(abs(shift)).integers(-(2**15), 2**15, num_weights or shape[-1])
    values[0] = -(2**15)
    source = writer.tensor(shape, "int16")
    weights = writer.tensor(values.shape, "int16", values=values.astype(np.int16))
    result = writer.tensor(shape, "int16")
    writer.custom("SignalWindow", [source, weights], [result], shift=shift)
    return writer.build([source], [result])


def overlap_add(shape: tuple[int, ...], step: int, dtype: str = "int16") -> bytes:
    writer = Writer()
    source = writer.tensor(shape, dtype)
    result = writer.tensor((*shape[:-2], shape[-2] * step), dtype)
    element_type = {"float32": 0, "int16": 7}[dtype]
    writer.custom("SignalOverlapAdd", [source], [result], T=element_type, frame_step=step)
    return writer.build([source], [result])


MODELS = {
    "5 frames": lambda: circular_buffer(5),
    "9 frames": lambda: circular_buffer(9, -128, cycles_max=1),
    "1 frame": lambda: circular_buffer(1, cycles_max=1),
    "delay 0": lambda: delay((4,), 0),
    "delay 1": lambda: delay((4,), 1),
    "delay 3 of 4": lambda: delay((2, 4), 3),
    "delay 4 of 4": lambda: delay((4,), 4),
    "delay 11 of 3": lambda: delay((2, 2, 3), 11),
    "two delays": lambda: two_delays(3, 8),
    "overlap": lambda: overlap_add((1, 6), 2),
    "overlap of rows": lambda: overlap_add((2, 3, 5), 3),
    "overlap of nothing": lambda: overlap_add((2, 4), 4),
    "overlap of floats": lambda: overlap_add((2, 7), 3, "float32"),
    "window": lambda: window((7,), 12),
    "window of rows": lambda: window((3, 1, 5), 15),
    "window, no shift": lambda: window((9,), 0),
    "window, greatest shift": lambda: window((9,), 30),
}


def inputs_and_wanted(content: bytes) -> tuple[list[Array], list[list[Array]]]:
    kind = import_content(content, "signal.tflite", numerics=Numerics.TFLM).inputs[0].type
    model, random = TfLiteMicro(content), np.random.default_rng(len(content))
    details = {"dtype": kind.dtype.numpy.type, "shape": kind.fixed_shape}
    inputs = [drawn(details, random) for _ in range(RUNS)]
    return inputs, [model.run(array) for array in inputs]


@pytest.mark.parametrize("numerics", list(Numerics), ids=lambda each: each.value)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_equals_micro_run_after_run(name: str, numerics: Numerics) -> None:
    content = MODELS[name]()
    inputs, wanted = inputs_and_wanted(content)
    module = import_content(content, "signal.tflite", numerics=numerics)
    np.testing.assert_array_equal(evaluated(module, inputs), wanted)


@pytest.mark.parametrize(
    "name",
    ["5 frames", "1 frame", "delay 3 of 4", "delay 11 of 3", "two delays", "overlap of rows", "window"],
)
def test_the_c_keeps_what_is_to_come(name: str, tmp_path: Path) -> None:
    content = MODELS[name]()
    assert_the_c_gives(content, *inputs_and_wanted(content), tmp_path, Numerics.TFLM)


REFUSED = {
    "it ends 1 of 2 runs, whose results are then those of an earlier one": lambda: circular_buffer(9),
    "it ends 2 of 3 runs": lambda: circular_buffer(5, cycles_max=3),
    "the result is no variable": lambda: circular_buffer(5, is_variable=False),
    "a step of 0 in frames of 4": lambda: overlap_add((1, 4), 0),
    "a step of 5 in frames of 4": lambda: overlap_add((1, 4), 5),
    "33 frames a run, beyond 32": lambda: overlap_add((33, 4), 1),
    r"\[4\] delayed by -1": lambda: delay((4,), -1),
    "a shift of 31, which is not 0 to 30": lambda: window((4,), 31),
    "a shift of -1": lambda: window((4,), -1),
    r"weights \[3\] of an input \[6\]": lambda: window((6,), 1, 3),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_computed_as_micro_does_is_refused(message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        import_content(REFUSED[message](), "signal.tflite")
    assert {found.code for found in caught.value.diagnostics} == {"BW107"}
