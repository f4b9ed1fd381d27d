"""`check` verifies what was just compiled for networks over a line of time, [1, T, 1, C], on every target.

A row of theirs is a pixel, so rings of one row are common, and kernels of instruction sets reach such a ring by a bare
pointer. `BYTEWRIGHT_TESTS=thorough` takes 60 networks for each target, otherwise a few that differ by the day.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.digits_bundle import change_file
from support.line_networks import line_network
from support.shared_models import MODELS
from support.tiers import THOROUGH

TARGETS = ("mps3-an547", "mps2-an386", "x86-64-v3", "x86-64-v4-vnni", "host", "aarch64", "rv64gcv")
KNOWN = {"mps3-an547": (4,), "mps2-an386": (4,), "x86-64-v3": (3, 4), "x86-64-v4-vnni": (4,)}  # were refused
TODAY = datetime.now(tz=UTC).timetuple().tm_yday
SEEDS = range(60) if THOROUGH else (1000 + TODAY,)
CASES = MODELS.parent / "cases"


def compiled(path: Path, target: str, folder: Path, rows: Rows = Rows.AUTO) -> Path:
    write_bundle(compile_model(path, load_target(target), Options(rows=rows)).files, folder)
    return folder


@pytest.mark.parametrize(
    ("target", "seed"), [(t, s) for t in TARGETS for s in dict.fromkeys((*KNOWN.get(t, ()), *SEEDS))]
)
def test_a_network_over_a_line_of_time_verifies(tmp_path: Path, target: str, seed: int) -> None:
    model = line_network(seed)
    (tmp_path / "model.tflite").write_bytes(model.content)
    for rows in (Rows.AUTO, Rows.MAX) if THOROUGH else (Rows.MAX,):
        folder = compiled(tmp_path / "model.tflite", target, tmp_path / rows.value, rows)
        assert check_bundle(folder).num_steps, repr(model)


@pytest.mark.skipif(not CASES.is_dir(), reason=f"{CASES} is not there")
@pytest.mark.parametrize(
    ("name", "target"), [("check_1d_separable", "mps3-an547"), ("check_ring1_copied", "x86-64-v4-vnni")]
)
def test_the_cases_from_outside_verify(tmp_path: Path, name: str, target: str) -> None:
    assert check_bundle(compiled(CASES / f"{name}.tflite", target, tmp_path / "b")).num_steps


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose kernels hand a ring of one row, and rings of more, to instructions."""
    folder = tmp_path_factory.mktemp("line")
    (folder / "model.tflite").write_bytes(line_network(4).content)
    return compiled(folder / "model.tflite", "mps3-an547", folder / "b", Rows.MAX)


DAMAGES = {
    "a row of a ring of one": (
        "conv2d_2",
        "uniform(output, input,",
        "uniform(output, &input[y * 9],",
        "input",
        1,
    ),
    "a pointer that moves": ("conv2d_2", "uniform(output, input,", "uniform(output, input + y,", "input", 1),
    "rows of the output": ("conv2d_2", "uniform(output, input,", "uniform(&output[y], input,", "output", 1),
    "no touch at all": ("conv2d_2", "uniform(output, input,", "uniform(output, weights,", "input", 1),
    "a function that is no instruction": (
        "conv2d_2",
        "mve_convolve_1x9_to_8_away_uniform",
        "convolve",
        "input",
        1,
    ),
    "always the first slot": (
        "max_pool2d_1",
        "mve_load_i8(&input[pixel]);",
        "mve_load_i8(input);",
        "input",
        2,
    ),
    "one slot by its number": (
        "max_pool2d_1",
        "mve_load_i8(&input[pixel]);",
        "mve_load_i8(&input[9]);",
        "input",
        2,
    ),
    "a slot of another ring": ("max_pool2d_1", "iy % 2", "iy % 1", "input", 2),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_handed_to_an_instruction_stays_in_its_slot(line: Path, tmp_path: Path, name: str) -> None:
    kernel, old, new, parameter, slots = DAMAGES[name]
    kernel = f"model_{kernel}_rows"
    shutil.copytree(line, folder := tmp_path / "b")
    path = "src/model_kernels.c"
    _, front, rest = (folder / path).read_text(encoding="utf-8").partition(f"void {kernel}(")
    assert old in rest
    change_file(folder, path, front + rest, front + rest.replace(old, new, 1))
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    notes = [note for diagnostic in caught.value.diagnostics for note in diagnostic.notes]
    sentence = f"{kernel} reaches rows of its {parameter} otherwise than in the {slots} slots of a ring"
    assert f"src/model_kernels.c, {sentence}" in notes
