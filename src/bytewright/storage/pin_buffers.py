"""The user's pins: `PATTERN=POOL` narrows the scope of every buffer whose name matches to that pool.

Several pools become the buffer's candidates, in their order; an offset goes to the planner. Scratch of constant size
that would be requested at run time is planned where it is pinned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from bytewright.diagnostics import Collector, CompileError, Diagnostic
from bytewright.ir.expr import Buffer
from bytewright.ir.module import ConstantBuffer, Module
from bytewright.ir.prim import (
    Allocate,
    PrimFunc,
    Statement,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import Scope, join_scopes, pool_scope
from bytewright.ir.storage import CANDIDATE_POOLS, Storage
from bytewright.ir.walk import walk_statements
from bytewright.options import Pin
from bytewright.target.mistake import closest_names
from bytewright.target.model import Role, Target

_ROLES = (Role.WORKSPACE, Role.PARAMETERS)


@dataclass(slots=True)
class _Pinned:
    """What the pins make of one buffer.

    Attributes:
        buffer: As it is in the module.
        scope: Joined with the pins so far.
        pools: That it may be in, in order; None for all that the scope has.
        offset: In its pool; None for any.
        reasons: The pins so far.
    """

    buffer: Buffer
    scope: Scope | None
    pools: tuple[str, ...] | None
    offset: int | None = None
    reasons: list[str] = field(default_factory=list[str])

    def narrow(self, storage: Storage) -> Storage:
        """The record with what pins say, if they say anything: who pins asks for a static plan."""
        if not self.reasons:
            return storage
        reasons = (f"pin_buffers: {reason}" for reason in self.reasons)
        planned = replace(storage, on_request=None)
        return planned.narrowed(*reasons, candidates=self.pools, pinned_offset=self.offset)


def pin_buffers(module: Module, target: Target, pins: tuple[Pin, ...]) -> Module:
    """Narrows scopes and candidates of the entry's allocations and of constants.

    Raises:
        CompileError: BW204 for a pool that does not exist or has another role, a pattern that matches nothing, an
            offset that is not aligned as a buffer must be, or two pins that contradict each other; all at once.
    """
    if not pins:
        return module
    allocations = [_pinned(s) for s in walk_statements(module.main.body) if isinstance(s, Allocate)]
    constants = [_pinned(c) for c in module.constant_buffers]
    collector = Collector()
    for pin in pins:
        with collector.catch():
            role = _role(pin, target)
            both = (allocations, constants) if role is Role.WORKSPACE else (constants, allocations)
            matching = [entry for entry in both[0] if fnmatchcase(entry.buffer.name, pin.pattern)]
            if not matching:
                raise _nothing_matches(pin, role, both, target)
            for entry in matching:
                _narrow(entry, pin)
    collector.stop_if_any()
    pinned = {entry.buffer.name: entry for entry in (*allocations, *constants)}
    return replace(
        module,
        entries=tuple(_pin_entry(entry, pinned) for entry in module.entries),
        constant_buffers=tuple(_pin_constant(c, pinned[c.buffer.name]) for c in module.constant_buffers),
    )


def _pinned(definition: Allocate | ConstantBuffer) -> _Pinned:
    buffer, storage = definition.buffer, definition.storage
    return _Pinned(buffer, buffer.scope, storage.candidates, storage.pinned_offset)


def _narrow(entry: _Pinned, pin: Pin) -> None:
    """Joins one pin with what is known of a buffer."""
    name = entry.buffer.name
    other = entry.reasons[-1] if entry.reasons else "the program"
    within = [pool for pool in pin.pools if _join(entry.scope, pool) is not None]
    if not within:
        raise _refused(pin, f"contradicts {other}: '{name}' has the scope {entry.scope} already")
    _check_candidates(pin, within, entry)
    left = tuple(pool for pool in within if entry.pools is None or pool in entry.pools)
    if len(left) == 1:
        entry.scope = _join(entry.scope, left[0])
    entry.pools = left if len(pin.pools) > 1 or entry.pools is not None else None
    if pin.offset is not None:
        if entry.offset not in (None, pin.offset):
            raise _refused(pin, f"contradicts {other}: '{name}' is at offset {entry.offset} already")
        if pin.offset % entry.buffer.alignment:
            nearest = pin.offset // entry.buffer.alignment * entry.buffer.alignment
            what = f"is not a multiple of {entry.buffer.alignment}, the alignment of '{name}'"
            raise _refused(pin, what, f"--pin '{replace(pin, offset=nearest)}'")
        entry.offset = pin.offset
    entry.reasons.append(f"--pin '{pin}'")


def _join(scope: Scope | None, pool: str) -> Scope | None:
    """The scope joined with a pool; None where they contradict each other."""
    try:
        return join_scopes(scope, pool_scope(pool))
    except ValueError:
        return None


def _role(pin: Pin, target: Target) -> Role:
    known = {pool.name: pool.role for role in _ROLES for pool in target.pools_of(role)}
    for name in pin.pools:
        if name not in known:
            raise _no_pool(pin, name, known, target)
    roles = {known[name] for name in pin.pools}
    if len(roles) > 1:
        raise _refused(pin, "names pools of the workspace and of parameters, and no buffer may be in both")
    return known[pin.pool]


def _no_pool(pin: Pin, name: str, known: Mapping[str, Role], target: Target) -> CompileError:
    pool = target.find_pool(name)
    if pool is not None and pool.role is Role.IO:
        what = f"names the pool '{name}', which is for inputs and outputs, and those are the application's"
        return _refused(pin, what, "--io workspace")
    what = f"names the pool '{name}', which does not exist; the pools are {', '.join(known)}"
    meant = [other for other in known if other.lower() == name.lower()] or closest_names(name, known)
    others = tuple(meant[0] if p == name else p for p in pin.pools) if meant else ()
    if not others or len(set(others)) < len(others):
        return _refused(pin, what)
    return _refused(pin, what, f"--pin '{replace(pin, pool=others[0], others=others[1:])}'")


def _noun(role: Role) -> str:
    return "tensor or scratch of the workspace" if role is Role.WORKSPACE else "constant"


def _nothing_matches(
    pin: Pin, role: Role, both: tuple[list[_Pinned], list[_Pinned]], target: Target
) -> CompileError:
    """The refusal of a pattern, with what was meant: the same in another case, another pool, or a similar name."""
    own, foreign = ([entry.buffer.name for entry in entries] for entries in both)
    place = f"--pin '{pin}'"
    wrong = [name for name in foreign if fnmatchcase(name, pin.pattern)]
    if wrong:
        other_role = Role.PARAMETERS if role is Role.WORKSPACE else Role.WORKSPACE
        pools = target.pools_of(other_role)
        what = f"names a {role.value} pool, but '{wrong[0]}' is no {_noun(role)}"
        return _refused(pin, what, f"--pin '{pin.moved_to(pools[0].name)}'" if pools else None, place)
    what = f"matches no {_noun(role)}; {_some_names(own)}"
    lower = pin.pattern.lower()
    same = [name for name in own if fnmatchcase(name.lower(), lower)]
    if same:
        is_lower = any(fnmatchcase(name, lower) for name in own)
        return _refused(pin, what, f"--pin '{replace(pin, pattern=lower if is_lower else same[0])}'", place)
    meant = [] if any(c in pin.pattern for c in "*?[") else closest_names(pin.pattern, (*own, *foreign))
    is_own = bool(meant) and meant[0] in own
    return _refused(pin, what, f"--pin '{replace(pin, pattern=meant[0])}'" if is_own else None, place)


def _some_names(names: list[str]) -> str:
    return f"names are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


def _check_candidates(pin: Pin, within: list[str], entry: _Pinned) -> None:
    pools, name = entry.pools, entry.buffer.name
    if pools is None or any(pool in pools for pool in within):
        return
    if entry.reasons:
        raise _refused(pin, f"contradicts {entry.reasons[-1]}: '{name}' may be in {', '.join(pools)} alone")
    one = pools[0] if len(pools) == 1 else f"one of {', '.join(pools)}"
    raise _refused(
        pin,
        f"contradicts the program: the {CANDIDATE_POOLS} of '{name}' are {', '.join(pools)}",
        f"pin it to {one}, or change {CANDIDATE_POOLS} in the program",
    )


def _refused(pin: Pin, what: str, help_text: str | None = None, where: str | None = None) -> CompileError:
    return CompileError(Diagnostic("BW204", f"--pin '{pin}' {what}", help=help_text, where=where))


def _pin_entry(entry: PrimFunc, pinned: Mapping[str, _Pinned]) -> PrimFunc:
    parameters = {parameter.buffer.name for parameter in entry.buffer_parameters}

    def narrow(buffer: Buffer) -> Buffer:
        if buffer.name in parameters or buffer.name not in pinned:
            return buffer
        return replace(buffer, scope=pinned[buffer.name].scope)

    def explain(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Allocate) and statement.buffer.name in pinned:
            statement = replace(statement, storage=pinned[statement.buffer.name].narrow(statement.storage))
        return (statement,)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(buffer=narrow, statement=explain)))


def _pin_constant(constant: ConstantBuffer, pinned: _Pinned) -> ConstantBuffer:
    buffer = replace(constant.buffer, scope=pinned.scope)
    return replace(constant, buffer=buffer, storage=pinned.narrow(constant.storage))
