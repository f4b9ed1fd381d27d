"""Kernels of one lowering that are known: groups of operators that differ in names alone are lowered once."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from bytewright import ir
from bytewright.lower.group import Group
from bytewright.lower.kernel import Argument, LoweredKernel, TensorArgument


class KnownKernels:
    """What templates made of groups so far, by all that they read of one: operators, types, constants and device.

    Args:
        types: The type of each tensor.
        constants: Those of the module.
    """

    def __init__(self, types: Mapping[str, ir.TensorType], constants: Mapping[str, ir.Constant]) -> None:
        self._types, self._constants = types, constants
        # With each kernel, the names that its group had, in the order of their numbers.
        self._known: dict[Hashable, tuple[LoweredKernel, tuple[str, ...]]] = {}

    def of(self, group: Group, name: str, device: str, lower: Callable[[], LoweredKernel]) -> LoweredKernel:
        """The kernel of a group under its own name: that of an equal group, or what `lower` makes."""
        names = _names(group)
        key = self._key(group, names, device)
        known = self._known.get(key)
        if known is None:
            kernel = lower()
            self._known[key] = kernel, names
            return kernel
        kernel, names_then = known
        now = dict(zip(names_then, names, strict=True))
        function = replace(kernel.function, name=name, where=group.nodes[0].where)
        return replace(
            kernel, function=function, arguments=tuple(_renamed(each, now) for each in kernel.arguments)
        )

    def _key(self, group: Group, names: tuple[str, ...], device: str) -> Hashable:
        numbers = {name: number for number, name in enumerate(names)}
        nodes = tuple(
            (
                node.operation,
                tuple(numbers[name] for name in node.inputs),
                tuple((numbers[value.name], value.type) for value in node.outputs),
            )
            for node in group.nodes
        )
        operands = tuple(
            self._constants[name].data if name in self._constants else self._types[name] for name in names
        )
        return device, group.anchor is None, nodes, operands


def _names(group: Group) -> tuple[str, ...]:
    """The tensors of a group, each once, in the order in which its operators name them."""
    nodes = group.nodes
    return tuple(
        dict.fromkeys(
            name for node in nodes for name in (*node.inputs, *(value.name for value in node.outputs))
        )
    )


def _renamed(argument: Argument, names: Mapping[str, str]) -> Argument:
    return TensorArgument(names[argument.name]) if isinstance(argument, TensorArgument) else argument
