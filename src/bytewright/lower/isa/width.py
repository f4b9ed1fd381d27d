"""Records of instructions whose lanes all do the same: the operations of a vector unit, from names of intrinsics."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.expr import BinaryOperator, binary, select
from bytewright.lower.isa.vector_unit import (
    GATHERED,
    VectorUnit,
    lane_wise,
    memory_parameter,
    register_parameter,
)

I32, F32 = ir.DType.I32, ir.DType.F32
WRITE = ir.Access.WRITE
_NAMES = {
    BinaryOperator.ADD: "add",
    BinaryOperator.SUB: "sub",
    BinaryOperator.MUL: "mul",
    BinaryOperator.MIN: "min",
    BinaryOperator.MAX: "max",
    BinaryOperator.SHR: "shr",
    BinaryOperator.AND: "and",
    BinaryOperator.GE: "ge",
}
# The C text that computes an operation, by operator and type.
Operations = Mapping[tuple[BinaryOperator, ir.DType], str]


@dataclass(frozen=True, slots=True)
class Width:
    """Vectors of one width.

    Attributes:
        prefix: What the names of its instructions begin with.
        lanes: Of 32 bits.
        types: The C type of a vector, by the type of its values.
        feature: What its instructions need.
    """

    prefix: str
    lanes: int
    types: Mapping[ir.DType, str]
    feature: ir.Feature

    @property
    def operands(self) -> dict[tuple[str, str], tuple[int, int]]:
        """For which operands its instructions are defined, as `InstructionSet` has them."""
        every = ir.DType.I32.bounds
        found = {
            ("double_round_wide", "value"): every,
            ("double_round_wide", "shift"): (0, 31),
            ("high_multiply_wide", "value"): every,
            ("scale_high", "shift"): (1, 30),
            ("float_round", "value"): (-(2**16), 2**16),
            ("float_round_signed", "value"): (-(2**16), 2**16),
            ("float_sum", "left"): ir.DType.I8.bounds,
            ("float_sum", "right"): ir.DType.I8.bounds,
            ("logistic_15", "gate"): ir.DType.I16.bounds,
            ("tanh_15", "gate"): ir.DType.I16.bounds,
            ("tanh_15", "integer_bits"): (0, 6),
            ("shr_i32_n", "number"): (0, 31),
            **{(f"gather_{t}_{GATHERED}", "places"): (0, GATHERED - 1) for t in ("i8", "i16", "i32")},
            **{
                (name, side): (-(2**15), 2**15)
                for name in ("mul_i32", "mul_i32_n")
                for side in ("left", "right", "number")
            },
        }
        return {(f"{self.prefix}_{name}", operand): bounds for (name, operand), bounds in found.items()}

    def vector(
        self, name: str, dtype: ir.DType = I32, access: ir.Access = ir.Access.READ
    ) -> ir.BufferParameter:
        """A vector as a parameter."""
        return register_parameter(name, self.lanes, dtype, self.types[dtype], access)

    def load(self, dtype: ir.DType, text: str, num: int) -> ir.Instruction:
        """So many elements of memory, each in a lane of 32 bits; the other lanes are 1."""
        wide = dtype if dtype in self.types else I32
        values, elements = self.vector("values", wide, WRITE), memory_parameter("elements", num, dtype)
        name = f"{self.prefix}_load_{dtype.value}{_some(num, self.lanes)}"
        body = BodyBuilder(("values", "elements"))
        with body.for_(f"{name}.lane", 0, num) as lane:
            body.store(values.buffer, lane, ir.cast(load(elements.buffer, lane), wide))
        if num < self.lanes:
            with body.for_(f"{name}.rest", num, self.lanes) as lane:
                body.store(values.buffer, lane, ir.const(1, wide))
        comment = f"{num} elements of {dtype.value} that lie one after another, each in a lane of 32 bits."
        return ir.Instruction(name, (values, elements), body.finish(), text, self.feature, comment)

    def store(self, dtype: ir.DType, text: str, num: int) -> ir.Instruction:
        """The first so many lanes of 32 bits as elements of memory."""
        wide = dtype if dtype in self.types else I32
        parameters = (memory_parameter("elements", num, dtype, WRITE), self.vector("values", wide))
        name = f"{self.prefix}_store_{dtype.value}{_some(num, self.lanes)}"
        comment = f"{num} lanes of 32 bits as elements of {dtype.value}, one after another."
        return lane_wise(
            name, num, parameters, lambda given: ir.cast(given[0], dtype), text, self.feature, comment
        )

    def saturating_store(self, dtype: ir.DType, text: str, num: int) -> ir.Instruction:
        """The first so many lanes as elements of memory, limited to the range of their type."""
        parameters = (memory_parameter("elements", num, dtype, WRITE), self.vector("values"))
        name = f"{self.prefix}_saturate_{dtype.value}{_some(num, self.lanes)}"
        comment = f"{num} lanes of 32 bits, limited to the range of {dtype.value}, as its elements, one after another."
        return lane_wise(
            name,
            num,
            parameters,
            lambda given: ir.cast(ir.clamp(given[0], *dtype.bounds), dtype),
            text,
            self.feature,
            comment,
        )

    def broadcast(self, dtype: ir.DType, text: str) -> ir.Instruction:
        """A scalar in every lane."""
        parameters = (self.vector("result", dtype, WRITE), ir.ScalarParameter(ir.Var("value", dtype)))
        name = f"{self.prefix}_broadcast_{dtype.value}"
        return lane_wise(name, self.lanes, parameters, lambda given: given[0], text, self.feature)

    def binary(self, operator: BinaryOperator, dtype: ir.DType, text: str) -> ir.Instruction:
        """An operation on two vectors, `left` and `right`."""
        return self._of_two(operator, dtype, self.vector("right", dtype), text)

    def wrapping(self, operator: BinaryOperator, text: str) -> ir.Instruction:
        """An operation on two vectors of I32, `left` and `right`, modulo 2^32."""
        wide = ir.DType.I64
        return lane_wise(
            f"{self.prefix}_{_NAMES[operator]}_i32_wrapping",
            self.lanes,
            (self.vector("result", access=WRITE), self.vector("left"), self.vector("right")),
            lambda given: ir.cast(binary(operator, *(ir.cast(each, wide) for each in given)), I32),
            text,
            self.feature,
        )

    def with_scalar(self, operator: BinaryOperator, dtype: ir.DType, text: str) -> ir.Instruction:
        """The same, of a vector `left` and a scalar `number`."""
        return self._of_two(operator, dtype, ir.ScalarParameter(ir.Var("number", dtype)), text, "_n")

    def _of_two(
        self,
        operator: BinaryOperator,
        dtype: ir.DType,
        right: ir.BufferParameter | ir.ScalarParameter,
        text: str,
        ending: str = "",
    ) -> ir.Instruction:
        name = f"{self.prefix}_{_NAMES[operator]}_{dtype.value}{ending}"
        parameters = (self.vector("result", dtype, WRITE), self.vector("left", dtype), right)
        return lane_wise(
            name, self.lanes, parameters, lambda given: binary(operator, *given), text, self.feature
        )

    def function(self, function: ir.ScalarFunction, text: str) -> ir.Instruction:
        """A function of scalars on each lane; the text has its parameters' names.

        Operands of types that no vector has are the same in every lane.
        """
        operands = tuple(
            self.vector(parameter.name, parameter.dtype)
            if parameter.dtype in self.types
            else ir.ScalarParameter(parameter)
            for parameter in function.parameters
        )
        parameters = (self.vector("result", function.result_type, WRITE), *operands)
        name = f"{self.prefix}_{function.name}"
        return lane_wise(
            name, self.lanes, parameters, lambda given: function(*given), text, self.feature, function.comment
        )

    def conversion(self, source: ir.DType, dtype: ir.DType, text: str) -> ir.Instruction:
        """A vector as one of another type."""
        parameters = (self.vector("result", dtype, WRITE), self.vector("values", source))
        name = f"{self.prefix}_{dtype.value}_of_{source.value}"
        return lane_wise(
            name, self.lanes, parameters, lambda given: ir.cast(given[0], dtype), text, self.feature
        )

    def select(self, operator: BinaryOperator, dtype: ir.DType, text: str) -> ir.Instruction:
        """One of `first` and `second`, as `left` and `right` compare."""
        parameters = (
            self.vector("result", dtype, WRITE),
            *(self.vector(name, dtype) for name in ("left", "right", "first", "second")),
        )
        return lane_wise(
            f"{self.prefix}_select_{_NAMES[operator]}_{dtype.value}",
            self.lanes,
            parameters,
            lambda given: select(binary(operator, *given[:2]), *given[2:]),
            text,
            self.feature,
        )

    def gather(self, dtype: ir.DType, text: str) -> Callable[[int], ir.Instruction]:
        """Elements of a table of so many, each where a lane of `places` says."""

        @cache
        def of(num: int) -> ir.Instruction:
            values, elements = self.vector("values", I32, WRITE), memory_parameter("elements", num, dtype)
            places, name = self.vector("places"), f"{self.prefix}_gather_{dtype.value}_{num}"
            body = BodyBuilder(("values", "elements", "places"))
            with body.for_(f"{name}.lane", 0, self.lanes) as lane:
                element = load(elements.buffer, load(places.buffer, lane))
                body.store(values.buffer, lane, ir.cast(element, I32))
            comment = f"Elements of a table of {num}, each where a lane says."
            parameters = (values, elements, places)
            return ir.Instruction(name, parameters, body.finish(), text, self.feature, comment)

        return of

    def unit(
        self,
        *,
        loads: Mapping[ir.DType, str],
        stores: Mapping[ir.DType, str],
        broadcasts: Mapping[ir.DType, str],
        binaries: Operations,
        functions: Iterable[tuple[ir.ScalarFunction, str]],
        with_scalar: Operations | None = None,
        saturating_stores: Mapping[ir.DType, str] | None = None,
        wrapping: Mapping[BinaryOperator, str] | None = None,
        conversions: Mapping[tuple[ir.DType, ir.DType], str] | None = None,
        gathers: Mapping[ir.DType, str] | None = None,
        selects: Operations | None = None,
        num: int = 0,
    ) -> VectorUnit:
        """The unit of these vectors; each operation is given by its C text.

        Args:
            loads: Of `num` elements, by type.
            stores: Likewise.
            saturating_stores: Likewise.
            broadcasts: With `value`, by type.
            binaries: With `left` and `right`.
            functions: With the names of parameters.
            with_scalar: With `left` and `number`.
            wrapping: With `left` and `right`, of I32, by operator.
            conversions: With `values`, by their type and that of the result.
            gathers: With `elements` and `places`, by the elements' type.
            selects: With `left`, `right`, `first` and `second`.
            num: How many first lanes are loaded and stored; 0 if all are.
        """
        count = num or self.lanes
        return VectorUnit(
            lanes=self.lanes,
            num_elements=num,
            types=self.types,
            loads={dtype: self.load(dtype, text, count) for dtype, text in loads.items()},
            stores={dtype: self.store(dtype, text, count) for dtype, text in stores.items()},
            saturating_stores={
                dtype: self.saturating_store(dtype, text, count)
                for dtype, text in (saturating_stores or {}).items()
            },
            broadcasts={
                dtype: self.broadcast(dtype, f"return {text};") for dtype, text in broadcasts.items()
            },
            binaries={key: self.binary(*key, f"return {text};") for key, text in binaries.items()},
            with_scalar={key: self.with_scalar(*key, text) for key, text in (with_scalar or {}).items()},
            wrapping={
                operator: self.wrapping(operator, f"return {text};")
                for operator, text in (wrapping or {}).items()
            },
            conversions={
                key: self.conversion(*key, f"return {text};") for key, text in (conversions or {}).items()
            },
            gathers={dtype: self.gather(dtype, text) for dtype, text in (gathers or {}).items()},
            selects={key: self.select(*key, f"return {text};") for key, text in (selects or {}).items()},
            functions={function.name: self.function(function, text) for function, text in functions},
        )


def _some(num: int, lanes: int) -> str:
    return f"_{num}" if num < lanes else ""
