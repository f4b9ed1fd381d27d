"""BW301 in the model's words: what is alive where most is needed, which operators are at work, and what was saved.

Names and sizes of tensors are those that LiteRT reads from the file; the shares of what was saved are held against
the needs of compiles that do without.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from support.digits_bundle import DIGITS
from support.row_models import Layer, chain
from tflite_writer import ModelBuilder

BOARD = ("--target", "mps3-an547")
_ALIVE = re.compile(
    r"'(?P<name>[^']+)' \((?P<bytes>\d+) B(?:, alive in [^,]+)?(?:, used in [^,]+)?\)"
    r"(?:, of (?P<operators>[^:]+))?(?:: '(?P<tensor>[^']+)')?"
)


def refused(folder: Path, model: Path, *options: str) -> Result:
    arguments = ["compile", str(model), "-o", str(folder / "out"), *BOARD, *options, "--json"]
    result = CliRunner().invoke(bytewright, arguments)
    assert result.exit_code == 3, result.output
    return result


def errors(folder: Path, model: Path, *options: str) -> list[dict[str, Any]]:
    found = json.loads(refused(folder, model, *options).stderr.splitlines()[-1])["errors"]
    assert {error["code"] for error in found} == {"BW301"}
    return found


def needed(error: dict[str, Any]) -> int:
    match = re.search(r"at least (\d+) B are needed", error["message"])
    assert match is not None, error["message"]
    return int(match[1])


def saved(error: dict[str, Any]) -> dict[str, int]:
    """By what, as the last note says."""
    line = error["notes"][-1].removeprefix("saved already: ")
    return {what: int(size) for size, what in re.findall(r"(\d+) B by ([a-z ]+)", line)}


def test_tensors_that_are_alive_have_the_names_and_sizes_of_the_model(tmp_path: Path) -> None:
    interpreter = Interpreter(model_path=str(DIGITS))
    sizes = {t["name"]: int(np.prod(t["shape"])) for t in interpreter.get_tensor_details()}
    kinds = [operator["op_name"] for operator in interpreter._get_ops_details()]
    workspace, parameters = errors(
        tmp_path, DIGITS, "--workspace", "dtcm=1KiB", "--parameters", "flash=1KiB", "--rows", "off"
    )
    step = re.search(r"at step (\d+):", workspace["message"])
    assert step is not None
    assert workspace["notes"][0].startswith(f"alive in step {step[1]}, ")
    tensors = [match for note in workspace["notes"] if (match := _ALIVE.fullmatch(note))]
    assert tensors
    for match in tensors:
        assert match["tensor"] is None or int(match["bytes"]) == sizes[match["tensor"]]
    assert any(match["tensor"] for match in tensors)
    numbered = [
        (int(number), kind)
        for error in (workspace, parameters)
        for note in error["notes"]
        for number, kind in re.findall(r"(\d+) \(([A-Z0-9_]+)\)", note)
    ]
    assert numbered
    assert all(kinds[number] == kind for number, kind in numbered)
    total_bytes = sum(int(match["bytes"]) for match in tensors)
    shared = re.search(r"(\d+) B may be shared", workspace["notes"][0])
    assert total_bytes - int(shared[1] if shared else 0) == needed(workspace)
    weights = [match for note in parameters["notes"] if (match := _ALIVE.fullmatch(note))]
    rest = re.fullmatch(r"and \d+ more, (\d+) B", parameters["notes"][len(weights) + 1])
    assert rest is not None
    assert sum(int(match["bytes"]) for match in weights) + int(rest[1]) == needed(parameters)


def test_long_names_are_short_for_people_and_whole_for_programs(tmp_path: Path) -> None:
    name = ";".join(f"network/block_{number}/convolution" for number in range(9))
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 8, 8, 2), "int8", scale=0.5, zero_point=3)
    inner = builder.tensor(name, (1, 8, 8, 8), "int8", scale=0.5, zero_point=-4)
    y = builder.tensor("y", (1, 8, 8, 8), "int8", scale=2.0, zero_point=1)
    for number, (source, result, depth) in enumerate(((x, inner, 2), (inner, y, 8))):
        weights = np.ones((8, 1, 1, depth), np.int8)
        constant = builder.constant(f"w{number}", weights, scale=0.25, zero_point=0)
        bias = builder.constant(f"b{number}", np.zeros(8, np.int32), scale=0.125, zero_point=0)
        builder.operator(
            "CONV_2D", [source, constant, bias], [result], padding="VALID", stride_h=1, stride_w=1
        )
    model = tmp_path / "m.tflite"
    model.write_bytes(builder.build([x], [y]))
    result = refused(tmp_path, model, "--workspace", "dtcm=16")
    whole = json.loads(result.stderr.splitlines()[-1])["errors"][0]
    assert any(note.endswith(f": '{name}'") for note in whole["notes"])
    *text, _ = result.stderr.splitlines()
    assert f"'{name[:32]}...{name[-32:]}'" in "\n".join(text)
    assert name not in "\n".join(text)


def test_what_rows_saved_is_what_is_needed_more_without(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    layers = (Layer(3, channels=8), Layer(3, channels=6, stride=2), Layer(3, channels=2))
    model.write_bytes(chain((16, 12, 4), *layers, tail=True).content)
    (by_rows,) = errors(tmp_path, model, "--workspace", "dtcm=100")
    (plain,) = errors(tmp_path, model, "--workspace", "dtcm=100", "--rows", "off")
    assert saved(by_rows)["rows"] == needed(plain) - needed(by_rows) > 0
    assert "rows" not in saved(plain)


def pointwise(path: Path, channels: tuple[int, ...]) -> Path:
    """1 channel -> 4 with these weights -> 4 -> 1, over 4 x 4 points."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 4, 4, 1), "int8", scale=0.5, zero_point=3)
    inner = builder.tensor("inner", (1, 4, 4, 4), "int8", scale=0.5, zero_point=-4)
    after = builder.tensor("after", (1, 4, 4, 4), "int8", scale=0.5, zero_point=-4)
    y = builder.tensor("y", (1, 4, 4, 1), "int8", scale=2.0, zero_point=1)
    first = np.array(channels, np.int8).reshape(4, 1, 1, 1)
    second, last = np.ones((4, 1, 1, 4), np.int8), np.ones((1, 1, 1, 4), np.int8)
    layers = ((x, inner, first), (inner, after, second), (after, y, last))
    for number, (source, result, weights) in enumerate(layers):
        constant = builder.constant(f"w{number}", weights, scale=0.25, zero_point=0)
        bias = builder.constant(f"b{number}", np.zeros(len(weights), np.int32), scale=0.125, zero_point=0)
        builder.operator(
            "CONV_2D", [source, constant, bias], [result], padding="VALID", stride_h=1, stride_w=1
        )
    path.write_bytes(builder.build([x], [y]))
    return path


def test_what_overlaps_and_channels_saved(tmp_path: Path) -> None:
    """Of the channels inside, two have weights of zero; the model that needs more has none such."""
    options = ("--workspace", "dtcm=16", "--parameters", "flash=8", "--rows", "off")
    workspace, parameters = errors(tmp_path, pointwise(tmp_path / "m.tflite", (1, 0, 2, 0)), *options)
    wide_workspace, wide_parameters = errors(
        tmp_path, pointwise(tmp_path / "wide.tflite", (1, 3, 2, 3)), *options
    )
    alive = re.match(r"alive in .*: \d+ buffers, (\d+) B, of which (\d+) B may be", workspace["notes"][0])
    assert alive is not None
    assert saved(workspace)["overlaps"] == int(alive[2]) == int(alive[1]) - needed(workspace)
    assert int(alive[1]) == 16 * 2 + 16 * 4  # 2 of 4 channels inside, and all 4 behind them
    for narrow, wide in ((workspace, wide_workspace), (parameters, wide_parameters)):
        assert saved(narrow)["constant channels"] == needed(wide) - needed(narrow) > 0
        assert "constant channels" not in wide["notes"][-1]
