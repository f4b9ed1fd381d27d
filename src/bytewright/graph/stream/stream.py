"""Turns a network over a window of frames into one that takes the frames that are new, and keeps what its windows need.

Each operator is computed on the rows that are new. Where it reads rows of before as well, its operand has a state: the
last rows, which a run shifts the new ones into. Since rows slide (`flow.py`), these are the rows of the whole network,
and what is read from them is what that reads. An operator that reads all rows for a result without any is given the
rows of a whole window.

What came before the first frame is taken for the value that padding has there; where nothing is padded, for the zero
point, and the results mean nothing until a whole window has come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

import numpy as np

from bytewright import ir
from bytewright.base.c_names import unique_c_name
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import Collector, compile_error
from bytewright.graph.stream.flow import HELP, Flow, Flows, flows_of, unread_rows
from bytewright.graph.stream.new_nodes import NewNodes
from bytewright.graph.stream.split import split_reductions
from bytewright.graph.work import work_of
from bytewright.ir.where import Where
from bytewright.ops.data import ShiftIn, Slice
from bytewright.options import StreamAxis

_Fill = int | float | None
_Key = tuple[str, _Fill]


def stream(module: ir.Module, axes: tuple[StreamAxis, ...]) -> ir.Module:
    """Returns the module that takes the next frames of each input that is named, and one stream of them.

    Args:
        module: A graph in which each function is run at one place, once.
        axes: Where the inputs have time.

    Raises:
        CompileError: BW204, for an input or an axis that does not exist; BW120, for operators that forbid it.
    """
    given = _given(module, axes)
    module = split_reductions(module, _flows(module, given))
    flows = _flows(module, given)
    num_new = _num_new(flows)
    _require_steps(module, flows, num_new)
    return _required_less(_Streaming(module, flows, num_new).run())


def _flows(module: ir.Module, given: dict[str, int]) -> Flows:
    """The rows of values; where the beginning is padded, without frames beyond whole runs that nothing reads."""
    constants = module.constant_types
    flows = flows_of(module.graph, constants, given)
    unread = unread_rows(module.graph, flows)
    spare = flows.num_frames % _num_new(flows) if flows.padded is not None else 0
    spare = spare if spare <= min(unread.get(name, 0) for name in given) else 0
    return flows_of(module.graph, constants, given, unread, spare)


def _num_new(flows: Flows) -> int:
    """The frames of a run: the fewest with which each value has whole rows."""
    return lcm(*(flow.period for flow in flows.of_value.values()))


def _required_less(streamed: ir.Module) -> ir.Module:
    """The module, if a run saves any of its convolutions."""
    facts = streamed.stream
    if facts is not None and 0 < facts.macs_before <= facts.macs:
        message = (
            f"no layer is less work on {facts.num_new} of {facts.num_frames} frames: each run would take all of the "
            f"{facts.macs} multiply-accumulates of a whole window"
        )
        raise compile_error("BW120", message, help=HELP, where=streamed.name)
    return streamed


def _given(module: ir.Module, axes: tuple[StreamAxis, ...]) -> dict[str, int]:
    """The axis of time of each parameter that has one."""
    if module.entries:
        raise compile_error(
            "BW204", "--stream is for graphs: a program has its loops over time", help="leave out --stream"
        )
    collector = Collector()
    names = [port.name for port in module.inputs]
    found: dict[str, int] = {}
    for axis in axes:
        with collector.catch():
            name = axis.input or names[0]
            if axis.input is None and len(names) > 1:
                message = f"--stream {axis}: the model has {len(names)} inputs"
                raise compile_error("BW204", message, help=f"--stream {names[0]}:{axis.axis}")
            if name not in names:
                listed = ", ".join(f"'{each}'" for each in names)
                message = f"--stream {axis}: the model has no input '{name}'; it has {listed}"
                raise compile_error("BW204", message, help=f"--stream {names[0]}:{axis.axis}")
            parameter = module.graph.parameters[names.index(name)]
            shape = parameter.type.shape
            if axis.axis >= len(shape):
                extents = ir.format_shape(shape)
                message = f"--stream {axis}: input '{name}' has shape [{extents}], and no axis {axis.axis}"
                raise compile_error("BW204", message, help="give the axis that counts frames, from 0 on")
            if parameter.name in found:
                message = f"--stream {axis}: input '{name}' is named twice"
                raise compile_error("BW204", message, help=f"leave out --stream {axis}")
            found[parameter.name] = axis.axis
    collector.stop_if_any()
    types = ir.function_types(module.graph)
    extents = {name: types[name].fixed_shape[axis] for name, axis in found.items()}
    if len({*extents.values()}) > 1:
        texts = " and ".join(f"'{name}' {extent}" for name, extent in extents.items())
        raise compile_error(
            "BW120", f"inputs over time have unlike many frames: {texts}", help=HELP, where=module.name
        )
    return found


def _require_steps(module: ir.Module, flows: Flows, num_new: int) -> None:
    """A run takes less than the window; where the beginning is padded, windows begin where runs do."""
    if num_new >= flows.num_frames:
        message = f"a run would take {num_new} frames, and the whole window has {flows.num_frames}"
        raise compile_error("BW120", message, help=HELP, where=module.name)
    if flows.padded is not None and flows.num_frames % num_new:
        raise compile_error(
            "BW120",
            f"the window has {flows.num_frames} frames, which are no multiple of the {num_new} that a run takes, and "
            f"{flows.padded.where.operator or flows.padded.operation.name} pads its beginning",
            help=HELP,
            where=str(flows.padded.where),
        )


@dataclass(frozen=True, slots=True)
class _Use:
    """Rows of a value that an operator reads: the last `count`, and what stands in place of those before the first."""

    name: str
    count: int
    fill: _Fill


@dataclass(slots=True)
class _Streaming:
    """One run of the pass.

    Attributes:
        behind: Of a value that is another one with something around it: that one, and the operators which put it there.
        counts: How many rows of a value are kept with those that are new.
    """

    module: ir.Module
    flows: Flows
    num_new: int
    new: NewNodes = field(default_factory=NewNodes)
    values: dict[str, ir.Value] = field(default_factory=dict[str, ir.Value])
    behind: dict[str, tuple[str, tuple[ir.Operation, ...]]] = field(
        default_factory=dict[str, tuple[str, tuple[ir.Operation, ...]]]
    )
    counts: dict[_Key, int] = field(default_factory=dict[_Key, int])
    kept: dict[_Key, str] = field(default_factory=dict[_Key, str])
    states: list[tuple[ir.Value, ir.Port, str]] = field(default_factory=list[tuple[ir.Value, ir.Port, str]])

    def run(self) -> ir.Module:
        module, function = self.module, self.module.graph
        self.new.types = module.constant_types
        self.new.names = set(module.graph_types)
        parameters = tuple(self._parameter(value) for value in function.parameters)
        self._find_borders(function)
        self._count(function)
        for node in function.nodes:
            self._node(node)
        results = tuple(self._result(name) for name in function.results)
        num_outputs = len(module.outputs)
        streamed = ir.Function(
            function.name,
            (*parameters, *(value for value, _, _ in self.states)),
            tuple(self.new.nodes),
            (*results, *(result for _, _, result in self.states)),
        )
        changed = replace(
            module,
            functions=(*module.functions[:-1], streamed),
            inputs=tuple(
                replace(p, type=self.new.types[v.name])
                for p, v in zip(module.inputs, parameters, strict=False)
            ),
            outputs=tuple(
                replace(port, type=self.new.types[name])
                for port, name in zip(module.outputs, results[:num_outputs], strict=True)
            ),
            state=(*module.state, *(port for _, port, _ in self.states)),
        )
        return replace(changed, stream=self._story(changed, function.results[:num_outputs]))

    def _story(self, changed: ir.Module, results: tuple[str, ...]) -> ir.Streamed:
        """What became of the network."""
        num_frames, flows = self.flows.num_frames, self.flows.of_value
        types, name = ir.function_types(self.module.graph), next(iter(flows))  # the first is an input
        needed = [self._needed_frames(flows[name]) for name in results if name in flows]
        needed += [num_frames for name in results if name in self.flows.wholes]
        parameters = [value.name for value in self.module.graph.parameters]

        def axes(ports: tuple[ir.Port, ...], names: Sequence[str]) -> FrozenMapping[str, int]:
            both = zip(ports, names, strict=False)
            return FrozenMapping({port.name: flows[name].axis for port, name in both if name in flows})

        return ir.Streamed(
            num_frames=num_frames,
            num_new=self.num_new,
            num_left_out=types[name].fixed_shape[flows[name].axis] - num_frames,
            num_runs_before=max((0, *(-(-frames // self.num_new) - 1 for frames in needed))),
            is_padded=self.flows.padded is not None,
            input_axes=axes(changed.inputs, parameters),
            output_axes=axes(changed.outputs, results),
            macs_before=work_of(self.module).macs,
            macs=work_of(changed).macs,
        )

    def _needed_frames(self, flow: Flow) -> int:
        """How many frames must have come before a run ends whose results are all of them."""
        return flow.late_frames(self.flows.num_frames) + flow.period * self._num_new(flow)

    def _num_new(self, flow: Flow) -> int:
        """How many rows of a value are new with each run."""
        return min(self.num_new // flow.period, flow.num_rows)

    def _type(self, name: str, type_: ir.TensorType, count: int) -> ir.TensorType:
        axis = self.flows.of_value[name].axis
        return replace(type_, shape=(*type_.shape[:axis], count, *type_.shape[axis + 1 :]))

    def _parameter(self, value: ir.Value) -> ir.Value:
        flow = self.flows.of_value.get(value.name)
        if flow is not None:
            value = replace(value, type=self._type(value.name, value.type, self._num_new(flow)))
        return self._defined(value)

    def _defined(self, value: ir.Value) -> ir.Value:
        self.new.types[value.name], self.values[value.name] = value.type, value
        return value

    def _added(self, operation: ir.Operation, inputs: tuple[str, ...], name: str, where: Where) -> str:
        """A new operator; returns the name of its result."""
        return self._computed(operation, inputs, self.new.fresh(name), where, self.values[inputs[-1]])

    def _computed(
        self, operation: ir.Operation, inputs: tuple[str, ...], name: str, where: Where, like: ir.Value
    ) -> str:
        """The same for a name that is free, quantised as another value is."""
        self.values[name] = self.new.add(operation, inputs, name, where, like.quantization)
        return name

    # What operators read

    def _uses(self, node: ir.Node) -> Iterator[_Use | None]:
        """For each operand the rows that are read; None for an operand without rows, which is read as it is."""
        result = node.outputs[0]
        reading = self.flows.readings.get(result.name)
        for name in node.inputs:
            flow = self.flows.of_value.get(name)
            if flow is None:
                yield None
            elif reading is None:
                yield _Use(name, flow.num_rows, None)
            else:
                num_rows = (
                    self.flows.of_value[result.name].num_rows if result.name in self.flows.of_value else 1
                )
                first = reading.stride * (num_rows - self._num_results(node)) + reading.first
                yield _Use(name, flow.num_rows - first, flow.fill if reading.fill is None else reading.fill)

    def _num_results(self, node: ir.Node) -> int:
        """How many new rows an operator makes; 1 where its result has no more for the whole window."""
        flow = self.flows.of_value.get(node.outputs[0].name)
        return 1 if flow is None else self._num_new(flow)

    def _find_borders(self, function: ir.Function) -> None:
        """Finds the values that are others with something around them."""
        for node in function.nodes:
            reading = self.flows.readings.get(node.outputs[0].name) if node.outputs else None
            if reading is not None and reading.is_border:
                name, operations = self._without_border(node.inputs[0])
                operation = reading.operation(self._num_results(node))
                operations = operations if operation is None else (*operations, operation)
                self.behind[node.outputs[0].name] = (name, operations)

    def _without_border(self, name: str) -> tuple[str, tuple[ir.Operation, ...]]:
        return self.behind.get(name, (name, ()))

    def _count(self, function: ir.Function) -> None:
        """Finds how many rows of each value are kept, before operators are given them."""
        for node in function.nodes:
            if not node.outputs or node.outputs[0].name in self.behind:
                continue
            for use in filter(None, self._uses(node)):
                if use.count > self._num_new(self.flows.of_value[use.name]):
                    key = (self._without_border(use.name)[0], use.fill)
                    self.counts[key] = max(self.counts.get(key, 0), use.count)
        for name, fill in [key for key in self.counts if key[1] is None]:
            others = [key for key in self.counts if key[0] == name and key[1] is not None]
            if others:  # nothing is read of what was before the first row: it may as well be padding
                self.counts[others[0]] = max(self.counts[others[0]], self.counts.pop((name, fill)))

    def _result(self, name: str) -> str:
        """What a result of the function is called: the new rows of it, where it has rows."""
        flow = self.flows.of_value.get(name)
        where = Where(self.module.name, tensor=name)
        return name if flow is None else self._rows(_Use(name, self._num_new(flow), None), where)

    def _rows(self, use: _Use, where: Where) -> str:
        """The rows, as a value."""
        source, operations = self._without_border(use.name)
        name = self._last(source, use, where)
        for operation in operations:
            name = self._added(operation, (name,), use.name, where)
        return name

    def _last(self, name: str, use: _Use, where: Where) -> str:
        """The last rows of a value of which they are kept, where they are not all new."""
        flow = self.flows.of_value[use.name]
        axis, count = flow.axis, self._num_new(flow)
        if use.count > count:
            keys = [key for key in self.counts if key[0] == name]
            key = (name, use.fill) if (name, use.fill) in keys else keys[0]
            if key not in self.kept:
                self.kept[key] = self._state(key, axis, where)
            name, count = self.kept[key], self.counts[key]
        if use.count == count:
            return name
        shape = self.new.types[name].fixed_shape
        start = tuple(count - use.count if each == axis else 0 for each in range(len(shape)))
        size = tuple(use.count if each == axis else extent for each, extent in enumerate(shape))
        return self._added(Slice(start, size, (1,) * len(shape)), (name,), f"{name}/last", where)

    def _state(self, key: _Key, axis: int, where: Where) -> str:
        """The last rows of a value, the new ones among them; kept for the next run."""
        name, fill = key
        new = self.values[name]
        shape = (*new.type.shape[:axis], self.counts[key], *new.type.shape[axis + 1 :])
        type_ = ir.TensorType(shape, new.type.dtype)
        quantization = new.quantization
        if quantization is None and name in self.module.sources:
            quantization = self.module.sources[name].quantization
        if fill is None:
            fill = 0 if quantization is None else quantization.zero_point
        initial = ir.TensorData.from_array(np.full(type_.fixed_shape, fill), type_.dtype) if fill else None
        kept = self._defined(ir.Value(unique_c_name(f"{name}_kept", self.new.names), type_, quantization))
        port = ir.Port(kept.name, type_, quantization, initial=initial)
        result = self._added(ShiftIn(axis), (kept.name, name), f"{name}/rows", where)
        self.states.append((kept, port, result))
        return result

    # Operators

    def _node(self, node: ir.Node) -> None:
        """The operator on new rows, or on those of a whole window."""
        if node.outputs and node.outputs[0].name in self.behind:
            return  # it is made where it is read
        uses = tuple(self._uses(node))
        inputs = tuple(
            name if use is None else self._rows(use, node.where)
            for name, use in zip(node.inputs, uses, strict=True)
        )
        reading = self.flows.readings.get(node.outputs[0].name)
        if reading is None:
            self.new.nodes.append(
                replace(node, inputs=inputs, outputs=tuple(map(self._defined, node.outputs)))
            )
            return
        operation, value = reading.operation(self._num_results(node)), node.outputs[0]
        assert operation is not None  # or it were a border
        if reading.goes_on:
            rows = self._type(value.name, value.type, self._num_results(node))
            outputs = (replace(value, type=rows), *node.outputs[1:])
            self.new.nodes.append(replace(node, inputs=inputs, outputs=tuple(map(self._defined, outputs))))
            return
        self._computed(operation, inputs, value.name, node.where, value)
