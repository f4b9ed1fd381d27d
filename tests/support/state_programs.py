"""Programs and random graphs with state, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.frontends.text.constants_file import constants_archive
from bytewright.graph.tie_states import tie_states
from bytewright.ir.module import Module
from bytewright.ir.text.modules import named_constants, print_module
from bytewright.options import StatePair
from support.random_graphs import RandomGraph, random_graph

Array = NDArray[Any]

# Adds what it is given to what it has, and counts its runs behind four bytes that begin otherwise.
ACCUMULATOR = """\
module acc

input %x : tensor<8xi32>
output %y : tensor<8xi32>
state %total : tensor<8xi32>
state %runs : tensor<4xi8> = data<4xi8> [1, 2, 3, 4]

kernel acc_add(
    x : buffer<8xi32> r activation,
    total : buffer<8xi32> rw activation,
    runs : buffer<4xi8> rw activation,
    y : buffer<8xi32> w activation
) on cpu {
  for i : i32 in 0 .. 8 {
    total[i] = total[i] + x[i]
    y[i] = total[i] + i32(runs[0]) * i32(runs[3])
  }
  runs[0] = i8(i32(runs[0]) + 1)
}

entry main(x : buffer<8xi32> r activation, y : buffer<8xi32> w activation) on cpu {
  allocate total : buffer<8xi32> {io="state"}
  allocate runs : buffer<4xi8> {io="state"}
  call_extern acc_add(&x, &total, &runs, &y)
}
"""


def accumulated(inputs: Sequence[Array]) -> list[Array]:
    """What the accumulator gives, by numpy."""
    totals = np.cumsum(np.array(inputs, np.int32), axis=0, dtype=np.int32)
    return [total + np.int32(4 * (1 + number)) for number, total in enumerate(totals)]


@dataclass(frozen=True, slots=True)
class StatefulGraph:
    """A random graph of which some inputs and outputs are tied.

    Attributes:
        module: With states.
        graph: Without.
        ties: Numbers of an input and an output that are one.
    """

    module: Module
    graph: RandomGraph
    ties: tuple[tuple[int, int], ...]

    def write(self, path: Path) -> Path:
        """The module as a text, with its constants beside it."""
        path.write_text(print_module(self.module))
        path.with_suffix(".npz").write_bytes(constants_archive(named_constants(self.module)))
        return path

    def steps(self, count: int) -> tuple[list[list[Array]], list[list[Array]]]:
        """Inputs of so many runs, one after the other, and what they give, by numpy."""
        ports = self.graph.module.inputs
        fed = {
            first: np.zeros(ports[first].type.fixed_shape, ports[first].type.dtype.numpy)
            for first, _ in self.ties
        }
        hidden = {second for _, second in self.ties}
        hidden = hidden if len(hidden) < len(self.graph.module.outputs) else set[int]()
        given: list[list[Array]] = []
        expected: list[list[Array]] = []
        for drawn in self.graph.inputs(count):
            whole = [fed.get(number, array) for number, array in enumerate(drawn)]
            results = self.graph.expected(whole)
            fed = {first: results[second] for first, second in self.ties}
            given.append([array for number, array in enumerate(drawn) if number not in dict(self.ties)])
            expected.append([array for number, array in enumerate(results) if number not in hidden])
        return given, expected


def stateful_graph(seed: int, **how: Any) -> StatefulGraph | None:
    """One with a state, made as by `random_graph`; None if the seed gives a graph without anything to tie."""
    random, graph = Random(seed), random_graph(Random(seed), **how)
    inputs, outputs = graph.module.inputs, graph.module.outputs
    ties: list[tuple[int, int]] = []
    for number, port in enumerate(inputs):
        alike = [other for other, result in enumerate(outputs) if result.type == port.type]
        if alike and random.randrange(3):
            ties.append((number, random.choice(alike)))
    if not ties:
        return None
    pairs = tuple(StatePair(inputs[first].name, outputs[second].name) for first, second in ties)
    return StatefulGraph(tie_states(graph.module, pairs), graph, tuple(ties))


def next_stateful_graph(seed: int, **how: Any) -> StatefulGraph:
    """The first one with a state, from a seed on by steps of a thousand."""
    return next(filter(None, (stateful_graph(each, **how) for each in count(seed, 1000))))
