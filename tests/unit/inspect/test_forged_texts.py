"""A forger changes one statement and renews all digests: each change of what a plan decides is noticed, with a code."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import KernelCode, Options
from bytewright.target import load_target
from support.digits_bundle import DIGITS, change_file, two_by_two, write_digits
from support.forgeries import Forgery, forge, forgeries
from support.plan_bundles import open_extents
from support.plan_mutations import write_consistently
from support.row_bundle import write_by_rows
from support.state_programs import ACCUMULATOR
from support.tiers import THOROUGH, turn
from support.two_devices import PROGRAM, TARGET, bundle

# Of each file; a forger has more ideas than that.
MOST = 24 if THOROUGH else 3
# What is not noticed, and does no harm: C that means the same, or that no compiler takes. The page of `check --report`
# names it.
HARMLESS = (
    "swapped '#endif'",  # the comment behind it
    "'#include <",  # known to be there, or the C does not compile
    "twice '#define",
    "swapped 'uint8_t *const",  # addresses of pools, which no other needs
    "swapped 'const uint8_t *const",
    "twice 'if (shared != ",
    "swapped 'request_status = ",
)


# Scales each row by its number.
ROOTS = """\
module roots

input %x : tensor<4x8xf32>
output %y : tensor<4x8xf32>

kernel scale(
    x : buffer<8xf32> r activation,
    y : buffer<8xf32> w activation,
    factor : f32
) on cpu {{
  let own : f32 = {of_kernel}
  for k : i32 in 0 .. 8 {{
    y[k] = x[k] * own
  }}
}}

entry main(x : buffer<4x8xf32> r activation, y : buffer<4x8xf32> w activation) on cpu {{
  for i : i32 in 0 .. 4 {{
    let factor : f32 = {of_entry}
    call_extern scale(&x[i, 0], &y[i, 0], factor)
  }}
}}
"""


def _state(folder: Path) -> Path:
    (folder / "acc.bw").write_text(ACCUMULATOR)
    write_bundle(compile_model(folder / "acc.bw", load_target("host")).files, folder / "acc")
    return folder / "acc"


def _workspace(folder: Path) -> Path:
    (folder / "two.tflite").write_bytes(two_by_two())
    options = Options(io=Io.WORKSPACE)
    write_bundle(
        compile_model(folder / "two.tflite", load_target("mps3-an547"), options).files, folder / "two"
    )
    return folder / "two"


BOARD = """
name = "board"

[memory.flash]
base = 0x08000000
size = "2MiB"
access = "r"
section = ".flash"
region = "FLASH"

[memory.ram]
base = 0x20000000
size = "128KiB"
section = ".ram"
region = "RAM"

[device.cpu]
isa = "cortex-m7"
reach = ["flash", "ram"]
stack = "ram"

[[workspace]]
name = "ram"
memory = "ram"
provider = "generated"

[[parameters]]
name = "flash"
memory = "flash"
"""


def _sections(folder: Path) -> Path:
    """With a file for the linker script."""
    (folder / "board.toml").write_text(BOARD)
    write_bundle(compile_model(DIGITS, load_target(folder / "board.toml")).files, folder / "digits")
    return folder / "digits"


def _pushed(folder: Path) -> Path:
    options = Options(io=Io.ROWS)
    write_bundle(compile_model(DIGITS, load_target("mps3-an547"), options).files, folder / "digits")
    return folder / "digits"


def _open(folder: Path) -> Path:
    write_bundle(open_extents().files, folder / "halves")
    return folder / "halves"


BUNDLES: dict[str, Callable[[Path], Path]] = {
    "host": lambda folder: write_digits(folder / "digits", "host"),
    "cortex-m55": lambda folder: write_digits(folder / "digits", "mps3-an547", caller_parameters=True),
    "cortex-m4": lambda folder: write_digits(folder / "digits", "mps2-an386"),
    "state": _state,
    "rings": lambda folder: write_by_rows(folder / "rows"),
    "rows pushed": _pushed,
    "second core": lambda folder: bundle(folder / "pair", PROGRAM, TARGET),
    "io workspace": _workspace,
    "sections": _sections,
    "open extents": _open,
}


def verifies(folder: Path) -> bool:
    try:
        check_bundle(folder)
    except CompileError:
        return False
    return True


def cases(folder: Path, seed: int) -> list[Forgery]:
    """Changes of every text of a bundle but those of kernels."""
    plan = json.loads((folder / "plan.json").read_text())
    pool = next(pool["name"] for pool in plan["pools"])
    inserted = (
        f"return {plan['model'].upper()}_OK;",
        f"context->{pool} += 4;",
        "memset(context, 0, 4u);",
        ";",
    )
    found: list[Forgery] = []
    for path in plan["files"]:
        is_of_kernels = path.endswith("_kernels.c")
        if path.endswith((".c", ".h", "CMakeLists.txt", ".ld")) and not is_of_kernels:
            own = list(forgeries(path, (folder / path).read_text(), inserted))
            random.Random(seed).shuffle(own)
            found += own[:MOST]
    return found


@pytest.mark.parametrize("kind", BUNDLES)
def test_each_change_of_what_the_plan_decides_is_noticed(kind: str, tmp_path: Path) -> None:
    folder = BUNDLES[kind](tmp_path)
    assert verifies(folder)
    plan = (folder / "plan.json").read_text()
    missed: list[str] = []
    for forgery in cases(folder, turn()):
        before = (folder / forgery.path).read_text()
        forge(folder, forgery)
        is_named = any(text in forgery.what for text in HARMLESS)
        if not is_named and verifies(folder):
            missed.append(f"{forgery.path}: {forgery.what}")
        (folder / forgery.path).write_text(before)
        (folder / "plan.json").write_text(plan)
    assert missed == []
    assert verifies(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    memset(", "    context->kept += 4;\n    memset("),
        ("    memset(", "    return ACC_OK;\n    memset("),
        ("    context->is_reset = 1;\n", ""),
        ("    if (context->is_reset == 0) {\n        return ACC_ERROR_NOT_SET;\n    }\n", ""),
        ("(int32_t *)(void *)(kept + ACC_AT", "(int32_t *)(void *)(kept - ACC_AT"),
        ("    ACC_STEP(1, kept);\n", ""),
    ],
    ids=[
        "moved memory",
        "returned early",
        "did not say so",
        "runs before a reset",
        "below the pool",
        "no macro",
    ],
)
def test_a_forged_state_is_noticed(old: str, new: str, tmp_path: Path) -> None:
    folder = _state(tmp_path)
    change_file(folder, "src/acc.c", old, new)
    assert not verifies(folder)


# What stands for the first row, for a loop's end, and before its variable: of each one text, and what is like it.
FORGED_NUMBERS = {
    "narrower": ("{row},", "(int8_t)({row} + 256) - 256,"),
    "wrapped": ("{row},", "(int32_t)({row} + 4294967296) - 4294967296,"),
    "a product beyond 32 bits": (
        "{row},",
        "{row} + (turn * 65536 * 65536) - (turn * INT64_C(4294967296)),",
    ),
    "without a sign": ("{row},", "(int64_t)(uint32_t)({row}),"),
    "an unsigned number": ("{row},", "{row} + 1u - 1u,"),
    "a macro": ("{row},", "{row} + INT32_C(0),"),
    "an end in 8 bits": ("turn < {end};", "turn < (int8_t)({end} + 128) - 128;"),
    "an unsigned end": ("turn < {end};", "turn < {end}u;"),
    "compared in 8 bits": ("turn < {end};", "(uint8_t)turn < {end};"),
    "counted in 8 bits": ("int32_t turn = 0;", "int8_t turn = 0;"),
    "counted without a sign": ("int32_t turn = 0;", "uint8_t turn = 0;"),
}


@pytest.mark.parametrize("name", FORGED_NUMBERS)
def test_a_number_that_is_the_plan_s_only_without_its_type_is_noticed(name: str, tmp_path: Path) -> None:
    folder = write_by_rows(tmp_path / "rows")
    text = (folder / "src/rows.c").read_text()
    found = re.search(r"^ +(.*\bturn\b.*),\n", text, re.MULTILINE)
    end = re.search(r"turn < (\d+);", text)
    assert found is not None
    assert end is not None
    old, new = (form.format(row=found[1], end=end[1]) for form in FORGED_NUMBERS[name])
    change_file(folder, "src/rows.c", old, new)
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    assert "BW402" in [diagnostic.code for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize(
    "extent",
    [
        "(0*time+11)",
        "(time-10)",  # less than nothing below 10
        "(time-10)/0",
        "(1*time+1)/2",
        "(2*time+2)/4",
        "(time+01)/2",
        "(110000000*time+990000077)/300000007",  # 11 for 21, and a product beyond 32 bits
    ],
)
def test_a_forged_extent_that_is_right_for_the_most_is_noticed(extent: str, tmp_path: Path) -> None:
    """Plan, header and entry say the same of it, and all hashes are made anew."""
    folder = _open(tmp_path)
    assert verifies(folder)
    written = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    files = {path: content.replace(b"(time+1)/2", extent.encode()) for path, content in written.items()}
    changed = {path for path in files if files[path] != written[path]}
    assert changed == {"plan.json", "include/halves.h", "src/halves.c"}
    write_consistently(folder, files, json.loads(files["plan.json"]))
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    notes = [note for diagnostic in caught.value.diagnostics for note in diagnostic.notes]
    assert any(f"its extents are [1, '{extent}', 1, 6]" in note for note in notes), notes


@pytest.mark.parametrize("caller", ["kernel", "entry"])
def test_what_calls_functions_of_math_is_linked_with_them(caller: str, tmp_path: Path) -> None:
    """Either calls one in place of a conversion that both could do."""
    called, plain = "sqrtf(f32({}) * f32({}))", "f32({})"
    of_kernel, of_entry = (called, plain) if caller == "kernel" else (plain, called)
    (tmp_path / "roots.bw").write_text(
        ROOTS.format(of_kernel=of_kernel.replace("{}", "factor"), of_entry=of_entry.replace("{}", "i"))
    )
    write_bundle(compile_model(tmp_path / "roots.bw", load_target("host")).files, tmp_path / "roots")
    assert verifies(tmp_path / "roots")
    change_file(tmp_path / "roots", "CMakeLists.txt", "target_link_libraries(roots PUBLIC m)\n", "")
    assert not verifies(tmp_path / "roots")


@pytest.mark.parametrize("code", KernelCode)
@pytest.mark.parametrize(
    "put", ['__asm volatile("nop");', "(void)__builtin_clz(1);", "(void)vaddq_s32(1, 2);"]
)
def test_kernels_have_the_words_that_were_asked_for(code: KernelCode, put: str, tmp_path: Path) -> None:
    options = Options(kernel_code=code)
    write_bundle(compile_model(DIGITS, load_target("mps3-an547"), options).files, tmp_path / "digits")
    assert verifies(tmp_path / "digits")
    text = f"static void put(void)\n{{\n    {put}\n}}\n\nvoid digits_"
    change_file(tmp_path / "digits", "src/digits_kernels.c", "void digits_", text)
    assert verifies(tmp_path / "digits") == (code is not KernelCode.PORTABLE and "asm" not in put)


def test_the_file_for_the_linker_and_its_guard_are_the_plan_s(tmp_path: Path) -> None:
    folder = _sections(tmp_path)
    assert verifies(folder)
    path = "digits_sections.ld"
    text, plan = (folder / path).read_text(), (folder / "plan.json").read_text()
    for old, new in (("ABSOLUTE(0x", "ABSOLUTE(0x1"), ("ASSERT(", "/* */ ("), ("} > RAM", "} > OTHER")):
        change_file(folder, path, old, new)
        assert not verifies(folder)
        (folder / path).write_text(text)
        (folder / "plan.json").write_text(plan)
    assert verifies(folder)
    change_file(folder, "src/digits.c", "digits_sections_ld != 0x", "digits_sections_ld != 0x1")
    assert not verifies(folder)
