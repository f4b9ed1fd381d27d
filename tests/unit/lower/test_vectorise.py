"""vectorise: what is said of one element, as instructions on vectors."""

from __future__ import annotations

import pytest

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.lower.isa.mve.lanes import UNIT as MVE
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.vectorise import vectorise
from bytewright.lower.isa.x86.lanes import unit_of
from bytewright.lower.isa.x86.simd import AVX2

LANES = AVX2.lanes
UNIT = unit_of(AVX2, LANES)

I32, F32 = ir.DType.I32, ir.DType.F32
OPERATORS = (ir.BinaryOperator.MIN, ir.BinaryOperator.MAX)
LANE = ir.Var("lane", I32)


def executed(statements: list[ir.Statement], unit: VectorUnit = UNIT) -> list[ir.InstructionCall] | None:
    """The instructions of a loop over lanes; None if it stays one."""
    body = BodyBuilder(("x", "y", "lane"))
    with body.captured() as written:
        done = vectorise(body, unit, LANE, statements)
    return [each for each in written if isinstance(each, ir.InstructionCall)] if done else None


def stored(value: ir.Expr) -> list[ir.Statement]:
    return [ir.Store(ir.Buffer("y", (LANES,), value.dtype), (LANE,), value)]


def between(operator: ir.BinaryOperator, dtype: ir.DType) -> ir.Expr:
    """A number that is the same in every lane on the left, an element on the right."""
    source = ir.Buffer("x", (LANES,), dtype)
    return ir.Binary(operator, ir.const(2 if dtype is I32 else 2.0, dtype), load(source, LANE))


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_left_operand_of_a_float_minimum_stays_left(operator: ir.BinaryOperator) -> None:
    calls = executed(stored(between(operator, F32)))
    assert calls is not None
    broadcast, loaded, compared, _ = calls
    assert broadcast.instruction.name == "avx2_broadcast_f32"
    assert compared.instruction.name == f"avx2_{operator.value}_f32"
    assert compared.arguments[1:] == (broadcast.arguments[0], loaded.arguments[0])


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_operands_of_an_integer_minimum_change_places(operator: ir.BinaryOperator) -> None:
    calls = executed(stored(between(operator, I32)))
    assert calls is not None
    assert [call.instruction.name for call in calls][1] == f"avx2_{operator.value}_i32_n"


def register(name: str) -> ir.Buffer:
    return ir.Buffer(name, (LANES,), I32, 4, register="__m256i")


def test_a_register_is_written_anew() -> None:
    total = register("total")
    value = load(total, LANE) + ir.cast(load(ir.Buffer("x", (64,), ir.DType.I8), LANE + 8), I32)
    calls = executed([ir.Store(total, (LANE,), value)])
    assert calls is not None
    loaded, added = calls
    assert [call.instruction.name for call in calls] == ["avx2_load_i8", "avx2_add_i32"]
    assert added.arguments == (ir.Region(total), ir.Region(total), loaded.arguments[0])


def test_a_register_that_has_a_name_stays_what_it_was() -> None:
    total, old = register("total"), ir.Var("old", I32)
    before = ir.Let(old, load(total, LANE))
    assert executed([before, ir.Store(total, (LANE,), old + 1), *stored(old)]) is None


def test_lanes_that_change_places_stay_a_loop() -> None:
    total = register("total")
    assert executed([ir.Store(total, (LANE,), load(total, 7 - LANE) + 1)]) is None
    assert executed([ir.Store(total, (7 - LANE,), load(total, LANE) + 1)]) is None
    assert (
        executed([ir.Store(total, (LANE,), load(register("other"), LANE))]) is None
    )  # no instruction copies


def test_an_index_that_is_another_in_every_lane_stays_a_loop() -> None:
    places, source = ir.Buffer("places", (LANES,), I32), ir.Buffer("x", (64,), F32)
    place = ir.Var("place", I32)
    value = load(source, LANE + place)
    assert executed([ir.Let(place, load(places, LANE)), *stored(value)]) is None
    assert executed([ir.Let(place, load(places, 3)), *stored(value)]) is not None


def test_elements_of_a_table_are_gathered_where_a_unit_can() -> None:
    table, source = (ir.Buffer(name, (256,), ir.DType.I8) for name in ("table", "x"))
    place = ir.cast(load(source, LANE), I32) + 128
    looked_up = stored(load(table, place))
    calls = executed(looked_up, MVE)
    assert calls is not None
    names = ["mve_load_i8", "mve_add_i32_n", "mve_gather_i8_256", "mve_store_i8"]
    assert [call.instruction.name for call in calls] == names
    assert calls[2].arguments[1:] == (region(table, 0), calls[1].arguments[0])
    assert executed(looked_up) is None


def test_an_element_at_a_place_that_is_the_same_in_every_lane_is_none_of_a_table() -> None:
    table, places = ir.Buffer("table", (256,), I32), ir.Buffer("x", (4,), I32)
    place = ir.Var("place", I32)
    calls = executed([ir.Let(place, load(places, 3)), *stored(load(table, place + LANE))], MVE)
    assert calls is not None
    assert [call.instruction.name for call in calls] == ["mve_load_i32", "mve_store_i32"]


def test_a_choice_by_the_sign_is_an_instruction() -> None:
    value = load(ir.Buffer("x", (64,), I32), LANE)
    chosen = stored(ir.select(value >= 0, value, 0 - value))
    calls = executed(chosen, MVE)
    assert calls is not None
    assert "mve_select_ge_i32" in [call.instruction.name for call in calls]
    assert executed(chosen) is None


def wrapped(operator: ir.BinaryOperator) -> ir.Expr:
    """Of elements of x and of z, modulo 2^32."""
    left, right = (load(ir.Buffer(name, (LANES,), I32), LANE) for name in ("x", "z"))
    return ir.cast(ir.Binary(operator, ir.cast(left, ir.DType.I64), ir.cast(right, ir.DType.I64)), I32)


def test_a_sum_modulo_2_to_32_is_an_addition_of_vectors() -> None:
    calls = executed(stored(wrapped(ir.BinaryOperator.ADD)), MVE)
    assert calls is not None
    assert [call.instruction.name for call in calls][2:] == ["mve_add_i32_wrapping", "mve_store_i32"]


def test_what_a_unit_does_not_wrap_stays_a_loop() -> None:
    assert executed(stored(wrapped(ir.BinaryOperator.ADD))) is None
    assert executed(stored(wrapped(ir.BinaryOperator.MUL)), MVE) is None


def test_a_value_that_was_widened_is_what_it_was() -> None:
    source = load(ir.Buffer("x", (LANES,), I32), LANE)
    calls = executed(stored(ir.cast(ir.cast(source, ir.DType.I64), I32)), MVE)
    assert calls is not None
    assert [call.instruction.name for call in calls] == ["mve_load_i32", "mve_store_i32"]
