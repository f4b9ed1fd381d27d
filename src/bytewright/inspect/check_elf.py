"""`check --elf`: a linked image against the plan.

Every array that stands behind a pool lies in the memory that the plan gave it, is aligned, shares no byte with
another array, section or variable, nor with the stack and the heap that the linker script reserves; and parameters
are the plan's bytes. Parameters that are brought to their memory before the first run lie until then in the memory
from which the target loads them: at a load address, or in an array that is copied. Others lie in memory that is not
empty when the power comes.

Addresses are compared as bytes of a memory, so that an array and a stack that meet through an alias are found, which
no linker sees.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bytewright.diagnostics import compile_error
from bytewright.inspect.read_c import read_bytes
from bytewright.inspect.read_elf import ElfSymbol, Image, read_image
from bytewright.record.names import names_of
from bytewright.record.plan import Plan, PlannedPool
from bytewright.target.mistake import from_line, in_target_file, read_only_memories
from bytewright.target.model import Loader, Memory, Role, Target

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
class Addresses:
    """Addresses `[first, end)` with a name for messages."""

    name: str
    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.first:#010x}..{self.end - 1:#010x}"


@dataclass(frozen=True, slots=True)
class PoolArray:
    """An array behind a pool; one that is copied has two.

    Attributes:
        memory: Where it must lie; None if that is not known.
        alignment: What its address must be a multiple of.
        symbol: Its name in the image, and address and size by that.
        has_bytes: Whether the image brings its content.
    """

    pool: PlannedPool
    memory: str | None
    alignment: int
    symbol: ElfSymbol
    has_bytes: bool

    @property
    def extent(self) -> Addresses:
        """The bytes that the plan uses of it."""
        first = self.symbol.address
        return Addresses(f"pool '{self.pool.name}'", first, first + self.pool.used_bytes)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An array that the image must have, or may have."""

    pool: PlannedPool
    key: str
    default_name: str
    memory: str | None
    alignment: int
    has_bytes: bool

    def name(self, symbols: Mapping[str, str]) -> str:
        return symbols.get(self.key, self.default_name)

    def may_be_missing(self, symbols: Mapping[str, str]) -> bool:
        """Parameters of the application can be flashed for themselves."""
        return self.has_bytes and self.pool.is_caller and self.key not in symbols


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
    reserved: tuple[Addresses, ...]
    separate: tuple[str, ...]


def check_elf(directory: Path, plan: Plan, path: Path, symbols: Mapping[str, str]) -> ImageVerdict:
    """Compares an image with a plan.

    Args:
        directory: The bundle, for the bytes of its parameters.
        plan: Its plan.
        path: The ELF file.
        symbols: Names of arrays by pool, where they are not `<model>_<pool>_workspace` or `_parameters`; by
            `<pool>.load` the names of arrays that are copied from, where they are not `<model>_<pool>_parameters_load`.

    Raises:
        CompileError: BW204 for a pool that does not exist; BW208, BW501 for the file; BW405 with all that is wrong.
    """
    wanted = [array for pool in plan.pools.values() for array in _wanted_arrays(plan, pool)]
    keys = {array.key for array in wanted}
    unknown = [key for key in symbols if key not in keys]
    if unknown:
        raise compile_error(
            "BW204",
            f"the plan has no pool '{unknown[0]}'",
            help=f"its pools are {', '.join(array.key for array in wanted)}",
        )
    image = read_image(path)
    faults: list[str] = []
    found: list[PoolArray] = []
    separate: list[str] = []
    for array in wanted:
        if not array.pool.used_bytes:
            continue
        name = array.name(symbols)
        matching = [symbol for symbol in image.symbols if symbol.name == name]
        if len(matching) == 1:
            found.append(PoolArray(array.pool, array.memory, array.alignment, matching[0], array.has_bytes))
        elif not matching and array.may_be_missing(symbols):
            separate.append(array.pool.name)
        else:
            faults.append(_not_found(array, name, len(matching)))
    reserved = _reserved(image)
    faults += _faults_of_stack(plan, image)
    for array in found:
        faults += _faults_of_array(plan, image, array)
        faults += _faults_of_neighbours(plan.hardware, image, array, found, reserved)
        if array.has_bytes:
            faults += _faults_of_bytes(directory, plan, image, array)
            faults += _faults_of_load(plan.hardware, image, array)
    if faults:
        message = f"the image '{path}' is not what the plan of '{plan.model}' says"
        help_text = _load_help(plan.hardware, image, found)
        raise compile_error("BW405", message, tuple(faults), help_text)
    num_bytes = sum(array.pool.used_bytes for array in found if array.has_bytes)
    return ImageVerdict(tuple(found), num_bytes, tuple(reserved), tuple(separate))


def _wanted_arrays(plan: Plan, pool: PlannedPool) -> Iterator[_Wanted]:
    """The array where a pool is used, and the one from which it is copied."""
    names = names_of(plan)
    has_bytes = pool.role is Role.PARAMETERS and pool.load is not Loader.COPY
    yield _Wanted(pool, pool.name, names.array(pool), pool.memory, pool.alignment, has_bytes)
    if pool.load is Loader.COPY:  # with memcpy, which asks for no alignment
        yield _Wanted(pool, f"{pool.name}.load", names.load_array(pool), pool.load_memory, 1, True)


def _not_found(array: _Wanted, name: str, count: int) -> str:
    if count:
        return f"pool '{array.pool.name}': {count} symbols are named '{name}'"
    option = f"--symbol {array.key}=NAME"
    return f"pool '{array.pool.name}': there is no symbol '{name}'; name its array with {option}"


def _offset(target: Target, memory: Memory, address: int) -> int | None:
    """How far into a memory an address is, as the device that runs the entry sees it or through any alias."""
    views = [e.base for e in target.default_device.reach if e.memory == memory.name and e.base is not None]
    for base in views:
        if memory.size_bytes is not None and 0 <= address - base < memory.size_bytes:
            return address - base
    return memory.offset_of(address)


def _locate(target: Target, interval: Addresses) -> tuple[str, int] | None:
    """Memory and offset of an interval that lies in one memory."""
    for memory in target.memories:
        first = _offset(target, memory, interval.first)
        last = _offset(target, memory, interval.end - 1)
        if first is not None and last is not None and last - first == interval.end - 1 - interval.first:
            return memory.name, first
    return None


def _faults_of_array(plan: Plan, image: Image, array: PoolArray) -> Iterator[str]:
    """Memory, size and alignment."""
    pool, symbol, extent = array.pool, array.symbol, array.extent
    if symbol.size_bytes and symbol.size_bytes < pool.used_bytes:
        yield f"pool '{pool.name}': '{symbol.name}' has {symbol.size_bytes} B, the plan uses {pool.used_bytes} B"
    if symbol.address % array.alignment:
        yield (
            f"pool '{pool.name}': '{symbol.name}' is at {symbol.address:#010x}, "
            f"{symbol.address % array.alignment} B past a multiple of {array.alignment}"
        )
    memory = None if array.memory is None else plan.hardware.find_memory(array.memory)
    if memory is None or not memory.address_ranges():
        return  # a memory without an address is anywhere, as on the host
    if _locate(plan.hardware, extent) != (memory.name, _offset(plan.hardware, memory, extent.first)):
        yield (
            f"pool '{pool.name}': '{symbol.name}' is at {extent}, {_whereabouts(plan.hardware, extent)}, "
            f"not in '{memory.name}'"
        )
    if image.section_of(symbol, pool.used_bytes) is None:
        yield f"pool '{pool.name}': no section of the image has all of '{symbol.name}' at {extent}"


def _whereabouts(target: Target, interval: Addresses) -> str:
    located = _locate(target, interval)
    return "in no memory of the target" if located is None else f"in memory '{located[0]}'"


def _faults_of_neighbours(
    target: Target,
    image: Image,
    array: PoolArray,
    arrays: Sequence[PoolArray],
    reserved: Sequence[Addresses],
) -> Iterator[str]:
    """Whatever else has a byte of the array."""
    pool, symbol, extent = array.pool, array.symbol, array.extent
    pools = {other.symbol for other in arrays}
    others = [other.extent for other in arrays if other is not array]
    others += [
        Addresses(f"variable '{other.name}'", other.address, other.address + other.size_bytes)
        for other in image.symbols
        if other.is_object and other.size_bytes and other not in pools
        if (other.address, other.size_bytes) != (symbol.address, symbol.size_bytes)
    ]
    own = image.section_of(symbol, pool.used_bytes)
    others += [
        Addresses(f"section '{section.name}'", section.address, section.address + section.size_bytes)
        for section in image.sections
        if section is not own
    ]
    for other in (*others, *reserved):
        shared = _shared_bytes(target, extent, other)
        if shared:
            yield f"pool '{pool.name}': '{symbol.name}' at {extent} shares {shared} B with {other.name} at {other}"


def _shared_bytes(target: Target, first: Addresses, second: Addresses) -> int:
    """How many bytes two intervals have in common, through whatever addresses."""
    raw = min(first.end, second.end) - max(first.first, second.first)
    if raw > 0:
        return raw
    one, two = _locate(target, first), _locate(target, second)
    if one is None or two is None or one[0] != two[0]:
        return 0
    ends = (one[1] + first.end - first.first, two[1] + second.end - second.first)
    return max(0, min(ends) - max(one[1], two[1]))


def _reserved(image: Image) -> list[Addresses]:
    """Stack and heap that the linker script reserves, where it says so by a name that is known."""
    return [interval for _, interval in _stacks_and_heaps(image) if 0 <= interval.first < interval.end]


def _faults_of_stack(plan: Plan, image: Image) -> Iterator[str]:
    """Whether the stack that is there has what the model was promised, and what the target keeps for others."""
    context = plan.device.contexts[0]
    stack = plan.stack.get(context.name)
    if stack is None:
        return
    needed_bytes = stack.size_bytes + context.stack_reserve_bytes
    for what, interval in _stacks_and_heaps(image):
        size_bytes = interval.end - interval.first
        if what == "stack" and 0 <= size_bytes < needed_bytes:
            reserve = (
                f" and the target reserves {context.stack_reserve_bytes} B"
                if context.stack_reserve_bytes
                else ""
            )
            yield (
                f"{interval.name} has {size_bytes} B, but the model is promised {stack.size_bytes} B{reserve}: "
                f"{needed_bytes - size_bytes} B too few"
            )


def _stacks_and_heaps(image: Image) -> list[tuple[str, Addresses]]:
    """What each is, and its place by the symbols; sound or not."""
    addresses = {symbol.name: symbol.address for symbol in image.symbols}
    found: list[tuple[str, Addresses]] = []
    for what, first, end in RESERVED_BETWEEN:
        if first in addresses and end in addresses:
            found.append(
                (what, Addresses(f"the {what} ({first} to {end})", addresses[first], addresses[end]))
            )
    for what, end, size in RESERVED_BELOW:
        if end in addresses and size in addresses:
            top = addresses[end]
            found.append((what, Addresses(f"the {what} ({size} below {end})", top - addresses[size], top)))
    for what, first, size in RESERVED_ABOVE:
        if first in addresses and size in addresses:
            base = addresses[first]
            found.append((what, Addresses(f"the {what} ({size} from {first})", base, base + addresses[size])))
    return found


def _faults_of_load(target: Target, image: Image, array: PoolArray) -> Iterator[str]:
    """Whether the bytes are, until the first run, in the memory from which the target loads the pool."""
    pool, symbol = array.pool, array.symbol
    loaded = _loaded_from(image, array)
    if loaded is None:
        return
    memory = target.find_memory(pool.load_memory or "")
    if memory is not None and memory.address_ranges():
        is_said = pool.load is Loader.COPY and loaded.first == symbol.address  # of the array that is copied
        if not is_said and _locate(target, loaded) != (memory.name, _offset(target, memory, loaded.first)):
            place = f"{loaded}, {_whereabouts(target, loaded)}, not from '{memory.name}'"
            yield f"pool '{pool.name}': '{symbol.name}' is loaded from {place}"
    elif _is_lost(target, image, array):
        yield (
            f"pool '{pool.name}': '{symbol.name}' is loaded from {loaded}, {_whereabouts(target, loaded)}, which is "
            "not read-only, so nobody knows what it holds when the power comes"
        )


def _loaded_from(image: Image, array: PoolArray) -> Addresses | None:
    """Where the linker puts the bytes of an array until they are brought to it."""
    symbol = array.symbol
    section = image.section_of(symbol, array.pool.used_bytes)
    if section is None:
        return None  # said already
    first = symbol.address - section.address + section.load_address
    return Addresses(array.pool.name, first, first + array.pool.used_bytes)


def _is_lost(target: Target, image: Image, array: PoolArray) -> bool:
    """Whether the bytes are loaded to memory that is empty when the power comes, and the target says nothing else.

    Where no memory is read-only, whoever loads the program loads its parameters with it.
    """
    loaded = _loaded_from(image, array)
    located = None if loaded is None or array.pool.load_memory else _locate(target, loaded)
    return (
        located is not None
        and target.memory(located[0]).is_writable
        and any(not memory.is_writable for memory in target.memories)
    )


def _load_help(target: Target, image: Image, arrays: Sequence[PoolArray]) -> str | None:
    """The line of the target file that says which memory keeps the bytes of pools that would be lost."""
    lost = [array.pool.name for array in arrays if array.has_bytes and _is_lost(target, image, array)]
    if not lost:
        return None
    kept_in = read_only_memories(target)[0]
    return in_target_file(*(from_line(name, kept_in) for name in dict.fromkeys(lost)))


def _faults_of_bytes(directory: Path, plan: Plan, image: Image, array: PoolArray) -> Iterator[str]:
    """Whether the image brings the parameters of the plan."""
    pool, symbol = array.pool, array.symbol
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
    path = directory / names_of(plan).embedded(pool, as_numbers=True)
    try:
        is_text = path.exists()
        expected = (
            read_bytes(path.read_text(encoding="utf-8")) if is_text else path.with_suffix(".bin").read_bytes()
        )
    except (OSError, ValueError):
        return ""
    if len(expected) != len(content) or hashlib.sha256(expected).hexdigest() != pool.sha256:
        return ""
    differing = [index for index, (a, b) in enumerate(zip(content, expected, strict=True)) if a != b]
    first = differing[0]
    return f": {len(differing)} B differ, the first at offset {first}, {content[first]} for {expected[first]}"
