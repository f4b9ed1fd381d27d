"""Opens an axis of inputs: each run is given its extent, and the extents of all that depends on it follow.

Types are inferred once more, operator by operator, from inputs whose axis has a symbol in place of a number. What an
operator must be told for that, such as the shape that a reshape states, is in `rules.py`; an operator without a rule,
or one whose types do not allow an open extent, is refused. With the extent of the file, every type is what it was.
"""

from collections.abc import Iterable
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import compile_error
from bytewright.graph.open.opening import WITHOUT, Opening
from bytewright.graph.open.rules import open_nodes
from bytewright.graph.open.samples import alike
from bytewright.options import OpenAxis


def open_axis(
    module: ir.Module, axes: tuple[OpenAxis, ...], others: tuple[tuple[int, ir.Module], ...] = ()
) -> ir.Module:
    """Returns the module in which the axes have an extent that each run is given.

    Args:
        module: A graph in which each function is run at one place, once.
        axes: One of each input, all of one name and range.
        others: The graph as it is for other extents, with these; none where that is not known.

    Raises:
        CompileError: BW121, for operators that allow no open extent, all of them, or axes of several extents; BW204,
            there is no such input or axis.
    """
    first = axes[0]
    for other in axes[1:]:
        if (other.name, other.lower, other.upper) != (first.name, first.lower, first.upper):
            message = f"--open {first} and --open {other} are two extents, and a model has one that is open"
            raise compile_error("BW121", message, help="give both one name and range", where=module.name)
    extent = _extent_of_file(module, axes)
    symbol = ir.Symbol(unique_name(first.name, set(module.graph_types)), first.lower, first.upper)
    samples = ((extent, module), *others)
    opening = Opening(module, symbol, samples if alike([each for _, each in samples]) else samples[:1])
    parameters = _parameters(module, axes, opening)
    open_nodes(opening, module.graph.nodes)
    results = tuple(map(opening.whole, module.graph.results))
    _require_sizes(opening)
    function = ir.Function(module.graph.name, parameters, tuple(opening.new.nodes), results)
    functions = (*opening.functions, function)
    used = {name for each in functions for node in each.nodes for name in node.inputs}
    used |= {name for each in functions for name in each.results}
    num_outputs = len(module.outputs)
    return replace(
        module,
        functions=functions,
        constants=tuple(each for each in (*module.constants, *opening.constants) if each.name in used),
        inputs=_ports(module.inputs, (value.name for value in parameters), opening),
        outputs=_ports(module.outputs, results[:num_outputs], opening),
        sources=opening.sources,
    )


def _ports(ports: tuple[ir.Port, ...], names: Iterable[str], opening: Opening) -> tuple[ir.Port, ...]:
    types = opening.new.types
    return tuple(replace(port, type=types[name]) for port, name in zip(ports, names, strict=False))


def _extent_of_file(module: ir.Module, axes: tuple[OpenAxis, ...]) -> int:
    """What the axes are in the file; each is an axis of an input, of which none is named twice."""
    if module.entries:
        message = "--open is for graphs: a program says itself which of its extents are open"
        help_text = "leave out --open, and give the tensors of the text an extent such as time[1..200]"
        raise compile_error("BW204", message, help=help_text)
    shapes, found = {port.name: port.type.fixed_shape for port in module.inputs}, dict[str, int]()
    for axis in axes:
        name = axis.input_among(tuple(shapes))
        if axis.axis >= len(shapes[name]) or name in found:
            what = "it is named twice" if name in found else f"it has no axis {axis.axis}"
            message = f"--open {axis}: input '{name}' has shape [{ir.format_shape(shapes[name])}], and {what}"
            raise compile_error("BW204", message)
        found[name] = shapes[name][axis.axis]
    if len({*found.values()}) > 1:
        texts = " and ".join(f"'{name}' {extent}" for name, extent in found.items())
        message = f"the axes that are to be open have several extents in the file: {texts}"
        raise compile_error("BW121", message, help=WITHOUT, where=module.name)
    return next(iter(found.values()))


def _parameters(module: ir.Module, axes: tuple[OpenAxis, ...], opening: Opening) -> tuple[ir.Value, ...]:
    """What the graph is given, with the symbol along the axes."""
    opened = {axis.input or module.inputs[0].name: axis.axis for axis in axes}
    names = [port.name for port in module.inputs]
    parameters: list[ir.Value] = []
    for number, value in enumerate(module.graph.parameters):
        axis, shape = opened.get(names[number]) if number < len(names) else None, value.type.shape
        if axis is not None:
            shape = (*shape[:axis], opening.symbol, *shape[axis + 1 :])
        parameters.append(replace(value, type=replace(value.type, shape=shape)))
        opening.new.types[value.name] = parameters[-1].type
    return tuple(parameters)


def _require_sizes(opening: Opening) -> None:
    """Every tensor has, where the extent is the largest, at most `MAX_ELEMENTS` elements."""
    for node in opening.new.nodes:
        for value in node.outputs:
            if value.type.num_elements > ir.MAX_ELEMENTS:
                message = (
                    f"with {opening.symbol.upper} for '{opening.symbol.name}', '{value.name}' has "
                    f"{value.type.num_elements} elements; kernels count up to {ir.MAX_ELEMENTS}"
                )
                raise compile_error("BW121", message, help="name a smaller range", where=str(node.where))
