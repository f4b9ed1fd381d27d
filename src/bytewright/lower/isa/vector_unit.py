"""The vectors of an instruction set as element-wise operators need them: an instruction for each operation on lanes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.expr import BinaryOperator

I32 = ir.DType.I32
GATHERED = 256
"""Elements of the table of which instructions that gather are tried alone."""


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """Instructions on vectors of I32 or F32, one value a lane.

    Attributes:
        lanes: Values in a vector.
        types: The C type of a vector, by the type of its values.
        loads: Elements of memory of a type, widened: `values = memory[0..lanes]`.
        stores: Values as elements of memory of a type: `memory[0..lanes] = values`. They fit, or wrap as a cast does.
        broadcasts: A scalar in every lane, by its type.
        binaries: `result = left operator right`, of two vectors, by operator and type.
        with_scalar: The same, of a vector and a scalar on its right.
        wrapping: Of two vectors of I32, modulo 2^32, by operator.
        functions: Of scalars that expressions call, by name: the result is a vector, and so are operands of types that
            vectors have.
        conversions: Of a vector to another type, by both.
        saturating_stores: As `stores`, but values that do not fit become the nearest that does.
        gathers: Elements of a table of a type, each lane's where another vector says, widened; of tables of so many.
        selects: One of two vectors, lane by lane, as two others compare, by operator and type.
        num_elements: How many first lanes are loaded and stored; 0 if all are.
    """

    lanes: int
    types: Mapping[ir.DType, str]
    loads: Mapping[ir.DType, ir.Instruction]
    stores: Mapping[ir.DType, ir.Instruction]
    broadcasts: Mapping[ir.DType, ir.Instruction]
    binaries: Mapping[tuple[BinaryOperator, ir.DType], ir.Instruction]
    with_scalar: Mapping[tuple[BinaryOperator, ir.DType], ir.Instruction] = field(
        default_factory=dict[tuple[BinaryOperator, ir.DType], ir.Instruction]
    )
    wrapping: Mapping[BinaryOperator, ir.Instruction] = field(
        default_factory=dict[BinaryOperator, ir.Instruction]
    )
    functions: Mapping[str, ir.Instruction] = field(default_factory=dict[str, ir.Instruction])
    saturating_stores: Mapping[ir.DType, ir.Instruction] = field(
        default_factory=dict[ir.DType, ir.Instruction]
    )
    conversions: Mapping[tuple[ir.DType, ir.DType], ir.Instruction] = field(
        default_factory=dict[tuple[ir.DType, ir.DType], ir.Instruction]
    )
    gathers: Mapping[ir.DType, Callable[[int], ir.Instruction]] = field(
        default_factory=dict[ir.DType, "Callable[[int], ir.Instruction]"]
    )
    selects: Mapping[tuple[BinaryOperator, ir.DType], ir.Instruction] = field(
        default_factory=dict[tuple[BinaryOperator, ir.DType], ir.Instruction]
    )
    num_elements: int = 0

    @property
    def count(self) -> int:
        """How many lanes are loaded and stored."""
        return self.num_elements or self.lanes

    @property
    def instructions(self) -> tuple[ir.Instruction, ...]:
        """All of them, each once; those that gather, of one size."""
        tables = (
            *(self.loads, self.stores, self.saturating_stores, self.broadcasts),
            *(self.binaries, self.with_scalar, self.wrapping, self.functions, self.conversions),
            *(self.selects, {dtype: gather(GATHERED) for dtype, gather in self.gathers.items()}),
        )
        return tuple(dict.fromkeys(instruction for table in tables for instruction in table.values()))

    def register(self, body: BodyBuilder, name: str, dtype: ir.DType = I32) -> ir.Buffer:
        """A new register for a vector of a type."""
        return body.register(name, self.lanes, dtype, self.types[dtype])


def register_parameter(
    name: str, num_lanes: int, dtype: ir.DType, c_type: str, access: ir.Access = ir.Access.READ
) -> ir.BufferParameter:
    """A register of an instruction: `num_lanes` elements, in C of a type."""
    buffer = ir.Buffer(name, (num_lanes,), dtype, dtype.size_bytes, register=c_type)
    return ir.BufferParameter(buffer, access, scope=ir.LOCAL)


def memory_parameter(
    name: str, num_elements: int, dtype: ir.DType, access: ir.Access = ir.Access.READ
) -> ir.BufferParameter:
    """Memory that an instruction touches: so many elements, aligned as each of them."""
    return ir.BufferParameter(
        ir.Buffer(name, (num_elements,), dtype, dtype.size_bytes), access, scope=ir.GLOBAL
    )


def variable_parameter(name: str, dtype: ir.DType, access: ir.Access = ir.Access.READ) -> ir.BufferParameter:
    """A variable of an instruction, such as a sum."""
    return ir.BufferParameter(ir.Buffer(name, (), dtype, dtype.size_bytes), access, scope=ir.LOCAL)


def lane_wise(
    name: str,
    unit_lanes: int,
    parameters: tuple[ir.BufferParameter | ir.ScalarParameter, ...],
    value: Callable[[tuple[ir.Expr, ...]], ir.Expr],
    text: str,
    feature: ir.Feature,
    comment: str = "",
    place: Callable[[ir.Expr], ir.Expr] = lambda lane: lane,
) -> ir.Instruction:
    """An instruction whose first parameter becomes, lane by lane, a value of the others.

    Args:
        name: Of the instruction.
        unit_lanes: How many lanes there are.
        parameters: The result first, a register or memory; then operands.
        value: Given the operands of one lane, in their types; gives what is stored.
        text: The C text.
        feature: What the core needs.
        comment: For a reader of the C.
        place: Which element of memory a lane is given, or becomes.
    """
    body = BodyBuilder(p.name for p in parameters)
    result, *given = parameters
    assert isinstance(result, ir.BufferParameter)
    with body.for_(f"{name}.lane", 0, unit_lanes) as lane:

        def at(parameter: ir.BufferParameter) -> ir.Expr:
            return lane if parameter.buffer.register else place(lane)

        operands: list[ir.Expr] = [
            load(p.buffer, at(p)) if isinstance(p, ir.BufferParameter) else p.variable for p in given
        ]
        body.store(result.buffer, at(result), value(tuple(operands)))
    return ir.Instruction(name, parameters, body.finish(), text, feature, comment)
