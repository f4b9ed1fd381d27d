"""Writes a plan into the program: scopes name the pool, annotations and constants the offset.

What is requested at run time is in the pool of its arena and has no offset.
With the offsets known, each kernel also learns which of its parameters never overlap.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from bytewright import ir
from bytewright.ir.definitions import Definition, redefined, redefined_constants
from bytewright.ir.walk import allocations, calls
from bytewright.plan.solution import Solution

Argument = ir.Region | ir.Expr
Planned = Mapping[str, tuple[ir.Scope | None, int, int]]


def apply_solution(module: ir.Module, workspace: Solution, parameters: Solution) -> ir.Module:
    """Returns the module with every allocation of the entry and every constant in its place.

    What the problems did not hold stays as it is: the verifier and code generation refuse it.
    """
    entries = tuple(redefined(entry, _placed(allocations(entry), workspace)) for entry in module.entries)
    return replace(
        module,
        kernels=_with_noalias(module.kernels, entries),
        entries=entries,
        constant_buffers=redefined_constants(module, _placed(module.constant_buffers, parameters)),
    )


def _placed(definitions: Iterable[Definition], solution: Solution) -> dict[str, ir.Storage]:
    found: dict[str, ir.Storage] = {}
    for definition in definitions:
        storage = definition.storage
        placement = solution.placement_of.get(storage.arena or definition.buffer.name)
        if placement is not None:
            offset = placement.offset if storage.arena is None else None
            scope = ir.pool_scope(placement.pool)
            found[definition.buffer.name] = storage.narrowed(scope=scope, offset=offset)
    return found


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who calls, with what tells two arguments of its calls apart.

    Attributes:
        planned: Where an entry's allocations lie that have an offset, by name: scope, begin and end.
        own: Names of a kernel's arrays.
        parameters: Names of a kernel's buffer parameters.
        noalias: Pairs of them that never overlap.
    """

    is_entry: bool
    planned: Planned
    own: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    noalias: frozenset[frozenset[str]] = frozenset()

    def tells_apart(self, first: Argument, second: Argument) -> bool:
        """Whether two arguments never overlap."""
        if self.is_entry:
            return _disjoint(first, second, self.planned)
        return _disjoint_in_kernel(first, second, self)


def _with_noalias(
    kernels: tuple[ir.PrimFunc, ...], entries: tuple[ir.PrimFunc, ...]
) -> tuple[ir.PrimFunc, ...]:
    """The kernels with pairs of parameters of which one at least is written, and which are disjoint at every call."""
    found: dict[str, list[tuple[_Caller, ir.Call]]] = {}
    for entry in entries:
        _collect_calls(entry, _Caller(True, _planned(entry)), found)
    known: list[ir.PrimFunc] = []
    for kernel in reversed(kernels):  # callers first: what they know of their parameters goes down
        pairs = _disjoint_pairs(kernel, found.get(kernel.name, []))
        known.append(replace(kernel, noalias=pairs))
        _collect_calls(kernel, _calling_kernel(known[-1]), found)
    return tuple(reversed(known))


def _collect_calls(
    function: ir.PrimFunc, caller: _Caller, found: dict[str, list[tuple[_Caller, ir.Call]]]
) -> None:
    for call in calls(function):
        found.setdefault(call.callee, []).append((caller, call))


def _planned(entry: ir.PrimFunc) -> Planned:
    return {
        a.buffer.name: (a.scope, a.storage.offset, a.storage.offset + ir.size_bytes(a.buffer))
        for a in allocations(entry)
        if a.storage.offset is not None
    }


def _calling_kernel(kernel: ir.PrimFunc) -> _Caller:
    own = frozenset(a.buffer.name for a in allocations(kernel))
    parameters = frozenset(parameter.buffer.name for parameter in kernel.buffer_parameters)
    return _Caller(False, {}, own, parameters, frozenset(map(frozenset, kernel.noalias)))


def _disjoint_pairs(kernel: ir.PrimFunc, calls: list[tuple[_Caller, ir.Call]]) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for (i, first), (j, second) in combinations(enumerate(kernel.parameters), 2):
        if not isinstance(first, ir.BufferParameter) or not isinstance(second, ir.BufferParameter):
            continue
        if first.access is ir.Access.READ and second.access is ir.Access.READ:
            continue
        if all(caller.tells_apart(call.arguments[i], call.arguments[j]) for caller, call in calls):
            pairs.append((first.buffer.name, second.buffer.name))
    return tuple(pairs)


def _disjoint(first: Argument, second: Argument, planned: Planned) -> bool:
    if not isinstance(first, ir.Region) or not isinstance(second, ir.Region):
        return True
    if first.buffer.name == second.buffer.name:
        return False
    names = (first.buffer.name, second.buffer.name)
    if not all(name in planned for name in names):
        # Different tensors of the caller: the interface asks for disjoint ones, and checks it. Or what is requested at
        # run time: from an arena that lives during the call and hands out no byte twice, or from whoever stands in.
        return True
    (pool, begin, end), (other_pool, other_begin, other_end) = (planned[name] for name in names)
    return pool != other_pool or end <= other_begin or other_end <= begin


def _disjoint_in_kernel(first: Argument, second: Argument, caller: _Caller) -> bool:
    """Whether two arguments that a kernel passes never overlap: its arrays, or parameters of which that is known."""
    if not isinstance(first, ir.Region) or not isinstance(second, ir.Region):
        return True
    names = (first.buffer.name, second.buffer.name)
    if names[0] == names[1]:
        return False
    if not all(name in caller.own or name in caller.parameters for name in names):
        return False  # a view, or a constant: what it shows is not looked into
    return not caller.own.isdisjoint(names) or frozenset(names) in caller.noalias
