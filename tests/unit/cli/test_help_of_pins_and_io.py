"""Help for pins with an order or an offset, pools for inputs and outputs, and address widths: followed, it works."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from bytewright.target import dump_toml, load_target
from support.apply_help import help_lines, with_help
from support.digits_bundle import DIGITS

pytestmark = pytest.mark.slow  # as a whole

IO_POOLS = """
[[io]]
name = "frames"
memory = "dtcm"
size = 8
[[io]]
name = "results"
memory = "sram"
size = 128
"""
WORKSPACE = ("--io", "workspace")
# Options on a board with the two pools above -> exit status, and what the refusal says.
KINDS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "an order with a pool that does not exist": (
        ("--pin", "conv2d_0/out=dctm,isram"),
        1,
        "names the pool 'dctm', which does not exist",
    ),
    "an order of both roles": (("--pin", "conv2d_0/out=dtcm,flash"), 1, "no buffer may be in both"),
    "an order of pools that are too small": (
        ("--workspace", "dtcm=512", "--workspace", "isram=512", "--pin", "conv2d_0/out=dtcm,isram"),
        3,
        "pools 'dtcm', 'isram' have 1024 B together, at least 1536 B are needed at step 0: 512 B too few",
    ),
    "orders that have no pool in common": (
        ("--pin", "conv2d_0/out=dtcm", "--pin", "*/out=isram,frames"),
        1,
        "error[BW204]",
    ),
    "an offset that is not aligned": (("--pin", "conv2d_0/out=dtcm+4097"), 1, "is not a multiple of 16"),
    "an offset behind the pool": (("--pin", "conv2d_0/out=dtcm+64KiB"), 3, "error[BW301]"),
    "two offsets of one buffer": (
        ("--pin", "conv2d_0/out=dtcm+0", "--pin", "conv2d_0/out=dtcm+64"),
        1,
        "is at offset 0 already",
    ),
    "offsets that overlap": (
        ("--pin", "conv2d_0/out=dtcm+0", "--pin", "depthwise_conv2d_1/out=dtcm+64"),
        1,
        "pins to offsets contradict each other",
    ),
    "pools for inputs and outputs that are too small": (
        (*WORKSPACE, "--resize", "results=16"),
        3,
        "B together, at least ",
    ),
    "pools for inputs and a workspace that are too small": (
        (*WORKSPACE, "--resize", "results=1", "--workspace", "dtcm=16"),
        3,
        "pools 'dtcm', 'frames', 'results' have 25 B together, at least 1600 B are needed",
    ),
    "weights in a pool of the workspace": (
        ("--pin", "conv2d_*/weights=dtcm"),
        1,
        "help: --parameters hot=5KiB@dtcm --parameters flash --pin 'conv2d_*/weights=hot'",
    ),
    "weights in a pool of the workspace, with one for them in its memory": (
        ("--parameters", "fast=16K@dtcm", "--parameters", "flash", "--pin", "*/weights=dtcm"),
        1,
        "help: --pin '*/weights=fast'",
    ),
    "an input that the application brings": (("--pin", "image=results"), 1, "those are the application's"),
    "an input that the application brings, and a pool that is too small": (
        ("--pin", "image=frames"),
        1,
        "those are the application's",
    ),
    "a tensor that is no input, with inputs of the application": (
        ("--pin", "conv2d_0/out=results"),
        1,
        "those are the application's",
    ),
    "a tensor that is no input": ((*WORKSPACE, "--pin", "conv2d_0/out=results"), 3, "inputs and outputs alone"),
    "an input in a workspace": ((*WORKSPACE, "--pin", "image=isram"), 3, "is not for inputs and outputs"),
    "an input in a pool that does not exist": (
        (*WORKSPACE, "--pin", "image=frmes"),
        1,
        "names the pool 'frmes', which does not exist",
    ),
}  # fmt: skip


def compiled(folder: Path, options: Sequence[str], target: str) -> Result:
    words = ["compile", str(DIGITS), "-o", str(folder / "out"), "--target", target, *options]
    return CliRunner().invoke(bytewright, words)


def board(folder: Path, more: str = IO_POOLS) -> str:
    file = folder / "board.toml"
    file.write_text(dump_toml(load_target("mps3-an547")) + more, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("kind", KINDS)
def test_the_help_makes_the_compile_succeed(kind: str, tmp_path: Path) -> None:
    options, status, said = KINDS[kind]
    target = board(tmp_path)
    refused = compiled(tmp_path, options, target)
    assert (refused.exit_code, said in refused.stderr) == (status, True), refused.stderr
    advised = with_help(options, refused.stderr)
    again = compiled(tmp_path, advised, target)
    assert again.exit_code == 0, f"{refused.stderr}\n{advised}\n{again.stderr}"


def test_a_state_pool_that_no_model_uses_is_no_obstacle(tmp_path: Path) -> None:
    table = '[[state]]\nname = "kept"\nmemory = "dtcm"\nsize = 8\n'
    assert compiled(tmp_path, (), board(tmp_path, table)).exit_code == 0


def test_a_batch_that_no_index_counts(tmp_path: Path) -> None:
    refused = compiled(tmp_path, ("--batch-max", "2100000"), "host")
    assert refused.exit_code == 1
    (line,) = help_lines(refused.stderr)
    advised = re.fullmatch(r"--batch-max (\d+)", line)
    assert advised is not None
    assert compiled(tmp_path, line.split(), "host").exit_code == 0
    more = ("--batch-max", str(int(advised[1]) + 1))
    assert compiled(tmp_path, more, "host").exit_code == 1  # no sample fewer than must be


def test_a_batch_that_no_address_reaches(tmp_path: Path) -> None:
    refused = compiled(tmp_path, ("--batch-max", "1100000"), "generic-cortex-m")
    assert refused.exit_code == 3
    (line,) = help_lines(refused.stderr)
    advised = re.fullmatch(r"--batch-max (\d+)", line)
    assert advised is not None
    assert compiled(tmp_path, line.split(), "generic-cortex-m").exit_code == 0
    more = ("--batch-max", str(int(advised[1]) + 1))
    assert compiled(tmp_path, more, "generic-cortex-m").exit_code == 3
