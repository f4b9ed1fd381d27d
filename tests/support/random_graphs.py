"""Random graph modules with functions, conditionals and loops, and what they compute, by numpy.

    @given(graphs())
    def test_something(graph: RandomGraph) -> None:
        for inputs in graph.inputs(3):
            wanted = graph.expected(inputs)

Operators are element-wise ones on i8 and i32, comparisons, reshapes, and all of `ops/control.py`; with `has_images`
also those of `random_images.py`. Functions return parameters, constants, and one value twice; loops have 0 to 4 turns.
Beside the module stands the same as text of
Python, which `expected` carries out with numpy alone: no operator, evaluator or pass of Bytewright takes part in that.
`random_graph(Random(seed))` gives the same without hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bytewright.ir.data import TensorData
from bytewright.ir.graph import Constant, Function, Node, Operation, Value
from bytewright.ir.module import Module, Port
from bytewright.ir.types import DType, TensorType
from bytewright.ir.where import Where
from bytewright.ops.comparisons import Equal, Greater, GreaterEqual
from bytewright.ops.control import Call, CondIf, Loop
from bytewright.ops.data import Identity, Reshape
from bytewright.ops.elementwise import Add, Clamp, Mul, Sub
from bytewright.ops.quantization import Table
from support import random_images
from support.random_images import BYTES, FLAG, IMAGE, NARROW

Array = NDArray[Any]
WIDE, FLAT = (TensorType(shape, DType.I32) for shape in ((2, 3), (6,)))
TYPES = (WIDE, FLAT, NARROW, BYTES, FLAG)
# Operands of arithmetic are limited, so that every result is proved to fit 32 bits.
LIMIT = 1000


@dataclass(frozen=True, slots=True)
class RandomGraph:
    """A module, whose ports are in order, and its functions as Python, of which the last is `main`."""

    module: Module
    python: str

    def expected(self, inputs: Sequence[Array]) -> list[Array]:
        """What the model computes of these inputs."""
        names: dict[str, Any] = {"np": np}
        exec(self.python, names)
        return [np.asarray(result) for result in names["main"](*inputs)]

    def inputs(self, count: int) -> list[list[Array]]:
        """Inputs for so many runs: the same each time, other ones for each run."""
        return [[_values(Random(run), port.type) for port in self.module.inputs] for run in range(count)]

    def __repr__(self) -> str:
        return f"RandomGraph:\n{self.python}"


@dataclass(frozen=True, slots=True)
class _Family:
    """Functions that take and give the same."""

    parameters: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    names: tuple[str, ...]


def _values(random: Random, type_: TensorType) -> Array:
    count = type_.num_elements
    if type_.dtype is DType.BOOL:
        values: list[Any] = [random.randrange(2) == 1 for _ in range(count)]
    elif type_.dtype is DType.F32:
        values = [random.randrange(-64, 65) / 8 for _ in range(count)]
    elif type_.dtype is DType.I8:
        values = [random.randrange(-128, 128) for _ in range(count)]
    else:
        values = [
            random.choice((random.randrange(-9, 9), random.randrange(-(2**31), 2**31))) for _ in range(count)
        ]
    return np.array(values, type_.dtype.numpy).reshape(type_.fixed_shape)


@dataclass(slots=True)
class _Builder:
    random: Random
    has_images: bool = False
    constants: list[Constant] = field(default_factory=list[Constant])
    functions: list[Function] = field(default_factory=list[Function])
    families: list[_Family] = field(default_factory=list[_Family])
    python: list[str] = field(default_factory=list[str])
    num_names: int = 0

    def fresh(self, stem: str) -> str:
        self.num_names += 1
        return f"{stem}{self.num_names}"

    def types(self, least: int, most: int) -> tuple[TensorType, ...]:
        kinds = (*TYPES, *(IMAGE,) * 5) if self.has_images else TYPES
        return tuple(self.random.choice(kinds) for _ in range(self.random.randint(least, most)))

    def constant(self, type_: TensorType) -> str:
        """One of this type, new or known."""
        known = [constant.name for constant in self.constants if constant.data.type == type_]
        if known and self.random.randrange(2):
            return self.random.choice(known)
        return self.add(self.fresh("k"), _values(self.random, type_))

    def add(self, name: str, values: Array) -> str:
        """A new constant."""
        self.constants.append(Constant(name, TensorData.from_array(values, DType.of(values.dtype))))
        self.python.append(f"{name} = np.array({values.tolist()}, np.{values.dtype.name})")
        return name

    def family(self, most_nodes: int) -> None:
        """One to three functions that take and give the same; those of a loop give what they take."""
        random = self.random
        is_loop = random.randrange(3) > 0
        parameters = (*(FLAG,) * random.randrange(2), *self.types(int(is_loop), 3))
        results = parameters if is_loop else self.types(0, 3)
        names = [
            Body(self, parameters).finish(self.fresh("f"), results, random.randrange(most_nodes + 1))
            for _ in range(random.randint(1, 3))
        ]
        self.families.append(_Family(parameters, results, tuple(names)))


class Body:
    """One function under construction."""

    def __init__(self, builder: _Builder, parameters: tuple[TensorType, ...]) -> None:
        self.builder, self.random = builder, builder.random
        self.parameters = [Value(builder.fresh("p"), type_) for type_ in parameters]
        self.in_sight = list(self.parameters)
        self.nodes: list[Node] = []
        self.lines: list[str] = []

    def finish(self, name: str, results: tuple[TensorType, ...], num_nodes: int) -> str:
        """Adds the function to the module, after so many operators; it gives values of these types."""
        makers: list[Callable[[], None]] = [self.arithmetic, self.comparison, self.bytes, self.move]
        if self.builder.has_images:
            makers += [partial(make, self) for make in random_images.MAKERS for _ in range(2)]
        for _ in range(num_nodes):
            if self.builder.families and self.random.randrange(5) < 3:
                self.control()
            else:
                self.random.choice(makers)()
        chosen = [self.operand(type_) for type_ in results]
        self.builder.functions.append(
            Function(name, tuple(self.parameters), tuple(self.nodes), tuple(chosen))
        )
        given = ", ".join(value.name for value in self.parameters)
        returned = "".join(f"{result}, " for result in chosen)
        body = [*self.lines, f"return ({returned})"]
        self.builder.python += [f"def {name}({given}):", *(f"    {line}" for line in body)]
        return name

    def operand(self, type_: TensorType) -> str:
        """A value in sight of this type, the latest more often; a constant where there is none, and now and then."""
        known = [value.name for value in self.in_sight if value.type == type_]
        if not known or self.random.randrange(8) == 0:
            return self.builder.constant(type_)
        return known[-1] if self.random.randrange(3) else self.random.choice(known)

    def node(self, operation: Operation, inputs: Sequence[str], *results: TensorType) -> tuple[str, ...]:
        """An operator; returns the names of its results."""
        values = tuple(Value(self.builder.fresh("v"), type_) for type_ in results)
        where = Where("random", f"{len(self.nodes)} ({operation.name})")
        self.nodes.append(Node(operation, tuple(inputs), values, where))
        self.in_sight += values
        return tuple(value.name for value in values)

    def computed(self, operation: Operation, inputs: Sequence[str], result: TensorType, python: str) -> str:
        (name,) = self.node(operation, inputs, result)
        self.lines.append(f"{name} = {python}")
        return name

    def limited(self, type_: TensorType) -> str:
        """A small operand that nothing else reads."""
        operand = self.operand(type_)
        name = self.computed(Clamp(-LIMIT, LIMIT), [operand], type_, f"np.clip({operand}, -{LIMIT}, {LIMIT})")
        self.in_sight.pop()
        return name

    def limited_constant(self, type_: TensorType) -> str:
        """A small constant."""
        name, values = self.builder.fresh("k"), _values(self.random, type_) % LIMIT
        return self.builder.add(name, values)

    def arithmetic(self) -> None:
        kind = self.random.choice((WIDE, FLAT, NARROW))
        operation, sign = self.random.choice(((Add(), "+"), (Sub(), "-"), (Mul(), "*")))
        first = self.limited(kind)
        second = first if self.random.randrange(6) == 0 else self.limited(kind)
        self.computed(operation, [first, second], kind, f"{first} {sign} {second}")

    def comparison(self) -> None:
        operation, sign = self.random.choice(((Greater(), ">"), (GreaterEqual(), ">="), (Equal(), "==")))
        first, second = self.operand(NARROW), self.operand(NARROW)
        self.computed(operation, [first, second], FLAG, f"{first} {sign} {second}")

    def bytes(self) -> None:
        operand = self.operand(BYTES)
        if self.random.randrange(2):
            low = self.random.randrange(-128, 100)
            high = self.random.randrange(low, 128)
            self.computed(Clamp(low, high), [operand], BYTES, f"np.clip({operand}, {low}, {high})")
            return
        table = self.builder.constant(TensorType((256,), DType.I8))
        self.computed(Table(), [operand, table], BYTES, f"{table}[{operand}.astype(np.int64) + 128]")

    def move(self) -> None:
        source, result = self.random.choice(((WIDE, FLAT), (FLAT, WIDE), (BYTES, BYTES), (FLAG, FLAG)))
        operand = self.operand(source)
        if source == result:
            self.computed(Identity(), [operand], result, operand)
        else:
            self.computed(Reshape(result.shape), [operand], result, f"{operand}.reshape({result.shape})")

    def control(self) -> None:
        """An operator that runs functions, of a family that is there."""
        family = self.random.choice(self.builder.families)
        inputs = [self.operand(type_) for type_ in family.parameters]
        given = ", ".join(inputs)
        first, second = self.random.choice(family.names), self.random.choice(family.names)
        forms = (
            ["call", "cond_if", "loop", "loop"]
            if family.parameters == family.results
            else ["call", "cond_if"]
        )
        form = self.random.choice(forms)
        lines: list[str] = []
        if form == "call":
            names = self.node(Call(first), inputs, *family.results)
            text = f"{first}({given})"
        elif form == "cond_if":
            condition = self.operand(FLAG)
            names = self.node(CondIf(first, second), [condition, *inputs], *family.results)
            text = f"{first}({given}) if {condition}[0] else {second}({given})"
        else:
            count = self.random.choice((0, 1, 2, 2, 3, 4))
            names = self.node(Loop(first, count), inputs, *family.results)
            state = self.builder.fresh("s")
            lines = [f"{state} = ({''.join(f'{name}, ' for name in inputs)})"]
            lines += [f"for _ in range({count}): {state} = {first}(*{state})"]
            text = state
        results = "".join(f"{name}, " for name in names)
        self.lines += [*lines, f"({results}) = {text}"]


def random_graph(
    random: Random, *, most_families: int = 4, most_nodes: int = 5, has_images: bool = False
) -> RandomGraph:
    """A module with one to four inputs, the first a truth value, and one to three outputs."""
    builder = _Builder(random, has_images)
    if has_images:
        builder.python.append(random_images.PRELUDE)
    for _ in range(random.randint(1, most_families)):
        builder.family(most_nodes)
    inputs, outputs = (FLAG, *builder.types(0, 3)), builder.types(1, 3)
    body = Body(builder, inputs)
    body.finish("main", outputs, random.randint(1, most_nodes))
    main = builder.functions[-1]
    module = Module(
        "random",
        tuple(builder.functions),
        tuple(builder.constants),
        inputs=tuple(Port(f"in_{number}", value.type) for number, value in enumerate(main.parameters)),
        outputs=tuple(Port(f"out_{number}", type_) for number, type_ in enumerate(outputs)),
    )
    return RandomGraph(module, "\n".join(builder.python))


def graphs(*, most_families: int = 4, most_nodes: int = 5) -> st.SearchStrategy[RandomGraph]:
    """Random modules that shrink; for `hypothesis.given`."""
    return st.builds(
        lambda random: random_graph(random, most_families=most_families, most_nodes=most_nodes),
        st.randoms(use_true_random=False),
    )
