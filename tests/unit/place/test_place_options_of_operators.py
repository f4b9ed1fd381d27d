"""`--on OPERATOR=DEVICE.POOL` for an operator of the model's file that became several nodes of the graph."""

from __future__ import annotations

from bytewright.ir.graph import Function, Node, Value
from bytewright.ir.module import Module
from bytewright.ir.types import DType, TensorType
from bytewright.ir.where import Where
from bytewright.ops.data import Identity
from bytewright.options import On
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
