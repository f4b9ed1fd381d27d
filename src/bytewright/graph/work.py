"""What convolutions cost, before and after: multiply-accumulates of one run, and bytes of weights."""

from dataclasses import dataclass

from bytewright import ir
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d


@dataclass(frozen=True, slots=True)
class Work:
    """Of all convolutions of a module, each counted once, for a batch of one where that is open."""

    macs: int
    weight_bytes: int


def work_of(module: ir.Module) -> Work:
    """Counts the convolutions of a graph; weights that several of them read are there once."""
    constants = module.constant_types
    weights: dict[str, int] = {}
    macs = 0
    for function in module.functions:
        types = {**ir.function_types(function), **constants}
        for node in function.nodes:
            if (
                isinstance(node.operation, Conv2d | DepthwiseConv2d)
                and {*node.inputs[1:]} <= constants.keys()
            ):
                weights[node.inputs[1]] = constants[node.inputs[1]].size_bytes
                macs += node.num_macs(types)
    return Work(macs, sum(weights.values()))
