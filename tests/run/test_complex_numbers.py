"""RFFT2D, moves of its complex numbers, and floats made of them, beside LiteRT; and what is refused of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.c_program import WARNINGS
from support.compilers import host_build
from support.evaluate.evaluate_graph import evaluate_graph
from support.reference import LiteRt
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

Array = NDArray[Any]
RATE = 48_000


def spectra(frames: int, length: int) -> bytes:
    """Frames under a window, their spectra under three other shapes, and both parts and magnitudes of those."""
    builder, numbers = ModelBuilder(), length // 2 + 1
    x = builder.tensor("x", (frames, 1, length), "float32")
    y = builder.tensor("spectra", (frames, 1, numbers), "complex64")
    lengths = builder.constant("lengths", np.array((1, length), np.int32))
    builder.operator("RFFT2D", [x, lengths], [y])
    squeezed = builder.tensor("squeezed", (frames, numbers), "complex64")
    builder.operator("SQUEEZE", [y], [squeezed], squeeze_dims=(1,))
    expanded = builder.tensor("expanded", (1, frames, numbers), "complex64")
    axis = builder.constant("axis", np.array(0, np.int32))
    builder.operator("EXPAND_DIMS", [squeezed, axis], [expanded])
    flat = builder.tensor("flat", (frames * numbers,), "complex64")
    shape = builder.constant("shape", np.array([-1], np.int32))
    builder.operator("RESHAPE", [expanded, shape], [flat])
    results = [builder.tensor(f"result{n}", (frames * numbers,), "float32") for n in range(4)]
    for kind, result in zip(("CAST", "REAL", "IMAG", "COMPLEX_ABS"), results, strict=True):
        builder.operator(kind, [flat], [result])
    return builder.build([x], results)


def sounds(frames: int, length: int) -> list[Array]:
    """Noise; a tone, a chirp and silence under a window, whose spectra have numbers of all sizes."""
    time = np.arange(frames * length) / RATE
    window = np.hanning(length)
    noise = np.random.default_rng(length).normal(size=time.shape)
    given = (noise, np.sin(2 * np.pi * 1500 * time), np.sin(2 * np.pi * (900 + 5e4 * time) * time), 0 * time)
    shape = (frames, 1, length)
    return [(each.reshape(shape) * (1 if each is noise else window)).astype(np.float32) for each in given]


@pytest.mark.parametrize(("frames", "length"), [(3, 512), (1, 4), (2, 2048)])
def test_every_number_of_a_spectrum_is_litert_s(frames: int, length: int, tmp_path: Path) -> None:
    """Small numbers beside great ones too, of which networks take roots and logarithms: LiteRT computes doubles."""
    content = spectra(frames, length)
    module, model = import_content(content, "spectra.tflite"), LiteRt(content)
    given = sounds(frames, length)
    wanted = [model.run(sound) for sound in given]
    found = [evaluate_graph(module, [sound]) for sound in given]
    path, options = tmp_path / "spectra.tflite", host_build(flags=WARNINGS, sanitize=True)
    path.write_bytes(content)
    bytewright.compile(path).write(tmp_path / "bundle")
    in_c = run_batch(tmp_path / "bundle", [[sound] for sound in given], options=options).outputs
    for own, other, expected in zip(found, in_c, wanted, strict=True):
        for computed, compiled, result in zip(own, other, expected, strict=True):
            np.testing.assert_array_equal(compiled, computed)
            np.testing.assert_allclose(computed, result, rtol=2e-5, atol=1e-13)


def model_of(
    kind: str, lengths: tuple[int, ...] = (1, 8), dtype: str = "float32", shape: Any = (1, 8)
) -> bytes:
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "float32")
    y = builder.tensor("y", (1, 5), "complex64")
    builder.operator("RFFT2D", [x, builder.constant("n", np.array(lengths, np.int32))], [y])
    result = builder.tensor("z", (1, 5), dtype)
    if kind:
        builder.operator(kind, [y], [result])
    return builder.build([x], [result if kind else y])


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (model_of("REAL", (1, 6)), "BW107", "lengths .1, 6., which are no powers of two"),
        (
            model_of("REAL", (1, 2)),
            "BW107",
            "lengths .1, 2., which are no powers of two from 1 and 4 to 32,768",
        ),
        (model_of("REAL", (3, 8)), "BW107", "lengths .3, 8., which"),
        (model_of("REAL", (1, 1 << 16)), "BW107", "lengths .1, 65536., which"),
        (model_of("REAL", (1, 8, 1)), "BW107", "3 lengths, not two"),
        (model_of("REAL", shape=(8,)), "BW107", "an input of 1 axes, not two or more"),
        (model_of("CAST", dtype="int32"), "BW107", "COMPLEX64 to INT32"),
        (model_of("CAST", dtype="complex64"), "BW105", "is COMPLEX64"),
        (model_of(""), "BW105", "is COMPLEX64"),
        (model_of("ABS"), "BW105", "is COMPLEX64"),
    ],
)
def test_what_there_is_no_kernel_for_is_refused(content: bytes, code: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        import_content(content, "spectra.tflite")
    assert {found.code for found in caught.value.diagnostics} == {code}


def test_micro_has_no_spectra_of_images() -> None:
    with pytest.raises(CompileError, match="TensorFlow Lite Micro does not have it"):
        import_content(model_of("REAL"), "spectra.tflite", numerics=Numerics.TFLM)
