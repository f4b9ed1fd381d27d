"""Every value of the graph gets a virtual device.

With one device there is nothing to infer: what an annotation has not placed goes to the target's default device,
its scope left open. Values that are placed already keep their place.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.target.model import Target


def plan_devices(module: ir.Module, target: Target) -> ir.Module:
    """Returns the module with a device and target on every value."""
    return replace(
        module, functions=tuple(_place_function(function, target) for function in module.functions)
    )


def _place_function(function: ir.Function, target: Target) -> ir.Function:
    def place(value: ir.Value) -> ir.Value:
        known = value.type.place
        device = known.device or target.default_device_name
        placed = replace(known, device=device, target=known.target or target.name)
        return replace(value, type=replace(value.type, place=placed))

    def place_node(node: ir.Node) -> ir.Node:
        return replace(node, outputs=tuple(place(value) for value in node.outputs))

    return replace(
        function,
        parameters=tuple(place(value) for value in function.parameters),
        nodes=tuple(place_node(node) for node in function.nodes),
    )
