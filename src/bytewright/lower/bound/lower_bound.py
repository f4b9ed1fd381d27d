"""A group of operators becomes the call of a function of the application: its prototype, and what is passed.

What the function is given follows from its description and the operator's facts. Nothing is known of what it computes:
that it computes the operators is the user's word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.diagnostics import CompileError, compile_error
from bytewright.graph.bound.formula import Formula, FormulaError, Record, described
from bytewright.graph.bound.function import (
    ApplicationFunction,
    Bound,
    ConstantArgument,
    FunctionArgument,
    InputArgument,
    Memory,
    OutputArgument,
    ScalarArgument,
    Scratch,
    ValuesArgument,
)
from bytewright.lower.bound.facts import BoundOperator
from bytewright.lower.kernel import Argument, LoweredKernel, TensorArgument
from bytewright.lower.kernel import ConstantArgument as PassedConstant
from bytewright.lower.kernel import ScalarArgument as PassedScalar
from bytewright.target.model import Target

Passed = tuple[ir.Parameter, Argument]


def lower_bound(
    name: str, bound: Bound, operator: BoundOperator, device: str, target: Target
) -> LoweredKernel:
    """The prototype of the function for these operators, under a name of its own, and the arguments of the call.

    Raises:
        CompileError: BW763, the function does not take them as they are.
    """
    return _Call(bound, operator, target).lowered(name, device)


@dataclass(frozen=True, slots=True)
class _Call:
    bound: Bound
    operator: BoundOperator
    target: Target

    @property
    def function(self) -> ApplicationFunction:
        return self.bound.function

    def lowered(self, name: str, device: str) -> LoweredKernel:
        function = self.function
        self._check_inputs()
        for facts in self._facts_of_each_run():
            self._check_requirements(facts)
        open_facts = self._with_lets(self.operator.facts(lambda extent: extent))
        passed = [self._passed(argument, open_facts) for argument in function.arguments]
        self._check_extents([parameter for parameter, _ in passed])
        body = ir.Seq(tuple(self._allocation(scratch) for scratch in function.scratch))
        external = ir.External(
            function.stack_bytes,
            function.returns_status,
            None if name == function.symbol else function.symbol,
        )
        parameters = tuple(parameter for parameter, _ in passed)
        prototype = ir.PrimFunc(
            name, parameters, body, device=device, where=self.bound.where, external=external
        )
        return LoweredKernel(prototype, tuple(argument for _, argument in passed), self._touched_by())

    def _symbols(self) -> tuple[ir.Symbol, ...]:
        """Extents that a run decides, of the tensors that are passed."""
        names = (*self.operator.inputs, self.operator.output.name)
        return ir.symbols_in(extent for name in names for extent in self.operator.types[name].shape)

    def _facts_of_each_run(self) -> Iterable[Mapping[str, object]]:
        """The facts with every value that an open extent may have."""
        symbols = self._symbols()
        if not symbols:
            yield self._with_lets(self.operator.facts(lambda extent: extent))
            return
        lower, upper = min(s.lower for s in symbols), max(s.upper for s in symbols)
        for value in range(lower, upper + 1):

            def at(extent: ir.Extent, value: int = value) -> int:
                return ir.extent_at(extent, value)

            yield self._with_lets(self.operator.facts(at))

    def _with_lets(self, facts: dict[str, object]) -> Mapping[str, object]:
        known = dict(facts)
        for name, formula in self.function.lets:
            if name in known:
                raise self._refused(f"'let' gives the name '{name}', which is one of the operator's")
            try:
                known[name] = formula.value(known)
            except FormulaError as error:
                if not self._symbols():
                    raise self._refused(str(error)) from None
        return known

    def _check_inputs(self) -> None:
        positions = {a.position for a in self.function.arguments if isinstance(a, InputArgument)}
        count = len(self.operator.inputs)
        if positions != set(range(count)):
            given = ", ".join(map(str, sorted(positions))) or "none"
            raise self._refused(f"it reads {_counted(count, 'tensor')}, the function is given input {given}")

    def _check_requirements(self, facts: Mapping[str, object]) -> None:
        for requirement in self.function.requires:
            if not self._value(requirement, facts):
                found = tuple(requirement.facts_used(facts))
                raise self._refused(f"the function requires {requirement.text}", found)

    def _check_extents(self, parameters: list[ir.Parameter]) -> None:
        """The value of an open extent is the scalar parameter of its name."""
        names = {p.name for p in parameters if isinstance(p, ir.ScalarParameter)}
        for symbol in self._symbols():
            if symbol.name not in names:
                help_text = '{ scalar = "input.shape[0]", name = "batch" } among its arguments'
                raise self._refused(
                    f"the function is not given '{symbol.name}', which each run decides", (), help_text
                )

    def _passed(self, argument: FunctionArgument, facts: Mapping[str, object]) -> Passed:
        match argument:
            case InputArgument():
                name = self.operator.inputs[argument.position]
                buffer = self._buffer(argument.name, self.operator.types[name], argument.memory)
                return self._parameter(buffer, ir.Access.READ, argument.memory), TensorArgument(name)
            case OutputArgument():
                value = self.operator.output
                buffer = self._buffer(argument.name, value.type, argument.memory)
                return self._parameter(buffer, ir.Access.WRITE, argument.memory), TensorArgument(value.name)
            case ConstantArgument():
                return self._constant(argument.name, self._data(argument, facts), argument.memory)
            case ValuesArgument():
                values = [self._number(formula, argument.dtype, facts) for formula in argument.values]
                data = ir.TensorData.from_array(np.array(values, argument.dtype.numpy), argument.dtype)
                return self._constant(argument.name, data, argument.memory)
            case ScalarArgument():
                return self._scalar(argument, facts)

    @staticmethod
    def _buffer(name: str, type_: ir.TensorType, memory: Memory) -> ir.Buffer:
        return ir.Buffer(name, type_.shape, type_.dtype, max(memory.alignment, type_.dtype.size_bytes))

    @staticmethod
    def _parameter(
        buffer: ir.Buffer,
        access: ir.Access,
        memory: Memory,
        role: ir.ParameterRole = ir.ParameterRole.ACTIVATION,
    ) -> ir.BufferParameter:
        return ir.BufferParameter(buffer, access, role, memory.scope or ir.GLOBAL)

    def _constant(self, name: str, data: ir.TensorData, memory: Memory) -> Passed:
        buffer = self._buffer(name, data.type, memory)
        parameter = self._parameter(buffer, ir.Access.READ, memory, ir.ParameterRole.PARAMETER)
        return parameter, PassedConstant(data, name)

    def _data(self, argument: ConstantArgument, facts: Mapping[str, object]) -> ir.TensorData:
        found = self._value(argument.constant, facts)
        what = f"'{argument.constant.text}'"
        if not isinstance(found, Record) or found.data is None:
            raise self._refused(f"{what} is {described(found)}, which is no constant")
        array, dtype = found.data.array, argument.dtype or found.data.dtype
        if argument.axes:
            if len(argument.axes) != array.ndim:
                raise self._refused(f"{what} has {array.ndim} axes, the function states {len(argument.axes)}")
            array = array.transpose(argument.axes)
        if argument.per_channel:
            channels = self.operator.output.type.fixed_shape[-1]
            if array.size not in (1, channels):
                raise self._refused(f"{what} has {array.size} values, neither 1 nor {channels}")
            array = np.broadcast_to(array.reshape(-1), (channels,))
        with np.errstate(invalid="ignore", over="ignore"):  # what does not fit is found right here
            cast = np.ascontiguousarray(array.astype(dtype.numpy))
        if not np.array_equal(cast, array):
            raise self._refused(f"{what} has values that {dtype.value} does not hold")
        return ir.TensorData.from_array(cast, dtype)

    def _scalar(self, argument: ScalarArgument, facts: Mapping[str, object]) -> Passed:
        value = self._value(argument.value, facts)
        if isinstance(value, ir.Symbol):
            variable = ir.Var(value.name, ir.DType.I32)
            return ir.ScalarParameter(variable), PassedScalar(variable)
        variable = ir.Var(argument.name, argument.dtype)
        if isinstance(value, ir.Quotient):
            self._check_held(argument.value.text, value.upper, argument.dtype)
            return ir.ScalarParameter(variable), PassedScalar(ir.cast(ir.extent_expr(value), argument.dtype))
        number = self._number(argument.value, argument.dtype, facts)
        return ir.ScalarParameter(variable), PassedScalar(ir.const(number, argument.dtype))

    def _allocation(self, scratch: Scratch) -> ir.Allocate:
        """As large as any run needs."""
        sizes = [self._integer(scratch.size_bytes, facts) for facts in self._facts_of_each_run()]
        size_bytes, element_bytes = max(sizes), scratch.dtype.size_bytes
        if size_bytes < 0 or size_bytes > ir.MAX_ELEMENTS or size_bytes % element_bytes:
            raise self._refused(
                f"scratch '{scratch.name}' of {size_bytes} B is no array of {scratch.dtype.value}"
            )
        elements = max(1, size_bytes // element_bytes)
        alignment = max(scratch.memory.alignment, element_bytes)
        buffer = ir.Buffer(scratch.name, (elements,), scratch.dtype, alignment)
        return ir.Allocate(buffer, ir.Storage(scratch.memory.scope or ir.GLOBAL))

    def _touched_by(self) -> tuple[tuple[str, ...], ...] | None:
        """Who touches each argument; None where nothing is declared, which means every device."""
        arguments, everyone = self.function.arguments, tuple(device.name for device in self.target.devices)
        memories = [
            None if isinstance(argument, ScalarArgument) else argument.memory for argument in arguments
        ]
        if all(memory is None or memory.touched_by is None for memory in memories):
            return None
        return tuple(
            () if memory is None else everyone if memory.touched_by is None else memory.touched_by
            for memory in memories
        )

    def _value(self, formula: Formula, facts: Mapping[str, object]) -> object:
        try:
            return formula.value(facts)
        except FormulaError as error:
            raise self._refused(str(error)) from None

    def _integer(self, formula: Formula, facts: Mapping[str, object]) -> int:
        try:
            return formula.integer(facts)
        except FormulaError as error:
            raise self._refused(str(error)) from None

    def _number(self, formula: Formula, dtype: ir.DType, facts: Mapping[str, object]) -> int | float:
        value = self._value(formula, facts)
        if isinstance(value, bool):
            value = int(value)
        if not isinstance(value, int | float) or (dtype.is_integer and not isinstance(value, int)):
            raise self._refused(f"'{formula.text}' is {described(value)}, which is no {dtype.value}")
        self._check_held(formula.text, value, dtype)
        return value

    def _check_held(self, text: str, value: float, dtype: ir.DType) -> None:
        if dtype.is_integer and not dtype.bounds[0] <= value <= dtype.bounds[1]:
            raise self._refused(f"'{text}' is {value}, which {dtype.value} does not hold")

    def _refused(self, why: str, notes: tuple[str, ...] = (), help_text: str | None = None) -> CompileError:
        message = f"'{self.function.symbol}' does not take '{self.operator.output.name}': {why}"
        described_at = f"described in {self.function.where}"
        return compile_error("BW763", message, (*notes, described_at), help_text, str(self.bound.where))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
