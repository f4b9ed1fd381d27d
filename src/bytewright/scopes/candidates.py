"""Candidate pools: the pools that a buffer of the entry, or a constant, may end in.

candidates = resolve(scope) ∩ pools of its role ∩ pools of every device that touches it ∩ its annotation

A device whose code has a buffer's address must reach its memory too, though it may touch no byte of it.
"""

from dataclasses import dataclass

from bytewright import ir
from bytewright.diagnostics import compile_error
from bytewright.ir.analyses.clock import LiveBuffer
from bytewright.ir.analyses.touch import Touches
from bytewright.ir.definitions import Definition
from bytewright.target.mistake import listing
from bytewright.target.model import Pool, Role, Target


@dataclass(frozen=True, slots=True)
class Wanted:
    """What needs a pool, who touches it, and whose code has its address besides."""

    definition: Definition
    touches: Touches
    holders: Touches = ()

    @property
    def role(self) -> Role:
        """Of the pools that may hold it."""
        return role_of(self.definition)

    @property
    def is_io(self) -> bool:
        """Whether it is an input or output that is planned."""
        return self.definition.storage.border in ir.SIDES

    @property
    def scope(self) -> ir.Scope:
        """Its scope; unconstrained, it is the widest that pools of the role are in."""
        return self.definition.scope or (ir.WORKSPACE if self.role is Role.WORKSPACE else ir.GLOBAL)

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that touch it, sorted."""
        return tuple(sorted(touch.device for touch in self.touches))


def role_of(definition: Definition) -> Role:
    """The role of the pools that hold what is defined so."""
    if isinstance(definition, ir.ConstantBuffer):
        return Role.PARAMETERS
    return Role.STATE if definition.storage.border is ir.Border.STATE else Role.WORKSPACE


def candidate_pools(wanted: Wanted, target: Target) -> tuple[Pool, ...]:
    """The pools for a buffer, in preference order.

    Raises:
        CompileError: BW301 if there is none, with what each pool fails.
    """
    pools, order = target.pools_of(wanted.role), wanted.definition.storage.candidates
    refusals = {pool.name: _refusal(pool, wanted, target) for pool in pools}
    chosen = [pool for pool in pools if refusals[pool.name] is None]
    if order is not None:
        chosen.sort(key=lambda pool: order.index(pool.name))
    if not chosen:
        noun = "parameter" if wanted.role is Role.PARAMETERS else wanted.role.value
        notes = [f"{name}  {refusal}" for name, refusal in refusals.items()]
        raise compile_error(
            "BW301",
            f"'{wanted.definition.buffer.name}' cannot be placed in any {noun} pool",
            notes=(
                *(notes or [f"target '{target.name}' has no {noun} pool"]),
                *_reasons_of_unreached(wanted, pools, target),
            ),
        )
    return tuple(chosen)


def check_memory_of_caller(
    live: LiveBuffer, parameter: ir.BufferParameter, device: str, target: Target
) -> None:
    """Refuses an input or output that the application can write or have written nowhere that all reach who touch it.

    Where they reach some of its memories alone, it is told: the plan's `caller_memories`.

    Args:
        live: The buffer.
        parameter: Of the entry, for the same buffer.
        device: The entry's, which the application runs on.
        target: The target.

    Raises:
        CompileError: BW301, with what each of them reaches, and why it counts.
    """
    side = ir.Border.INPUT if parameter.access is ir.Access.READ else ir.Border.OUTPUT
    devices = tuple(dict.fromkeys((device, *sorted(touch.device for touch in live.touches))))
    if target.common_memories(devices, is_written=True):
        return
    raise compile_error(
        "BW301",
        f"the application can have {side.value} '{live.buffer.name}' in no memory that can be written and that "
        f"{' and '.join(map(repr, devices))} reach",
        notes=(
            *dict.fromkeys(touch.reason for touch in live.touches if touch.device != device),
            *(listing(f"'{name}' reaches", target.device(name).reached_memories) for name in devices),
        ),
        help="copy it to where the device reaches, with a device_copy or a kernel that copies",
    )


def _refusal(pool: Pool, wanted: Wanted, target: Target) -> str | None:
    if not ir.is_within(ir.pool_scope(pool.name), wanted.scope):
        return f"is not in its scope '{wanted.scope}'"
    if pool.is_for_io and not wanted.is_io:
        return "is for inputs and outputs alone"
    if wanted.is_io and not pool.is_for_io and any(other.is_for_io for other in target.pools):
        return "is not for inputs and outputs, for which the target has pools of their own"
    unreached = _unreached(pool, wanted, target)
    if unreached and not target.device(unreached[0].device).reaches(pool.memory):
        return f"is in memory '{pool.memory}', which device '{unreached[0].device}' does not reach"
    if unreached:
        return f"is not for device '{unreached[0].device}', which touches it"
    candidates = wanted.definition.storage.candidates
    if candidates is not None and pool.name not in candidates:
        return f"is not among its candidates {', '.join(candidates)}"
    return None


def _unreached(pool: Pool, wanted: Wanted, target: Target) -> Touches:
    """The devices that touch a buffer and may not use a pool, by name, then those that do not reach its address."""
    touches = (touch for touch in wanted.touches if pool.devices and touch.device not in pool.devices)
    holders = (holder for holder in wanted.holders if not target.device(holder.device).reaches(pool.memory))
    return (*sorted(touches, key=lambda touch: touch.device), *holders)


def _reasons_of_unreached(wanted: Wanted, pools: tuple[Pool, ...], target: Target) -> tuple[str, ...]:
    """Why the devices count that stand in a pool's way, and what they reach."""
    touches = [touch for pool in pools for touch in _unreached(pool, wanted, target)]
    devices = [target.device(name) for name in dict.fromkeys(touch.device for touch in touches)]
    return (
        *dict.fromkeys(touch.reason for touch in touches),
        *(listing(f"'{device.name}' reaches", device.reached_memories) for device in devices),
    )
