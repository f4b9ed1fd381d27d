"""`bytewright compile`: what each option does, each exit status, and that a refusal writes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from support.bundle_files import tree
from support.digits_bundle import DIGITS, two_by_two, unsupported


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [str(argument) for argument in arguments])


def compiled(folder: Path, *options: str, model: Path = DIGITS) -> dict[str, Any]:
    """plan.json after a compile that must succeed."""
    result = invoke("compile", model, "-o", folder / "out", *options)
    assert result.exit_code == 0, result.stderr
    return json.loads((folder / "out" / "plan.json").read_text())


def refusal(folder: Path, *options: str, model: Path = DIGITS) -> tuple[int, str]:
    """Exit status and error text of a compile that must fail and write nothing."""
    result = invoke("compile", model, "-o", folder / "deep" / "out", *options)
    assert result.exit_code != 0
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert not (folder / "deep").exists()
    return result.exit_code, result.stderr


def pools(document: dict[str, Any], role: str) -> list[tuple[str, int | None, str]]:
    return [
        (pool["name"], pool["capacity_bytes"], pool["provider"])
        for pool in document["pools"]
        if pool["role"] == role
    ]


def test_a_bundle_and_a_summary_are_written(tmp_path: Path) -> None:
    result = invoke("compile", DIGITS, "-o", tmp_path / "out", "--target", "mps3-an547")
    assert result.exit_code == 0
    assert result.stderr == ""
    document = json.loads((tmp_path / "out" / "plan.json").read_text())
    used = document["pools"][0]["used_bytes"]
    assert f"workspace dtcm: {used} B of 64KiB, optimal" in result.stdout
    assert "model 'digits' for mps3-an547, bit for bit litert-ref" in result.stdout
    for name in ("include/digits.h", "src/digits.c", "src/digits_kernels.c", "CMakeLists.txt"):
        assert (tmp_path / "out" / name).is_file()


def test_the_summary_says_what_a_run_is_given_and_what_is_copied(tmp_path: Path) -> None:
    target = tmp_path / "fast.toml"
    target.write_text(
        """
        name = "fast"
        [memory.ram]
        size = "64KiB"
        [memory.rom]
        size = "64KiB"
        access = "r"
        [device.cpu]
        isa = "host"
        reach = ["ram", "rom"]
        stack = "ram"
        max-stack-size = "8KiB"
        [[workspace]]
        name = "ram"
        memory = "ram"
        [[parameters]]
        name = "fast"
        memory = "ram"
        size = "10KiB"
        load = "copy"
        from = "rom"
        """
    )
    result = invoke("compile", DIGITS, "-o", tmp_path / "out", "--target", target, "--batch-max", 4)
    first, *lines = result.stdout.splitlines()
    assert first.endswith("bit for bit litert-ref, each run with batch 1 to 4")
    (fast,) = [line for line in lines if line.startswith("  parameters fast: ")]
    assert fast.endswith(" B of 10KiB, optimal, copied from 'rom'")


def test_json_is_what_the_plan_file_holds_and_nothing_else(tmp_path: Path) -> None:
    result = invoke("compile", DIGITS, "-o", tmp_path / "out", "--json")
    assert result.stderr == ""
    assert json.loads(result.stdout) == json.loads((tmp_path / "out" / "plan.json").read_text())


def test_defaults_are_the_host_and_the_files_name(tmp_path: Path) -> None:
    document = compiled(tmp_path)
    assert (document["target"], document["model"], document["numerics"]) == ("host", "digits", "litert-ref")


def test_name_renames_everything(tmp_path: Path) -> None:
    assert compiled(tmp_path, "--name", "reader")["model"] == "reader"
    assert "reader_run" in (tmp_path / "out" / "include" / "reader.h").read_text()


def test_numerics_selects_the_reference(tmp_path: Path) -> None:
    assert compiled(tmp_path, "--numerics", "tflm")["numerics"] == "tflm"


def test_a_target_may_be_a_file(tmp_path: Path) -> None:
    board = tmp_path / "board.toml"
    board.write_text(invoke("targets", "mps2-an386").stdout.replace("mps2-an386", "mine"))
    assert compiled(tmp_path, "--target", str(board))["target"] == "mine"


def test_workspace_and_parameters_replace_the_pools_in_order(tmp_path: Path) -> None:
    document = compiled(
        tmp_path,
        *("--target", "mps3-an547", "--workspace", "small=1KiB@dtcm", "--workspace", "big@isram"),
        *("--parameters", "weights=100KiB@sram", "--parameters", "flash"),
    )
    assert pools(document, "workspace") == [("small", 1024, "caller"), ("big", 4 << 20, "caller")]
    assert pools(document, "parameters")[0] == ("weights", 100 << 10, "generated")
    assert document["pools"][1]["used_bytes"] > 0  # what 1 KiB cannot hold


def test_resize_and_provider_change_one_pool(tmp_path: Path) -> None:
    options = ("--target", "mps3-an547", "--resize", "dtcm=4KiB", "--provider", "dtcm=generated")
    document = compiled(tmp_path, *options, "--provider", "flash=caller")
    assert pools(document, "workspace")[0] == ("dtcm", 4096, "generated")
    assert pools(document, "parameters")[0][2] == "caller"
    assert (tmp_path / "out" / "parameters" / "flash.bin").is_file()
    assert "set_workspaces" not in (tmp_path / "out" / "include" / "digits.h").read_text().split("isram")[0]


def test_pin_puts_a_buffer_into_a_pool(tmp_path: Path) -> None:
    document = compiled(tmp_path, "--target", "mps3-an547", "--pin", "conv2d_0/*=isram")
    (buffer,) = [buffer for buffer in document["buffers"] if buffer["name"] == "conv2d_0/out"]
    assert buffer["place"]["name"] == "isram"
    assert invoke("check", tmp_path / "out").exit_code == 0


def test_stack_options_reach_the_device(tmp_path: Path) -> None:
    options = ("--max-stack-size", "4KiB", "--max-stack-alloca-size", "unlimited")
    document = compiled(tmp_path, "--target", "mps3-an547", *options, "--use-backend-alloc-workspace")
    device = document["target_description"]["device"]["cpu"]
    assert device["max-stack-size"] == 4096
    assert device["max-stack-alloca-size"] == "unlimited"
    assert device["use-backend-alloc-workspace"] is True
    assert document["stack"]["cpu"]["limit_bytes"] == 4096 - 1024


def test_an_older_bundle_is_replaced_and_other_files_are_not(tmp_path: Path) -> None:
    compiled(tmp_path, "--name", "first")
    compiled(tmp_path, "--name", "second")
    assert not (tmp_path / "out" / "include" / "first.h").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    result = invoke("compile", DIGITS, "-o", tmp_path / "mine")
    assert result.exit_code == 1
    assert "error[BW206]" in result.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_an_output_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "out"):
        result = invoke("compile", DIGITS, "-o", folder)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "error[BW206]" in result.stderr
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--target", "mps3-an574"), "BW203"),
        (("--target", "./missing.toml"), "BW201"),
        (("--name", "not a name"), "BW204"),
        (("--workspace", "w@nowhere"), "BW204"),
        (("--parameters", "p@nowhere"), "BW204"),
        (("--resize", "rum=1KiB"), "BW204"),
        (("--provider", "rum=caller"), "BW204"),
        (("--pin", "conv2d_0/out=rum"), "BW204"),
        (("--pin", "conv2d_9*=ram"), "BW204"),
    ],
)
def test_unknown_names_are_wrong_input(tmp_path: Path, options: tuple[str, ...], code: str) -> None:
    status, text = refusal(tmp_path, *options)
    assert status == 1
    assert f"error[{code}]" in text


def test_unknown_names_come_with_suggestions(tmp_path: Path) -> None:
    assert "did you mean 'mps3-an547'" in refusal(tmp_path, "--target", "mps3-an574")[1]
    assert "help: --resize ram=1KiB" in refusal(tmp_path, "--resize", "rum=1KiB")[1]


@pytest.mark.parametrize(
    "options",
    [
        ("--resize", "ram"),
        ("--resize", "ram=much"),
        ("--workspace", "ram=1XiB"),
        ("--parameters", "@rom"),
        ("--provider", "ram=nobody"),
        ("--numerics", "exact"),
        ("--max-stack-size", "lots"),
        ("--max-stack-alloca-size", "-1"),
        ("--pin", "conv2d_0/out"),
        ("--no-such-option",),
        ("surplus",),
    ],
)
def test_malformed_options_are_usage_errors(tmp_path: Path, options: tuple[str, ...]) -> None:
    status, text = refusal(tmp_path, *options)
    assert status == 2
    assert text.startswith("error[BW200]: ")
    assert text.endswith("help: `bytewright compile --help` lists what there is\n")


def test_a_folder_must_be_named() -> None:
    assert invoke("compile", DIGITS).exit_code == 2


def test_what_does_not_fit_says_by_how_much_and_the_help_works(tmp_path: Path) -> None:
    needed = compiled(tmp_path)["pools"][0]["used_bytes"]
    status, text = refusal(tmp_path, "--resize", f"ram={needed - 1}")
    assert status == 3
    assert "error[BW301]" in text
    assert "1 B too few" in text
    assert compiled(tmp_path, "--resize", f"ram={needed}")["pools"][0]["used_bytes"] == needed


def test_a_stack_that_is_too_small_does_not_fit_and_the_help_works(tmp_path: Path) -> None:
    status, text = refusal(tmp_path, "--target", "mps3-an547", "--max-stack-size", "1100")
    assert status == 3
    assert "error[BW302]" in text
    (advice,) = [line.removeprefix("help: ") for line in text.splitlines() if line.startswith("help: ")]
    compiled(tmp_path, "--target", "mps3-an547", *advice.split())


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "BW101"),
        (b"", "BW101"),
        (b"this is no model at all", "BW102"),
        (b"\x20\0\0\0TFL3" + bytes(8), "BW103"),
        (DIGITS.read_bytes()[:1500], "BW103"),
        (unsupported(), "BW104"),
    ],
)
def test_a_bad_model_is_one_clear_error(tmp_path: Path, content: bytes | None, code: str) -> None:
    model = tmp_path / "model.tflite"
    if content is not None:
        model.write_bytes(content)
    status, text = refusal(tmp_path, model=model)
    assert status == 1
    assert text.count("error[") == 1
    assert text.startswith(f"error[{code}]: ")


def test_a_folder_is_not_a_model(tmp_path: Path) -> None:
    assert refusal(tmp_path, model=tmp_path)[0] == 1


def test_all_unsupported_operators_are_listed_at_once(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(unsupported())
    text = refusal(tmp_path, model=tmp_path / "m.tflite")[1]
    assert "operator 0" in text
    assert "operator 1" in text


def test_several_inputs_and_outputs_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "two.tflite").write_bytes(two_by_two())
    document = compiled(tmp_path, model=tmp_path / "two.tflite")
    assert [tensor["name"] for tensor in document["inputs"]] == ["left", "right"]
    assert [tensor["name"] for tensor in document["outputs"]] == ["total", "difference"]
    roles = {b["place"]["name"]: b["role"] for b in document["buffers"] if b["place"]["kind"] == "caller"}
    assert roles == {"left": "input", "right": "input", "total": "output", "difference": "output"}


# --- what is in the folder already


def test_a_repository_with_a_plan_of_its_own_is_left_alone(tmp_path: Path) -> None:
    """A file called plan.json does not make a folder a bundle."""
    out = tmp_path / "out"
    (out / ".git").mkdir(parents=True)
    (out / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (out / "plan.json").write_text('{"version": 4, "resource_changes": []}')
    before = tree(out)
    for options in ((), ("--force",)):
        result = invoke("compile", DIGITS, "-o", out, *options)
        assert result.exit_code == 1
        assert "error[BW206]" in result.stderr
        assert tree(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_bundle_in_a_repository_is_replaced_and_the_repository_stays(tmp_path: Path) -> None:
    compiled(tmp_path)
    (tmp_path / "out" / ".git").mkdir()
    (tmp_path / "out" / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    compiled(tmp_path, "--name", "other")
    found = tree(tmp_path / "out")
    assert (found[".git/HEAD"], found["notes.txt"]) == (b"ref: refs/heads/main", b"mine")
    assert "src/other.c" in found
    assert "src/digits.c" not in found


def test_what_was_edited_needs_force_and_the_help_works(tmp_path: Path) -> None:
    compiled(tmp_path)
    source = tmp_path / "out" / "src" / "digits_kernels.c"
    written = source.read_bytes()
    source.write_bytes(written + b"/* tuned by hand */\n")
    result = invoke("compile", DIGITS, "-o", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "holds a bundle that was edited since: src/digits_kernels.c" in result.stderr
    assert "help: --force overwrites" in result.stderr
    assert source.read_bytes() != written
    compiled(tmp_path, "--force")
    assert source.read_bytes() == written


def test_a_link_to_a_bundle_stays_a_link(tmp_path: Path) -> None:
    compiled(tmp_path)
    (tmp_path / "out").rename(tmp_path / "real")
    (tmp_path / "out").symlink_to("real")
    compiled(tmp_path, "--name", "other")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "real" / "src" / "other.c").is_file()
