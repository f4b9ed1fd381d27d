"""What each item of a graph is computed by, as a digest that neither names nor the order of operators change.

Where not all can be had, such keys decide what comes first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from bytewright import ir
from bytewright.place.flows import Program


@dataclass(slots=True)
class StructuralKeys:
    """The digests of a program's items, computed when the first one is asked for."""

    program: Program
    _keys: list[bytes] = field(default_factory=list[bytes], init=False)

    def of(self, item: int) -> bytes:
        """An item's digest."""
        if not self._keys:
            self._keys = _digests(self.program)
        return self._keys[item]


def _digests(program: Program) -> list[bytes]:
    keys = [b""] * len(program.values)
    constants = {constant.name: constant.data.digest.encode() for constant in program.module.constants}
    of_function: dict[str, bytes] = {}

    def of_name(name: str) -> bytes:
        return keys[program.uses[name][0]] if name in program.uses else constants.get(name, b"")

    for function in program.module.functions:
        for index, value in enumerate(function.parameters):
            keys[program.items[value.name]] = _digest(b"parameter", str(index).encode())
        for node in function.nodes:
            operation = node.operation
            text = repr(operation)
            if isinstance(operation, ir.ControlOperation):
                text = f"{operation.name} {operation.carries_values}"
                callees = [of_function[name] for name in operation.callees]
            else:
                callees = []
            for index, value in enumerate(node.outputs):
                if value.name in program.items:
                    parts = (text.encode(), str(index).encode(), *callees, *map(of_name, node.inputs))
                    keys[program.items[value.name]] = _digest(*parts)
        for slot, name in zip(program.results[function.name], function.results, strict=True):
            keys[slot] = _digest(b"result", of_name(name))
        of_function[function.name] = _digest(*map(of_name, function.results))
    return keys


def _digest(*parts: bytes) -> bytes:
    state = blake2b(digest_size=12)
    for part in parts:
        state.update(len(part).to_bytes(4, "little") + part)
    return state.digest()
