"""Files with open extents, compiled for a shape, equal LiteRT resized to it; commands on their bundles work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from support.every_extent import Array, assert_close, drawn
from support.model_files import DATA
from support.reference import LiteRt
from support.tiers import some
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

KERAS = sorted((DATA / "keras_over_time").glob("*.tflite"))
AFFINE: dict[str, Any] = {"scale": 0.5, "zero_point": 3}


def weights(builder: ModelBuilder, shape: tuple[int, ...], dtype: str) -> list[int]:
    """Of a convolution."""
    rng = np.random.default_rng(7)
    w, b = rng.integers(-99, 100, shape), rng.integers(-40, 40, shape[0])
    if dtype == "float32":
        return [builder.constant("w", (w / 64).astype("f4")), builder.constant("b", b.astype("f4"))]
    bias = builder.tensor("b", b.shape, "int32", data=b.astype(np.int32), scale=0.005)
    return [builder.constant("w", w.astype(np.int8), scale=0.01), bias]


def image_file(folder: Path, dtype: str, padding: str = "SAME", names: tuple[str, ...] = ("x",)) -> Path:
    """As Keras writes convolutions of `Input((None, None, 3))`, of the sum of its inputs."""
    builder = ModelBuilder()
    affine = AFFINE if dtype == "int8" else {}
    kinds = {"shape_signature": (-1, -1, -1, 3), **affine}
    inputs = [builder.tensor(name, (1, 2, 2, 3), dtype, **kinds) for name in names]
    total = builder.tensor("sum", (1, 2, 2, 3), dtype, **kinds)
    builder.operator("ADD", [inputs[0], inputs[-1]], [total])
    y = builder.tensor("y", (1, 1, 1, 4), dtype, **{**kinds, "shape_signature": (-1, -1, -1, 4)})
    steps = {"stride_h": 2, "stride_w": 2, "padding": padding}
    builder.operator("CONV_2D", [total, *weights(builder, (4, 3, 3, 3), dtype)], [y], **steps)
    builder.signature(
        "serve", {f"{name}_in": index for name, index in zip(names, inputs, strict=True)}, {"y": y}
    )
    file = folder / "m.tflite"
    file.write_bytes(builder.build(inputs, [y]))
    return file


def assert_equals_litert(model: bytewright.CompiledModel, file: Path, *given: Array) -> None:
    found, (wanted,) = model.run(*given), LiteRt(file).run(*given)
    assert_close(np.asarray(found), wanted, given[0].shape[1])


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_an_image_network_is_compiled_for_images_of_a_size(tmp_path: Path, dtype: str) -> None:
    file, rng = image_file(tmp_path, dtype), np.random.default_rng(5)
    for shape in ((1, 1, 1, 3), (1, 9, 14, 3), (3, 6, 5, 3)):
        model = bytewright.compile(file, input_shapes="x_in=" + "x".join(map(str, shape)), signature="serve")
        assert_equals_litert(model, file, drawn(rng, shape, dtype))
        assert model.plan.symbols == ()


def test_an_axis_of_it_may_be_open(tmp_path: Path) -> None:
    file, rng = image_file(tmp_path, "int8"), np.random.default_rng(5)
    model = bytewright.compile(file, input_shapes="x_in=1x?x7x3", open="1=rows:1..20")
    for rows in (1, 2, 19, 20):
        assert_equals_litert(model, file, drawn(rng, (1, rows, 7, 3), "int8"))


def test_its_batch_may_be_open(tmp_path: Path) -> None:
    file, rng = image_file(tmp_path, "float32"), np.random.default_rng(5)
    model = bytewright.compile(file, input_shapes="1x8x7x3", batch_max=3)
    for batch in (1, 2, 3):
        assert_equals_litert(model, file, drawn(rng, (batch, 8, 7, 3), np.float32))


@pytest.mark.parametrize("file", some(KERAS, 3), ids=lambda file: file.stem)
def test_a_network_of_keras_is_compiled_for_a_length(file: Path) -> None:
    rng = np.random.default_rng(5)
    model = bytewright.compile(file, input_shapes="1x17x10")
    assert_equals_litert(model, file, drawn(rng, (1, 17, 10), model.plan.inputs[0].dtype.numpy))


@pytest.mark.parametrize("signature", [(), ("--signature", "serve")])
def test_commands_read_the_file_for_the_shapes_of_a_bundle(
    tmp_path: Path, signature: tuple[str, ...]
) -> None:
    """Both inputs are resized at once: each alone would not fit the other as it is in the file."""
    file, out = image_file(tmp_path, "int8", "VALID", ("a", "b")), tmp_path / "out"
    shapes = ("--input-shape", "a_in=1x9x8x3", "--input-shape", "b_in=1x9x1x3")
    data = tmp_path / "samples.npz"
    rng = np.random.default_rng(5)
    np.savez(data, a_in=drawn(rng, (4, 9, 8, 3), np.int8), b_in=drawn(rng, (4, 9, 1, 3), np.int8))
    for words in (
        ("compile", file, "-o", out, *signature, *shapes),
        ("check", out),
        ("report", out),
        ("validate", out, "--model", file, "--data", data),
    ):
        result = CliRunner().invoke(command, [*map(str, words)])
        assert result.exit_code == 0, (words, result.output, result.stderr)
