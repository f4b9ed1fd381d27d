"""Writes a plan into the program: scopes name the pool, annotations and constants the offset.

What is requested at run time is in the pool of its arena and has no offset.
With the offsets known, each kernel also learns which of its parameters never overlap.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations

from bytewright import ir
from bytewright.ir.definitions import Definition, redefined, redefined_constants
from bytewright.ir.walk import allocations, calls
from bytewright.plan.solution import Solution

# Whether two buffers of one caller, by their names, never overlap.
Apart = Callable[[str, str], bool]


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


def _with_noalias(
    kernels: tuple[ir.PrimFunc, ...], entries: tuple[ir.PrimFunc, ...]
) -> tuple[ir.PrimFunc, ...]:
    """The kernels with pairs of parameters of which one at least is written, and which are disjoint at every call."""
    found: dict[str, list[tuple[Apart, ir.Call]]] = {}

    def collect(function: ir.PrimFunc, apart: Apart) -> None:
        for call in calls(function):
            found.setdefault(call.callee, []).append((apart, call))

    for entry in entries:
        collect(entry, _apart_in_entry(entry))
    known: list[ir.PrimFunc] = []
    for kernel in reversed(kernels):  # callers first: what they know of their parameters goes down
        known.append(replace(kernel, noalias=_disjoint_pairs(kernel, found.get(kernel.name, []))))
        collect(kernel, _apart_in_kernel(known[-1]))
    return tuple(reversed(known))


def _apart_in_entry(entry: ir.PrimFunc) -> Apart:
    planned = {
        a.buffer.name: (a.scope, a.storage.offset, a.storage.offset + ir.size_bytes(a.buffer))
        for a in allocations(entry)
        if a.storage.offset is not None
    }

    def apart(first: str, second: str) -> bool:
        if first not in planned or second not in planned:
            # Different tensors of the caller: the interface asks for disjoint ones, and checks it. Or what is requested
            # at run time: from an arena that lives during the call and hands out no byte twice, or from whoever stands
            # in.
            return True
        (pool, begin, end), (other_pool, other_begin, other_end) = planned[first], planned[second]
        return pool != other_pool or end <= other_begin or other_end <= begin

    return apart


def _apart_in_kernel(kernel: ir.PrimFunc) -> Apart:
    """Of what a kernel passes: its arrays, or parameters of which that is known."""
    own = {a.buffer.name for a in allocations(kernel)}
    known = own | {parameter.buffer.name for parameter in kernel.buffer_parameters}
    noalias = {frozenset(pair) for pair in kernel.noalias}

    def apart(first: str, second: str) -> bool:
        if first not in known or second not in known:
            return False  # a view, or a constant: what it shows is not looked into
        return not own.isdisjoint((first, second)) or frozenset((first, second)) in noalias

    return apart


def _disjoint_pairs(kernel: ir.PrimFunc, calls: list[tuple[Apart, ir.Call]]) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for (i, first), (j, second) in combinations(enumerate(kernel.parameters), 2):
        if not isinstance(first, ir.BufferParameter) or not isinstance(second, ir.BufferParameter):
            continue
        if first.access is ir.Access.READ and second.access is ir.Access.READ:
            continue
        if all(_are_disjoint(call.arguments[i], call.arguments[j], apart) for apart, call in calls):
            pairs.append((first.buffer.name, second.buffer.name))
    return tuple(pairs)


def _are_disjoint(first: ir.Argument, second: ir.Argument, apart: Apart) -> bool:
    """Whether two arguments of a call never overlap."""
    if not isinstance(first, ir.Region) or not isinstance(second, ir.Region):
        return True
    return first.buffer.name != second.buffer.name and apart(first.buffer.name, second.buffer.name)
