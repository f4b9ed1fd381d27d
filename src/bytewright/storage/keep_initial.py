"""Constants for what states begin with, where that is not the same byte throughout.

No step reads them: `<model>_reset` copies them. Others it makes of the byte.
"""

from collections.abc import Iterator
from dataclasses import replace

from bytewright import ir


def keep_initial(module: ir.Module) -> ir.Module:
    """Returns the module with a constant for each state that begins with different bytes."""
    known = {constant.buffer.name for constant in module.constant_buffers}
    added = tuple(constant for constant in _wanted(module) if constant.buffer.name not in known)
    return replace(module, constant_buffers=(*module.constant_buffers, *added)) if added else module


def initial_name(state: str) -> str:
    """`h/initial`: the constant that a state's buffer begins with."""
    return f"{state}/initial"


def initial_constants(module: ir.Module) -> frozenset[str]:
    """The names of the constants that states begin with."""
    return frozenset(constant.buffer.name for constant in _wanted(module))


def _wanted(module: ir.Module) -> Iterator[ir.ConstantBuffer]:
    for buffer, port in zip(ir.state_buffers(module), module.state, strict=True):
        if port.initial is not None and len({*port.initial.content}) > 1:
            own = replace(buffer, name=initial_name(buffer.name))
            yield ir.ConstantBuffer(own, port.initial, ir.Storage(ir.GLOBAL))
