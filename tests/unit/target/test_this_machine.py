"""The machine at hand: what it says of itself, what it lacks, and which target is its own."""

from __future__ import annotations

import pytest

from bytewright.target import BUILTIN_TARGETS, load_target
from bytewright.target.isa.find import require_isa
from bytewright.target.isa.this_machine import Machine, read_flags, this_machine
from bytewright.target.registry import native_target

V3 = frozenset(require_isa("x86-64-v3").processor_flags)
V4 = frozenset(require_isa("x86-64-v4-vnni").processor_flags)
X86_CPUINFO = """\
processor\t: 0
flags\t\t: fpu sse2 avx avx2 avx512f
bugs\t\t: spectre_v1
vmx flags\t: ept

processor\t: 1
flags\t\t: fpu sse2 avx avx2
"""
ARM_CPUINFO = "processor\t: 0\nFeatures\t: fp asimd aes crc32 atomics asimddp\nCPU part\t: 0xd0c\n"
RISC_V_CPUINFO = (
    "processor\t: 0\nisa\t\t: rv64imafdcv_zicsr_zba\n\nprocessor\t: 1\nisa\t\t: rv64imafdcv_zicsr\n"
)


def test_what_all_processors_have_counts() -> None:
    assert read_flags(X86_CPUINFO) == {"fpu", "sse2", "avx", "avx2"}
    assert read_flags(ARM_CPUINFO) == {"fp", "asimd", "aes", "crc32", "atomics", "asimddp"}
    assert read_flags(RISC_V_CPUINFO) == {*"imafdcv", "zicsr"}
    assert read_flags("") == frozenset()


@pytest.mark.parametrize(
    ("machine", "target"),
    [
        (Machine("x86_64"), "host"),
        (Machine("x86_64", V3), "x86-64-v3"),
        (Machine("x86_64", V3 - {"fma"}), "host"),
        (Machine("x86_64", V4), "x86-64-v4-vnni"),
        (Machine("x86_64", V4 - {"avx512_vnni"}), "x86-64-v3"),
        (Machine("aarch64", frozenset({"asimd"})), "host"),
        (Machine("aarch64", read_flags(ARM_CPUINFO)), "aarch64"),
        (Machine("riscv64"), "host"),
        (Machine("riscv64", read_flags(RISC_V_CPUINFO)), "rv64gcv"),
    ],
)
def test_the_target_of_a_machine(machine: Machine, target: str) -> None:
    assert native_target(machine).name == target


def test_native_is_a_built_in_target_of_this_machine() -> None:
    target = load_target("native")
    assert target.name in BUILTIN_TARGETS
    isa = target.default_device.isa
    assert isa.is_host or (this_machine().executes(isa) and not this_machine().lacks(isa))


def test_what_a_machine_lacks() -> None:
    machine = Machine("x86_64", V3)
    assert machine.lacks(require_isa("x86-64-v3")) == ()
    assert machine.lacks(require_isa("x86-64-v4-vnni"))[0] == "avx512f"
    assert machine.executes(require_isa("x86-64-v4-vnni"))
    assert not machine.executes(require_isa("cortex-a53"))
    assert not machine.executes(require_isa("cortex-m4"))
