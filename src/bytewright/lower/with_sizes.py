"""Kernels of extents that the data decides: each reads from memory how large they are, and has room for the most.

So the entry knows nothing of such extents: its buffers are as large as the most, and a step is given what says the size
as it is given any tensor. What the data asks for beyond the most is never touched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.walk import walk_expression
from bytewright.lower.kernel import Argument, LoweredKernel, ScalarArgument, TensorArgument
from bytewright.ops.sizes import SIZE


def largest(shape: Sequence[ir.Extent], sizes: Mapping[ir.Symbol, str]) -> tuple[ir.Extent, ...]:
    """A shape with the most of each extent that the data decides."""
    return tuple(ir.upper_bound(extent) if ir.symbol_in(extent) in sizes else extent for extent in shape)


def with_sizes(
    kernel: LoweredKernel, sizes: Mapping[ir.Symbol, str], names: set[str]
) -> tuple[tuple[ir.PrimFunc, ...], LoweredKernel]:
    """The functions of a kernel that is given such extents, and how it is called instead: it calls what it was.

    Args:
        kernel: A kernel.
        sizes: By extents the values that say them.
        names: Those that kernels have; what it calls gets one.
    """
    by_name = {symbol.name: symbol for symbol in sizes}
    used = [by_name[name] for name in _scalars(kernel) if name in by_name]
    function = kernel.function
    if not used:
        return (function,), kernel
    if function.job is not None:
        return _of_most(kernel, sizes)
    inner = replace(function, name=unique_name(f"{function.name}_sized", names))
    return _reading(kernel, inner, used, sizes)


def _scalars(kernel: LoweredKernel) -> list[str]:
    return [p.name for p in kernel.function.parameters if isinstance(p, ir.ScalarParameter)]


def _of_most(
    kernel: LoweredKernel, sizes: Mapping[ir.Symbol, str]
) -> tuple[tuple[ir.PrimFunc, ...], LoweredKernel]:
    """A copy by a device that runs no code: of all that there is room for."""
    by_name = {symbol.name for symbol in sizes}
    parameters: list[ir.Parameter] = []
    arguments: list[Argument] = []
    for parameter, argument in zip(kernel.function.parameters, kernel.arguments, strict=True):
        if isinstance(parameter, ir.BufferParameter):
            buffer = replace(parameter.buffer, shape=largest(parameter.buffer.shape, sizes))
            parameters.append(replace(parameter, buffer=buffer))
        elif parameter.name not in by_name:
            parameters.append(parameter)
        else:
            continue
        arguments.append(argument)
    function = replace(kernel.function, parameters=tuple(parameters))
    return (function,), replace(kernel, function=function, arguments=tuple(arguments))


def _reading(
    kernel: LoweredKernel, inner: ir.PrimFunc, used: Sequence[ir.Symbol], sizes: Mapping[ir.Symbol, str]
) -> tuple[tuple[ir.PrimFunc, ...], LoweredKernel]:
    """The kernel that reads the sizes, and calls what computes with them."""
    function, of_sizes = kernel.function, {symbol.name for symbol in used}
    body = BodyBuilder((*(parameter.name for parameter in function.parameters), *of_sizes))
    parameters: list[ir.Parameter] = []
    arguments: list[Argument] = []
    passed: list[ir.Region | ir.Expr] = []
    for parameter, argument in zip(function.parameters, kernel.arguments, strict=True):
        if isinstance(parameter, ir.BufferParameter):
            buffer = replace(parameter.buffer, shape=largest(parameter.buffer.shape, sizes))
            parameters.append(replace(parameter, buffer=buffer))
            arguments.append(argument)
            passed.append(ir.Region(buffer))
        elif isinstance(argument, ScalarArgument) and _is_of(argument.value, of_sizes):
            passed.append(argument.value)
        else:
            parameters.append(parameter)
            arguments.append(argument)
            assert isinstance(parameter, ir.ScalarParameter)
            passed.append(parameter.variable)
    for symbol in used:
        size = ir.Buffer(body.unique_name("size"), SIZE.shape, SIZE.dtype, SIZE.dtype.size_bytes)
        parameters.insert(0, ir.BufferParameter(size, ir.Access.READ, scope=ir.GLOBAL))
        arguments.insert(0, TensorArgument(sizes[symbol]))
        value = ir.minimum(ir.maximum(load(size, 0), symbol.lower), symbol.upper)
        body.emit(ir.Let(ir.Var(symbol.name, ir.DType.I32), value))
    body.call(inner.name, *passed, touched_by=kernel.touched_by, where=function.where)
    outer = replace(function, parameters=tuple(parameters), body=body.finish())
    return (inner, outer), replace(kernel, function=outer, arguments=tuple(arguments), touched_by=None)


def _is_of(value: ir.Expr, names: set[str]) -> bool:
    """Whether it is computed from extents that the data decides."""
    return any(isinstance(each, ir.Var) and each.name in names for each in walk_expression(value))
