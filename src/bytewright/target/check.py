"""What must hold between the parts of a target, whether they come from a file or from options.

Every limit a user gives is hard, so a description that promises more than the hardware has is refused here,
before any model is read: memories do not overlap, stacks and pools of one memory fit in it together, every
pool can be reached, and nothing is to be written in read-only memory. Afterwards `complete` gives the pools
that were left open their size. The single values (types, signs, units) were checked when they were read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bytewright.c_names import c_identifier, is_reserved
from bytewright.target.mistake import (
    Mistake,
    closest,
    from_line,
    in_target_file,
    listing,
    reach_line,
    read_only_memories,
)
from bytewright.target.model import (
    Device,
    ExecutionContext,
    Loader,
    Memory,
    Pool,
    Provider,
    Role,
    Target,
)
from bytewright.target.packing import Part, packed_bytes, room_bytes
from bytewright.target.size import format_size
from bytewright.target.source import Path

FORBIDDEN_POOL_NAMES = ("workspace", "stack")  # `global.workspace` and `global.stack` are scopes of their own
# `<model>_set_parameters` is a function; the array of a generated pool is `<model>_<pool>_parameters`.
FUNCTION_NAMES = ("set", "verify")
_END_OF_ADDRESSES = 1 << 64
STACK_ALIGNMENT = 8  # at least, in every calling convention
_MOST_OVERLAPS = 100  # pairs that are looked at closely


def with_default_devices(target: Target) -> Target:
    """The target with every pool that names no devices lent to all that reach its memory."""
    return replace(
        target,
        pools=tuple(
            pool
            if pool.devices
            else replace(pool, devices=tuple(d.name for d in target.devices_reaching(pool.memory)))
            for pool in target.pools
        ),
    )


def with_remainders(target: Target) -> Target:
    """The target with every pool whose size was omitted as large as what its memory has left.

    Assumes that `find_problems` found none.
    """
    return replace(
        target,
        pools=tuple(
            replace(pool, size_bytes=bytes_left(target, target.memory(pool.memory)))
            if pool.takes_remainder
            else pool
            for pool in target.pools
        ),
    )


def find_problems(target: Target, pool_paths: Sequence[Path]) -> list[Mistake]:
    """Everything that is wrong between the parts of a target.

    Args:
        target: Its pools have their devices, not yet their remainders.
        pool_paths: Where each pool was described, in the order of the target's pools.
    """
    pools = list(zip(target.pools, pool_paths, strict=True))
    problems: list[Mistake] = []
    for memory in target.memories:
        problems.extend(_memory_problems(memory))
        problems.extend(_alignment_problems(target, memory))
    problems.extend(_overlap_problems(target))
    for device in target.devices:
        problems.extend(_device_problems(target, device))
    problems.extend(_default_device_problems(target))
    problems.extend(_name_problems(target, pools))
    for pool, path in pools:
        problems.extend(_pool_problems(target, pool, path))
        problems.extend(_load_problems(target, pool, path))
        problems.extend(_object_problems(target, pool, path))
    problems.extend(_section_problems(target, pools))
    for memory in target.memories:
        problems.extend(_capacity_problems(target, memory, pools))
    return problems


def _memory_problems(memory: Memory) -> Iterator[Mistake]:
    path: Path = ("memory", memory.name)
    if memory.base is not None and memory.size_bytes is None:
        yield Mistake((*path, "size"), f"memory {memory.name!r} has a base, so it needs a size")
    if memory.base is None and memory.aliases:
        yield Mistake((*path, "aliases"), f"memory {memory.name!r} has aliases, so it needs a base")
    for first, last in memory.address_ranges():
        if last > _END_OF_ADDRESSES:
            message = f"memory {memory.name!r} at {first:#x} would end behind the last 64-bit address"
            yield Mistake((*path, "size"), message)


def _alignment_problems(target: Target, memory: Memory) -> Iterator[Mistake]:
    """A linker aligns addresses: a pool at the start of a memory is aligned if the memory is, in every view of it."""
    strictest = max(target.pools_in(memory.name), key=lambda pool: pool.alignment, default=None)
    if strictest is None or strictest.alignment == 1:
        return
    views: list[tuple[Path, str, int]] = (
        [] if memory.base is None else [(("memory", memory.name, "base"), "is", memory.base)]
    )
    views += [(("memory", memory.name, "aliases"), "has an alias", alias) for alias in memory.aliases]
    for device in target.devices:
        seen = [
            entry.base for entry in device.reach if entry.memory == memory.name and entry.base is not None
        ]
        path: Path = ("device", device.name, "reach")
        views += [(path, f"is, as device {device.name!r} sees it,", base) for base in seen]
    for path, what, address in views:
        if address % strictest.alignment:
            message = (
                f"memory {memory.name!r} {what} at {address:#x}, {address % strictest.alignment} B past a multiple of "
                f"{strictest.alignment}, the alignment of pool {strictest.name!r} in it"
            )
            yield Mistake(path, message)


@dataclass(frozen=True, slots=True)
class _Interval:
    owner: str
    first: int
    last: int
    path: Path
    is_own_view: bool = False  # seen at this address by one device only

    def __str__(self) -> str:
        return f"{self.owner} {self.first:#x}..{self.last - 1:#x}"


def _memory_intervals(memory: Memory) -> list[_Interval]:
    keys = ("base", *("aliases" for _ in memory.aliases))
    return [
        _Interval(memory.name, first, last, ("memory", memory.name, key))
        for key, (first, last) in zip(keys, memory.address_ranges(), strict=False)
    ]


def _overlap_problems(target: Target) -> Iterator[Mistake]:
    """Overlaps in the system's address map, then in the map of each device that sees memories elsewhere."""
    everywhere = [interval for memory in target.memories for interval in _memory_intervals(memory)]
    yield from _overlaps(everywhere, "")
    for device in target.devices:
        seen: list[_Interval] = []
        for entry in device.reach:
            memory = target.find_memory(entry.memory)
            if memory is None:
                continue
            if entry.base is None:
                seen.extend(_memory_intervals(memory))
            elif memory.size_bytes is not None:
                last = entry.base + memory.size_bytes
                seen.append(_Interval(memory.name, entry.base, last, ("device", device.name, "reach"), True))
        yield from _overlaps(seen, f", as device {device.name!r} sees them", only_own_views=True)


def _overlaps(intervals: list[_Interval], seen: str, only_own_views: bool = False) -> Iterator[Mistake]:
    """Pairs that overlap, in the order of their descriptions; a sweep over the addresses finds them."""
    pairs: list[tuple[int, int]] = []
    alive: list[int] = []
    for index in sorted(range(len(intervals)), key=lambda i: (intervals[i].first, i)):
        alive = [i for i in alive if intervals[i].last > intervals[index].first]
        pairs.extend((min(i, index), max(i, index)) for i in alive)
        alive.append(index)
        if len(pairs) > _MOST_OVERLAPS:
            break
    for a, b in ((intervals[i], intervals[j]) for i, j in sorted(pairs)[:_MOST_OVERLAPS]):
        if a.is_own_view or b.is_own_view or not only_own_views:
            shared_bytes = min(a.last, b.last) - max(a.first, b.first)
            between = (
                f"memory {a.owner!r} with itself" if a.owner == b.owner else f"{a.owner!r} and {b.owner!r}"
            )
            message = f"address ranges overlap: {between}, by {shared_bytes} B{seen}"
            guilty = a if a.is_own_view and not b.is_own_view else b
            yield Mistake(guilty.path, message, (str(a), str(b)))


def _unknown_memory(target: Target, path: Path, what: str, name: str) -> Mistake:
    names = [memory.name for memory in target.memories]
    message = f"{what} memory {name!r}, which does not exist"
    return Mistake(path, message, (listing("memories", names),), closest(name, names))


def _out_of_reach(path: Path, message: str, device: Device, memory: str) -> Mistake:
    """A memory that a device does not reach, with what it reaches and the line that would change it."""
    help_text = in_target_file(reach_line(device, memory))
    return Mistake(path, message, (_reaches(device),), help_text)


def _reaches(device: Device) -> str:
    return listing(f"{device.name!r} reaches", device.reached_memories)


def _device_problems(target: Target, device: Device) -> Iterator[Mistake]:
    path: Path = ("device", device.name)
    for position, entry in enumerate(device.reach):
        if target.find_memory(entry.memory) is None:
            yield _unknown_memory(target, (*path, "reach"), f"device {device.name!r} reaches", entry.memory)
        if entry.memory in device.reached_memories[:position]:
            yield Mistake((*path, "reach"), f"memory {entry.memory!r} stands twice in 'reach'")
    yield from _width_problems(target, device)
    for context in device.contexts:
        yield from _stack_problems(target, device, context)


def _width_problems(target: Target, device: Device) -> Iterator[Mistake]:
    """Memories, pools and stacks that need wider addresses than a device has."""
    bits, end = device.address_bits, 1 << device.address_bits
    addresses = f"device {device.name!r} has {bits}-bit addresses"
    for entry in device.reach:
        memory = target.find_memory(entry.memory)
        if memory is None or memory.size_bytes is None:
            continue
        first = next((base for base in (entry.base, memory.base) if base is not None), 0)
        is_said = entry.base is None and first + memory.size_bytes > _END_OF_ADDRESSES
        if first + memory.size_bytes > end and not is_said:
            message = f"memory {memory.name!r} ends at {first + memory.size_bytes - 1:#x}, but {addresses}"
            key = "size" if entry.base is None and not memory.base else "base"
            path: Path = ("memory", memory.name, key)
            yield Mistake(path if entry.base is None else ("device", device.name, "reach"), message)
    for context in device.contexts:
        size_bytes = context.max_stack_size_bytes or context.stack_reserve_bytes
        if size_bytes > device.largest_object_bytes:
            key = "max-stack-size" if context.max_stack_size_bytes else "stack-reserve"
            message = f"the stack of {context.name!r} has {size_bytes} B, but {addresses}"
            yield Mistake((*context_path(device, context), key), message)


def _object_problems(target: Target, pool: Pool, path: Path) -> Iterator[Mistake]:
    """An array that is larger than what one of its devices can count."""
    devices = [device for name in pool.devices if (device := target.find_device(name)) is not None]
    narrowest = min(devices, key=lambda device: device.address_bits, default=None)
    if narrowest is None or pool.size_bytes is None or pool.takes_remainder:
        return
    if pool.size_bytes > narrowest.largest_object_bytes:
        message = (
            f"pool {pool.name!r} has {pool.size_bytes} B, but device {narrowest.name!r} has {narrowest.address_bits}-"
            f"bit addresses, so the largest array has {narrowest.largest_object_bytes} B"
        )
        yield Mistake((*path, "size"), message)


def context_path(device: Device, context: ExecutionContext) -> Path:
    """Where a context is described: in its device's table, or in a table of its own."""
    if context.name == device.name:
        return ("device", device.name)
    return ("device", device.name, "context", context.name.removeprefix(f"{device.name}."))


def _stack_problems(target: Target, device: Device, context: ExecutionContext) -> Iterator[Mistake]:
    path = context_path(device, context)
    memory = target.find_memory(context.memory)
    if memory is None:
        what = f"the stack of {context.name!r} is in"
        yield _unknown_memory(target, (*path, "stack"), what, context.memory)
        return
    if not memory.is_writable:
        message = f"the stack of {context.name!r} is in memory {memory.name!r}, which is read-only"
        yield Mistake((*path, "stack"), message)
    if device.reach and not device.reaches(memory.name):
        message = f"the stack of {context.name!r} is in memory {memory.name!r}, which {device.name!r} does not reach"
        yield _out_of_reach((*path, "stack"), message, device, memory.name)
    size_bytes = context.max_stack_size_bytes
    if size_bytes is not None and context.stack_reserve_bytes >= size_bytes:
        message = (
            f"the stack reserve of {context.name!r}, {context.stack_reserve_bytes} B, leaves nothing of a stack of "
            f"{size_bytes} B"
        )
        yield Mistake((*path, "stack-reserve"), message)


def _default_device_problems(target: Target) -> Iterator[Mistake]:
    able = [device.name for device in target.devices if device.runs_c]
    if not able:
        message = "no device has a stack, so none can run the entry function"
        yield Mistake(("device",), message, help="give one device `stack = MEMORY`")
    elif target.default_device_name not in able:
        message = f"the default device {target.default_device_name!r} is not a device with a stack"
        notes = (listing("devices with a stack", able),)
        yield Mistake(("default-device",), message, notes, closest(target.default_device_name, able))


def _name_problems(target: Target, pools: list[tuple[Pool, Path]]) -> Iterator[Mistake]:
    """Pools and devices become C identifiers, in lower and upper case; scopes name pools and tags alike."""
    tags = [tag.name for tag in target.scope_tags]
    seen: dict[str, str] = {}
    for pool, pool_path in pools:
        path: Path = (*pool_path, "name")
        if pool.name in FORBIDDEN_POOL_NAMES:
            message = f"a pool cannot be called {pool.name!r}: `global.{pool.name}` is another storage scope"
            yield Mistake(path, message)
        if is_reserved(pool.identifier):
            message = f"a pool cannot be called {pool.name!r}: {pool.identifier!r} is reserved in C or C++"
            yield Mistake(path, message)
        if pool.role is Role.PARAMETERS and pool.identifier in FUNCTION_NAMES:
            message = (
                f"parameters cannot be called {pool.name!r}: their array would have the name of a function"
            )
            yield Mistake(path, message)
        if pool.name in tags:
            message = f"{pool.name!r} is a pool and a scope tag, so `global.{pool.name}` would be ambiguous"
            yield Mistake(path, message)
        yield from _collision_problems("pool", pool.name, seen, path)
    for name in tags:
        if name in FORBIDDEN_POOL_NAMES:
            message = f"a scope tag cannot be called {name!r}: `global.{name}` is another storage scope"
            yield Mistake(("scope-tag", name), message)
    seen = {}
    for device in target.devices:
        yield from _collision_problems("device", device.name, seen, ("device", device.name))


def _collision_problems(kind: str, name: str, seen: dict[str, str], path: Path) -> Iterator[Mistake]:
    macro = c_identifier(name).upper()
    other = seen.get(macro)
    seen.setdefault(macro, name)
    if other == name:
        yield Mistake(path, f"there are two {kind}s called {name!r}; {kind} names are unique in a target")
    elif other is not None:
        yield Mistake(path, f"{kind}s {other!r} and {name!r} become the same name in C: {macro}")


def _reaches_unknown(target: Target, device: Device) -> bool:
    """Whether a mistyped memory in `reach`, reported already, may be the one that seems out of reach."""
    return any(target.find_memory(name) is None for name in device.reached_memories)


def _pool_problems(target: Target, pool: Pool, path: Path) -> Iterator[Mistake]:
    memory = target.find_memory(pool.memory)
    if memory is None:
        yield _unknown_memory(target, (*path, "memory"), f"pool {pool.name!r} is in", pool.memory)
        return
    if pool.role is Role.STATE:
        message = f"state pool {pool.name!r} would never be used: no model keeps anything between runs yet"
        yield Mistake(path, message, help="leave the table out")
    if pool.role is not Role.PARAMETERS and not memory.is_writable:
        writable = [memory.name for memory in target.memories if memory.is_writable]
        message = f"{pool.role.value} pool {pool.name!r} is in memory {memory.name!r}, which is read-only"
        yield Mistake((*path, "memory"), message, (listing("memories that can be written", writable),))
    if not pool.devices and not any(_reaches_unknown(target, device) for device in target.devices):
        message = f"no device reaches memory {memory.name!r}, so none can use pool {pool.name!r}"
        notes = tuple(map(_reaches, target.devices))
        device = target.find_device(target.default_device_name)
        help_text = None if device is None else in_target_file(reach_line(device, memory.name))
        yield Mistake((*path, "memory"), message, notes, help_text)
    names = [device.name for device in target.devices]
    for name in pool.devices:
        device = target.find_device(name)
        if device is None:
            message = f"pool {pool.name!r} is for device {name!r}, which does not exist"
            yield Mistake((*path, "devices"), message, (listing("devices", names),), closest(name, names))
        elif not device.reaches(memory.name) and not _reaches_unknown(target, device):
            message = (
                f"pool {pool.name!r} is for device {name!r}, which does not reach memory {memory.name!r}"
            )
            yield _out_of_reach((*path, "devices"), message, device, memory.name)


def _load_problems(target: Target, pool: Pool, path: Path) -> Iterator[Mistake]:
    """Bytes that are brought to a pool: from a read-only memory into one that can be written."""
    memory = target.find_memory(pool.memory)
    if memory is None or (pool.load is Loader.LINKER and pool.load_memory is None):
        return
    read_only = read_only_memories(target)
    if not memory.is_writable:
        message = f"nothing can be loaded into pool {pool.name!r}: its memory {memory.name!r} is read-only"
        key = "from" if pool.load is Loader.LINKER else "load"
        yield Mistake((*path, key), message, help="drop `load` and `from`: the bytes are in place already")
        return  # whatever else is wrong with the two keys goes with them
    other_source = _source_help(pool, read_only)
    if pool.load is Loader.COPY and pool.load_memory is None and pool.provider is Provider.GENERATED:
        message = (
            f"pool {pool.name!r} is copied, so its bytes need a second memory: the key 'from' is missing"
        )
        note = listing("memories that are read-only", read_only)
        yield Mistake((*path, "load"), message, (note,), other_source)
    if pool.load is Loader.COPY:
        yield from _copy_reach_problems(target, pool, path)
    source = None if pool.load_memory is None else target.find_memory(pool.load_memory)
    if pool.load_memory is not None and source is None:
        message = f"pool {pool.name!r} is loaded from memory {pool.load_memory!r}, which does not exist"
        suggestion = closest(pool.load_memory, read_only) or other_source
        yield Mistake(
            (*path, "from"), message, (listing("memories that are read-only", read_only),), suggestion
        )
    elif source is not None and source.is_writable:
        message = (
            f"pool {pool.name!r} is loaded from memory {source.name!r}, which is not read-only, so nobody knows "
            "what it holds at start"
        )
        note = listing("memories that are read-only", read_only)
        yield Mistake((*path, "from"), message, (note,), other_source)
    elif source is not None and source.size_bytes is not None and _size_bytes(target, pool) is None:
        message = (
            f"pool {pool.name!r} has no limit, but memory {source.name!r}, from which it is loaded, has "
            f"{format_size(source.size_bytes)}"
        )
        yield Mistake((*path, "size"), message, help=f"give pool {pool.name!r} a size")


def _source_help(pool: Pool, read_only: Sequence[str]) -> str:
    """Another memory that a pool can be loaded from; without one, what does without."""
    if read_only:
        return in_target_file(from_line(pool.name, read_only[0]))
    if pool.load is Loader.COPY and pool.provider is Provider.GENERATED:
        return "drop `load` and `from`: the linker brings the bytes then"
    return "drop `from`"


def _copy_reach_problems(target: Target, pool: Pool, path: Path) -> Iterator[Mistake]:
    """`<model>_set_parameters` runs on the default device."""
    device = target.find_device(target.default_device_name)
    if device is None or _reaches_unknown(target, device):
        return
    for key, name in (("memory", pool.memory), ("from", pool.load_memory)):
        if name is not None and target.find_memory(name) is not None and not device.reaches(name):
            message = (
                f"device {device.name!r}, which copies pool {pool.name!r}, does not reach memory {name!r}"
            )
            yield Mistake((*path, key), message, (_reaches(device),))


def _section_problems(target: Target, pools: list[tuple[Pool, Path]]) -> Iterator[Mistake]:
    """What the linker places in one section lies in one memory, and is loaded from one."""
    yield from _shared_section_problems(target, pools)
    seen: dict[str, Pool] = {}
    for pool, path in pools:
        section = target.section_of(pool) if target.find_memory(pool.memory) else None
        if section is None or pool.load_memory is None or pool.load is Loader.COPY:
            continue
        other = seen.setdefault(section, pool)
        if pool.provider is Provider.GENERATED and other.load_memory != pool.load_memory:
            message = (
                f"pools {other.name!r} and {pool.name!r} are both in section {section!r}, so they cannot be loaded "
                f"from {other.load_memory!r} and {pool.load_memory!r}"
            )
            yield Mistake((*path, "from"), message, help=f"give pool {pool.name!r} a `section` of its own")


def _shared_section_problems(target: Target, pools: list[tuple[Pool, Path]]) -> Iterator[Mistake]:
    """Sections that two memories have, or pools of two memories."""
    owners: dict[str, tuple[str, str]] = {}
    named: list[tuple[str | None, str, str, Path]] = [
        (memory.section, memory.name, f"memory {memory.name!r}", ("memory", memory.name))
        for memory in target.memories
    ]
    named += [
        (pool.section, pool.memory, f"pool {pool.name!r} in memory {pool.memory!r}", path)
        for pool, path in pools
    ]
    for section, memory_name, what, path in named:
        if section is None:
            continue
        other_memory, other = owners.setdefault(section, (memory_name, what))
        if other_memory != memory_name:
            message = (
                f"section {section!r} is that of {other} and of {what}: a linker puts it into one memory"
            )
            help_text = "give each memory a `section` of its own"
            yield Mistake((*path, "section"), message, help=help_text)


def _size_bytes(target: Target, pool: Pool) -> int | None:
    """The limit of a pool, which may still have to be computed; `None` for none."""
    if not pool.takes_remainder:
        return pool.size_bytes
    left_bytes = bytes_left(target, target.memory(pool.memory))
    return None if left_bytes is None else max(left_bytes, 0)


def _fixed_parts(target: Target, memory: Memory) -> list[tuple[str, Part]]:
    """Stacks and pools of known size in a memory, and what it keeps for pools of others.

    A stack without a limit counts with its reserve, which is the part that is known to be needed. Bytes are loaded
    from read-only memories into others, so the size of what a memory keeps never depends on its own remainder.
    """
    parts = [
        (
            f"stack of {context.name!r}",
            Part(context.max_stack_size_bytes or context.stack_reserve_bytes, STACK_ALIGNMENT),
        )
        for context in target.contexts
        if context.memory == memory.name
    ]
    for pool in target.pools_in(memory.name):
        if not pool.takes_remainder and pool.size_bytes is not None:
            part = Part(pool.size_bytes, pool.alignment)
            parts.append((f"{pool.role.value} pool {pool.name!r}", part))
    for pool in () if memory.is_writable else target.pools_loaded_from(memory.name):
        destination = target.find_memory(pool.memory)
        if destination is not None and destination.is_writable:
            kept_bytes = _size_bytes(target, pool) or 0
            what = f"the bytes that {pool.role.value} pool {pool.name!r} is loaded from"
            parts.append((what, Part(kept_bytes, 1 if pool.is_copied else pool.alignment)))
    return parts


def bytes_left(target: Target, memory: Memory) -> int | None:
    """What stacks and pools of known size leave of a memory, below 0 if it is less than nothing; None for no limit.

    Where a pool takes the remainder, it is the size that this pool can have at its alignment.
    """
    if memory.size_bytes is None:
        return None
    parts = [part for _, part in _fixed_parts(target, memory)]
    open_pools = [pool for pool in target.pools_in(memory.name) if pool.takes_remainder]
    if open_pools:
        return room_bytes(parts, max(pool.alignment for pool in open_pools), memory.size_bytes)
    return memory.size_bytes - packed_bytes(parts)


def room_for(target: Target, pool: Pool, least_bytes: Mapping[str, int]) -> int | None:
    """The largest size that a pool can have beside what else its memory holds; None for no limit.

    Args:
        target: The target.
        pool: One of its pools.
        least_bytes: What other pools of the memory keep that take what is left of it; 1 B where it says nothing.
    """
    others = tuple(
        replace(p, size_bytes=None, takes_remainder=True)
        if p.name == pool.name
        else replace(p, size_bytes=max(least_bytes.get(p.name, 0), 1), takes_remainder=False)
        if p.takes_remainder and p.memory == pool.memory
        else p
        for p in target.pools
    )
    return bytes_left(replace(target, pools=others), target.memory(pool.memory))


def _described(part: Part) -> str:
    """With the alignment where it leaves a gap behind."""
    aligned = f", aligned to {part.alignment}" if part.size_bytes % part.alignment else ""
    return f"{part.size_bytes} B{aligned}"


def _capacity_problems(target: Target, memory: Memory, pools: list[tuple[Pool, Path]]) -> Iterator[Mistake]:
    left_bytes = bytes_left(target, memory)
    open_pools = [(p, path) for p, path in pools if p.memory == memory.name and p.takes_remainder]
    notes = tuple(
        f"{what}: {_described(part)}" for what, part in _fixed_parts(target, memory) if part.size_bytes
    )
    if left_bytes is not None and left_bytes < 0:
        message = (
            f"memory {memory.name!r} has {memory.size_bytes} B, but its pools and stacks take "
            f"{(memory.size_bytes or 0) - left_bytes} B: {-left_bytes} B too many"
        )
        yield Mistake(("memory", memory.name, "size"), message, notes)
        return
    if left_bytes is not None and len(open_pools) > 1:
        names = " and ".join(repr(pool.name) for pool, _ in open_pools)
        message = (
            f"pools {names} have no size, but only one pool can take what memory {memory.name!r} has left"
        )
        yield Mistake((*open_pools[1][1], "memory"), message)
        return
    for pool, path in open_pools:
        if left_bytes == 0:
            message = f"pool {pool.name!r} takes what memory {memory.name!r} has left, which is nothing"
            yield Mistake((*path, "memory"), message, notes)
        elif pool.size_bytes is not None and pool.size_bytes != left_bytes:
            left = "no limit" if left_bytes is None else f"{format_size(left_bytes)} left"
            message = (
                f"pool {pool.name!r} says both `remainder` and {format_size(pool.size_bytes)}, "
                f"but memory {memory.name!r} has {left}"
            )
            yield Mistake((*path, "size"), message, help="drop `size`, or drop `remainder`")
