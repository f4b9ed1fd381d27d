"""Translates PrimFuncs to Python source for the evaluator, with every check of the IR's rules written out.

A buffer becomes three Python names: a memoryview of its elements, one of the same shape that says which buffer wrote
each element, and the mark of this buffer there; an element with another mark counts as not written. Checks that
interval arithmetic proves needless (the index of a loop within its extent, the product of two bytes) are left out,
which is what makes the evaluator quick enough for tests. Helpers named `rt_` stand in `runtime`.
"""

import re
from collections.abc import Mapping
from typing import assert_never

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.ranges import Range
from bytewright.ir.types import EXPRESSION_TYPES
from bytewright.ir.walk import as_any, regions, walk_statements
from support.evaluate.intervals import Intervals, lies_in

_NUM_MARKS = 255  # a mark is a byte that is not 0, repeated; planned buffers take them in turn
_LONG_TEXT = 600  # Python's parser allows 200 nested parentheses; long operands become statements
# Operators that Python spells otherwise than the IR.
_PYTHON_OPERATORS = {ir.BinaryOperator.LOGICAL_AND: "and", ir.BinaryOperator.LOGICAL_OR: "or"}


def written_mark(dtype: ir.DType, number: int = 0) -> int:
    """What stands beside an element that a buffer wrote: the buffers of a pool differ in their numbers."""
    return int.from_bytes(bytes([1 + number % _NUM_MARKS]) * dtype.size_bytes, "little")


def function_name(name: str) -> str:
    """The Python name of a PrimFunc."""
    return "f_" + re.sub(r"\W", lambda found: f"_{ord(found[0]):x}_", name)


def scalar_function_name(function: ir.ScalarFunction) -> str:
    """The Python name of a function of scalars; those of <math.h> stand in `runtime`."""
    return f"rt_{function.name}" if function.result is None else f"scalar_{function.name}"


def translate_scalar_function(function: ir.ScalarFunction) -> str:
    """The Python source of a function of scalars that the IR defines."""
    parameters = tuple(ir.ScalarParameter(parameter) for parameter in function.parameters)
    body = ir.Seq(tuple(ir.Let(variable, value) for variable, value in function.steps))
    translator = _Translator(ir.PrimFunc(function.name, parameters, body), {}, {})
    return translator.source(scalar_function_name(function), function.result)


def translate(
    function: ir.PrimFunc, callees: Mapping[str, ir.PrimFunc], constants: Mapping[str, tuple[ir.Buffer, str]]
) -> str:
    """The Python source of one PrimFunc.

    Args:
        function: What to translate.
        callees: The PrimFuncs that it may call, by name.
        constants: Constant buffers by name, each with the Python name that holds it.
    """
    return _Translator(function, callees, constants).source(function_name(function.name))


class _Translator:
    def __init__(
        self,
        function: ir.PrimFunc,
        callees: Mapping[str, ir.PrimFunc],
        constants: Mapping[str, tuple[ir.Buffer, str]],
    ) -> None:
        self.function = function
        self.callees = callees
        self.lines: list[str] = []
        self.depth = 1
        self.num_names = 0
        self.num_planned = 0
        self.variables: dict[str, str] = {}
        self.intervals = Intervals()
        self.buffers: dict[str, str] = {name: python for name, (_, python) in constants.items()}
        self.scalars = _plain_scalars(function.body)

    def source(self, name: str, result: ir.Expr | None = None) -> str:
        """The function in Python, under a name; it returns nothing unless a result is given."""
        parameters: list[str] = []
        for parameter in self.function.parameters:
            match parameter:
                case ir.BufferParameter():
                    python = self.buffers[parameter.buffer.name] = self.fresh("b")
                    parameters.extend((python, f"{python}_s", f"{python}_w"))
                case ir.ScalarParameter():
                    parameters.append(self.define(parameter.variable))
                case ir.ContextParameter():
                    pass  # there are no devices here
                case _:
                    assert_never(parameter)
        self.sequence(self.function.body)
        head = f"def {name}({', '.join(parameters)}):"
        value = "" if result is None else self.value(result)
        return "\n".join([head, *self.lines, f"    return {value}", ""])

    # Names

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, front: str) -> str:
        """A Python name that nothing has: names of the IR come again, in each call of an instruction."""
        self.num_names += 1
        return f"{front}{self.num_names}"

    def temporary(self) -> str:
        return self.fresh("t")

    def define(self, variable: ir.Var, interval: Range | None = None) -> str:
        python = self.variables[variable.name] = self.fresh("v")
        self.intervals.define(variable, interval)
        return python

    def buffer(self, buffer: ir.Buffer) -> str:
        if buffer.name not in self.buffers:
            raise InternalError(f"'{self.function.name}': buffer '{buffer.name}' is not defined")
        return self.buffers[buffer.name]

    def place(self, *details: object) -> str:
        return ", ".join(repr(item) for item in (self.function.name, *details))

    # Statements

    def sequence(self, sequence: ir.Seq) -> None:
        for statement in sequence.statements:
            self.statement(statement)

    def indented(self, sequence: ir.Seq) -> None:
        self.depth += 1
        self.sequence(sequence)
        self.line("pass")
        self.depth -= 1

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Seq():
                self.sequence(statement)
            case ir.For():
                self.loop(statement)
            case ir.If():
                self.line(f"if {self.value(statement.condition)}:")
                self.indented(statement.then)
                if statement.otherwise is not None:
                    self.line("else:")
                    self.indented(statement.otherwise)
            case ir.Let():
                text = self.value(statement.value)
                interval = self.intervals.of(statement.value)
                self.line(f"{self.define(statement.variable, interval)} = {text}")
            case ir.Allocate():
                self.allocate(statement)
            case ir.Store():
                self.store(statement)
            case ir.View():
                self.view(statement)
            case ir.Call():
                self.call(statement)
            case _:
                assert_never(statement)

    def loop(self, loop: ir.For) -> None:
        begin, end = self.value(loop.begin), self.value(loop.end)
        low, high = self.intervals.of(loop.begin), self.intervals.of(loop.end)
        interval = (low[0], high[1] - 1) if low is not None and high is not None else None
        self.line(f"for {self.define(loop.variable, interval)} in range({begin}, {end}):")
        for buffer in loop.private:
            python = self.buffer(buffer)
            self.line(f"    rt_forget({python}_s, {python}_w)")
        self.indented(loop.body)

    def allocate(self, statement: ir.Allocate) -> None:
        buffer = statement.buffer
        python = self.buffers[buffer.name] = self.fresh("b")
        if buffer.name in self.scalars:
            self.line(f"{python} = None")
            return
        offset, pool, kind = statement.storage.offset, statement.storage.pool, buffer.dtype.format
        place = None if offset is None or pool is None else (pool, offset)
        if statement.storage.border is ir.Border.STATE:
            mark = written_mark(buffer.dtype, self.num_planned)
            self.num_planned += 1
            length = self.length(buffer)
            self.line(
                f"{python}, {python}_s = rt_keep({buffer.name!r}, {place!r}, {length}, {kind!r}, {mark})"
            )
            self.line(f"{python}_w = {mark}")
        elif place is None:
            self.line(f"{python}, {python}_s = rt_allocate({self.length(buffer)}, {kind!r})")
            self.line(f"{python}_w = {written_mark(buffer.dtype)}")
        else:
            mark = written_mark(buffer.dtype, self.num_planned)
            self.num_planned += 1
            pool, offset = place
            self.line(
                f"{python}, {python}_s = rt_pool({pool!r}, {offset!r}, {self.length(buffer)}, {kind!r}, {mark})"
            )
            self.line(f"{python}_w = {mark}")

    def store(self, statement: ir.Store) -> None:
        buffer, value = statement.buffer, self.value(statement.value)
        python = self.buffer(buffer)
        if buffer.name in self.scalars:
            self.line(f"{python} = {value}")
            return
        checks, flat = self.flat(buffer, statement.indices)
        for check in checks:
            self.line(check)
        index = self.temporary()
        self.line(f"{index} = {flat}")
        self.line(f"{python}[{index}] = {value}")
        self.line(f"{python}_s[{index}] = {python}_w")

    def view(self, statement: ir.View) -> None:
        python = self.fresh("b")
        length, kind = self.length(statement.buffer), statement.buffer.dtype.format
        where = self.place(statement.buffer.name)

        def assign(source: ir.Region) -> str:
            pointed, index = self.buffer(source.buffer), self.region_index(source)
            shown = f"rt_view({pointed}, {pointed}_s, {pointed}_w, {index}, {length}, {kind!r}, {where})"
            return f"{python}, {python}_s, {python}_w = {shown}"

        if statement.condition is None or statement.otherwise is None:
            self.line(assign(statement.source))
        else:
            condition = self.value(statement.condition)
            for word, source in ((f"if {condition}:", statement.source), ("else:", statement.otherwise)):
                self.line(word)
                self.depth += 1
                self.line(assign(source))
                self.depth -= 1
        self.buffers[statement.buffer.name] = python

    def call(self, statement: ir.Call) -> None:
        callee = self.callees.get(statement.callee)
        if callee is None:
            self.line(f"rt_unknown({self.place(statement.callee)})")
            return
        if len(callee.parameters) != len(statement.arguments):
            raise InternalError(
                f"'{self.function.name}' calls '{callee.name}' with {len(statement.arguments)} arguments, "
                f"{len(callee.parameters)} expected"
            )
        arguments: list[str] = []
        for parameter, argument in zip(callee.parameters, statement.arguments, strict=True):
            if isinstance(parameter, ir.BufferParameter) and isinstance(argument, ir.Region):
                arguments.append(self.pointer(parameter, argument, callee.name))
            elif isinstance(parameter, ir.ScalarParameter) and isinstance(argument, ir.Expr):
                if argument.dtype is not parameter.variable.dtype:
                    raise InternalError(f"'{callee.name}': type of argument '{parameter.variable.name}'")
                arguments.append(self.value(argument))
            elif isinstance(parameter, ir.ContextParameter) and isinstance(argument, ir.ContextArgument):
                continue
            else:
                raise InternalError(f"'{callee.name}': arguments of different kinds are mixed up")
        self.line(f"{function_name(callee.name)}({', '.join(arguments)})")

    def pointer(self, parameter: ir.BufferParameter, argument: ir.Region, callee: str) -> str:
        buffer = parameter.buffer
        if buffer.dtype is not argument.buffer.dtype:
            raise InternalError(
                f"'{self.function.name}' passes '{argument.buffer.name}' of {argument.buffer.dtype.value} to "
                f"'{buffer.name}' of {buffer.dtype.value} in '{callee}'"
            )
        length = ir.num_elements(buffer) if ir.has_constant_size(buffer) else None
        python, index = self.buffer(argument.buffer), self.region_index(argument)
        readonly = parameter.access is ir.Access.READ
        memory = f"{python}, {python}_s, {python}_w"
        return f"*rt_region({memory}, {index}, {length}, {readonly}, {self.place(buffer.name)})"

    # Addresses

    def length(self, buffer: ir.Buffer) -> str:
        return " * ".join(["1", *(self.extent(extent) for extent in ir.storage_shape(buffer))])

    def extent(self, extent: ir.Extent) -> str:
        symbol = ir.symbol_in(extent)
        if symbol is None:
            return str(extent)
        if symbol.name not in self.variables:
            raise InternalError(f"'{self.function.name}' has no parameter for the extent '{extent}'")
        variable = self.variables[symbol.name]
        return (
            f"({extent.text(variable).replace('/', '//')})" if isinstance(extent, ir.Quotient) else variable
        )

    def flat(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> tuple[list[str], str]:
        """Conditions that hold or raise, to be evaluated in order, and then the element's number."""
        checks: list[str] = []
        texts: list[str] = []
        for axis, (index, extent) in enumerate(self.along_axes(buffer, indices)):
            text, interval = self.value(index, strict=False), self.intervals.of(index)
            if not (isinstance(extent, int) and lies_in(interval, 0, extent - 1)):
                name, bound = self.temporary(), self.extent(extent)
                outside = f"rt_outside({self.place(buffer.name, axis)}, {name}, {bound})"
                checks.append(f"(0 <= ({name} := {text}) < {bound} or {outside})")
                text = name
            texts.append(text)
        return checks, self.row_major(buffer, texts)

    def region_index(self, region: ir.Region) -> str:
        """The number of the first element; that it is inside is checked with the length, at run time."""
        if not region.indices:
            return "0"
        pairs = self.along_axes(region.buffer, region.indices)
        return self.row_major(region.buffer, [self.value(index, strict=False) for index, _ in pairs])

    def along_axes(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> list[tuple[ir.Expr, ir.Extent]]:
        """Each index with the extent of its axis."""
        if len(indices) != len(buffer.shape):
            raise InternalError(f"'{self.function.name}': wrong number of indices for '{buffer.name}'")
        return list(zip(indices, buffer.shape, strict=True))

    def row_major(self, buffer: ir.Buffer, indices: list[str]) -> str:
        """The number of the element with these indices."""
        flat = "0"
        for axis, (text, stored) in enumerate(zip(indices, ir.storage_shape(buffer), strict=True)):
            slot = text
            if buffer.rows is not None and buffer.rows.axis == axis:
                slot = f"({text}) % {buffer.rows.num_rows}"
            flat = slot if flat == "0" else f"({flat}) * {self.extent(stored)} + {slot}"
        return flat

    # Expressions

    def value(self, expression: ir.Expr, strict: bool = True) -> str:
        """The Python expression of a value.

        Args:
            expression: What to translate.
            strict: The value is needed whatever happens, so that lines may be written before it.
        """
        node = as_any(expression)
        match node:
            case ir.Const():
                return _constant(node)
            case ir.Var():
                if node.name not in self.variables:
                    raise InternalError(f"'{self.function.name}': variable '{node.name}' is not defined")
                return self.variables[node.name]
            case ir.Load():
                text = self.load(node)
            case ir.Binary():
                text = self.binary(node, strict)
            case ir.Cast():
                text = self.cast(node, strict)
            case ir.Select():
                condition = self.value(node.condition, strict)
                if_true, if_false = self.value(node.if_true, False), self.value(node.if_false, False)
                text = f"({if_true} if {condition} else {if_false})"
            case ir.ScalarCall():
                given = ", ".join(self.value(operand, strict) for operand in node.operands)
                text = f"{scalar_function_name(node.function)}({given})"
            case _:
                assert_never(node)
        if strict and len(text) > _LONG_TEXT:
            name = self.temporary()
            self.line(f"{name} = {text}")
            return name
        return text

    def load(self, node: ir.Load) -> str:
        python = self.buffer(node.buffer)
        if node.buffer.name in self.scalars:
            return f"({python} if {python} is not None else rt_unset({self.place(node.buffer.name)}, 0))"
        checks, flat = self.flat(node.buffer, node.indices)
        index = self.temporary()
        unset = f"rt_unset({self.place(node.buffer.name)}, {index})"
        checks.append(f"({python}_s[({index} := {flat})] == {python}_w or {unset})")
        return f"({python}[{index}] if {' and '.join(checks)} else None)"

    def binary(self, node: ir.Binary, strict: bool) -> str:
        operator, dtype = node.operator, node.left.dtype
        if node.right.dtype is not dtype:
            raise InternalError(f"'{self.function.name}': operands of '{operator.value}' differ in type")
        left = self.value(node.left, strict)
        right = self.value(node.right, strict and not operator.is_lazy)
        if operator.is_lazy:
            return f"({left} {_PYTHON_OPERATORS[operator]} {right})"
        if dtype not in EXPRESSION_TYPES and (operator, dtype) != (ir.BinaryOperator.EQ, ir.DType.BOOL):
            raise InternalError(f"'{self.function.name}': '{operator.value}' is not defined on {dtype.value}")
        match operator:
            case ir.BinaryOperator.MIN | ir.BinaryOperator.MAX:
                first, second = self.temporary(), self.temporary()
                sign = ">" if operator is ir.BinaryOperator.MIN else "<"
                return f"({second} if ({first} := {left}) {sign} ({second} := {right}) else {first})"
            case _ if operator.is_comparison:
                return f"({left} {operator.value} {right})"
            case _ if not dtype.is_integer:
                return self.float_arithmetic(operator, left, right, dtype)
            case ir.BinaryOperator.DIV | ir.BinaryOperator.MOD:
                helper = "rt_divide" if operator is ir.BinaryOperator.DIV else "rt_remainder"
                text = f"{helper}({left}, {right}, {self.place()})"
            case ir.BinaryOperator.SHL | ir.BinaryOperator.SHR:
                amount = self.shift_amount(node.right, right, dtype)
                if operator is ir.BinaryOperator.SHL and not lies_in(
                    self.intervals.of(node.left), 0, dtype.bounds[1]
                ):
                    left = f"rt_shifted({left}, {self.place()})"
                text = f"({left} {operator.value} {amount})"
            case _:
                text = f"({left} {operator.value} {right})"
        low, high = dtype.bounds
        if lies_in(self.intervals.exact(node), low, high):
            return text
        name = self.temporary()
        overflow = f"rt_overflow({self.place(operator.value, dtype.value)}, {name})"
        return f"({name} if {low} <= ({name} := {text}) <= {high} else {overflow})"

    def float_arithmetic(self, operator: ir.BinaryOperator, left: str, right: str, dtype: ir.DType) -> str:
        if operator is ir.BinaryOperator.DIV:
            text = f"rt_divide_float({left}, {right})"
        elif operator in (ir.BinaryOperator.ADD, ir.BinaryOperator.SUB, ir.BinaryOperator.MUL):
            text = f"({left} {operator.value} {right})"
        else:
            raise InternalError(f"'{self.function.name}': '{operator.value}' is not defined on {dtype.value}")
        return f"rt_f32({text})" if dtype is ir.DType.F32 else text

    def shift_amount(self, amount: ir.Expr, text: str, dtype: ir.DType) -> str:
        width = 8 * dtype.size_bytes
        if lies_in(self.intervals.of(amount), 0, width - 1):
            return text
        return f"rt_shift({text}, {width}, {self.place()})"

    def cast(self, node: ir.Cast, strict: bool) -> str:
        source, target, text = node.operand.dtype, node.dtype, self.value(node.operand, strict)
        if target is ir.DType.BOOL:
            return f"({text} != 0)"
        if source is ir.DType.BOOL:
            text, source = f"int({text})", ir.DType.I32
        if target is ir.DType.F32:
            return f"rt_f32_of_i64({text})" if source is ir.DType.I64 else f"rt_f32({text})"
        if not target.is_integer:  # one that is narrower is rounded where it is stored
            return f"float({text})"
        low, high = target.bounds
        if not source.is_integer:
            return f"rt_truncate({text}, {low}, {high}, {self.place(target.value)})"
        if lies_in(self.intervals.of(node.operand), low, high):
            return text
        mask = high - low
        return f"({text} & {mask})" if low == 0 else f"(({text} + {-low} & {mask}) + {low})"


def _plain_scalars(body: ir.Seq) -> frozenset[str]:
    """Names of `local` buffers without axes that only loads and stores touch: plain Python variables."""
    found = {
        s.buffer.name
        for s in walk_statements(body)
        if isinstance(s, ir.Allocate) and not s.buffer.shape and s.scope == ir.LOCAL
    }
    pointed = {region.buffer.name for s in walk_statements(body) for region in regions(s)}
    return frozenset(found - pointed)


def _constant(node: ir.Const) -> str:
    if node.dtype is ir.DType.BOOL:
        return str(bool(node.value))
    if node.dtype.is_integer:
        return f"({node.value})" if node.value < 0 else str(node.value)
    rounded = "rt_f32" if node.dtype is ir.DType.F32 else ""
    return f"{rounded}(float({str(float(node.value))!r}))"
