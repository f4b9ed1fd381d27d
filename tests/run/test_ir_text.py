"""Programs of IR text, compiled and run: the C computes what the text says, and the bundle verifies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from support.ir_text import small_result, write_small

X = np.array([-128, -5, -1, 0, 1, 6, 100, 127], np.int8)


@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_three_kernels_by_hand_compute_what_they_say(tmp_path: Path, io: str):
    model = bytewright.compile(str(write_small(tmp_path)), io=io)
    assert np.array_equal(model.run(X), small_result(X))
    folder = model.write(tmp_path / "out")
    assert check_bundle(folder).num_steps == 3
    run = run_bundle(folder, [X], options=BuildOptions(sanitize=True))
    assert np.array_equal(run.outputs[0], small_result(X))


def test_run_takes_a_text_and_its_bundle(tmp_path: Path):
    path = write_small(tmp_path)
    np.save(tmp_path / "x.npy", X)
    made = CliRunner().invoke(command, ["compile", str(path), "-o", str(tmp_path / "out")])
    assert made.exit_code == 0
    for source in (path, tmp_path / "out"):
        arguments = [
            "run",
            source,
            "--input",
            tmp_path / "x.npy",
            "--output",
            tmp_path / "y.npy",
            "--paranoid",
        ]
        result = CliRunner().invoke(command, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.stderr
        assert np.array_equal(np.load(tmp_path / "y.npy"), small_result(X))
