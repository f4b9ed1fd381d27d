"""Writes into each allocation of the entry which pools it may end in, before any is chosen.

    candidates = resolve(scope) ∩ pools of its role ∩ pools of every device that touches it ∩ its annotation

Touch is computed from the program (`touch.py`), and what narrows a buffer because of another device is written down
with it. Where one pool remains, the scope says so. Inputs and outputs that the application brings have no pools to
choose from, so every device that touches them must reach whatever memory the application may have them in.
"""

from __future__ import annotations

from dataclasses import replace

from bytewright.diagnostics import Collector
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import CANDIDATE_POOLS, Allocate, PrimFunc, Statement
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import WORKSPACE, Scope, join_scopes, pool_scope
from bytewright.storage.candidates import candidate_pools, check_memory_of_caller, is_left_to_a_pass
from bytewright.storage.clock import LiveBuffer, read_clock
from bytewright.storage.touch import reasons_beside
from bytewright.target.model import Pool, Target


def attach_candidates(module: Module, target: Target) -> Module:
    """Returns the module with `candidate_memory_pools` on every allocation of the entry that is used.

    What carries a tag that some pass lowers stays as it is.

    Raises:
        CompileError: BW301 for buffers that no pool may hold, all at once, with what each pool fails, and for inputs
            and outputs that the application may bring where a device does not reach them.
    """
    collector = Collector()
    chosen: dict[str, tuple[LiveBuffer, tuple[Pool, ...]]] = {}
    entry = module.main
    given = {parameter.buffer.name: parameter for parameter in entry.buffer_parameters}
    for live in read_clock(module, target).buffers:
        with collector.catch():
            if live.allocation is None:
                check_memory_of_caller(live, given[live.buffer.name], entry.device, target)
            elif not is_left_to_a_pass(live.buffer, target):
                chosen[live.buffer.name] = (live, candidate_pools(live, target))
    collector.stop_if_any()
    entries = tuple(_annotate(entry, chosen) for entry in module.entries)
    return replace(module, entries=entries)


def _annotate(entry: PrimFunc, chosen: dict[str, tuple[LiveBuffer, tuple[Pool, ...]]]) -> PrimFunc:
    def narrow(buffer: Buffer) -> Buffer:
        if buffer.name not in chosen:
            return buffer
        return replace(buffer, scope=_narrowed(buffer.scope, chosen[buffer.name][1]))

    def annotate(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Allocate) or statement.buffer.name not in chosen:
            return (statement,)
        live, pools = chosen[statement.buffer.name]
        names = tuple(pool.name for pool in pools)
        is_narrowed = _narrowed(live.buffer.scope, pools) != live.buffer.scope
        if statement.annotation(CANDIDATE_POOLS) == names and not is_narrowed:
            return (statement,)
        began = live.buffer.scope or WORKSPACE
        narrowed = statement.annotated(CANDIDATE_POOLS, names)
        for reason in reasons_beside(entry.device, live.touches):
            narrowed = narrowed.because(f"attach_candidates: {reason}")
        touched = ", ".join(live.devices)
        reason = f"attach_candidates: {began}, touched by {touched}: {{{', '.join(names)}}}"
        return (narrowed.because(reason),)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(buffer=narrow, statement=annotate)))


def _narrowed(scope: Scope | None, pools: tuple[Pool, ...]) -> Scope | None:
    """One pool left: exactly that pool. Several: some workspace."""
    return join_scopes(scope, pool_scope(pools[0].name) if len(pools) == 1 else WORKSPACE)
