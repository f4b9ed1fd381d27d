"""Statements of kernels and of the entry as C text: one writer, which the entry's tells where its buffers are."""

from collections.abc import Sequence
from itertools import pairwise
from typing import assert_never

from bytewright import ir
from bytewright.codegen.expressions import (
    C_TYPES,
    c_element,
    c_element_type,
    c_expression,
    c_stored,
    c_value,
    is_in_memory,
)
from bytewright.codegen.writer import Writer
from bytewright.diagnostics import InternalError


class StatementWriter:
    """Writes the statements of one function.

    What is here is a kernel's: its buffers are pointers that it is given, and arrays and variables that it declares.
    The entry has a writer of its own (`steps.py`), which says otherwise where its buffers are, and what its calls are.
    """

    def __init__(self, writer: Writer, kernel: ir.PrimFunc | None = None) -> None:
        self.writer = writer
        given = () if kernel is None else kernel.context_parameters
        self.contexts = {parameter.device: parameter.name for parameter in given}

    def address(self, buffer: ir.Buffer, access: ir.Access) -> str:
        """The C text of a buffer's address, typed for this access: here the name, as its declaration has the type."""
        del access
        return buffer.name

    def declaration(self, allocation: ir.Allocate) -> str | None:
        """What declares a buffer that the function allocates; None for one that is somewhere already."""
        buffer, scope = allocation.buffer, allocation.scope
        if not ir.is_on_stack(scope):
            raise InternalError(f"storage of '{buffer.name}' ({scope}) was not decided")
        size = f"[{ir.num_elements(buffer)}]" if is_in_memory(buffer) else ""
        is_strict = size and buffer.alignment > buffer.dtype.size_bytes
        aligned = f" __attribute__((aligned({buffer.alignment})))" if is_strict else ""
        return f"{c_element_type(buffer)} {buffer.name}{size}{aligned};"

    def sequence(self, sequence: ir.Seq) -> None:
        """Writes statements in order. A view that they store to is one of `name_values`, and not read only."""
        stored = {
            statement.buffer.name for statement in sequence.statements if isinstance(statement, ir.Store)
        }
        statements = iter(pairwise((*sequence.statements, ir.Seq(()))))
        for statement, following in statements:
            if isinstance(statement, ir.Allocate) and isinstance(following, ir.Store):
                buffer = statement.buffer
                if following.buffer == buffer and not is_in_memory(buffer):  # a variable, and its first value
                    target = f"{c_element_type(buffer)} {buffer.name}"
                    self.writer.assigned(target, c_value(following.value))
                    next(statements)
                    continue
            if isinstance(statement, ir.Allocate) and isinstance(following, ir.InstructionCall):
                buffer = statement.buffer
                if not is_in_memory(buffer) and _returned(following) == buffer:  # likewise
                    self._instruction_call(following, f"{c_element_type(buffer)} {buffer.name}")
                    next(statements)
                    continue
            if isinstance(statement, ir.View):
                self._view(statement, statement.buffer.name in stored)
            else:
                self.statement(statement)

    def statement(self, statement: ir.Statement) -> None:
        """Writes one statement."""
        match statement:
            case ir.InstructionCall():
                returned = _returned(statement)
                self._instruction_call(statement, None if returned is None else returned.name)
            case ir.Seq():
                self._block(statement)
            case ir.For():
                self.loop(statement)
            case ir.Allocate():
                declaration = self.declaration(statement)
                if declaration is not None:
                    self.writer.line(declaration)
            case ir.View():
                self._view(statement, is_written=False)
            case ir.Store():
                self._store(statement)
            case ir.If():
                self._if(statement)
            case ir.Let():
                variable = statement.variable
                target = f"const {C_TYPES[variable.dtype]} {variable.name}"
                self.writer.assigned(target, c_value(statement.value))
            case ir.Call():
                self.call(statement)
            case _:
                assert_never(statement)

    def call(self, call: ir.Call) -> None:
        """Writes a call."""
        if call.kind is not ir.CallKind.EXTERN:
            raise InternalError(f"calls of kind '{call.kind.value}' have no C text in a kernel")
        accesses = [ir.Access.READ_WRITE] * len(call.arguments)
        self.writer.listed(call.callee, self.arguments(call, accesses), ";")

    def _instruction_call(self, call: ir.InstructionCall, target: str | None) -> None:
        """Writes a call of the function that stands for an instruction; what it returns, if anything, has a target."""
        instruction = call.instruction
        results = instruction.results
        by_address = results if len(results) > 1 else ()
        arguments: list[str] = []
        for parameter, argument in zip(instruction.parameters, call.arguments, strict=True):
            if isinstance(parameter, ir.ScalarParameter) or isinstance(argument, ir.Expr):
                arguments.append(self.argument(argument, ir.Access.READ))
            elif parameter.is_value:
                is_new = parameter.access is ir.Access.WRITE and parameter not in by_address
                front = "&" if parameter in by_address else ""
                arguments += [] if is_new else [f"{front}{argument.buffer.name}"]
            else:
                arguments.append(self.region(argument, parameter.access))
        head = instruction.name if target is None else f"{target} = {instruction.name}"
        self.writer.listed(head, arguments, ";")

    def arguments(self, call: ir.Call, accesses: Sequence[ir.Access]) -> list[str]:
        """What a call passes, to a function that touches each argument so."""
        return [
            self.argument(argument, access) for argument, access in zip(call.arguments, accesses, strict=True)
        ]

    def argument(self, argument: ir.Argument, access: ir.Access) -> str:
        """What stands for an argument."""
        match argument:
            case ir.Region():
                return self.region(argument, access)
            case ir.ContextArgument():
                return self.context(argument.device)
            case _:
                return c_value(argument)

    def context(self, device: str) -> str:
        """What stands for the context of a device: here the parameter that the kernel was given."""
        return self.contexts[device]

    def region(self, region: ir.Region, access: ir.Access) -> str:
        """The address of a region's first element."""
        address, index = self.address(region.buffer, access), ir.region_index(region)
        if isinstance(index, ir.Const) and index.value == 0:
            return address
        if address == region.buffer.name:
            return f"&{address}[{c_expression(index)}]"
        text = c_expression(index)
        return f"{address} + ({text})" if " " in text else f"{address} + {text}"

    def _block(self, block: ir.Seq) -> None:
        """In braces where something is declared, which ends with them."""
        if any(self._declares(statement) for statement in block.statements):
            with self.writer.block(""):
                self.sequence(block)
        else:
            self.sequence(block)

    def _declares(self, statement: ir.Statement) -> bool:
        if isinstance(statement, ir.Allocate):
            return self.declaration(statement) is not None
        return isinstance(statement, ir.Let | ir.View)

    def loop(self, loop: ir.For) -> None:
        """Writes a loop."""
        name, begin, end = loop.variable.name, c_expression(loop.begin), c_expression(loop.end)
        c_type = C_TYPES[loop.variable.dtype]
        if loop.note:
            self.writer.comment(loop.note)
        with self.writer.block(f"for ({c_type} {name} = {begin}; {name} < {end}; ++{name})"):
            self.sequence(loop.body)

    def _view(self, view: ir.View, is_written: bool) -> None:
        source = self.region(view.source, ir.Access.READ)
        if view.condition is not None and view.otherwise is not None:
            otherwise = self.region(view.otherwise, ir.Access.READ)
            condition = c_expression(view.condition)
            condition = condition if isinstance(view.condition, ir.Var) else f"({condition})"
            source = f"{condition} ? {source} : {otherwise}"
        element = f"{'' if is_written else 'const '}{c_element_type(view.buffer)}"
        self.writer.assigned(f"{element} *const {view.buffer.name}", source)

    def _store(self, store: ir.Store) -> None:
        target = c_element(store.buffer, store.indices)
        increment = _increment(store)
        if increment is not None:
            self.writer.assigned(target, c_expression(increment), "+=")
        else:
            self.writer.assigned(target, c_stored(store.buffer, store.value))

    def condition(self, condition: ir.Expr) -> str:
        """The C text of what a branch depends on."""
        return c_expression(condition)

    def _if(self, statement: ir.If) -> None:
        head = f"if ({self.condition(statement.condition)})"
        otherwise = statement.otherwise
        if otherwise is None or not otherwise.statements:
            with self.writer.block(head):
                self.sequence(statement.then)
            return
        with self.writer.block(head, "} else {"):
            self.sequence(statement.then)
        with self.writer.indented():
            self.sequence(otherwise)
        self.writer.line("}")


def _increment(store: ir.Store) -> ir.Expr | None:
    """x, where the statement is `element = element + x` and C adds without narrowing."""
    value = store.value
    if (
        isinstance(value, ir.Binary)
        and value.operator is ir.BinaryOperator.ADD
        and c_value(value) == c_expression(value)
        and value.left == ir.Load(store.buffer, store.indices)
    ):
        return value.right
    return None


def _returned(call: ir.InstructionCall) -> ir.Buffer | None:
    """The register or variable that an instruction's function returns, if it does."""
    results = call.instruction.results
    if len(results) != 1:
        return None
    argument = call.arguments[call.instruction.parameters.index(results[0])]
    return argument.buffer if isinstance(argument, ir.Region) else None
