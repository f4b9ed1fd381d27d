"""Bundles as programs of other processors, in QEMU's user mode: exact, counted, and judged as on the host."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command_line
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch, run_bundle
from bytewright.target import load_target
from support.digits_bundle import DIGITS
from support.reference import LiteRt
from support.shared_models import INT8, bundle, model_content, random_inputs
from support.tiers import some
from support.tiny_bundle import COUNT, expected_sum, write_tiny_bundle

pytestmark = pytest.mark.run
PROGRAMS = {
    "aarch64": ("qemu-aarch64", "aarch64-linux-gnu-gcc"),
    "rv64gcv": ("qemu-riscv64", "riscv64-linux-gnu-gcc"),
    "x86-64-v3": ("qemu-x86_64", "x86_64-linux-gnu-gcc"),
}
X = (np.arange(COUNT) * 16 - 128).astype(np.int8).reshape(1, COUNT)


def needs(target: str) -> None:
    for program in PROGRAMS[target]:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.mark.parametrize(("target", "compiler"), some(product(PROGRAMS, ["gcc", "clang"]), every=2))
def test_the_output_is_that_of_the_reference(target: str, compiler: str, tmp_path: Path) -> None:
    needs(target)
    folder = bytewright.compile(DIGITS, target=target).write(tmp_path / "digits")
    reference = LiteRt(DIGITS)
    generator = np.random.default_rng(9)
    batch = [[generator.integers(-128, 128, reference.inputs[0]["shape"], np.int8)] for _ in range(2)]
    result = run_batch(folder, batch, on="qemu", repeat=2, options=BuildOptions(compiler=compiler))
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])
    assert (result.on, result.target, result.board, result.microseconds) == ("qemu", target, None, ())
    assert len(result.instructions) == 4
    assert result.instructions[::2] == result.instructions[1::2]
    assert "digits_run" in {function.name for function in result.functions}


@pytest.mark.parametrize("name", INT8)
def test_models_for_arm_processors(name: str) -> None:
    needs("aarch64")
    batch = random_inputs(name, 2, 17)
    result = run_batch(bundle(name, load_target("aarch64")), batch, on="qemu")
    reference = LiteRt(model_content(name))
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])


def test_the_count_is_that_of_the_run(tmp_path: Path) -> None:
    """A run of the test's own assembly: two instructions a turn; all else is the harness's, and little."""
    needs("aarch64")
    counts: list[int] = []
    for num_turns in (1, 1000):
        folder = tmp_path / str(num_turns)
        write_tiny_bundle(folder, target="aarch64")
        source = folder / "src" / "tiny.c"
        loop = f'__asm__ volatile("mov x9, #{num_turns}\\n0: subs x9, x9, #1\\n b.ne 0b" ::: "x9", "cc");'
        text = source.read_text()
        head, brace, rest = text.partition("int32_t tiny_run(")
        opening = rest.index("{") + 1
        source.write_text(f"{head}{brace}{rest[:opening]}\n    {loop}{rest[opening:]}")
        result = run_bundle(folder, [X], on="qemu")
        assert (result.outputs[0] == expected_sum(X)).all()
        counts.append(result.instructions or 0)
    assert counts[1] - counts[0] == 2 * 999


def test_the_command_and_a_paranoid_run(tmp_path: Path) -> None:
    needs("aarch64")
    folder = bytewright.compile(DIGITS, target="aarch64").write(tmp_path / "digits")
    result = CliRunner().invoke(command_line, ["run", str(folder), "--on", "qemu", "--paranoid"])
    assert result.exit_code == 0, result.output
    assert "target aarch64, run on qemu" in result.output
    assert "no dead byte is read" in result.output


def test_what_cannot_be_emulated_is_refused(tmp_path: Path) -> None:
    folder = bytewright.compile(DIGITS, target="x86-64-v4-vnni").write(tmp_path / "digits")
    with pytest.raises(CompileError) as caught:
        run_bundle(folder, on="qemu")
    assert caught.value.diagnostics[0].code == "BW204"


def test_a_missing_emulator_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("aarch64")
    write_tiny_bundle(tmp_path / "tiny", target="aarch64")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("aarch64-linux-gnu-gcc", "cc"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(CompileError) as caught:
        run_bundle(tmp_path / "tiny", [X], on="qemu")
    assert caught.value.diagnostics[0].code == "BW501"
    assert "apt-get install qemu-user " in (caught.value.diagnostics[0].help or "")
