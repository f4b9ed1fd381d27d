"""Reductions of bytes in registers whose lanes are no wider than results need: twice or four times as many at once.

A sum of at most 256 bytes fits 16 bits, a maximum 8. What is finished goes through a small array to what ends it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load, region
from bytewright.ir.expr import BinaryOperator, binary
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.vector_unit import VectorUnit, lane_wise, memory_parameter, register_parameter
from bytewright.lower.kernels.context import Template, counted
from bytewright.lower.kernels.side_by_side import Combine, Finished, Reducer, Results, Start
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import element

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
# Of bytes of which 16 bits hold the sum.
MOST_SUMMED = 256
_NAMES = {BinaryOperator.ADD: "add", BinaryOperator.MAX: "max", BinaryOperator.MIN: "min"}


@dataclass(frozen=True, slots=True)
class NarrowLanes:
    """Registers with results of a type, one a lane, and instructions that combine them with bytes.

    Attributes:
        lanes: Results in a register.
        dtype: Of a result: I16 for sums, I8 for extrema.
        c_type: The C type of a register.
        fill: `result = value` in each lane.
        combines: `result = results operator elements`, of bytes of memory, by operator.
        store: `elements = results`, to memory of `dtype`.
    """

    lanes: int
    dtype: ir.DType
    c_type: str
    fill: ir.Instruction
    combines: Mapping[BinaryOperator, ir.Instruction]
    store: ir.Instruction

    @property
    def instructions(self) -> tuple[ir.Instruction, ...]:
        """All of them."""
        return (self.fill, *self.combines.values(), self.store)


def narrow_lanes(
    prefix: str,
    lanes: int,
    dtype: ir.DType,
    c_type: str,
    feature: ir.Feature,
    *,
    fill: str,
    combines: Mapping[BinaryOperator, str],
    store: str,
    channel: Callable[[ir.Expr], ir.Expr] = lambda lane: lane,
) -> NarrowLanes:
    """The records of a set's instructions, given by their C texts with the names of `NarrowLanes`.

    Args:
        prefix: What their names begin with.
        lanes: Results in a register.
        dtype: Of a result.
        c_type: The C type of a register.
        feature: What they need.
        fill: With `value`, an I32.
        combines: With `results` and `elements`.
        store: Likewise.
        channel: Of which of its channels a lane has the result.
    """
    of = _Registers(prefix, lanes, dtype, c_type, feature, channel)
    found = {operator: of.combined(operator, text) for operator, text in combines.items()}
    return NarrowLanes(lanes, dtype, c_type, of.filled(fill), found, of.stored(store))


@dataclass(frozen=True, slots=True)
class _Registers:
    """What makes the records; the fields are those arguments of `narrow_lanes`."""

    prefix: str
    lanes: int
    dtype: ir.DType
    c_type: str
    feature: ir.Feature
    channel: Callable[[ir.Expr], ir.Expr]

    def _register(self, name: str, access: ir.Access = ir.Access.READ) -> ir.BufferParameter:
        return register_parameter(name, self.lanes, self.dtype, self.c_type, access)

    def filled(self, text: str) -> ir.Instruction:
        parameters = self._register("result", ir.Access.WRITE), ir.ScalarParameter(ir.Var("value", I32))
        name = f"{self.prefix}_fill_{self.dtype.value}"
        return lane_wise(
            name, self.lanes, parameters, lambda given: ir.cast(given[0], self.dtype), text, self.feature
        )

    def combined(self, operator: BinaryOperator, text: str) -> ir.Instruction:
        def value(given: tuple[ir.Expr, ...]) -> ir.Expr:
            return ir.cast(binary(operator, *(ir.cast(each, I32) for each in given)), self.dtype)

        result, results = self._register("result", ir.Access.WRITE), self._register("results")
        kept = f"{self.lanes} results of {self.dtype.value}"
        return lane_wise(
            f"{self.prefix}_{_NAMES[operator]}_bytes",
            self.lanes,
            (result, results, memory_parameter("elements", self.lanes, I8)),
            value,
            text,
            self.feature,
            f"{kept}, each combined with its byte; the bytes lie one after another.",
            place=self.channel,
        )

    def stored(self, text: str) -> ir.Instruction:
        elements = memory_parameter("elements", self.lanes, self.dtype, ir.Access.WRITE)
        return lane_wise(
            f"{self.prefix}_store_{self.dtype.value}x{self.lanes}",
            self.lanes,
            (elements, self._register("results")),
            lambda given: given[0],
            text,
            self.feature,
            place=self.channel,
        )


@dataclass(frozen=True, slots=True)
class NarrowReducer:
    """Results of channels that fill registers; at most so many registers at a time.

    Attributes:
        narrow: The registers.
        most_registers: Of a full block.
        unit: Vectors for what ends a result; None if that is done one by one.
        rest: For blocks of channels that do not fill a register.
    """

    narrow: NarrowLanes
    most_registers: int
    unit: VectorUnit | None
    rest: Reducer

    @property
    def most_channels(self) -> int:
        """Channels of a full block."""
        return self.most_registers * self.narrow.lanes

    @property
    def divides(self) -> bool:
        """Vectors of integers are not divided."""
        return self.unit is None

    def begin(self, template: Template, num_channels: int, dtype: ir.DType, start: Start) -> Results:
        """Writes the registers of a block."""
        if num_channels % self.narrow.lanes:
            return self.rest.begin(template, num_channels, dtype, start)
        return _Narrow(template, self, num_channels, start)


class _Narrow:
    def __init__(self, template: Template, how: NarrowReducer, num_channels: int, start: Start) -> None:
        self.template, self.how, self.num_channels = template, how, num_channels
        narrow, body = how.narrow, template.body
        names = [f"results{i}" for i in range(num_channels // narrow.lanes)]
        self.registers = [body.register(name, narrow.lanes, narrow.dtype, narrow.c_type) for name in names]
        for i, register in enumerate(self.registers):
            body.execute(narrow.fill, register, start(ir.const(i * narrow.lanes)))

    def update(self, combine: Combine) -> None:
        for i, register in enumerate(self.registers):
            old = element(load(register, 0)).expr
            match combine(old, ir.const(i * self.how.narrow.lanes)):
                case ir.Binary(
                    operator=operator,
                    left=left,
                    right=ir.Cast(operand=ir.Load(buffer=buffer, indices=indices, dtype=ir.DType.I8)),
                ) if left == old and operator in self.how.narrow.combines:
                    source = region(buffer, *indices)
                    instruction = self.how.narrow.combines[operator]
                    self.template.body.execute(instruction, register, register, source)
                case _:
                    raise InternalError(
                        f"a step of '{self.template.anchor.operation.name}' is no vector of bytes"
                    )

    def store(self, outer: Coordinates, first: ir.Expr, finished: Finished) -> None:
        narrow, body, unit = self.how.narrow, self.template.body, self.how.unit
        results = self.template.kernel.scratch("results", (self.num_channels,), narrow.dtype)
        for i, register in enumerate(self.registers):
            body.execute(narrow.store, region(results, i * narrow.lanes), register)
        if unit is None:
            with body.for_("lane", 0, self.num_channels) as lane:
                value = finished(element(load(results, lane)).expr, first + lane)
                self.template.epilogue.store((*outer, first + lane), value)
            return
        with counted(body, "part", self.num_channels // unit.lanes) as part:
            at = part * unit.lanes
            store_lanes(self.template, unit, outer, first + at, results, finished, at)
