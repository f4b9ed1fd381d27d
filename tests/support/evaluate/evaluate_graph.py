"""Carries out graph functions: each operator by its numpy reference, in order, and functions that others run.

Functions that run functions are followed with a stack of their own, so that neither the length of a function nor how
deep functions run each other is limited by Python.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bytewright import ir


def evaluate_graph(module: ir.Module, inputs: Sequence[ir.Array]) -> tuple[ir.Array, ...]:
    """The results of the module's graph, of operands in the order of its parameters.

    Arrays may be shared: a result that is an operand or a constant is that very array.
    """
    functions = {function.name: function for function in module.functions}
    constants = {constant.name: constant.data.array for constant in module.constants}
    running = [_Running(module.graph, constants, tuple(inputs))]
    while True:
        current = running[-1]
        turns = current.proceed()
        if turns is not None and turns.num_turns > 0:
            running.append(_Running(functions[turns.callee], constants, turns.arguments, turns.num_turns))
            continue
        results = current.results() if turns is None else turns.arguments
        if turns is None:
            running.pop()
        if not running:
            return results
        running[-1].resume(results)


@dataclass(slots=True)
class _Running:
    """A function that is being carried out.

    Attributes:
        num_turns: How often it still runs, this time included.
        position: The operator that comes next, or whose results are awaited.
    """

    function: ir.Function
    constants: Mapping[str, ir.Array]
    arguments: tuple[ir.Array, ...]
    num_turns: int = 1
    position: int = 0
    values: dict[str, ir.Array] = field(default_factory=dict[str, ir.Array])

    def __post_init__(self) -> None:
        self._begin(self.arguments)

    def _begin(self, arguments: tuple[ir.Array, ...]) -> None:
        parameters = (value.name for value in self.function.parameters)
        self.values = dict(zip(parameters, arguments, strict=True))
        self.position = 0

    def proceed(self) -> ir.Turns | None:
        """Runs on, up to an operator that runs a function, or to the end of the last turn."""
        while True:
            while self.position < len(self.function.nodes):
                node = self.function.nodes[self.position]
                operands = tuple(self._value(name) for name in node.inputs)
                if isinstance(node.operation, ir.ControlOperation):
                    return node.operation.turns(operands)
                self.resume(node.operation.evaluate(operands))
            self.num_turns -= 1
            if self.num_turns == 0:
                return None
            self._begin(self.results())

    def resume(self, results: tuple[ir.Array, ...]) -> None:
        """Goes on behind the present operator, whose results these are."""
        outputs = self.function.nodes[self.position].outputs
        self.values.update((value.name, array) for value, array in zip(outputs, results, strict=True))
        self.position += 1

    def results(self) -> tuple[ir.Array, ...]:
        return tuple(self._value(name) for name in self.function.results)

    def _value(self, name: str) -> ir.Array:
        return self.values[name] if name in self.values else self.constants[name]
