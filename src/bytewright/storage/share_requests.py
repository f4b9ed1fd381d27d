"""One request in the place of several that a callee uses in turn: memory requested at run time, shared within a call.

What is requested lies in a stack of blocks for the whole call, so that buffers of a callee's callees that are never
needed at once would each have bytes of their own. Where two of them ask for the same (shape, type, alignment, pools),
one block serves both.
"""

from collections.abc import Iterator
from dataclasses import replace

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.analyses.body_clock import BodyClock, Interval, are_apart, body_clocks
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.walk import allocations, calls
from bytewright.target.model import Target


def share_requests(module: ir.Module, target: Target) -> ir.Module:
    """Returns the module whose entry allocates less of what is requested at run time."""
    clocks = body_clocks(module, target)
    return replace(module, entries=tuple(_shared(entry, module, clocks) for entry in module.entries))


def _shared(entry: ir.PrimFunc, module: ir.Module, clocks: dict[str, BodyClock]) -> ir.PrimFunc:
    instead = {
        request: other
        for call, requests in requests_by_call(entry, module)
        for request, other in _in_turn(call, requests, clocks[call.callee])
    }
    if not instead:
        return entry
    also: dict[ir.Buffer, list[str]] = {}
    for request, other in instead.items():
        also.setdefault(other, []).append(request.name)

    def share(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        match statement:
            case ir.Allocate(buffer=buffer) if buffer in instead:
                return ()
            case ir.Allocate(buffer=buffer) if buffer in also:
                reason = f"share_requests: serves {', '.join(also[buffer])} in turn"
                return (replace(statement, storage=statement.storage.narrowed(reason)),)
            case ir.Call(arguments=arguments):
                chosen = (
                    replace(a, buffer=instead.get(a.buffer, a.buffer)) if isinstance(a, ir.Region) else a
                    for a in arguments
                )
                return (replace(statement, arguments=tuple(chosen)),)
            case _:
                return (statement,)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(statement=share)))


def _in_turn(
    call: ir.Call, requests: list[ir.Allocate], clock: BodyClock
) -> Iterator[tuple[ir.Buffer, ir.Buffer]]:
    """Requests of a call that another one serves, each with that one."""
    kept: list[tuple[ir.Allocate, list[Interval]]] = []
    for request in requests:
        passed = [
            interval or (0, 1)
            for argument, interval in zip(call.arguments, clock.intervals, strict=True)
            if isinstance(argument, ir.Region) and argument.buffer == request.buffer
        ]
        needed = (min(lower for lower, _ in passed), max(upper for _, upper in passed))
        for other, intervals in kept:
            if _ask_for_the_same(other, request) and all(are_apart(needed, i) for i in intervals):
                intervals.append(needed)
                yield request.buffer, other.buffer
                break
        else:
            kept.append((request, [needed]))


def _ask_for_the_same(first: ir.Allocate, second: ir.Allocate) -> bool:
    are_alike = replace(first.buffer, name="") == replace(second.buffer, name="")
    return are_alike and first.scope == second.scope and first.storage.candidates == second.storage.candidates


def requests_by_call(entry: ir.PrimFunc, module: ir.Module) -> Iterator[tuple[ir.Call, list[ir.Allocate]]]:
    """What each call needs as scratch that is requested at run time, in the order of its arguments."""
    requested = {
        a.buffer: a
        for a in allocations(entry)
        if (not ir.has_constant_size(a.buffer) or a.storage.on_request is not None)
        and a.storage.candidates is not None
    }
    num_calls: dict[ir.Buffer, int] = {}
    for call in calls(entry):
        for buffer in dict.fromkeys(a.buffer for a in call.arguments if isinstance(a, ir.Region)):
            num_calls[buffer] = num_calls.get(buffer, 0) + 1
    for call in calls(entry):
        scratch = [buffer for buffer in dict.fromkeys(_scratch(call, module)) if num_calls[buffer] == 1]
        requests = [requested[buffer] for buffer in scratch if buffer in requested]
        if requests:
            yield call, requests


def _scratch(call: ir.Call, module: ir.Module) -> list[ir.Buffer]:
    kernel = module.kernel(call.callee)
    if kernel is None:
        return []
    return [
        argument.buffer
        for parameter, argument in buffer_arguments(kernel, call)
        if parameter.role is ir.ParameterRole.SCRATCH
    ]
