"""Compares a network that was compiled for an open axis with LiteRT, resized to each extent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bytewright
from support.reference import LiteRt, TfLiteMicro

Array = NDArray[Any]
MOST = 21


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """An input of integers of 8 bits, or of floats about 1."""
    if dtype == np.float32:
        return rng.normal(0, 1, shape).astype(np.float32)
    return rng.integers(-128, 128, shape).astype(dtype)


def assert_close(found: Array, wanted: Array, extent: object) -> None:
    """Integers bit for bit, float32 to 1e-5 of the largest."""
    assert found.shape == wanted.shape, extent
    if wanted.dtype == np.float32:
        assert np.abs(found - wanted).max(initial=0) <= 1e-5 * max(np.abs(wanted).max(initial=0), 1e-30), (
            extent
        )
    else:
        assert (found == wanted).all(), extent


def check(
    tmp_path: Path,
    content: bytes,
    lower: int = 1,
    upper: int = MOST,
    axis: int = 1,
    extents: Iterable[int] | None = None,
    **options: Any,
) -> bytewright.CompiledModel:
    """Compares every extent, or those that are given, with LiteRT from its beginning; returns the model."""
    file = tmp_path / "m.tflite"
    file.write_bytes(content)
    model = bytewright.compile(file, open=f"{axis}=time:{lower}..{upper}", **options)
    reference, rng = LiteRt(content), np.random.default_rng(5)
    (given,) = model.plan.inputs
    for extent in range(lower, upper + 1) if extents is None else extents:
        shape = (*given.shape[:axis], extent, *given.shape[axis + 1 :])
        x = drawn(rng, shape, given.dtype.numpy)
        if model.plan.states:
            reference = LiteRt(content)
        wanted = reference.run(x)
        found = model.run(x)
        several = found if isinstance(found, tuple) else (found,)
        for one, other in zip(several, wanted, strict=True):
            assert_close(np.asarray(one), other, extent)
    return model


def check_by_files(tmp_path: Path, files: dict[int, bytes], **options: Any) -> None:
    """Compares with TensorFlow Lite Micro, which resizes nothing: of a file for each extent the last is compiled."""
    file, extents = tmp_path / "m.tflite", list(files)
    file.write_bytes(files[extents[-1]])
    model = bytewright.compile(file, open=f"1=time:{extents[0]}..{extents[-1]}", numerics="tflm", **options)
    rng, (given,) = np.random.default_rng(5), model.plan.inputs
    for extent, content in files.items():
        x = drawn(rng, (given.shape[0], extent, *given.shape[2:]), given.dtype.numpy)
        (wanted,) = TfLiteMicro(content).run(x)
        assert_close(np.asarray(model.run(x)), wanted, extent)
