"""The user's pins: `PATTERN=POOL` narrows the scope of every buffer whose name matches to that pool.

Several pools become the buffer's candidates, in their order; an offset goes to the planner. Scratch of constant size
that would be requested at run time is planned where it is pinned.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import Collector, CompileError, compile_error
from bytewright.ir.definitions import redefined, redefined_constants
from bytewright.ir.walk import allocations
from bytewright.options import Pin
from bytewright.target.mistake import closest_names
from bytewright.target.model import Role, Target
from bytewright.target.options import Overrides, PoolOption

_ROLES = (Role.WORKSPACE, Role.PARAMETERS)
_PROGRAM = "the program"
_SIZE_STEP = 1024  # of a pool that is proposed, in bytes


@dataclass(slots=True)
class _Pinned:
    """A buffer, with what is decided of it as the pins so far leave it, and the last of them."""

    buffer: ir.Buffer
    storage: ir.Storage
    by: str = _PROGRAM

    @property
    def name(self) -> str:
        return self.buffer.name


def pin_buffers(module: ir.Module, target: Target, pins: tuple[Pin, ...]) -> ir.Module:
    """Narrows scopes and candidates of the entry's allocations and of constants.

    Raises:
        CompileError: BW204 for a pool that does not exist or has another role, a pattern that matches nothing, an
            offset that is not aligned as a buffer must be, or two pins that contradict each other; all at once.
    """
    if not pins:
        return module
    allocated = [[_Pinned(a.buffer, a.storage) for a in allocations(entry)] for entry in module.entries]
    tensors = [pinned for own in allocated for pinned in own]
    constants = [_Pinned(c.buffer, c.storage) for c in module.constant_buffers]
    collector = Collector()
    for pin in pins:
        with collector.catch():
            role = _role(pin, target)
            both = (tensors, constants) if role is Role.WORKSPACE else (constants, tensors)
            matching = [pinned for pinned in both[0] if fnmatchcase(pinned.name, pin.pattern)]
            if not matching:
                raise _nothing_matches(pin, role, both, target)
            for pinned in matching:
                _narrow(pinned, pin)
    collector.stop_if_any()
    return replace(
        module,
        entries=tuple(
            redefined(entry, {pinned.name: pinned.storage for pinned in own})
            for entry, own in zip(module.entries, allocated, strict=True)
        ),
        constant_buffers=redefined_constants(module, {pinned.name: pinned.storage for pinned in constants}),
    )


def _narrow(pinned: _Pinned, pin: Pin) -> None:
    """Joins one pin with what is known of a buffer: who pins asks for a static plan."""
    buffer, storage, name = pinned.buffer, pinned.storage, pinned.name
    within = [pool for pool in pin.pools if _join(storage.scope, pool) is not None]
    if not within:
        raise _refused(pin, f"contradicts {pinned.by}: '{name}' has the scope {storage.scope} already")
    _check_candidates(pin, within, pinned)
    left = tuple(pool for pool in within if storage.candidates is None or pool in storage.candidates)
    is_list = len(pin.pools) > 1 or storage.candidates is not None
    if pin.offset is not None:
        if storage.pinned_offset not in (None, pin.offset):
            raise _refused(
                pin, f"contradicts {pinned.by}: '{name}' is at offset {storage.pinned_offset} already"
            )
        if pin.offset % buffer.alignment:
            nearest = pin.offset // buffer.alignment * buffer.alignment
            what = f"is not a multiple of {buffer.alignment}, the alignment of '{name}'"
            raise _refused(pin, what, f"--pin '{replace(pin, offset=nearest)}'")
    pinned.by = f"--pin '{pin}'"
    pinned.storage = replace(storage, on_request=None).narrowed(
        f"pin_buffers: {pinned.by}",
        scope=_join(storage.scope, left[0]) if len(left) == 1 else None,
        candidates=left if is_list else None,
        pinned_offset=pin.offset,
    )


def _join(scope: ir.Scope | None, pool: str) -> ir.Scope | None:
    """The scope joined with a pool; None where they contradict each other."""
    try:
        return ir.join_scopes(scope, ir.pool_scope(pool))
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
    own, foreign = ([pinned.name for pinned in group] for group in both)
    place = f"--pin '{pin}'"
    wrong = [pinned for pinned in both[1] if fnmatchcase(pinned.name, pin.pattern)]
    if wrong:
        other_role = Role.PARAMETERS if role is Role.WORKSPACE else Role.WORKSPACE
        pools = target.pools_of(other_role)
        what = f"names a {role.value} pool, but '{wrong[0].name}' is no {_noun(role)}"
        if role is Role.WORKSPACE:
            return _refused(pin, what, _pool_beside(pin, wrong, target), place)
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


def _pool_beside(pin: Pin, constants: list[_Pinned], target: Target) -> str:
    """Options that give constants a pool in the memory of the workspace pool that a pin names."""
    memory, pools = target.pool(pin.pool).memory, target.pools_of(Role.PARAMETERS)
    there = next((pool.name for pool in pools if pool.memory == memory), None)
    if there is not None:
        return f"--pin '{pin.moved_to(there)}'"
    num_bytes = sum(-(-ir.size_bytes(c.buffer) // c.buffer.alignment) * c.buffer.alignment for c in constants)
    taken = {pool.name for pool in target.pools} | {each.name for each in target.memories}
    hot = PoolOption(unique_name("hot", taken), -(-num_bytes // _SIZE_STEP) * _SIZE_STEP, memory)
    others = (
        PoolOption(pool.name, None, None if pool.memory == pool.name else pool.memory) for pool in pools
    )
    return f"{Overrides(parameters=(hot, *others))} --pin '{pin.moved_to(hot.name)}'"


def _some_names(names: list[str]) -> str:
    if not names:
        return "there is none"
    return f"names are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


def _check_candidates(pin: Pin, within: list[str], pinned: _Pinned) -> None:
    pools, name = pinned.storage.candidates, pinned.name
    if pools is None or any(pool in pools for pool in within):
        return
    if pinned.by != _PROGRAM:
        raise _refused(pin, f"contradicts {pinned.by}: '{name}' may be in {', '.join(pools)} alone")
    one = pools[0] if len(pools) == 1 else f"one of {', '.join(pools)}"
    raise _refused(
        pin,
        f"contradicts {pinned.by}: the {ir.CANDIDATE_POOLS} of '{name}' are {', '.join(pools)}",
        f"pin it to {one}, or change {ir.CANDIDATE_POOLS} in the program",
    )


def _refused(pin: Pin, what: str, help_text: str | None = None, where: str | None = None) -> CompileError:
    return compile_error("BW204", f"--pin '{pin}' {what}", help=help_text, where=where)
