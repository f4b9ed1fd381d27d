"""The size of a bundle's C is what binutils' `size` says of the same objects, without parameters and pools."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from bytewright.cli.main import bytewright
from bytewright.elf.sizes import SectionSizes, section_sizes
from bytewright.execute.build import LANGUAGE_FLAGS
from bytewright.execute.code_size import code_size
from bytewright.execute.description import read_bundle
from support.digits_bundle import write_digits

GNU_SIZE = "size"
PARTS = r"""
static const int table[5] = {1, 2, 3, 4, 5};
static int counted = 7;
static char zeros[48];
char pool[1000];
int function(int i) { counted += zeros[i % 48]++; return table[i] + counted + pool[i]; }
"""


def by_size(path: Path) -> tuple[int, int, int]:
    """What binutils counts: text with all that nobody writes, data, bss."""
    done = subprocess.run([GNU_SIZE, path], check=True, capture_output=True, text=True)
    text, data, bss = map(int, done.stdout.splitlines()[1].split()[:3])
    return text, data, bss


def as_size(sizes: SectionSizes) -> tuple[int, int, int]:
    return sizes.text_bytes + sizes.rodata_bytes, sizes.data_bytes, sizes.bss_bytes


def compiled(source: Path, product: Path, *flags: str) -> Path:
    subprocess.run(["cc", *LANGUAGE_FLAGS, *flags, "-c", source, "-o", product], check=True)
    return product


def test_sections_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "parts.c").write_text(PARTS, encoding="utf-8")
    path = compiled(tmp_path / "parts.c", tmp_path / "parts.o", "-O2")
    sizes = section_sizes(path)
    assert as_size(sizes) == by_size(path)
    assert (sizes.data_bytes, sizes.bss_bytes >= 1048) == (4, True)
    without = section_sizes(path, {"pool"})
    assert sizes.all_bytes - without.all_bytes == 1000


@pytest.mark.parametrize("flags", ["-O2", "-Os"])
def test_code_is_what_size_says_of_its_objects(flags: str, tmp_path: Path) -> None:
    bundle = read_bundle(write_digits(tmp_path / "out", "host"))
    includes = [f"-I{path}" for path in bundle.include_directories]
    objects = [
        compiled(source, tmp_path / f"{source.stem}.o", flags, *includes)
        for source in bundle.sources
        if not source.name.endswith("_parameters.c")
    ]
    assert len(objects) == 2
    wanted = tuple(map(sum, zip(*map(by_size, objects), strict=True)))
    assert as_size(code_size(bundle, (flags,))) == wanted


def test_a_pool_that_the_c_declares_is_no_code(tmp_path: Path) -> None:
    runner = CliRunner()
    sizes: list[SectionSizes] = []
    for provider in ("caller", "generated"):
        arguments = [
            "compile",
            str(Path("examples/digits/digits.tflite").resolve()),
            "-o",
            str(tmp_path / provider),
        ]
        options = ["--target", "host", "--provider", f"ram={provider}"]
        assert runner.invoke(bytewright, [*arguments, *options]).exit_code == 0
        sizes.append(code_size(read_bundle(tmp_path / provider)))
    assert sizes[0].bss_bytes == sizes[1].bss_bytes == 0


def test_a_missing_compiler_is_a_line_and_no_failure(tmp_path: Path) -> None:
    bundle = write_digits(tmp_path / "out", "host")
    done = CliRunner().invoke(bytewright, ["report", str(bundle), "--compiler", "no-such-cc"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.search(
        r"^code: not known, .*'no-such-cc', is not installed; install it", done.stdout, re.MULTILINE
    )
    wrong = CliRunner().invoke(bytewright, ["report", str(bundle), "--cflags", "-fno-such-flag"])
    assert re.search(r"^code: not known, .* failed .*-fno-such-flag", wrong.stdout, re.MULTILINE)
    without = CliRunner().invoke(bytewright, ["report", str(bundle), "--no-code"])
    assert [
        line for line in done.stdout.splitlines() if not line.startswith("code")
    ] == without.stdout.splitlines()


def test_the_size_of_a_part_is_not_said(tmp_path: Path) -> None:
    bundle = write_digits(tmp_path / "out", "host")
    (bundle / "src" / "digits_kernels.c").unlink()
    done = CliRunner().invoke(bytewright, ["report", str(bundle)])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "\ncode: not known, src/digits_kernels.c is missing in the bundle\n" in done.stdout
