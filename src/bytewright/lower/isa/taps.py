"""Products of a tap's channels with their weights, in registers of 16 bits: more of them than lanes of 32 bits.

A register of elements widened to 16 bits is multiplied part by part, each part added to sums of 32 bits of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import BinaryOperator
from bytewright.lower.isa.registers import RegisterReducer
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.vector_unit import VectorUnit, lane_wise, memory_parameter, register_parameter
from bytewright.lower.isa.width import Width
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.side_by_side import Combine, Finished, Results, Start
from bytewright.lower.point import Coordinates

I16, I32 = ir.DType.I16, ir.DType.I32


@dataclass(frozen=True, slots=True)
class TapProducts:
    """A register of elements of 16 bits, and instructions on it.

    Attributes:
        lanes: Elements of the register.
        c_type: Its C type.
        loads: Elements of memory of a type, widened.
        adds: For each part of the register, `sums = sums + elements * weights`.
    """

    lanes: int
    c_type: str
    loads: Mapping[ir.DType, ir.Instruction]
    adds: tuple[ir.Instruction, ...]

    @property
    def instructions(self) -> tuple[ir.Instruction, ...]:
        """All of them."""
        return (*self.loads.values(), *self.adds)


def tap_products(
    width: Width, c_type: str, *, loads: Mapping[ir.DType, str], adds: tuple[str, ...]
) -> TapProducts:
    """The records of a set's instructions, given by their C texts with the names of `TapProducts`."""
    lanes = width.lanes * len(adds)

    def register(name: str, access: ir.Access = ir.Access.READ) -> ir.BufferParameter:
        return register_parameter(name, lanes, I16, c_type, access)

    def loading(dtype: ir.DType, text: str) -> ir.Instruction:
        return lane_wise(
            f"{width.prefix}_load_tap_{dtype.value}",
            lanes,
            (register("values", ir.Access.WRITE), memory_parameter("elements", lanes, dtype)),
            lambda given: ir.cast(given[0], I16),
            text,
            width.feature,
            f"{lanes} elements of {dtype.value} that lie one after another, in 16 bits each.",
        )

    def adding(number: int, text: str) -> ir.Instruction:
        name = f"{width.prefix}_add_tap_{number}"
        sums = width.vector("sums", I32, ir.Access.READ_WRITE)
        parameters = (sums, register("elements"), register("weights"))
        body = BodyBuilder(p.name for p in parameters)
        with body.for_(f"{name}.lane", 0, width.lanes) as lane:
            left, right = (load(p.buffer, lane + number * width.lanes) for p in parameters[1:])
            product = ir.cast(left, I32) * ir.cast(right, I32)
            body.store(sums.buffer, lane, load(sums.buffer, lane) + product)
        comment = f"Adds products of elements {number * width.lanes} and on, one to each sum."
        return ir.Instruction(name, parameters, body.finish(), text, width.feature, comment)

    return TapProducts(
        lanes,
        c_type,
        {dtype: loading(dtype, text) for dtype, text in loads.items()},
        tuple(adding(number, text) for number, text in enumerate(adds)),
    )


@dataclass(frozen=True, slots=True)
class TapReducer:
    """Sums of channels that fill registers of 16 bits; the rest in lanes of 32 bits.

    Attributes:
        products: The registers.
        unit: Vectors of sums, and for what ends them.
    """

    products: TapProducts
    unit: VectorUnit

    @property
    def most_channels(self) -> int:
        """Channels of a full block."""
        return self.products.lanes

    @property
    def divides(self) -> bool:
        """There is no division of vectors of integers."""
        return False

    def begin(self, template: Template, num_channels: int, dtype: ir.DType, start: Start) -> Results:
        """Writes the registers of a block."""
        if num_channels < self.products.lanes:
            return RegisterReducer(self.unit, 1).begin(template, num_channels, dtype, start)
        return _Taps(template, self, start)


class _Taps:
    def __init__(self, template: Template, how: TapReducer, start: Start) -> None:
        self.template, self.how = template, how
        body, unit = template.body, how.unit
        self.sums = [unit.register(body, f"sums{i}") for i in range(len(how.products.adds))]
        for i, register in enumerate(self.sums):
            match start(ir.const(i * unit.lanes)):
                case ir.Load(buffer=buffer, indices=indices):
                    body.execute(unit.loads[I32], register, region(buffer, *indices))
                case _:
                    raise InternalError("sums do not start from a bias in memory")

    def update(self, combine: Combine) -> None:
        body, products = self.template.body, self.how.products
        old = load(self.sums[0], 0)
        match combine(old, ir.const(0)):
            case ir.Binary(
                operator=BinaryOperator.ADD,
                left=left,
                right=ir.Binary(
                    operator=BinaryOperator.MUL,
                    left=ir.Cast(operand=ir.Load() as element),
                    right=ir.Cast(operand=ir.Load() as weight),
                ),
            ) if left == old:
                found: list[ir.Buffer] = []
                for name, each in (("elements", element), ("weights", weight)):
                    found.append(body.register(name, products.lanes, I16, products.c_type))
                    body.execute(products.loads[each.dtype], found[-1], region(each.buffer, *each.indices))
                for add, sums in zip(products.adds, self.sums, strict=True):
                    body.execute(add, sums, *found)
            case _:
                raise InternalError(f"a step of '{self.template.anchor.operation.name}' is no product")

    def store(self, outer: Coordinates, first: ir.Expr, finished: Finished) -> None:
        for i, register in enumerate(self.sums):
            channel = first + i * self.how.unit.lanes
            store_lanes(self.template, self.how.unit, outer, channel, register, finished)
