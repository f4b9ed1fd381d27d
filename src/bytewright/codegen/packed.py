"""Packed forms: `<model>_packed.h` and `.c`, and how the entry calls them.

A packed form checks number and type codes of what it is given, calls the plain function, and returns 0 or an error.
The resource belongs to the runtime: nothing here reads it, and no plain function is given it.
"""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bytewright import ir
from bytewright.codegen.arena import requests_of
from bytewright.codegen.expressions import C_TYPES, memory_type
from bytewright.codegen.writer import Writer
from bytewright.ir.packed import most_packed_arguments, packed_calls, packed_name
from bytewright.record.names import ARGUMENT_CODES, Names, by_entry
from bytewright.record.plan import Plan

_ARGUMENTS = "void *args, int32_t *type_codes, int32_t num_args, void *out, int32_t *out_code, void *resource"
# The numbers of ARGUMENT_CODES; runtimes of models have known them for years.
_CODE_VALUES = (0, 2, 3, 4)
_MEANINGS = (
    "member integer: a number of any integer type, or a truth value, 0 or 1",
    "member real: a number with a fraction, of either type",
    "member pointer, or constant where it is only read",
    "of out_code: nothing was returned",
)
_LIMITS: Mapping[ir.DType | None, tuple[str, str]] = {
    ir.DType.BOOL: ("0", "1"),
    ir.DType.I8: ("INT8_MIN", "INT8_MAX"),
    ir.DType.U8: ("0", "UINT8_MAX"),
    ir.DType.I16: ("INT16_MIN", "INT16_MAX"),
    ir.DType.I32: ("INT32_MIN", "INT32_MAX"),
    ir.DType.U32: ("0", "UINT32_MAX"),
}


@dataclass(frozen=True, slots=True)
class _Argument:
    """One argument of a packed form.

    Attributes:
        code: One of ARGUMENT_CODES.
        member: Of the union, that holds it.
        described: For the header: `x: const int8_t *`.
        dtype: Of a scalar.
        context_type: Of the context of a device, which has the pointer in it.
    """

    code: str
    member: str
    described: str
    dtype: ir.DType | None = None
    context_type: str | None = None

    def value(self, index: int) -> str:
        """What the plain function is given."""
        member = f"values[{index}].{self.member}"
        if self.context_type is not None:
            return f"({self.context_type}){{{member}}}"
        match self.dtype:
            case None | ir.DType.I64 | ir.DType.F64:
                return member
            case ir.DType.BOOL:
                return f"{member} != 0"
            case _:
                return f"({C_TYPES[self.dtype]}){member}"


def packed_kernels(module: ir.Module) -> tuple[ir.PrimFunc, ...]:
    """The kernels that the entry calls packed; of several prototypes of one function of the application, the first."""
    callees = {call.callee for entry in module.entries for call in packed_calls(entry)}
    found: dict[str, ir.PrimFunc] = {}
    for kernel in module.kernels:
        if kernel.name in callees:
            found.setdefault(packed_name(module.name, kernel), kernel)
    return tuple(found.values())


def packed_header(module: ir.Module, plan: Plan, names: Names) -> str:
    """The header: what an argument is, and the packed forms."""
    writer = Writer()
    writer.title(
        f"Packed forms of functions of model '{plan.model}': what a runtime calls that knows all functions by one type."
    )
    with writer.guarded(names.guard(names.packed_header), ("stdint.h",), is_for_cpp=True):
        writer.comment("What an argument is: its type code.")
        codes = zip(ARGUMENT_CODES, _CODE_VALUES, _MEANINGS, strict=True)
        writer.enumeration([f"{names.argument_code(c)} = {value} /* {what} */" for c, value, what in codes])
        writer.line()
        writer.comment("An argument: eight bytes on every machine. A pointer is at their beginning.")
        writer.line("typedef union {")
        with writer.indented():
            for member in ("int64_t integer;", "double real;", "void *pointer;", "const void *constant;"):
                writer.line(member)
        writer.line(f"}} {names.argument_type};")
        writer.line()
        writer.comment(
            f"All of them: args are num_args of {names.argument_type}, type_codes their codes. Nothing is written to "
            f"out, and {names.argument_code('NONE')} to out_code unless that is NULL. The resource is the caller's "
            f"own, and not looked at. Each returns {names.ok} or an error; {names.error('NULL')}, where args or "
            f"type_codes is NULL, and {names.error('ARGUMENTS')}, for another number, another code or an integer that "
            "its type does not hold, before anything is done. What pointers among the arguments point to is the "
            "caller's promise: forms of kernels pass them on as they are."
        )
        writer.line()
        for kernel in packed_kernels(module):
            described = [argument.described for argument in _arguments(kernel, names)]
            writer.prototype(
                _contract(kernel.symbol, described), packed_head(packed_name(module.name, kernel))
            )
        for alone, own in by_entry(plan, names) if plan.has_packed_entry else ():
            described = [argument.described for argument in _arguments_of_run(alone, own)]
            writer.prototype(_contract(own.run, described), packed_head(own.run_packed))
    return writer.text()


def _contract(function: str, arguments: Iterable[str]) -> str:
    return "\n".join((f"Calls {function}, with", *(f"  {argument}" for argument in arguments)))


def packed_head(name: str) -> str:
    """The head of a packed form."""
    return f"int32_t {name}({_ARGUMENTS})"


def packed_source(module: ir.Module, plan: Plan, names: Names) -> str:
    """The packed forms."""
    writer = Writer()
    writer.title(
        f"Packed forms of functions of model '{plan.model}': they check what they are given, and call."
    )
    headers = [names.packed_header, names.header, *([names.kernels_header] if packed_kernels(module) else [])]
    for header in headers:
        writer.line(f'#include "{names.included(header)}"')
    writer.line()
    writer.line("#include <stddef.h>")
    writer.line()
    _write_check(writer, names)
    for kernel in packed_kernels(module):
        arguments = _arguments(kernel, names)
        values = [argument.value(index) for index, argument in enumerate(arguments)]
        with _form(writer, names, packed_name(module.name, kernel), arguments):
            _write_kernel_call(writer, names, kernel, values)
    write_packed_entries(writer, plan, names)
    return writer.text()


def write_packed_entries(writer: Writer, plan: Plan, names: Names) -> None:
    """The packed forms of what the application runs, which follow from the plan."""
    for alone, own in by_entry(plan, names) if plan.has_packed_entry else ():
        arguments = _arguments_of_run(alone, own)
        with _form(writer, own, own.run_packed, arguments):
            _write_run_call(writer, alone, own, arguments)


def _write_check(writer: Writer, names: Names) -> None:
    writer.comment("Whether arguments are as many, and of such types, as a function takes.")
    given = "const void *args, const int32_t *type_codes, int32_t num_args"
    with writer.block(f"static int32_t check_arguments({given}, const int32_t *codes, int32_t num_codes)"):
        writer.refuse("num_args != num_codes", names.error("ARGUMENTS"))
        writer.refuse("(num_codes != 0) && ((args == NULL) || (type_codes == NULL))", names.error("NULL"))
        with writer.block("for (int32_t index = 0; index < num_codes; ++index)"):
            writer.refuse("type_codes[index] != codes[index]", names.error("ARGUMENTS"))
        writer.line(f"return {names.ok};")
    writer.line()


@contextmanager
def _form(
    writer: Writer, names: Names, name: str, arguments: Sequence[_Argument]
) -> Generator[None, None, None]:
    """A packed form: the checks, and then what is written inside, which returns."""
    with writer.block(packed_head(name)):
        codes = "NULL"
        if arguments:
            writer.line(f"const {names.argument_type} *const values = args;")
            expected = ", ".join(names.argument_code(argument.code) for argument in arguments)
            writer.wrapped(f"static const int32_t codes[{len(arguments)}] = {{{expected}}};")
            codes = "codes"
        given = ["args", "type_codes", "num_args", codes, str(len(arguments))]
        writer.listed("const int32_t checked = check_arguments", given, ";")
        writer.line("(void)out;")
        writer.line("(void)resource;")
        writer.refuse(f"checked != {names.ok}", "checked")
        for index, argument in enumerate(arguments):
            if argument.dtype in _LIMITS:
                lowest, highest = _LIMITS[argument.dtype]
                member = f"values[{index}].{argument.member}"
                writer.refuse(f"({member} < {lowest}) || ({member} > {highest})", names.error("ARGUMENTS"))
        with writer.block("if (out_code != NULL)"):
            writer.line(f"*out_code = {names.argument_code('NONE')};")
        yield
    writer.line()


def _write_kernel_call(writer: Writer, names: Names, kernel: ir.PrimFunc, values: list[str]) -> None:
    if kernel.external is not None and kernel.external.returns_status:
        outcome = f" == 0) ? {names.ok} : {names.error('EXTERNAL')};"
        writer.listed(f"return ({kernel.symbol}", values, outcome)
        return
    writer.listed(kernel.symbol, values, ";")
    writer.line(f"return {names.ok};")


def _write_run_call(writer: Writer, plan: Plan, names: Names, arguments: Sequence[_Argument]) -> None:
    values = [argument.value(index) for index, argument in enumerate(arguments)]
    context, *rest = values
    given = [context]
    for border in (side for side in ir.SIDES if f"{side.value}s" in plan.structures_of_run):
        tensors = plan.tensors(border)
        pointers, rest = rest[: len(tensors)], rest[len(tensors) :]
        members = [f".{t.c_name} = {pointer}" for t, pointer in zip(tensors, pointers, strict=True)]
        kind = names.inputs_type if border is ir.Border.INPUT else names.outputs_type
        writer.wrapped(f"const {kind} {border.value}s = {{{', '.join(members) or '0'}}};")
        given.append(f"&{border.value}s")
    writer.line()
    writer.listed(f"return {names.run}", [*given, *rest], ";")


def _arguments(kernel: ir.PrimFunc, names: Names) -> list[_Argument]:
    return [_argument(parameter, names) for parameter in kernel.parameters]


def _argument(parameter: ir.Parameter, names: Names) -> _Argument:
    match parameter:
        case ir.BufferParameter(buffer=buffer, access=access):
            return _pointer(buffer.name, buffer.dtype, is_read=access is ir.Access.READ)
        case ir.ScalarParameter(variable=variable):
            return _scalar(variable.name, variable.dtype)
        case ir.ContextParameter(name=name, device=device):
            described = f"{name}: void *, what the driver of device '{device}' keeps: self of its hooks"
            kind = names.device_context_type(device)
            return _Argument("POINTER", "pointer", described, context_type=kind)


def _pointer(name: str, dtype: ir.DType, *, is_read: bool) -> _Argument:
    member, constness = ("constant", "const ") if is_read else ("pointer", "")
    return _Argument("POINTER", member, f"{name}: {constness}{memory_type(dtype)} *")


def _scalar(name: str, dtype: ir.DType) -> _Argument:
    is_real = dtype in (ir.DType.F32, ir.DType.F64)
    code, member = ("FLOAT", "real") if is_real else ("INT", "integer")
    return _Argument(code, member, f"{name}: {C_TYPES[dtype]}", dtype)


def _arguments_of_run(plan: Plan, names: Names) -> list[_Argument]:
    """Context, inputs, outputs and extents, as the run function has them, but each tensor by itself."""
    found = [_Argument("POINTER", "pointer", f"context: {names.context_type} *")]
    if not plan.io_in_workspace:
        found += [_pointer(tensor.c_name, tensor.dtype, is_read=True) for tensor in plan.inputs]
        found += [_pointer(tensor.c_name, tensor.dtype, is_read=False) for tensor in plan.outputs]
    return [*found, *(_scalar(symbol.name, ir.DType.I32) for symbol in plan.symbols)]


def write_argument_arrays(writer: Writer, module: ir.Module, plan: Plan, names: Names) -> None:
    """The variables of the run function that its packed calls share, if it has any."""
    num_arguments = most_packed_arguments(module.main)
    if num_arguments:
        writer.line(f"{names.argument_type} {names.packed_arguments}[{num_arguments}];")
        writer.line(f"int32_t {names.packed_codes}[{num_arguments}];")
    if any(
        not requests_of(call, plan) for call in packed_calls(module.main)
    ):  # others have a status of their own
        writer.line(f"int32_t {names.packed_status};")


def write_packed_call(
    writer: Writer, names: Names, kernel: ir.PrimFunc, values: Sequence[str], status: str
) -> None:
    """A call of the entry: the arguments, and what it returns in a variable.

    Args:
        writer: Writes them.
        names: Of the bundle.
        kernel: What is called,
        values: and with what, as C text.
        status: The variable.
    """
    for index, (argument, value) in enumerate(zip(_arguments(kernel, names), values, strict=True)):
        given = value if argument.context_type is None else f"{value}.self"
        if argument.dtype is ir.DType.F32:
            given = f"(double){given}" if re.fullmatch(r"[\w.]+", given) else f"(double)({given})"
        writer.assigned(f"{names.packed_arguments}[{index}].{argument.member}", given)
        writer.assigned(f"{names.packed_codes}[{index}]", names.argument_code(argument.code))
    arrays = [names.packed_arguments, names.packed_codes] if values else ["NULL", "NULL"]
    given = [*arrays, str(len(values)), "NULL", "NULL", "NULL"]
    writer.listed(f"{status} = {packed_name(names.model, kernel)}", given, ";")
