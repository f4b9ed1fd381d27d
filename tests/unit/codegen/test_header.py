"""The contracts of the header: each says what holds for the pools and extents that it is about."""

from __future__ import annotations

import re

import pytest

from bytewright.ir.border import Io
from bytewright.options import Options, Pin
from bytewright.pipeline import compile_model
from bytewright.target import Target, load_text
from bytewright.target.registry import load_target
from support.digits_bundle import DIGITS

MACHINE = """
name = "machine"
[memory.ram]
size = "unlimited"
[memory.rom]
size = "unlimited"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "rom"]
stack = "ram"
"""
OWN_AND_LENT = """
[[workspace]]
name = "own"
memory = "ram"
size = "64KiB"
provider = "generated"
[[workspace]]
name = "lent"
memory = "ram"
[[parameters]]
name = "rom"
memory = "rom"
"""
EACH_KIND = """
[[workspace]]
name = "ram"
memory = "ram"
[[parameters]]
name = "own"
memory = "ram"
size = "8KiB"
load = "copy"
from = "rom"
[[parameters]]
name = "copied"
memory = "ram"
size = "2KiB"
provider = "caller"
load = "copy"
[[parameters]]
name = "lent"
memory = "rom"
provider = "caller"
"""


def contracts(
    target: Target, *, io: Io = Io.CALLER, pins: tuple[Pin, ...] = (), batch_max: int | None = None
) -> dict[str, str]:
    """The comment above each function of the header, as one line."""
    files = compile_model(DIGITS, target, Options(io=io, pins=pins, batch_max=batch_max)).files
    header = files["include/digits.h"].decode()
    found = re.findall(r"/\* ((?:[^*]|\*(?!/))*) \*/\n[\w ]+\*?(digits_\w+)\(", header)
    return {name: re.sub(r"\s*\n \* ", " ", text) for text, name in found}


def test_addresses_say_what_the_pool_of_each_needs() -> None:
    pins = (Pin("image", "own"), Pin("softmax_8/out", "lent"))
    found = contracts(load_text(MACHINE + OWN_AND_LENT, "machine.toml"), io=Io.WORKSPACE, pins=pins)
    assert found["digits_input_image"].endswith("NULL only for a context that is NULL.")
    assert found["digits_output_probabilities"].endswith("NULL until digits_set_workspaces has succeeded.")
    assert "Workspace 'own' is an array of the generated code: one run at a time." in found["digits_run"]


def test_a_workspace_of_the_application_leaves_runs_apart() -> None:
    assert "threads of their own" in contracts(load_target("host"))["digits_run"]


@pytest.mark.parametrize("io", list(Io))
def test_a_batch_is_a_number_of_samples_up_to_its_macro(io: Io) -> None:
    run = contracts(load_target("host"), io=io, batch_max=4)["digits_run"]
    assert run.startswith("Runs one inference of 'batch' samples")
    assert (
        "'batch' is 1 to DIGITS_BATCH_MAX; inputs and outputs hold so many samples, and need no bytes" in run
    )
    assert "samples" not in contracts(load_target("host"), io=io)["digits_run"]


def test_each_kind_of_parameters_is_named() -> None:
    """Three ways to bring them, in one function."""
    pins = (Pin("conv2d_4/*", "own"), Pin("conv2d_[02]/*", "copied"), Pin("softmax*", "lent"))
    text = contracts(load_text(MACHINE + EACH_KIND, "machine.toml"), pins=pins)["digits_set_parameters"]
    assert text.startswith(
        "Lends 'lent' to the context until the next call. Copies 'copied' to the memory that is lent"
    )
    assert "too small" in text
    assert "Copies 'own' to an array of the generated code, which all contexts share" in text


def test_parameters_that_are_lent_cannot_be_too_small() -> None:
    lent = EACH_KIND[: EACH_KIND.index("[[parameters]]")] + EACH_KIND[EACH_KIND.rindex("[[parameters]]") :]
    text = contracts(load_text(MACHINE + lent, "machine.toml"))["digits_set_parameters"]
    assert text.startswith(
        "Lends 'lent' to the context until the next call. Refuses memory that is NULL, misaligned"
    )
    assert not re.search("too small|[Cc]opied|array", text)
