"""What operators are told where an extent is open. Those that only need their types inferred are here by name."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod
from typing import Any

from bytewright import ir
from bytewright.diagnostics import Collector
from bytewright.graph.open.opening import COLUMNS, ROWS, Opening
from bytewright.ops.checks import QUANTISED, WIDE
from bytewright.ops.control import CondIf, Loop
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, Slice, Tile, Transpose
from bytewright.ops.dynamic_quantization import OPERATIONS as DYNAMIC_QUANTIZATION
from bytewright.ops.interpolation import Interpolate, TflSigmoid16, TflSoftmax16
from bytewright.ops.lstm import TflHybridLstm, TflLstm, TflQuantizedLstm
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.places import ArgMax, ArgMin, CumulativeSum, GatherNd, TopKPlaces, UpdateSlice
from bytewright.ops.pooling import OPERATIONS as REDUCTIONS
from bytewright.ops.pooling import (
    MaxPool2d,
    ReduceSum,
    TflAveragePool2d,
    TflIntegerMean,
    TflMean,
    TflQuantizedProduct,
)
from bytewright.ops.registry import ELEMENTWISE
from bytewright.ops.rescale import TflFloatRescale
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest
from bytewright.ops.roots import TflInverseRoot, TflL2Normalization
from bytewright.ops.sizes import Counting, DistinctValues, StatedSize, TruePlaces
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax
from bytewright.ops.window import most_same_padding, reach_of

_Rule = Callable[[Opening, ir.Node], None]


def open_nodes(opening: Opening, nodes: Iterable[ir.Node]) -> None:
    """Adds what the nodes of a function become.

    Raises:
        CompileError: BW121, of all that allow no open extent.
    """
    collector, failed = Collector(), set[str]()
    for node in nodes:
        if failed.isdisjoint(node.inputs):
            with collector.catch():
                _open_node(opening, node)
                continue
        failed.update(value.name for value in node.outputs)
    collector.stop_if_any()


def _open_node(opening: Opening, node: ir.Node) -> None:
    """Adds what a node becomes; one that depends on no open extent stays."""
    try:
        node = replace(node, inputs=tuple(opening.constant_of_all(name) for name in node.inputs))
        is_open = any(map(opening.is_open, node.inputs))
        varying = opening.samples.varying(node)
        if not is_open and not varying:
            opening.keep(replace(node, inputs=tuple(map(opening.whole, node.inputs))))
            return
        rule = RULES.get(type(node.operation))
        if rule is None:
            raise ValueError("what it makes of an open extent is not known")
        for name in varying:
            if (type(node.operation), name) not in _FOLLOWING:
                raise ValueError(f"its {name} is {opening.in_samples(varying[name])}")
        rule(opening, node)
    except ValueError as error:
        raise opening.refused(node, str(error)) from error


def _as_it_is(opening: Opening, node: ir.Node) -> None:
    opening.add(node, node.operation, tuple(map(opening.whole, node.inputs)))


def _counting(opening: Opening, node: ir.Node) -> None:
    """It finds an extent out."""
    operation, extent = node.operation, opening.counted.get(node.outputs[-1].name)
    assert isinstance(operation, Counting)
    inputs = tuple(map(opening.whole, node.inputs))
    opening.add(node, replace(operation, count=extent or operation.count), inputs)


def _each_element(opening: Opening, node: ir.Node) -> None:
    """Turned, if an operand is and all others can be."""
    if opening.turned.isdisjoint(node.inputs) or not all(_can_turn(opening, name) for name in node.inputs):
        _as_it_is(opening, node)
        return
    inputs = (opening.in_rows(name) if opening.is_open(name) else name for name in node.inputs)
    opening.add(node, node.operation, tuple(inputs), is_turned=True)


def _can_turn(opening: Opening, name: str) -> bool:
    """Whether a value is an image with open columns and one row, or is the same for all of them."""
    shape = opening.shape(name)
    if opening.is_open(name):
        return len(shape) == 4 and opening.open_axes(name) == [COLUMNS] and shape[ROWS] == 1
    return all(extent == 1 for extent in shape[-3:-1])


def _window(opening: Opening, node: ir.Node) -> None:
    """Windows slide along rows and columns; where there is one row of open columns, it is turned."""
    operation: Any = node.operation
    source, *parameters = node.inputs
    if any(map(opening.is_open, parameters)):
        raise ValueError("its weights have the open extent")
    if opening.open_axes(source) != [COLUMNS] or opening.shape(source)[ROWS] != 1:
        opening.add(
            node, _padded(opening, operation, source, parameters), (opening.whole(source), *parameters)
        )
        return
    if not isinstance(operation, MaxPool2d | TflAveragePool2d):
        parameters[0] = _turned_weights(opening, parameters[0], operation.kernel_axis)
    source = opening.in_rows(source)
    turned = _padded(opening, operation.turned, source, parameters)
    opening.add(node, turned, (source, *parameters), is_turned=True)


def _padded(opening: Opening, operation: Any, source: str, parameters: list[str]) -> Any:
    """The operator with the padding that it has along open axes: SAME's depends on their extents, by a stride."""
    image = opening.new.types[source].shape[ROWS : COLUMNS + 1]
    sliding = zip(image, operation.stride, strict=True)
    if not operation.is_same or all(isinstance(extent, int) or stride == 1 for extent, stride in sliding):
        return replace(operation, is_same=False)
    if isinstance(operation, MaxPool2d | TflAveragePool2d):
        reach = operation.kernel
    else:
        sizes = operation.kernel(opening.new.types[parameters[0]].fixed_shape)
        reach = map(reach_of, sizes, operation.dilation)
    rows, columns = map(most_same_padding, image, reach, operation.stride)
    return replace(operation, padding=(*rows, *columns))


def _turned_weights(opening: Opening, name: str, axis: int) -> str:
    """Weights with rows and columns, which are at `axis` and behind it, swapped."""
    array = opening.array(name)
    if array is None:
        raise ValueError("its weights are computed")
    return opening.constant(
        f"{name}/turned", array.swapaxes(axis, axis + 1), opening.new.types[name].dtype, name
    )


def _reshape(opening: Opening, node: ir.Node) -> None:
    """What the file says for each extent, where that is known; else the open axis stays one, merged or divided."""
    name, samples = node.inputs[0], opening.samples
    if samples.are_several:
        shapes = zip(*(each.outputs[0].type.fixed_shape for each in samples.nodes(node)), strict=True)
        shape = [samples.fitted(sizes, (*opening.shape(name), *opening.extents)) for sizes in shapes]
        if None not in shape:
            opening.add(
                node, Reshape(tuple(each for each in shape if each is not None)), (opening.whole(name),)
            )
            return
    _reshape_by_place(opening, node)


def _reshape_by_place(opening: Opening, node: ir.Node) -> None:
    """The open axis is the one that begins where it did."""
    name, result = node.inputs[0], node.outputs[0].type.fixed_shape
    source, opened = opening.before[name].fixed_shape, opening.open_axes(name)
    if len(opened) > 1:
        raise ValueError(f"[{ir.format_shape(opening.shape(name))}] has several open extents")
    (axis,) = opened
    if source[axis] == 1:
        raise ValueError(
            "which of the extents of 1 is the open one cannot be told: the file has 1 where it is to be open"
        )
    extent, outer = opening.shape(name)[axis], prod(source[:axis])
    for own, size in enumerate(result):
        before = prod(result[:own])
        merged, rest = divmod(outer, before)
        if rest or size == 1:
            continue
        found = _scaled(extent, merged, size, source[axis])
        if found is not None:
            shape = (*result[:own], found, *result[own + 1 :])
            opening.add(node, Reshape(shape), (opening.whole(name),))
            return
    raise ValueError(
        f"it makes [{ir.format_shape(result)}] of [{ir.format_shape(source)}], in which no axis is the open one"
    )


def _scaled(extent: ir.Extent, merged: int, size: int, closed: int) -> ir.Extent | None:
    """An extent that is `size` where another, `closed`, times what stands before it is open; None if it is none."""
    factor, rest = divmod(size, closed)
    if not rest:
        return ir.multiple(extent, factor) if factor % merged == 0 else None
    divisor, rest = divmod(closed * merged, size)
    divided = ir.quotient(extent, 0, divisor)
    return divided if not rest and ir.multiple(divided, divisor) == extent else None


def _slice(opening: Opening, node: ir.Node) -> None:
    """What the file takes for each extent, where that is known; else what is open is taken whole, or up to one."""
    operation, name = node.operation, node.inputs[0]
    assert isinstance(operation, Slice)
    if opening.samples.are_several:
        part = _followed(opening, node)
    else:
        part = replace(operation, size=_whole_size(opening, operation, name), whole_to=())
    is_whole = not any(part.start) and set(part.stride) == {1} and tuple(part.size) == opening.shape(name)
    opening.add(node, Reshape(part.size) if is_whole else part, (opening.whole(name),))


def _followed(opening: Opening, node: ir.Node) -> Slice:
    """The slice whose starts and sizes follow from the extents that it is given."""
    operation, found = node.operation, [each.operation for each in opening.samples.nodes(node)]
    assert isinstance(operation, Slice)
    starts, sizes, strides = (
        tuple(zip(*(getattr(each, name) for each in found), strict=True))
        for name in ("start", "size", "stride")
    )
    start: list[ir.Extent] = []
    size: list[ir.Extent] = []
    for axis, (extent, stride) in enumerate(
        zip(opening.shape(node.inputs[0]), operation.stride, strict=True)
    ):
        # One element has no order, so a file's stride there is that of the others, or any.
        if any(own != stride and taken != 1 for own, taken in zip(strides[axis], sizes[axis], strict=True)):
            raise ValueError(f"its stride is {opening.in_samples(strides[axis])}")
        start.append(opening.following(starts[axis], "it begins at element", extent))
        rest = _rest(extent, start[axis], stride)
        is_rest = rest is not None and opening.samples.agrees(rest, sizes[axis])
        size.append(
            rest if is_rest and rest is not None else opening.following(sizes[axis], "it takes", extent)
        )
    return replace(operation, start=tuple(start), size=tuple(size), whole_to=())


def _rest(extent: ir.Extent, start: ir.Extent, stride: int) -> ir.Extent | None:
    """How many elements there are from the start on; None if that is no extent."""
    if stride < 0:
        return ir.quotient(start, -stride, -stride)
    return ir.quotient(extent, stride - 1 - start, stride) if isinstance(start, int) else None


def _whole_size(opening: Opening, operation: Slice, name: str) -> tuple[ir.Extent, ...]:
    """The sizes with all of what is open."""
    closed, size = opening.before[name].fixed_shape, list(operation.size)
    most = dict(operation.whole_to)
    for axis, extent in enumerate(opening.shape(name)):
        if isinstance(extent, int):
            continue
        if ir.upper_bound(extent) > most.get(axis, ir.upper_bound(extent)):
            taken = f"all of at most {most[axis]}" if most[axis] > 0 else "elements by their numbers"
            raise ValueError(f"it takes {taken} along the open axis, which may have {ir.upper_bound(extent)}")
        if size[axis] == closed[axis]:
            size[axis] = extent
    return tuple(size)


def _tile(opening: Opening, node: ir.Node) -> None:
    """As often as the file says for each extent, where that is known."""
    operations = [each.operation for each in opening.samples.nodes(node)]
    times = zip(*(each.multiples for each in operations if isinstance(each, Tile)), strict=True)
    multiples = tuple(
        opening.following(list(map(ir.upper_bound, each)), "it is repeated", opening.symbols[0])
        for each in times
    )
    opening.add(node, Tile(multiples), tuple(map(opening.whole, node.inputs)))


def _resize(opening: Opening, node: ir.Node) -> None:
    """To sizes that the file says for each extent; an image of one row, before and after, is turned."""
    operation, (source,) = node.operation, node.inputs
    assert isinstance(operation, TflResizeNearest | TflResizeBilinear)
    shape, found = opening.shape(source), opening.samples.nodes(node)
    sizes = zip(
        *(each.operation.size for each in found if isinstance(each.operation, type(operation))), strict=True
    )
    rows, columns = (
        opening.following([ir.upper_bound(each) for each in values], f"its {what} are", shape[axis])
        for axis, what, values in zip((ROWS, COLUMNS), ("rows", "columns"), sizes, strict=True)
    )
    are_open = not (isinstance(columns, int) and isinstance(shape[COLUMNS], int))
    is_turned = are_open and shape[ROWS] == 1 == rows
    if is_turned:
        rows, columns, source = columns, 1, opening.in_rows(source)
    source = source if is_turned else opening.whole(source)
    opening.add(node, replace(operation, size=(rows, columns)), (source,), is_turned=is_turned)


def _gather(opening: Opening, node: ir.Node) -> None:
    """By numbers that the run knows, or by those of elements that there are always."""
    operation, (values, indices) = node.operation, node.inputs
    assert isinstance(operation, Gather)
    extent, stated = opening.shape(values)[operation.axis], opening.array(indices)
    if stated is not None and not isinstance(extent, int) and stated.max(initial=0) >= ir.lower_bound(extent):
        raise ValueError(
            f"it takes element {stated.max()} along the open axis, which may have {ir.lower_bound(extent)}"
        )
    _as_it_is(opening, node)


def _loop(opening: Opening, node: ir.Node) -> None:
    """As many turns as there are in each run, of a body that is opened in its place."""
    operation, inputs = node.operation, tuple(map(opening.whole, node.inputs))
    assert isinstance(operation, Loop)
    loops = (each.operation for each in opening.samples.nodes(node))
    turns = [ir.upper_bound(each.num_iterations) for each in loops if isinstance(each, Loop)]
    count = opening.following(turns, "its turns are", opening.symbols[0])
    signature = opening.open_function(operation.body, inputs, open_nodes)
    opening.add_control(node, Loop(operation.body, count), (signature,), inputs)


def _conditional(opening: Opening, node: ir.Node) -> None:
    """Of two functions that are opened in their places."""
    operation, inputs = node.operation, tuple(map(opening.whole, node.inputs))
    assert isinstance(operation, CondIf)
    signatures = tuple(opening.open_function(each, inputs[1:], open_nodes) for each in operation.callees)
    opening.add_control(node, operation, signatures, inputs)


def _reduction(opening: Opening, node: ir.Node) -> None:
    """Over the open axis where what it computes with does not depend on how many elements there are."""
    operation: Any = node.operation
    reduced = [axis for axis in opening.open_axes(node.inputs[0]) if axis in operation.axes]
    dtype = opening.new.types[node.inputs[0]].dtype
    is_integer = dtype in (*QUANTISED, *WIDE)
    is_sum = isinstance(operation, ReduceSum) and dtype in QUANTISED and not opening.samples.are_several
    if reduced and (isinstance(operation, TflQuantizedProduct) or is_sum):
        raise ValueError("its zero points and factors are those of as many elements as the file has")
    least = min((ir.lower_bound(opening.shape(node.inputs[0])[axis]) for axis in reduced), default=1)
    if least < 1 and is_integer and isinstance(operation, TflMean | TflIntegerMean):
        raise ValueError("there may be none, whose mean is no integer")
    _as_it_is(opening, node)


def _rescaled_sum(opening: Opening, node: ir.Node) -> None:
    """Of as many values as the file says for each extent."""
    operations = [each.operation for each in opening.samples.nodes(node)]
    counts = [ir.upper_bound(each.num_summed) for each in operations if isinstance(each, TflFloatRescale)]
    count = opening.following(counts, "it is of a sum of", opening.symbols[0])
    assert isinstance(node.operation, TflFloatRescale)
    _each_element(opening, replace(node, operation=replace(node.operation, num_summed=count)))


_POOLS = (MaxPool2d, TflAveragePool2d)
RULES: dict[type[ir.Operation], _Rule] = {
    **dict.fromkeys(
        (*ELEMENTWISE, *DYNAMIC_QUANTIZATION, Interpolate, TflInverseRoot, TflSigmoid16, Identity),
        _each_element,
    ),
    **dict.fromkeys((Conv2d, DepthwiseConv2d, GroupedConv2d), _window),
    **{each: _window if each in _POOLS else _reduction for each in REDUCTIONS},
    **dict.fromkeys((TflSoftmax, TflLogSoftmax, TflSoftmax16, TflL2Normalization, TopKPlaces), _as_it_is),
    **dict.fromkeys((ArgMax, ArgMin, CumulativeSum, Concat, Pad, Transpose), _as_it_is),
    **dict.fromkeys(
        (TransposeConv2d, TflBatchMatMul, TflLstm, TflHybridLstm, TflQuantizedLstm, UpdateSlice, GatherNd),
        _as_it_is,
    ),
    **dict.fromkeys((DistinctValues, StatedSize, TruePlaces), _counting),
    Gather: _gather,
    Loop: _loop,
    TflFloatRescale: _rescaled_sum,
    CondIf: _conditional,
    Reshape: _reshape,
    **dict.fromkeys((TflResizeNearest, TflResizeBilinear), _resize),
    Slice: _slice,
    Tile: _tile,
}
# Attributes that rules find anew where they depend on the extent.
_FOLLOWING = frozenset(
    {
        *((each, "padding") for each in (Conv2d, DepthwiseConv2d, GroupedConv2d, *_POOLS)),
        *((Slice, name) for name in ("start", "size", "stride", "whole_to")),
        (Reshape, "shape"),
        (Tile, "multiples"),
        *((each, "size") for each in (TflResizeNearest, TflResizeBilinear)),
        (Loop, "num_iterations"),
        *((each, "count") for each in (DistinctValues, StatedSize, TruePlaces)),
        (TflFloatRescale, "num_summed"),
    }
)
