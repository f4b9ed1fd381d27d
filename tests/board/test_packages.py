"""Packages of every kind: built, loaded, or checked by what reads them; and self-tests that find a broken weight."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from configparser import ConfigParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright as command
from bytewright.options import Package
from bytewright.record.plan_file import read_plan
from support.digits_bundle import DIGITS

pytestmark = pytest.mark.board
BOARD = "mps2-an386"
CORE = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
LINKED = ("-nostartfiles", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-T", "board.ld")
PROGRAM = """
#include "digits_self_test.h"
static DIGITS_ALIGNED(DIGITS_SSRAM23_WORKSPACE_ALIGN) DIGITS_SECTION(".ssram23")
uint8_t ram[DIGITS_SSRAM23_WORKSPACE_SIZE];
static digits_context context;
static int8_t probabilities[10];
static int program(void)
{
    const digits_workspaces memory = {.ssram23 = {ram, sizeof ram}};
    const digits_outputs outputs = {.probabilities = probabilities};
    int32_t status = digits_set_workspaces(&context, &memory);
    return (status == DIGITS_OK) ? digits_self_test(&context, &outputs) : 100 - status;
}
void reset(void);
__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {(void *)0x20400000, (void *)reset};
void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xF << 20;
    const uint32_t block[2] = {0x20026u, (uint32_t)program() & 0xFFu};
    register int r0 __asm__("r0") = 0x20;
    register const void *r1 __asm__("r1") = block;
    for (;;) { __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory"); }
}
"""
SCRIPT = """
MEMORY { CODE (rx) : ORIGIN = 0, LENGTH = 4M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text* .rodata* .ssram1 .data*) } > CODE
  .bss (NOLOAD) : { *(.ssram23 .bss* COMMON) } > RAM
}
"""
MAKEFILE = """
CC := arm-none-eabi-gcc
AR := arm-none-eabi-ar
CFLAGS := {flags}
include digits/digits.mk
app.elf: main.c $(DIGITS_LIBRARY)
	$(CC) $(CFLAGS) $(DIGITS_CPPFLAGS) {linked} $^ $(DIGITS_LDLIBS) -o $@
"""
CMAKE = """
cmake_minimum_required(VERSION 3.13)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
project(app C)
add_compile_options({flags})
add_subdirectory(digits)
add_executable(app.elf main.c)
target_link_libraries(app.elf PRIVATE digits::digits)
target_link_options(app.elf PRIVATE {flags} {linked})
"""


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def package(kind: str, folder: Path, *options: str) -> Path:
    done = invoke("compile", DIGITS, "-o", folder / "digits", "--target", BOARD, "--package", kind, *options)
    assert done.exit_code == 0, done.stderr
    return folder / "digits"


def run(*arguments: object, folder: Path) -> str:
    done = subprocess.run(
        [*map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, folder: Path) -> Path:
    """The program with the self-test, by one of the build systems."""
    (folder / "main.c").write_text(PROGRAM, encoding="utf-8")
    (folder / "board.ld").write_text(SCRIPT, encoding="utf-8")
    flags, linked = " ".join(CORE), " ".join(LINKED)
    if kind == "makefile":
        (folder / "Makefile").write_text(MAKEFILE.format(flags=flags, linked=linked), encoding="utf-8")
        run("make", "app.elf", folder=folder)
        return folder / "app.elf"
    linked = linked.replace("board.ld", str(folder / "board.ld"))
    (folder / "CMakeLists.txt").write_text(CMAKE.format(flags=flags, linked=linked), encoding="utf-8")
    run("cmake", "-S", ".", "-B", "build", folder=folder)
    run("cmake", "--build", "build", folder=folder)
    return folder / "build" / "app.elf"


def self_test(image: Path) -> int:
    """What it returns on the board."""
    options = ["-display", "none", "-monitor", "none", "-serial", "none", "-nic", "none"]
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    done = subprocess.run(
        ["qemu-system-arm", "-M", BOARD, *options, *semihosting, "-kernel", image], check=False, timeout=60
    )
    return done.returncode


@pytest.mark.parametrize("kind", ["makefile", "cmake"])
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


@pytest.mark.parametrize("kind", [kind.value for kind in Package])
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


@pytest.mark.parametrize("options", [("--io", "workspace"), ("--provider", "ssram1=caller")])
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


def test_an_arduino_library_compiles_from_its_sources_alone(tmp_path: Path) -> None:
    """Arduino gives the compiler `src` and nothing else, and a sketch is C++."""
    directory = package("arduino", tmp_path, "--self-test", "1")
    properties = ConfigParser()
    properties.read_string("[library]\n" + (directory / "library.properties").read_text("utf-8"))
    assert properties["library"]["includes"] == "digits.h"
    assert properties["library"]["version"]
    (tmp_path / "sketch.cpp").write_text(
        "#include <digits.h>\n#include <digits_self_test.h>\n"
        "static digits_context context; static int8_t p[10];\n"
        "static uint8_t ram[DIGITS_SSRAM23_WORKSPACE_SIZE] __attribute__((aligned(16)));\n"
        "int main() { const digits_workspaces m = {{ram, sizeof ram}}; const digits_outputs o = {p};\n"
        "return digits_set_workspaces(&context, &m) ? 99 : digits_self_test(&context, &o); }\n",
        encoding="utf-8",
    )
    objects = []
    for source in sorted((directory / "src").glob("*.c")):
        objects.append(f"{source.stem}.o")
        run(
            "gcc", "-std=gnu11", "-Os", f"-I{directory}/src", "-c", source, "-o", objects[-1], folder=tmp_path
        )
    run("g++", f"-I{directory}/src", "sketch.cpp", *objects, "-lm", "-o", "sketch", folder=tmp_path)
    run(tmp_path / "sketch", folder=tmp_path)


def test_a_platformio_library_names_the_flags(tmp_path: Path) -> None:
    directory = package("platformio", tmp_path)
    manifest = json.loads((directory / "library.json").read_text("utf-8"))
    assert manifest["build"]["flags"] == list(read_plan(directory).build.flags[1:])
    assert (directory / manifest["build"]["srcDir"] / "digits.c").is_file()
    assert (directory / manifest["build"]["includeDir"] / "digits.h").is_file()


STUBS = """
cmake_minimum_required(VERSION 3.13)
project(stub C)
set(sources)
function(zephyr_include_directories)
  target_include_directories(app PRIVATE ${ARGN})
endfunction()
function(zephyr_library_named name)
endfunction()
function(zephyr_library_sources)
  target_sources(app PRIVATE ${ARGN})
endfunction()
function(zephyr_library_compile_options)
  target_compile_options(app PRIVATE ${ARGN})
endfunction()
macro(idf_component_register)
  cmake_parse_arguments(_ "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  set(COMPONENT_LIB app)
  foreach(path IN LISTS __SRCS)
    target_sources(app PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${path})
  endforeach()
  target_include_directories(app PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${__INCLUDE_DIRS})
endmacro()
add_executable(app main.c)
target_link_libraries(app PRIVATE m)
"""


@pytest.mark.parametrize(
    ("kind", "included", "variable"),
    [("zephyr", "digits/zephyr", "CONFIG_DIGITS"), ("esp-idf", "digits", "ESP_PLATFORM")],
)
def test_cmake_of_others_compiles_the_c_with_its_flags(
    kind: str, included: str, variable: str, tmp_path: Path
) -> None:
    """What Zephyr and ESP-IDF define stands here for itself."""
    package(kind, tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(
        f"{STUBS}set({variable} y)\nadd_subdirectory({included})\n", encoding="utf-8"
    )
    (tmp_path / "main.c").write_text('#include "digits.h"\nint main(void) { return 0; }\n', encoding="utf-8")
    run("cmake", "-S", ".", "-B", "build", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", folder=tmp_path)
    run("cmake", "--build", "build", folder=tmp_path)
    commands = json.loads((tmp_path / "build" / "compile_commands.json").read_text("utf-8"))
    own = [entry["command"] for entry in commands if "/digits/" in entry["file"]]
    assert len(own) == 3
    assert all("-std=c99 -ffp-contract=off -fno-strict-aliasing" in text for text in own)


def test_zephyr_finds_module_and_configuration(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    directory = package("zephyr", tmp_path)
    module = yaml.safe_load((directory / "zephyr" / "module.yml").read_text("utf-8"))
    assert (directory / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    kconfig = (directory / module["build"]["kconfig"]).read_text("utf-8")
    assert re.search(r"^config DIGITS\n\tbool \"[^\"\n]+\"$", kconfig, re.MULTILINE)


def test_a_component_manifest_is_one(tmp_path: Path) -> None:
    directory = package("esp-idf", tmp_path)
    tools = pytest.importorskip(
        "idf_component_tools.manifest", reason="idf-component-manager is not installed"
    )
    assert tools.ManifestManager(str(directory), "digits").load().version


def test_a_pack_is_described(tmp_path: Path) -> None:
    directory = package("cmsis-pack", tmp_path)
    tree = ElementTree.parse(directory / "Bytewright.digits.pdsc").getroot()
    assert (tree.findtext("vendor"), tree.findtext("name")) == ("Bytewright", "digits")
    files = {file.get("name") for file in tree.iter("file")}
    assert files == {"include/", "src/digits.c", "src/digits_kernels.c", "src/digits_parameters.c"}
    assert all((directory / f"{name}").exists() for name in files)


def test_a_pack_is_loaded(tmp_path: Path) -> None:
    manager = pytest.importorskip("cmsis_pack_manager", reason="cmsis-pack-manager is not installed")
    directory = package("cmsis-pack", tmp_path)
    cache = manager.Cache(True, True, json_path=str(tmp_path / "json"), data_path=str(tmp_path / "data"))
    cache.add_pack_from_path(str(directory / "Bytewright.digits.pdsc"))


def test_no_self_test_where_a_library_decides_the_result(tmp_path: Path) -> None:
    text = textwrap.dedent(
        """\
        error[BW204]: model 'digits' can have no self-test: its input comes row by row
        help: leave out --self-test; bytewright validate DIR --on qemu compares outputs on the board
        """
    )
    done = invoke("compile", DIGITS, "-o", tmp_path / "x", "--io", "rows", "--self-test", "1")
    assert (done.exit_code, done.stderr) == (1, text)
    assert not (tmp_path / "x").exists()


def test_a_kind_that_is_none(tmp_path: Path) -> None:
    done = invoke("compile", DIGITS, "-o", tmp_path / "x", "--package", "bazel")
    assert done.exit_code == 2
    assert "'bazel' is not one of 'cmake', 'makefile', 'zephyr'" in done.stderr
