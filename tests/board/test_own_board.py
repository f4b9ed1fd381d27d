"""Boards that QEMU does not have: their bundles run on one of the same core, with the memories that they use moved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.execute.run import run_bundle
from bytewright.record.names import names_of
from bytewright.record.plan_file import read_plan
from support.digits_bundle import DIGITS

FAR = """MEMORY
{
  FLASH (rx) : ORIGIN = 0x08000000, LENGTH = 2M
  RAM (xrw) : ORIGIN = 0x20000000, LENGTH = 128K
  SLOW (xrw) : ORIGIN = 0x24000000, LENGTH = 512K
}
_estack = ORIGIN(SLOW) + LENGTH(SLOW);
"""
NEAR = """MEMORY
{
  FLASH (rx) : ORIGIN = 0, LENGTH = 1M
  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 256K
}
"""
WITH_MORE = NEAR.replace("RAM", "EXTFLASH (rx) : ORIGIN = 0x12000000, LENGTH = 128M\n  RAM")


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)])


def run(*arguments: str | Path) -> str:
    done = invoke(*arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def board(folder: Path, script: str, core: str) -> Path:
    (folder / "app.ld").write_text(script, encoding="utf-8")
    run("targets", "import", folder / "app.ld", "--isa", core, "-o", folder / "board.toml")
    return folder / "board.toml"


def test_a_bundle_runs_where_its_memories_are_moved(tmp_path: Path) -> None:
    target = board(tmp_path, FAR, "cortex-m7")
    run("compile", DIGITS, "-o", tmp_path / "out", "--target", target)
    image = np.random.default_rng(5).integers(-128, 128, (1, 8, 8, 1), np.int8)
    np.save(tmp_path / "x.npy", image)
    shown = run("run", tmp_path / "out", "--input", tmp_path / "x.npy", "--on", "qemu").splitlines()
    assert shown[0] == (
        "on mps2-an500; moved: flash (2MiB at 0x08000000) to 0x20200000 in ssram23, "
        "slow (512KiB at 0x24000000) to 0x20180000 in ssram23"
    )
    there = run_bundle(tmp_path / "out", [image], on="qemu")
    here = run_bundle(tmp_path / "out", [image])
    assert (there.outputs[0] == here.outputs[0]).all()
    assert there.stack_bytes is not None
    assert 0 < there.stack_bytes <= read_plan(tmp_path / "out").stack["cpu"].size_bytes


def test_a_profile_has_the_targets_memories_and_costs(tmp_path: Path) -> None:
    target = board(tmp_path, FAR, "cortex-m7")
    text = target.read_text("utf-8").replace('access = "r"\n', 'access = "r"\nread-cost = 5\n')
    target.write_text(text, encoding="utf-8")
    document = json.loads(run("profile", DIGITS, "--target", target, "--on", "qemu", "--json"))
    assert document["stand_in"]["board"] == "mps2-an500"
    assert [move["memory"] for move in document["stand_in"]["moved"]] == ["flash", "slow"]
    assert {"name": "flash", "read_cost": 5, "write_cost": 1} in document["memories"]
    (total,) = document["total"]
    read = {memory["name"]: memory["read_bytes"] for memory in total["memories"]}
    assert total["cycles"] == total["instructions"] + 4 * read["flash"]


def test_addresses_are_still_compared(tmp_path: Path) -> None:
    """The workspace is in another memory than the one that it was moved with."""
    target = board(tmp_path, FAR, "cortex-m7")
    bundle = tmp_path / "out"
    run("compile", DIGITS, "-o", bundle, "--target", target, "--workspace", "slow")
    assert run_bundle(bundle, seed=1, on="qemu").outputs
    names = names_of(read_plan(bundle))
    source = bundle / names.header
    macro = names.memory_base("slow")
    text = source.read_text("utf-8")
    assert f"#ifndef {macro}\n#define {macro} 0x24000000u\n#endif" in text
    source.write_text(
        text.replace(f"#ifndef {macro}\n", f"#undef {macro}\n#ifndef {macro}\n"), encoding="utf-8"
    )
    with pytest.raises(bytewright.CompileError) as caught:
        run_bundle(bundle, seed=1, on="qemu")
    assert "ERROR_RANGE" in caught.value.diagnostics[0].message


def test_memories_that_nothing_uses_do_not_count(tmp_path: Path) -> None:
    documents = []
    for name, script in (("near", NEAR), ("more", WITH_MORE)):
        (tmp_path / name).mkdir()
        target = board(tmp_path / name, script, "cortex-m4")
        documents.append(json.loads(run("run", DIGITS, "--target", target, "--on", "qemu", "--json")))
    assert documents[0] == documents[1]
    assert documents[0]["stand_in"] is None


@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m33"])
def test_code_of_another_core_stays_that_cores(core: str, tmp_path: Path) -> None:
    """Without divisions and without wide moves code is longer, whichever board runs it."""
    target = board(tmp_path, FAR, core)
    document = json.loads(run("run", DIGITS, "--target", target, "--on", "qemu", "--json"))
    assert document["stand_in"]["core"] in {"cortex-m4", "cortex-m55"}
    assert document["outputs"] == json.loads(run("run", DIGITS, "--json"))["outputs"]
    assert (document["instructions"] > 1_000_000) is (core == "cortex-m0plus")


def test_a_target_goes_with_a_model_alone(tmp_path: Path) -> None:
    run("compile", DIGITS, "-o", tmp_path / "out")
    for name in ("run", "profile"):
        done = invoke(name, tmp_path / "out", "--target", "host")
        assert done.exit_code == 2
        assert "--target is for a model: a bundle is compiled from one already" in done.stderr


def test_the_missing_bytes_are_said_before_anything_is_compiled(tmp_path: Path) -> None:
    target = board(
        tmp_path, FAR.replace("LENGTH = 2M", "LENGTH = 1024M").replace("0x08", "0x90"), "cortex-m55"
    )
    text = target.read_text("utf-8").replace("1GiB", "3GiB").replace("0x90000000", "0x40000000")
    target.write_text(text.replace("base = 0x24000000\n", "base = 0x10000000\n"), encoding="utf-8")
    done = invoke("run", DIGITS, "--target", target, "--on", "qemu", "--compiler", "false")
    assert done.exit_code == 1
    assert "error[BW204]: no board that QEMU emulates can run a bundle for target 'app'" in done.stderr
    assert "mps3-an547: memory 'flash' needs 3221225472 B in one piece" in done.stderr
