"""Reductions over time and other axes at once become one over those, and one over time of what is left of each row.

What is kept of a window of rows is then a number for each channel of a row, and not one for each of its elements. Sums
of int8 are exact, and fit 16 bits; the greatest of what is greatest is the greatest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from bytewright import ir
from bytewright.graph.stream.flow import Flow, Flows
from bytewright.graph.stream.new_nodes import NewNodes
from bytewright.ops.cast import TflCast
from bytewright.ops.comparisons import Greater
from bytewright.ops.elementwise import Clamp, IntDiv, Select, WrappingAdd
from bytewright.ops.pooling import MaxPool2d, ReduceMax, ReduceMin, ReduceSum, TflAveragePool2d, TflMean

# A sum of two bytes holds that of so many; of fewer than the least it would be no smaller than they are.
_LEAST_SUMMED, _MOST_SUMMED = 3, ir.DType.I16.bounds[1] // -ir.DType.I8.bounds[0]


def split_reductions(module: ir.Module, flows: Flows) -> ir.Module:
    """Returns the module with such reductions in two parts, bit for bit the same."""
    function = module.graph
    splitting = _Splitting(module)
    for node in function.nodes:
        flow = flows.of_value.get(node.inputs[0]) if node.inputs else None
        if flow is None or node.outputs[0].name in flows.of_value:
            splitting.new.nodes.append(node)
        else:
            splitting.node(node, flow)
    if len(splitting.new.nodes) == len(function.nodes):
        return module
    changed = replace(function, nodes=tuple(splitting.new.nodes))
    return replace(
        module,
        functions=(*module.functions[:-1], changed),
        constants=(*module.constants, *splitting.constants.values()),
    )


@dataclass(slots=True)
class _Splitting:
    """One run of the pass."""

    module: ir.Module
    new: NewNodes = field(init=False)
    constants: dict[int, ir.Constant] = field(default_factory=dict[int, ir.Constant])

    def __post_init__(self) -> None:
        module = self.module
        self.new = NewNodes(ir.value_types(module.graph, module.constants), set(module.graph_types))

    def node(self, node: ir.Node, flow: Flow) -> None:
        """A reduction, or any other operator."""
        operand = self.new.types[node.inputs[0]]
        match node.operation:
            case ReduceMax(axes=axes) | ReduceMin(axes=axes) if _others(axes, flow, operand) > 1:
                inner = replace(node.operation, axes=_without(axes, flow.axis), keep_dims=True)
                self._chain(node, [inner, node.operation])
            case MaxPool2d() if _is_of_all(node.operation, operand) and _others((1, 2), flow, operand) > 1:
                self._chain(node, [_along(node.operation, 3 - flow.axis), _along(node.operation, flow.axis)])
            case TflMean(axes=axes) if _is_summed(axes, flow, operand):
                self._chain(node, _mean(node.operation, flow, operand))
            case TflAveragePool2d() if _is_of_all(node.operation, operand) and _is_summed(
                (1, 2), flow, operand
            ):
                self._average(node, flow)
            case _:
                self.new.nodes.append(node)

    def _chain(self, node: ir.Node, operations: Sequence[ir.Operation]) -> None:
        """Operators one after the other; the last has the node's result."""
        name = node.inputs[0]
        for operation in operations[:-1]:
            name = self._added(node, operation, (name,))
        self.new.nodes.append(replace(node, operation=operations[-1], inputs=(name,)))

    def _added(self, node: ir.Node, operation: ir.Operation, inputs: tuple[str, ...]) -> str:
        name = self.new.fresh(f"{node.outputs[0].name}/part")
        return self.new.add(operation, inputs, name, node.where).name

    def _average(self, node: ir.Node, flow: Flow) -> None:
        """The mean of raw values, rounded half away from zero: a half is added to the sum, or taken off, and cut.

        One whose halves are rounded up is that of values of which none is negative, less what they were raised by.
        """
        rows = self._added(node, ReduceSum((3 - flow.axis,), True), (node.inputs[0],))
        rows = self._added(node, TflCast(ir.DType.I16), (rows,))
        total = self._added(node, ReduceSum((flow.axis,), True), (rows,))
        count = prod(self.new.types[node.inputs[0]].fixed_shape[1:3])
        half, all_of = count // 2, self._constant(count)
        if isinstance(node.operation, TflAveragePool2d) and node.operation.rounds_up:
            least = ir.DType.I8.bounds[0]
            shifted = self._added(node, WrappingAdd(), (total, self._constant(half - least * count)))
            raised = self._added(node, IntDiv(), (shifted, all_of))
            mean = self._added(node, WrappingAdd(), (raised, self._constant(least)))
        else:
            is_above = self._added(node, Greater(), (total, self._constant(0)))
            addend = self._added(node, Select(), (is_above, self._constant(half), self._constant(-half)))
            shifted = self._added(node, WrappingAdd(), (total, addend))
            mean = self._added(node, IntDiv(), (shifted, all_of))
        self.new.nodes.append(replace(node, operation=TflCast(ir.DType.I8), inputs=(mean,)))

    def _constant(self, number: int) -> str:
        if number not in self.constants:
            name = self.new.fresh(f"number_{number}".replace("-", "minus_"))
            data = ir.TensorData.from_array(np.full((1, 1, 1, 1), number, np.int32), ir.DType.I32)
            self.constants[number] = ir.Constant(name, data)
            self.new.types[name] = data.type
        return self.constants[number].name


def _without(axes: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(each for each in axes if each != axis)


def _others(axes: tuple[int, ...], flow: Flow, operand: ir.TensorType) -> int:
    """How many elements of a row are reduced to one; 1 where the rows are not reduced."""
    extents = operand.fixed_shape
    return prod(extents[axis] for axis in _without(axes, flow.axis)) if flow.axis in axes else 1


def _is_summed(axes: tuple[int, ...], flow: Flow, operand: ir.TensorType) -> bool:
    """Whether sums of rows are kept in place of their elements."""
    is_worth_it = _LEAST_SUMMED <= _others(axes, flow, operand) <= _MOST_SUMMED
    return is_worth_it and operand.dtype is ir.DType.I8


def _is_of_all(pool: MaxPool2d | TflAveragePool2d, operand: ir.TensorType) -> bool:
    """Whether a pool has one window, which is the image."""
    return pool.kernel == operand.fixed_shape[1:3] and not any(pool.padding)


def _along(pool: MaxPool2d, axis: int) -> MaxPool2d:
    """The pool along one axis of the two alone."""
    height, width = pool.kernel
    return MaxPool2d((height, 1) if axis == 1 else (1, width), (1, 1), (0, 0, 0, 0))


def _mean(mean: TflMean, flow: Flow, operand: ir.TensorType) -> list[ir.Operation]:
    """The mean of sums."""
    low, high = ir.DType.I8.bounds
    return [
        ReduceSum(_without(mean.axes, flow.axis), True),
        TflCast(ir.DType.I16),
        replace(mean, sums_of=_others(mean.axes, flow, operand)),
        Clamp(low, high),
        TflCast(ir.DType.I8),
    ]
