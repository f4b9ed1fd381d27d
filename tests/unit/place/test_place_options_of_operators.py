"""`--on OPERATOR=DEVICE.POOL` for an operator of the model's file that became several nodes of the graph."""

from __future__ import annotations

import pytest

from bytewright.diagnostics import CompileError
from bytewright.ir.graph import Function, Node, Value
from bytewright.ir.module import Module
from bytewright.ir.types import DType, TensorType
from bytewright.ir.where import Where
from bytewright.ops.data import Identity
from bytewright.options import On, parse_on_option
from bytewright.place.plan_devices import plan_devices
from support.placed_graphs import values_of
from support.three_devices import three_devices

TYPE = TensorType((4,), DType.I8)


def test_all_nodes_go_to_the_device_and_what_the_operator_gives_to_the_pool() -> None:
    """What is computed in between may lie wherever the device reaches."""
    operators = {"a": "0 (ABS)", "b": "1 (MEAN)", "c": "1 (MEAN)", "d": "1 (MEAN)", "e": "2 (ABS)"}
    nodes = list[Node]()
    for operand, (name, operator) in zip("xabcd", operators.items(), strict=True):
        nodes.append(Node(Identity(), (operand,), (Value(name, TYPE),), Where("m", operator)))
    module = Module("m", (Function("main", (Value("x", TYPE),), tuple(nodes), ("e",)),))
    found = plan_devices(module, three_devices(), (On("MEAN", "dsp", "side"),))
    places = {value.name: str(value.type.place) for value in values_of(found.graph)}
    cpu, dsp = "@cpu target=three", "@dsp target=three"
    assert {name: places[name] for name in operators} == {
        "a": cpu,
        "b": dsp,
        "c": dsp,
        "d": f'{dsp} "global.side"',
        "e": cpu,
    }


# Several options for one operator


def device_of(*on: str) -> dict[str, str | None]:
    """The places of three values, by options."""
    operators = {"first": "0 (ABS)", "second": "1 (ADD)", "third": "2 (ADD)"}
    nodes = list[Node]()
    for operand, (name, operator) in zip(("x", "first", "second"), operators.items(), strict=True):
        nodes.append(Node(Identity(), (operand,), (Value(name, TYPE),), Where("m", operator)))
    module = Module("m", (Function("main", (Value("x", TYPE),), tuple(nodes), ("third",)),))
    found = plan_devices(module, three_devices(), tuple(map(parse_on_option, on)))
    places = {value.name: value.type.place for value in values_of(found.graph)}
    return {name: places[name].device for name in operators}


@pytest.mark.parametrize(
    ("on", "devices"),
    [
        (("*=dsp", "ADD=cpu"), ("dsp", "cpu", "cpu")),
        (("ADD=cpu", "*=dsp"), ("dsp", "cpu", "cpu")),
        (("*=dsp", "ADD=cpu", "third=dsp"), ("dsp", "cpu", "dsp")),
        (("s*=dsp", "ADD=cpu"), ("cpu", "dsp", "cpu")),
        (("s*=dsp", "second=cpu"), ("cpu", "cpu", "cpu")),
        (("1 (ADD)=dsp", "*d=cpu", "**=cpu"), ("cpu", "dsp", "cpu")),
        (("A?D=dsp", "*=cpu"), ("cpu", "dsp", "dsp")),
    ],
)
def test_of_several_options_the_more_specific_wins(
    on: tuple[str, ...], devices: tuple[str, str, str]
) -> None:
    assert tuple(device_of(*on).values()) == devices


@pytest.mark.parametrize(
    ("on", "message", "help_text"),
    [
        (
            ("ADD=dsp", "identity=cpu"),
            "--on 'identity=cpu' contradicts --on 'ADD=dsp', which is as specific, for 'second': an operator runs on "
            "one device, 'dsp' or 'cpu'",
            "--on 'second=cpu'",
        ),
        (
            ("s*=dsp", "*d=cpu"),
            "--on '*d=cpu' contradicts --on 's*=dsp', which is as specific, for 'second': an operator runs on one "
            "device, 'dsp' or 'cpu'",
            "--on 'second=cpu'",
        ),
        (
            ("second=dsp", "1 (ADD)=cpu"),
            "--on '1 (ADD)=cpu' contradicts --on 'second=dsp', which is as specific, for 'second': an operator runs "
            "on one device, 'dsp' or 'cpu'",
            "leave out --on 'second=dsp'",
        ),
        (
            ("second=dsp.side", "1 (ADD)=dsp.shared"),
            "--on '1 (ADD)=dsp.shared' contradicts --on 'second=dsp.side', which is as specific, for 'second': a "
            "result lies in one pool, 'side' or 'shared'",
            "leave out --on 'second=dsp.side'",
        ),
    ],
)
def test_options_that_are_equally_specific_must_agree(
    on: tuple[str, ...], message: str, help_text: str
) -> None:
    with pytest.raises(CompileError, match="BW204") as error:
        device_of(*on)
    found = error.value.diagnostics[0]
    assert (found.message, found.help) == (message, help_text)
