"""LSTM layers of integers on an emulated Cortex-M55, whose sums are vectors: run after run as the references."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.recurrent_models import lstm_model
from support.reference import LiteRt, TfLiteMicro
from support.tiers import some

pytestmark = pytest.mark.board
TARGET = "mps3-an547"
# Samples, steps, elements of the input and units: multiples of what a vector holds, less, and more.
SIZES = [(1, 2, 40, 64), (2, 3, 4, 5), (1, 2, 17, 9), (2, 1, 3, 6), (1, 1, 260, 16)]
STEPS, DEPTH, UNITS = 5, 40, 64
MOST_A_PRODUCT = 2.0  # 4.29 element after element


@pytest.mark.parametrize("sizes", some(SIZES, every=2), ids=str)
@pytest.mark.parametrize("is_wide", [False, True], ids=["int8", "int16"])
def test_a_layer_equals_its_reference_run_after_run(
    tmp_path: Path, is_wide: bool, sizes: tuple[int, int, int, int]
) -> None:
    content = lstm_model(7, form="int16" if is_wide else "int8", sizes=sizes)
    path, random = tmp_path / "lstm.tflite", np.random.default_rng(0)
    path.write_bytes(content)
    numerics = Numerics.TFLM if is_wide else Numerics.LITERT_REF
    kind = import_content(content, "lstm.tflite", numerics=numerics).inputs[0].type
    ends, shape = kind.dtype.bounds, kind.fixed_shape
    batch = [random.integers(*ends, shape, endpoint=True).astype(kind.dtype.numpy) for _ in range(3)]
    model = TfLiteMicro(content) if is_wide else LiteRt(content)
    wanted = [np.array(model.run(x)[0]) for x in batch]
    folder = bytewright.compile(path, target=TARGET, numerics=numerics.value).write(tmp_path / "m")
    for compiler in (None, "clang"):
        options = BuildOptions(compiler=compiler)
        found = run_batch(folder, [[x] for x in batch], on="qemu", keep_state=True, options=options).outputs
        for (y,), beside in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(y, beside)


def test_what_a_product_costs(tmp_path: Path) -> None:
    """All instructions, those of the gates too, over the products of weights."""
    path = tmp_path / "lstm.tflite"
    path.write_bytes(lstm_model(1, form="int8", one_hidden_scale=True, sizes=(1, STEPS, DEPTH, UNITS)))
    profile = profile_bundle(bytewright.compile(path, target=TARGET).write(tmp_path / "m"), seed=1, on="qemu")
    cost = sum(line.cost.amount for line in profile.steps)
    assert 0 < cost / (STEPS * 4 * UNITS * (DEPTH + UNITS)) <= MOST_A_PRODUCT
