"""A program of kernels that is given as a value has its constants folded, as one that is read from a text has."""

from __future__ import annotations

from bytewright.compiler.pipeline import compile_model
from bytewright.ir.text.modules import parse_text
from bytewright.target.registry import load_target

PROGRAM = """\
module m
input %x : tensor<4xi8>
output %y : tensor<4xi8>
kernel m_give(x : buffer<4xi8> r, y : buffer<4xi8> w) on cpu {
  for i : i32 in 0 .. 4 {
    y[i] = x[i]
  }
}
entry main(x : buffer<4xi8> r, y : buffer<4xi8> w) on cpu {
  if 1 < 0 {
    call_extern m_give(&x, &y)
  }
  call_extern m_give(&x, &y)
}
"""


def test_a_branch_that_never_runs_is_no_step() -> None:
    module = parse_text(PROGRAM, {}, {}).module
    compiled = compile_model(module, load_target("host"))
    source = compiled.files["src/m.c"].decode()
    assert source.count("    m_give(") == len(compiled.plan.steps) == 1
