"""Checks PrimFuncs: names, types of expressions, buffers and their scopes, allocations at the module's stage."""

import re
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

from bytewright import ir
from bytewright.ir.symbols import buffers_of
from bytewright.ir.types import EXPRESSION_TYPES
from bytewright.ir.verify.verify_call import call_faults
from bytewright.ir.verify.verify_device import device_context_faults, job_faults
from bytewright.ir.verify.verify_storage import allocation_faults
from bytewright.ir.verify.violation import Context, word_for
from bytewright.ir.walk import as_any, named_buffers, regions

_INTEGER_ONLY = frozenset(
    {ir.BinaryOperator.MOD, ir.BinaryOperator.SHL, ir.BinaryOperator.SHR, ir.BinaryOperator.AND}
)
_INDEX_TYPES = frozenset({ir.DType.I32, ir.DType.I64})
MAX_ALIGNMENT = 1 << 28  # of an object, in gcc and ELF
_Value = TypeVar("_Value")


def check_primfunc(context: Context, function: ir.PrimFunc) -> None:
    """Reports what is wrong with a kernel or entry."""
    context.report(function, function, *context.device_faults(function.device))
    _Checker(context, function).run()


@dataclass(frozen=True, slots=True)
class _Memory:
    """What the name of a buffer stands for.

    Attributes:
        buffer: As it was defined.
        scope: As it was defined; of a view, its source's.
        denoted: The scopes of what it may denote: its own, or those of all that a view may show. What a function
            allocates without a scope is `global`.
        is_read_only: Whether the function may not write it.
    """

    buffer: ir.Buffer
    scope: ir.Scope | None
    denoted: tuple[ir.Scope | None, ...]
    is_read_only: bool = False


class _Checker:
    """One function under test: what is in scope at the present statement, and which names were ever used."""

    def __init__(self, context: Context, function: ir.PrimFunc) -> None:
        self.context = context
        self.function = function
        self.is_entry = word_for(context.module, function) == "entry"
        self.variables: dict[str, ir.Var] = {}
        self.memories: dict[str, _Memory] = {}
        # What each name stood for before the open sequences defined it anew, with the table that it stood in.
        self.hidden: list[tuple[dict[str, Any], str, object]] = []
        self.allocated: dict[str, ir.Allocate] = {}
        self.names: set[str] = set()
        self.node: object = function

    def report(self, *faults: str) -> None:
        if faults:
            self.context.report(self.function, self.node, *faults)

    def run(self) -> None:
        for parameter in self.function.parameters:
            self.node = parameter
            match parameter:
                case ir.ScalarParameter():
                    self.define_variable(parameter.variable)
                case ir.BufferParameter():
                    scope, is_read = parameter.scope, parameter.access is ir.Access.READ
                    self.define_buffer(_Memory(parameter.buffer, scope, (scope,), is_read))
                    if ir.is_local(scope):
                        self.report(f"'{parameter.buffer.name}' is local, so it cannot be a parameter")
                case ir.ContextParameter():
                    self.define_name(parameter.name)
                    self.report(*device_context_faults(self.context, self.function, parameter))
                case _:
                    assert_never(parameter)
        self.node = self.function
        self.external()
        self.report(*job_faults(self.context, self.function, self.is_entry))
        names = {parameter.buffer.name for parameter in self.function.buffer_parameters}
        for first, second in self.function.noalias:
            if first == second or first not in names or second not in names:
                self.report(f"noalias({first}, {second}) is not a pair of buffer parameters")
        self.symbols()
        self.sequence(self.function.body)

    def external(self) -> None:
        """A function of the application has a C name, and of its body the module knows the scratch alone."""
        function = self.function
        if function.external is None:
            return
        if self.is_entry:
            self.report("the entry cannot be a function of the application")
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", function.symbol) is None:
            self.report(f"'{function.symbol}' is the application's, but no name that a C function can have")
        for statement in function.body.statements:
            self.node = statement
            if not isinstance(statement, ir.Allocate):
                self.report(f"'{function.name}' is the application's: its body can only allocate scratch")
            elif ir.is_on_stack(statement.scope):
                scope = f"has scope '{statement.scope}', but is passed to the application's function"
                self.report(f"'{statement.buffer.name}' {scope}")
        self.node = function

    def symbols(self) -> None:
        """Symbols are scalar parameters, with the same bounds wherever they stand; kernels may be given none."""
        least = 1 if self.is_entry else 0
        scalars = [p.variable for p in self.function.parameters if isinstance(p, ir.ScalarParameter)]
        bounds: dict[str, ir.Symbol] = {}
        for buffer in buffers_of(self.function):
            for extent in buffer.shape:
                symbol = ir.symbol_in(extent)
                if symbol is None:
                    continue
                if not least <= symbol.lower <= symbol.upper <= ir.DType.I32.bounds[1]:
                    self.report(f"'{buffer.name}' has the extent '{symbol}', whose bounds make no sense")
                elif ir.lower_bound(extent) < min(1, symbol.lower):
                    self.report(f"'{buffer.name}' has the extent '{extent}', which may be none")
                elif isinstance(extent, ir.Quotient) and not extent.fits_i32:
                    self.report(f"'{buffer.name}' has the extent '{extent}', which takes more than 32 bits")
                if ir.Var(symbol.name, ir.DType.I32) not in scalars:
                    self.report(f"'{buffer.name}' has the extent '{symbol}', which is no parameter of i32")
                if bounds.setdefault(symbol.name, symbol) != symbol:
                    self.report(
                        f"'{buffer.name}' has the extent '{symbol}', elsewhere '{bounds[symbol.name]}'"
                    )

    # Definitions

    def define_name(self, name: str) -> None:
        if not name:
            self.report("a name is empty")
        if name in self.names:
            self.report(f"'{name}' is defined twice in '{self.function.name}'")
        self.names.add(name)

    def put(self, table: dict[str, _Value], name: str, value: _Value) -> None:
        """Says what a name stands for, until the sequence ends that defines it."""
        self.hidden.append((table, name, table.get(name)))
        table[name] = value

    def reveal(self, count: int) -> None:
        """Ends definitions until `count` of those that are open remain."""
        while len(self.hidden) > count:
            table, name, before = self.hidden.pop()
            if before is None:
                del table[name]
            else:
                table[name] = before

    def memory(self, name: str) -> _Memory | None:
        """What a name stands for: a buffer of the function, or a constant."""
        if name in self.memories:
            return self.memories[name]
        constant = self.context.index.constants.get(name)
        return constant and _Memory(constant.buffer, constant.scope, (constant.scope,), is_read_only=True)

    def is_read_only(self, name: str) -> bool:
        """Whether the function may not write the buffer of a name."""
        known = self.memory(name)
        return known is not None and known.is_read_only

    def denoted(self, name: str) -> tuple[ir.Scope | None, ...]:
        """The scopes of what the name of a buffer may denote; none if it is not defined."""
        known = self.memory(name)
        return () if known is None else known.denoted

    def define_variable(self, variable: ir.Var) -> None:
        self.define_name(variable.name)
        self.put(self.variables, variable.name, variable)

    def define_buffer(self, memory: _Memory) -> None:
        buffer = memory.buffer
        self.define_name(buffer.name)
        self.put(self.memories, buffer.name, memory)
        if buffer.alignment < 1 or buffer.alignment & (buffer.alignment - 1):
            self.report(f"'{buffer.name}' has alignment {buffer.alignment}, not a power of two")
        elif buffer.alignment > MAX_ALIGNMENT:
            self.report(
                f"'{buffer.name}' has alignment {buffer.alignment}; C compilers give at most {MAX_ALIGNMENT}"
            )
        line = buffer.line_bytes
        if line < 0 or line & (line - 1) or buffer.alignment < line:
            self.report(
                f"'{buffer.name}' has lines of {line} B and alignment {buffer.alignment}: no power of two, or not a "
                "multiple of it"
            )
        is_local, is_constant = ir.is_local(memory.scope), ir.has_constant_size(buffer)
        if buffer.register and not (len(buffer.shape) == 1 and is_constant):
            self.report(f"'{buffer.name}' is a register, so it has one axis of constant size")
        if buffer.register and not is_local:
            self.report(f"'{buffer.name}' is a register, so its scope is 'local'")
        if any(isinstance(extent, int) and extent < 1 for extent in buffer.shape):
            self.report(f"'{buffer.name}' has no elements: its shape is {ir.format_shape(buffer.shape)}")
        if is_local and not is_constant:
            self.report(f"'{buffer.name}' is local, so its size must be constant")
        self.report(*self.context.scope_faults(memory.scope, self.function.device, f"'{buffer.name}'"))

    # Statements

    def sequence(self, sequence: ir.Seq) -> None:
        """Checks statements in order; what they define ends with them."""
        count = len(self.hidden)
        for statement in sequence.statements:
            self.statement(statement)
        self.reveal(count)

    def statement(self, statement: ir.Statement) -> None:
        self.node = statement
        match statement:
            case ir.InstructionCall():
                self.instruction_call(statement)
            case ir.Seq():
                self.sequence(statement)
            case ir.For():
                self.loop(statement)
            case ir.If():
                self.condition(statement.condition)
                self.sequence(statement.then)
                if statement.otherwise is not None:
                    self.sequence(statement.otherwise)
            case ir.Call():
                self.call(statement)
            case ir.Let():
                self.expression(statement.value)
                self.same_type(statement.variable.dtype, statement.value, f"'{statement.variable.name}'")
                self.define_variable(statement.variable)
            case ir.Allocate():
                denoted = (ir.GLOBAL if statement.scope is None else statement.scope,)
                self.define_buffer(_Memory(statement.buffer, statement.scope, denoted))
                faults = allocation_faults(self.context, self.function, statement, self.allocated)
                self.report(*faults)
                self.put(self.allocated, statement.buffer.name, statement)
            case ir.View():
                self.view(statement)
            case ir.Store():
                self.store(statement)
            case _:
                assert_never(statement)

    def call(self, call: ir.Call) -> None:
        for argument in call.arguments:
            match argument:
                case ir.Region():
                    self.region(argument)
                case ir.ContextArgument():
                    self.report(*self.context.device_faults(argument.device))
                case _:
                    self.expression(argument)
        self.report(*call_faults(self.context, self.function, call, self.is_read_only, self.denoted))

    def instruction_call(self, call: ir.InstructionCall) -> None:
        """Its statements are those of the instruction; what they are given is looked at."""
        for parameter, argument in zip(call.instruction.parameters, call.arguments, strict=True):
            if not isinstance(argument, ir.Region):
                self.expression(argument)
            elif isinstance(parameter, ir.BufferParameter):
                given = argument.buffer
                if argument.indices and not given.register:
                    self.element(given, argument.indices)
                else:
                    self.defined(given)
                faults = _faults_of_given(parameter, argument)
                if parameter.access is not ir.Access.READ and self.is_read_only(given.name):
                    faults.append(", which writes it, but it is only to be read")
                if faults:
                    what = f"'{given.name}' is passed to '{parameter.name}' of instruction"
                    self.report(*[f"{what} '{call.instruction.name}'{fault}" for fault in faults])

    def loop(self, loop: ir.For) -> None:
        for bound in (loop.begin, loop.end):
            self.expression(bound)
            self.same_type(loop.variable.dtype, bound, f"bound of '{loop.variable.name}'")
            if loop.kind is ir.LoopKind.UNROLLED and not isinstance(bound, ir.Const):
                self.report(f"unrolled loop over '{loop.variable.name}' has a bound that is not constant")
        if loop.variable.dtype not in _INDEX_TYPES:
            self.report(f"loop variable '{loop.variable.name}' is {loop.variable.dtype.value}")
        for buffer in loop.private:
            self.private(loop, buffer)
        count = len(self.hidden)
        self.define_variable(loop.variable)
        self.sequence(loop.body)
        self.reveal(count)

    def private(self, loop: ir.For, buffer: ir.Buffer) -> None:
        """What carries nothing from turn to turn is scratch that no statement outside of the loop uses."""
        self.defined(buffer)
        scratch = [p.buffer for p in self.function.buffer_parameters if p.role is ir.ParameterRole.SCRATCH]
        what = f"'{buffer.name}' is private to the loop over '{loop.variable.name}'"
        if buffer not in scratch:
            self.report(f"{what}, but is no scratch parameter")
        if loop.kind is ir.LoopKind.PARALLEL:
            self.report(f"{what}, whose threads would share it")
        everywhere, inside = (list(named_buffers(body)) for body in (self.function.body, loop.body))
        if everywhere.count(buffer) != inside.count(buffer):
            self.report(f"{what}, but used outside of it")

    def view(self, statement: ir.View) -> None:
        buffer = statement.buffer
        if (statement.condition is None) != (statement.otherwise is None):
            self.report(f"view '{buffer.name}' needs a condition and an alternative, or neither")
        if statement.condition is not None:
            self.condition(statement.condition)
        for source in (statement.source, statement.otherwise):
            if source is None:
                continue
            self.region(source)
            if source.buffer.register:
                self.report(f"view '{buffer.name}' shows '{source.buffer.name}', which is a register")
            if source.buffer.dtype is not buffer.dtype:
                found, expected = buffer.dtype.value, source.buffer.dtype.value
                self.report(f"view '{buffer.name}' of {found} shows '{source.buffer.name}' of {expected}")
            if ir.num_elements(buffer) > ir.num_elements(source.buffer):
                self.report(f"view '{buffer.name}' is larger than '{source.buffer.name}'")
        source = self.memory(statement.source.buffer.name)
        denoted = (scope for region in regions(statement) for scope in self.denoted(region.buffer.name))
        scope = None if source is None else source.scope
        self.define_buffer(_Memory(buffer, scope, tuple(dict.fromkeys(denoted)), is_read_only=True))

    def store(self, statement: ir.Store) -> None:
        self.element(statement.buffer, statement.indices)
        self.expression(statement.value)
        self.same_type(statement.buffer.dtype, statement.value, f"store to '{statement.buffer.name}'")
        if self.is_read_only(statement.buffer.name):
            self.report(f"'{statement.buffer.name}' is stored to, but only to be read")

    # Buffers

    def element(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> None:
        self.defined(buffer)
        if buffer.register:
            self.report(f"an element of '{buffer.name}' is named, but only instructions touch registers")
        if len(indices) != len(buffer.shape):
            self.report(f"'{buffer.name}' has {len(buffer.shape)} axes, {len(indices)} indices")
        for index in indices:
            self.expression(index)
            if index.dtype not in _INDEX_TYPES:
                self.report(f"an index of '{buffer.name}' is {index.dtype.value}")

    def region(self, region: ir.Region) -> None:
        if region.indices:
            self.element(region.buffer, region.indices)
        else:
            self.defined(region.buffer)

    def defined(self, buffer: ir.Buffer) -> None:
        known = self.memory(buffer.name)
        if known is None:
            self.report(f"buffer '{buffer.name}' is not defined here")
        elif known.buffer is not buffer and known.buffer != buffer:
            difference = _difference(known.buffer, buffer)
            self.report(f"buffer '{buffer.name}' is not as it was defined: {difference}")

    # Expressions

    def same_type(self, expected: ir.DType, expression: ir.Expr, what: str) -> None:
        if expression.dtype is not expected:
            self.report(f"{what} is {expected.value}, the value is {expression.dtype.value}")

    def condition(self, expression: ir.Expr) -> None:
        self.expression(expression)
        self.same_type(ir.DType.BOOL, expression, "a condition")

    def expression(self, expression: ir.Expr) -> None:
        node = as_any(expression)
        match node:
            case ir.Const():
                self.constant(node)
            case ir.Var():
                known = self.variables.get(node.name)
                if known is None:
                    self.report(f"variable '{node.name}' is not defined here")
                elif known is not node and known != node:
                    self.report(f"variable '{node.name}' is {known.dtype.value}, used as {node.dtype.value}")
            case ir.Load():
                self.element(node.buffer, node.indices)
            case ir.Binary():
                self.expression(node.left)
                self.expression(node.right)
                self.binary(node)
            case ir.Cast():
                self.expression(node.operand)
            case ir.ScalarCall():
                name, parameters = node.function.name, node.function.parameters
                if len(node.operands) != len(parameters):
                    self.report(f"{name} has {len(parameters)} operands, {len(node.operands)} are given")
                for parameter, operand in zip(parameters, node.operands, strict=False):
                    self.expression(operand)
                    self.same_type(parameter.dtype, operand, f"operand of {name}")
            case ir.Select():
                self.condition(node.condition)
                self.expression(node.if_true)
                self.expression(node.if_false)
                self.same_type(node.if_true.dtype, node.if_false, "the other side of a select")
            case _:
                assert_never(node)

    def constant(self, node: ir.Const) -> None:
        low, high = node.dtype.bounds if node.dtype.is_integer else (0, 1)
        is_whole = isinstance(node.value, int)
        if (node.dtype.is_integer or node.dtype is ir.DType.BOOL) and not (
            is_whole and low <= node.value <= high
        ):
            self.report(f"constant {node.value!r} does not fit {node.dtype.value}")

    def binary(self, node: ir.Binary) -> None:
        operator, left = node.operator, node.left.dtype
        self.same_type(left, node.right, f"left operand of '{operator.value}'")
        if operator.is_lazy:
            admitted = left is ir.DType.BOOL
        elif operator is ir.BinaryOperator.EQ:
            admitted = left is ir.DType.BOOL or left in EXPRESSION_TYPES
        else:
            admitted = left in EXPRESSION_TYPES and (left.is_integer or operator not in _INTEGER_ONLY)
        if not admitted:
            self.report(f"'{operator.value}' is not defined on {left.value}")
        elif left.is_integer and isinstance(node.right, ir.Const):
            self.constant_operand(node, int(node.right.value))

    def constant_operand(self, node: ir.Binary, value: int) -> None:
        """A right operand that no left one goes with."""
        if node.operator in (ir.BinaryOperator.DIV, ir.BinaryOperator.MOD) and value == 0:
            self.report(f"'{node.operator.value}' divides by the constant 0")
        width = 8 * node.dtype.size_bytes
        if node.operator in (ir.BinaryOperator.SHL, ir.BinaryOperator.SHR) and not 0 <= value < width:
            self.report(f"'{node.operator.value}' shifts {node.dtype.value} by {value} bits")


def _faults_of_given(parameter: ir.BufferParameter, argument: ir.Region) -> list[str]:
    """What is wrong with a buffer that an instruction is given, as the end of a sentence."""
    given, wanted = argument.buffer, parameter.buffer
    if parameter.is_value:
        if (given.register, given.shape) == (wanted.register, wanted.shape):
            return []
        found, expected = given.register or "no register", wanted.register or "a variable"
        return [f": it is {found}, {expected} is wanted"]
    faults: list[str] = []
    if given.register or not argument.indices:
        faults.append(", which takes memory from an element on")
    num_given, num_wanted = ir.num_elements(given), ir.num_elements(wanted)
    if num_wanted > num_given:
        faults.append(f": {num_given} elements, {num_wanted} expected")
    return faults


def _difference(defined: ir.Buffer, used: ir.Buffer) -> str:
    pairs = (
        ("shape", defined.shape, used.shape),
        ("type", defined.dtype.value, used.dtype.value),
        ("alignment", defined.alignment, used.alignment),
        ("ring", defined.rows, used.rows),
        ("lines", defined.line_bytes, used.line_bytes),
        ("register", defined.register, used.register),
    )
    return ", ".join(
        f"{name} {before}, used with {after}" for name, before, after in pairs if before != after
    )
