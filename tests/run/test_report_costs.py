"""`report` with layers on the command line: CSV beside other formats, costs of a run, two bundles in per cent."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from support.digits_bundle import DIGITS, write_digits


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("digits") / "out", "host")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_goes_to_standard_output_alone(bundle: Path) -> None:
    done = invoke("report", bundle, "--csv", "-")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [row["step"] for row in rows_of(done.stdout_bytes.decode())] == list("0123456")
    assert done.stdout_bytes.count(b"\r\n") == 8


def test_csv_beside_json_and_a_page(bundle: Path, tmp_path: Path) -> None:
    table, page = tmp_path / "layers.csv", tmp_path / "page.html"
    done = invoke("report", bundle, "--sort", "macs", "--csv", table, "--json", "--html", page)
    assert (done.exit_code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    rows = rows_of(table.read_bytes().decode("utf-8"))
    assert [row["macs"] for row in rows] == [str(each["macs"]) for each in document["layers"]]
    assert "<h2>Layers</h2>" in page.read_text("utf-8")
    again = invoke("report", bundle, "--csv", table)
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "")
    assert [row["step"] for row in rows_of(table.read_bytes().decode("utf-8"))] == list("0123456")


def test_a_model_is_not_written_over(tmp_path: Path) -> None:
    model = tmp_path / "digits.tflite"
    model.write_bytes(DIGITS.read_bytes())
    done = invoke("report", model, "--csv", model)
    assert (done.exit_code, "it is also an input of this command" in done.stderr) == (1, True)
    assert model.read_bytes() == DIGITS.read_bytes()


def test_two_formats_on_standard_output_are_refused(bundle: Path) -> None:
    done = invoke("report", bundle, "--csv", "-", "--json")
    assert done.exit_code == 2
    assert "one format can go to standard output" in done.stderr
    assert done.stdout == ""


def test_of_files_all_or_none_are_written(bundle: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for path in (tmp_path / "no" / "a.csv", bundle / "plan.json", page):
        done = invoke("report", bundle, "--csv", path, "--html", page)
        assert (done.exit_code, "error[BW206]" in done.stderr) == (1, True), path
        assert not page.exists()


@pytest.mark.parametrize("option", [("--csv", "-"), ("--sort", "macs")])
def test_a_table_is_of_one_bundle(bundle: Path, option: tuple[str, str]) -> None:
    done = invoke("report", bundle, bundle, *option)
    assert (done.exit_code, "--sort and --csv are of the layers of one bundle" in done.stderr) == (2, True)


def test_a_wrong_column_is_refused_before_anything_runs(bundle: Path) -> None:
    done = invoke("report", bundle, "--sort", "mac", "--profile")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "error[BW204]: layers have no column 'mac'" in done.stderr
    assert "help: did you mean 'macs'?" in done.stderr


def test_a_run_fills_the_costs(bundle: Path) -> None:
    done = invoke("report", bundle, "--profile", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    amounts = [row["microseconds"] for row in document["layers"]]
    assert all(amount >= 0 for amount in amounts)
    assert 0 < sum(amounts) <= document["total"][0]["microseconds"] + 0.1 * len(amounts)
    assert all(row["cycles"] is None for row in document["layers"])


def test_a_program_of_an_operating_system_has_no_counts_of_instructions() -> None:
    done = invoke("report", DIGITS, "--target", "aarch64", "--profile-on", "qemu")
    assert (done.exit_code, "error[BW204]: steps are counted on boards" in done.stderr) == (1, True)
    assert "help: profile it on the host: --profile-on host\n" in done.stderr


def test_two_bundles_are_compared_by_what_they_cost(bundle: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    assert invoke("compile", DIGITS, "-o", rows).exit_code == 0
    done = invoke("report", bundle, rows, "--profile", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    (cost,) = document["costs"]
    assert cost["name"] == "microseconds"
    assert cost["growth_percent"] == pytest.approx(100 * (cost["new"] / cost["old"] - 1), abs=0.06)
    for row in document["layers"]:
        assert row["macs"]["old"] == row["macs"]["new"]
        for key in ("live_bytes", "parameter_bytes"):
            old, new = row[key]["old"], row[key]["new"]
            assert row[key]["growth_percent"] == (round(100 * (new - old) / old, 1) if old else None)
    text = invoke("report", bundle, rows, "--profile").stdout
    assert text.startswith(f"{bundle} and {rows}\n")
    assert "Costs of a run\n" in text
    same = invoke("report", bundle, bundle, "--layers").stdout
    assert same == f"{bundle} and {bundle}: the plans are the same\n"
    page = tmp_path / "page.html"
    assert invoke("report", bundle, rows, "--html", page).exit_code == 0
    assert f"<title>{bundle} and {rows}</title>" in page.read_text("utf-8")


def test_a_model_takes_the_options_of_compile(bundle: Path) -> None:
    whole, rows = (
        json.loads(invoke("report", DIGITS, "--no-code", "--json", *options).stdout)
        for options in (("--rows", "off"), ())
    )
    assert (
        whole["plan_hash"] == json.loads(invoke("report", bundle, "--no-code", "--json").stdout)["plan_hash"]
    )
    assert whole["workspace_bytes"] > rows["workspace_bytes"]
    done = invoke("report", bundle, "--rows", "off")
    assert (
        done.exit_code,
        "--rows is for a model: a bundle is compiled from one already" in done.stderr,
    ) == (2, True)
    layers = json.loads(invoke("report", DIGITS, "--rows", "off", "--layers", "--json").stdout)["layers"]
    assert layers == json.loads(invoke("report", bundle, "--layers", "--json").stdout)["layers"]
