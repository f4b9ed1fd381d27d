"""Arenas for scratch that is requested around its call, at run time, from a planned buffer: because its size is known
only then, or because the device has `use-backend-alloc-workspace` (`place_scratch.py` marks what that concerns).

An arena is an allocation of its entry of constant size, so the planner places it like any other. The requests of one
call lie in it one above the other, and are all released when the call has ended, so calls share it. Its size is the
most that any call needs: sizes and padding only grow with the extents, so the upper bounds are the worst case, and it
is reached.

Requests of one call that never need to hold at once are one request (`share_requests.py`).

At most one arena of an entry ends in a pool. Requests with the fewest candidate pools come first and keep them; another
one joins an arena whose pools are all among its own and hold its call, and else gets an arena in the pools that are
left to it. Runs after `attach_candidates`. Other allocations are planned at their upper bounds: lifetimes of
tensors are not nested, so no arena could serve them.
"""

from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.definitions import redefined
from bytewright.ir.walk import names_in
from bytewright.storage.share_requests import requests_by_call, share_requests
from bytewright.target.model import Target

_MOST_NAMES = 4  # of requests that the provenance of an arena lists


@dataclass(slots=True)
class _Arena:
    """An arena in the making: the pools that it may end in, and the requests of each call, in their order."""

    name: str
    pools: tuple[str, ...]
    calls: list[list[ir.Allocate]]

    def admit(self, pools: tuple[str, ...]) -> None:
        """Takes requests that may go to some of its pools; the others are out."""
        self.pools = tuple(pool for pool in self.pools if pool in pools)

    @property
    def scope(self) -> ir.Scope:
        return ir.pool_scope(self.pools[0]) if len(self.pools) == 1 else ir.WORKSPACE

    @property
    def requests(self) -> tuple[ir.Allocate, ...]:
        return tuple(request for requests in self.calls for request in requests)

    def allocation(self) -> ir.Allocate:
        """The arena itself, large enough for each call."""
        num_bytes = max(top_bytes(tuple(request.buffer for request in requests)) for requests in self.calls)
        alignment = max(request.buffer.alignment for request in self.requests)
        names = [request.buffer.name for request in self.requests]
        listed = ", ".join(names[:_MOST_NAMES])
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        line_bytes = max(request.buffer.line_bytes for request in self.requests)
        buffer = ir.Buffer(self.name, (num_bytes,), ir.DType.I8, alignment, line_bytes=line_bytes)
        reason = (
            f"make_arenas: holds what is requested at run time: {listed}{more}, at most {num_bytes} B at once"
        )
        return ir.Allocate(buffer, ir.UNDECIDED.narrowed(reason, scope=self.scope, candidates=self.pools))

    def serve(self, request: ir.Allocate) -> ir.Storage:
        """What is decided of a request that knows its arena and may go nowhere else."""
        scope = ir.join_scopes(request.scope, self.scope)
        why = request.storage.on_request
        cause = f", as {why} asks" if why is not None and ir.has_constant_size(request.buffer) else ""
        others = "" if request.storage.candidates == self.pools else f": {{{', '.join(self.pools)}}}"
        reason = f"make_arenas: requested from '{self.name}' around its call{cause}{others}"
        return request.storage.narrowed(reason, scope=scope, candidates=self.pools, arena=self.name)


def make_arenas(module: ir.Module, target: Target) -> ir.Module:
    """Returns the module whose entries have arenas, under names of their own, and an arena for each request."""
    shared = share_requests(module, target)
    taken = {name for entry in shared.entries for name in names_in(entry)}
    taken |= {constant.buffer.name for constant in shared.constant_buffers}
    stems = {e.name: f"{e.name}/arena" if len(shared.entries) > 1 else "arena" for e in shared.entries}
    entries = (_with_arenas(entry, shared, target, stems[entry.name], taken) for entry in shared.entries)
    return replace(shared, entries=tuple(entries))


def top_bytes(requests: tuple[ir.Buffer, ...]) -> int:
    """Where requests that follow each other end at most, from a base that is aligned for each of them."""
    top = 0
    for buffer in requests:
        top = -(-top // buffer.alignment) * buffer.alignment + ir.extent_bytes(buffer)
    return top


def _with_arenas(
    entry: ir.PrimFunc, module: ir.Module, target: Target, stem: str, taken: set[str]
) -> ir.PrimFunc:
    """The entry with arenas whose names begin so, and are none that is taken."""
    arenas = _arenas(entry, module, target, stem, taken)
    if not arenas:
        return entry
    served = {r.buffer.name: arena.serve(r) for arena in arenas for r in arena.requests}
    body = redefined(entry, served).body
    return replace(entry, body=ir.Seq((*(arena.allocation() for arena in arenas), *body.statements)))


def _arenas(
    entry: ir.PrimFunc, module: ir.Module, target: Target, stem: str, taken: set[str]
) -> list[_Arena]:
    calls = [requests for _, requests in requests_by_call(entry, module)]
    arenas: list[_Arena] = []
    arena_of: dict[ir.Buffer, _Arena] = {}
    by_freedom = sorted(
        ((request, requests) for requests in calls for request in requests),
        key=lambda pair: len(_pools(pair[0])),
    )
    for request, requests in by_freedom:
        arena = _joined(request, requests, arenas, target)
        if arena is None:
            arena = _Arena(unique_name(stem, taken, 2), _left_to(request, arenas), [])
            arenas.append(arena)
        arena.admit(_pools(request))
        arena_of[request.buffer] = arena
    for requests in calls:
        for arena in arenas:
            own = [request for request in requests if arena_of[request.buffer] is arena]
            if own:
                arena.calls.append(own)
    return arenas


def _joined(
    request: ir.Allocate, requests: list[ir.Allocate], arenas: list[_Arena], target: Target
) -> _Arena | None:
    """The arena that a request shares with others; None where it needs one of its own."""
    pools = _pools(request)
    call_bytes = top_bytes(tuple(other.buffer for other in requests))
    for arena in arenas:
        if set(arena.pools) <= set(pools) and any(_holds(target, pool, call_bytes) for pool in arena.pools):
            return arena
    if _left_to(request, arenas):
        return None
    return next(arena for arena in arenas if not set(arena.pools).isdisjoint(pools))


def _holds(target: Target, pool: str, num_bytes: int) -> bool:
    size_bytes = target.pool(pool).size_bytes
    return size_bytes is None or size_bytes >= num_bytes


def _left_to(request: ir.Allocate, arenas: list[_Arena]) -> tuple[str, ...]:
    """The pools that a request may go to and that no arena may end in."""
    reserved = {pool for arena in arenas for pool in arena.pools}
    return tuple(pool for pool in _pools(request) if pool not in reserved)


def _pools(request: ir.Allocate) -> tuple[str, ...]:
    pools = request.storage.candidates
    assert pools is not None, "attach_candidates has been here"
    return pools
