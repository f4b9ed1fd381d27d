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
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from bytewright.diagnostics import compile_error
from bytewright.elf.image import ElfSymbol, Image, Section, read_image
from bytewright.inspect.c_source import read_bytes
from bytewright.record.buffers import PlannedPool
from bytewright.record.names import names_of
from bytewright.record.placed_sections import include_line
from bytewright.record.plan import Plan
from bytewright.target.mistake import from_line, in_target_file, read_only_memories
from bytewright.target.model import Loader, Memory, Role

# What linker scripts reserve, by the names of their symbols: the CMSIS templates', newlib's, picolibc's and those
# of STM32 projects. First and end of an interval, or its size with the end of a stack, which grows downwards, or with
# the start of a heap.
RESERVED = (
    ("stack", "__StackLimit", "to", "__StackTop"),
    ("stack", "__stack_limit", "to", "__stack_top"),
    ("stack", "_sstack", "to", "_estack"),
    ("heap", "__HeapBase", "to", "__HeapLimit"),
    ("heap", "__end__", "to", "__HeapLimit"),
    ("heap", "__heap_start", "to", "__heap_end"),
    ("heap", "_sheap", "to", "_eheap"),
    ("stack", "_Min_Stack_Size", "below", "_estack"),
    ("stack", "__stack_size", "below", "__stack"),
    ("stack", "__STACK_SIZE", "below", "__StackTop"),
    ("heap", "_Min_Heap_Size", "from", "_end"),
    ("heap", "_Min_Heap_Size", "from", "end"),
    ("heap", "__HEAP_SIZE", "from", "__HeapBase"),
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
class WantedArray:
    """An array behind a pool that the image must have, or may have; one that is copied has two.

    Attributes:
        key: What --symbol calls it.
        default_name: Its name in the image, if --symbol gives no other.
        memory: Where it must lie; None if that is not known.
        alignment: What its address must be a multiple of.
        has_bytes: Whether the image brings its content.
    """

    pool: PlannedPool
    key: str
    default_name: str
    memory: str | None
    alignment: int
    has_bytes: bool


@dataclass(frozen=True, slots=True)
class PoolArray:
    """One that is there.

    Attributes:
        symbol: Its name in the image, and address and size by that.
        section: The section that has all of it, if one has.
    """

    wanted: WantedArray
    symbol: ElfSymbol
    section: Section | None

    @property
    def pool(self) -> PlannedPool:
        """The pool that it is behind."""
        return self.wanted.pool

    @property
    def extent(self) -> Addresses:
        """The bytes that the plan uses of it."""
        first = self.symbol.address
        return Addresses(f"pool '{self.pool.name}'", first, first + self.pool.used_bytes)

    @property
    def loaded_from(self) -> Addresses | None:
        """Where the linker puts the bytes until they are brought to the array; None if no section has it."""
        if self.section is None:
            return None
        first = self.symbol.address - self.section.address + self.section.load_address
        return Addresses(self.pool.name, first, first + self.pool.used_bytes)


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
        CompileError: BW204 for a pool that does not exist; BW208 for the file; BW405 with all that is wrong.
    """
    in_program = [pool for pool in plan.pools.values() if pool.obtained_by is None]
    wanted = [array for pool in in_program for array in _wanted_arrays(plan, pool)]
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
        name = symbols.get(array.key, array.default_name)
        matching = [symbol for symbol in image.symbols if symbol.name == name]
        if len(matching) == 1:
            section = image.section_of(matching[0], array.pool.used_bytes)
            found.append(PoolArray(array, matching[0], section))
        elif not matching and array.has_bytes and array.pool.is_caller and array.key not in symbols:
            separate.append(array.pool.name)  # parameters of the application can be flashed for themselves
        else:
            faults.append(_not_found(array, name, len(matching)))
    reserved = _reserved(image)
    faults += _faults_of_stack(plan, image)
    for array in found:
        checks = [_faults_of_place(plan, array), _faults_of_neighbours(plan, image, array, found, reserved)]
        if array.wanted.has_bytes:
            checks += [_faults_of_bytes(directory, plan, array), _faults_of_load(plan, array)]
        faults += [f"pool '{array.pool.name}': {fault}" for fault in chain.from_iterable(checks)]
    if faults:
        message = f"the image '{path}' is not what the plan of '{plan.model}' says"
        is_elsewhere = any(fault for array in found for fault in _faults_of_place(plan, array))
        line = include_line(plan, directory) if is_elsewhere else ""
        help_text = _load_help(plan, found) or line or None
        raise compile_error("BW405", message, tuple(faults), help_text)
    num_bytes = sum(array.pool.used_bytes for array in found if array.wanted.has_bytes)
    return ImageVerdict(tuple(found), num_bytes, tuple(reserved), tuple(separate))


def _wanted_arrays(plan: Plan, pool: PlannedPool) -> Iterator[WantedArray]:
    """The array where a pool is used, and the one from which it is copied."""
    names = names_of(plan)
    has_bytes = pool.role is Role.PARAMETERS and pool.load is not Loader.COPY
    yield WantedArray(pool, pool.name, names.array(pool), pool.memory, pool.alignment, has_bytes)
    if pool.load is Loader.COPY:  # with memcpy, which asks for no alignment
        yield WantedArray(pool, f"{pool.name}.load", names.load_array(pool), pool.load_memory, 1, True)


def _not_found(array: WantedArray, name: str, count: int) -> str:
    if count:
        return f"pool '{array.pool.name}': {count} symbols are named '{name}'"
    option = f"--symbol {array.key}=NAME"
    return f"pool '{array.pool.name}': there is no symbol '{name}'; name its array with {option}"


def _locate(plan: Plan, interval: Addresses) -> tuple[Memory, int] | None:
    """Memory and offset of an interval that lies in one memory, as the device sees it or through any alias."""
    size_bytes = interval.end - interval.first
    for memory in plan.hardware.memories:
        reached = [reach for reach in plan.device.reach if reach.memory == memory.name]
        seen = [replace(memory, base=reach.base, aliases=()) for reach in reached if reach.base is not None]
        for view in (*seen, memory):
            offset = view.offset_of(interval.first, size_bytes)
            if offset is not None:
                return memory, offset
    return None


def _whereabouts(plan: Plan, interval: Addresses, memory: str) -> str | None:
    """Which memory an interval is in, or that it is in none; None if it is in the one that is named."""
    located = _locate(plan, interval)
    if located is None:
        return "in no memory of the target"
    return None if located[0].name == memory else f"in memory '{located[0].name}'"


def _faults_of_place(plan: Plan, array: PoolArray) -> Iterator[str]:
    """Memory, size and alignment."""
    pool, wanted, symbol, extent = array.pool, array.wanted, array.symbol, array.extent
    if symbol.size_bytes and symbol.size_bytes < pool.used_bytes:
        yield f"'{symbol.name}' has {symbol.size_bytes} B, the plan uses {pool.used_bytes} B"
    past_bytes = symbol.address % wanted.alignment
    if past_bytes:
        place = f"{past_bytes} B past a multiple of {wanted.alignment}"
        yield f"'{symbol.name}' is at {symbol.address:#010x}, {place}"
    memory = None if wanted.memory is None else plan.hardware.find_memory(wanted.memory)
    if memory is None or not memory.address_ranges():
        return  # a memory without an address is anywhere, as on the host
    elsewhere = _whereabouts(plan, extent, memory.name)
    if elsewhere is not None:
        yield f"'{symbol.name}' is at {extent}, {elsewhere}, not in '{memory.name}'"
    if array.section is None:
        yield f"no section of the image has all of '{symbol.name}' at {extent}"


def _faults_of_neighbours(
    plan: Plan, image: Image, array: PoolArray, arrays: Sequence[PoolArray], reserved: Sequence[Addresses]
) -> Iterator[str]:
    """Whatever else has a byte of the array."""
    symbol, extent = array.symbol, array.extent
    pools = {other.symbol for other in arrays}
    others = [other.extent for other in arrays if other is not array]
    others += [
        Addresses(f"variable '{other.name}'", other.address, other.address + other.size_bytes)
        for other in image.symbols
        if other.is_object and other.size_bytes and other not in pools
        if (other.address, other.size_bytes) != (symbol.address, symbol.size_bytes)
    ]
    others += [
        Addresses(f"section '{section.name}'", section.address, section.address + section.size_bytes)
        for section in image.sections
        if section is not array.section
    ]
    for other in (*others, *reserved):
        shared = _shared_bytes(plan, extent, other)
        if shared:
            yield f"'{symbol.name}' at {extent} shares {shared} B with {other.name} at {other}"


def _shared_bytes(plan: Plan, first: Addresses, second: Addresses) -> int:
    """How many bytes two intervals have in common, through whatever addresses."""
    raw = min(first.end, second.end) - max(first.first, second.first)
    if raw > 0:
        return raw
    one, two = _locate(plan, first), _locate(plan, second)
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
            reserve_bytes = context.stack_reserve_bytes
            reserve = f" and the target reserves {reserve_bytes} B" if reserve_bytes else ""
            yield (
                f"{interval.name} has {size_bytes} B, but the model is promised {stack.size_bytes} B{reserve}: "
                f"{needed_bytes - size_bytes} B too few"
            )


def _stacks_and_heaps(image: Image) -> list[tuple[str, Addresses]]:
    """What each is, and its place by the symbols; sound or not."""
    addresses = {symbol.name: symbol.address for symbol in image.symbols}
    found: list[tuple[str, Addresses]] = []
    for what, symbol, word, other in RESERVED:
        if symbol in addresses and other in addresses:
            value, end = addresses[symbol], addresses[other]
            interval = {"to": (value, end), "below": (end - value, end), "from": (end, end + value)}[word]
            found.append((what, Addresses(f"the {what} ({symbol} {word} {other})", *interval)))
    return found


def _faults_of_load(plan: Plan, array: PoolArray) -> Iterator[str]:
    """Whether the bytes are, until the first run, in the memory from which the target loads the pool."""
    pool, symbol, loaded = array.pool, array.symbol, array.loaded_from
    if loaded is None:
        return  # said already
    memory = plan.hardware.find_memory(pool.load_memory or "")
    if memory is not None and memory.address_ranges():
        is_said = pool.load is Loader.COPY and loaded.first == symbol.address  # of the array that is copied
        elsewhere = _whereabouts(plan, loaded, memory.name)
        if not is_said and elsewhere is not None:
            yield f"'{symbol.name}' is loaded from {loaded}, {elsewhere}, not from '{memory.name}'"
        return
    lost_in = _lost_in(plan, array)
    if lost_in is not None:
        yield (
            f"'{symbol.name}' is loaded from {loaded}, in memory '{lost_in}', which is not read-only, so nobody knows "
            "what it holds when the power comes"
        )


def _lost_in(plan: Plan, array: PoolArray) -> str | None:
    """The memory to which the bytes are loaded if it is empty when the power comes, and the target says nothing else.

    Where no memory is read-only, whoever loads the program loads its parameters with it.
    """
    loaded = array.loaded_from
    located = None if loaded is None or array.pool.load_memory else _locate(plan, loaded)
    is_lost = located is not None and located[0].is_writable and read_only_memories(plan.hardware)
    return located[0].name if located is not None and is_lost else None


def _load_help(plan: Plan, arrays: Sequence[PoolArray]) -> str | None:
    """The line of the target file that says which memory keeps the bytes of pools that would be lost."""
    lost = [array.pool.name for array in arrays if array.wanted.has_bytes and _lost_in(plan, array)]
    if not lost:
        return None
    kept_in = read_only_memories(plan.hardware)[0]
    return in_target_file(*(from_line(name, kept_in) for name in dict.fromkeys(lost)))


def _faults_of_bytes(directory: Path, plan: Plan, array: PoolArray) -> Iterator[str]:
    """Whether the image brings the parameters of the plan."""
    pool, symbol, section = array.pool, array.symbol, array.section
    if section is None:
        return  # said already
    if section.content is None:
        yield f"section '{section.name}' of '{symbol.name}' brings no bytes into the image"
        return
    start = symbol.address - section.address
    content = section.content[start : start + pool.used_bytes]
    if hashlib.sha256(content).hexdigest() == pool.sha256:
        return
    different = _difference(directory, plan, pool, content)
    yield f"'{symbol.name}' holds other bytes than the plan's{different}"


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
