"""Takes channels out of a graph that are constant, or that nobody reads, bit for bit without any difference.

Training leaves channels whose weights are all zero. Such a channel is a constant, whatever the model is given, and a
constant that a convolution reads is a part of its bias; a channel that is read with weights of zero alone need not be
computed. So tensors and weights shrink, and the sums are shorter. `channels/` has the parts: `links` says which
channels are one, `known` which are constant, `removable` which go, and `narrow` writes the graph without them.

Inputs, outputs and whatever enters or leaves a conditional or a loop keep their shapes, and so does what functions of
the application or devices that run no C compute.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.graph.bound.function import BoundValues
from bytewright.graph.work import work_of
from bytewright.lower.channels.known import known_channels
from bytewright.lower.channels.links import Links, links_of
from bytewright.lower.channels.narrow import Constants, Mask, Narrowing
from bytewright.lower.channels.removable import Operators, removed_channels
from bytewright.lower.channels.weighted import Weighted, weighted_of
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.target.model import Target


def fold_constant_channels(module: ir.Module, target: Target, bound: BoundValues | None = None) -> ir.Module:
    """Returns the module without those channels; `Module.narrowed` says what went.

    What is left might be constant in its turn where sums were too large to take all constants in, so it is looked at
    again, until nothing goes any more.

    Args:
        module: A graph whose values have devices.
        target: Its devices say to what widths tensors are narrowed.
        bound: What functions of the application compute, which stays as it is.
    """
    before, channels, constant = module, dict[str, NDArray[np.intp]](), dict[str, set[int]]()
    while (narrower := _once(module, target, bound or {})) is not None:
        module, removed, known = narrower
        for name, mask in removed.items():
            left = channels.get(name, np.arange(mask.size))
            channels[name] = left[~mask]
            constant.setdefault(name, set()).update(map(int, left[known[name]] if name in known else ()))
    if module is before:
        return module
    shapes = {name: type_.shape for name, type_ in before.graph_types.items()}
    changed = {
        name: shapes[name]
        for name, type_ in module.graph_types.items()
        if name in shapes and type_.shape != shapes[name]
    }
    first, last = work_of(before), work_of(module)
    kept = {name: tuple(map(int, left)) for name, left in channels.items()}
    narrowed = ir.Narrowed(
        first.macs,
        last.macs,
        first.weight_bytes,
        last.weight_bytes,
        FrozenMapping(changed),
        FrozenMapping(kept),
        FrozenMapping({name: tuple(sorted(numbers)) for name, numbers in constant.items()}),
    )
    return replace(module, narrowed=narrowed)


def _once(
    module: ir.Module, target: Target, bound: BoundValues
) -> tuple[ir.Module, dict[str, Mask], dict[str, Mask]] | None:
    """The module without what can go at once, that, and what is constant, of values by name; None if nothing can go."""
    types = module.graph_types
    constants = {constant.name: constant.data.array for constant in module.constants}
    changing = Constants({constant.name: constant for constant in module.constants})
    narrowings: list[Narrowing] = []
    for function in module.functions:
        operators = _operators(function, types, constants, target, bound)
        known = known_channels(function, constants, types, operators.links, operators.weighted)

        def width(name: str, num_channels: int) -> int:
            device = types[name].place.device or target.default_device_name
            return target.device(device).isa.style.width_for(num_channels)

        removed = removed_channels(operators, known, width)
        narrowings.append(Narrowing(operators, removed, known, changing))
    if not any(narrowing.removed for narrowing in narrowings):
        return None
    written = [narrowing.function() for narrowing in narrowings]
    names, kept = changing.named(set(types))
    functions = tuple(_renamed(function, read, names) for function, read in written)
    removed_of_values = {
        item: mask for each in narrowings for item, mask in each.removed.items() if isinstance(item, str)
    }
    constant = {name: known.is_constant for each in narrowings for name, known in each.known.items()}
    return replace(module, functions=functions, constants=kept), removed_of_values, constant


def _operators(
    function: ir.Function,
    types: dict[str, ir.TensorType],
    constants: dict[str, ir.Array],
    target: Target,
    bound: BoundValues,
) -> Operators:
    """The nodes that may change: operators with links, of a device that runs C, that are no call of a function."""
    shapes = {name: type_.shape for name, type_ in types.items()}
    links: dict[int, Links] = {}
    weighted: dict[int, Weighted] = {}
    for position, node in enumerate(function.nodes):
        names = [value.name for value in node.outputs]
        devices = {types[name].place.device or target.default_device_name for name in names}
        if any(name in bound for name in names) or not all(target.device(d).runs_c for d in devices):
            continue
        found = links_of(node, shapes)
        if found is None:
            continue
        if isinstance(node.operation, Conv2d | DepthwiseConv2d):
            convolution = weighted_of(node, constants, types)
            if convolution is None:
                continue
            weighted[position] = convolution
        links[position] = found
    return Operators(function, shapes, links, weighted)


def _renamed(
    function: ir.Function,
    read: dict[int, tuple[tuple[str, int] | str, ...]],
    names: dict[tuple[str, int], str],
) -> ir.Function:
    """The function with the names that constants have in the end."""

    def named(use: tuple[str, int] | str) -> str:
        return use if isinstance(use, str) else names[use]

    nodes = (
        replace(node, inputs=tuple(map(named, read[position])))
        for position, node in enumerate(function.nodes)
    )
    return replace(function, nodes=tuple(nodes))
