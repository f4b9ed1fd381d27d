"""Scalars with bounds: clamps merge, vanish where they hold already, and bounds that leave 32 bits are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.diagnostics import CompileError
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.expr import Buffer, Const
from bytewright.ir.prim import Access, BufferParameter, PrimFunc
from bytewright.ir.scope import GLOBAL
from bytewright.ir.text.expressions import format_expression
from bytewright.ir.types import DType
from bytewright.ir.where import Where
from bytewright.lower.scalar import Scalar, clamped, element, require_i32
from support.evaluation import run_primfunc

I8, I32 = DType.I8, DType.I32
SOURCE = Buffer("source", (256,), I8, 1)
TARGET = Buffer("target", (256,), I32, 4)


def on_all_bytes(steps: list[tuple[int, int, int]]) -> tuple[np.ndarray, Scalar]:
    """Applies (addend, low, high) in turn to each int8 value, by the evaluator."""
    b = BodyBuilder()
    with b.for_("i", 0, 256) as i:
        value = element(load(SOURCE, i))
        for addend, low, high in steps:
            shifted = Scalar(value.expr + addend, value.low + addend, value.high + addend)
            value = clamped(shifted, low, high)
        b.store(TARGET, i, value.expr)
    parameters = (
        BufferParameter(SOURCE, Access.READ, scope=GLOBAL),
        BufferParameter(TARGET, Access.WRITE, scope=GLOBAL),
    )
    function = PrimFunc("f", parameters, b.finish())
    return run_primfunc(function, {"source": np.arange(-128, 128, dtype=np.int8)})["target"], value


STEPS = st.tuples(st.sampled_from([0, 0, 0, 5, -300]), st.integers(-400, 400), st.integers(-400, 400)).map(
    lambda step: (step[0], min(step[1:]), max(step[1:]))
)


@given(st.lists(STEPS, min_size=1, max_size=4))
def test_clamps_in_any_order_give_the_values_and_bounds(steps: list[tuple[int, int, int]]) -> None:
    found, scalar = on_all_bytes(steps)
    expected = np.arange(-128, 128)
    for addend, low, high in steps:
        expected = np.clip(expected + addend, low, high)
    assert (found == expected).all()
    assert scalar.low <= expected.min()
    assert scalar.high >= expected.max()


def test_a_clamp_that_holds_already_costs_nothing() -> None:
    value = element(load(SOURCE, 0))
    assert clamped(value, -128, 127) == value
    assert clamped(value, -1000, 1000) == value


def test_the_narrower_of_two_clamps_is_left() -> None:
    value = element(load(SOURCE, 0))
    twice = clamped(clamped(value, -50, 100), -20, 120)
    assert twice == clamped(value, -20, 100)
    assert format_expression(twice.expr).count("min") == 1


def test_a_range_of_one_value_is_that_value() -> None:
    assert clamped(element(load(SOURCE, 0)), 200, 300).expr == Const(200, I32)
    assert clamped(element(load(SOURCE, 0)), -300, -200).expr == Const(-200, I32)
    assert clamped(element(load(SOURCE, 0)), 7, 7) == Scalar(Const(7, I32), 7, 7)


@pytest.mark.parametrize(("low", "high"), [(-(2**31) - 1, 0), (0, 2**31)])
def test_what_32_bits_do_not_hold_is_refused(low: int, high: int) -> None:
    require_i32(-(2**31), 2**31 - 1, "it", Where("m.tflite"))
    with pytest.raises(CompileError) as caught:
        require_i32(low, high, "it", Where("m.tflite", "3 (ADD)"))
    diagnostic = caught.value.diagnostics[0]
    assert (diagnostic.code, diagnostic.where) == ("BW110", "m.tflite, operator 3 (ADD)")
    assert diagnostic.message == f"it ranges from {low} to {high}, which 32 bits do not hold"
