"""Folds an explicit pad of rows and columns into the convolution after it.

The padded tensor is then never stored. Exact where the pad's value is the convolution's zero point, since taps in
the padding read just that.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.lower.bound.function import BoundValues
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Pad


def fold_pad(module: ir.Module, bound: BoundValues | None = None) -> ir.Module:
    """Returns the module with every foldable pad folded; pads that nothing reads any more are gone.

    What is bound to functions of the application stays as it is.
    """
    return replace(module, functions=tuple(_fold(function, bound or {}) for function in module.functions))


def _fold(function: ir.Function, bound: BoundValues) -> ir.Function:
    pads = {
        node.outputs[0].name: (node.operation, node.inputs[0])
        for node in function.nodes
        if isinstance(node.operation, Pad)
        and _is_spatial(node.operation)
        and node.outputs[0].name not in bound
    }
    nodes = [node if node.outputs[0].name in bound else _fold_into(node, pads) for node in function.nodes]
    used = {name for node in nodes for name in node.inputs} | set(function.results)
    unread = pads.keys() - used
    kept = [node for node in nodes if not any(value.name in unread for value in node.outputs)]
    return replace(function, nodes=tuple(kept))


def _is_spatial(pad: Pad) -> bool:
    return len(pad.before) == 4 and not any((pad.before[0], pad.after[0], pad.before[3], pad.after[3]))


def _fold_into(node: ir.Node, pads: dict[str, tuple[Pad, str]]) -> ir.Node:
    """The node, which reads what the pad before it reads if it is a convolution that can pad by itself."""
    operation = node.operation
    if not isinstance(operation, Conv2d | DepthwiseConv2d) or node.inputs[0] not in pads:
        return node
    pad, unpadded = pads[node.inputs[0]]
    if pad.value != operation.input_zero_point:
        return node
    top, bottom, left, right = operation.padding
    padding = (top + pad.before[1], bottom + pad.after[1], left + pad.before[2], right + pad.after[2])
    return replace(node, operation=replace(operation, padding=padding), inputs=(unpadded, *node.inputs[1:]))
