"""The last look at names of the C that stem from several names of the user: no two may be the same."""

from __future__ import annotations

from collections.abc import Iterator

from bytewright.codegen.interface import Interface, planned_offsets
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.border import Border
from bytewright.ir.module import Module

_OF_THE_MODEL = (
    "STACK_PLANNED_BYTES",
    "STACK_SIZE",
    "ALIGNED",
    "SECTION",
    "STEP",
    "CHECK_RANGE",
    "ARENA_DEPTH",
)


def check_names(module: Module, interface: Interface) -> None:
    """Refuses names that meet: those of macros and enumerators, and those of members of the context.

    Raises:
        CompileError: BW109, with what both stand for.
    """
    for names in (_macros(module, interface), _members(interface)):
        found: dict[str, str] = {}
        for name, meaning in names:
            other = found.setdefault(name, meaning)
            if other != meaning:
                message = f"{other} and {meaning} both become '{name}' in C"
                raise CompileError(Diagnostic("BW109", message, help="rename one of the two"))


def _macros(module: Module, interface: Interface) -> Iterator[tuple[str, str]]:
    prefix = interface.prefix
    yield from ((f"{prefix}_{name}", f"macro '{prefix}_{name}' of the model") for name in _OF_THE_MODEL)
    for pool in (*interface.workspaces, *interface.parameters):
        for what in ("SIZE", "ALIGN", "INITIALIZER"):
            yield interface.macro(pool, what), f"pool '{pool.pool.name}'"
    for border, ports in ((Border.INPUT, interface.inputs), (Border.OUTPUT, interface.outputs)):
        for port in ports:
            for what in ("SIZE", "ELEMENTS", "RANK", "SHAPE", "SCALE", "ZERO_POINT"):
                yield interface.port_macro(border, port, what), f"{border.value} '{port.name}'"
    for arena in interface.arenas:
        for name in (interface.arena_macro(arena), interface.pool_macro(arena)):
            yield name, f"the arena of pool '{arena.pool.pool.name}'"
    for symbol in interface.symbols:
        yield interface.bound_macro(symbol), f"the bound of '{symbol.name}'"
    for buffer, _ in planned_offsets(module):
        pool_name = buffer.scope.pool if buffer.scope is not None else None
        yield interface.offset_macro(buffer), f"the offset of '{buffer.name}' in pool '{pool_name}'"


def _members(interface: Interface) -> Iterator[tuple[str, str]]:
    for pool in (*interface.workspaces, *interface.parameters):
        yield pool.identifier, f"pool '{pool.pool.name}'"
    for arena in interface.arenas:
        yield arena.member, f"the arena of pool '{arena.pool.pool.name}'"
