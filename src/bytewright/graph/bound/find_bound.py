"""Which operators are computed by which functions of the application: what `--kernel PATTERN=SYMBOL` asks for.

Runs on the graph as it was imported, so that a pattern means the model's operators, whatever passes make of them. The
values of what is bound go to the device that the function is for.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bytewright import ir
from bytewright.diagnostics import Collector, CompileError, compile_error
from bytewright.graph.bound.function import ApplicationFunction, Bound, BoundValues, ScalarArgument
from bytewright.graph.bound.read_functions import read_functions
from bytewright.ir.operators import ModelOperator, model_operators
from bytewright.ops.data import reshaped
from bytewright.options import KernelBinding
from bytewright.target.mistake import closest, closest_names, did_you_mean, listing
from bytewright.target.model import Target

_MOST_SHOWN = 8


def find_bound(
    module: ir.Module, target: Target, bindings: tuple[KernelBinding, ...], file: Path | None
) -> BoundValues:
    """What the bindings bind.

    Raises:
        CompileError: BW760 to BW762, of the file and of what cannot be bound; all bindings at once.
    """
    if not bindings:
        return {}
    if file is None:
        message = f"--kernel '{bindings[0]}' names a function, and no file describes it"
        raise compile_error("BW761", message, help="--kernel-file FILE.toml")
    functions = read_functions(file)
    collector = Collector()
    found: dict[str, Bound] = {}
    for binding in bindings:
        with collector.catch():
            function = _function(binding, functions, target)
            for bound in _bound_by(binding, function, module):
                _add(found, bound)
    collector.stop_if_any()
    return found


def refuse_bindings(bindings: tuple[KernelBinding, ...]) -> None:
    """Refuses bindings for a program, which calls what it calls.

    Raises:
        CompileError: BW762.
    """
    if bindings:
        message = f"--kernel '{bindings[0]}': the model is kernels and an entry already, and has no operators"
        raise compile_error("BW762", message, help="in the program: extern SYMBOL(...), and call it")


def place_bound(module: ir.Module, bound: BoundValues) -> ir.Module:
    """The module with the values of bound operators on the devices that their functions are for."""

    def placed(value: ir.Value) -> ir.Value:
        device = bound[value.name].function.device if value.name in bound else None
        if device is None:
            return value
        return replace(value, type=replace(value.type, place=replace(value.type.place, device=device)))

    def with_places(function: ir.Function) -> ir.Function:
        nodes = (replace(node, outputs=tuple(map(placed, node.outputs))) for node in function.nodes)
        return replace(function, nodes=tuple(nodes))

    return replace(module, functions=tuple(map(with_places, module.functions)))


def _function(
    binding: KernelBinding, functions: Mapping[str, ApplicationFunction], target: Target
) -> ApplicationFunction:
    function = functions.get(binding.symbol)
    if function is None:
        message = f"--kernel '{binding}' names a function that the file does not describe"
        note = listing("functions", functions)
        raise compile_error("BW761", message, (note,), closest(binding.symbol, functions))
    devices = [device.name for device in target.devices]
    arguments = (a for a in function.arguments if not isinstance(a, ScalarArgument))
    memories = [item.memory for item in (*arguments, *function.scratch)]
    named = [device for memory in memories for device in memory.touched_by or ()]
    for device in dict.fromkeys(([function.device] if function.device else []) + named):
        if device not in devices:
            message = (
                f"'{function.symbol}' names the device '{device}', which target '{target.name}' does not have"
            )
            note = listing("devices", devices)
            raise compile_error("BW761", message, (note,), closest(device, devices), function.where)
    return function


def _bound_by(binding: KernelBinding, function: ApplicationFunction, module: ir.Module) -> list[Bound]:
    operators = [(graph, operator) for graph in module.functions for operator in model_operators(graph)]
    matching = [(graph, operator) for graph, operator in operators if operator.matches(binding.pattern)]
    if not matching:
        raise _nothing_matches(binding, [operator for _, operator in operators])
    for graph, operator in matching:
        if graph is not module.graph:  # its values are others at each place where it runs
            message = (
                f"--kernel '{binding}' binds '{operator.name}' of function '{graph.name}', which others run"
            )
            help_text = f"bind operators of '{module.graph.name}', where the model begins"
            raise compile_error("BW762", message, help=help_text, where=str(operator.where))
    own = [operator for _, operator in matching]
    found: list[Bound] = []
    for group in _connected(own) if function.takes_region else [[operator] for operator in own]:
        _check_result(binding, group, module.graph)
        values = frozenset(v.name for operator in group for n in operator.nodes for v in n.outputs)
        found.append(Bound(function, binding, values, group[-1].where))
    return found


def _nothing_matches(binding: KernelBinding, operators: list[ModelOperator]) -> CompileError:
    """The refusal of a pattern, with what may have been meant, or what there is."""
    names = [name for operator in operators for name in operator.names]
    message = f"--kernel '{binding}' matches no operator"
    near = closest_names(binding.pattern.strip("*"), names)
    shown = list(dict.fromkeys([*(o.kind for o in operators), *(o.name for o in operators)]))
    more = ", ..." if len(shown) > _MOST_SHOWN else ""
    note = f"kinds and names: {', '.join(shown[:_MOST_SHOWN])}{more}"
    return compile_error("BW761", message, (note,), did_you_mean(near))


def _connected(operators: list[ModelOperator]) -> list[list[ModelOperator]]:
    """The operators in groups that a value connects, each in order."""
    group_of: dict[str, int] = {}
    groups: dict[int, list[ModelOperator]] = {}
    for number, operator in enumerate(operators):
        read = [name for node in operator.nodes for name in node.inputs]
        joined = sorted({group_of[name] for name in read if name in group_of})
        merged = [member for other in joined for member in groups.pop(other)]
        groups[number] = [*merged, operator]
        for member in groups[number]:
            group_of.update((value.name, number) for node in member.nodes for value in node.outputs)
    order = {operator.name: position for position, operator in enumerate(operators)}
    return [sorted(group, key=lambda operator: order[operator.name]) for group in groups.values()]


def _check_result(binding: KernelBinding, group: list[ModelOperator], graph: ir.Function) -> None:
    """One tensor leaves the group, and something is computed."""
    nodes = [node for operator in group for node in operator.nodes]
    own = {value.name for node in nodes for value in node.outputs}
    origin = reshaped(replace(graph, nodes=tuple(nodes)))
    inside = {id(node) for node in nodes}
    read = [name for node in graph.nodes if id(node) not in inside for name in node.inputs]
    leaving = [name for name in dict.fromkeys((*read, *graph.results)) if name in own]
    results = list(dict.fromkeys(origin.get(name, name) for name in leaving))
    what = f"--kernel '{binding}' binds {', '.join(_shown(group))}"
    where = str(group[-1].where)
    if len(results) > 1:
        names = ", ".join(f"'{name}'" for name in leaving)
        message = f"{what}, which has {len(results)} results ({names}): one call computes one"
        raise compile_error("BW762", message, where=where)
    if not results or results[0] not in own:
        raise compile_error("BW762", f"{what}, which computes nothing that is read", where=where)


def _shown(group: list[ModelOperator]) -> list[str]:
    names = [f"'{operator.name}'" for operator in group]
    return [*names[:3], f"{len(names) - 3} more"] if len(names) > 3 else names


def _add(found: dict[str, Bound], bound: Bound) -> None:
    for name in sorted(bound.values):
        if name in found:
            other = found[name].binding
            message = f"--kernel '{bound.binding}' and --kernel '{other}' both bind the operator of '{name}'"
            raise compile_error("BW762", message, where=str(bound.where))
    found.update((name, bound) for name in bound.values)
