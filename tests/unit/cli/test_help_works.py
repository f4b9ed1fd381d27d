"""Every refusal of a compile comes with help that works: it is followed mechanically, and the compile succeeds.

One command line or more for every kind of refusal that options or the target file can mend, then grids of targets,
sizes, stacks and pins in which each refusal must come with working help, or say that no option helps where that is so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bytewright.cli.main import bytewright
from bytewright.target import load_text
from support.apply_help import IN_TARGET_FILE, NO_OPTION, help_lines, with_help, with_target_lines
from support.digits_bundle import DIGITS, two_by_two
from support.shared_models import VWW, model_path
from support.tiers import THOROUGH, covering
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.slow  # as a whole; single helps are followed in test_cli_compile.py too

BOARD = ("--target", "mps3-an547")
# The example's needs, as `bytewright compile` prints them for this board.
WORKSPACE_BYTES, PARAMETER_BYTES = 2048, 7709
BOARD_WORKSPACE_BYTES, BOARD_PARAMETER_BYTES, BOARD_STACK_BYTES = 2064, 8323, 576  # by kernels of MVE

SMALL = """\
name = "small"
tags = ["micro"]
[memory.ram]
size = "{ram}"
[memory.fast]
size = "{fast}"
[memory.far]
size = "64KiB"
[memory.rom]
size = "{rom}"
access = "r"
[device.cpu]
isa = "cortex-m3"
reach = ["ram", "fast", "rom"]
stack = "ram"
max-stack-size = "{stack}"
[device.npu]
isa = "npu"
reach = ["far"]
[[workspace]]
name = "fast"
memory = "fast"
[[parameters]]
name = "rom"
memory = "rom"
"""


def small(ram: str = "4KiB", fast: str = "8KiB", rom: str = "16KiB", stack: str = "2KiB") -> str:
    return SMALL.format(ram=ram, fast=fast, rom=rom, stack=stack)


@dataclass(frozen=True)
class Outcome:
    status: int
    text: str
    document: dict[str, Any] | None


def compile_with(
    folder: Path, model: Path, options: Sequence[str], target_file: str | None = None
) -> Outcome:
    """The command in this process; `--target` is added for a target file."""
    # Without rows, so that steps and sizes are those of the layers.
    words = ["compile", str(model), "-o", str(folder / "out"), "--json", "--rows", "off", *options]
    if target_file is not None:
        (folder / "board.toml").write_text(target_file, encoding="utf-8")
        words += ["--target", str(folder / "board.toml")]
    result = CliRunner().invoke(bytewright, words)
    return Outcome(result.exit_code, result.stderr, json.loads(result.stdout) if result.stdout else None)


def refused(
    folder: Path,
    options: Sequence[str],
    status: int,
    *texts: str,
    model: Path = DIGITS,
    file: str | None = None,
) -> str:
    """The error text of a compile that must fail with this status and these texts, and write nothing."""
    own = folder / "refused"
    own.mkdir(exist_ok=True)
    outcome = compile_with(own, model, options, file)
    assert outcome.status == status, outcome.text
    assert not (own / "out").exists()
    for text in texts:
        assert text in outcome.text
    return outcome.text


def mended(
    folder: Path, options: Sequence[str], text: str, *, model: Path = DIGITS, file: str | None = None
) -> dict[str, Any]:
    """plan.json of the compile with the options that the error text advises; it must succeed at once."""
    outcome = compile_with(folder, model, with_help(options, text), file)
    assert outcome.status == 0, f"{with_help(options, text)}\n{outcome.text}"
    assert outcome.document is not None
    return outcome.document


def place_of(document: dict[str, Any], buffer: str) -> str:
    return next(b["place"]["name"] for b in document["buffers"] if b["name"] == buffer)


KINDS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "one buffer is larger than every pool": (
        (*BOARD, "--workspace", "dtcm=512", "--workspace", "isram=1000"),
        3,
        (
            "pools 'dtcm', 'isram' have 1512 B together, at least 2048 B are needed at step 2: 536 B too few",
            "'conv2d_0/out' (1024 B, alive in steps 0..2, used in steps 0..2), of 0 (CONV_2D): 'stem'",
        ),
    ),
    "one pool is too small for what is pinned there": (
        (*BOARD, "--workspace", "dtcm=64", "--workspace", "isram", "--pin", "conv2d_0/out=dtcm"),
        3,
        (
            "pool 'dtcm' has 64 B, at least 1024 B are needed at step 0: 960 B too few",
            "alive in step 0, 0 (CONV_2D): 1 buffer, 1024 B",
        ),
    ),
    "one pool is too small for all": (
        (*BOARD, "--workspace", "dtcm=1536"),
        3,
        (
            "pool 'dtcm' has 1536 B, at least 2048 B are needed at step 2: 512 B too few",
            "alive in step 2, 2 (CONV_2D) + 3 (ADD): 3 buffers, 3072 B, of which 1024 B may be shared",
            "saved already: 1024 B by overlaps",
        ),
    ),
    "several pools are too small for all": (
        (*BOARD, "--workspace", "dtcm=1KiB", "--workspace", "isram=1000", "--workspace", "sram=512"),
        3,
        (
            "2 buffers, 2048 B, cannot be placed together",
            "dtcm  1KiB, 1056 B needed at step 2: 32 B too few",
            "'depthwise_conv2d_1/out' (1024 B, alive in steps 1..2, used in steps 1..2)",
            "without any one of them the others can be placed",
        ),
    ),
    "inputs and outputs in a workspace that is too small": (
        (*BOARD, "--workspace", "dtcm=1200", "--io", "workspace"),
        3,
        ("pool 'dtcm' has 1200 B, at least 2048 B are needed", "848 B too few"),
    ),
    "one parameter is larger than every pool": (
        (*BOARD, "--parameters", "flash=1KiB", "--parameters", "sram=2KiB"),
        3,
        ("pools 'flash', 'sram' have 3072 B together", "'conv2d_4/weights' (4608 B), of 4 (CONV_2D): "),
    ),
    "parameters are too many for their pool": (
        (*BOARD, "--resize", "flash=7KiB", "--resize", "dtcm=8KiB"),
        3,
        ("pool 'flash' has 7168 B, at least 8323 B are needed", "15 parameters, 8323 B"),
    ),
    "the stack overflows": (
        (*BOARD, "--max-stack-size", "1100"),
        3,
        (
            "needs 576 B; its limit is 1100 B, of which 1024 B are its reserve: 500 B too few",
            "worst path, arrays + allowance: main 0 B + 256 B -> digits_average_pool2d_5 64 B + 256 B",
        ),
    ),
    "stack, workspace and parameters at once": (
        (*BOARD, "--max-stack-size", "1100", "--workspace", "isram=1KiB", "--parameters", "flash=1KiB"),
        3,
        ("error[BW302]", "3 buffers, 3072 B", "'conv2d_4/weights' (4608 B)"),
    ),
    "pins contradict each other": (
        (*BOARD, "--pin", "conv*=dtcm", "--pin", "*/out=isram"),
        1,
        (
            "error[BW204]: --pin '*/out=isram' contradicts --pin 'conv*=dtcm': ",
            "'conv2d_0/out' has the scope global.dtcm already",
        ),
    ),
    "pins of one pattern contradict each other": (
        (*BOARD, "--pin", "conv2d_0/out=dtcm", "--pin", "conv2d_0/out=isram"),
        1,
        ("--pin 'conv2d_0/out=isram' contradicts --pin 'conv2d_0/out=dtcm'",),
    ),
    "three pins contradict each other": (
        (
            *(*BOARD, "--workspace", "dtcm", "--workspace", "isram", "--workspace", "sram"),
            *("--pin", "conv2d_0/*=dtcm", "--pin", "depthwise_conv2d_1/*=isram", "--pin", "*conv*/out=sram"),
        ),
        1,
        ("--pin '*conv*/out=sram' contradicts --pin 'conv2d_0/*=dtcm'",),
    ),
    "a contradiction whose solution would not fit as it stands": (
        (
            *BOARD,
            "--workspace",
            "dtcm=64",
            "--workspace",
            "isram=64",
            "--pin",
            "c*=dtcm",
            "--pin",
            "*/out=isram",
        ),
        1,
        ("error[BW204]",),
    ),
    "a pin to a pool that does not exist": (
        (*BOARD, "--pin", "conv2d_0/out=dctm"),
        1,
        ("error[BW204]: --pin 'conv2d_0/out=dctm' names the pool 'dctm', which does not exist",),
    ),
    "a pin that matches nothing": (
        (*BOARD, "--pin", "conv2d_0/outs=dtcm"),
        1,
        ("error[BW204]: --pin 'conv2d_0/outs=dtcm' matches no tensor or scratch of the workspace",),
    ),
    "a pool that is larger than its memory": (
        (*BOARD, "--workspace", "dtcm=600KiB", "--provider", "dtcm=generated"),
        1,
        (
            "error[BW204]: memory 'dtcm' has 524288 B, but its pools and stacks take 622592 B: 98304 B too many",
        ),
    ),
    "a stack that is larger than its memory": (
        (*BOARD, "--resize", "dtcm=4KiB", "--max-stack-size", "510KiB"),
        1,
        (
            "error[BW204]: memory 'dtcm' has 524288 B, but its pools and stacks take 526336 B: 2048 B too many",
        ),
    ),
    "a workspace in memory that is read-only": (
        (*BOARD, "--workspace", "dtcm=8KiB@flash"),
        1,
        ("error[BW204]: workspace pool 'dtcm' is in memory 'flash', which is read-only",),
    ),
    "two pools for what one memory has left": (
        (*BOARD, "--workspace", "dtcm", "--workspace", "b@dtcm"),
        1,
        ("error[BW204]: pools 'dtcm' and 'b' have no size",),
    ),
    "a reserve that leaves nothing of the stack": (
        (*BOARD, "--max-stack-size", "600"),
        1,
        ("error[BW204]: the stack reserve of 'cpu', 1024 B, leaves nothing of a stack of 600 B",),
    ),
    "a pool that does not exist": (
        (*BOARD, "--resize", "dctm=32KiB", "--provider", "flsh=caller"),
        1,
        ("error[BW204]: there is no pool 'dctm'", "error[BW204]: there is no pool 'flsh'"),
    ),
    "a memory that does not exist": (
        (*BOARD, "--workspace", "w=2KiB@dctm", "--workspace", "isram"),
        1,
        ("error[BW204]: there is no memory 'dctm' for pool 'w'",),
    ),
    "a parameter pool called as a workspace, both to take what is left": (
        (*BOARD, "--parameters", "flash", "--parameters", "isram"),
        1,
        (
            "error[BW204]: there are two pools called 'isram'",
            "error[BW204]: pools 'isram' and 'isram' have no size",
        ),
    ),
    "a workspace called as a parameter pool of the target": (
        ("--target", "mps2-an386", "--workspace", "ssram1=4KiB", "--workspace", "ssram23"),
        1,
        ("error[BW204]: there are two pools called 'ssram1'",),
    ),
    "a pool that is resized twice": (
        (*BOARD, "--resize", "dtcm=1KiB", "--resize", "dtcm=8KiB"),
        1,
        ("error[BW204]: --resize is given twice for pool 'dtcm'",),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_options_of_the_help_make_the_compile_succeed(kind: str, tmp_path: Path) -> None:
    options, status, texts = KINDS[kind]
    text = refused(tmp_path, options, status, *texts)
    document = mended(tmp_path, options, text)
    assert sum(pool["used_bytes"] for pool in document["pools"]) >= WORKSPACE_BYTES + PARAMETER_BYTES


def test_the_help_asks_for_no_byte_too_many(tmp_path: Path) -> None:
    """What it gives to the pool or stack that was too small is used to the last byte."""
    for options, advice in (
        (("--workspace", "dtcm=1KiB"), f"--resize dtcm={BOARD_WORKSPACE_BYTES}"),
        (("--parameters", "flash=1KiB"), f"--resize flash={BOARD_PARAMETER_BYTES}"),
        (
            ("--max-stack-size", "1100"),
            f"--max-stack-size {BOARD_STACK_BYTES + 1024}",
        ),  # the target's reserve
    ):
        assert help_lines(refused(tmp_path, (*BOARD, *options), 3)) == [advice]
        less = re.sub(r"\d+$", lambda match: str(int(match[0]) - 1), advice)
        refused(tmp_path, with_help((*BOARD, *options), f"help: {less}"), 3)


def test_every_error_of_one_compile_carries_the_same_list(tmp_path: Path) -> None:
    options = (*BOARD, "--max-stack-size", "1100", "--workspace", "dtcm=1KiB", "--parameters", "flash=1KiB")
    text = refused(tmp_path, options, 3)
    pools = f"--resize dtcm={BOARD_WORKSPACE_BYTES} --resize flash={BOARD_PARAMETER_BYTES}"
    advice = f"{pools} --max-stack-size {BOARD_STACK_BYTES + 1024}"
    assert [line for line in text.splitlines() if line.startswith("help")] == [f"help: {advice}"] * 3


def test_visual_wake_words_in_16_kib(tmp_path: Path) -> None:
    options = (*BOARD, "--workspace", "dtcm=16KiB")
    text = refused(
        tmp_path,
        options,
        3,
        "pool 'dtcm' has 16384 B, at least 36880 B are needed at step 2: 20496 B too few",
        "'conv2d_2/out' (",
        model=model_path(VWW),
    )
    assert help_lines(text) == ["--resize dtcm=36880"]
    document = mended(tmp_path, options, text, model=model_path(VWW))
    assert document["pools"][0]["used_bytes"] == 36880


# --- memories that are full, or out of reach


def test_a_stack_in_a_full_memory_takes_its_bytes_from_the_pool_beside_it(tmp_path: Path) -> None:
    file = small(ram="4KiB", stack="200").replace(
        "[[parameters]]", '[[workspace]]\nname = "rest"\nmemory = "ram"\nsize = 3896\n[[parameters]]'
    )
    text = refused(
        tmp_path, (), 3, "error[BW302]: the stack of 'cpu' needs 544 B; its limit is 200 B", file=file
    )
    assert help_lines(text) == ["--resize rest=3552 --max-stack-size 544"]
    mended(tmp_path, (), text, file=file)


def test_a_stack_gives_up_what_it_does_not_need(tmp_path: Path) -> None:
    file = small(ram="4KiB", fast="1KiB", stack="2KiB")
    text = refused(
        tmp_path,
        (),
        3,
        "error[BW301]: pool 'fast' has 1024 B, at least 2048 B are needed at step 2: 1024 B too few",
        "alive in step 2, 2 (CONV_2D) + 3 (ADD): ",
        file=file,
    )
    document = mended(tmp_path, (), text, file=file)
    assert place_of(document, "conv2d_0/out") in ("fast", "ram")
    tight = small(ram="2700", fast="16", stack="2KiB")  # 544 B of stack, and 2048 B of workspace beside it
    text = refused(tmp_path, (), 3, "error[BW301]", file=tight)
    assert "--max-stack-size 544" in text
    mended(tmp_path, (), text, file=tight)


def test_pins_that_no_pool_can_keep_are_left_out(tmp_path: Path) -> None:
    """One of the two buffers that are alive at once fits beside the stack, the other one in the other memory."""
    file, options = small(ram="1700", fast="1100", stack="1KiB"), ("--pin", "*=fast")
    text = refused(tmp_path, options, 3, "error[BW301]", file=file)
    assert help_lines(text) == [
        "leave out --pin '*=fast', and add --workspace fast --workspace ram=1KiB --max-stack-size 544"
    ]
    mended(tmp_path, options, text, file=file)
    text = refused(tmp_path, ("--pin", "xyz=fast"), 1, "error[BW204]", "names are conv2d_0/out", file=small())
    assert help_lines(text) == ["leave out --pin xyz=fast"]
    mended(tmp_path, ("--pin", "xyz=fast"), text, file=small())


def test_a_pool_that_the_processor_does_not_reach(tmp_path: Path) -> None:
    options = ("--workspace", "fast=512", "--workspace", "far")
    file = small()
    text = refused(
        tmp_path,
        options,
        3,
        "error[BW301]",
        "pool 'fast' has 512 B, at least 2048 B are needed",
        file=file,
    )
    assert "far" not in text.partition("help: ")[0]  # not even a candidate
    mended(tmp_path, options, text, file=file)
    alone = ("--workspace", "far=16KiB")
    text = refused(
        tmp_path,
        alone,
        3,
        "error[BW301]: 'conv2d_0/out' cannot be placed in any workspace pool",
        "far  is in memory 'far', which device 'cpu' does not reach",
        "'cpu' reaches: ram, fast, rom",
        file=file,
    )
    document = mended(tmp_path, alone, text, file=file)
    assert place_of(document, "conv2d_0/out") != "far"


def test_where_only_a_memory_out_of_reach_has_room_the_target_file_must_say_that_it_is_reached(
    tmp_path: Path,
) -> None:
    file, options = small(ram="1000", fast="300", stack="900"), ("--workspace", "far=16KiB")
    text = refused(tmp_path, options, 3, "which device 'cpu' does not reach", file=file)
    line = 'in the target file: [device.cpu] reach = ["ram", "fast", "rom", "far"]'
    assert help_lines(text) == [line]
    outcome = compile_with(tmp_path, DIGITS, options, with_target_lines(file, text))
    assert outcome.status == 0, outcome.text
    assert outcome.document is not None
    assert place_of(outcome.document, "conv2d_0/out") == "far"


def test_a_pool_that_names_its_devices_is_lent_to_one_more(tmp_path: Path) -> None:
    file = (
        small(ram="2KiB", fast="1KiB")
        .replace('"rom"]', '"rom", "far"]')
        .replace(
            "[[workspace]]", '[[workspace]]\nname = "wide"\nmemory = "far"\ndevices = ["npu"]\n[[workspace]]'
        )
    )
    text = refused(tmp_path, (), 3, "error[BW301]", file=file)
    document = mended(tmp_path, (), text, file=file)
    assert place_of(document, "conv2d_0/out") != "wide"


@pytest.mark.parametrize("key", ["pool", "devices", "stack"])
def test_what_a_target_file_puts_out_of_reach(tmp_path: Path, key: str) -> None:
    """Found when the file is read; the line that it advises is for the same file."""
    file, error = small().replace('reach = ["far"]', 'reach = ["rom"]'), ""
    if key == "pool":
        file += '[[workspace]]\nname = "moon"\nmemory = "far"\n'
        error = "no device reaches memory 'far', so none can use pool 'moon'"
    elif key == "devices":
        file += '[[workspace]]\nname = "moon"\nmemory = "far"\ndevices = ["cpu"]\n'
        error = "pool 'moon' is for device 'cpu', which does not reach memory 'far'"
    else:
        file = file.replace('stack = "ram"', 'stack = "far"')
        error = "the stack of 'cpu' is in memory 'far', which 'cpu' does not reach"
    text = refused(tmp_path, (), 1, "error[BW202]", error, "'cpu' reaches: ram, fast, rom", file=file)
    assert compile_with(tmp_path, DIGITS, (), with_target_lines(file, text)).status == 0


def test_a_pool_option_in_memory_that_no_device_reaches(tmp_path: Path) -> None:
    file, options = small().replace('reach = ["far"]', 'reach = ["rom"]'), ("--workspace", "w=4KiB@far")
    text = refused(
        tmp_path, options, 1, "error[BW204]: no device reaches memory 'far'", "'npu' reaches", file=file
    )
    assert help_lines(text) == ["--workspace w=4KiB@fast"]
    mended(tmp_path, options, text, file=file)


# --- what only the target file can say


def test_undeclared_tags_of_the_machine(tmp_path: Path) -> None:
    for tags, right in (('["micr"]', '["micro"]'), ('["micro", "smal"]', '["micro"]')):
        file = small().replace('["micro"]', tags)
        text = refused(tmp_path, (), 1, "error[BW202]: unknown tag", "tags: micro", file=file)
        assert help_lines(text) == [f"in the target file: tags = {right}"]
        assert compile_with(tmp_path, DIGITS, (), with_target_lines(file, text)).status == 0


def test_private_arrays_that_are_too_large(tmp_path: Path) -> None:
    """All kernels at once: the help is for the largest."""
    file = small().replace('isa = "cortex-m3"', 'isa = "cortex-m4"\nmax-local-size = 0')
    text = refused(tmp_path, (), 3, "error[BW302]", "is private ('local') and takes", "admits 0 B", file=file)
    assert "in the target file: [device.cpu] max-local-size = " in text
    edited = file
    for line in help_lines(text):
        edited = with_target_lines(edited, f"help: {line}")
    assert compile_with(tmp_path, DIGITS, (), edited).status == 0


@pytest.mark.parametrize("role", ["workspace", "parameters"])
def test_a_target_without_pools_of_a_role(tmp_path: Path, role: str) -> None:
    pool = {"workspace": "fast", "parameters": "rom"}[role]
    file = small().replace(f'[[{role}]]\nname = "{pool}"\nmemory = "{pool}"\n', "")
    assert not load_text(file, "board.toml").find_pool(pool)
    text = refused(
        tmp_path, (), 3, "error[BW301]", f"target 'small' has no {role.removesuffix('s')} pool", file=file
    )
    mended(tmp_path, (), text, file=file)


def test_a_model_that_needs_no_pool_needs_none(tmp_path: Path) -> None:
    model = tmp_path / "two.tflite"
    model.write_bytes(two_by_two())
    file = small().partition("[[workspace]]")[0]
    assert compile_with(tmp_path, model, (), file).status == 0


# --- grids


def assert_help_works(
    folder: Path, model: Path, options: Sequence[str], file: str | None, fits_somehow: bool
) -> str:
    """What became of a command: "fits", "mended", or "hopeless", which must be true.

    Options that no model could be compiled with are mended first, before a model is looked at.
    """
    outcome = compile_with(folder, model, options, file)
    if outcome.status == 1:
        if not help_lines(outcome.text):
            assert not fits_somehow, outcome.text
            return "hopeless"
        options = with_help(options, outcome.text)
        outcome = compile_with(folder, model, options, file)
    if outcome.status == 0:
        return "fits"
    assert outcome.status == 3, outcome.text
    (line,) = help_lines(outcome.text)
    if line.startswith(NO_OPTION):
        assert not fits_somehow, outcome.text
        return "hopeless"
    if file is not None and line.startswith(IN_TARGET_FILE):
        file = with_target_lines(file, outcome.text)
    else:
        options = with_help(options, outcome.text)
    again = compile_with(folder, model, options, file)
    assert again.status == 0, f"{outcome.text}\n{options}\n{again.text}"
    return "mended"


def test_a_grid_of_pools_stacks_and_pins_on_the_board(tmp_path: Path) -> None:
    """The board has memory for anything, so that every refusal can be mended."""
    both = ("--workspace", "isram=512", "--workspace", "dtcm=3072")
    for workspace, parameters, stack, pin in covering(
        (("--workspace", "dtcm=1KiB"), both),
        (
            (),
            ("--parameters", "sram=4KiB", "--parameters", "flash=4KiB"),
            ("--resize", f"flash={BOARD_PARAMETER_BYTES - 1}"),
        ),
        ((), ("--max-stack-size", str(BOARD_STACK_BYTES + 1024 - 1))),  # 1024 B: the target's reserve
        ((), ("--pin", "conv2d_0/out=dtcm", "--pin", "depthwise*=dtcm"), ("--pin", "*=flash")),
    ):
        words = (*BOARD, *workspace, *parameters, *stack, *pin)
        became = assert_help_works(tmp_path, DIGITS, words, None, fits_somehow=True)
        # 512 B and 3072 B, with any pins, and all else as the target has it
        assert became == ("fits" if workspace == both and not parameters and not stack else "mended")


def chain_model(num_layers: int, width: int) -> bytes:
    """Additions, each of the two tensors before it, so that three are alive at once; no constants."""
    builder = ModelBuilder()
    shape = [1, width]
    tensors = [builder.tensor(name, shape, "float32") for name in ("a", "b")]
    for index in range(num_layers):
        tensors.append(builder.tensor(f"t{index}", shape, "float32"))
        builder.operator("ADD", tensors[-3:-1], [tensors[-1]], activation="NONE")
    return builder.build(inputs=tensors[:2], outputs=[tensors[-1]])


SIZES = st.sampled_from(["64", "320", "600", "1KiB", "1500", "2KiB", "4KiB", "8KiB"])
LISTS = st.lists(
    st.tuples(st.sampled_from(["ram", "fast"]), SIZES), max_size=2, unique_by=lambda pair: pair[0]
)


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    """Options for the small target, many of which cannot be kept."""
    pools = draw(LISTS)
    words = [word for name, size in pools for word in ("--workspace", f"{name}={size}")]
    if draw(st.booleans()):
        words += ["--parameters", draw(st.sampled_from(["ram=1KiB", "fast=4KiB", "rom=2KiB"]))]
    if draw(st.booleans()):
        words += ["--max-stack-size", draw(SIZES)]
    if pools and draw(st.booleans()):
        words += ["--pin", f"*={pools[0][0]}"]
    return [*words, *draw(st.sampled_from([(), ("--io", "workspace")]))]


# Where a first version of the search found nothing: a pool of the same role that must make room for the stack, and
# parameters in the memory that the workspace needs.
@example(
    ram="600", fast="1KiB", stack="64", rom="16KiB", options=["--workspace", "ram=536"], is_example=False
)
@example(
    ram="8KiB",
    fast="1KiB",
    stack="320",
    rom="7709",
    options=["--workspace", "fast=600", "--io", "workspace", "--parameters", "ram=1KiB"],
    is_example=True,
)
@example(
    ram="1KiB",
    fast="4KiB",
    stack="64",
    rom="16KiB",
    options=[
        *("--workspace", "ram=1KiB", "--workspace", "fast=64"),
        *("--max-stack-size", "320", "--parameters", "fast=4KiB"),
    ],
    is_example=True,
)
@settings(max_examples=300 if THOROUGH else 5)
@given(
    ram=SIZES,
    fast=SIZES,
    stack=SIZES,
    rom=st.sampled_from(["1KiB", "4KiB", "7709", "16KiB"]),
    options=commands(),
    is_example=st.booleans(),
)
def test_any_small_target_and_options(
    tmp_path_factory: pytest.TempPathFactory,
    ram: str,
    fast: str,
    stack: str,
    rom: str,
    options: list[str],
    is_example: bool,
) -> None:
    """Help works, or no option helps; and then no assignment of whole roles to memories could have held it all."""
    assume(bytes_of(stack) <= bytes_of(ram))  # else the file is refused, whatever the model
    folder = tmp_path_factory.mktemp("any")
    model = DIGITS
    if not is_example:
        model = folder / "chain.tflite"
        model.write_bytes(chain_model(4, 100))
    workspace, parameters, stack_bytes = needs_with_room(model.read_bytes())
    left = bytes_of(ram) - stack_bytes
    fits_somehow = (
        left >= 0 and parameters <= bytes_of(rom) and (workspace <= bytes_of(fast) or workspace <= left)
    )
    assert_help_works(folder, model, options, small(ram, fast, rom, stack), fits_somehow)


@cache
def needs_with_room(content: bytes) -> tuple[int, int, int]:
    """Bytes of workspaces, parameters and stack of a model, where there is room for anything."""
    with TemporaryDirectory() as name:
        model = Path(name) / "roomy.tflite"
        model.write_bytes(content)
        roomy = compile_with(Path(name), model, (), small("64KiB", "64KiB", "64KiB", "4KiB"))
    assert roomy.document is not None
    workspace, parameters = (
        sum(pool["used_bytes"] for pool in roomy.document["pools"] if pool["role"] == role)
        for role in ("workspace", "parameters")
    )
    return workspace, parameters, roomy.document["stack"]["cpu"]["size_bytes"]


def bytes_of(size: str) -> int:
    return int(size.removesuffix("KiB")) << (10 if size.endswith("KiB") else 0)
