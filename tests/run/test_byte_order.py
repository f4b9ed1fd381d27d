"""Big-endian machines read parameters of several bytes wrongly: the C says so when it is compiled there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.shared_models import BOARD, HOST, KWS, bundle, target_with

LITTLE = {
    "gcc": ("gcc",),
    "clang": ("clang",),
    "arm": ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mlittle-endian"),
}
BIG = {
    "arm": ("arm-none-eabi-gcc", "-mcpu=cortex-r5", "-mbig-endian"),
    "s390x": ("clang", "--target=s390x-linux-gnu"),
    "without a name for the order": ("gcc", "-U__BYTE_ORDER__", "-D__BIG_ENDIAN__"),
}


def compiled(command: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    words = [*command, "-std=c99", "-fsyntax-only", "-Iinclude", *sorted(map(str, folder.glob("src/*.c")))]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("compiler", BIG)
@pytest.mark.parametrize("provider", ["rodata=generated", "rodata=caller"])
def test_big_endian_machines_are_refused(compiler: str, provider: str) -> None:
    done = compiled(BIG[compiler], bundle(KWS, target_with(HOST, provider)))
    assert done.returncode != 0
    assert "this machine is big-endian" in done.stderr


@pytest.mark.parametrize("compiler", LITTLE)
def test_little_endian_machines_are_not(compiler: str) -> None:
    done = compiled(LITTLE[compiler], bundle(KWS, target_with(BOARD)))
    assert done.stderr == ""
