"""Random programs of functions that only pass on what they are given, to others below: all that they do is to compete.

Many functions are alike but for who calls them, and what they pass on is one memory where that is possible. What is
passed at the top lies in pools that contradict each other, so that somewhere below it is not.
"""

from __future__ import annotations

from random import Random

from bytewright.ir.graph import Function, Node, Value
from bytewright.ir.module import Module, Port
from bytewright.ir.types import DType, TensorType
from bytewright.ir.where import NOWHERE
from bytewright.ops.control import Call
from bytewright.ops.data import Identity
from bytewright.ops.placement import OnDevice
from support.three_devices import POOLS_OF

TYPE = TensorType((4,), DType.I8)


def random_calls(random: Random) -> Module:
    """One to three levels of functions of one or two parameters, under a model that computes what it passes."""
    functions: list[Function] = []
    below: list[Function] = []
    for level in range(random.randint(1, 3)):
        names = [f"f{level}_{number}" for number in range(random.randint(1, 3))]
        below = [_function(random, name, below) for name in names]
        functions += below
    nodes: list[Node] = []
    passed: list[str] = ["x"]
    for number in range(random.randint(2, 4)):
        device = random.choice((*POOLS_OF, None))
        pool = None if device is None else random.choice((*POOLS_OF[device], None))
        nodes.append(Node(Identity(), ("x",), (Value(f"v{number}", TYPE),), NOWHERE))
        place = OnDevice(device, None if pool is None else f"global.{pool}", False, False)
        nodes.append(Node(place, (f"v{number}",), (Value(f"v{number}.at", TYPE),), NOWHERE))
        passed += [f"v{number}", f"v{number}.at"]
    nodes += [_call(random, below, passed) for _ in range(random.randint(2, 4))]
    main = Function("main", (Value("x", TYPE),), tuple(nodes), (random.choice(passed),))
    return Module("calls", (*functions, main), (), inputs=(Port("in", TYPE),), outputs=(Port("out", TYPE),))


def _function(random: Random, name: str, below: list[Function]) -> Function:
    parameters = tuple(Value(f"{name}.p{number}", TYPE) for number in range(random.randint(1, 2)))
    names = [value.name for value in parameters]
    nodes = [_call(random, below, names) for _ in range(random.randint(1, 3))] if below else []
    return Function(name, parameters, tuple(nodes), ())


def _call(random: Random, functions: list[Function], passed: list[str]) -> Node:
    callee = random.choice(functions)
    return Node(Call(callee.name), tuple(random.choice(passed) for _ in callee.parameters), (), NOWHERE)
