"""Packages of every kind: built, loaded, or checked by what reads them; and self-tests that find a broken weight."""

from __future__ import annotations

import re
import sys
import tarfile
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bytewright import __version__
from bytewright.cli.main import bytewright as command
from bytewright.options import Package
from bytewright.record.plan_file import read_plan
from support.digits_bundle import DIGITS
from support.package_programs import BOARD, build, run, self_test
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.board
DEVICE = """<devices><family Dfamily="Family" Dvendor="ARM:82">
<processor Dcore="Cortex-M4" Dfpu="1" Dmpu="0" Dendian="Little-endian"/><device Dname="Probe"/>
</family></devices>"""
KINDS = [kind.value for kind in Package]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def package(kind: str, folder: Path, *options: str) -> Path:
    done = invoke("compile", DIGITS, "-o", folder / "digits", "--target", BOARD, "--package", kind, *options)
    assert done.exit_code == 0, done.stderr
    return folder / "digits"


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_is_built_and_a_broken_weight_found(kind: str, tmp_path: Path) -> None:
    directory = package(kind, tmp_path, "--self-test", "2")
    assert self_test(build(kind, tmp_path)) == 0
    numbers = directory / "include" / "digits_ssram1_parameters.inc"
    text = numbers.read_text("utf-8")
    last = re.findall(r"\d+", text)[-1]
    at = text.rindex(last)
    numbers.write_text(f"{text[:at]}{int(last) ^ 1}{text[at + len(last) :]}", encoding="utf-8")
    assert self_test(build(kind, tmp_path)) == 256 - 6  # the error HASH


def test_an_output_that_differs_is_found(tmp_path: Path) -> None:
    """A kernel that is compiled to something else, as by a compiler that is wrong."""
    directory = package("makefile", tmp_path, "--self-test", "2")
    kernels = directory / "src" / "digits_kernels.c"
    text = kernels.read_text("utf-8")
    assert "return (high < raised) ? high : raised;" in text
    kernels.write_text(
        text.replace("return (high < raised) ? high : raised;", "return low;"), encoding="utf-8"
    )
    assert self_test(build("makefile", tmp_path)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_package_is_a_bundle_with_a_readme_whose_c_compiles(kind: str, tmp_path: Path) -> None:
    directory = package(kind, tmp_path)
    assert invoke("check", directory).exit_code == 0
    text = (directory / "README.md").read_text("utf-8")
    plan = read_plan(directory)
    for pool in plan.pools.values():
        assert (
            not pool.used_bytes
            or f"| {pool.role} `{pool.name}`, in {pool.memory} | {pool.used_bytes} |" in text
        )
    (code,) = re.findall(r"```c\n(.*?)```", text, re.DOTALL)
    (tmp_path / "glue.c").write_text(code, encoding="utf-8")
    flags = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-Wno-unused-function", "-c")
    run("gcc", *flags, f"-I{directory}/include", "glue.c", "-o", "glue.o", folder=tmp_path)
    assert "Self-test" not in text


def test_glue_of_other_forms_compiles(tmp_path: Path) -> None:
    for number, options in enumerate(
        [
            ("--io", "workspace"),
            ("--provider", "ssram1=caller"),
            ("--provider", "ssram23=generated"),
            ("--io", "rows"),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        directory = package("cmake", folder, *options)
        (code,) = re.findall(r"```c\n(.*?)```", (directory / "README.md").read_text("utf-8"), re.DOTALL)
        (folder / "glue.c").write_text(code, encoding="utf-8")
        flags = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-c")
        run("gcc", *flags, f"-I{directory}/include", "glue.c", "-o", "glue.o", folder=folder)


@pytest.mark.parametrize(
    "options", [("--io", "workspace"), ("--io", "rows"), ("--provider", "ssram1=caller")]
)
def test_self_tests_of_other_forms_run_here(options: tuple[str, str], tmp_path: Path) -> None:
    directory = package("cmake", tmp_path, "--self-test", "1", *options)
    (code,) = re.findall(r"```c\n(.*?)```", (directory / "README.md").read_text("utf-8"), re.DOTALL)
    outputs = "" if "workspace" in options else ", &(digits_outputs){.probabilities = (int8_t[10]){0}}"
    main = f"""{code}
#include "digits_self_test.h"
int main(void) {{ return digits_setup() == 0 ? digits_self_test(&context{outputs}) : 99; }}"""
    (tmp_path / "main.c").write_text(main, encoding="utf-8")
    flags = (
        "-std=c99",
        "-ffp-contract=off",
        "-fno-strict-aliasing",
        f"-I{directory}/include",
        f"-I{directory}/src",
    )
    sources = sorted((directory / "src").glob("*.c"))
    run("gcc", *flags, "main.c", *sources, "-lm", "-o", "program", folder=tmp_path)
    run(tmp_path / "program", folder=tmp_path)


def test_an_arduino_library_is_described(tmp_path: Path) -> None:
    directory = package("arduino", tmp_path)
    properties = ConfigParser()
    properties.read_string("[library]\n" + (directory / "library.properties").read_text("utf-8"))
    assert properties["library"]["includes"] == "digits.h"
    assert properties["library"]["version"]


def test_zephyr_finds_module_and_configuration(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    directory = package("zephyr", tmp_path)
    module = yaml.safe_load((directory / "zephyr" / "module.yml").read_text("utf-8"))
    assert (directory / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    kconfig = (directory / module["build"]["kconfig"]).read_text("utf-8")
    assert re.search(r"^config DIGITS\n\tbool \"[^\"\n]+\"$", kconfig, re.MULTILINE)


def test_a_component_is_packed(tmp_path: Path) -> None:
    """By ESP-IDF's component manager, from whose archive nothing of the bundle is missing."""
    program = Path(sys.executable).with_name("compote")
    if not program.exists():
        pytest.skip("idf-component-manager is not installed")
    directory = package("esp-idf", tmp_path)
    files = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    run(program, "component", "pack", "--name", "digits", folder=directory)
    with tarfile.open(next((directory / "dist").glob("digits_*.tgz"))) as archive:
        assert files <= {Path(member.name).as_posix() for member in archive if member.isfile()}
    manifest = directory / "idf_component.yml"
    manifest.write_text(manifest.read_text("utf-8").replace(__version__, "one"), encoding="utf-8")
    with pytest.raises(AssertionError, match="version"):
        run(program, "component", "pack", "--name", "digits", folder=directory)


def test_a_pack_is_loaded(tmp_path: Path) -> None:
    """What is loaded shows in an index of devices alone, so one is added, for which the pack is said to be."""
    manager = pytest.importorskip("cmsis_pack_manager", reason="cmsis-pack-manager is not installed")
    description = package("cmsis-pack", tmp_path) / "Bytewright.digits.pdsc"
    text = description.read_text("utf-8").replace("</releases>", f"</releases>{DEVICE}")

    def loaded(name: str, text: str) -> Any:
        (tmp_path / name).mkdir()
        description.write_text(text, encoding="utf-8")
        cache = manager.Cache(True, True, json_path=str(tmp_path / name), data_path=str(tmp_path / name))
        cache.add_pack_from_path(str(description))
        return cache.index.get("Probe", {}).get("from_pack")

    whole = loaded("whole", text)
    assert (whole["vendor"], whole["pack"], whole["version"]) == ("Bytewright", "digits", __version__)
    assert loaded("nameless", text.replace("<name>digits</name>", "")) is None


def test_no_self_test_where_a_library_decides_the_result(tmp_path: Path) -> None:
    reason = "it calls functions of <math.h>, whose last bit is not the same in every C library"
    text = (
        f"error[BW204]: model 'm' can have no self-test: {reason}\n"
        "help: leave out --self-test; bytewright validate DIR --on qemu compares outputs on the board\n"
    )
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 8], "float32") for name in "xy")
    builder.operator("EXP", [x], [y])
    (tmp_path / "m.tflite").write_bytes(builder.build([x], [y]))
    done = invoke("compile", tmp_path / "m.tflite", "-o", tmp_path / "x", "--self-test", "1")
    assert (done.exit_code, done.stderr) == (1, text)
    assert not (tmp_path / "x").exists()


def test_a_kind_that_is_none(tmp_path: Path) -> None:
    done = invoke("compile", DIGITS, "-o", tmp_path / "x", "--package", "bazel")
    assert done.exit_code == 2
    assert "'bazel' is not one of 'cmake', 'makefile', 'zephyr'" in done.stderr
