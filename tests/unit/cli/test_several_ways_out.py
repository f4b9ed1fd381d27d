"""BW301 has several ways out: each is followed to the letter and compiles, and with one byte less it does not.

The commands run as a user would type them, in this process.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from support.apply_help import parsed, with_help
from support.digits_bundle import DIGITS
from support.entry_programs import WAKE
from support.streamed_nets import keyword_net

EXACT = {"--resize": -1, "--max-stack-size": -1, "--batch-max": 1}
BOARD = ("--target", "mps3-an547")
SMALL = """\
name = "small"
tags = ["micro"]
[memory.ram]
size = {ram}
[memory.rom]
size = "{rom}"
access = "r"
[device.cpu]
isa = "{isa}"
reach = ["ram", "rom"]
stack = "ram"
max-stack-size = {stack}
stack-reserve = 128
[[workspace]]
name = "ram"
memory = "ram"
[[parameters]]
name = "rom"
memory = "rom"
"""


@dataclass(frozen=True)
class Misfit:
    """A command that is refused.

    Attributes:
        options: Of the command.
        changed: What the ways out change, in their order: the options of each.
        file: Of a target.
    """

    options: tuple[str, ...]
    changed: tuple[set[str], ...]
    file: str | None = None
    model: Callable[[], bytes] = DIGITS.read_bytes
    suffix: str = ".tflite"


MISFITS = {
    "a pool of a large memory": Misfit((*BOARD, "--workspace", "dtcm=1535"), ({"--resize"}, {"--workspace"})),
    "layers that run one by one": Misfit(
        (*BOARD, "--workspace", "dtcm=1600", "--rows", "off"), ({"--resize"}, {"--rows"}, {"--workspace"})
    ),
    "parameters": Misfit(
        (*BOARD, "--parameters", "flash=8000"), ({"--resize"}, {"--parameters"}, {"--kernels"})
    ),
    "inputs and outputs": Misfit(
        (*BOARD, "--workspace", "dtcm=1599", "--io", "workspace"), ({"--resize"}, {"--workspace"}, {"--io"})
    ),
    "a batch": Misfit(
        (*BOARD, "--workspace", "dtcm=8KiB", "--batch-max", "8"),
        ({"--resize"}, {"--workspace"}, {"--batch-max"}),
    ),
    "the stack": Misfit((*BOARD, "--max-stack-size", "1599"), ({"--max-stack-size"},)),
    "what is pinned": Misfit(
        (
            *(*BOARD, "--rows", "off", "--workspace", "dtcm=1023", "--workspace", "isram=64KiB"),
            *("--pin", "conv2d_0/out=dtcm"),
        ),
        ({"--resize"}, {"--rows"}, {"--pin"}),
    ),
    "stack and workspace of one memory": Misfit(
        (),
        ({"--kernels", "--max-stack-size"},),
        SMALL.format(ram=2048, rom="64KiB", isa="cortex-m4f", stack=1024),
    ),
    "a window of frames": Misfit(
        (),
        ({"--stream"},),
        SMALL.format(ram=2320, rom="64KiB", isa="cortex-m3", stack=700),
        partial(keyword_net, 49, channels=16),
    ),
    "a program of two entries": Misfit(
        ("--resize", "ram=15"),
        ({"--resize"},),
        SMALL.format(ram=4096, rom="64KiB", isa="cortex-m3", stack=1024),
        WAKE.encode,
        ".bw",
    ),
}


def compiled(folder: Path, misfit: Misfit, options: list[str], file: str | None = None) -> Result:
    model = folder / f"model{misfit.suffix}"
    model.write_bytes(misfit.model())
    target: list[str] = []
    if misfit.file is not None:
        (folder / "small.toml").write_text(file or misfit.file, encoding="utf-8")
        target = ["--target", str(folder / "small.toml")]
    words = ["compile", str(model), "-o", str(folder / "out"), *target, *options, "--json"]
    return CliRunner().invoke(bytewright, words)


def errors_of(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 3, (result.stdout, result.stderr)
    return json.loads(result.stderr.splitlines()[-1])["errors"]


def test_where_nothing_helps_the_memory_that_would_do_is_said_to_the_byte(tmp_path: Path) -> None:
    def small(ram: int) -> Misfit:
        return Misfit((), (), SMALL.format(ram=ram, rom="64KiB", isa="cortex-m3", stack=672))

    (error,) = errors_of(compiled(tmp_path, small(1700), []))
    needed = re.search(r"it fits with (\d+) B in memory 'ram', (\d+) B more; ", error["help"])
    assert needed is not None
    assert error["help"].startswith("no option helps: ")
    assert error["changes"] == []
    assert int(needed[1]) == 1700 + int(needed[2])
    assert compiled(tmp_path, small(int(needed[1])), []).exit_code == 0
    errors_of(compiled(tmp_path, small(int(needed[1]) - 1), []))


def test_a_buffer_larger_than_every_pool_is_said_beside_their_sizes(tmp_path: Path) -> None:
    misfit = Misfit((*BOARD, "--workspace", "dtcm=1000", "--workspace", "isram=512", "--rows", "off"), ())
    (error,) = errors_of(compiled(tmp_path, misfit, list(misfit.options)))
    found = [
        re.fullmatch(r"'(.+)' alone needs (\d+) B, and no pool for it has that: (.*)", n)
        for n in error["notes"]
    ]
    assert {each[3] for each in found if each} == {"dtcm 1000 B, isram 512 B"}
    sizes = {each[1]: int(each[2]) for each in found if each}
    assert sizes["conv2d_0/out"] == 1024
    assert min(sizes.values()) > 1000


def test_of_several_entries_the_one_is_named(tmp_path: Path) -> None:
    misfit = MISFITS["a program of two entries"]
    (error,) = errors_of(compiled(tmp_path, misfit, list(misfit.options)))
    assert "16 B are needed at step 2 of entry 'classify': 1 B too few" in error["message"]


def without_a_byte(options: list[str], added: list[str]) -> list[list[str]]:
    """The options with one byte less, or one sample more, of each size that is exact, as those of lists are not."""
    found: list[list[str]] = []
    for name, value in parsed(added):
        if value is not None and name in EXACT:
            number = re.search(r"\d+$", value)
            assert number is not None
            less = f"{value[: number.start()]}{int(number[0]) + EXACT[name]}"
            found.append([less if word == value else word for word in options])
    return found


@pytest.mark.parametrize("kind", MISFITS)
def test_each_way_out_compiles_and_a_byte_less_does_not(kind: str, tmp_path: Path) -> None:
    misfit = MISFITS[kind]
    refused = compiled(tmp_path, misfit, list(misfit.options))
    (error,) = errors_of(refused)
    changes = error["changes"]
    names = [{word for word in change["add"] if word.startswith("--")} for change in changes]
    assert names == list(misfit.changed)
    printed = [line[6:] for line in refused.stderr.splitlines() if line.startswith(("help: ", "  or: "))]
    assert printed == [change["text"] for change in changes]
    for change in changes:
        assert shlex.split(change["text"]) == change["add"]
        options = with_help(misfit.options, f"help: {change['text']}")
        done = compiled(tmp_path, misfit, options)
        assert done.exit_code == 0, (change["text"], done.stderr)
        for less in without_a_byte(options, change["add"]):
            assert compiled(tmp_path, misfit, less).exit_code in (1, 3), less
