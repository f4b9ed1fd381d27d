"""What each item of a graph is, as a number that neither names nor the order of functions and operators change.

Where not all can be had, such keys decide what comes first. What computes an item is not enough for that: a parameter
is also what its callers pass, and of two equal values each is also what becomes of it. So items are told apart by what
they are tied to, until that tells no more apart. Items that are equal then are tied alike to what is alike, so that the
same can be had for each of them, whichever comes first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from bytewright import ir
from bytewright.place.flows import Program
from bytewright.place.infer_devices import Devices
from bytewright.place.refine_partition import Ties, refine_partition


@dataclass(slots=True)
class StructuralKeys:
    """The keys of a program's items, computed when the first one is asked for."""

    program: Program
    devices: Devices
    _keys: list[int] = field(default_factory=list[int], init=False)

    def of(self, item: int) -> int:
        """An item's key; -1 for a home that is no item's."""
        if not self._keys:
            self._keys = refine_partition(self._by_themselves(), _ties(self.program))
        return self._keys[item] if item < len(self._keys) else -1

    def _by_themselves(self) -> list[bytes]:
        """What computes each item, its device, and what is asked of it."""
        keys = _digests(self.program)
        for item, key in enumerate(keys):
            asked = sorted({str(one.place).encode() for one in self.program.asked.get(item, ())})
            keys[item] = _digest(key, self.devices.of(item).encode(), *asked)
        return keys


def _ties(program: Program) -> Ties:
    """What flows tie each item to, and what is one memory with it."""
    ties: list[list[tuple[str, int]]] = [[] for _ in program.values]
    for flow in program.flows:
        if flow.user is not None:
            word = f"{flow.tie.value} {flow.operand} {flow.is_alias} {flow.is_output}"
            ties[flow.value].append((f"used {word}", flow.user))
            ties[flow.user].append((f"uses {word}", flow.value))
    for first, second in program.one_memory:
        ties[first].append(("first", second))
        ties[second].append(("second", first))
    return ties


def _digests(program: Program) -> list[bytes]:
    """What each item is computed by, from the parameters of its function on."""
    keys = [b""] * len(program.values)
    constants = {constant.name: constant.data.digest.encode() for constant in program.module.constants}
    of_function: dict[str, bytes] = {}

    def of_name(name: str) -> bytes:
        return keys[program.uses[name][0]] if name in program.uses else constants.get(name, b"")

    for function in program.module.functions:
        role = b"of the model" if function is program.main else b"of a function"
        for index, value in enumerate(function.parameters):
            keys[program.items[value.name]] = _digest(b"parameter", role, str(index).encode())
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
        for index, slot in enumerate(program.results[function.name]):
            name = function.results[index]
            keys[slot] = _digest(b"result", role, str(index).encode(), of_name(name))
        of_function[function.name] = _digest(*map(of_name, function.results))
    return keys


def _digest(*parts: bytes) -> bytes:
    state = blake2b(digest_size=12)
    for part in parts:
        state.update(len(part).to_bytes(4, "little") + part)
    return state.digest()
