"""What operators are told where an extent is open. Those that only need their types inferred are here by name."""

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from bytewright import ir
from bytewright.graph.open.opening import COLUMNS, ROWS, Opening
from bytewright.ops.checks import QUANTISED
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, Slice, Tile, Transpose
from bytewright.ops.dynamic_quantization import OPERATIONS as DYNAMIC_QUANTIZATION
from bytewright.ops.interpolation import Interpolate, TflSigmoid16, TflSoftmax16
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.places import ArgMax, ArgMin, CumulativeSum, TopKPlaces
from bytewright.ops.pooling import OPERATIONS as REDUCTIONS
from bytewright.ops.pooling import MaxPool2d, ReduceSum, TflAveragePool2d, TflQuantizedProduct
from bytewright.ops.registry import ELEMENTWISE
from bytewright.ops.roots import TflInverseRoot, TflL2Normalization
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax
from bytewright.ops.window import most_same_padding

_Rule = Callable[[Opening, ir.Node], None]


def open_node(opening: Opening, node: ir.Node) -> None:
    """Adds what a node becomes; one that depends on no open extent stays.

    Raises:
        CompileError: BW121, it allows no open extent.
    """
    if not any(map(opening.is_open, node.inputs)):
        opening.new.nodes.append(node)
        opening.new.types |= {value.name: value.type for value in node.outputs}
        return
    rule = RULES.get(type(node.operation))
    if rule is None:
        raise opening.refused(node, "what it makes of an open extent is not known")
    try:
        rule(opening, node)
    except ValueError as error:
        raise opening.refused(node, str(error)) from error


def _as_it_is(opening: Opening, node: ir.Node) -> None:
    opening.add(node, node.operation, tuple(map(opening.whole, node.inputs)))


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
    """Windows slide along rows; along columns where there is one row, which is turned."""
    operation: Any = node.operation
    source, *parameters = node.inputs
    if any(map(opening.is_open, parameters)):
        raise ValueError("its weights have the open extent")
    if opening.open_axes(source) != [COLUMNS]:
        opening.add(
            node, _padded(opening, operation, source, parameters), (opening.whole(source), *parameters)
        )
        return
    if opening.shape(source)[ROWS] != 1:
        raise ValueError(
            f"its windows slide along columns of [{ir.format_shape(opening.shape(source))}], behind several rows"
        )
    top, bottom, left, right = operation.padding
    stride, changed = operation.stride, dict[str, Any]()
    if isinstance(operation, MaxPool2d | TflAveragePool2d):
        changed["kernel"] = operation.kernel[::-1]
    else:
        changed["dilation"] = operation.dilation[::-1]
        parameters[0] = _turned_weights(opening, parameters[0], operation.kernel_axis)
    turned = replace(operation, stride=stride[::-1], padding=(left, right, top, bottom), **changed)
    source = opening.in_rows(source)
    turned = _padded(opening, turned, source, parameters)
    opening.add(node, turned, (source, *parameters), is_turned=True)


def _padded(opening: Opening, operation: Any, source: str, parameters: list[str]) -> Any:
    """The operator with the padding that it has along open rows: SAME's depends on how many there are, by a stride."""
    rows = opening.new.types[source].shape[ROWS]
    if not operation.is_same or isinstance(rows, int) or operation.stride[0] == 1:
        return replace(operation, is_same=False)
    if isinstance(operation, MaxPool2d | TflAveragePool2d):
        reach = operation.kernel[0]
    else:
        size, _ = operation.kernel(opening.new.types[parameters[0]].fixed_shape)
        reach = (size - 1) * operation.dilation[0] + 1
    most = most_same_padding(rows, reach, operation.stride[0])
    return replace(operation, padding=(*most, *operation.padding[2:]))


def _turned_weights(opening: Opening, name: str, axis: int) -> str:
    """Weights with rows and columns, which are at `axis` and behind it, swapped."""
    array = opening.array(name)
    if array is None:
        raise ValueError("its weights are computed")
    return opening.constant(
        f"{name}/turned", array.swapaxes(axis, axis + 1), opening.new.types[name].dtype, name
    )


def _reshape(opening: Opening, node: ir.Node) -> None:
    """The open axis stays one, merged with others or divided."""
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
    """What is open is taken whole, which a slice says of any extent, or up to one."""
    operation, name = node.operation, node.inputs[0]
    assert isinstance(operation, Slice)
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
    is_whole = (
        not any(operation.start) and set(operation.stride) == {1} and tuple(size) == opening.shape(name)
    )
    part = Reshape(tuple(size)) if is_whole else replace(operation, size=tuple(size), whole_to=())
    opening.add(node, part, (opening.whole(name),))


def _reduction(opening: Opening, node: ir.Node) -> None:
    """Over the open axis where what it computes with does not depend on how many elements there are."""
    operation: Any = node.operation
    reduced = [axis for axis in opening.open_axes(node.inputs[0]) if axis in operation.axes]
    if len(reduced) > 1:
        raise ValueError("it is over several open extents")
    is_integer = opening.new.types[node.inputs[0]].dtype in QUANTISED
    if reduced and (
        isinstance(operation, TflQuantizedProduct) or (isinstance(operation, ReduceSum) and is_integer)
    ):
        raise ValueError("its zero points and factors are those of as many elements as the file has")
    _as_it_is(opening, node)


_POOLS = (MaxPool2d, TflAveragePool2d)
RULES: dict[type[ir.Operation], _Rule] = {
    **dict.fromkeys(
        (*ELEMENTWISE, *DYNAMIC_QUANTIZATION, Interpolate, TflInverseRoot, TflSigmoid16, Identity),
        _each_element,
    ),
    **dict.fromkeys((Conv2d, DepthwiseConv2d, GroupedConv2d), _window),
    **{each: _window if each in _POOLS else _reduction for each in REDUCTIONS},
    **dict.fromkeys((TflSoftmax, TflLogSoftmax, TflSoftmax16, TflL2Normalization, TopKPlaces), _as_it_is),
    **dict.fromkeys((ArgMax, ArgMin, CumulativeSum, Concat, Gather, Pad, Tile, Transpose), _as_it_is),
    TflBatchMatMul: _as_it_is,
    Reshape: _reshape,
    Slice: _slice,
}
