"""What memory the tensors of a .tflite file need at least, in four ways, from the file and nothing of Bytewright.

- *plain*: each tensor whole, from the operator that makes it to the last that reads it, and none over another.
- *overlap*: an operator may write over an operand that dies, as far as it has read it: pixel by pixel, upwards or
  downwards, within a pixel all writes before all reads; element-wise ones in place.
- *rows*: besides, operators in a row may be carried out row by row, their inner tensors in rings of so many rows as are
  needed at once, no row twice; where such a segment begins and ends is chosen best, of at most twenty operators.
- *sums*: besides, a mean adds rows up as they come, into 32 bits for each channel, instead of wanting all of them.

Every operator of the file stands for itself: a kernel that computes several, as a convolution with the addition after
it, has no tensor between them, which can take a plan by rows a little below its bound.

An input lives from the start and an output to the end, if they are in the workspace at all. Scratch is not counted.
These are sums of what lives at once: that it can be packed so is for a planner to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import tflite

MOST_OPERATORS = 20
_KINDS = tflite.BuiltinOperator
_WINDOWS: dict[int, Any] = {
    _KINDS.CONV_2D: tflite.Conv2DOptions,
    _KINDS.DEPTHWISE_CONV_2D: tflite.DepthwiseConv2DOptions,
    _KINDS.AVERAGE_POOL_2D: tflite.Pool2DOptions,
    _KINDS.MAX_POOL_2D: tflite.Pool2DOptions,
}
_ELEMENTS = {_KINDS.ADD, _KINDS.MUL, _KINDS.SUB, _KINDS.RELU, _KINDS.RELU6, _KINDS.QUANTIZE}
_VIEWS = {_KINDS.RESHAPE, _KINDS.SQUEEZE, _KINDS.EXPAND_DIMS}


@dataclass(frozen=True, slots=True)
class Axis:
    """A window along rows or columns."""

    size: int
    stride: int
    dilation: int
    before: int

    def first(self, output: int) -> int:
        return max(output * self.stride - self.before, 0)

    def last(self, output: int, extent: int) -> int:
        return min(output * self.stride - self.before + (self.size - 1) * self.dilation, extent - 1)


@dataclass(frozen=True, slots=True)
class Step:
    """An operator that computes.

    Attributes:
        window: Along rows and columns; None for one that reads everything before it writes.
        is_sum: A mean over all rows, which could add up each as it comes.
    """

    sources: tuple[int, ...]
    result: int
    window: tuple[Axis, Axis] | None = None
    is_elementwise: bool = False
    is_sum: bool = False

    @property
    def goes_by_rows(self) -> bool:
        return self.window is not None or self.is_elementwise or self.is_sum


@dataclass(frozen=True)
class Network:
    """A file: tensors by number, views replaced by what they show."""

    shapes: dict[int, tuple[int, ...]]
    element_bytes: dict[int, int]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def size(self, tensor: int) -> int:
        return prod(self.shapes[tensor]) * self.element_bytes[tensor]

    def row_bytes(self, tensor: int) -> int:
        return self.size(tensor) // self.rows(tensor)

    def rows(self, tensor: int) -> int:
        shape = self.shapes[tensor]
        return shape[1] if len(shape) == 4 else 1

    def lives(self, *, with_ports: bool) -> dict[int, tuple[int, int]]:
        """The first and the last step of each tensor that counts."""
        found = {step.result: (n, n) for n, step in enumerate(self.steps)}
        found |= dict.fromkeys(self.inputs, (0, 0))
        for number, step in enumerate(self.steps):
            found |= {source: (found[source][0], number) for source in step.sources}
        if with_ports:
            return found | {output: (found[output][0], len(self.steps) - 1) for output in self.outputs}
        return {tensor: life for tensor, life in found.items() if tensor not in self.inputs + self.outputs}


def read_network(content: bytes) -> Network:
    """What a file says, with constants left out."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    tensors = [graph.Tensors(number) for number in range(graph.TensorsLength())]
    shapes = {n: tuple(int(e) for e in t.ShapeAsNumpy()) for n, t in enumerate(tensors) if t.ShapeLength()}
    widths = {
        tflite.TensorType.INT8: 1,
        tflite.TensorType.UINT8: 1,
        tflite.TensorType.FLOAT32: 4,
        tflite.TensorType.INT32: 4,
    }
    made, root = {int(n) for n in graph.InputsAsNumpy()}, dict[int, int]()
    steps: list[Step] = []
    for number in range(graph.OperatorsLength()):
        operator = graph.Operators(number)
        code = model.OperatorCodes(operator.OpcodeIndex())
        kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        (result,) = (int(n) for n in operator.OutputsAsNumpy())
        sources = [int(n) for n in operator.InputsAsNumpy() if int(n) in made]
        made.add(result)
        if kind in _VIEWS:
            root[result] = root.get(sources[0], sources[0])
            continue
        steps.append(_step(operator, kind, tuple(root.get(n, n) for n in sources), result, shapes))
    outputs = tuple(root.get(int(n), int(n)) for n in graph.OutputsAsNumpy())
    element_bytes = {n: widths[tensors[n].Type()] for n in shapes}
    return Network(shapes, element_bytes, tuple(steps), tuple(int(n) for n in graph.InputsAsNumpy()), outputs)


def _step(
    operator: Any, kind: int, sources: tuple[int, ...], result: int, shapes: dict[int, tuple[int, ...]]
) -> Step:
    if kind in _WINDOWS:
        options = _WINDOWS[kind]()
        options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
        if kind in (_KINDS.CONV_2D, _KINDS.DEPTHWISE_CONV_2D):
            size = shapes[int(operator.Inputs(1))][1:3]
            dilation = (options.DilationHFactor(), options.DilationWFactor())
        else:
            size, dilation = (options.FilterHeight(), options.FilterWidth()), (1, 1)
        stride = (options.StrideH(), options.StrideW())
        is_same = options.Padding() == tflite.Padding.SAME
        window = [
            _axis(shapes[sources[0]][1 + i], shapes[result][1 + i], size[i], stride[i], dilation[i], is_same)
            for i in range(2)
        ]
        covers = shapes[result][1] == 1 and size[0] == shapes[sources[0]][1]
        is_sum = covers and kind == _KINDS.AVERAGE_POOL_2D
        return Step(sources, result, (window[0], window[1]), is_sum=is_sum)
    is_elementwise = kind in _ELEMENTS and all(shapes[n] == shapes[result] for n in sources)
    return Step(sources, result, is_elementwise=is_elementwise, is_sum=kind == _KINDS.MEAN)


def _axis(extent: int, outputs: int, size: int, stride: int, dilation: int, is_same: bool) -> Axis:
    missing = max((outputs - 1) * stride + (size - 1) * dilation + 1 - extent, 0) if is_same else 0
    return Axis(size, stride, dilation, missing // 2)


def plain(network: Network, *, with_ports: bool) -> int:
    """The largest sum of tensors that live in one step."""
    lives = network.lives(with_ports=with_ports)
    return max(sum(_alive(network, lives, number, number).values()) for number in range(len(network.steps)))


def overlap(network: Network, *, with_ports: bool) -> int:
    """The same where results lie over operands that die."""
    lives = network.lives(with_ports=with_ports)
    return max(_overlapped(network, lives, number) for number in range(len(network.steps)))


def rows(network: Network, *, with_ports: bool, sums: bool = False) -> int:
    """The same with segments that go by rows: the least that any choice of segments has as its largest.

    Args:
        network: What is computed.
        with_ports: Whether inputs and outputs are in the workspace.
        sums: Whether means add up rows as they come.
    """
    lives = network.lives(with_ports=with_ports)
    count = len(network.steps)
    best = [0, *[_overlapped(network, lives, 0)] * count]
    for end in range(1, count + 1):
        choices = [max(best[end - 1], _overlapped(network, lives, end - 1))]
        for begin in range(max(0, end - MOST_OPERATORS), end - 1):
            if all(step.goes_by_rows for step in network.steps[begin:end]):
                choices.append(max(best[begin], _segment(network, lives, begin, end, sums)))
        best[end] = min(choices)
    return best[count]


def _alive(network: Network, lives: dict[int, tuple[int, int]], first: int, last: int) -> dict[int, int]:
    """Bytes of the tensors that live in some of these steps."""
    return {t: network.size(t) for t, (born, died) in lives.items() if born <= last and died >= first}


def _overlapped(network: Network, lives: dict[int, tuple[int, int]], number: int) -> int:
    """Bytes of one step whose result lies over one operand, the best, as far as that has been read."""
    step, alive = network.steps[number], _alive(network, lives, number, number)
    total = sum(alive.values())
    savings = [0]
    for source in dict.fromkeys(step.sources):
        if source in alive and step.result in alive and lives[source][1] == number:
            both = alive[source] + alive[step.result]
            savings.append(both - _extent(network, step, source))
    return total - max(savings)


def _extent(network: Network, step: Step, source: int) -> int:
    """Bytes that operand and result take together."""
    size, result = network.size(source), network.size(step.result)
    if step.is_elementwise:
        return max(size, result)
    if step.window is None:
        return size + result
    (_, height, width, depth), (_, *pixels, channels) = network.shapes[source], network.shapes[step.result]
    depth, channels = depth * network.element_bytes[source], channels * network.element_bytes[step.result]
    over_rows, over_columns = step.window
    first = np.add.outer(
        np.array([over_rows.first(y) * width for y in range(pixels[0])]),
        np.array([over_columns.first(x) for x in range(pixels[1])]),
    ).ravel()
    last = np.add.outer(
        np.array([over_rows.last(y, height) * width for y in range(pixels[0])]),
        np.array([over_columns.last(x, width) for x in range(pixels[1])]),
    ).ravel()
    writes = np.arange(len(first)) * channels
    still_read = np.minimum.accumulate(first[::-1])[::-1] * depth
    below = max(int((writes + channels - still_read).max()), 0)
    still_read = np.maximum.accumulate(last + 1) * depth
    above = max(int((still_read - writes).max()), 0)
    return min(max(result, below + size), max(size, above + result), size + result)


def _segment(network: Network, lives: dict[int, tuple[int, int]], begin: int, end: int, sums: bool) -> int:
    """Bytes while steps run row by row: rings for what lives only here, the rest whole."""
    alive = _alive(network, lives, begin, end - 1)
    made = {step.result for step in network.steps[begin:end]}
    inner = {tensor for tensor in made if tensor in alive and lives[tensor][1] < end}
    if network.steps[end - 1].result in inner:
        return 1 << 62  # a segment that ends with what nobody reads
    steps = network.steps[begin:end]
    adding = {step.result for step in steps if sums and step.is_sum and step.sources[0] in inner}
    rings = _ring_rows(network, steps, inner, adding)
    whole = sum(size for tensor, size in alive.items() if tensor not in inner)
    whole += sum(4 * prod(network.shapes[tensor]) for tensor in adding)
    return whole + sum(count * network.row_bytes(tensor) for tensor, count in rings.items())


def _ring_rows(network: Network, steps: Sequence[Step], inner: set[int], adding: set[int]) -> dict[int, int]:
    """How many rows each ring needs, when each row is made as late as the last step's rows allow."""
    makers = {step.result: step for step in steps}
    made = dict.fromkeys(makers, 0)
    added = dict.fromkeys(makers, 0)  # rows of its operand, of one that is a sum
    most = dict.fromkeys(inner, 0)
    readers = {tensor: [step for step in steps if tensor in step.sources] for tensor in inner}

    def needed_from(tensor: int) -> int:
        return min(
            added[step.result]
            if step.result in adding
            else _first_row(step, made[step.result], network, tensor)
            for step in readers[tensor]
        )

    def make_up_to(tensor: int, last: int) -> None:
        step = makers[tensor]
        while made[tensor] <= last:
            for source in step.sources:
                if source not in makers:
                    continue
                if tensor in adding:  # a row is wanted no longer than it takes to add it
                    for row in range(network.rows(source)):
                        make_up_to(source, row)
                        added[tensor] = row + 1
                else:
                    make_up_to(source, _last_row(step, made[tensor], network, source))
            if tensor in inner:
                most[tensor] = max(most[tensor], made[tensor] + 1 - needed_from(tensor))
            made[tensor] += 1

    for step in reversed(steps):
        if step.result not in inner:
            make_up_to(step.result, network.rows(step.result) - 1)
    return most


def _first_row(step: Step, output: int, network: Network, source: int) -> int:
    """The first row of an operand that this row of the result, or a later one, reads."""
    if output >= network.rows(step.result):
        return network.rows(source)
    if step.window is not None:
        return step.window[0].first(output)
    return output if step.is_elementwise else 0


def _last_row(step: Step, output: int, network: Network, source: int) -> int:
    if step.window is not None:
        return step.window[0].last(output, network.rows(source))
    return output if step.is_elementwise else network.rows(source) - 1
