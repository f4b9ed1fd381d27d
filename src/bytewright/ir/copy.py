"""Copies of whole buffers as kernels: how they are made, and whether a kernel is one.

A device may carry such a kernel out as a job of its own (`Job.COPY`), without code that was compiled for it; so what
the body says must be a copy and nothing else.
"""

from bytewright.ir.address import extent_expr
from bytewright.ir.expr import Buffer, Const, Expr, Load, Var
from bytewright.ir.prim import (
    Access,
    BufferParameter,
    For,
    Job,
    LoopKind,
    PrimFunc,
    ScalarParameter,
    Seq,
    Statement,
    Store,
)
from bytewright.ir.scope import Scope
from bytewright.ir.types import DType, symbols_in
from bytewright.ir.where import NOWHERE, Where


def copy_kernel(
    name: str,
    buffer: Buffer,
    device: str,
    scopes: tuple[Scope | None, Scope | None] = (None, None),
    job: Job | None = None,
    where: Where = NOWHERE,
) -> PrimFunc:
    """A kernel `name(source, destination)` that copies all elements of buffers like the one that is given.

    Behind the buffers it takes the symbols of their extents, in their order.

    Args:
        name: Of the kernel.
        buffer: Gives shape, type and alignment; its name does not count.
        device: The device that copies.
        scopes: Those of source and destination.
        job: `COPY` where the device copies without compiled code.
        where: What is copied.
    """
    source, destination = (
        Buffer(role, buffer.shape, buffer.dtype, buffer.alignment) for role in ("source", "destination")
    )
    symbols = [symbol.name for symbol in symbols_in(buffer.shape)]
    parameters = (
        BufferParameter(source, Access.READ, scope=scopes[0]),
        BufferParameter(destination, Access.WRITE, scope=scopes[1]),
        *(ScalarParameter(Var(symbol, DType.I32)) for symbol in symbols),
    )
    indices = _indices(len(buffer.shape), {"source", "destination", *symbols})
    body: Statement = Store(destination, indices, Load(source, indices))
    for index, extent in reversed(list(zip(indices, buffer.shape, strict=True))):
        body = For(index, Const(0, DType.I32), extent_expr(extent), Seq((body,)))
    return PrimFunc(name, parameters, Seq((body,)), device=device, where=where, job=job)


def is_whole_copy(function: PrimFunc) -> bool:
    """Whether a function copies all of its first parameter to its second, which is like it, and does nothing else.

    Its loops run over the axes, outermost first, and every element keeps its place.
    """
    buffers = function.buffer_parameters
    if len(buffers) != 2 or [p.access for p in buffers] != [Access.READ, Access.WRITE]:
        return False
    source, destination = (parameter.buffer for parameter in buffers)
    if (source.shape, source.dtype) != (destination.shape, destination.dtype):
        return False
    if source.rows is not None or destination.rows is not None:
        return False
    indices: list[Expr] = []
    body: Seq | Statement = function.body
    for extent in source.shape:
        match body:
            case Seq(statements=(For(begin=Const(value=0), kind=LoopKind.SERIAL) as loop,)):
                if loop.end != extent_expr(extent):
                    return False
                indices.append(loop.variable)
                body = loop.body
            case _:
                return False
    order = tuple(indices)
    return body == Seq((Store(destination, order, Load(source, order)),))


def _indices(num_axes: int, taken: set[str]) -> tuple[Var, ...]:
    """A variable for each axis, of names that are not taken."""
    found: list[Var] = []
    for axis in range(num_axes):
        name = f"i{axis}"
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(Var(name, DType.I32))
    return tuple(found)
