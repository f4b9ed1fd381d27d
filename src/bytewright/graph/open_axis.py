"""Opens an axis of inputs along which a network treats each row by itself: each run is given how many there are.

That is proved as streams prove it: given one row in place of all, the network needs no other one, so it keeps nothing
(`graph/stream`). The network of one row is then opened as a batch is, and only the border has the axis where it was.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import CompileError, compile_error
from bytewright.graph.open_batch import open_batch
from bytewright.graph.stream.stream import stream
from bytewright.ir.where import Where
from bytewright.ops.data import Reshape
from bytewright.options import OpenAxis, StreamAxis

WITHOUT = "leave out --open: each run then has as many rows as the file says"


def open_axis(module: ir.Module, axes: tuple[OpenAxis, ...]) -> ir.Module:
    """Returns the module in which the axes have an extent that each run is given.

    Args:
        module: A graph in which each function is run at one place, once.
        axes: One of each input, all of one name and range.

    Raises:
        CompileError: BW121, rows are not computed each by itself, or the axes are not of one extent; BW204, there is no
            such input or axis.
    """
    first = axes[0]
    for other in axes[1:]:
        if (other.name, other.lower, other.upper) != (first.name, first.lower, first.upper):
            message = f"--open {first} and --open {other} are two extents, and a model has one that is open"
            raise compile_error("BW121", message, help="give both one name and range", where=module.name)
    _require_axes(module, axes)
    one = _of_one_row(module, axes)
    facts = one.stream
    assert facts is not None
    for border, ports, known in (
        (ir.Border.INPUT, one.inputs, facts.input_axes),
        (ir.Border.OUTPUT, one.outputs, facts.output_axes),
    ):
        for port in ports:
            axis = known.get(port.name)
            if axis is None or any(extent != 1 for extent in port.type.shape[:axis]):
                shape = ir.format_shape(port.type.shape)
                what = (
                    "has no such rows"
                    if axis is None
                    else f"is [{shape}] for each row, with rows along axis {axis}"
                )
                message = f"extent '{first.name}' cannot be opened: {border.value} '{port.name}' {what}"
                raise compile_error("BW121", message, help=WITHOUT, where=module.name)
    try:
        opened = open_batch(replace(one, stream=None), first.upper, called=first.name, lower=first.lower)
    except CompileError as error:
        raise _refused(module, first, error) from error
    return _with_axes(opened, facts)


def _require_axes(module: ir.Module, axes: tuple[OpenAxis, ...]) -> None:
    """Each is an axis of an input of the model, of which none is named twice."""
    if module.entries:
        message = "--open is for graphs: a program says itself which of its extents are open"
        help_text = "leave out --open, and give the tensors of the text an extent such as time[1..200]"
        raise compile_error("BW204", message, help=help_text)
    shapes = {port.name: port.type.shape for port in module.inputs}
    listed, used = ", ".join(f"'{name}'" for name in shapes), set[str]()
    for axis in axes:
        name = axis.input or next(iter(shapes))
        if name not in shapes or (axis.input is None and len(shapes) > 1):
            message = f"--open {axis} says of no input that it is meant; the model has {listed}"
            raise compile_error("BW204", message, help="name one of them: --open INPUT:AXIS=NAME:LO..HI")
        if axis.axis >= len(shapes[name]) or name in used:
            what = "it is named twice" if name in used else f"it has no axis {axis.axis}"
            message = f"--open {axis}: input '{name}' has shape [{ir.format_shape(shapes[name])}], and {what}"
            raise compile_error("BW204", message)
        used.add(name)


def _of_one_row(module: ir.Module, axes: tuple[OpenAxis, ...]) -> ir.Module:
    """The network on one row."""
    first = axes[0]
    try:
        one = stream(module, tuple(StreamAxis(axis.axis, axis.input) for axis in axes))
    except CompileError as error:
        raise _refused(module, first, error) from error
    facts = one.stream
    assert facts is not None
    if facts.num_new != 1 or facts.num_left_out:
        message = (
            f"extent '{first.name}' cannot be opened: {facts.num_new} rows of the input make one of a result"
        )
        raise compile_error("BW121", message, help=WITHOUT, where=module.name)
    if len(one.state) > len(module.state):
        kept = one.state[len(module.state)]
        message = (
            f"extent '{first.name}' cannot be opened: an operator reads rows of '{kept.name}' "
            f"[{ir.format_shape(kept.type.shape)}] besides the one that it computes"
        )
        raise compile_error("BW121", message, help=WITHOUT, where=module.name)
    return one


def _refused(module: ir.Module, axis: OpenAxis, error: CompileError) -> CompileError:
    notes = tuple(diagnostic.message for diagnostic in error.diagnostics)
    message = (
        f"extent '{axis.name}' cannot be opened: rows along axis {axis.axis} are not computed each by itself"
    )
    return compile_error("BW121", message, notes=notes, help=WITHOUT, where=module.name)


def _with_axes(opened: ir.Module, facts: ir.Streamed) -> ir.Module:
    """The module whose inputs and outputs have the open extent where it was, and not in front."""
    graph, taken = opened.graph, set(ir.value_types(opened.graph, opened.constants))
    parameters: list[ir.Value] = []
    before: list[ir.Node] = []
    after: list[ir.Node] = []
    results: list[str] = []
    inputs: list[ir.Port] = []
    outputs: list[ir.Port] = []
    renamed: dict[str, str] = {}
    for value, port in zip(graph.parameters, opened.inputs, strict=True):
        whole = _moved(value.type, facts.input_axes[port.name])
        rows = replace(value, name=unique_name(f"{value.name}/rows", taken))
        renamed[value.name] = rows.name
        parameters.append(replace(value, type=whole))
        before.append(ir.Node(Reshape(value.type.shape), (value.name,), (rows,), Where(opened.name)))
        inputs.append(replace(port, type=whole))
    types = ir.value_types(graph, opened.constants)
    for name, port in zip(graph.results, opened.outputs, strict=True):
        whole = _moved(types[name], facts.output_axes[port.name])
        value = ir.Value(unique_name(f"{name}/whole", taken), whole, port.quantization)
        source = renamed.get(name, name)
        after.append(ir.Node(Reshape(whole.shape), (source,), (value,), Where(opened.name)))
        results.append(value.name)
        outputs.append(replace(port, type=whole))
    inner = (
        replace(node, inputs=tuple(renamed.get(name, name) for name in node.inputs)) for node in graph.nodes
    )
    function = ir.Function(graph.name, tuple(parameters), (*before, *inner, *after), tuple(results))
    functions = (*opened.functions[:-1], function)
    return replace(opened, functions=functions, inputs=tuple(inputs), outputs=tuple(outputs))


def _moved(type_: ir.TensorType, axis: int) -> ir.TensorType:
    """The type with its leading extent at an axis; the others up to there are 1."""
    symbol, *rest = type_.shape
    shape = (*rest[:axis], symbol, *rest[axis:])
    return replace(type_, shape=shape)
