"""Tags that a plug-in's pass lowers: installed, missing, failing, and returning what does not verify."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.target import Target, load_target
from support.ir_text import SMALL, small_result, write_small
from support.plug_in import BANKED, LOWERS_BANKS, install, plug_ins

__all__ = ["plug_ins"]
TAGGED = SMALL.replace("allocate work : buffer<8xi32>", 'allocate work : buffer<8xi32, "global.bank">')
_NUMBERS = itertools.count()


@pytest.fixture
def banked(tmp_path: Path) -> Target:
    (tmp_path / "banked.toml").write_text(BANKED)
    return load_target(str(tmp_path / "banked.toml"))


def install_fresh(folder: Path, body: str) -> str:
    """A plug-in of a name that no test has imported yet."""
    name = f"banks{next(_NUMBERS)}"
    install(folder, body, name)
    return f"'{name} 1.0'"


def refusals(tmp_path: Path, target: Target) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(write_small(tmp_path, TAGGED), target=target)
    return caught.value.diagnostics


def test_the_pass_of_an_installed_distribution_lowers_its_tag(tmp_path: Path, plug_ins: Path, banked: Target):
    install_fresh(plug_ins, LOWERS_BANKS)
    model = bytewright.compile(write_small(tmp_path, TAGGED), target=banked)
    (scratch,) = [buffer for buffer in model.plan.buffers.values() if buffer.role == "scratch"]
    assert (scratch.place.kind, scratch.place.name, scratch.alignment) == ("planned", "ram", 32)
    assert "lower_banks: banks are workspace" in scratch.reason
    x = np.arange(-4, 4, dtype=np.int8)
    assert np.array_equal(model.run(x), small_result(x))


def test_the_command_finds_it_as_pip_leaves_it(tmp_path: Path):
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, LOWERS_BANKS)
    path = write_small(tmp_path, TAGGED)
    (tmp_path / "banked.toml").write_text(BANKED)
    arguments = ["compile", path, "-o", tmp_path / "out", "--target", tmp_path / "banked.toml", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "bytewright", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["target"] == "banked"


def test_no_plug_in_is_looked_for_without_the_tag(tmp_path: Path, banked: Target):
    assert bytewright.compile(write_small(tmp_path), target=banked).plan.target == "banked"


def test_a_missing_pass_is_named_with_what_needs_it(tmp_path: Path, plug_ins: Path, banked: Target):
    install(plug_ins, LOWERS_BANKS, group="other.group")
    (error,) = refusals(tmp_path, banked)
    assert (error.code, error.exit_code) == ("BW503", 5)
    assert error.message == "no plug-in has the pass 'lower_banks', which lowers a tag of target 'banked'"
    assert error.notes[0] == "'work' of kernel 'small_scale' has the scope global.bank"


def test_two_plug_ins_with_one_pass_are_refused(tmp_path: Path, plug_ins: Path, banked: Target):
    first, second = install_fresh(plug_ins, LOWERS_BANKS), install_fresh(plug_ins, LOWERS_BANKS)
    (error,) = refusals(tmp_path, banked)
    assert error.code == "BW503"
    assert error.message == f"2 plug-ins have a pass 'lower_banks': {', '.join(sorted((first, second)))}"


FAULTS = {
    "raises": ("def lower(module, target): raise KeyError('bank')", "failed", "KeyError: 'bank'"),
    "import": ("import nothing_of_this_name", "cannot be loaded", "ModuleNotFoundError"),
    "no name": ("", "cannot be loaded", "AttributeError"),
    "no function": ("lower = 1", "is no function", "is a int"),
    "arguments": ("def lower(module): return module", "failed", "TypeError"),
    "nothing": ("def lower(module, target): pass", "returned no module", "a NoneType"),
    "left": (
        "def lower(module, target): return module",
        "returned a module that does not verify",
        "'work' of kernel 'small_scale' has the scope global.bank, which this pass lowers",
    ),
    "ends the program": (
        "import sys\ndef lower(module, target): sys.exit(0)",
        "failed",
        "SystemExit: 0",
    ),
    "ends the program when it is loaded": (
        "import sys\nsys.exit(0)\n",
        "cannot be loaded",
        "SystemExit: 0",
    ),
    "ports": (
        LOWERS_BANKS + "\ninner = lower\n"
        "def lower(module, target): return replace(inner(module, target), inputs=())",
        "does not verify",
        "it changed the module's inputs",
    ),
    "undefined": (
        LOWERS_BANKS + "\ninner = lower\n"
        "def lower(module, target):\n"
        "    done = inner(module, target)\n"
        "    kernels = tuple(replace(k, parameters=k.parameters[1:]) for k in done.kernels)\n"
        "    return replace(done, kernels=kernels)",
        "does not verify",
        "in 'small_twice': ",
    ),
    "local": (
        LOWERS_BANKS.replace("scope=WORKSPACE", "scope=Scope(target.devices[0].ranks[-1])"),
        "does not verify",
        "widened the scope of 'work'",
    ),
    "a scope that nobody knows": (
        LOWERS_BANKS.replace("Scope, WORKSPACE", "pool_scope").replace("WORKSPACE", "pool_scope('lake')"),
        "does not verify",
        "the target has neither a pool nor a tag for its scope 'global.lake' of 'work' of ",
    ),
    "no nodes": (
        "from dataclasses import replace\ndef lower(module, target): return replace(module, kernels=(None,))",
        "does not verify",
        "it cannot be read: AttributeError",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_pass_that_is_wrong_is_named_and_not_a_bug_of_bytewright(
    tmp_path: Path, plug_ins: Path, banked: Target, fault: str
):
    source, what, note = FAULTS[fault]
    owner = install_fresh(plug_ins, source)
    (error,) = refusals(tmp_path, banked)
    assert (error.code, error.exit_code) == ("BW504", 5)
    assert error.message.startswith(f"pass 'lower_banks' of {owner} ")
    assert what in error.message
    assert any(note in line for line in error.notes), error.notes


def test_what_the_pass_has_against_the_program_reaches_the_user(
    tmp_path: Path, plug_ins: Path, banked: Target
):
    install_fresh(
        plug_ins,
        "from bytewright.diagnostics import CompileError, Diagnostic\n"
        "def lower(module, target): raise CompileError(Diagnostic('BW301', 'a bank holds 16 B'))",
    )
    (error,) = refusals(tmp_path, banked)
    assert (error.code, error.message) == ("BW301", "a bank holds 16 B")
