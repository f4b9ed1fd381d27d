"""Open extents on emulated boards: each of them, in one program, equals LiteRT resized to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch
from run.test_open_images import NETS as IMAGES
from run.test_open_recurrence import KERAS
from run.test_open_windows import NETS, Net
from support.every_extent import MOST, assert_close, drawn
from support.reference import LiteRt
from support.tiers import THOROUGH, some

pytestmark = pytest.mark.board

QUICK_KERAS = {("mps3-an547", "attention_over_time-int8")}
QUICK = {("mps3-an547", "mean-of-windows"), ("mps2-an386", "deep")}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("target", ["mps3-an547", "mps2-an386"])
def test_every_extent_is_exact_on_a_board(target: str, name: str, tmp_path: Path) -> None:
    if not THOROUGH and (target, name) not in QUICK:
        pytest.skip("thorough")
    net, lower = NETS[name]
    content, rng = net("int8").content(), np.random.default_rng(1)
    file, folder = tmp_path / "m.tflite", tmp_path / "bundle"
    file.write_bytes(content)
    bytewright.compile(file, open=f"1=time:{lower}..{MOST}", target=target).write(folder)
    inputs = [rng.integers(-128, 128, (1, extent, 6), np.int8) for extent in range(lower, MOST + 1)]
    reference = LiteRt(content)
    found = run_batch(folder, [[x] for x in inputs], on="qemu").outputs
    for x, (output,) in zip(inputs, found, strict=True):
        np.testing.assert_array_equal(output, reference.run(x)[0])


@pytest.mark.parametrize("file", KERAS, ids=lambda file: file.stem)
@pytest.mark.parametrize("target", ["mps3-an547", "mps2-an386"])
def test_sequences_of_some_lengths_are_exact_on_a_board(target: str, file: Path, tmp_path: Path) -> None:
    if not THOROUGH and (target, file.stem) not in QUICK_KERAS:
        pytest.skip("thorough")
    bytewright.compile(file, open="1=time:2..30", target=target).write(tmp_path / "bundle")
    rng = np.random.default_rng(1)
    for extent in (2, 3, 17, 30):
        reference = LiteRt(file)
        x = drawn(rng, (1, extent, 10), reference.inputs[0]["dtype"])
        (found,) = run_batch(tmp_path / "bundle", [[x]], on="qemu").outputs
        assert_close(found[0], reference.run(x)[0], extent)


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("target", ["mps3-an547", "mps2-an386"])
def test_pairs_of_extents_are_exact_on_a_board(target: str, name: str, tmp_path: Path) -> None:
    if not THOROUGH and (target, name) != ("mps3-an547", "segmentation"):
        pytest.skip("thorough")
    net, lower = IMAGES[name]
    content, rng = net("int8").content(), np.random.default_rng(1)
    (tmp_path / "m.tflite").write_bytes(content)
    opened = (f"1=h:{lower}..7", f"2=w:{lower}..8")
    bytewright.compile(tmp_path / "m.tflite", open=opened, target=target).write(tmp_path / "bundle")
    reference = LiteRt(content)
    channels = int(reference.inputs[0]["shape"][3])
    pairs = ((lower, lower), (7, lower), (lower, 8), (lower + 1, 6), (5, lower + 2), (7, 8))
    images = [rng.integers(-128, 128, (1, *each, channels), np.int8) for each in pairs]
    found = run_batch(tmp_path / "bundle", [[x] for x in images], on="qemu").outputs
    for x, (output,) in zip(images, found, strict=True):
        np.testing.assert_array_equal(output, reference.run(x)[0])


COSTS = [(target, dtype) for target in ("mps3-an547", "mps2-an386") for dtype in ("int8", "float32")]


@pytest.mark.parametrize(("target", "dtype"), some(COSTS, 2))
def test_convolutions_over_open_rows_cost_what_fixed_ones_do(target: str, dtype: str, tmp_path: Path) -> None:
    """They take pixels of several rows at once, odd numbers and even ones; before, it was 1.2 to 1.7 times as much."""
    net = Net(dtype, 32, rows=60).image().conv(32, (1, 3)).conv(30, (1, 3), stride_w=2)
    net.conv(32, (1, 5), dilation_w_factor=2, padding="VALID").conv(24, (1, 1))
    content, rng = net.content(), np.random.default_rng(2)
    file, reference = tmp_path / "m.tflite", LiteRt(content)
    file.write_bytes(content)
    inputs = [drawn(rng, (1, rows, 32), np.dtype(dtype)) for rows in (60, 17, 18, 20, 59)]
    costs: dict[str, int] = {}
    for name, opened, given in (("fixed", (), inputs[:1]), ("open", ("1=time:17..60",), inputs)):
        bytewright.compile(file, target=target, open=opened).write(tmp_path / name)
        result = run_batch(tmp_path / name, [[x] for x in given], on="qemu")
        assert result.instructions is not None
        costs[name] = result.instructions[0]
        for x, (found,) in zip(given, result.outputs, strict=True):
            assert_close(found, reference.run(x)[0], x.shape[1])
    assert costs["open"] <= 1.06 * costs["fixed"], costs
