"""Moves in C: random networks of them, what they cost in memory, dilated convolutions, and open batches.

BYTEWRIGHT_TESTS=thorough takes four times as many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.dilated_models import FORMS, Writer, dilated_model
from support.many_models import SANITIZERS
from support.moving_models import Moves, packed, random_moves, unrolled
from support.part_models import SCALE, ZERO_POINT
from support.random_models import RandomModel
from support.reference import LiteRt
from support.tiers import TIMES

pytestmark = pytest.mark.run
SANITIZED = ("-O1", *SANITIZERS)
# Of every kind of instruction set, with its own templates of convolutions; elsewhere C does what they say.
TARGETS = ("host", "mps3-an547", "mps2-an386", "aarch64", "x86-64-v3", "x86-64-v4-vnni")


def compiled(model: RandomModel, folder: Path, **asked: Any) -> Compiled:
    path = folder / "model.tflite"
    path.write_bytes(model.content)
    return compile_model(path, load_target("host"), Options(**asked))


def operators(compiled: Compiled) -> list[str]:
    """Of each step."""
    return [" + ".join(step["operators"]) for step in compiled.document["steps"]]


def workspace_bytes(compiled: Compiled) -> int:
    return sum(pool["used_bytes"] for pool in compiled.document["pools"] if pool["role"] == "workspace")


def test_what_is_packed_is_computed_in_its_place(tmp_path: Path) -> None:
    made = compiled(packed(), tmp_path)
    assert operators(made) == ["0 (CONV_2D)", "1 (CONV_2D)", "2 (CONV_2D)", "4 (FULLY_CONNECTED)"]
    assert workspace_bytes(made) == 3 * 6 * 5 * 4


def test_an_unrolled_layer_moves_nothing(tmp_path: Path) -> None:
    """Frames are read where they are, and states written where they are packed; a split is read by what it feeds."""
    made = compiled(unrolled(3), tmp_path)
    alone = [step for step in operators(made) if "FULLY_CONNECTED" not in step and "ADD" not in step]
    assert alone == ["20 (GATHER)"]  # a second output of the application's, which is no part of the first
    assert not any("UNPACK" in step or "(PACK" in step for step in operators(made))


def test_networks_of_moves(tmp_path: Path) -> None:
    models = [packed(), unrolled(2), *map(random_moves, range(8 * TIMES))]
    assert_equals_reference(models, tmp_path, flags=SANITIZED)


def test_bundles_of_moves_hold(tmp_path: Path) -> None:
    for number, model in enumerate([packed(), unrolled(2)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_bundle(compiled(model, folder).files, folder / "bundle")
        check_bundle(folder / "bundle")
    run_paranoid(tmp_path / "0" / "bundle", options=BuildOptions(("-O2",)), seed=1)


@pytest.mark.parametrize("target", TARGETS)
def test_dilated_convolutions(target: str, tmp_path: Path) -> None:
    """The first are of many channels, as templates of instruction sets like them."""
    first = 1000 * TARGETS.index(target)
    models = [
        dilated_model(number, dtype, form, max_channels=5 if number % 3 else 20)
        for form in FORMS
        for number in range(first, first + 2 * TIMES)
        for dtype in (("int8", "float32") if number % 2 else ("int8",))
    ]
    assert_equals_reference(
        models, tmp_path, target=target, flags=SANITIZED if target == "host" else ("-O1",)
    )


def keras_tcn(dtype: str = "int8") -> RandomModel:
    """Causal convolutions of a signal as Keras writes them with an open batch: reshapes state it, for any."""
    writer = Writer.of((1, 12, 3), dtype, is_open=True)
    for side in (1, 2, 4):
        batch, length, depth = writer.shape
        writer.add("PAD", (batch, length + 2 * side, depth), writer.integers(((0, 0), (2 * side, 0), (0, 0))))
        if side > 1:
            writer.spread((side,), ((0, 0),))
        batch, length, depth = writer.shape
        writer.add("EXPAND_DIMS", (batch, 1, length, depth), writer.integers([-3]))
        writer.convolution("CONV_2D", (1, 3), "VALID", (1, 1))
        batch, _, length, depth = writer.shape
        writer.add("RESHAPE", (batch, length, depth), writer.integers([-1, length, depth]))
        if side > 1:
            writer.gather((side,), ((0, 0),))
    return writer.finish(story=f"tcn {dtype}")


def up_sampling(dtype: str) -> RandomModel:
    """Between two convolutions rows are repeated, and then columns, by TILE with reshapes, as Keras is exported."""
    writer = Writer.of((1, 8, 6, 3), dtype)
    writer.convolution("CONV_2D", (3, 3), "SAME", (1, 1))
    depth = writer.shape[-1]
    writer.add("EXPAND_DIMS", (1, 8, 1, 6, depth), writer.integers([2]))
    for axis, times, after in ((2, 2, (1, 16, 6, 1, depth)), (3, 3, (1, 16, 18, depth))):
        multiples = [times if number == axis else 1 for number in range(5)]
        shape = tuple(extent * m for extent, m in zip(writer.shape, multiples, strict=True))
        writer.add("TILE", shape, writer.integers(multiples))
        writer.add("RESHAPE", after, writer.integers(after), new_shape=after)
    writer.convolution("CONV_2D", (3, 3), "SAME", (1, 1))
    return writer.finish(story=f"up-sampling {dtype}")


def test_an_up_sampling_of_keras_goes_by_rows(tmp_path: Path) -> None:
    assert_equals_reference([up_sampling("int8"), up_sampling("float32")], tmp_path, flags=SANITIZED)
    made = compiled(up_sampling("int8"), tmp_path)
    whole = compiled(up_sampling("int8"), tmp_path, rows=Rows.OFF)
    assert len(operators(made)) == len(operators(whole)) == 3
    assert 4 * workspace_bytes(made) < workspace_bytes(whole)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_a_causal_network_of_keras_is_three_convolutions(dtype: str, tmp_path: Path) -> None:
    model = keras_tcn(dtype)
    assert_equals_reference([model], tmp_path / "one", flags=SANITIZED)
    made = compiled(model, tmp_path, batch_max=3)
    assert len(operators(made)) == 3
    write_bundle(made.files, tmp_path / "bundle")
    samples = [model.inputs(seed)[0] for seed in range(5)]
    parts = [np.concatenate(samples[:3]), samples[3]]
    reference = LiteRt(model.content)
    result = run_batch(
        tmp_path / "bundle", [[part] for part in parts], options=BuildOptions(("-O1",), sanitize=True)
    )
    for (found,), part in zip(result.outputs, parts, strict=True):
        wanted = np.concatenate([np.array(reference.run(sample[np.newaxis])[0]) for sample in part])
        np.testing.assert_array_equal(found, wanted)


def embedding(count: int = 6) -> RandomModel:
    """Words, as numbers, become rows of a table, which a layer reads."""
    draft = Moves()
    words = draft.builder.tensor("words", (1, count), "int32")
    table = np.arange(-20, 20, dtype=np.int8).reshape(5, 8)
    rows = draft.builder.constant("table", table, scale=SCALE, zero_point=ZERO_POINT)
    found = draft.tensor((1, count, 8))
    draft.builder.operator("GATHER", [rows, words], [found], axis=0)
    result = draft.dense(draft.reshape(found, (1, count * 8)), 3)
    content = draft.builder.build([words], [found, result])
    return RandomModel(content, "embedding", ((1, count),), "int32", {0: 5})


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_words_become_rows_of_a_table(target: str, tmp_path: Path) -> None:
    assert_equals_reference([embedding()], tmp_path, target=target, flags=SANITIZED)


def test_a_word_that_is_not_in_the_table_is_the_nearest_that_is(tmp_path: Path) -> None:
    """The references stop with an error there; C has no byte to read."""
    model = embedding()
    write_bundle(compiled(model, tmp_path, batch_max=2).files, tmp_path / "bundle")
    odd = np.array([[-1, 5, 2**31 - 1, -(2**31), 0, 4], [0, 1, 2, 3, 4, 0]], np.int32)
    options = BuildOptions(("-O1",), sanitize=True)
    ((found, dense),) = run_batch(tmp_path / "bundle", [[odd]], options=options).outputs
    reference = LiteRt(model.content)
    wanted = [[np.array(a) for a in reference.run(words[np.newaxis])] for words in odd.clip(0, 4)]
    np.testing.assert_array_equal(found, np.concatenate([rows for rows, _ in wanted]))
    np.testing.assert_array_equal(dense, np.concatenate([result for _, result in wanted]))


def test_an_open_batch_is_not_spread(tmp_path: Path) -> None:
    writer = Writer.of((1, 4, 6, 2))
    writer.spread((2, 3), ((0, 0), (0, 0)))
    with pytest.raises(CompileError) as refused:
        compiled(writer.finish(), tmp_path, batch_max=3)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "BW111"
    assert "SPACE_TO_BATCH_ND" in str(diagnostic.where)
    compiled(writer.finish(), tmp_path)
