"""Linker scripts become targets; what the linker refuses, or cannot evaluate alone, has a file and a line."""

import re
import shutil
from pathlib import Path

import pytest

from bytewright.base.option import OptionSyntaxError
from bytewright.diagnostics import CompileError, Diagnostic, ExitCode
from bytewright.options import Options
from bytewright.target import MemoryAccess, Provider, Target, load_file, load_target
from bytewright.target.importers import Cost, ImportedTarget, ImportOptions, import_target, parse_cost

needs_arm_linker = pytest.mark.skipif(
    shutil.which("arm-none-eabi-ld") is None, reason="arm-none-eabi-ld is not installed"
)
pytestmark = needs_arm_linker

# A controller with a Cortex-M7 as vendors describe theirs: an included file, expressions, the C library, an
# assertion that only an application meets, and a symbol that only an application has.
REGIONS = """
/* REGION (rwx) : ORIGIN = 0, a comment */
BOOT_SIZE = 128K;
"""
SCRIPT = """/* one bank of flash goes to the boot loader */
INCLUDE parts/sizes.ld
ENTRY(Reset_Handler)
_estack = ORIGIN(RAM_D1) + LENGTH(RAM_D1);
_Min_Heap_Size = 0x200;
MEMORY
{
  ITCMRAM (xrw)  : ORIGIN = 0x00000000, LENGTH = 64K
  FLASH   (rx)   : ORIGIN = 0x08000000 + BOOT_SIZE, LENGTH = 2048K - BOOT_SIZE
  DTCMRAM (xrw)  : ORIGIN = 0x20000000, LENGTH = 0x20000
  RAM_D1  (xrw)  : org = 0x24000000, len = LENGTH(DTCMRAM) * 4
  RAM_D2  (!rx)  : o = 0x30000000, l = 288K
  OTP     (r!wi) : ORIGIN = 0x1FF00000, LENGTH = 1K
  UNUSED  (rw)   : ORIGIN = 0x38000000, LENGTH = 0
}
REGION_ALIAS("CODE", FLASH)
SECTIONS
{
  .isr_vector : { KEEP(*(.isr_vector)) } >FLASH
  .text : { *(.text*) _etext = .; } >CODE
  .data : { . = ALIGN(4); *(.data) } >RAM_D1 AT> FLASH
  ._user_heap_stack : { . = . + _Min_Heap_Size + __application_heap; } >RAM_D1
  /DISCARD/ : { libc.a ( * ) }
}
ASSERT(SIZEOF(.isr_vector) > 0, "no vectors")
GROUP(-lc -lm crt0.o)
"""


@pytest.fixture
def board(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "sizes.ld").write_text(REGIONS, encoding="utf-8")
    path = tmp_path / "board7.ld"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def _imported(folder: Path, text: str, **options: object) -> ImportedTarget:
    path = folder / "app.ld"
    path.write_text(text, encoding="utf-8")
    return import_target(path, ImportOptions(**options))  # type: ignore[arg-type]


def _region(line: str) -> str:
    return f"MEMORY\n{{\n{line}\n  RAM (rw) : ORIGIN = 0x20000000, LENGTH = 64K\n}}\n"


def _refusal(folder: Path, text: str, **options: object) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        _imported(folder, text, **options)
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_a_vendors_script_becomes_a_target(board: Path) -> None:
    imported = import_target(board, ImportOptions(isa="cortex-m7"))
    target = imported.target
    assert [(m.name, m.base, m.size_bytes, m.access, m.section) for m in target.memories] == [
        ("itcmram", 0x00000000, 65536, MemoryAccess.READ_WRITE, ".itcmram"),
        ("flash", 0x08020000, 2048 * 1024 - 131072, MemoryAccess.READ_ONLY, ".flash"),
        ("dtcmram", 0x20000000, 131072, MemoryAccess.READ_WRITE, ".dtcmram"),
        ("ram_d1", 0x24000000, 524288, MemoryAccess.READ_WRITE, ".ram_d1"),
        ("ram_d2", 0x30000000, 294912, MemoryAccess.READ_WRITE, ".ram_d2"),
        ("otp", 0x1FF00000, 1024, MemoryAccess.READ_ONLY, ".otp"),
    ]
    assert (target.name, "micro" in target.tags, target.default_device.isa.name) == (
        "board7",
        True,
        "cortex-m7",
    )
    (context,) = target.contexts
    assert (context.memory, context.max_stack_size_bytes, context.stack_reserve_bytes) == (
        "ram_d1",
        8192,
        1024,
    )
    assert [pool.name for pool in target.workspace_pools] == ["dtcmram", "ram_d1", "ram_d2", "itcmram"]
    assert target.pool("ram_d1").size_bytes == 524288 - 8192
    (flash,) = target.parameter_pools
    assert (flash.memory, flash.provider) == ("flash", Provider.GENERATED)


def test_the_text_says_what_was_read_and_what_was_assumed(board: Path) -> None:
    imported = import_target(board)
    assert imported.remarks[0] == "UNUSED is left out: its length is 0"
    assert "# UNUSED is left out: its length is 0\n" in imported.text
    assert f"# RAM_D1 (xrw), {board}:11\n" in imported.text
    assert "# the script's _estack is 0x24080000\n" in imported.text
    assert 'isa = "cortex-m"                # assumed; --isa NAME says which\n' in imported.text


def test_costs_are_as_given_or_guesses_in_comments(board: Path, tmp_path: Path) -> None:
    def costs(target: Target) -> dict[str, tuple[int, int]]:
        return {memory.name: (memory.read_cost, memory.write_cost) for memory in target.memories}

    imported = import_target(board)
    assert set(costs(imported.target).values()) == {(1, 1)}
    guess = "--cost flash=4 --cost ram_d1=2/2 --cost ram_d2=2/2 --cost otp=4"
    assert imported.remarks[-1].endswith(f"a guess is {guess}")
    edited = tmp_path / "edited.toml"
    edited.write_text(re.sub("# ((?:read|write)-cost)", r"\1", imported.text), encoding="utf-8")
    advised = tuple(map(parse_cost, guess.split()[1::2]))
    assert costs(load_file(edited)) == costs(import_target(board, ImportOptions(costs=advised)).target)
    given = import_target(board, ImportOptions(costs=(parse_cost("FLASH=5/1"), parse_cost("ram_d1=3"))))
    assert {name: cost for name, cost in costs(given.target).items() if cost != (1, 1)} == {
        "flash": (5, 1),
        "ram_d1": (3, 1),
    }
    assert "guess" not in given.text
    assert "guess" not in _imported(tmp_path, _region("  FLASH (rx) : ORIGIN = 0, LENGTH = 64K")).text
    diagnostic = _refusal(
        tmp_path, board.read_text("utf-8"), include=(board.parent,), costs=(Cost("ram", 2),)
    )
    assert (diagnostic.code, diagnostic.message) == ("BW204", "there is no memory 'ram'")


@pytest.mark.parametrize(
    "text", ["flash", "=5", "flash=", "flash=5/", "flash=0", "flash=5/1000001", "flash=1/2/3"]
)
def test_a_cost_that_is_none(text: str) -> None:
    with pytest.raises(OptionSyntaxError):
        parse_cost(text)


def test_the_text_loads_as_the_target(board: Path, tmp_path: Path) -> None:
    imported = import_target(board, ImportOptions(name="mine"))
    path = tmp_path / "mine.toml"
    path.write_text(imported.text, encoding="utf-8")
    assert load_file(path) == imported.target
    assert imported.target.name == "mine"


def test_an_imported_target_compiles_a_model(board: Path, shared_models: Path) -> None:
    from bytewright.compiler.pipeline import compile_model

    target = import_target(board, ImportOptions(isa="cortex-m7")).target
    compiled = compile_model(shared_models / "kws_ref_model.tflite", target, Options(name="kws"))
    pools = {pool["name"]: pool for pool in compiled.document["pools"]}
    assert pools["flash"]["used_bytes"] > 0
    assert 0 < pools["dtcmram"]["used_bytes"] <= 131072


@pytest.mark.parametrize(
    ("line", "access"),
    [
        ("X (rx) : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_ONLY),
        ("X (rwx) : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_WRITE),
        ("X (xrw!i) : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_WRITE),
        ("X (!w) : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_ONLY),
        ("X (!rx) : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_WRITE),
        ("X : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_WRITE),
        ("CODE : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_ONLY),
        ("CODE_RAM : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_WRITE),
        ("QSPI_FLASH (rwx) : ORIGIN = 0x1000, LENGTH = 4K", MemoryAccess.READ_ONLY),
    ],
)
def test_access_follows_from_attributes_and_name(tmp_path: Path, line: str, access: MemoryAccess) -> None:
    assert _imported(tmp_path, _region(line)).target.memories[0].access is access


def test_a_name_that_no_pool_may_have_is_changed(tmp_path: Path) -> None:
    target = _imported(tmp_path, _region("STACK (rw) : ORIGIN = 0x1000, LENGTH = 4K")).target
    assert [memory.name for memory in target.memories] == ["stack", "ram"]
    assert [pool.name for pool in target.workspace_pools] == ["stack_memory", "ram"]


def test_without_read_only_memory_parameters_take_a_part_of_the_last_one(tmp_path: Path) -> None:
    target = _imported(tmp_path, "MEMORY { RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 64K }").target
    assert [(pool.name, pool.size_bytes) for pool in target.pools] == [
        ("ram", 28672),
        ("ram_rodata", 28672),
    ]


def test_of_views_of_one_memory_the_first_is_kept(tmp_path: Path) -> None:
    imported = _imported(tmp_path, _region("IRAM (rwx) : ORIGIN = 0x20008000, LENGTH = 64K"))
    assert [memory.name for memory in imported.target.memories] == ["iram"]
    where = f"{tmp_path / 'app.ld'}:4"
    assert imported.remarks == (
        f"ram (0x20000000, 65536 B, {where}) is left out: it shares 32768 B with iram",
    )


def test_a_region_that_is_no_memory_is_left_out(tmp_path: Path) -> None:
    imported = _imported(tmp_path, _region("IDT_LIST (wx) : ORIGIN = 0xFFFF7FFF, LENGTH = 32K"))
    assert [memory.name for memory in imported.target.memories] == ["ram"]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("MEMORY\n{\n  FLASH (rx) ORIGIN = 0\n}\n", "the linker: syntax error", 3),
        ("MEMORY\n{\n  RAM (rw) : ORIGIN = 0, LENGTH = 4K\n", "the linker: syntax error", 3),
        (
            "/* a\n*/\n  # define SIZE 4K\n" + _region("X (r) : ORIGIN = 0, LENGTH = SIZE"),
            "this line is for the C preprocessor; the linker would take it for a comment",
            3,
        ),
        ("\n/* one */\n/* two\nMEMORY { }\n", "the linker: EOF in comment", 3),
        (_region("X (r) : ORIGIN = 0, LENGTH = 4K / 0"), "the linker: / by zero", 3),
        (
            _region("X (r) : ORIGIN = 0, LENGTH = SIZE"),
            "invalid length for memory region X: it is not a number before anything is linked",
            3,
        ),
        (
            _region("/* X : ORIGIN */ X (r) : ORIGIN = WHERE, LENGTH = 4K"),
            "invalid origin for memory region X: it is not a number before anything is linked",
            3,
        ),
        (_region("RAM (r) : ORIGIN = 0, LENGTH = 4K"), "redeclaration of memory region `RAM'", 4),
        (
            _region("") + "SECTIONS {\n .text : { *(.text) } > FLSH\n}\n",
            "memory region `FLSH' not declared",
            7,
        ),
        (_region("") + "top = ORIGIN(RAMM);\n", "memory region `RAMM' not declared", 6),
        (
            "/* first */\nINCLUDE missing.ld\n",
            "the linker: cannot open linker script file missing.ld: No such file or directory",
            2,
        ),
        (
            _region("") + "STARTUP(/nowhere/crt0.o)\n",
            "the linker: cannot find /nowhere/crt0.o: No such file or directory",
            6,
        ),
        (
            _region("X (rw) : ORIGIN = 0xFFFFF000, LENGTH = 8K"),
            "memory region X at 0xfffff000 with 8192 B ends behind the last address, 0xffffffff",
            3,
        ),
        (
            "MEMORY {\n  RAM (rw) : ORIGIN = 0, LENGTH = 512\n}\n",
            "no memory can be written and has 1024 B or more, so none can hold the stack",
            2,
        ),
    ],
)
def test_a_broken_script_is_refused_with_its_line(tmp_path: Path, text: str, message: str, line: int) -> None:
    diagnostic = _refusal(tmp_path, text)
    assert (diagnostic.code, diagnostic.message) == ("BW202", message)
    assert diagnostic.where == f"{tmp_path / 'app.ld'}:{line}"


def test_a_mistake_in_an_included_file_is_placed_there(board: Path) -> None:
    included = board.parent / "parts" / "sizes.ld"
    included.write_text("\n\nBOOT_SIZE = ;\n", encoding="utf-8")
    with pytest.raises(CompileError) as caught:
        import_target(board)
    assert caught.value.diagnostics[0].where == f"{included}:3"


def test_a_script_without_memories_is_refused(tmp_path: Path) -> None:
    diagnostic = _refusal(tmp_path, "ENTRY(main)\n")
    assert diagnostic.message.startswith("the script describes no memory")
    assert diagnostic.where == str(tmp_path / "app.ld")


def test_a_missing_file_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"BW201.*No such file"):
        import_target(tmp_path / "missing.ld")
    path = tmp_path / "app.ld"
    path.write_bytes(b"MEMORY\n\xff\xfe\n")
    with pytest.raises(CompileError) as caught:
        import_target(path)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.where) == ("BW201", f"{path}:2")


def test_the_builds_symbols_are_given_with_define(tmp_path: Path) -> None:
    text = _region("X (r) : ORIGIN = 0, LENGTH = DEFINED(SIZE) ? SIZE : 4K")
    assert _imported(tmp_path, text).target.memory("x").size_bytes == 4096
    assert _imported(tmp_path, text, define=("SIZE=3K",)).target.memory("x").size_bytes == 3072


def test_a_symbol_of_the_application_may_not_decide_on_a_memory(tmp_path: Path) -> None:
    # Where the expression also needs the symbol after the layout, the linker alone would take any value.
    text = _region("X (r) : ORIGIN = 0, LENGTH = DEFINED(SIZE) ? SIZE : 4K") + "end = SIZE;\n"
    diagnostic = _refusal(tmp_path, text)
    assert diagnostic.message == "memory region X depends on symbols that are not defined here: SIZE"
    assert diagnostic.where == f"{tmp_path / 'app.ld'}:3"
    assert diagnostic.help == "--define SIZE=VALUE"
    assert _imported(tmp_path, text, define=("SIZE=3K",)).target.memory("x").size_bytes == 3072


def test_a_linker_that_is_missing_or_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD", "no-such-ld")
    with pytest.raises(CompileError) as caught:
        _imported(tmp_path, _region(""))
    assert caught.value.diagnostics[0].code == "BW501"
    monkeypatch.setenv("LD", "false")
    with pytest.raises(CompileError) as caught:
        _imported(tmp_path, _region(""))
    assert caught.value.diagnostics[0].code == "BW502"
    assert caught.value.exit_code is ExitCode.TOOL_FAILED


def test_the_import_is_the_same_each_time(board: Path) -> None:
    assert import_target(board).text == import_target(board).text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("_Min_Stack_Size = 0x400;", 1024),
        ("PROVIDE(__stack_size = 3000);", 3000),
        ("__STACK_SIZE = 2K;", 2048),
        ("_Min_Stack_Size = 0;", 8192),  # says nothing
        ("", 8192),
    ],
)
def test_the_stack_has_the_size_that_the_script_gives_it(line: str, expected: int, tmp_path: Path) -> None:
    script = tmp_path / "app.ld"
    script.write_text(
        "MEMORY { RAM (rw) : ORIGIN = 0x20000000, LENGTH = 64K\nFLASH (rx) : ORIGIN = 0x08000000, LENGTH = 512K }\n"
        f"_estack = ORIGIN(RAM) + LENGTH(RAM);\n{line}\n"
    )
    context = import_target(script).target.contexts[0]
    assert context.max_stack_size_bytes == expected
    assert context.stack_reserve_bytes == expected // 8


def test_a_stack_that_its_memory_has_no_room_for_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "app.ld"
    script.write_text("MEMORY { RAM (rw) : ORIGIN = 0x20000000, LENGTH = 4K }\n_Min_Stack_Size = 0x2000;\n")
    with pytest.raises(CompileError) as caught:
        import_target(script)
    assert "8192 B (the script's _Min_Stack_Size), but ram has 4096 B" in str(caught.value)


def test_known_cores_get_the_stacks_of_library_functions(tmp_path: Path) -> None:
    script = tmp_path / "app.ld"
    script.write_text("MEMORY { RAM (rw) : ORIGIN = 0x20000000, LENGTH = 64K }\n")
    for isa in ("cortex-m0", "cortex-m4", "cortex-m33", "cortex-m"):
        target = import_target(script, ImportOptions(isa=isa)).target
        for builtin in ("mps2-an386", "mps2-an500", "mps3-an547"):
            for stack in load_target(builtin).external_stacks:
                assert (target.external_stack_bytes(stack.symbol) or 0) >= stack.size_bytes, stack
    assert import_target(script, ImportOptions(isa="rv32imac")).target.external_stacks == ()
