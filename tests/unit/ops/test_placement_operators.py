"""Annotations and copies: the same values, places that mean something, and a text."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.ir.graph import Function, Node, Operation, Value
from bytewright.ir.module import Module
from bytewright.ir.scope import STACK, WORKSPACE, pool_scope
from bytewright.ir.text.modules import print_module
from bytewright.ir.types import DType, TensorType, VirtualDevice, join_places
from bytewright.ir.where import NOWHERE
from bytewright.ops.placement import DeviceCopy, OnDevice
from bytewright.ops.registry import OPERATIONS
from support.parsing import parse_module

TYPE = TensorType((2, 3), DType.I16)
SRAM = VirtualDevice("cpu", None, pool_scope("sram"))


@pytest.mark.parametrize(
    "operation",
    [OnDevice("npu", "global.sram", fixed=True), OnDevice(free=True), DeviceCopy(SRAM, VirtualDevice("npu"))],
)
def test_they_change_nothing(operation: Operation) -> None:
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    (result,) = operation.evaluate((values,))
    assert (result == values).all()
    placed = TensorType(TYPE.shape, TYPE.dtype, SRAM)
    assert operation.infer((placed,)) == (TYPE,)
    with pytest.raises(ValueError, match="2 operands"):
        operation.infer((TYPE, TYPE))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (OnDevice("npu", fixed=True, free=True), "fixed or free"),
        (OnDevice(fixed=True), "names a device"),
        (OnDevice(scope="globalfoo"), "there is no rank 'globalfoo'"),
        (OnDevice(scope="local"), "cannot be in 'local'"),
        (DeviceCopy(destination=VirtualDevice(None, None, None)), None),
        (OnDevice(), None),
    ],
)
def test_what_makes_no_sense_is_refused(operation: Operation, message: str | None) -> None:
    if message is None:
        assert operation.infer((TYPE,)) == (TYPE,)
        return
    with pytest.raises(ValueError, match=message):
        operation.infer((TYPE,))


def test_the_text_says_the_place_and_the_reason() -> None:
    x = Value("x", TYPE, reason='because of "this"')
    on_npu = Value("on_npu", TensorType(TYPE.shape, TYPE.dtype, VirtualDevice("npu")), reason="asked")
    copied = Value("copied", TYPE)
    nodes = (
        Node(OnDevice("npu", None, free=False), ("x",), (on_npu,), NOWHERE),
        Node(DeviceCopy(VirtualDevice("npu"), SRAM), ("on_npu",), (copied,), NOWHERE),
    )
    module = Module("m", (Function("main", (x,), nodes, ("copied",)),))
    text = print_module(module)
    assert 'because("asked")' in text
    assert parse_module(text, {}, OPERATIONS) == module


def test_places_join_part_by_part() -> None:
    workspace = VirtualDevice(None, "board", WORKSPACE)
    assert join_places(SRAM, workspace) == VirtualDevice("cpu", "board", pool_scope("sram"))
    assert join_places(VirtualDevice(), SRAM) == SRAM
    for first, second, message in (
        (SRAM, VirtualDevice("npu"), "devices 'cpu' and 'npu'"),
        (workspace, VirtualDevice(None, "other"), "targets 'board' and 'other'"),
        (SRAM, VirtualDevice(None, None, STACK), "no place in common"),
    ):
        with pytest.raises(ValueError, match=message):
            join_places(first, second)
        with pytest.raises(ValueError, match="'"):
            join_places(second, first)
