"""What the operators of a kernel compute, for who reads a report: multiply-accumulates, and the bytes of weights."""

from collections.abc import Mapping
from math import prod

from bytewright import ir
from bytewright.lower.group import Group

_WEIGHTS = "weights"


def group_work(
    group: Group,
    types: Mapping[str, ir.TensorType],
    constants: Mapping[str, ir.Constant],
    narrowed: ir.Narrowed | None,
) -> ir.Work:
    """The work of a group.

    Args:
        group: What becomes one kernel.
        types: Of all that they name.
        constants: Of the graph.
        narrowed: What that lost of its channels.
    """
    before = {} if narrowed is None else narrowed.shapes
    weights = dict.fromkeys(name for node in group.nodes for name in _weights(node) if name in constants)
    now = {name: constants[name].data.type for name in weights}
    return ir.Work(
        sum(node.num_macs(types) for node in group.nodes),
        sum(type_.size_bytes for type_ in now.values()),
        sum(
            prod(map(ir.upper_bound, before.get(name, type_.shape))) * type_.dtype.size_bytes
            for name, type_ in now.items()
        ),
        tuple(tuple(map(ir.upper_bound, value.type.shape)) for value in group.outputs),
    )


def _weights(node: ir.Node) -> tuple[str, ...]:
    pairs = zip(node.operation.operand_names, node.inputs, strict=False)
    return tuple(name for operand, name in pairs if operand == _WEIGHTS)
