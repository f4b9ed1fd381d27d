"""What is remembered of a function ends with it, and never hides what is wrong around it."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.remember import Remembered
from bytewright.ir.verify.stages import Stage, verify
from bytewright.target import load_target
from support.parsing import parse_module

TEXT = """
module m

input %x : tensor<8xi8>
output %y : tensor<8xi8>

kernel first(a : buffer<8xi8, "global"> r, b : buffer<8xi8, "global"> w) on cpu {
  for i : i32 in 0 .. 8 {
    b[i] = a[i]
  }
}

entry main(x : buffer<8xi8, "global"> r, y : buffer<8xi8, "global"> w) on cpu {
  call_extern first(&x[0], &y[0])
}
"""
HOST = load_target("host")


def test_a_value_ends_with_its_function_and_is_that_of_no_equal_one() -> None:
    known: Remembered[str] = Remembered()
    function = parse_module(TEXT, {}, {}).kernels[0]
    known.put(function, "found")
    assert known.get(function) == "found"
    assert known.get(replace(function)) is None
    identity = id(function)
    del function
    gc.collect()
    assert identity not in known._known  # pyright: ignore[reportPrivateUsage]


def test_a_function_that_was_clean_is_looked_at_again_in_other_surroundings() -> None:
    module = parse_module(TEXT, {}, {})
    (kernel,) = module.kernels
    read, written = kernel.buffer_parameters
    longer = replace(written, buffer=replace(written.buffer, shape=(9,)))
    elsewhere = replace(HOST, devices=(replace(HOST.devices[0], name="npu"),))
    verify(module, Stage.LOWERED, HOST)
    with pytest.raises(InternalError, match="first"):  # the entry is the same, its callee another
        verify(replace(module, kernels=(replace(kernel, parameters=(read, longer)),)), Stage.LOWERED, HOST)
    with pytest.raises(InternalError, match="cpu"):
        verify(module, Stage.LOWERED, elsewhere)
    verify(replace(module, kernels=(kernel, module.main), entries=()), Stage.LOWERED, HOST)
    with pytest.raises(InternalError, match="first"):  # the same functions, a callee behind its caller
        verify(replace(module, kernels=(module.main, kernel), entries=()), Stage.LOWERED, HOST)
    verify(module, Stage.LOWERED, HOST)
