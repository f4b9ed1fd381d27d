"""Parameters that the assembler includes: every compiler makes the same program of them as of numbers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.host import HostModel
from bytewright.inspect.check import check_bundle
from bytewright.options import Embedding, Options
from bytewright.target.model import Target
from bytewright.target.registry import load_target
from support.digits_bundle import DIGITS
from support.loaded_parameters import host_target

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")


def bundle(folder: Path, embedding: Embedding, target: Target | None = None) -> Path:
    compiled = compile_model(DIGITS, target or load_target("host"), Options(embed=embedding))
    write_bundle(compiled.files, folder / embedding.value)
    return folder / embedding.value


@pytest.mark.parametrize("is_copied", [False, True])
def test_programs_with_included_bytes_give_what_those_with_numbers_give(
    is_copied: bool, tmp_path: Path
) -> None:
    target = host_target("copy", "generated") if is_copied else None
    image = np.random.default_rng(5).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    outputs: list[bytes] = []
    for embedding in (Embedding.NUMBERS, Embedding.INCBIN):
        folder = bundle(tmp_path, embedding, target)
        assert any(path.suffix == ".bin" for path in (folder / "include").iterdir()) == (
            embedding is Embedding.INCBIN
        )
        outputs.append(HostModel.build(folder).run((image,))[0].tobytes())
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    "compiler",
    [
        ("gcc",),
        ("gcc", "-O2", "-fPIC", "-fdata-sections"),
        ("clang",),
        ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb"),
    ],
    ids=" ".join,
)
def test_each_compiler_includes_the_bytes_with_their_size_and_alignment(
    compiler: tuple[str, ...], tmp_path: Path
) -> None:
    folder = bundle(tmp_path, Embedding.INCBIN)
    include, product = folder / "include", tmp_path / "parameters.o"
    source = folder / "src" / "digits_parameters.c"
    command = [*compiler, *WARNINGS, f"-I{include}", "-c", source, "-o", product]
    subprocess.run(command, check=True, timeout=60, cwd=tmp_path)
    (binary,) = include.glob("*.bin")
    assert binary.read_bytes() in product.read_bytes()
    symbols = subprocess.run(["nm", "-S", product], check=True, capture_output=True, text=True).stdout
    sizes = [int(line.split()[1], 16) for line in symbols.splitlines() if "rodata_parameters" in line]
    assert sizes == [binary.stat().st_size]


def test_a_bundle_whose_included_bytes_were_changed_is_refused(tmp_path: Path) -> None:
    folder = bundle(tmp_path, Embedding.INCBIN)
    assert check_bundle(folder).parameter_bytes > 0
    (binary,) = (folder / "include").glob("*.bin")
    content = bytearray(binary.read_bytes())
    content[7] ^= 1
    binary.write_bytes(bytes(content))
    with pytest.raises(CompileError) as refusal:
        check_bundle(folder)
    assert any(binary.name in note for note in refusal.value.diagnostics[0].notes)
