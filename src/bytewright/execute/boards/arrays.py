"""The arrays of an image by the names that a user knows: where each lies, and whether a run may write it.

The linker script finds arrays by section and name, so flags that change either could leave one elsewhere without an
error; whether all lie where the target wants them is checked on the linked image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.boards.counts import AddressRange, ImageSymbol
from bytewright.execute.description import Bundle, PoolUse
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
    """One array with bytes, guards that the harness put round it included.

    Attributes:
        pool: The pool that it is the array of, if it is one.
        memory: Where the target wants it; None if anywhere.
    """

    kind: ArrayKind
    place: AddressRange
    is_writable: bool
    pool: str | None = None
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class _Named:
    """An array that the image should have: what it is called in messages, and in C."""

    kind: ArrayKind
    name: str
    symbol: str
    pool: PoolUse | None = None
    memory: str | None = None


def image_arrays(bundle: Bundle, symbols: Sequence[ImageSymbol]) -> tuple[ImageArray, ...]:
    """The arrays that the image has, of the harness and of the bundle.

    Inputs and outputs that lie in the workspace are the harness's copies here, which a run does not know.
    """
    by_name = {symbol.name: symbol for symbol in symbols}
    arrays: list[ImageArray] = []
    for named in _names(bundle):
        symbol = by_name.get(named.symbol)
        if symbol is None or symbol.size_bytes == 0:
            continue
        is_copy = bundle.io_in_workspace and named.kind is ArrayKind.OUTPUT
        name = f"{named.kind.value} {named.name}".rstrip()
        place = AddressRange(name, symbol.address, symbol.address + symbol.size_bytes - 1)
        is_writable = named.kind in _WRITABLE and not is_copy
        pool_name = None if named.pool is None else named.pool.name
        arrays.append(ImageArray(named.kind, place, is_writable, pool_name, named.memory))
    return tuple(arrays)


def _names(bundle: Bundle) -> Iterator[_Named]:
    for index, pool in enumerate(bundle.caller_workspaces):
        yield _Named(ArrayKind.WORKSPACE, pool.name, f"harness_workspace_{index}", pool, pool.memory)
    for index, tensor in enumerate(bundle.inputs):
        yield _Named(ArrayKind.INPUT, tensor.name, f"harness_input_{index}")
    for index, tensor in enumerate(bundle.outputs):
        yield _Named(ArrayKind.OUTPUT, tensor.name, f"harness_output_{index}")
    for index, pool in enumerate(bundle.caller_copies):
        yield _Named(ArrayKind.PARAMETERS, pool.name, f"harness_copy_{index}", pool, pool.memory)
    for index, pool in enumerate(bundle.caller_parameters):
        if pool.used_bytes:
            yield _source_or_pool(pool, f"harness_blob_{index}")
    for pool in bundle.pools:
        if pool.provider is Provider.GENERATED and pool.used_bytes:
            kind = ArrayKind.WORKSPACE if pool.role is Role.WORKSPACE else ArrayKind.PARAMETERS
            symbol = f"{bundle.model}_{pool.c_name}_{kind.value}"
            yield _Named(kind, pool.name, symbol, pool, pool.memory)
            if pool.is_copied:
                yield _source_or_pool(pool, f"{symbol}_load")
    yield _Named(ArrayKind.CONTEXT, "", "harness_model_context")
    yield _Named(ArrayKind.STACK, "", "harness_model_stack")


def _source_or_pool(pool: PoolUse, symbol: str) -> _Named:
    """The array with the bytes of a parameter pool, which are read there or copied from there."""
    if pool.is_copied:
        return _Named(ArrayKind.PARAMETERS, f"{pool.name}.load", symbol, pool, pool.load_memory)
    return _Named(ArrayKind.PARAMETERS, pool.name, symbol, pool, pool.memory)


def check_places(
    bundle: Bundle, symbols: Sequence[ImageSymbol], memories: Sequence[AddressRange], board_name: str
) -> None:
    """Every array of a pool lies in the memory that the target gave it. Those that no code refers to are not linked.

    Args:
        bundle: The bundle.
        symbols: Of the image.
        memories: Address ranges by the memory's name; a memory may have several.
        board_name: For the message.

    Raises:
        CompileError: BW405 with each array that lies elsewhere.
    """
    by_name = {symbol.name: symbol for symbol in symbols}
    faults: list[str] = []
    wanted: list[str] = []
    for named in _names(bundle):
        if named.pool is None or named.memory is None or not named.pool.used_bytes:
            continue
        symbol = by_name.get(named.symbol)
        fault = None if symbol is None else _fault_of_place(symbol, named.memory, memories)
        if fault is not None:
            faults.append(f"pool '{named.pool.name}': {fault}")
            wanted.append(named.memory)
    if faults:
        names = " and ".join(f"'{name}'" for name in dict.fromkeys(wanted))
        raise CompileError(
            Diagnostic(
                "BW405",
                f"the image of model '{bundle.model}' for {board_name} is not what its plan says",
                tuple(faults),
                help=f"build without flags of your own, or give a `section` to memory {names} in the target file",
            )
        )


def _fault_of_place(symbol: ImageSymbol, memory: str, memories: Sequence[AddressRange]) -> str | None:
    first, last = symbol.address, symbol.address + max(symbol.size_bytes, 1) - 1
    found = [entry.name for entry in memories if entry.first <= first and last <= entry.last]
    if memory in found:
        return None
    place = f"in memory '{found[0]}'" if found else "in no memory of the target"
    return f"'{symbol.name}' is at {first:#010x}..{last:#010x}, {place}, not in '{memory}'"
