"""Programs made of a package as its own description says, for an emulated Cortex-M4, and what they return there.

The build systems that are not here are played: Zephyr's and ESP-IDF's functions by stand-ins, a pack's toolbox, Arduino
and PlatformIO by compiling what the description names, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from bytewright.record.plan_file import read_plan

BOARD = "mps2-an386"
CORE = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
LINKED = ("-nostartfiles", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-T", "board.ld")
# C and C++; the exit status is what the self-test returns, as one byte.
PROGRAM = """
#include "digits_self_test.h"
static DIGITS_ALIGNED(DIGITS_SSRAM23_WORKSPACE_ALIGN) DIGITS_SECTION(".ssram23")
uint8_t ram[DIGITS_SSRAM23_WORKSPACE_SIZE];
static digits_context context;
static int8_t probabilities[10];
static int program(void)
{
    const digits_workspaces memory = {{ram, sizeof ram}};
    const digits_outputs outputs = {probabilities};
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
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
project(app C)
add_compile_options({flags})
add_executable(app.elf main.c)
target_link_options(app.elf PRIVATE {flags} {linked})
"""
OF_CMAKE = """
add_subdirectory(digits)
target_link_libraries(app.elf PRIVATE digits::digits)
"""
OF_ZEPHYR = """
function(zephyr_include_directories)
  target_include_directories(app.elf PRIVATE ${ARGN})
endfunction()
function(zephyr_library_named name)
  add_library(${name} STATIC)
  set(library ${name} PARENT_SCOPE)
  target_link_libraries(app.elf PRIVATE ${name})
endfunction()
function(zephyr_library_sources)
  target_sources(${library} PRIVATE ${ARGN})
  target_include_directories(${library} PRIVATE $<TARGET_PROPERTY:app.elf,INCLUDE_DIRECTORIES>)
endfunction()
function(zephyr_library_compile_options)
  target_compile_options(${library} PRIVATE ${ARGN})
endfunction()
set(CONFIG_DIGITS y)
add_subdirectory(digits/zephyr)
"""
OF_ESP_IDF = """
macro(idf_component_register)
  cmake_parse_arguments(_ "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  set(COMPONENT_LIB component)
  add_library(component STATIC ${__SRCS})
  target_include_directories(component PUBLIC ${__INCLUDE_DIRS})
  target_link_libraries(app.elf PRIVATE component)
endmacro()
set(ESP_PLATFORM y)
add_subdirectory(digits)
"""


def run(*arguments: object, folder: Path) -> str:
    """Runs a command that must not fail; what it printed."""
    done = subprocess.run(
        [*map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, folder: Path) -> Path:
    """The program with the self-test of the package `digits` in the folder; again after files have changed."""
    (folder / "main.c").write_text(PROGRAM, encoding="utf-8")
    (folder / "board.ld").write_text(SCRIPT, encoding="utf-8")
    return _BUILDERS[kind](folder)


def self_test(image: Path) -> int:
    """What it returns on the board."""
    options = ["-display", "none", "-monitor", "none", "-serial", "none", "-nic", "none"]
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    done = subprocess.run(
        ["qemu-system-arm", "-M", BOARD, *options, *semihosting, "-kernel", image], check=False, timeout=60
    )
    return done.returncode


def _by_make(folder: Path) -> Path:
    text = MAKEFILE.format(flags=" ".join(CORE), linked=" ".join(LINKED))
    (folder / "Makefile").write_text(text, encoding="utf-8")
    run("make", "app.elf", folder=folder)
    return folder / "app.elf"


def _by_cmake(more: str) -> Callable[[Path], Path]:
    def built(folder: Path) -> Path:
        linked = " ".join(LINKED).replace("board.ld", str(folder / "board.ld"))
        text = CMAKE.format(flags=" ".join(CORE), linked=linked) + more
        (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")
        if not (folder / "build").exists():
            run("cmake", "-S", ".", "-B", "build", folder=folder)
        run("cmake", "--build", "build", folder=folder)
        commands = json.loads((folder / "build" / "compile_commands.json").read_text("utf-8"))
        own = [entry["command"] for entry in commands if "/digits/src/" in entry["file"]]
        assert len(own) == 4
        assert all({"-std=c99", "-ffp-contract=off"} <= set(command.split()) for command in own)
        return folder / "build" / "app.elf"

    return built


def _compiled(folder: Path, sources: list[Path], includes: list[Path], *flags: str) -> Path:
    """Each source by itself, as a driver of the compiler does it, and the program in the language of sketches."""
    paths = [f"-I{path}" for path in includes]
    for source in sources:
        run("arm-none-eabi-gcc", *CORE, "-Os", *flags, *paths, "-c", source, folder=folder)
    objects = [f"{source.stem}.o" for source in sources]
    sketch = ("-std=gnu++11", "-fno-exceptions", "-fno-unwind-tables", "-x", "c++", "-c", "main.c")
    run("arm-none-eabi-g++", *CORE, *paths, *sketch, folder=folder)
    run("arm-none-eabi-gcc", *CORE, *LINKED, "main.o", *objects, "-o", "app.elf", folder=folder)
    return folder / "app.elf"


def _of_a_pack(folder: Path) -> Path:
    """A component's files, and the flags that the README names."""
    directory = folder / "digits"
    files = list(ElementTree.parse(directory / "Bytewright.digits.pdsc").getroot().iter("file"))
    of = {
        kind: [directory / f"{file.get('name')}" for file in files if file.get("category") == kind]
        for kind in ("source", "include")
    }
    assert sum(map(len, of.values())) == len(files)
    return _compiled(folder, of["source"], of["include"], *read_plan(directory).build.flags)


def _of_arduino(folder: Path) -> Path:
    """`src` and nothing else, with Arduino's own flags."""
    source = folder / "digits" / "src"
    return _compiled(folder, sorted(source.glob("*.c")), [source], "-std=gnu11")


def _of_platformio(folder: Path) -> Path:
    directory = folder / "digits"
    asked = json.loads((directory / "library.json").read_text("utf-8"))["build"]
    assert asked["flags"] == list(read_plan(directory).build.flags[1:])
    sources = sorted((directory / asked["srcDir"]).rglob("*.c"))
    return _compiled(folder, sources, [directory / asked["includeDir"]], *asked["flags"])


_BUILDERS: dict[str, Callable[[Path], Path]] = {
    "cmake": _by_cmake(OF_CMAKE),
    "makefile": _by_make,
    "zephyr": _by_cmake(OF_ZEPHYR),
    "cmsis-pack": _of_a_pack,
    "esp-idf": _by_cmake(OF_ESP_IDF),
    "arduino": _of_arduino,
    "platformio": _of_platformio,
}
