"""Groups of operators that differ in names alone are lowered once, and the C is what it would be without that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.lower.group import Group
from bytewright.lower.kernel import LoweredKernel
from bytewright.lower.known_kernels import KnownKernels
from bytewright.target.registry import load_target
from support.costly_models import pools, shared_weights
from support.tiers import THOROUGH
from tflite_writer import OPTIONAL, ModelBuilder

TARGETS = ("host", "x86-64-v4-vnni", "mps3-an547", "mps2-an386")


def alike(seed: int) -> bytes:
    """Layers drawn from few weights, scales and ways to add, so that many are equal and others nearly."""
    generator = np.random.default_rng(seed)
    builder = ModelBuilder()
    weights = [
        builder.constant(f"w{n}", generator.integers(-127, 128, (8, 8)).astype(np.int8), scale=scale)
        for n, scale in enumerate((0.01, 0.01, 0.02))
    ]
    points = (-3, 5)
    made = [builder.tensor(f"x{n}", [1, 8], "int8", scale=0.5, zero_point=points[n]) for n in range(2)]
    first = list(made)
    for number in range(24):
        point = points[int(generator.integers(2))]
        result = builder.tensor(f"y{number}", [1, 8], "int8", scale=0.5, zero_point=point)
        left, right = (made[int(n)] for n in generator.integers(max(0, len(made) - 4), len(made), 2))
        activation = ("NONE", "RELU")[int(generator.integers(2))]
        if generator.random() < 0.5:
            operands = [left, weights[int(generator.integers(3))], OPTIONAL]
            builder.operator("FULLY_CONNECTED", operands, [result], activation=activation)
        else:
            builder.operator("ADD", [left, right], [result], activation=activation)
        made.append(result)
    return builder.build(first, made[-12:])


def files_of(content: bytes, target: str, folder: Path) -> dict[str, bytes]:
    path = folder / "m.tflite"
    path.write_bytes(content)
    return compile_model(path, load_target(target)).files


def count_kernels(monkeypatch: pytest.MonkeyPatch, *, remember: bool) -> list[str]:
    """The kernels that templates write from now on, and whether what they wrote is remembered."""
    written: list[str] = []
    whole = KnownKernels.of

    def of(
        known: KnownKernels, group: Group, name: str, device: str, lower: Callable[[], LoweredKernel]
    ) -> LoweredKernel:
        def noted() -> LoweredKernel:
            written.append(name)
            return lower()

        return whole(known, group, name, device, noted) if remember else noted()

    monkeypatch.setattr(KnownKernels, "of", of)
    return written


@pytest.mark.parametrize("content", [shared_weights(6, 16), pools(6)])
def test_equal_layers_are_lowered_once(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = count_kernels(monkeypatch, remember=True)
    files_of(content, "host", tmp_path)
    assert len(written) == 1


@pytest.mark.parametrize("seed", range(40 if THOROUGH else 4))
def test_what_is_nearly_equal_is_told_apart(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, target = alike(seed), TARGETS[seed % len(TARGETS)]
    with monkeypatch.context() as patch:
        count_kernels(patch, remember=True)
        files = files_of(content, target, tmp_path)
    with monkeypatch.context() as patch:
        count_kernels(patch, remember=False)
        assert files_of(content, target, tmp_path) == files
