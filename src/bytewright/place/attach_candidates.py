"""Writes into each allocation of the entry, and each constant, which pools it may end in, before any is chosen.

    candidates = resolve(scope) ∩ pools of its role ∩ pools of every device that touches it ∩ its annotation

Touch is computed from the program (`touch.py`), and what narrows a buffer because of another device is written down
with it. Where one pool remains, the scope says so. Inputs and outputs that the application brings have no pools to
choose from, so every device that touches them must reach whatever memory the application may have them in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bytewright.diagnostics import Collector
from bytewright.ir.analyses.clock import LiveBuffer, read_clock
from bytewright.ir.analyses.touch import constant_touches, reasons_beside
from bytewright.ir.expr import Buffer
from bytewright.ir.module import ConstantBuffer, Module
from bytewright.ir.prim import (
    Allocate,
    PrimFunc,
    Statement,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import WORKSPACE, Scope, join_scopes, lowering_pass, pool_scope
from bytewright.ir.storage import Storage
from bytewright.place.candidates import Wanted, candidate_pools, check_memory_of_caller
from bytewright.target.model import Role, Target


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A buffer with the pools that remain for it."""

    wanted: Wanted
    pools: tuple[str, ...]
    device: str  # of the entry

    @property
    def scope(self) -> Scope | None:
        """One pool left: exactly that pool. Several: any of the role."""
        if len(self.pools) == 1:
            return join_scopes(self.wanted.buffer.scope, pool_scope(self.pools[0]))
        return (
            join_scopes(self.wanted.buffer.scope, WORKSPACE)
            if self.is_workspace
            else self.wanted.buffer.scope
        )

    @property
    def is_workspace(self) -> bool:
        """Whether it goes to a workspace; a constant does not."""
        return self.wanted.role is Role.WORKSPACE

    def narrow(self, storage: Storage) -> Storage:
        """The record with the candidates, and why they are these; unchanged where nothing was narrowed."""
        if self.wanted.annotated == self.pools and self.scope == self.wanted.buffer.scope:
            return storage
        touched, names = ", ".join(self.wanted.devices), ", ".join(self.pools)
        reasons = (
            *reasons_beside(self.device, self.wanted.touches),
            f"{self.wanted.scope}, touched by {touched}: {{{names}}}",
        )
        return storage.narrowed(
            *(f"attach_candidates: {reason}" for reason in reasons), candidates=self.pools
        )


def attach_candidates(module: Module, target: Target) -> Module:
    """Returns the module with `candidate_memory_pools` on every constant and on the entry's allocations that are used.

    What carries a tag that some pass lowers stays as it is.

    Raises:
        CompileError: BW301 for buffers that no pool may hold, all at once, with what each pool fails, and for inputs
            and outputs that the application may bring where a device does not reach them.
    """
    collector = Collector()
    entry = module.main
    chosen: dict[str, _Chosen] = {}
    given = {parameter.buffer.name: parameter for parameter in entry.buffer_parameters}
    for live in read_clock(module, target).buffers:
        with collector.catch():
            if live.allocation is None:
                check_memory_of_caller(live, given[live.buffer.name], entry.device, target)
            elif lowering_pass(live.buffer.scope, target) is None:
                chosen[live.buffer.name] = _choose(_wanted(live, live.allocation), entry, target)
    touches = constant_touches(module, target)
    for constant in module.constant_buffers:
        if lowering_pass(constant.buffer.scope, target) is None:
            with collector.catch():
                wanted = Wanted(
                    constant.buffer,
                    Role.PARAMETERS,
                    touches[constant.buffer.name],
                    constant.storage.candidates,
                )
                chosen[constant.buffer.name] = _choose(wanted, entry, target)
    collector.stop_if_any()
    return replace(
        module,
        entries=tuple(_annotate(entry, chosen) for entry in module.entries),
        constant_buffers=tuple(_annotate_constant(c, chosen) for c in module.constant_buffers),
    )


def _wanted(live: LiveBuffer, allocation: Allocate) -> Wanted:
    storage = allocation.storage
    is_io = storage.border is not None
    return Wanted(live.buffer, Role.WORKSPACE, live.touches, storage.candidates, is_io)


def _choose(wanted: Wanted, entry: PrimFunc, target: Target) -> _Chosen:
    return _Chosen(wanted, tuple(pool.name for pool in candidate_pools(wanted, target)), entry.device)


def _annotate(entry: PrimFunc, chosen: dict[str, _Chosen]) -> PrimFunc:
    def narrow(buffer: Buffer) -> Buffer:
        return replace(buffer, scope=chosen[buffer.name].scope) if buffer.name in chosen else buffer

    def annotate(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Allocate) or statement.buffer.name not in chosen:
            return (statement,)
        return (replace(statement, storage=chosen[statement.buffer.name].narrow(statement.storage)),)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(buffer=narrow, statement=annotate)))


def _annotate_constant(constant: ConstantBuffer, chosen: dict[str, _Chosen]) -> ConstantBuffer:
    if constant.buffer.name not in chosen:
        return constant
    narrowed = chosen[constant.buffer.name]
    buffer = replace(constant.buffer, scope=narrowed.scope)
    return replace(constant, buffer=buffer, storage=narrowed.narrow(constant.storage))
