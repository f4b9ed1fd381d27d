"""Random networks of several types whose number of rows is open equal LiteRT, resized, at each number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from support.against_reference import differences
from support.compilers import QUICK
from support.random_draft import array
from support.random_models import RandomModel
from support.random_open import ROWS, open_network
from support.reference import LiteRt
from support.tiers import THOROUGH, turn
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

COUNT = 100 if THOROUGH else 4
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"rows": "max", "optimize": "size"},
    {"rows": "off", "io": "workspace"},
    {"target": "mps3-an547"},
)


def is_equal_if_open(model: RandomModel, folder: Path, options: dict[str, Any], seed: int) -> bool:
    """Compiles a network and runs it with some numbers of rows; False if its rows are not each computed by itself."""
    folder.mkdir()
    path = folder / "m.tflite"
    path.write_bytes(model.content)
    (shape,), (dtype,) = model.input_shapes, model.dtypes
    most = 2 * shape[ROWS] + 1
    try:
        compiled = bytewright.compile(path, open=f"{ROWS}=rows:1..{most}", **options)
    except CompileError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} != {"BW121"}:
            raise
        return False
    bundle = compiled.write(folder / "bundle")
    check_bundle(bundle)
    generator, host = np.random.default_rng(seed), options.get("target") is None
    for count in (1, shape[ROWS], most):
        x = array(generator, (shape[0], count, shape[2]), dtype, 2, model.domain)
        found = run_batch(
            bundle, [[x]], on="host" if host else "qemu", options=QUICK if host else None
        ).outputs[0]
        wanted = [np.array(each) for each in LiteRt(model.content).run(x)]
        assert not differences(found, wanted), f"{count} rows: {model.description}"
    return True


def test_each_number_of_rows(tmp_path: Path) -> None:
    """Few are refused: for what a row has of others, or as a result has no rows."""
    start = 0 if THOROUGH else 1_000_000 + 100 * turn()
    opened = [
        is_equal_if_open(open_network(start + n), tmp_path / f"{n}", OPTIONS[n % len(OPTIONS)], n)
        for n in range(COUNT)
    ]
    assert sum(opened) >= COUNT // 2 - 1


# Cases that were wrong once


@pytest.mark.parametrize("asked", ["stream", "open"])
def test_no_result_is_of_rows(asked: str, tmp_path: Path) -> None:
    """A layer whose weights are zero: its bias, whatever the rows are."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 5, 3), "float32"), builder.tensor("y", (2,), "float32")
    builder.operator("RELU", [builder.constant("k", np.array([1, -1], np.float32))], [y])
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.build([x], [y]))
    if asked == "open":
        with pytest.raises(CompileError, match="output 'y' has no such rows"):
            bytewright.compile(path, open="1=rows:1..9")
    else:
        assert np.asarray(
            bytewright.compile(path, stream="1").run(np.zeros((1, 1, 3), np.float32))
        ).tolist() == [1, 0]
