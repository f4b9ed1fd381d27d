"""`check --elf`: a linked image against the plan.

Every array that stands behind a pool lies in the memory that the plan gave it, is aligned, shares no byte with
another array, section or variable, nor with the stack and the heap that the linker script reserves; and parameters
are the plan's bytes. Addresses are compared as bytes of a memory, so that an array and a stack that meet through an
alias are found, which no linker sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.inspect.read_c import read_bytes
from bytewright.inspect.read_elf import Image, Symbol, read_image
from bytewright.plan_file import Plan, PlannedPool
from bytewright.target.model import Memory, Target

# What linker scripts reserve, by the names of their symbols: the CMSIS templates', newlib's, picolibc's and those
# of STM32 projects. First and end of the interval ...
RESERVED_BETWEEN = (
    ("stack", "__StackLimit", "__StackTop"),
    ("stack", "__stack_limit", "__stack_top"),
    ("stack", "_sstack", "_estack"),
    ("heap", "__HeapBase", "__HeapLimit"),
    ("heap", "__end__", "__HeapLimit"),
    ("heap", "__heap_start", "__heap_end"),
    ("heap", "_sheap", "_eheap"),
)
# ... or the end of a stack, which grows downwards, or the start of a heap, with a size.
RESERVED_BELOW = (
    ("stack", "_estack", "_Min_Stack_Size"),
    ("stack", "__stack", "__stack_size"),
    ("stack", "__StackTop", "__STACK_SIZE"),
)
RESERVED_ABOVE = (
    ("heap", "_end", "_Min_Heap_Size"),
    ("heap", "end", "_Min_Heap_Size"),
    ("heap", "__HeapBase", "__HEAP_SIZE"),
)


@dataclass(frozen=True, slots=True)
class Interval:
    """Addresses `[first, end)` with a name for messages."""

    name: str
    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.first:#010x}..{self.end - 1:#010x}"


@dataclass(frozen=True, slots=True)
class PoolArray:
    """The array behind a pool.

    Attributes:
        symbol: Its name in the image.
        address: Likewise.
        has_bytes: Whether the image brings its content.
    """

    pool: PlannedPool
    symbol: str
    address: int
    has_bytes: bool


@dataclass(frozen=True, slots=True)
class ImageVerdict:
    """An image that keeps to the plan.

    Attributes:
        arrays: One for each pool that is in the image.
        parameter_bytes: Compared with the plan's digests.
        reserved: Stack and heap, as far as the linker script names them.
        separate: Parameter pools that are not in the image, because they are flashed for themselves.
    """

    arrays: tuple[PoolArray, ...]
    parameter_bytes: int
    reserved: tuple[Interval, ...]
    separate: tuple[str, ...]


def check_elf(directory: Path, plan: Plan, path: Path, symbols: Mapping[str, str]) -> ImageVerdict:
    """Compares an image with a plan.

    Args:
        directory: The bundle, for the bytes of its parameters.
        plan: Its plan.
        path: The ELF file.
        symbols: Names of arrays by pool, where they are not `<model>_<pool>_workspace` or `_parameters`.

    Raises:
        CompileError: BW204 for a pool that does not exist; BW208, BW501 for the file; BW405 with all that is wrong.
    """
    unknown = [name for name in symbols if name not in plan.pools]
    if unknown:
        raise CompileError(
            Diagnostic(
                "BW204",
                f"the plan has no pool '{unknown[0]}'",
                help=f"its pools are {', '.join(plan.pools)}",
            )
        )
    image = read_image(path)
    faults: list[str] = []
    found: list[tuple[PlannedPool, Symbol]] = []
    separate: list[str] = []
    for pool in plan.pools.values():
        if not pool.used_bytes:
            continue
        name = symbols.get(pool.name, f"{plan.model}_{pool.c_name}_{pool.role}")
        matching = [symbol for symbol in image.symbols if symbol.name == name]
        if len(matching) == 1:
            found.append((pool, matching[0]))
        elif (
            not matching
            and pool.role == "parameters"
            and pool.provider == "caller"
            and pool.name not in symbols
        ):
            separate.append(pool.name)
        else:
            faults.append(_not_found(pool, name, len(matching)))
    reserved = _reserved(image)
    for pool, symbol in found:
        faults += _faults_of_array(plan, image, pool, symbol)
        faults += _faults_of_neighbours(plan.hardware, image, pool, symbol, found, reserved)
        if pool.role == "parameters":
            faults += _faults_of_bytes(directory, plan, image, pool, symbol)
    if faults:
        message = f"the image '{path}' is not what the plan of '{plan.model}' says"
        raise CompileError(Diagnostic("BW405", message, tuple(faults)))
    arrays = [
        PoolArray(pool, symbol.name, symbol.address, pool.role == "parameters") for pool, symbol in found
    ]
    num_bytes = sum(array.pool.used_bytes for array in arrays if array.has_bytes)
    return ImageVerdict(tuple(arrays), num_bytes, tuple(reserved), tuple(separate))


def _not_found(pool: PlannedPool, name: str, count: int) -> str:
    if count:
        return f"pool '{pool.name}': {count} symbols are named '{name}'"
    return f"pool '{pool.name}': there is no symbol '{name}'; name its array with --symbol {pool.name}=NAME"


def _extent(pool: PlannedPool, symbol: Symbol) -> Interval:
    """The bytes that the plan uses of an array."""
    return Interval(symbol.name, symbol.address, symbol.address + pool.used_bytes)


def _offset(target: Target, memory: Memory, address: int) -> int | None:
    """How far into a memory an address is, as the device that runs the entry sees it or through any alias."""
    views = [e.base for e in target.default_device.reach if e.memory == memory.name and e.base is not None]
    for base in views:
        if memory.size_bytes is not None and 0 <= address - base < memory.size_bytes:
            return address - base
    return memory.offset_of(address)


def _locate(target: Target, interval: Interval) -> tuple[str, int] | None:
    """Memory and offset of an interval that lies in one memory."""
    for memory in target.memories:
        first = _offset(target, memory, interval.first)
        last = _offset(target, memory, interval.end - 1)
        if first is not None and last is not None and last - first == interval.end - 1 - interval.first:
            return memory.name, first
    return None


def _faults_of_array(plan: Plan, image: Image, pool: PlannedPool, symbol: Symbol) -> Iterator[str]:
    """Memory, size and alignment."""
    extent = _extent(pool, symbol)
    if symbol.size_bytes and symbol.size_bytes < pool.used_bytes:
        yield f"pool '{pool.name}': '{symbol.name}' has {symbol.size_bytes} B, the plan uses {pool.used_bytes} B"
    if symbol.address % pool.alignment:
        yield (
            f"pool '{pool.name}': '{symbol.name}' is at {symbol.address:#010x}, "
            f"{symbol.address % pool.alignment} B past a multiple of {pool.alignment}"
        )
    memory = plan.hardware.find_memory(pool.memory)
    if memory is None or not memory.address_ranges():
        return  # a memory without an address is anywhere, as on the host
    if _locate(plan.hardware, extent) != (memory.name, _offset(plan.hardware, memory, extent.first)):
        yield (
            f"pool '{pool.name}': '{symbol.name}' is at {extent}, {_whereabouts(plan.hardware, extent)}, "
            f"not in '{memory.name}'"
        )
    if image.section_of(symbol, pool.used_bytes) is None:
        yield f"pool '{pool.name}': no section of the image has all of '{symbol.name}' at {extent}"


def _whereabouts(target: Target, interval: Interval) -> str:
    located = _locate(target, interval)
    return "in no memory of the target" if located is None else f"in memory '{located[0]}'"


def _faults_of_neighbours(
    target: Target,
    image: Image,
    pool: PlannedPool,
    symbol: Symbol,
    arrays: Sequence[tuple[PlannedPool, Symbol]],
    reserved: Sequence[Interval],
) -> Iterator[str]:
    """Whatever else has a byte of the array."""
    extent = _extent(pool, symbol)
    pools = {other: f"pool '{owner.name}'" for owner, other in arrays}
    others = [
        Interval(pools[other], other.address, other.address + owner.used_bytes)
        for owner, other in arrays
        if owner is not pool
    ]
    others += [
        Interval(f"variable '{other.name}'", other.address, other.address + other.size_bytes)
        for other in image.symbols
        if other.is_object and other.size_bytes and other not in pools
        if (other.address, other.size_bytes) != (symbol.address, symbol.size_bytes)
    ]
    own = image.section_of(symbol, pool.used_bytes)
    others += [
        Interval(f"section '{section.name}'", section.address, section.address + section.size_bytes)
        for section in image.sections
        if section is not own
    ]
    for other in (*others, *reserved):
        shared = _shared_bytes(target, extent, other)
        if shared:
            yield f"pool '{pool.name}': '{symbol.name}' at {extent} shares {shared} B with {other.name} at {other}"


def _shared_bytes(target: Target, first: Interval, second: Interval) -> int:
    """How many bytes two intervals have in common, through whatever addresses."""
    raw = min(first.end, second.end) - max(first.first, second.first)
    if raw > 0:
        return raw
    one, two = _locate(target, first), _locate(target, second)
    if one is None or two is None or one[0] != two[0]:
        return 0
    ends = (one[1] + first.end - first.first, two[1] + second.end - second.first)
    return max(0, min(ends) - max(one[1], two[1]))


def _reserved(image: Image) -> list[Interval]:
    """Stack and heap that the linker script reserves, where it says so by a name that is known."""
    addresses = {symbol.name: symbol.address for symbol in image.symbols}
    found: list[Interval] = []
    for what, first, end in RESERVED_BETWEEN:
        if first in addresses and end in addresses:
            found.append(Interval(f"the {what} ({first} to {end})", addresses[first], addresses[end]))
    for what, end, size in RESERVED_BELOW:
        if end in addresses and size in addresses:
            top = addresses[end]
            found.append(Interval(f"the {what} ({size} below {end})", top - addresses[size], top))
    for what, first, size in RESERVED_ABOVE:
        if first in addresses and size in addresses:
            base = addresses[first]
            found.append(Interval(f"the {what} ({size} from {first})", base, base + addresses[size]))
    return [interval for interval in found if 0 <= interval.first < interval.end]


def _faults_of_bytes(
    directory: Path, plan: Plan, image: Image, pool: PlannedPool, symbol: Symbol
) -> Iterator[str]:
    """Whether the image brings the parameters of the plan."""
    section = image.section_of(symbol, pool.used_bytes)
    if section is None:
        return  # said already
    if section.content is None:
        yield f"pool '{pool.name}': section '{section.name}' of '{symbol.name}' brings no bytes into the image"
        return
    start = symbol.address - section.address
    content = section.content[start : start + pool.used_bytes]
    if hashlib.sha256(content).hexdigest() == pool.sha256:
        return
    different = _difference(directory, plan, pool, content)
    yield f"pool '{pool.name}': '{symbol.name}' holds other bytes than the plan's{different}"


def _difference(directory: Path, plan: Plan, pool: PlannedPool, content: bytes) -> str:
    """How many bytes differ, and the first, if the bundle still has the plan's bytes."""
    path = directory / "include" / f"{plan.model}_{pool.c_name}_parameters.inc"
    try:
        expected = read_bytes(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if len(expected) != len(content) or hashlib.sha256(expected).hexdigest() != pool.sha256:
        return ""
    differing = [index for index, (a, b) in enumerate(zip(content, expected, strict=True)) if a != b]
    first = differing[0]
    return f": {len(differing)} B differ, the first at offset {first}, {content[first]} for {expected[first]}"
