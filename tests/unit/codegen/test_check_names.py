"""The last look at names: what two buffers would share in C is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError, Diagnostic, ExitCode
from bytewright.target import load_text
from support import two_devices
from support.ir_program import read_module

TARGET = """\
name = "board"
tags = ["micro"]
[memory.ram]
size = "64KiB"
[memory.rom]
size = "64KiB"
access = "r"
[device.cpu]
isa = "cortex-m4"
reach = ["ram", "rom"]
stack = "ram"
max-stack-size = "4KiB"
[[workspace]]
name = "FIRST"
memory = "ram"
size = "1KiB"
[[workspace]]
name = "SECOND"
memory = "ram"
size = "1KiB"
[[parameters]]
name = "rom"
memory = "rom"
"""
PROGRAM = """
module m
input %x : tensor<4xi8>
output %y : tensor<4xi8>
kernel m_copy(
    a : buffer<4xi8, "global", align=1> r activation,
    b : buffer<4xi8, "global", align=1> w activation
) on cpu {
  for i : i32 in 0 .. 4 {
    b[i] = a[i]
  }
}
entry main(
    x : buffer<4xi8, "global", align=1> r activation,
    y : buffer<4xi8, "global", align=1> w activation
) on cpu {
  allocate one : buffer<4xi8, "global.FIRST", align=1>
  allocate two : buffer<4xi8, "global.SECOND", align=1>
  call_extern m_copy(&x, &one)
  call_extern m_copy(&one, &two)
  call_extern m_copy(&two, &y)
}
"""


def compiled(first: str, second: str, one: str, two: str) -> Compiled:
    """The program with two pools and a buffer in each."""
    program = PROGRAM.replace("one", one).replace("two", two)
    texts = [text.replace("FIRST", first).replace("SECOND", second) for text in (program, TARGET)]
    return compile_model(read_module(texts[0]), load_text(texts[1], "board.toml"))


def refusal(first: str, second: str, one: str, two: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        compiled(first, second, one, two)
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.help) == ("BW109", "rename one of the two")
    return diagnostic


def test_offsets_of_two_buffers_in_two_pools() -> None:
    diagnostic = refusal("a", "a_b", "b_t", "t")
    document = Path(__file__).resolve().parents[3] / "docs" / "errors.md"
    assert f"error[BW109]: {diagnostic.message}\nhelp: {diagnostic.help}\n" in document.read_text()
    assert diagnostic.message == (
        "the offset of 'b_t' in pool 'a' and the offset of 't' in pool 'a_b' both become 'M_AT_A_B_T' in C"
    )


@pytest.mark.parametrize(
    "names", [("c", "a_b", "b_t", "t"), ("a", "c_b", "b_t", "t"), ("a", "a_b", "b_t", "u")]
)
def test_renaming_either_helps(names: tuple[str, str, str, str]) -> None:
    header = compiled(*names).files["src/m.c"].decode()
    lines = [line.split()[0] for line in header.splitlines() if line.strip().startswith("M_AT_")]
    assert len(lines) == len(set(lines)) == 2


@pytest.mark.parametrize("device", ["core1", "register", "core--1", "core-"])
def test_the_path_of_a_device_begins_with_the_function_that_its_header_declares(device: str) -> None:
    """Whatever becomes of the device's name in C: a word of C, or characters that C has not."""
    text = two_devices.PROGRAM.replace("on core1", f'on "{device}"')
    target = two_devices.TARGET.replace("device.core1", f"device.{device}")
    compiled = two_devices.compiled(text, target)
    headers = [text for file, text in compiled.files.items() if file.startswith("include/pair_")]
    first = compiled.plan.stack[device].path[0]
    assert any(f"int32_t {first}(".encode() in text for text in headers)
    with pytest.raises(CompileError) as error:
        two_devices.compiled(text, target.replace('"4KiB"', "300"))
    assert f"worst path, arrays + allowance: {first} 1024 B -> " in str(error.value)
