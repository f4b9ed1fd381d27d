"""`<model>_sections.ld`: without it the link fails, with it every array lies where the plan has it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright as command
from bytewright.record.names import names_of
from bytewright.record.plan_file import read_plan
from bytewright.target.model import Loader
from support.digits_bundle import DIGITS
from support.shared_models import MODELS

BOARDS = MODELS.parent / "boards"
VENDOR = BOARDS / "STM32H743ZITX_FLASH.ld"
INCLUDING = BOARDS / "nrf.ld"  # its SECTIONS are in another file
SMALL = """ENTRY(Reset_Handler)
_estack = ORIGIN(SRAM) + LENGTH(SRAM);
_Min_Stack_Size = 0x800;
MEMORY
{
  ROM (rx) : ORIGIN = 0x08000000, LENGTH = 256K
  SRAM (xrw) : ORIGIN = 0x20000000, LENGTH = 64K
  FAST (xrw) : ORIGIN = 0x10000000, LENGTH = 16K
}
SECTIONS
{
  .text : { KEEP(*(.isr_vector)) *(.text*) *(.rodata*) } > ROM
  .ARM.exidx : { *(.ARM.exidx*) } > ROM
  .data : { *(.data*) } > SRAM AT> ROM
  .stack (NOLOAD) : { *(.stack) } > SRAM
  .bss : { *(.bss*) *(COMMON) } > SRAM
}
"""
FLAGS = (
    "-mcpu=cortex-m7",
    "-mthumb",
    "-mfpu=fpv5-d16",
    "-mfloat-abi=hard",
    "-std=c99",
    "-Os",
    "-ffp-contract=off",
)
LINK = (
    "-fno-strict-aliasing",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wl,--gc-sections",
    "-nostartfiles",
)


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)])


def run(*arguments: str | Path) -> Result:
    done = invoke(*arguments)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture(scope="module", params=["vendor", "small"])
def script(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A linker script that knows nothing of Bytewright."""
    if request.param == "vendor":
        if not VENDOR.is_file():
            pytest.skip(
                f"the data that is not part of the project is missing: ../shared/boards/{VENDOR.name}"
            )
        return VENDOR
    path = tmp_path_factory.mktemp("script") / "small.ld"
    path.write_text(SMALL, encoding="utf-8")
    return path


def bundle_for(script: Path, folder: Path, *options: str, name: str = "digits") -> Path:
    """Imports the script, and compiles the example for it."""
    run("targets", "import", script, "--isa", "cortex-m7", "-o", folder / "board.toml")
    run("compile", DIGITS, "-o", folder / name, "--target", folder / "board.toml", "--name", name, *options)
    return folder / name


def application(*directories: Path, placed: bool = True) -> str:
    """A program that runs models one after the other; its workspaces are in their sections, or anywhere."""
    heads, bodies = [], []
    for directory in directories:
        plan = read_plan(directory)
        names, model = names_of(plan), plan.model
        heads.append(f'#include "{model}.h"\nstatic {model}_context {model}_state;')
        members = []
        for pool in plan.caller_workspaces:
            section = f"{names.section}({names.section_of(pool)}) " if placed else ""
            array = names.array(pool)
            attributes = f"{names.aligned}({names.alignment(pool)}) {section}"
            heads.append(f"static {attributes}uint8_t {array}[{names.size(pool)}];")
            members.append(f".{pool.c_name} = {{{array}, sizeof {array}}}")
        set_parameters = f"status |= {model}_set_parameters(&{model}_state);" if plan.set_parameters else ""
        bodies.append(
            f"{{ const {model}_workspaces memory = {{{', '.join(members)}}};\n"
            f"const {model}_inputs inputs = {{.image = image}};\n"
            f"const {model}_outputs outputs = {{.probabilities = probabilities}};\n"
            f"status |= {model}_set_workspaces(&{model}_state, &memory); {set_parameters}\n"
            f"status |= {model}_run(&{model}_state, &inputs, &outputs); }}"
        )
    return "\n".join(
        [
            *heads,
            "static int8_t image[64], probabilities[10];",
            'static uint8_t stack[4096] __attribute__((section(".stack"), used));',
            "void Reset_Handler(void);",
            'static void (*const vectors[])(void) __attribute__((section(".isr_vector"), used)) = {0, Reset_Handler};',
            "void Reset_Handler(void) { int32_t status = 0;",
            *bodies,
            "while (status == 0) { } for (;;) { } }",
        ]
    )


def link(
    script: Path, folder: Path, *directories: Path, include: bool = True, placed: bool = True
) -> tuple[Path, str]:
    """Links the application under the script, with the line that it needs or without; the image, and what ld said."""
    text = script.read_text(encoding="utf-8")
    lines = [f"INCLUDE {read_plan(directory).model}_sections.ld" for directory in directories if include]
    edited, num_places = re.subn(r"(?m)^( *\.bss)", "\n".join([*lines, r"\1"]), text, count=1)
    if not num_places:
        edited += "\n".join(["SECTIONS", "{", *lines, "}", ""])
    (folder / "app.ld").write_text(edited, encoding="utf-8")
    (folder / "main.c").write_text(application(*directories, placed=placed), encoding="utf-8")
    sources = [source for directory in directories for source in sorted((directory / "src").glob("*.c"))]
    places = [f"-I{directory}/{part}" for directory in directories for part in ("include", "src")]
    paths = [f"-L{directory}" for directory in (*directories, script.parent)]
    elf = folder / "app.elf"
    done = subprocess.run(
        [
            "arm-none-eabi-gcc",
            *FLAGS,
            *LINK,
            *places,
            *paths,
            "-T",
            "app.ld",
            "main.c",
            *sources,
            "-o",
            elf,
            "-lm",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == elf.exists(), done.stderr
    return elf, done.stderr


def test_one_line_in_the_linker_script_and_not_less(script: Path, tmp_path: Path) -> None:
    directory = bundle_for(script, tmp_path)
    elf, said = link(script, tmp_path, directory, include=False)
    assert not elf.exists()
    assert "undefined reference to `digits_sections_ld'" in said
    elf, said = link(script, tmp_path, directory)
    assert elf.exists(), said
    assert "apart from all else" in run("check", directory, "--elf", elf).stdout


@pytest.mark.skipif(not INCLUDING.is_file(), reason=f"../shared/boards/{INCLUDING.name} is missing")
def test_the_line_may_stand_in_a_command_of_its_own(tmp_path: Path) -> None:
    directory = bundle_for(INCLUDING, tmp_path)
    elf, said = link(INCLUDING, tmp_path, directory)
    assert elf.exists(), said
    assert "apart from all else" in run("check", directory, "--elf", elf).stdout


def test_compile_ends_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "small.ld").write_text(SMALL, encoding="utf-8")
    run("targets", "import", tmp_path / "small.ld", "--isa", "cortex-m7", "-o", tmp_path / "board.toml")
    out = tmp_path / "out"
    done = run("compile", DIGITS, "-o", out, "--target", tmp_path / "board.toml")
    last = done.stdout.splitlines()[-1].strip()
    assert last == f"in SECTIONS of the linker script: INCLUDE digits_sections.ld   (found with -L {out})"
    assert "INCLUDE" not in run("compile", DIGITS, "-o", tmp_path / "host").stdout
    assert not (tmp_path / "host" / "digits_sections.ld").exists()


def test_an_array_that_is_not_in_its_section_is_refused_by_the_linker(script: Path, tmp_path: Path) -> None:
    directory = bundle_for(script, tmp_path)
    elf, said = link(script, tmp_path, directory, placed=False)
    assert not elf.exists()
    assert re.search(
        r"digits: section \.\w+ has less than \d+ bytes: it is for an array of the application", said
    )


def test_an_image_in_the_wrong_memory_is_told_the_line(tmp_path: Path) -> None:
    """A script that takes the sections for itself, before the file that is included could."""
    (tmp_path / "small.ld").write_text(SMALL, encoding="utf-8")
    directory = bundle_for(tmp_path / "small.ld", tmp_path, "--workspace", "fast")
    assert read_plan(directory).pools["fast"].section == ".fast"
    greedy = tmp_path / "greedy.ld"
    greedy.write_text(SMALL.replace("*(.bss*)", "*(.bss*) *(.fast)"), encoding="utf-8")
    definitions = "digits_sections_ld = 0x" + read_plan(directory).plan_hash[:8] + ";\n"
    greedy.write_text(greedy.read_text("utf-8") + definitions, encoding="utf-8")
    elf, said = link(greedy, tmp_path, directory, include=False)
    assert elf.exists(), said
    done = invoke("check", directory, "--elf", elf)
    assert done.exit_code == 4
    assert "error[BW405]" in done.stderr
    assert (
        f"help: in SECTIONS of the linker script: INCLUDE digits_sections.ld   (found with -L {directory})"
        in (done.stderr)
    )


def test_parameters_in_ram_are_copied_by_the_program(script: Path, tmp_path: Path) -> None:
    memory = "dtcmram" if script == VENDOR else "fast"
    flash = "flash" if script == VENDOR else "rom"
    pools = ("--parameters", f"hot=2KiB@{memory}", "--parameters", flash)
    directory = bundle_for(script, tmp_path, *pools)
    pool = read_plan(directory).pools["hot"]
    assert (pool.load, pool.load_memory, pool.section) == (Loader.COPY, flash, f".{memory}.hot")
    elf, said = link(script, tmp_path, directory)
    assert elf.exists(), said
    shown = run("check", directory, "--elf", elf).stdout
    assert "digits_hot_parameters_load: " in shown


def test_parameters_that_start_up_code_copies_have_a_load_address(tmp_path: Path) -> None:
    (tmp_path / "small.ld").write_text(SMALL, encoding="utf-8")
    run("targets", "import", tmp_path / "small.ld", "--isa", "cortex-m7", "-o", tmp_path / "board.toml")
    text = (tmp_path / "board.toml").read_text(encoding="utf-8")
    hot = '[[parameters]]\nname = "hot"\nmemory = "fast"\nsize = "2KiB"\nload = "linker"\nfrom = "rom"\n\n'
    begin = text.index("[[parameters]]")
    (tmp_path / "board.toml").write_text(text[:begin] + hot + text[begin:], encoding="utf-8")
    directory = tmp_path / "digits"
    run("compile", DIGITS, "-o", directory, "--target", tmp_path / "board.toml")
    elf, said = link(tmp_path / "small.ld", tmp_path, directory)
    assert elf.exists(), said
    run("check", directory, "--elf", elf)
    symbols = subprocess.run(["arm-none-eabi-nm", elf], capture_output=True, text=True, check=True).stdout
    at = {name: int(address, 16) for address, _, name in map(str.split, symbols.splitlines())}
    used = read_plan(directory).pools["hot"].used_bytes
    assert at["digits_hot_begin"] >= 0x10000000
    assert used <= at["digits_hot_end"] - at["digits_hot_begin"] < used + 4
    assert 0x08000000 <= at["digits_hot_load"] < 0x08040000


def test_two_models_in_one_image(script: Path, tmp_path: Path) -> None:
    first, second = (bundle_for(script, tmp_path, name=name) for name in ("first", "second"))
    elf, said = link(script, tmp_path, first, second)
    assert elf.exists(), said
    for directory in (first, second):
        assert "apart from all else" in run("check", directory, "--elf", elf).stdout


def test_the_file_of_another_plan_is_refused_when_it_runs(tmp_path: Path) -> None:
    (tmp_path / "small.ld").write_text(SMALL, encoding="utf-8")
    directory = bundle_for(tmp_path / "small.ld", tmp_path)
    number = int(read_plan(directory).plan_hash[:8], 16)
    program = application(directory, placed=False)
    program = program[: program.index("void Reset_Handler")] + (
        "int main(void) { int32_t status = 0;" + program[program.index("{ const ") : program.index("while")]
    )
    (tmp_path / "main.c").write_text(program + "return (int)-status; }", encoding="utf-8")
    sources = sorted((directory / "src").glob("*.c"))
    for value, status in ((number, 0), (number ^ 1, 5)):
        command_line = [
            *(
                "gcc",
                "-O1",
                "-no-pie",
                "-mcmodel=large",  # the number may be any of 32 bits
                "-DDIGITS_CHECK_SECTIONS=1",
                "-ffp-contract=off",
                "-fno-strict-aliasing",
            ),
            *(
                f"-I{directory}/include",
                f"-I{directory}/src",
                "main.c",
                *map(str, sources),
                "-lm",
                "-o",
                "program",
            ),
            f"-Wl,--defsym=digits_sections_ld={value:#x}",
        ]
        subprocess.run(command_line, cwd=tmp_path, check=True)
        assert subprocess.run([tmp_path / "program"], check=False).returncode == status
