"""`check --stack`: the planned stack against the one that the C compiler reports for the generated code.

    planned <= measured <= <MODEL>_STACK_SIZE <= what the target admits

Measured is the worst path from the model's functions through the compiler's call graph, with the declared stack of
what lies outside of the bundle. It may be less than planned for one reason alone: the compiler keeps arrays in
registers. Then the same code is compiled once more without optimisation, where every array has its bytes in
memory, and planned must not exceed that.

Another device that runs C has a stack of its own, which is used from the function of the bundle that its driver calls.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bytewright.diagnostics import CompileError, Diagnostic, InternalError, compile_error
from bytewright.inspect.stack.call_graph import (
    INDIRECT,
    CallGraph,
    WorstPath,
    find_cycle,
    reachable,
    read_call_graph,
    worst_path,
)
from bytewright.record.buffers import PlannedStack
from bytewright.record.devices import PlannedDevice
from bytewright.record.names import Names, by_entry, names_of
from bytewright.record.plan import Plan

# Compiler flags -> the call graph of each source, by the source's name.
CompileCallGraphs = Callable[[tuple[str, ...]], Mapping[str, str]]
IN_MEMORY = ("-O0",)
_AGAIN = "compile the model again"


@dataclass(frozen=True, slots=True)
class StackProof:
    """A stack that keeps its promise.

    Attributes:
        context: The execution context that calls the model.
        stack: What the plan says of it.
        measured: The worst path as compiled.
        in_memory: The one with every array in memory; None where nothing had to be compiled again.
    """

    context: str
    stack: PlannedStack
    measured: WorstPath
    in_memory: WorstPath | None


def check_stack(
    plan: Plan,
    compile_call_graphs: CompileCallGraphs,
    flags: tuple[str, ...] = ("-O2",),
    device: PlannedDevice | None = None,
) -> StackProof:
    """Compares the plan's stack with the compiler's.

    Args:
        plan: The bundle's plan.
        compile_call_graphs: Compiles the bundle's sources with the target's compiler and these flags.
        flags: How the application compiles the bundle.
        device: Whose stack, if not that of the entry's device; it runs C.

    Raises:
        CompileError: BW403, all faults at once, with the path and its sums; or what compiling raises.
    """
    names = names_of(plan)
    runs = tuple(name for _, each in by_entry(plan, names) for name in each.functions.values())
    own = plan.device if device is None else plan.hardware.device(device.name)
    context = own.contexts[0].name
    stack = plan.stack.get(context)
    if stack is None:
        raise compile_error("BW403", f"the plan says nothing about the stack of '{context}'")
    graph, roots = _understand(compile_call_graphs(flags), names, runs, device)
    _refuse_unprovable(graph, roots, plan)
    external = {entry.symbol: entry.size_bytes for entry in plan.hardware.external_stacks}
    measured = _worst_of(graph, roots, external)
    in_memory = None
    if stack.planned_bytes > measured.total_bytes:
        in_memory_graph, in_memory_roots = _understand(compile_call_graphs(IN_MEMORY), names, runs, device)
        in_memory = _worst_of(in_memory_graph, in_memory_roots, external)
    promise = names.stack_size if device is None else f"the stack promised on '{context}'"
    _compare(promise, stack, measured, in_memory)
    return StackProof(context, stack, measured, in_memory)


def _understand(
    texts: Mapping[str, str], names: Names, runs: Sequence[str], device: PlannedDevice | None
) -> tuple[CallGraph, list[str]]:
    """The call graph, and the functions that an application calls: what the entry exports and all packed forms, or the
    one for the driver of a device.
    """
    packed = texts.get(names.included(names.packed_source).removesuffix(".c"))
    try:
        graph = read_call_graph(texts.values())
        exported = read_call_graph([texts[names.model], *([] if packed is None else [packed])])
    except (KeyError, ValueError) as error:
        raise compile_error(
            "BW502",
            "the compiler's call graph cannot be understood",
            (str(error),),
            "use gcc, which writes it",
        ) from error
    if device is not None:
        return graph, [names.execute(device)]
    roots = [title for title in exported if ":" not in title]
    for name in runs:
        if name not in roots:
            raise InternalError(f"the call graph of {names.entry_source} does not define {name}")
    return graph, roots


def _worst_of(graph: CallGraph, roots: list[str], external: Mapping[str, int]) -> WorstPath:
    return max((worst_path(graph, root, external) for root in roots), key=lambda path: path.total_bytes)


def _refuse_unprovable(graph: CallGraph, roots: list[str], plan: Plan) -> None:
    """Whatever has no bound: recursion, calls through pointers, variable frames, undeclared functions."""
    target, source = plan.hardware, Names.included(names_of(plan).entry_source)

    def is_of_entry(title: str) -> bool:
        return title in roots or title.startswith(f"{source}:")

    faults: list[Diagnostic] = []
    cycle = find_cycle(graph, roots)
    if cycle is not None:
        faults.append(_fault("the generated code recurs, so its stack has no bound", " -> ".join(cycle)))
    for title in reachable(graph, roots):
        callers = [name for name, frame in graph.items() if title in frame.callees]
        if title == INDIRECT and plan.devices and all(is_of_entry(caller) for caller in callers):
            continue  # a hook of a driver, whose stack the application knows
        if title == INDIRECT:
            faults.append(_fault(f"'{callers[0]}' calls through a pointer, so its stack has no bound"))
        elif title not in graph and target.external_stack_bytes(title) is None:
            message = f"the stack of '{title}', which '{callers[0]}' calls, is not declared"
            text = f"add to the target file, under [stack.external]: {title} = BYTES"
            faults.append(_fault(message, help_text=text))
        elif title in graph and not graph[title].is_bounded:
            faults.append(_fault(f"the compiler gives no bound for the stack of '{title}'"))
    if faults:
        raise CompileError(faults)


def _compare(promise: str, stack: PlannedStack, measured: WorstPath, in_memory: WorstPath | None) -> None:
    faults: list[Diagnostic] = []
    if in_memory is not None and stack.planned_bytes > in_memory.total_bytes:
        message = (
            f"the plan counts {stack.planned_bytes} B of arrays on the stack, the generated code has fewer: "
            f"{in_memory.total_bytes} B with every array in memory"
        )
        faults.append(_fault(message, f"worst path: {in_memory}"))
    if measured.total_bytes > stack.size_bytes:
        missing = measured.total_bytes - stack.size_bytes
        message = (
            f"the generated code needs {measured.total_bytes} B of stack, {promise} is "
            f"{stack.size_bytes} B: {missing} B too few"
        )
        text = f"raise the device's stack-allowance-per-call in the target file by {missing} B, and {_AGAIN}"
        faults.append(_fault(message, f"worst path: {measured}", help_text=text))
    if stack.limit_bytes is not None and stack.size_bytes > stack.limit_bytes:
        limit = f"the target admits {stack.limit_bytes} B"
        faults.append(_fault(f"{promise} is {stack.size_bytes} B, {limit}"))
    if faults:
        raise CompileError(faults)


def _fault(message: str, *notes: str, help_text: str = _AGAIN) -> Diagnostic:
    return Diagnostic("BW403", message, notes, help_text)
