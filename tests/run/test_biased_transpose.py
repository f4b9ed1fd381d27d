"""MediaPipe's Convolution2DTransposeBias equals a sum in numpy over all that each element of the input adds to."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import NOTHING_ASKED
from bytewright.target.registry import load_target
from support.against_reference import differences
from support.compilers import QUICK_COMPILER, QUICK_FLAGS
from support.many_models import Job, build
from tflite_writer import ModelBuilder

Array = NDArray[Any]
SAME, VALID = 1, 2


@dataclass(frozen=True)
class Case:
    """Extents of the input, of the window and of its steps, (vertical, horizontal)."""

    taken: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: int = SAME
    depth: int = 3
    channels: int = 2
    samples: int = 1

    @property
    def cut(self) -> list[int]:
        """What padding takes off each axis."""
        axes = zip(self.taken, self.kernel, self.stride, strict=True)
        return [
            max(0, size - (count - 1) % step - 1) if self.padding == SAME else 0 for count, size, step in axes
        ]

    @property
    def result(self) -> tuple[int, ...]:
        axes = zip(self.taken, self.kernel, self.stride, self.cut, strict=True)
        extents = (step * (count - 1) + size - cut for count, size, step, cut in axes)
        return (self.samples, *extents, self.channels)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.samples, *self.taken, self.depth)

    def weights(self) -> tuple[Array, Array]:
        generator = np.random.default_rng(7)
        shape = (self.channels, *self.kernel, self.depth)
        return generator.normal(size=shape).astype(np.float32), np.arange(self.channels, dtype=np.float32)

    def content(self, options: bytes | None = None) -> bytes:
        builder = ModelBuilder()
        x, y = builder.tensor("x", self.shape, "float32"), builder.tensor("y", self.result, "float32")
        constants = [builder.constant(name, array) for name, array in zip("wb", self.weights(), strict=True)]
        own = struct.pack("<3i", self.padding, self.stride[1], self.stride[0])
        given = own if options is None else options
        builder.custom_operator("Convolution2DTransposeBias", [x, *constants], [y], structure=given)
        return builder.build([x], [y])

    def computed(self, x: Array) -> Array:
        """What each element adds to the window that begins where it lies."""
        weights, bias = self.weights()
        top, left = (cut // 2 for cut in self.cut)
        (rows, columns), (down, right) = self.result[1:3], self.stride
        whole = np.zeros((self.samples, rows + 64, columns + 64, self.channels))
        for i, j in np.ndindex(*self.taken):
            window = np.einsum("nc,ohwc->nhwo", x[:, i, j].astype(np.float64), weights)
            row, column = 32 + i * down - top, 32 + j * right - left
            whole[:, row : row + self.kernel[0], column : column + self.kernel[1]] += window
        return (whole[:, 32 : 32 + rows, 32 : 32 + columns] + bias).astype(np.float32)


CASES = (
    Case((4, 5), (2, 2), (2, 2)),
    Case((3, 3), (3, 3), (2, 2)),
    Case((1, 4), (4, 1), (3, 2)),
    Case((5, 2), (2, 5), (1, 3)),
    Case((3, 4), (1, 1), (2, 2)),
    Case((3, 4), (3, 2), (2, 1), VALID, samples=2),
    Case((2, 3), (1, 4), (3, 3), VALID, depth=1, channels=5),
    Case((4, 4), (3, 3), (1, 1), SAME, samples=2, channels=1),
)


def test_it_equals_the_sum(tmp_path: Path) -> None:
    jobs: list[Job] = []
    generator = np.random.default_rng(3)
    for number, case in enumerate(CASES):
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(case.content())
        compiled = compile_model(path, load_target("host"), NOTHING_ASKED)
        batch = [[generator.normal(size=case.shape).astype(np.float32)] for _ in range(3)]
        jobs.append(Job(compiled.files, compiled.document, batch))
    found = build(jobs, tmp_path / "build", QUICK_FLAGS, compiler=QUICK_COMPILER).run()
    for case, job, runs in zip(CASES, jobs, found, strict=True):
        for inputs, outputs in zip(job.batch, runs, strict=True):
            assert not differences(outputs, [case.computed(inputs[0])]), case


def _refusal(content: bytes, numerics: Numerics = Numerics.LITERT_REF) -> str:
    with pytest.raises(CompileError) as caught:
        import_content(content, "m.tflite", numerics=numerics)
    return str(caught.value)


def test_options_that_say_too_little_are_refused() -> None:
    assert "has 8 bytes of options" in _refusal(CASES[0].content(bytes(8)))
    assert "stride (0, 2) is not positive" in _refusal(CASES[0].content(struct.pack("<3i", SAME, 2, 0)))
    for padding in (0, 3, -1):
        assert f"padding {padding}, which is neither" in _refusal(
            CASES[0].content(struct.pack("<3i", padding, 2, 2))
        )


def test_tensorflow_lite_micro_does_not_have_it() -> None:
    assert "Convolution2DTransposeBias" in _refusal(CASES[0].content(), Numerics.TFLM)
