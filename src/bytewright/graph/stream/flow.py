"""Which values of a graph have rows along time, and which of its operators forbid to compute them frame by frame.

A value has a row for every `period` frames. As the window of frames slides on by a number of them that every period
divides, each value slides on by rows, and only its last ones are new: that holds of the input, and of what an operator
makes of rows that slide by a window of them. A value that pads its beginning slides as well, if what came before is
read in place of the padding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.diagnostics import Collector, CompileError, compile_error
from bytewright.graph.stream.reading import Axes, Operands, Reading, UnreadableError, Whole, reading_of

_PADDED_ONCE = "reads padding before the first row, which later windows do not have"
HELP = "leave out --stream: each run then takes the whole window"


@dataclass(frozen=True, slots=True)
class Flow:
    """The rows of a value.

    Attributes:
        axis: The axis that counts them.
        num_rows: Of the whole window.
        period: Frames from one to the next.
        fill: What stands in place of rows before the first; None if nothing is read there.
    """

    axis: int
    num_rows: int
    period: int
    fill: int | float | None = None

    def late_frames(self, num_frames: int) -> int:
        """How many frames of the window come before the first row is complete; below 0 where padding stands before."""
        return num_frames - self.period * self.num_rows


@dataclass(frozen=True, slots=True)
class Flows:
    """What is known of a function.

    Attributes:
        of_value: The values with rows, by name.
        readings: How operators read rows, by the names of their first results.
        wholes: Names of values that depend on rows and have none.
        num_frames: Of the whole window.
        padded: The operator that pads the beginning; None if none does.
    """

    num_frames: int
    of_value: Mapping[str, Flow]
    readings: Mapping[str, Reading]
    wholes: frozenset[str]
    padded: ir.Node | None


def flows_of(
    function: ir.Function,
    constants: Mapping[str, ir.TensorType],
    given: Mapping[str, int],
    unread: Mapping[str, int] | None = None,
    num_left_out: int = 0,
) -> Flows:
    """Follows rows through a function.

    Args:
        function: What runs whole.
        constants: Their types, by name.
        given: The axis of time of those parameters that have one, by name; all of one extent.
        unread: How many rows at the end of values nothing reads; None if that is still to be found out, and padding may
            come late.
        num_left_out: Frames at the end that are none of the window, since nothing reads them.

    Raises:
        CompileError: BW120, for operators that read rows otherwise than by a sliding window; all of them at once.
    """
    return _Following(function, constants, given, unread, num_left_out).run()


def unread_rows(function: ir.Function, flows: Flows) -> dict[str, int]:
    """How many rows at the end of each value nothing reads, whatever reads what is made of them."""
    unread = dict.fromkeys(function.results, 0)
    for node in reversed(function.nodes):
        result = node.outputs[0].name if node.outputs else ""
        reading = flows.readings.get(result)
        for name in node.inputs:
            if name not in flows.of_value:
                continue
            count = flows.of_value[name].num_rows
            found = 0
            if reading is not None:
                num_rows = node.outputs[0].type.fixed_shape[reading.axis]
                num_read = num_rows - unread.get(result, 0) if result in flows.of_value else num_rows
                found = count - 1 - _last_read(reading, num_read)
            unread[name] = min(unread.get(name, count), found)
    return unread


def _operands(node: ir.Node, types: Mapping[str, ir.TensorType], axes: Axes) -> Operands:
    return Operands(tuple(types[name] for name in node.inputs), axes, node.outputs[0].type)


class _Following:
    """One run of it."""

    def __init__(
        self,
        function: ir.Function,
        constants: Mapping[str, ir.TensorType],
        given: Mapping[str, int],
        unread: Mapping[str, int] | None,
        num_left_out: int,
    ) -> None:
        self.function, self.constants = function, constants
        self.types = {**constants, **ir.function_types(function)}
        self.is_decided, self.unread = unread is not None, unread or {}
        extents = {name: self.types[name].fixed_shape[axis] for name, axis in given.items()}
        self.flows = {name: Flow(axis, extents[name] - num_left_out, 1) for name, axis in given.items()}
        self.num_frames = next(flow.num_rows for flow in self.flows.values())
        self.readings: dict[str, Reading] = {}
        self.wholes: set[str] = set()
        self.padded: ir.Node | None = None
        self.failed: set[str] = set()

    def run(self) -> Flows:
        collector = Collector()
        for node in self.function.nodes:
            if self.failed.isdisjoint(node.inputs):
                with collector.catch():
                    self._node(node)
                    continue
            self.failed.update(value.name for value in node.outputs)
        collector.stop_if_any()
        return Flows(self.num_frames, self.flows, self.readings, frozenset(self.wholes), self.padded)

    def _node(self, node: ir.Node) -> None:
        moving = [name for name in node.inputs if name in self.flows]
        if not moving:
            if not self.wholes.isdisjoint(node.inputs):
                self.wholes.update(value.name for value in node.outputs)
            return
        try:
            flow = self._result(node, moving)
        except UnreadableError as error:
            raise _forbidden(node, str(error)) from None
        is_whole = flow is None or flow.num_rows == 1
        self.wholes.update(value.name for value in node.outputs[0 if is_whole else 1 :])
        if flow is not None and not is_whole:
            self.flows[node.outputs[0].name] = flow

    def _result(self, node: ir.Node, moving: list[str]) -> Flow | None:
        """The rows of a result; None if it has none."""
        axes = tuple(self.flows[name].axis if name in self.flows else None for name in node.inputs)
        found = reading_of(node.operation, _operands(node, self.types, axes))
        own, goes_on = node.outputs[0], isinstance(found, Reading) and found.goes_on
        first = self.flows[moving[0]]
        for name in moving[1:]:
            other = self.flows[name]
            if (other.num_rows, other.period) != (first.num_rows, first.period):
                raise UnreadableError(
                    f"is given {first.num_rows} rows of {_frames(first.period)} each, and {other.num_rows} of "
                    f"{_frames(other.period)}"
                )
        if isinstance(found, Whole):
            if any(self.flows[name].late_frames(self.num_frames) < 0 for name in moving):
                raise UnreadableError(_PADDED_ONCE)
            return None
        if not goes_on:
            self._require_constants(node)
        self.readings[own.name] = found
        return self._read(node, found, first)

    def _require_constants(self, node: ir.Node) -> None:
        """What rows meet is the same in every run, or rows that were made before would not be those of this window."""
        for name in node.inputs:
            if name not in self.flows and name not in self.constants:
                what = (
                    "depends on the whole window" if name in self.wholes else "may be another with each run"
                )
                raise UnreadableError(f"combines rows with '{name}', which {what}")

    def _read(self, node: ir.Node, reading: Reading, flow: Flow) -> Flow:
        own = node.outputs[0]
        num_rows = own.type.fixed_shape[reading.axis]
        behind = _last_read(reading, num_rows) - (flow.num_rows - 1)
        if behind > 0 and -(-behind // reading.stride) <= self.unread.get(own.name, 0):
            num_rows -= -(-behind // reading.stride)  # rows of frames that were left out
            behind = 0
        if behind > 0:
            raise UnreadableError(
                f"pads behind the last row: it reads {_rows(behind)} that no frame has come for"
            )
        result = Flow(reading.axis, num_rows, flow.period * reading.stride)
        fill = _fill(reading, flow)
        late = flow.late_frames(self.num_frames)
        if reading.goes_on:
            self.padded = self.padded or node
            if late > 0 and self.is_decided:
                raise UnreadableError(
                    f"begins with the first row of what layers before it have shortened by {_frames(late)}: in a "
                    "stream it would begin before that"
                )
        if fill is None:
            return result
        if reading.fill is not None:
            self.padded = self.padded or node
            if late > 0 and self.is_decided:
                raise UnreadableError(
                    f"pads the beginning of what layers before it have shortened by {_frames(late)}: its padding would "
                    "come late"
                )
        if num_rows == 1:
            raise UnreadableError(_PADDED_ONCE)
        if result.late_frames(self.num_frames) >= 0:
            return result
        if (
            not reading.keeps_fill and self.num_frames % result.period == 0
        ):  # else runs are refused that are out of step
            raise UnreadableError("makes rows of padding alone, before the first frame")
        return replace(result, fill=fill)


def _last_read(reading: Reading, num_rows: int) -> int:
    """The last row that is read for so many rows of the result."""
    return reading.stride * (num_rows - 1) + reading.first + reading.reach - 1


def _fill(reading: Reading, flow: Flow) -> int | float | None:
    """What stands before the first row of what an operator reads."""
    if None not in (reading.fill, flow.fill) and reading.fill != flow.fill:
        raise UnreadableError(f"pads with {reading.fill} what is padded with {flow.fill}")
    return flow.fill if reading.fill is None else reading.fill


def _frames(count: int) -> str:
    return "1 frame" if count == 1 else f"{count} frames"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _forbidden(node: ir.Node, reason: str) -> CompileError:
    operator = node.where.operator or node.operation.name
    return compile_error(
        "BW120",
        f"{operator} {reason}, so the model cannot run frame by frame",
        help=HELP,
        where=str(node.where),
    )
