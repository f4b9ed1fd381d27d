"""`report MODEL`: the plan that it gets; or, where it does not fit, the one that it would need, with the limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright as command
from support.digits_bundle import DIGITS


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_a_model_is_reported_as_its_bundle(tmp_path: Path) -> None:
    assert invoke("compile", DIGITS, "-o", tmp_path / "out", "--target", "mps3-an547").exit_code == 0
    model, bundle = invoke("report", DIGITS, "--target", "mps3-an547"), invoke("report", tmp_path / "out")
    assert (model.exit_code, model.stdout) == (0, bundle.stdout)


def test_what_does_not_fit_is_drawn_with_its_limit(tmp_path: Path) -> None:
    text = invoke("targets", "generic-cortex-m").stdout.replace('size = "unlimited"', 'size = "1KiB"', 1)
    small = tmp_path / "small.toml"
    small.write_text(text.replace('max-stack-size = "8KiB"', 'max-stack-size = "64B"'), encoding="utf-8")
    small.write_text(
        small.read_text("utf-8").replace('stack-reserve = "1KiB"', "stack-reserve = 0"), encoding="utf-8"
    )
    done = invoke("report", DIGITS, "--target", small)
    assert done.exit_code == 3, done.stderr
    assert "error[BW301]" in done.stderr
    whole = json.loads(invoke("report", DIGITS, "--target", "generic-cortex-m", "--json").stdout)
    needed = next(pool["used_bytes"] for pool in whole["pools"] if pool["name"] == "sram")
    (chart,) = [line for line in done.stdout.splitlines() if line.startswith("sram: ")]
    assert f"{needed} B used, capacity 960 B" in chart
    rows = done.stdout.splitlines()[done.stdout.splitlines().index(chart) + 1 :]
    limit = next(index for index, row in enumerate(rows) if row.lstrip().startswith("960 "))
    peak = next(index for index, row in enumerate(rows) if row.lstrip().startswith(f"{needed} "))
    axis = next(index for index, row in enumerate(rows) if row.lstrip().startswith("0 "))
    assert peak < limit < axis
    page = tmp_path / "page.html"
    assert invoke("report", DIGITS, "--target", small, "--html", page).exit_code == 3
    assert 'class="limit"' in page.read_text("utf-8")


def test_a_target_is_for_a_model(tmp_path: Path) -> None:
    assert invoke("compile", DIGITS, "-o", tmp_path / "out").exit_code == 0
    for arguments in ((tmp_path / "out", "--target", "host"), (DIGITS, tmp_path / "out")):
        assert invoke("report", *arguments).exit_code == 2
    assert invoke("report", tmp_path / "nothing").exit_code == 1


@pytest.mark.parametrize("sort", [(), ("--profile", "--sort", "cycles")])
def test_sizes_of_options_are_limits_that_are_drawn_in(sort: tuple[str, ...]) -> None:
    """The layers of what does not fit are shown too; nothing is run, so they stand as the steps do."""
    options = (
        "--target",
        "mps3-an547",
        "--rows",
        "off",
        "--workspace",
        "dtcm",
        "--resize",
        "dtcm=1KiB",
        "--no-code",
    )
    done = invoke("report", DIGITS, *options, *sort, "--json")
    assert (done.exit_code, "BW301" in done.stderr) == (3, True)
    document = json.loads(done.stdout)
    if sort:
        assert [row["step"] for row in document["layers"]] == list(range(7))
    else:
        (pool,) = [pool for pool in document["pools"] if pool["name"] == "dtcm"]
        assert pool["capacity_bytes"] == 1024 < pool["used_bytes"]
