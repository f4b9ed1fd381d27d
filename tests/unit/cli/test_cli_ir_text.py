"""IR text on the command line: compile, plan, what --print-after prints, and that printing and compiling agree."""

from __future__ import annotations

import csv
import filecmp
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.cli.print_after import PASSES
from bytewright.ir.text.modules import parse_text
from bytewright.ir.text.reader import Constants
from bytewright.ops.registry import OPERATIONS
from support.digits_bundle import DIGITS
from support.ir_text import SMALL, write_small
from support.tiers import some

BEFORE_STORAGE = (
    "import_tflite",
    "plan_devices",
    "inline_calls",
    "fold_pad",
    "fold_constant_channels",
    "lower_graph",
    "share_kernels",
)


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refusal(status: int, *arguments: object) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (status, ""), result.stdout
    return result.stderr


def same_files(first: Path, second: Path, *, is_lowered: bool = False) -> bool:
    """Whether two bundles are equal to the last byte, but for where plan.json says that they come from."""
    names = sorted(path.relative_to(first).as_posix() for path in first.rglob("*") if path.is_file())
    found = sorted(path.relative_to(second).as_posix() for path in second.rglob("*") if path.is_file())
    _, different, missing = filecmp.cmpfiles(first, second, names, shallow=False)
    plans = [json.loads((folder / "plan.json").read_text()) for folder in (first, second)]
    for plan in plans:
        for key in ("model_files", "options", "files_hash"):
            del plan[key]
        for buffer in plan["buffers"]:
            for key in ("tensor", "scale", "zero_point"):
                del buffer[key]
        for step in plan["steps"] if is_lowered else ():
            step.pop("work", None)  # nobody knows what a program computes that is read as text
    return names == found and different in ([], ["plan.json"]) and not missing and plans[0] == plans[1]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--io", "workspace", "--target", "mps3-an547"),
        pytest.param(("--numerics", "tflm"), marks=pytest.mark.slow),
    ],
)
def test_a_printed_model_compiles_to_the_same_bytes(tmp_path: Path, options: tuple[str, ...]) -> None:
    prints = [f"--print-after={name}={tmp_path / name}.bw" for name in BEFORE_STORAGE]
    succeed("compile", DIGITS, "-o", tmp_path / "direct", *options, *prints)
    others = [option for option in options if option not in ("--numerics", "tflm")]
    for name in some(BEFORE_STORAGE, every=3):
        succeed("compile", tmp_path / f"{name}.bw", "-o", tmp_path / "again", *others)
        is_lowered = name in ("lower_graph", "share_kernels")
        assert same_files(tmp_path / "direct", tmp_path / "again", is_lowered=is_lowered), name


@pytest.mark.slow
@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_passes_are_printed_with_their_constants_in_one_file(tmp_path: Path, io: str) -> None:
    printing = ("--io", io, "--print-after", f"all={tmp_path / 'all'}")
    succeed("compile", DIGITS, "-o", tmp_path / "direct", *printing)
    texts = sorted((tmp_path / "all").glob("*.bw"))
    names = [path.stem.partition("_")[2] for path in texts]
    # Kernels that are made for rows are named again.
    assert list(dict.fromkeys(names)) == [name for name in PASSES if name in names]
    assert names.count("name_symbols") == 2
    assert len(names) >= 9
    for text in some(texts[:-1], every=6, always=texts[:1]):
        moved = names.index("place_io") if "place_io" in names else len(names)
        options = ("--io", io) if texts.index(text) < moved else ()  # it is in the text afterwards
        succeed("compile", text, "-o", tmp_path / "again", *options)
        succeed("check", tmp_path / "again")
        for source in (
            "src/digits_kernels.c",
            "src/digits_kernels.h",
            "include/digits_rodata_parameters.inc",
        ):
            assert filecmp.cmp(tmp_path / "direct" / source, tmp_path / "again" / source, shallow=False)
    error = refusal(1, "compile", texts[-1], "-o", tmp_path / "planned")
    assert "the text has offsets in pools already" in error
    assert "help: print the module after share_kernels" in error


def test_an_edited_model_computes_what_it_says(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    succeed("compile", path, "--print-after", f"import_text={tmp_path / 'printed.bw'}")
    printed = tmp_path / "printed.bw"
    text = printed.read_text()
    assert text.startswith("# Printed by Bytewright")
    assert "y[i] = x[i] + i32(b[i])" in text
    printed.write_text(text.replace("y[i] = x[i] + i32(b[i])", "y[i] = x[i] - i32(b[i])"))
    before, after = bytewright.compile(str(path)), bytewright.compile(str(printed))
    assert before.plan.numerics == after.plan.numerics == "ir"
    assert before.files["src/small_kernels.c"] != after.files["src/small_kernels.c"]
    assert before.files["src/small.c"].replace(before.plan.plan_hash.encode(), b"") == after.files[
        "src/small.c"
    ].replace(after.plan.plan_hash.encode(), b"")


def test_standard_output_holds_text_that_can_be_read(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    result = invoke("compile", path, "-o", tmp_path / "out", "--print-after", "place_scratch")
    assert result.exit_code == 0
    assert "workspace ram" in result.stderr
    data = {"w": np.load(tmp_path / "small.npz")["w"]}
    assert data["w"].shape == (8,)
    parsed = parse_text(result.stdout, Constants(_digests(path)), OPERATIONS)
    assert parsed.module.name == "small"


def _digests(path: Path):
    from bytewright.frontends.text.constants_file import read_constants
    from bytewright.frontends.text.import_text import import_text
    from bytewright.ir.text.modules import module_data
    from bytewright.target.registry import load_target

    known = dict(read_constants(path.with_suffix(".npz")).by_digest)
    return known | module_data(import_text(path, load_target("host")).module)


def test_the_text_is_there_although_the_model_does_not_fit(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    printed = tmp_path / "printed.bw"
    error = refusal(3, "compile", path, "--workspace", "ram=16B", "--print-after", f"import_text={printed}")
    assert "BW301" in error
    assert "kernel small_twice(" in printed.read_text()


@pytest.mark.parametrize(
    ("option", "status", "message"),
    [
        ("share=x.bw", 1, "--print-after share: there is no such pass; there are import_tflite"),
        ("open_batch=x.bw", 1, "--print-after open_batch: this pass did not run; import_text"),
        ("share_kernels=x.txt", 2, "'x.txt' does not end with .bw"),
        ("share_kernels=", 2, "is not PASS[=FILE.bw]"),
        ("=x.bw", 2, "is not PASS[=FILE.bw]"),
    ],
)
def test_a_wrong_option_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, status: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_small(tmp_path)
    assert message in refusal(status, "compile", path, "--print-after", option)


def test_json_and_text_do_not_mix(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    assert "--json is for a program" in refusal(2, "compile", path, "--json", "--print-after", "import_text")
    printed = f"import_text={tmp_path / 'p.bw'}"
    assert json.loads(succeed("compile", path, "--json", "--print-after", printed))["model"] == "small"
    assert "missing option '-o'" in refusal(2, "compile", path)


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    mine = tmp_path / "mine.bw"
    mine.write_text("# notes of my own\n")
    error = refusal(1, "compile", path, "--print-after", f"import_text={mine}")
    assert "exists and was not printed by Bytewright" in error
    assert mine.read_text() == "# notes of my own\n"
    np.save(tmp_path / "beside.npz", np.zeros(3))
    (tmp_path / "beside.npz.npy").rename(tmp_path / "beside.npz")
    kept = (tmp_path / "beside.npz").read_bytes()
    assert "exists and was not" in refusal(
        1, "compile", path, "--print-after", f"import_text={tmp_path}/beside.bw"
    )
    assert (tmp_path / "beside.npz").read_bytes() == kept
    printed = tmp_path / "printed.bw"
    succeed("compile", path, "--print-after", f"import_text={printed}")
    succeed("compile", path, "--print-after", f"import_text={printed}")  # its own
    assert "is what is compiled" in refusal(1, "compile", printed, "--print-after", f"import_text={printed}")
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "constants.npz").write_bytes(b"mine")
    assert "exists and was not" in refusal(1, "compile", path, "--print-after", f"all={tmp_path}/all")


def test_plan_shows_where_a_models_buffers_lie(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    table, picture = tmp_path / "buffers.csv", tmp_path / "plan.svg"
    shown = succeed("plan", path, "--target", "mps3-an547", "-o", table, "--svg", picture)
    document = json.loads(
        succeed("compile", path, "-o", tmp_path / "out", "--target", "mps3-an547", "--json")
    )
    assert "model 'small' for mps3-an547" in shown
    rows = {row["id"]: row for row in csv.DictReader(table.open())}
    for buffer in document["buffers"]:
        assert buffer["name"] in shown
        if buffer["live"] is not None:
            row, place = rows[buffer["name"]], buffer["place"]
            assert [int(row["lower"]), int(row["upper"])] == buffer["live"]
            assert (row["place"], row["offset"]) == (
                place["name"],
                "" if place["offset"] is None else str(place["offset"]),
            )
    assert "<title>doubled\n16 B at" in picture.read_text()
    assert (
        json.loads(succeed("plan", path, "--target", "mps3-an547", "--json"))["plan_hash"]
        == document["plan_hash"]
    )


def test_plan_of_a_model_takes_its_own_options_only(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    assert "--capacity is for a CSV file" in refusal(2, "plan", path, "--capacity", "100")
    assert "--budget is for a CSV file" in refusal(2, "plan", path, "--budget", "100")
    assert "BW604" in refusal(1, "plan", path, "--solver", "best")
    assert "BW301" in refusal(3, "plan", path, "--workspace", "ram=16B")
    buffers = tmp_path / "buffers.csv"
    buffers.write_text("id,lower,upper,size\na,0,2,64\n")
    assert "--io is for a model, whose file ends with .tflite or .bw" in refusal(
        2, "plan", buffers, "--io", "caller"
    )
    assert "1 buffers, 64 B" in succeed("plan", buffers)


def test_mistakes_reach_the_terminal_with_file_line_and_column(tmp_path: Path) -> None:
    path = write_small(tmp_path, SMALL.replace("y[i] = x[i] + i32(b[i])", "y[i] = x[i] + b[i]"))
    error = refusal(1, "compile", path, "-o", tmp_path / "out")
    assert "error[BW113]: " in error
    assert "--> small.bw:25:5" in error
    assert not (tmp_path / "out").exists()


def test_the_help_for_a_pool_that_the_target_lacks_can_be_followed(tmp_path: Path) -> None:
    text = SMALL.replace("allocate work : buffer<8xi32>", 'allocate work : buffer<8xi32, "global.dtcm">')
    model = write_small(tmp_path, text)
    for words in (("compile", model, "-o", tmp_path / "out", "--target", "host"), ("plan", model)):
        lines = refusal(1, *words).splitlines()
        assert lines[0] == "error[BW209]: scope 'global.dtcm' names neither a pool nor a tag of target 'host'"
        assert lines[1].strip().startswith("it is the scope of 'work' of kernel ")
        assert lines[-1].startswith("help: --workspace ")
        succeed(*words, *lines[-1].removeprefix("help: ").split())


def test_what_no_run_uses_is_no_obstacle_to_the_help_for_a_pool(tmp_path: Path) -> None:
    text = SMALL.replace("allocate work : buffer<8xi32>", 'allocate work : buffer<8xi32, "global.dtcm">')
    idle = "allocate idle : buffer<64xi8>\n  allocate doubled : "
    model = write_small(tmp_path, text.replace("allocate doubled : ", idle))
    words = ("compile", model, "-o", tmp_path / "out", "--target", "host")
    lines = refusal(1, *words).splitlines()
    assert lines[0].startswith("error[BW209]: ")
    succeed(*words, *lines[-1].removeprefix("help: ").split())
