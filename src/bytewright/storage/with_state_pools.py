"""Pools for what survives runs, where the target has none of its own.

One as large as the states are, in the memory of the first workspace pool that leaves room for it, if all reach that
who touch a state; where there is none, each state goes to the first memory that will do for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import compile_error
from bytewright.ir.analyses.touch import Touches, holders, touch_table, united
from bytewright.target.capacity import bytes_left, with_remainders
from bytewright.target.check import with_default_devices
from bytewright.target.model import (
    DEFAULT_ALIGNMENT,
    DEFAULT_PROVIDER,
    DEFAULT_STATE_POOL,
    Pool,
    Role,
    Target,
)

_Chosen = dict[str, tuple[ir.Buffer, ...]]


def with_state_pools(module: ir.Module, target: Target) -> Target:
    """The target with pools for states, if the module needs some and the target has none.

    Raises:
        CompileError: BW301, no memory of a workspace has room for a state and is reached by all who touch it.
    """
    buffers = ir.state_buffers(module)
    if not buffers or target.pools_of(Role.STATE):
        return target
    pools = _Pools(module, target, _touches(module, target))
    together = pools.put({}, buffers, [])
    if together is not None:
        return pools.wider(together)
    chosen: _Chosen = {}
    for buffer in buffers:
        lacking: list[str] = []
        found = pools.put(chosen, (buffer,), lacking)
        if found is None:
            raise compile_error(
                "BW301",
                f"state '{buffer.name}' of {ir.size_bytes(buffer)} B has room in no memory of a workspace that all "
                "reach who touch it",
                tuple(lacking),
                f'give it a pool of its own in the target file: [[state]] name = "{DEFAULT_STATE_POOL}" and a memory',
            )
        chosen = found
    return pools.wider(chosen)


def _touches(module: ir.Module, target: Target) -> dict[str, Touches]:
    """Who touches each state, by name; the device of the entry begins it."""
    table, found = touch_table(module, target), dict[str, Touches]()
    for entry in module.entries:
        for touches in (table.of_buffers(entry), holders(entry, module)):
            for name, those in touches.items():
                found[name] = united(found.get(name, ()), those)
    return found


@dataclass(frozen=True, slots=True)
class _Pools:
    """Ways to distribute states on memories: by memory, those that are there."""

    module: ir.Module
    target: Target
    touches: Mapping[str, Touches]

    def put(self, chosen: _Chosen, buffers: tuple[ir.Buffer, ...], lacking: list[str]) -> _Chosen | None:
        """What is chosen with more states, all in one memory; None if none will do: `lacking` says what for."""
        for memory in dict.fromkeys(pool.memory for pool in self.target.workspace_pools):
            more = {**chosen, memory: (*chosen.get(memory, ()), *buffers)}
            fault = self._unreached(memory, buffers) or self._too_few(memory, more)
            if fault is None:
                return more
            lacking.append(fault)
        return None

    def wider(self, chosen: _Chosen) -> Target:
        """The target with a pool for the states of each memory."""
        taken = {*(pool.name for pool in self.target.pools), *(port.name for port in self.module.state)}
        pools = [
            _pool(unique_name(DEFAULT_STATE_POOL, taken), memory, buffers)
            for memory, buffers in chosen.items()
        ]
        wider = replace(self.target, pools=(*self.target.pools, *pools))
        return with_remainders(with_default_devices(wider))

    def _unreached(self, memory: str, buffers: tuple[ir.Buffer, ...]) -> str | None:
        touches = (touch for buffer in buffers for touch in self.touches.get(buffer.name, ()))
        unreached = (touch for touch in touches if not self.target.device(touch.device).reaches(memory))
        first = next(unreached, None)
        return None if first is None else f"{memory}  is not reached by '{first.device}': {first.reason}"

    def _too_few(self, memory: str, chosen: _Chosen) -> str | None:
        wider = self.wider(chosen)
        left = bytes_left(wider, wider.memory(memory))
        return (
            f"{memory}  {-left} B too few beside stacks and pools" if left is not None and left < 0 else None
        )


def _pool(name: str, memory: str, buffers: Sequence[ir.Buffer]) -> Pool:
    alignment = max(DEFAULT_ALIGNMENT, *(buffer.alignment for buffer in buffers))
    return Pool(
        name=name,
        memory=memory,
        role=Role.STATE,
        size_bytes=sum(-(-ir.size_bytes(buffer) // alignment) * alignment for buffer in buffers),
        alignment=alignment,
        provider=DEFAULT_PROVIDER[Role.STATE],
    )
