"""Pools and means whose results are lanes of vectors: a template for every instruction set that has vectors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.vectorise import vectorise
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.pooling import accumulator_type, lower_mean, lower_pool
from bytewright.lower.kernels.side_by_side import ArrayReducer, Results
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import Scalar
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean

_VECTORS = 4  # of a full block, so that a turn of the window's loops does more than count


def reductions(name: str, unit: VectorUnit) -> Mapping[type[ir.Operation], tuple[IsaTemplate, ...]]:
    """The templates of an instruction set of some name."""
    reducer = RegisterReducer(unit)
    pool = IsaTemplate(f"{name}.pool2d", partial(lower_pool, reducer=reducer), partial(_pool_declines, unit))
    mean = IsaTemplate(f"{name}.mean", partial(lower_mean, reducer=reducer), partial(_mean_declines, unit))
    return {MaxPool2d: (pool,), TflAveragePool2d: (pool,), TflMean: (mean,)}


def _pool_declines(
    unit: VectorUnit, template: Template, operation: MaxPool2d | TflAveragePool2d
) -> str | None:
    operator = ir.BinaryOperator.MAX if isinstance(operation, MaxPool2d) else ir.BinaryOperator.ADD
    return _declines(unit, template, operator)


def _mean_declines(unit: VectorUnit, template: Template, operation: TflMean) -> str | None:
    if len(template.type(0).shape) - 1 in operation.axes:
        return "it is over the last axis"
    return _declines(unit, template, ir.BinaryOperator.ADD)


def _declines(unit: VectorUnit, template: Template, operator: ir.BinaryOperator) -> str | None:
    """Why the results of a reduction are no vectors."""
    dtype = template.type(0).dtype
    kept = accumulator_type(dtype)
    known = dtype in unit.loads and kept in unit.broadcasts and (operator, kept) in unit.binaries
    if not known:
        return f"there is no vector for {operator.value} of {dtype.value}"
    channels = template.type(0).shape[-1]
    if not isinstance(channels, int) or channels < unit.lanes:
        return f"it has {channels} channels, fewer than the {unit.lanes} of a vector"
    return None


@dataclass(frozen=True, slots=True)
class RegisterReducer:
    """In registers of a unit, where channels fill them."""

    unit: VectorUnit

    @property
    def most_channels(self) -> int:
        """Channels of a full block."""
        return _VECTORS * self.unit.lanes

    @property
    def divides(self) -> bool:
        """There is no division of vectors of integers."""
        return False

    def begin(self, template: Template, num_channels: int, start: ir.Const) -> Results:
        """Writes the registers; what does not fill one is an array."""
        if num_channels % self.unit.lanes:
            return ArrayReducer().begin(template, num_channels, start)
        return _Registers(template, self.unit, num_channels // self.unit.lanes, start)


class _Registers:
    def __init__(self, template: Template, unit: VectorUnit, num_vectors: int, start: ir.Const) -> None:
        self.template, self.unit = template, unit
        names = [f"results{i}" for i in range(num_vectors)] if num_vectors > 1 else ["results"]
        self.registers = [unit.register(template.body, name, start.dtype) for name in names]
        for register in self.registers:
            template.body.execute(unit.broadcasts[start.dtype], register, start)

    def update(self, combine: Callable[[ir.Expr, ir.Expr], ir.Expr]) -> None:
        body, unit = self.template.body, self.unit
        lane = ir.Var(body.unique_name("lane"), ir.DType.I32)
        for i, register in enumerate(self.registers):
            with body.captured() as statements:
                body.store(register, lane, combine(load(register, lane), i * unit.lanes + lane))
            if not vectorise(body, unit, lane, statements):
                raise InternalError(f"a step of '{self.template.anchor.operation.name}' is no vector")

    def store(self, outer: Coordinates, first: ir.Expr, finished: Callable[[ir.Expr], Scalar]) -> None:
        for i, register in enumerate(self.registers):
            channel = first + i * self.unit.lanes
            store_lanes(self.template, self.unit, outer, channel, register, lambda total, _: finished(total))
