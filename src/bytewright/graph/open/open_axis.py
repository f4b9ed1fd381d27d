"""Opens an axis of inputs: each run is given its extent, and the extents of all that depends on it follow.

Types are inferred once more, operator by operator, from inputs whose axis has a symbol in place of a number, and from
operators that find such an extent out themselves, which the data decides. What an operator must be told for that, such
as the shape that a reshape states, is in `rules.py`; an operator without a rule, or one whose types do not allow an
open extent, is refused. With the extent of the file, every type is what it was.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import compile_error
from bytewright.graph.open.opening import WITHOUT, Opening
from bytewright.graph.open.rules import open_nodes
from bytewright.options import OpenAxis
from bytewright.options.forms import OTHER_RANGE


def open_axis(
    module: ir.Module,
    axes: tuple[OpenAxis, ...],
    others: tuple[tuple[Mapping[str, int], ir.Module], ...] = (),
    counted: tuple[ir.Counted, ...] = (),
) -> ir.Module:
    """Returns the module in which the axes have an extent that each run is given.

    Args:
        module: A graph in which each function is run at one place, once.
        axes: Of inputs; those of one name are one extent.
        others: The graph as it is for other extents, with these; none where that is not known.
        counted: Extents that the data decides. Results say how large they are of which data may ask for too much, or
            which others depend on.

    Raises:
        CompileError: BW121, for operators that allow no open extent, all of them, or axes of several extents; BW204,
            there is no such input or axis.
    """
    extents, taken = _extents_of_file(module, axes), {*module.graph_types, *(p.name for p in module.outputs)}
    symbols, found = _symbols(module, axes, taken), _counted(module, counted, taken)
    if not symbols and not found:
        return module
    extents |= {name: each.extent.upper for name, each in found.items()}
    symbols |= {name: each.extent for name, each in found.items()}
    samples = [
        ({symbols[name]: extent for name, extent in each.items() if name in symbols}, own)
        for each, own in ((extents, module), *others)
    ]
    opening = Opening(module, samples, {each.value: each.extent for each in found.values()})
    if others and not opening.samples.are_several:
        along = " and ".join((*map(str, axes), *found))
        message = f"the file has other operators for each extent along {along}"
        raise compile_error("BW121", message, help=WITHOUT, where=module.name)
    parameters = _parameters(module, {axis: symbols[axis.name] for axis in axes}, opening)
    open_nodes(opening, module.graph.nodes)
    results = tuple(map(opening.result, module.graph.results))
    _require_sizes(opening)
    _require_other_samples(opening, module)
    num_outputs = len(module.outputs)
    sizes = _sizes(found.values(), opening, results[:num_outputs])
    results = (*results[:num_outputs], *sizes, *results[num_outputs:])
    function = ir.Function(module.graph.name, parameters, tuple(opening.new.nodes), results)
    functions = (*opening.functions, function)
    used = {name for each in functions for node in each.nodes for name in node.inputs}
    used |= {name for each in functions for name in each.results}
    return replace(
        module,
        functions=functions,
        constants=tuple(each for each in (*module.constants, *opening.constants) if each.name in used),
        inputs=_ports(module.inputs, (value.name for value in parameters), opening),
        outputs=(*_ports(module.outputs, results[:num_outputs], opening), *sizes.values()),
        sources=opening.sources,
    )


def _counted(module: ir.Module, counted: tuple[ir.Counted, ...], taken: set[str]) -> dict[str, ir.Counted]:
    """The extents that operators of the graph find out, by their names; others are of what no result depends on."""
    made = {value.name for node in module.graph.nodes for value in node.outputs}
    return {
        each.extent.name: replace(
            each, extent=replace(each.extent, name=unique_name(each.extent.name, taken))
        )
        for each in counted
        if each.value in made
    }


def _sizes(counted: Iterable[ir.Counted], opening: Opening, results: tuple[str, ...]) -> dict[str, ir.Port]:
    """By results that say sizes, the outputs that they become."""
    shown = ir.symbols_in(extent for name in results for extent in opening.shape(name))
    return {
        each.value: ir.Port(
            each.extent.name,
            opening.new.types[each.value],
            size_of=each.extent,
            is_checked=each.is_checked,
        )
        for each in counted
        if each.is_checked or each.extent in shown
    }


def _ports(ports: tuple[ir.Port, ...], names: Iterable[str], opening: Opening) -> tuple[ir.Port, ...]:
    types = opening.new.types
    return tuple(replace(port, type=types[name]) for port, name in zip(ports, names, strict=False))


def _symbols(module: ir.Module, axes: tuple[OpenAxis, ...], taken: set[str]) -> dict[str, ir.Symbol]:
    """The extents by their names: those of one name are one."""
    first: dict[str, OpenAxis] = {}
    for axis in axes:
        other = first.setdefault(axis.name, axis)
        if (other.lower, other.upper) != (axis.lower, axis.upper):
            message = f"--open {other} and --open {axis} are one extent of two ranges"
            raise compile_error("BW121", message, help="give both one range, or two names", where=module.name)
    return {name: ir.Symbol(unique_name(name, taken), axis.lower, axis.upper) for name, axis in first.items()}


def _extents_of_file(module: ir.Module, axes: tuple[OpenAxis, ...]) -> dict[str, int]:
    """What the axes are in the file, by the names of extents; each is an axis of an input, and none is named twice."""
    if module.entries:
        message = "--open is for graphs: a program says itself which of its extents are open"
        help_text = "leave out --open, and give the tensors of the text an extent such as time[1..200]"
        raise compile_error("BW204", message, help=help_text)
    shapes = {port.name: port.type.fixed_shape for port in module.inputs}
    named, found = set[tuple[str, int]](), dict[str, dict[str, int]]()
    states = {port.name for port in module.state}
    for axis in axes:
        if axis.input in states:
            message = f"--open {axis}: '{axis.input}' is a state, which has one size in all runs"
            raise compile_error("BW121", message, help=f"leave out --open {axis}", where=module.name)
        name = axis.input_among(tuple(shapes))
        if axis.axis >= len(shapes[name]) or (name, axis.axis) in named:
            what = "it is named twice" if (name, axis.axis) in named else f"it has no axis {axis.axis}"
            message = f"--open {axis}: input '{name}' has shape [{ir.format_shape(shapes[name])}], and {what}"
            help_text = "name each axis once, and one that the input has, from 0 on"
            raise compile_error("BW204", message, help=help_text)
        named.add((name, axis.axis))
        found.setdefault(axis.name, {})[f"'{name}' along axis {axis.axis}"] = shapes[name][axis.axis]
    for extents in found.values():
        if len({*extents.values()}) > 1:
            texts = " and ".join(f"{name} {extent}" for name, extent in extents.items())
            message = f"the axes that are to be open have several extents in the file: {texts}"
            raise compile_error("BW121", message, help=WITHOUT, where=module.name)
    return {name: next(iter(extents.values())) for name, extents in found.items()}


def _parameters(
    module: ir.Module, axes: Mapping[OpenAxis, ir.Symbol], opening: Opening
) -> tuple[ir.Value, ...]:
    """What the graph is given, with the symbols along the axes."""
    names = [port.name for port in module.inputs]
    parameters: list[ir.Value] = []
    for number, value in enumerate(module.graph.parameters):
        shape = list(value.type.shape)
        for axis, symbol in axes.items():
            if number < len(names) and axis.input_among(names) == names[number]:
                shape[axis.axis] = symbol
        parameters.append(replace(value, type=replace(value.type, shape=tuple(shape))))
        opening.new.types[value.name] = parameters[-1].type
    return tuple(parameters)


def _require_other_samples(opening: Opening, module: ir.Module) -> None:
    """What the file has in other operators for some extents is what the open graph comes to for these."""
    try:
        made = opening.new.types.keys() - {constant.name for constant in module.constants}
        opening.samples.require_one_law({name: opening.shape(name) for name in made})
    except ValueError as error:
        names = " and ".join(f"'{symbol.name}'" for symbol in opening.symbols)
        what = "extents" if len(opening.symbols) > 1 else "extent"
        message = (
            f"{what} {names} cannot be opened: the file has other operators for some extents, and {error}"
        )
        raise compile_error("BW121", message, help=OTHER_RANGE, where=opening.model) from error


def _require_sizes(opening: Opening) -> None:
    """Every tensor has, where the extents are the largest, at most `MAX_ELEMENTS` elements."""
    for node in opening.new.nodes:
        for value in node.outputs:
            if value.type.num_elements > ir.MAX_ELEMENTS:
                largest = " and ".join(f"{each.upper} for '{each.name}'" for each in opening.symbols)
                message = (
                    f"with {largest}, '{value.name}' has "
                    f"{value.type.num_elements} elements; kernels count up to {ir.MAX_ELEMENTS}"
                )
                raise compile_error("BW121", message, help="name a smaller range", where=str(node.where))
