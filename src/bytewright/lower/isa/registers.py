"""Results of neighbouring channels in registers of a vector unit."""

from dataclasses import dataclass

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load, region
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.vectorise import vectorise
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.side_by_side import ArrayReducer, Combine, Finished, Start, WaitingResults
from bytewright.lower.point import Coordinates


@dataclass(frozen=True, slots=True)
class RegisterReducer:
    """In registers of a unit, where channels fill them; at most so many vectors at a time."""

    unit: VectorUnit
    most_vectors: int

    @property
    def most_channels(self) -> int:
        """Channels of a full block."""
        return self.most_vectors * self.unit.lanes

    @property
    def divides(self) -> bool:
        """There is no division of vectors of integers."""
        return False

    def begin(self, template: Template, num_channels: int, dtype: ir.DType, start: Start) -> WaitingResults:
        """Writes the registers; what does not fill one is an array."""
        if num_channels % self.unit.lanes:
            return ArrayReducer().begin(template, num_channels, dtype, start)
        return _Registers(template, self.unit, num_channels // self.unit.lanes, dtype, start)


class _Registers:
    def __init__(
        self, template: Template, unit: VectorUnit, num_vectors: int, dtype: ir.DType, start: Start
    ) -> None:
        self.template, self.unit = template, unit
        names = [f"results{i}" for i in range(num_vectors)] if num_vectors > 1 else ["results"]
        self.registers = [unit.register(template.body, name, dtype) for name in names]
        self._each(lambda _, channel: start(channel))

    def _each(self, combine: Combine) -> None:
        body, unit = self.template.body, self.unit
        lane = ir.Var(body.unique_name("lane"), ir.DType.I32)
        for i, register in enumerate(self.registers):
            with body.captured() as statements:
                body.store(register, lane, combine(load(register, lane), i * unit.lanes + lane))
            if not vectorise(body, unit, lane, statements):
                raise InternalError(f"a step of '{self.template.anchor.operation.name}' is no vector")

    def update(self, combine: Combine) -> None:
        self._each(combine)

    def store(self, outer: Coordinates, first: ir.Expr, finished: Finished) -> None:
        for i, register in enumerate(self.registers):
            channel = first + i * self.unit.lanes
            store_lanes(self.template, self.unit, outer, channel, register, finished)

    def keep(self, memory: ir.Buffer, *outer: ir.Expr) -> None:
        for i, register in enumerate(self.registers):
            at = region(memory, *outer, i * self.unit.lanes)
            self.template.body.execute(self.unit.stores[register.dtype], at, register)
