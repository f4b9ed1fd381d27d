"""Options that ask for more than the hardware has: which others it could give, tried before they are said."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bytewright.compiler.remedy.room import missing_bytes, shrunk
from bytewright.compiler.remedy.tries import Tries
from bytewright.diagnostics import CompileError
from bytewright.target.capacity import bytes_left
from bytewright.target.model import UNLIMITED, Pool, Role, Target
from bytewright.target.options import Overrides, PoolOption, ResizeOption, apply_overrides, with_mistakes

_LEAST_BYTES = 16  # a pool that is made smaller keeps these


def require_hardware(target: Target, overrides: Overrides) -> Target:
    """The target as the options change it.

    Raises:
        CompileError: BW204 for what the hardware cannot give, with options that it can.
    """
    try:
        return apply_overrides(target, overrides)
    except CompileError as error:
        others = _mended(target, overrides)
        if others is None:
            raise
        raise CompileError(
            replace(diagnostic, help=str(others)) for diagnostic in error.diagnostics
        ) from None


def _mended(target: Target, overrides: Overrides) -> Overrides | None:
    """All the options, one of them changed so that the hardware can give what they ask for; None if none will do."""
    tries = Tries(partial(with_mistakes, target), lambda found: not found[2])
    return tries.first(_alternatives(target, overrides), lambda others: others)


def _alternatives(target: Target, overrides: Overrides) -> Iterator[Overrides]:
    """One option at a time: a smaller size, the target's own stack, another memory."""
    try:
        changed, _, _ = with_mistakes(target, overrides)
    except CompileError:  # they name what does not exist, and say so
        return
    overrides = _with_names_of_their_own(changed, overrides)
    yield from dict.fromkeys((overrides, _fitted(target, overrides)))
    changed, _, _ = with_mistakes(target, overrides)
    for memory in changed.memories:
        left_bytes = bytes_left(changed, memory)
        for pool in changed.pools_in(memory.name):
            if pool.takes_remainder and left_bytes is not None and left_bytes > 1:
                yield _with_size(overrides, pool, left_bytes // 2)
    if overrides.max_stack_size is not None:
        limits = [context.max_stack_size_bytes for context in target.contexts]
        largest = max((limit for limit in limits if limit is not None), default=UNLIMITED)
        yield replace(overrides, max_stack_size=UNLIMITED if None in limits else largest)
    for workspace in _elsewhere(target, overrides.workspace):
        yield replace(overrides, workspace=workspace)
    for parameters in _elsewhere(target, overrides.parameters):
        yield replace(overrides, parameters=parameters)


def _with_names_of_their_own(changed: Target, overrides: Overrides) -> Overrides:
    """Pools of options are called otherwise where a pool of another role has the name: parameters before workspaces."""

    def renamed(options: tuple[PoolOption, ...], role: Role, taken: set[str]) -> tuple[PoolOption, ...]:
        return tuple(
            replace(
                option,
                name=f"{option.name}_{role.value}",
                memory=option.memory
                or next(p.memory for p in changed.pools if p.name == option.name and p.role is role),
            )
            if option.name in taken
            else option
            for option in options
        )

    others = {pool.name for pool in changed.pools if pool.role is not Role.PARAMETERS}
    parameters = renamed(overrides.parameters, Role.PARAMETERS, others)
    taken = {pool.name for pool in changed.pools if pool.role is not Role.WORKSPACE}
    workspace = renamed(overrides.workspace, Role.WORKSPACE, set() if parameters else taken)
    return replace(overrides, parameters=parameters, workspace=workspace)


def _fitted(target: Target, overrides: Overrides) -> Overrides:
    """Smaller pools, the last first, and at last a smaller stack, in every memory that is too full."""
    changed = with_mistakes(target, overrides)[0]
    for name, size_bytes in shrunk(changed, roles=tuple(Role), least_bytes=_LEAST_BYTES).items():
        overrides = _with_size(overrides, changed.pool(name), size_bytes)
    changed = with_mistakes(target, overrides)[0]
    for context in changed.contexts:
        limit = context.max_stack_size_bytes
        missing = missing_bytes(changed, changed.memory(context.memory))
        if limit is not None and 0 < missing < limit:
            overrides = replace(overrides, max_stack_size=limit - missing)
    return overrides


def _elsewhere(target: Target, options: tuple[PoolOption, ...]) -> Iterator[tuple[PoolOption, ...]]:
    """The options, one of them in another memory: that of its own name first; with its size, or with what is left."""
    reached = [memory.name for memory in target.memories if target.default_device.reaches(memory.name)]
    for index, option in enumerate(options):
        for size_bytes in (option.size_bytes, None):
            for memory in sorted(reached, key=lambda name: name != option.name):
                moved = replace(option, memory=memory, size_bytes=size_bytes)
                yield (*options[:index], moved, *options[index + 1 :])


def _with_size(overrides: Overrides, pool: Pool, size_bytes: int) -> Overrides:
    """The options, one pool with another size: where a list of pools names it, or else with `--resize`."""
    kept = tuple(resize for resize in overrides.resize if resize.pool != pool.name)
    lists = {Role.WORKSPACE: overrides.workspace, Role.PARAMETERS: overrides.parameters}
    listed = lists.get(pool.role, ())
    if kept != overrides.resize or pool.name not in [option.name for option in listed]:
        return replace(overrides, resize=(*kept, ResizeOption(pool.name, size_bytes)))
    sized = (replace(o, size_bytes=size_bytes) if o.name == pool.name else o for o in listed)
    return replace(overrides, **{pool.role.value: tuple(sized)})
