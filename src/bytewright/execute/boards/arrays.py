"""The arrays of an image by the names that a user knows: where each lies, and whether a run may write it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bytewright.execute.boards.counts import AddressRange, Symbol
from bytewright.execute.description import Bundle
from bytewright.target.model import Provider, Role


class ArrayKind(Enum):
    """What an array is for."""

    WORKSPACE = "workspace"
    PARAMETERS = "parameters"
    INPUT = "input"
    OUTPUT = "output"
    CONTEXT = "context"
    STACK = "stack"


_WRITABLE = (ArrayKind.WORKSPACE, ArrayKind.OUTPUT, ArrayKind.CONTEXT, ArrayKind.STACK)


@dataclass(frozen=True, slots=True)
class ImageArray:
    """One array with bytes, guards that the harness put round it included."""

    kind: ArrayKind
    place: AddressRange
    is_writable: bool


def image_arrays(bundle: Bundle, symbols: Sequence[Symbol]) -> tuple[ImageArray, ...]:
    """The arrays that the image has, of the harness and of the bundle.

    Inputs and outputs that lie in the workspace are the harness's copies here, which a run does not know.
    """
    by_name = {symbol.name: symbol for symbol in symbols}
    arrays: list[ImageArray] = []
    for kind, name, symbol_name in _names(bundle):
        symbol = by_name.get(symbol_name)
        if symbol is None or symbol.size_bytes == 0:
            continue
        is_copy = bundle.io_in_workspace and kind is ArrayKind.OUTPUT
        place = AddressRange(
            f"{kind.value} {name}".rstrip(), symbol.address, symbol.address + symbol.size_bytes - 1
        )
        arrays.append(ImageArray(kind, place, kind in _WRITABLE and not is_copy))
    return tuple(arrays)


def _names(bundle: Bundle) -> Iterator[tuple[ArrayKind, str, str]]:
    """Kind, the name in the model or target, and the symbol."""
    for index, pool in enumerate(bundle.caller_workspaces):
        yield ArrayKind.WORKSPACE, pool.name, f"harness_workspace_{index}"
    for index, tensor in enumerate(bundle.inputs):
        yield ArrayKind.INPUT, tensor.name, f"harness_input_{index}"
    for index, tensor in enumerate(bundle.outputs):
        yield ArrayKind.OUTPUT, tensor.name, f"harness_output_{index}"
    for index, pool in enumerate(bundle.caller_copies):
        yield ArrayKind.PARAMETERS, pool.name, f"harness_copy_{index}"
    for pool in bundle.pools:
        if pool.provider is Provider.GENERATED:
            kind = ArrayKind.WORKSPACE if pool.role is Role.WORKSPACE else ArrayKind.PARAMETERS
            yield kind, pool.name, f"{bundle.model}_{pool.c_name}_{kind.value}"
    yield ArrayKind.CONTEXT, "", "harness_model_context"
    yield ArrayKind.STACK, "", "harness_model_stack"
