from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError
from bytewright.target import BUILTIN_TARGETS, UNLIMITED, dump_toml, load_target
from bytewright.target import registry as registry_module

# Targets that run programs under an operating system.
MACHINES = ("host", "x86-64-v3", "x86-64-v4-vnni", "aarch64", "rv64gcv")


@pytest.mark.parametrize("name", MACHINES)
def test_machines_have_no_limits(name: str) -> None:
    target, host = load_target(name), load_target("host")
    assert (target.memories, target.pools, target.tags) == (host.memories, host.pools, ())
    assert target.external_stack_bytes("expf") == 64


def test_the_list_is_the_folder() -> None:
    folder = Path(registry_module.__file__).parent / "builtin"
    assert sorted(path.stem for path in folder.glob("*.toml")) == sorted(BUILTIN_TARGETS)
    for name in BUILTIN_TARGETS:
        assert load_target(name).name == name


def test_the_host_has_no_limits() -> None:
    host = load_target("host")
    assert [pool.size_bytes for pool in host.pools] == [None, None]
    assert host.default_device.contexts[0].max_stack_size_bytes is None
    assert host.default_device.max_stack_alloca_size_bytes == 1024
    assert not host.memory_of("rodata").is_writable
    assert "micro" not in host.tags


# (target, memory, base, size): the regions of the boards, as their documents and QEMU have them
@pytest.mark.parametrize(
    ("name", "memory", "base", "size_bytes"),
    [
        ("mps3-an547", "itcm", 0x00000000, 512 << 10),
        ("mps3-an547", "sram", 0x01000000, 2 << 20),
        ("mps3-an547", "dtcm", 0x20000000, 512 << 10),
        ("mps3-an547", "isram", 0x21000000, 4 << 20),
        ("mps3-an547", "flash", 0x28000000, 8 << 20),
        ("mps3-an547", "ddr", 0x60000000, 2 << 30),
        ("mps2-an521", "ssram1", 0x10000000, 4 << 20),
        ("mps2-an521", "sram", 0x30000000, 64 << 10),
        ("mps2-an521", "shared", 0x30010000, 64 << 10),
        ("mps2-an521", "ssram2", 0x38000000, 2 << 20),
        ("mps2-an521", "ssram3", 0x38200000, 2 << 20),
        ("mps2-an521", "psram", 0x80000000, 16 << 20),
        ("mps2-an500", "ssram1", 0x00000000, 4 << 20),
        ("mps2-an500", "ssram23", 0x20000000, 4 << 20),
        ("mps2-an500", "psram", 0x60000000, 16 << 20),
        ("mps2-an386", "bram", 0x01000000, 16 << 10),
        ("mps2-an386", "psram", 0x21000000, 16 << 20),
    ],
)
def test_board_regions(name: str, memory: str, base: int, size_bytes: int) -> None:
    found = load_target(name).memory(memory)
    assert (found.base, found.size_bytes) == (base, size_bytes)


def test_core_1_of_the_an521_sees_what_it_may_be_lent_elsewhere_than_core_0() -> None:
    target = load_target("mps2-an521")
    assert target.default_device_name == "cpu"
    assert [target.device(name).isa.features for name in ("cpu", "core1")] == [(), ("dsp",)]
    views = {memory.name: target.address_seen_by("core1", memory.name) for memory in target.memories}
    assert views == {
        "ssram1": 0x10000000,
        "sram": None,
        "shared": 0x20010000,
        "ssram2": None,
        "ssram3": 0x28200000,
        "psram": None,
    }
    for name in ("shared", "ssram3"):
        assert target.memory(name).offset_of(views[name] or 0) == 0
        assert views[name] != target.memory(name).base


@pytest.mark.parametrize("name", [name for name in BUILTIN_TARGETS if name not in MACHINES])
def test_microcontrollers_keep_scratch_off_the_stack(name: str) -> None:
    target = load_target(name)
    assert "micro" in target.tags
    assert target.default_device.max_stack_alloca_size_bytes == 0
    assert target.default_device.max_stack_alloca_size_bytes is not UNLIMITED
    assert target.default_device.contexts[0].available_stack_bytes == 7168


def test_an_unknown_name_lists_the_names_and_close_ones() -> None:
    with pytest.raises(CompileError) as caught:
        load_target("mps3-an574")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW203"
    assert diagnostic.message == "there is no target 'mps3-an574'"
    assert diagnostic.notes == (f"built-in targets: {', '.join(BUILTIN_TARGETS)}, native",)
    assert "'mps3-an547'" in (diagnostic.help or "")
    with pytest.raises(CompileError) as caught:
        load_target("")
    assert caught.value.diagnostics[0].code == "BW203"


@pytest.mark.parametrize(
    ("name", "targets"),
    [("cortex-m55", "corstone-300-u55 or mps3-an547"), ("Cortex-M4F", "mps2-an386"), ("cortex-m0", "")],
)
def test_the_name_of_a_core_lists_the_targets_that_have_it(name: str, targets: str) -> None:
    with pytest.raises(CompileError) as caught:
        load_target(name)
    help_text = caught.value.diagnostics[0].help or ""
    isa = name.lower().removesuffix("f")
    assert help_text.startswith(f"give {targets}, which" if targets else "`bytewright targets import")
    assert f"`bytewright targets import board.ld --isa {isa} -o board.toml`" in help_text
    with pytest.raises(CompileError, match="there is no target 'ethos-u55-128'"):
        load_target("ethos-u55-128")


@pytest.mark.parametrize("name", ["bord.toml", "./mps3", "bord.json"])
def test_a_path_that_does_not_exist_is_a_file_that_cannot_be_read(name: str) -> None:
    with pytest.raises(CompileError) as caught:
        load_target(name)
    assert caught.value.diagnostics[0].code == "BW201"


def test_a_file_is_found_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "board").write_text(dump_toml(load_target("host")), encoding="utf-8")
    assert load_target(str(tmp_path / "board")) == load_target("host")
    monkeypatch.chdir(tmp_path)
    assert load_target("board") == load_target("host")


@pytest.mark.parametrize("name", ["mps2-an386", "mps2-an500", "mps3-an547"])
def test_boards_declare_the_stack_of_library_functions_that_compilers_insert(name: str) -> None:
    target = load_target(name)
    assert target.external_stack_bytes("memcpy") == 0  # declared, and needs none
    assert target.external_stack_bytes("memset") == 16
    assert target.external_stack_bytes("__aeabi_ldivmod") == 52
