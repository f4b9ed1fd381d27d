"""Looks for options that make a compile succeed, by trying: nothing is offered that was not stored and planned.

From little to much: pools of another size, layers by rows, one more pool, other pins, all of this together; and at last
what changes how the model is called, inputs and outputs elsewhere. Under each of these, the pools that are too small
are first given all that their memories have; where even that does not fit, no size will do. Else each of them alone is
given what the planner then uses, and the remedy that asks for the fewest bytes more is taken. What a memory lacks for
it, other pools of the memory give up, and at last the stack. Where no option helps because a device does not reach a
memory, a line for the target file may.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from bytewright import ir
from bytewright.compiler.remedy.changes import Changes, named_pools
from bytewright.compiler.remedy.remedy import ReachEdit, Remedy, rank
from bytewright.compiler.remedy.room import (
    LEAST_BYTES,
    ROLES,
    missing_bytes,
    resized,
    room_for,
    shrunk,
    with_pools,
    with_sizes,
)
from bytewright.compiler.remedy.saved import problem_of
from bytewright.compiler.remedy.single_changes import SingleChanges
from bytewright.compiler.remedy.tries import Tries
from bytewright.compiler.shortfall import largest_shortfall
from bytewright.compiler.trial import Attempt, Conditions, Trial
from bytewright.diagnostics import CompileError
from bytewright.options import Rows
from bytewright.scopes.check_scopes import undeclared_tags
from bytewright.storage.rows.steps import read_rows
from bytewright.target.capacity import bytes_left, with_remainders
from bytewright.target.model import Device, Memory, Pool, Role, Target
from bytewright.target.options import Overrides, PoolOption, ResizeOption

MOST_CHANGES = 5


def find_remedies(
    module: ir.Module, conditions: Conditions, attempt: Attempt, single: SingleChanges
) -> tuple[Remedy, ...]:
    """The least changes of options that work, each of another thing, or a line for the target file; none if none do.

    Args:
        module: What is stored.
        conditions: Those of a compile that failed.
        attempt: Stores the module under conditions.
        single: Changes beside those of sizes, places and pins.
    """
    devices = devices_at_work(module, conditions.target)
    search = _Search(conditions, devices, attempt)
    # Pools with the names of scopes that the target does not have would do.
    tags = tuple(undeclared_tags(module, conditions.target))
    least = search.first(named_pools(conditions.target, devices, tags) if tags else [Remedy()])
    if not tags:
        changes = Changes(conditions, devices, search.other_rows(module), search.other_io(module))
        found = search.each(least or search.by_groups(changes), changes, single)
    else:
        found = [] if least is None else [least]
    edit = None if found else search.with_an_edit()
    return tuple(found) if edit is None else (edit,)


@dataclass(frozen=True, slots=True)
class Room:
    """A memory with which the model fits if it is larger.

    Attributes:
        more_bytes: That it has to have.
        options: Of the command, then.
    """

    memory: str
    more_bytes: int
    options: str

    def text(self, target: Target) -> str:
        """`3072 B in memory 'ram', 548 B more`."""
        size_bytes = (target.memory(self.memory).size_bytes or 0) + self.more_bytes
        options = f" and {self.options}" if self.options else ""
        return f"{size_bytes} B in memory '{self.memory}', {self.more_bytes} B more{options}"


def find_room(module: ir.Module, conditions: Conditions, attempt: Attempt) -> tuple[Room, ...]:
    """For each memory that has pools by how much it would have to be larger, if that alone is enough."""
    found: list[Room] = []
    devices = devices_at_work(module, conditions.target)
    for memory in conditions.target.memories:
        if memory.size_bytes is not None and conditions.target.pools_in(memory.name):
            search = _Search(with_memory(conditions, memory, None), devices, attempt)
            room = search.room_beyond(memory)
            found += [] if room is None else [room]
    return tuple(found)


def with_memory(conditions: Conditions, memory: Memory, size_bytes: int | None) -> Conditions:
    """The conditions with a memory of another size, which its pools that take what is left have then."""
    target = conditions.target
    memories = tuple(
        replace(m, size_bytes=size_bytes) if m.name == memory.name else m for m in target.memories
    )
    return replace(conditions, target=with_remainders(replace(target, memories=memories)))


def devices_at_work(module: ir.Module, target: Target) -> tuple[Device, ...]:
    """The devices that run some function of the program."""
    names = {function.device for function in (*module.entries, *module.kernels)}
    return tuple(device for device in target.devices if device.name in names)


class _Search:
    """Tries remedies for one failure."""

    def __init__(self, conditions: Conditions, devices: tuple[Device, ...], attempt: Attempt) -> None:
        self.conditions = conditions
        self.devices = devices
        self.tries = Tries(attempt, lambda trial: trial.fits)

    def first(self, changes: Iterable[Remedy]) -> Remedy | None:
        """The first change that makes it fit, with sizes."""
        return self._first_of(remedy for change in changes for remedy in self._with_sizes(change))

    def each(self, least: Remedy | None, changes: Changes, single: SingleChanges) -> list[Remedy]:
        """The change that is known to work, and others that do without it, each of another thing, the least first."""
        found = [] if least is None else [least]
        target = self.conditions.target
        groups = (
            (Remedy(rows=rows) for rows in changes.rows),
            changes.pools(single.roles) if single.roles else (),
            single.kernels(found),
            changes.pins() if changes.conditions.options.pins else (),
            single.io(changes.io),
        )
        for group in groups:
            remedy = self._first_of(self._new(found, group))
            found += [] if remedy is None else [remedy]
        for alone in (single.batch(), single.stream() if not found else ()):
            remedy = self._first_of(alone)
            found += [] if remedy is None else [remedy]
        found.sort(key=lambda remedy: rank(remedy, target))
        return found[:MOST_CHANGES]

    def _new(self, found: list[Remedy], changes: Iterable[Remedy]) -> Iterator[Remedy]:
        """Changes with sizes that do not have all that is enough already."""
        known = [remedy.parts(self.conditions.target) for remedy in found]
        for change in changes:
            with suppress(CompileError):  # where it makes no sense
                for remedy in self._with_sizes(change):
                    parts = remedy.parts(self.conditions.target)
                    if not any(own <= parts for own in known):
                        yield remedy

    def by_groups(self, changes: Changes) -> Remedy | None:
        """The first change that works. Where the most generous ones with some rows and io do not, nor do others."""
        found = self.first(Remedy(rows=rows) for rows in changes.rows)
        for io in (None, *changes.io):
            for rows in self._rows_with(changes.rows, io):
                generous = tuple(changes.most_generous(rows, io))
                if found is None and any(map(self.has_room, generous)):
                    found = self.first((*changes.small(rows, io), *generous))
        return found

    def _rows_with(self, others: tuple[Rows, ...], io: ir.Io | None) -> tuple[Rows | None, ...]:
        """As they are, and otherwise; an image cannot come by rows where layers do not take rows."""
        if io is ir.Io.ROWS and self.conditions.options.rows is Rows.OFF:
            return others or (Rows.AUTO,)
        return (None, *others)

    def room_beyond(self, memory: Memory) -> Room | None:
        """How many bytes more a memory needs, which has no limit in the conditions; None if that does not help."""
        remedy = self.first([Remedy()])
        if remedy is None:
            return None
        changed = remedy.apply(self.conditions)
        trial = self.tries.outcome(changed)
        if trial is None:
            return None
        limited = with_memory(changed, memory, memory.size_bytes).target
        more_bytes = missing_bytes(limited, limited.memory(memory.name), trial.tops)
        enough = with_memory(changed, memory, (memory.size_bytes or 0) + more_bytes)
        options = remedy.change(self.conditions.target).text
        outcome = self.tries.outcome(enough)
        return Room(memory.name, more_bytes, options) if outcome is not None and outcome.fits else None

    def other_io(self, module: ir.Module) -> tuple[ir.Io, ...]:
        """Where else inputs and outputs may be; what lets the application keep fewer bytes of its own comes first.

        By rows an image needs some bytes of the workspace, with the application none. So rows are for one that was to
        be planned, and come before `--io caller`, under which it would be whole in memory that nobody looks for here.
        Planned ones go where those of the application may not, and need more bytes.
        """
        if any(map(ir.allocates_border, module.entries)):  # the text says where they are
            return ()
        if self.conditions.options.io is ir.Io.WORKSPACE:
            return (*((ir.Io.ROWS,) if len(module.entries) == 1 else ()), ir.Io.CALLER)
        at_caller = () if self.conditions.options.io is ir.Io.CALLER else (ir.Io.CALLER,)
        is_refused = self.tries.outcome(self.conditions) is None
        return (*at_caller, ir.Io.WORKSPACE) if is_refused else at_caller

    def other_rows(self, module: ir.Module) -> tuple[Rows, ...]:
        """Another way to run layers by rows, if it leads to another plan: `auto`, which fits wherever others do."""
        asked = self.conditions.options.rows
        steps = read_rows(module).steps if len(module.entries) == 1 else {}
        if asked is Rows.AUTO or not any(number + 1 in steps for number in steps):
            return ()
        return (Rows.AUTO,) if self._differ(asked, Rows.AUTO) else ()

    def _differ(self, one: Rows, other: Rows) -> bool:
        """Whether the planner is asked for something else; so too where neither comes as far as that."""
        first, second = (
            self.tries.outcome(Remedy(rows=rows).apply(self.conditions)) for rows in (one, other)
        )
        return first is None or second is None or first.stored.workspace != second.stored.workspace

    def with_an_edit(self) -> Remedy | None:
        """A device that reaches one memory more."""
        target = self.conditions.target
        return self._first_of(
            Remedy(edits=(ReachEdit(device.name, memory.name),))
            for device, memory in product(target.devices, target.memories)
            if not device.reaches(memory.name)
        )

    def _first_of(self, remedies: Iterable[Remedy]) -> Remedy | None:
        return self.tries.first(remedies, lambda remedy: remedy.apply(self.conditions))

    def _with_sizes(self, change: Remedy) -> Iterator[Remedy]:
        """The change with sizes of pools and stacks that it needs, those that ask for the fewest bytes more first."""
        base, added = change.apply(self.conditions), {pool.name for pool in change.pools}
        first = self.tries.outcome(base)
        if first is None:
            return
        base = replace(base, target=first.conditions.target)  # with a pool of the states that there are now
        for stack_bytes in dict.fromkeys(
            (_least_stack(first) if _exceeds(first) else None, _least_stack(first))
        ):
            limited = _with_stack(base, stack_bytes)
            wide = self._widened(limited, first, added)
            if wide is not None:
                trials = (*self._exact(limited, first), *self._relaxed(limited, first), wide)
                sized = (_sized(change, limited.target, trial, stack_bytes) for trial in trials)
                yield from (remedy for remedy, _ in sorted(filter(None, sized), key=lambda pair: pair[1]))

    def has_room(self, change: Remedy) -> bool:
        """Whether all the bytes that memories have would do."""
        base, added = change.apply(self.conditions), {pool.name for pool in change.pools}
        first = self.tries.outcome(base)
        if first is None:
            return False
        base = replace(base, target=first.conditions.target)
        return self._widened(_with_stack(base, _least_stack(first)), first, added) is not None

    def _widened(self, base: Conditions, first: Trial, added: set[str]) -> Trial | None:
        """With all that the memories have for the pools that are too small; None if it does not fit even then.

        Where parameters and workspace are short of the same memory, each of them is served first in turn.
        """
        roles = _short_roles(base.target, first)
        orders = dict.fromkeys((roles[::-1], roles))
        trials = (self._served(base, first, order, added) for order in orders)
        return next((trial for trial in trials if trial is not None), None)

    def _served(
        self, base: Conditions, first: Trial, roles: tuple[Role, ...], added: set[str]
    ) -> Trial | None:
        trial = first
        for index, role in enumerate(roles):
            wide = _with_all_room(base.target, self.devices, role, roles[index:], trial, added)
            base = replace(base, target=wide)
            tried = self.tries.outcome(base)
            if tried is None or role in tried.failing_roles:
                return None
            trial = tried
        tried = self.tries.outcome(base)
        return tried if tried is not None and tried.fits else None

    def _exact(self, base: Conditions, first: Trial) -> Iterator[Trial]:
        """With one of several pools as large as must be: without a limit it would hold more."""
        for role in first.failing_roles:
            whole = largest_shortfall(problem_of(first, role))
            if whole is not None and len(whole.pools) == 1 < len(base.target.pools_of(role)):
                sized = with_sizes(base.target, {whole.pools[0]: whole.needed_bytes})
                trial = self.tries.outcome(replace(base, target=sized))
                if trial is not None and trial.fits:
                    yield trial

    def _relaxed(self, base: Conditions, first: Trial) -> Iterator[Trial]:
        """With one pool of each failing role without a limit."""
        choices = [base.target.pools_of(role) for role in first.failing_roles]
        for pools in product(*choices):
            unlimited = with_sizes(base.target, {pool.name: None for pool in pools})
            trial = self.tries.outcome(replace(base, target=unlimited))
            if trial is not None and trial.fits:
                yield trial


def _exceeds(trial: Trial) -> bool:
    return any(use.excess_bytes for use in trial.stored.stack)


def _least_stack(trial: Trial) -> int:
    """The `--max-stack-size`, one for all contexts, that this trial's stacks keep, reserves included."""
    target = trial.conditions.target
    needs = [use.size_bytes + target.context(use.context).stack_reserve_bytes for use in trial.stored.stack]
    return max((*needs, *(context.stack_reserve_bytes + 1 for context in target.contexts)), default=1)


def _with_stack(base: Conditions, stack_bytes: int | None) -> Conditions:
    """Every stack of this size, whether or not its memory has it."""
    if stack_bytes is None:
        return base
    devices = tuple(
        replace(d, contexts=tuple(replace(c, max_stack_size_bytes=stack_bytes) for c in d.contexts))
        for d in base.target.devices
    )
    return replace(base, target=replace(base.target, devices=devices))


def _short_roles(target: Target, trial: Trial) -> tuple[Role, ...]:
    """Roles without a plan, and those whose pools must make room in a memory that is too full."""
    full = [m.name for m in target.memories if (bytes_left(target, m) or 0) < 0]
    crowded = {pool.role for name in full for pool in target.pools_in(name)}
    return tuple(role for role in ROLES if role in trial.failing_roles or role in crowded)


def _with_all_room(
    target: Target,
    devices: tuple[Device, ...],
    role: Role,
    roles: tuple[Role, ...],
    trial: Trial,
    added: set[str],
) -> Target:
    """In each memory one pool of the role with all that others leave it.

    It is one that is added, or else the first that a device of the program may use.
    """
    names = {device.name for device in devices}
    widened: dict[str, Pool] = {}
    for memory in target.memories:
        pools = [p for p in target.pools_in(memory.name) if p.role is role and not p.is_for_io]
        if not pools:
            continue
        chosen = min(pools, key=lambda pool: (pool.name not in added, names.isdisjoint(pool.devices)))
        least = {
            pool.name: _least_bytes(pool, role, roles, trial, added)
            for pool in target.pools
            if pool.role in ROLES
        }
        room_bytes = room_for(with_sizes(target, least), chosen)
        size_bytes = None if room_bytes is None else max(room_bytes, LEAST_BYTES)
        widened[chosen.name] = replace(chosen, size_bytes=size_bytes, takes_remainder=True)
    # Those for inputs and outputs take what these need; `_sized` looks whether the memory has it.
    for pool in (pool for pool in target.pools_of(role) if pool.is_for_io):
        widened[pool.name] = replace(pool, size_bytes=None, takes_remainder=False)
    return with_pools(target, widened)


def _least_bytes(pool: Pool, role: Role, roles: tuple[Role, ...], trial: Trial, added: set[str]) -> int:
    """What a pool keeps when one of `role` in its memory is widened; `roles` are those that are to be widened yet."""
    top_bytes = trial.tops.get(pool.name, 0)
    if pool.name in added:
        return top_bytes
    if pool.is_for_io and trial.conditions.options.io is not ir.Io.WORKSPACE:
        return LEAST_BYTES  # nobody uses it
    if pool.role not in roles:
        return max(top_bytes, LEAST_BYTES)
    if pool.role is not role or pool.takes_remainder or pool.size_bytes is None:
        return LEAST_BYTES
    return pool.size_bytes


def _sized(
    change: Remedy, target: Target, trial: Trial, stack_bytes: int | None
) -> tuple[Remedy, tuple[int, int]] | None:
    """The remedy with the sizes that a trial needs, and how much it asks for; None if a memory lacks them.

    Args:
        change: The remedy without sizes.
        target: With the change and the stack.
        trial: Of this target, with some pools larger.
        stack_bytes: Of every stack, if that changes too.
    """
    tops = trial.tops
    added = {pool.name for pool in change.pools}
    sizes: dict[str, int] = {}
    for pool in target.pools:
        top_bytes = tops.get(pool.name, 0)
        is_open = pool.takes_remainder or pool.size_bytes is None
        is_too_small = not is_open and pool.size_bytes is not None and top_bytes > pool.size_bytes
        if pool.name in added or is_too_small:
            sizes[pool.name] = top_bytes
    grown_bytes = sum(size - (target.pool(name).size_bytes or 0) for name, size in sizes.items())
    sizes |= shrunk(resized(target, sizes), set(sizes), tops)
    if any(missing_bytes(resized(target, sizes), memory, tops) > 0 for memory in target.memories):
        return None
    overrides = Overrides(
        workspace=_pool_list(target, Role.WORKSPACE, added, sizes),
        parameters=_pool_list(target, Role.PARAMETERS, added, sizes),
        resize=tuple(ResizeOption(name, size) for name, size in sizes.items() if name not in added),
        max_stack_size=stack_bytes,
    )
    return replace(change, overrides=overrides, pools=()), (grown_bytes, len(sizes))


def _pool_list(target: Target, role: Role, added: set[str], sizes: dict[str, int]) -> tuple[PoolOption, ...]:
    """All pools of a role as options, if one is added; those that were there with the size that they had."""
    pools = [pool for pool in target.pools_of(role) if not pool.is_for_io]
    if not any(pool.name in added and sizes.get(pool.name) for pool in pools):
        return ()
    return tuple(
        PoolOption(
            pool.name,
            sizes[pool.name] if pool.name in added else None if pool.takes_remainder else pool.size_bytes,
            None if pool.memory == pool.name else pool.memory,
        )
        for pool in pools
        if pool.name not in added or sizes[pool.name]
    )
