"""The maps of addresses, the system's and each device's: what lies beyond them, overlaps, or is not aligned in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bytewright.target.mistake import Mistake
from bytewright.target.model import Device, Memory, Reach, Target
from bytewright.target.source import Path

END_OF_ADDRESSES = 1 << 64
_MOST_OVERLAPS = 100  # pairs that are looked at closely


@dataclass(frozen=True, slots=True)
class _View:
    """A memory at one of its addresses, and the device that alone sees it there, if only one does."""

    memory: Memory
    first: int
    path: Path
    device: Device | None = None

    @property
    def last(self) -> int:
        """The address behind its last byte."""
        return self.first + (self.memory.size_bytes or 0)

    def __str__(self) -> str:
        return f"{self.memory.name} {self.first:#x}..{self.last - 1:#x}"


def _common_views(memory: Memory) -> list[_View]:
    """The base and the aliases, where every device sees the memory that is not said to see it elsewhere."""
    path: Path = ("memory", memory.name)
    bases = [] if memory.base is None else [_View(memory, memory.base, (*path, "base"))]
    return bases + [_View(memory, alias, (*path, "aliases")) for alias in memory.aliases]


def _views(target: Target, device: Device, entry: Reach) -> list[_View]:
    """What a device sees of a memory that it reaches; nothing of one that does not exist."""
    memory = target.find_memory(entry.memory)
    if memory is None:
        return []
    if entry.base is None:
        return _common_views(memory)
    return [_View(memory, entry.base, ("device", device.name, "reach"), device)]


def address_problems(target: Target) -> Iterator[Mistake]:
    """What is wrong with the addresses of memories, whatever the width of a device's is."""
    for memory in target.memories:
        yield from _memory_problems(memory)
        yield from _alignment_problems(target, memory)
    yield from _overlaps([view for memory in target.memories for view in _common_views(memory)])
    for device in target.devices:
        yield from _overlaps([v for entry in device.reach for v in _views(target, device, entry)], device)


def _memory_problems(memory: Memory) -> Iterator[Mistake]:
    path: Path = ("memory", memory.name)
    if memory.base is not None and memory.size_bytes is None:
        yield Mistake((*path, "size"), f"memory {memory.name!r} has a base, so it needs a size")
    if memory.base is None and memory.aliases:
        yield Mistake((*path, "aliases"), f"memory {memory.name!r} has aliases, so it needs a base")
    for first, last in memory.address_ranges():
        if last > END_OF_ADDRESSES:
            message = f"memory {memory.name!r} at {first:#x} would end behind the last 64-bit address"
            yield Mistake((*path, "size"), message)


def _alignment_problems(target: Target, memory: Memory) -> Iterator[Mistake]:
    """A linker aligns addresses: a pool at the start of a memory is aligned if the memory is, in every view of it; and
    what is aligned for a device with a view of its own, only if both the memory and that view are.
    """
    own = {
        device.name: _views(target, device, entry)
        for device in target.devices
        for entry in device.reach
        if entry.memory == memory.name and entry.base is not None
    }
    for view in (*_common_views(memory), *(view for views in own.values() for view in views)):
        needs = [
            (pool.alignment, f"the alignment of pool {pool.name!r} in it")
            for pool in target.pools_in(memory.name)
        ]
        for device in target.devices:
            if device.name in own and (view.device is device or view.path[-1] == "base"):
                needs += _touch_needs(device, memory)
        alignment, why = max(needs, key=lambda need: need[0], default=(1, ""))
        if view.first % alignment:
            how = "has an alias" if view.path[-1] == "aliases" else "is"
            how = f"is, as device {view.device.name!r} sees it," if view.device else how
            message = (
                f"memory {memory.name!r} {how} at {view.first:#x}, {view.first % alignment} B past a multiple of "
                f"{alignment}, {why}"
            )
            yield Mistake(view.path, message)


def _touch_needs(device: Device, memory: Memory) -> Iterator[tuple[int, str]]:
    """What the addresses of a memory are multiples of for a device that reaches it, and why."""
    reach = device.find_reach(memory.name)
    if reach is not None:
        yield device.touch_alignment, f"the touch-alignment of device {device.name!r}, which reaches it"
        if not reach.is_coherent:
            line_bytes = max(1, device.cache_line_bytes)
            yield line_bytes, f"the cache-line of device {device.name!r}, which reaches it without coherence"


def _overlaps(views: Sequence[_View], device: Device | None = None) -> Iterator[Mistake]:
    """Pairs that overlap, in the order of their descriptions; a sweep over the addresses finds them.

    Of what a device sees, those that it sees as every other does are the system's, and said there.
    """
    views = [
        view for view in views if view.memory.size_bytes and (view.device or view.memory.base is not None)
    ]
    pairs: list[tuple[int, int]] = []
    alive: list[int] = []
    for index in sorted(range(len(views)), key=lambda i: (views[i].first, i)):
        alive = [i for i in alive if views[i].last > views[index].first]
        pairs.extend((min(i, index), max(i, index)) for i in alive)
        alive.append(index)
        if len(pairs) > _MOST_OVERLAPS:
            break
    seen = "" if device is None else f", as device {device.name!r} sees them"
    for a, b in ((views[i], views[j]) for i, j in sorted(pairs)[:_MOST_OVERLAPS]):
        if device is None or a.device or b.device:
            names = a.memory.name, b.memory.name
            between = (
                f"memory {names[0]!r} with itself"
                if names[0] == names[1]
                else f"{names[0]!r} and {names[1]!r}"
            )
            shared_bytes = min(a.last, b.last) - max(a.first, b.first)
            message = f"address ranges overlap: {between}, by {shared_bytes} B{seen}"
            yield Mistake((a if a.device and not b.device else b).path, message, (str(a), str(b)))


def width_problems(target: Target, device: Device) -> Iterator[Mistake]:
    """Memories that need wider addresses than a device has."""
    for entry in device.reach:
        memory = target.find_memory(entry.memory)
        if memory is None or memory.size_bytes is None:
            continue
        first = next((base for base in (entry.base, memory.base) if base is not None), 0)
        is_said = entry.base is None and first + memory.size_bytes > END_OF_ADDRESSES
        if first + memory.size_bytes > 1 << device.address_bits and not is_said:
            key = "size" if entry.base is None and not memory.base else "base"
            path: Path = ("memory", memory.name, key)
            message = (
                f"memory {memory.name!r} ends at {first + memory.size_bytes - 1:#x}, but device {device.name!r} has "
                f"{device.address_bits}-bit addresses"
            )
            yield Mistake(path if entry.base is None else ("device", device.name, "reach"), message)
