"""Runs each kernel the way that the placed distances between its inputs and outputs need: up, or down.

Upwards is how kernels are written; downwards is a copy of the function that runs its loops backwards, where some step
needs it. A function that one step runs up and another one down is there twice, each under a name of its own.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import InternalError
from bytewright.ir.downwards import run_downwards
from bytewright.ir.rewrite import with_blocks
from bytewright.ir.walk import calls
from bytewright.plan.solution import Solution
from bytewright.storage.find_overlaps import Direction, Overlap, scalars_of


def ways_of(overlaps: Iterable[Overlap], workspace: Solution) -> dict[int, tuple[Direction, ...]]:
    """For each step with pairs in one pool the ways that it may run, up before down.

    Raises:
        InternalError: No way holds what the planner was told.
    """
    found: dict[int, tuple[Direction, ...]] = {}
    for overlap in overlaps:
        source, output = (workspace.placement_of[name] for name in (overlap.source, overlap.output))
        if source.pool == output.pool:
            distance = output.offset - source.offset
            ways = found.get(overlap.step, tuple(Direction))
            found[overlap.step] = tuple(way for way in ways if overlap.allows(way, distance))
            if not found[overlap.step]:
                raise InternalError(
                    f"step {overlap.step} can run no way with its output where the plan has it"
                )
    return found


def choose_ways(
    module: ir.Module, overlaps: Iterable[Overlap], workspace: Solution, taken: Collection[str] = ()
) -> ir.Module:
    """The module with a function for each way that its steps need.

    Args:
        module: With the entry that the solution is of.
        overlaps: What the planner was told.
        workspace: Its answer.
        taken: Names that no function may get.
    """
    ways = ways_of(overlaps, workspace)
    if all(Direction.UP in allowed for allowed in ways.values()):
        return module
    kernels = {kernel.name: kernel for kernel in module.kernels}
    names = {
        *taken,
        *kernels,
        *(call.callee for f in (*module.kernels, *module.entries) for call in calls(f)),
    }
    copies: dict[str, dict[ir.PrimFunc, str]] = {}
    called: dict[int, str] = {}
    for number, call in enumerate(call for entry in module.entries for call in calls(entry)):
        if Direction.UP in ways.get(number, (Direction.UP,)):
            continue
        kernel = kernels[call.callee]
        down = run_downwards(kernel, scalars_of(kernel, call))
        if down is None:
            raise InternalError(f"'{kernel.name}' cannot run downwards")
        of_kernel = copies.setdefault(kernel.name, {})
        if down not in of_kernel:
            of_kernel[down] = unique_name(f"{kernel.name}_down", names)
        called[number] = of_kernel[down]
    entries = _with_callees(module.entries, called)
    functions = [
        function
        for kernel in module.kernels
        for function in (
            kernel,
            *(replace(down, name=name) for down, name in copies.get(kernel.name, {}).items()),
        )
    ]
    still_called = {call.callee for function in (*functions, *entries) for call in calls(function)}
    kept = tuple(f for f in functions if f.name in still_called or f.name not in copies)
    return replace(module, kernels=kept, entries=entries)


def _with_callees(entries: Iterable[ir.PrimFunc], called: Mapping[int, str]) -> tuple[ir.PrimFunc, ...]:
    """The entries with some of their calls, which are numbered as steps are, going elsewhere."""
    number = -1

    def change(sequence: ir.Seq) -> ir.Seq:
        return ir.Seq(tuple(map(changed, sequence.statements)))

    def changed(statement: ir.Statement) -> ir.Statement:
        nonlocal number
        if not isinstance(statement, ir.Call):
            return with_blocks(statement, change)
        number += 1
        return replace(statement, callee=called.get(number, statement.callee))

    return tuple(replace(entry, body=change(entry.body)) for entry in entries)
