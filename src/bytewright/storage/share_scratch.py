"""One parameter of a kernel in the place of several that it uses in turn: so many scratch buffers, and no more.

Each call that a kernel makes is given scratch of its own, so that the planner may place it apart from all others. But
kernels that call others twice, to some depth, would have more parameters than anybody can count. So a kernel that
would be given more than `MAX_SCRATCH` scratch buffers has some of them in one: those that are alike but for their
names, and never needed at once. First those that leave the fewest bytes idle in between. That can cost bytes: one
parameter has one address, and keeps it from the first use to the last. Kernels with fewer are left alone.

C99 promises that a function may have 127 parameters. A kernel that scratch takes over that, because it has to be there
at once, is refused.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.diagnostics import CompileError, compile_error
from bytewright.ir.analyses.body_clock import BodyClock, Interval
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.walk import statements_of

MAX_SCRATCH = 32
NUM_NAMED = 5
MAX_PARAMETERS = 127  # C99, 5.2.4.1


@dataclass(frozen=True, slots=True)
class _Shared:
    """Scratch with one address.

    Attributes:
        members: At least one; the first one gives the name.
        loop: The variable of the loop that each of them is private to.
        needed: From the first use of any to the last; None if there is none.
    """

    members: tuple[ir.Allocate, ...]
    loop: str | None
    needed: Interval | None

    def kind(self) -> Hashable:
        """What must be the same for two to be one."""
        first = self.members[0]
        return replace(first.buffer, name=""), replace(first.storage, provenance=()), first.annotations

    def with_next(self, other: _Shared) -> _Shared:
        """Both in one."""
        intervals = [interval for interval in (self.needed, other.needed) if interval is not None]
        hull = (
            (min(lower for lower, _ in intervals), max(upper for _, upper in intervals))
            if intervals
            else None
        )
        return _Shared((*self.members, *other.members), self.loop if self.loop == other.loop else None, hull)


def share_scratch(
    kernel: ir.PrimFunc, scratch: Sequence[ir.Allocate], clock: BodyClock
) -> tuple[ir.PrimFunc, tuple[ir.Allocate, ...]]:
    """The kernel, whose last parameters are its scratch, with as few of them as it may have; and what is left of them.

    Raises:
        CompileError: BW303, if C promises no function of so many parameters.
    """
    num_others = len(kernel.parameters) - len(scratch)
    is_within = num_others <= MAX_PARAMETERS  # an operator of more operands is over the limit without scratch
    limit = min(MAX_SCRATCH, MAX_PARAMETERS - num_others) if is_within else MAX_SCRATCH
    if len(scratch) <= limit:
        return kernel, tuple(scratch)
    loop_of = {
        buffer.name: s.variable.name
        for s in statements_of(kernel)
        if isinstance(s, ir.For)
        for buffer in s.private
    }
    groups = [
        _Shared((allocation,), loop_of.get(allocation.buffer.name), interval)
        for allocation, interval in zip(scratch, clock.intervals[num_others:], strict=True)
    ]
    for within_loop in (
        True,
        False,
    ):  # what several loops share is private to none, and needed for the whole of each
        groups = _fewer(groups, limit, within_loop)
    if len(groups) < len(scratch):
        kernel = _with_shared(kernel, num_others, groups)
    if is_within and num_others + len(groups) > MAX_PARAMETERS:
        raise _too_many(kernel, num_others, groups)
    return kernel, tuple(map(_allocation, groups))


def _fewer(groups: list[_Shared], limit: int, within_loop: bool) -> list[_Shared]:
    """At most so many groups if that can be, joined where the fewest bytes lie idle for the fewest ticks."""
    chains: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        chains.setdefault((group.kind(), group.loop if within_loop else None), []).append(index)
    links = sorted(
        (gap * _weight(groups[after]), after, before)
        for indices in chains.values()
        for before, after, gap in _links(indices, groups)
    )
    next_of = {before: after for _, after, before in links[: max(0, len(groups) - limit)]}
    followers = set(next_of.values())
    fewer: list[tuple[int, _Shared]] = []
    for index, group in enumerate(groups):
        if index in followers:
            continue
        position, first, joined = index, index, group
        while position in next_of:
            position = next_of[position]
            first, joined = min(first, position), joined.with_next(groups[position])
        fewer.append((first, joined))
    return [group for _, group in sorted(fewer, key=lambda item: item[0])]


def _links(indices: Sequence[int], groups: Sequence[_Shared]) -> Iterator[tuple[int, int, int]]:
    """Each group with the one that ends last before it begins, if it is not taken: before, after, ticks in between."""

    def needed(index: int) -> Interval:
        return groups[index].needed or (0, 0)

    ended: list[tuple[int, int]] = []
    for index in sorted(indices, key=lambda index: (*needed(index), index)):
        lower, upper = needed(index)
        position = bisect_right(ended, (lower, len(groups)))
        if position:
            end, before = ended.pop(position - 1)
            yield before, index, lower - end
        insort(ended, (upper, index))


def _weight(group: _Shared) -> int:
    buffer = group.members[0].buffer
    return ir.size_bytes(buffer) if ir.has_constant_size(buffer) else 1


def _allocation(group: _Shared) -> ir.Allocate:
    first, *others = group.members
    if not others:
        return first
    reason = (
        f"share_scratch: serves {len(group.members)} calls or blocks in turn, because the kernel would be given more "
        f"than {MAX_SCRATCH} scratch buffers"
    )
    return replace(first, storage=first.storage.narrowed(reason))


def _with_shared(kernel: ir.PrimFunc, num_others: int, groups: Sequence[_Shared]) -> ir.PrimFunc:
    instead = {member.buffer: group.members[0].buffer for group in groups for member in group.members[1:]}
    loop_of = {group.members[0].buffer: group.loop for group in groups}

    def share(buffer: ir.Buffer) -> ir.Buffer:
        return instead.get(buffer, buffer)

    def private(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if not isinstance(statement, ir.For) or not statement.private:
            return (statement,)
        variable = statement.variable.name
        kept = (b for b in statement.private if b not in loop_of or loop_of[b] == variable)
        return (replace(statement, private=tuple(dict.fromkeys(kept))),)

    body = rewrite_sequence(kernel.body, Rewriting(buffer=share, statement=private))
    by_buffer = {parameter.buffer: parameter for parameter in kernel.buffer_parameters}
    scratch = (by_buffer[group.members[0].buffer] for group in groups)
    return replace(kernel, parameters=(*kernel.parameters[:num_others], *scratch), body=body)


def _too_many(kernel: ir.PrimFunc, num_others: int, groups: Sequence[_Shared]) -> CompileError:
    names = [f"'{group.members[0].buffer.name}'" for group in groups]
    rest = f" and {len(names) - NUM_NAMED} more" if len(names) > NUM_NAMED else ""
    return compile_error(
        "BW303",
        f"kernel '{kernel.name}' would have {num_others + len(groups)} parameters, {len(groups)} of them scratch; "
        f"C99 promises {MAX_PARAMETERS} for a function",
        notes=(f"scratch that cannot share: {', '.join(names[:NUM_NAMED])}{rest}",),
        help="in the kernels: use the scope local or global.stack for what may lie on the stack",
        where=str(kernel.where),
    )
