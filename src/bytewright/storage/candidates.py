"""Candidate pools: the pools that a buffer of the entry may end in.

candidates = resolve(scope) ∩ pools of its role ∩ pools of every device that touches it ∩ its annotation
"""

from __future__ import annotations

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.expr import Buffer
from bytewright.ir.prim import CANDIDATE_POOLS, Access, BufferParameter
from bytewright.ir.scope import WORKSPACE, Scope, is_within, pool_scope
from bytewright.storage.clock import LiveBuffer
from bytewright.storage.touch import Touches
from bytewright.target.model import Pool, Target


def is_left_to_a_pass(buffer: Buffer, target: Target) -> bool:
    """Whether the buffer's scope has a tag that names the pass which lowers it: no other pass decides it."""
    tag = target.scope_tag(buffer.scope.tag) if buffer.scope is not None and buffer.scope.tag else None
    return tag is not None and tag.lowering_pass is not None


def candidate_pools(live: LiveBuffer, target: Target) -> tuple[Pool, ...]:
    """The workspace pools for a buffer, in preference order.

    Raises:
        CompileError: BW301 if there is none, with what each pool fails.
    """
    scope = live.buffer.scope or WORKSPACE
    annotated = live.allocation.annotation(CANDIDATE_POOLS) if live.allocation else None
    refusals: list[str] = []
    chosen: list[Pool] = []
    for pool in target.workspace_pools:
        reason = _refusal(pool, scope, live, annotated if isinstance(annotated, tuple) else None)
        if reason is None:
            chosen.append(pool)
        else:
            refusals.append(f"{pool.name}  {reason}")
    if isinstance(annotated, tuple):
        chosen.sort(key=lambda pool: annotated.index(pool.name))
    if not chosen:
        raise CompileError(
            Diagnostic(
                "BW301",
                f"'{live.buffer.name}' cannot be placed in any workspace pool",
                notes=(
                    *(refusals or [f"target '{target.name}' has no workspace pool"]),
                    *_reasons_of_unreached(live, target),
                ),
                help="--workspace NAME[=SIZE][@MEMORY] adds a pool",
            )
        )
    return tuple(chosen)


def check_memory_of_caller(live: LiveBuffer, parameter: BufferParameter, device: str, target: Target) -> None:
    """Refuses an input or output that the application may have where a device that touches it does not reach.

    Args:
        live: The buffer.
        parameter: Of the entry, for the same buffer.
        device: The entry's, which the application runs on.
        target: The target.

    Raises:
        CompileError: BW301, with the first such device and memory, and why the device counts.
    """
    side = "input" if parameter.access is Access.READ else "output"
    for memory in target.device(device).reached_memories:
        if side == "output" and not target.memory(memory).is_writable:
            continue
        for touch in live.touches:
            if not target.device(touch.device).reaches(memory):
                raise CompileError(
                    Diagnostic(
                        "BW301",
                        f"the application may have {side} '{live.buffer.name}' in memory '{memory}', which device "
                        f"'{touch.device}' does not reach",
                        notes=(touch.reason,),
                        help="--io workspace",
                    )
                )


def _refusal(pool: Pool, scope: Scope, live: LiveBuffer, annotated: tuple[str, ...] | None) -> str | None:
    if not is_within(pool_scope(pool.name), scope):
        return f"is not in its scope '{scope}'"
    unreached = _unreached(pool, live)
    if unreached:
        return f"is not for device '{unreached[0].device}', which touches it"
    if annotated is not None and pool.name not in annotated:
        return f"is not among its candidates {', '.join(annotated)}"
    return None


def _unreached(pool: Pool, live: LiveBuffer) -> Touches:
    """The devices that touch a buffer and may not use a pool, by name."""
    touches = (touch for touch in live.touches if pool.devices and touch.device not in pool.devices)
    return tuple(sorted(touches, key=lambda touch: touch.device))


def _reasons_of_unreached(live: LiveBuffer, target: Target) -> tuple[str, ...]:
    """Why the devices count that stand in a pool's way."""
    touches = (touch for pool in target.workspace_pools for touch in _unreached(pool, live))
    return tuple(dict.fromkeys(touch.reason for touch in touches))
