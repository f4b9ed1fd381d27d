"""Generated C under every warning that clang knows, but those that docs/misra.md gives a reason for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.options import Options
from bytewright.target import load_target
from support.arena_cases import CASES
from support.c_program import run_command
from support.device_bundles import DEVICE_BUNDLES, device_files
from support.digits_bundle import DIGITS
from support.loaded_parameters import COMBINATIONS, Loader, Provider, board_target
from support.shared_models import BOARD, FLOAT, HOST, INT8, compiled
from support.tiers import covering

PAGE = Path(__file__).resolve().parents[2] / "docs" / "misra.md"
ALLOWED = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
NEWLIB = Path("/usr/lib/arm-none-eabi/include")
MACHINES = {
    "host": (),
    "arm": ("--target=arm-none-eabi", "-mthumb", "-mcpu=cortex-m55", "-isystem", str(NEWLIB)),
}
FORMS: dict[str, dict[str, object]] = {
    "inside": {"io": "workspace"},
    "batch": {"batch_max": 4},
    "own": {"provider": "ram=generated"},
    "lent": {"provider": "rodata=caller"},
    "incbin": {"embed": "incbin"},
}


def warnings_of(files: Mapping[str, bytes], folder: Path, machine: str, allowed: list[str]) -> str:
    """What clang says of a bundle's sources; nothing is an error, so that all of it is there."""
    if machine == "arm" and not NEWLIB.is_dir():
        pytest.skip("newlib's headers for Arm are not installed")
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    sources = sorted(path for path in files if path.endswith(".c"))
    switches = ["-std=c99", "-Weverything", *(f"-Wno-{name}" for name in allowed), *MACHINES[machine]]
    command = ["clang", *switches, "-Iinclude", "-Isrc", "-fsyntax-only", *sources]
    return run_command(["sh", "-c", '"$@" 2>&1', "sh", *command], folder)


@pytest.mark.parametrize(
    ("name", "target", "machine"), covering([*INT8, *FLOAT], [HOST, BOARD], list(MACHINES))
)
def test_models_have_no_warning(name: str, target: str, machine: str, tmp_path: Path) -> None:
    assert warnings_of(compiled(name, load_target(target)).files, tmp_path, machine, ALLOWED) == ""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_interface_has_none(form: str, machine: str, tmp_path: Path) -> None:
    files = bytewright.compile(DIGITS, **FORMS[form]).files  # type: ignore[arg-type]
    assert warnings_of(files, tmp_path, machine, ALLOWED) == ""


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_parameters_that_are_loaded_have_none(load: Loader, provider: Provider, tmp_path: Path) -> None:
    files = compile_model(DIGITS, board_target(load, provider), Options()).files
    assert warnings_of(files, tmp_path, "arm", ALLOWED) == ""


@pytest.mark.parametrize("name", CASES)
def test_requests_at_run_time_have_none(name: str, tmp_path: Path) -> None:
    files = compile_model(CASES[name].module, CASES[name].target).files
    assert warnings_of(files, tmp_path, "host", ALLOWED) == ""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", DEVICE_BUNDLES)
def test_devices_and_packed_forms_have_none(name: str, machine: str, tmp_path: Path) -> None:
    assert warnings_of(device_files(name), tmp_path, machine, ALLOWED) == ""


def test_each_exception_of_the_page_is_needed(tmp_path: Path) -> None:
    said = warnings_of(compile_model(CASES["one"].module, CASES["one"].target).files, tmp_path, "host", [])
    assert set(re.findall(r"\[-W([a-z-]+)\]", said)) == set(ALLOWED)
