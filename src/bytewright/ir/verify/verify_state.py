"""Checks what survives runs: each state is tied to a parameter and a result of the graph, or to memory of the entry."""

from collections.abc import Iterator, Sequence

from bytewright import ir
from bytewright.ir.verify.violation import Context


def check_state(context: Context) -> None:
    """Reports states whose types are open, whose initial values have others, or that are tied to nothing."""
    module = context.module
    context.report(None, module, *(fault for port in module.state for fault in _faults_of_port(port)))
    for entry in module.entries:
        buffers = ir.border_buffers(entry, ir.Border.STATE)
        kinds = [ir.TensorType(buffer.shape, buffer.dtype) for buffer in buffers]
        context.report(entry, entry, *_faults_of_tie(module, "allocates", kinds))
    if module.state and module.functions:
        graph = module.graph
        types = ir.value_types(graph, module.constants)
        results = [types[name] for name in graph.results if name in types]  # others are reported already
        first = (len(module.inputs), len(module.outputs))
        taken = [value.type for value in graph.parameters[first[0] :]]
        context.report(graph, graph, *_faults_of_tie(module, "takes", taken))
        context.report(graph, graph, *_faults_of_tie(module, "gives back", results[first[1] :]))


def _faults_of_port(port: ir.Port) -> Iterator[str]:
    if not all(isinstance(extent, int) for extent in port.type.shape):
        yield f"state '{port.name}' is {port.type}, so its size would change from run to run"
    elif port.initial is not None and port.initial.type != _plain(port.type):
        yield f"state '{port.name}' is {_plain(port.type)}, and begins as {port.initial.type}"


def _faults_of_tie(module: ir.Module, does: str, kinds: Sequence[ir.TensorType]) -> Iterator[str]:
    if len(kinds) != len(module.state):
        yield f"the module has {len(module.state)} states, and {does} {len(kinds)}"
        return
    for port, kind in zip(module.state, kinds, strict=True):
        if _plain(port.type) != _plain(kind):
            yield f"state '{port.name}' is {_plain(port.type)}, what it {does} is {_plain(kind)}"


def _plain(kind: ir.TensorType) -> ir.TensorType:
    return ir.TensorType(kind.shape, kind.dtype)
