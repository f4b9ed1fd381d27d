"""IR texts of small programs for tests: a frame with two tensors and one kernel, and what a test puts into it."""

from __future__ import annotations

from bytewright.ir.module import Module
from support.parsing import parse_module

CONSTANT = 'constant w : buffer<8xi8, "global"> = data<8xi8> [1, 2, 3, 4, 5, 6, 7, 8]'
CALL = "call_extern m_halve(&x, &y)"
TENSOR = 'allocate t : buffer<8xi8, "global.workspace", align=16>'
THROUGH = "call_extern m_halve(&x, &t)\n  call_extern m_halve(&t, &y)"
NAMED = """
kernel m_named(output : buffer<8xi8, "global"> w) on cpu {
  for c : i32 in 0 .. 8 { output[c] = w[c] }
}
"""
_FRAME = """
module m
input %x : tensor<8xi8>
output %y : tensor<8xi8>
CONSTANTS
kernel m_halve(input : buffer<8xi8, "global"> r, output : buffer<8xi8, "global"> w) on DEVICE {
  INSIDE
  for c : i32 in 0 .. 8 { output[c] = i8(i32(input[c]) >> 1) }
}
KERNELS
entry main(x : buffer<8xi8, "global"> r, y : buffer<8xi8, "global"> w) on cpu {
  BODY
}
"""


def text_of(
    body: str = CALL, *, constants: str = "", kernels: str = "", inside: str = "", device: str = "cpu"
) -> str:
    """The text of a program; `inside` stands in the kernel before its loop."""
    parts = {"CONSTANTS": constants, "KERNELS": kernels, "INSIDE": inside, "BODY": body, "DEVICE": device}
    text = _FRAME
    for word, part in parts.items():
        text = text.replace(word, part)
    return text


def parsed(text: str) -> Module:
    """The module of a text whose constants stand in it."""
    return parse_module(text, {}, {})
