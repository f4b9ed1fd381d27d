"""What must hold between the parts of a target, whether they come from a file or from options.

Every limit a user gives is hard, so a description that promises more than the hardware has is refused here,
before any model is read: memories do not overlap (`addresses.py`), stacks and pools of one memory fit in it together
(`capacity.py`), every pool can be reached, and nothing is to be written in read-only memory. The single values (types,
signs, units) were checked when they were read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bytewright.base.c_names import c_identifier, is_reserved
from bytewright.target import model
from bytewright.target.addresses import address_problems, width_problems
from bytewright.target.capacity import bytes_left, fixed_parts, limit_bytes
from bytewright.target.mistake import (
    Mistake,
    closest,
    from_line,
    in_target_file,
    listing,
    reach_line,
    read_only_memories,
)
from bytewright.target.size import format_size
from bytewright.target.source import Path

FORBIDDEN_POOL_NAMES = ("workspace", "stack")  # `global.workspace` and `global.stack` are scopes of their own
# `<model>_set_parameters` is a function; the array of a generated pool is `<model>_<pool>_parameters`.
FUNCTION_NAMES = ("set", "verify")


def with_default_devices(target: model.Target) -> model.Target:
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


def find_problems(target: model.Target, pool_paths: Sequence[Path]) -> list[Mistake]:
    """Everything that is wrong between the parts of a target.

    Args:
        target: Its pools have their devices, not yet their remainders.
        pool_paths: Where each pool was described, in the order of the target's pools.
    """
    pools = list(zip(target.pools, pool_paths, strict=True))
    problems = list(address_problems(target))
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


def _unknown(path: Path, what: str, name: str, kind: str, names: Sequence[str]) -> Mistake:
    message = f"{what} {name!r}, which does not exist"
    return Mistake(path, message, (listing(kind, names),), closest(name, names))


def _unknown_memory(target: model.Target, path: Path, what: str, name: str) -> Mistake:
    return _unknown(path, f"{what} memory", name, "memories", [memory.name for memory in target.memories])


def _out_of_reach(path: Path, message: str, device: model.Device, memory: str) -> Mistake:
    """A memory that a device does not reach, with what it reaches and the line that would change it."""
    help_text = in_target_file(reach_line(device, memory))
    return Mistake(path, message, (_reaches(device),), help_text)


def _reaches(device: model.Device) -> str:
    return listing(f"{device.name!r} reaches", device.reached_memories)


def _device_problems(target: model.Target, device: model.Device) -> Iterator[Mistake]:
    path: Path = ("device", device.name)
    for position, entry in enumerate(device.reach):
        if target.find_memory(entry.memory) is None:
            yield _unknown_memory(target, (*path, "reach"), f"device {device.name!r} reaches", entry.memory)
        if entry.memory in device.reached_memories[:position]:
            yield Mistake((*path, "reach"), f"memory {entry.memory!r} stands twice in 'reach'")
        if not entry.is_coherent and not device.cache_line_bytes:
            message = (
                f"device {device.name!r} reaches {entry.memory!r} without coherence, but has no 'cache-line'"
            )
            yield Mistake((*path, "reach"), message, help=in_target_file("cache-line = 32"))
    if device.contexts and not device.isa.runs_programs:
        kind = "an engine that only copies" if device.isa.is_engine else "driven by command streams"
        message = f"device {device.name!r} is {kind} ({device.isa.name}), so it runs no C and has no stack"
        help_text = (
            "drop `stack`, `max-stack-size` and all else that is said of a stack, or name another `isa`"
        )
        yield Mistake((*path, "stack"), message, help=help_text)
    elif device.operators and not device.runs_c:
        message = f"device {device.name!r} takes operators, but has no stack, so it runs no C"
        yield Mistake((*path, "operators"), message, help="drop `operators`, or give the device a `stack`")
    yield from width_problems(target, device)
    for context in device.contexts:
        yield from _stack_problems(target, device, context)


def _object_problems(target: model.Target, pool: model.Pool, path: Path) -> Iterator[Mistake]:
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
        return
    other = next((device for device in devices if device.name != target.default_device_name), None)
    if other is not None and pool.size_bytes > model.MAX_SPAN_BYTES:
        message = (
            f"pool {pool.name!r} has {pool.size_bytes} B, but device {other.name!r} is lent it in spans, whose sizes "
            f"have 32 bits: {model.MAX_SPAN_BYTES} B"
        )
        one_device = f'devices = ["{target.default_device_name}"]'
        help_text = f"{one_device} or size = {model.MAX_SPAN_BYTES} for pool {pool.name!r}"
        yield Mistake((*path, "size"), message, help=help_text)


def context_path(device: model.Device, context: model.ExecutionContext) -> Path:
    """Where a context is described: in its device's table, or in a table of its own."""
    if context.name == device.name:
        return ("device", device.name)
    return ("device", device.name, "context", context.name.removeprefix(f"{device.name}."))


def _stack_problems(
    target: model.Target, device: model.Device, context: model.ExecutionContext
) -> Iterator[Mistake]:
    path = context_path(device, context)
    least_bytes = context.max_stack_size_bytes or context.stack_reserve_bytes
    if least_bytes > device.largest_object_bytes:
        message = (
            f"the stack of {context.name!r} has {least_bytes} B, but device {device.name!r} has "
            f"{device.address_bits}-bit addresses"
        )
        yield Mistake((*path, "max-stack-size" if context.max_stack_size_bytes else "stack-reserve"), message)
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


def _default_device_problems(target: model.Target) -> Iterator[Mistake]:
    able = [device.name for device in target.devices if device.runs_c and device.isa.runs_programs]
    if not able:
        message = "no device has a stack, so none can run the entry function"
        yield Mistake(("device",), message, help="give one device `stack = MEMORY`")
    elif target.default_device_name not in able:
        message = f"the default device {target.default_device_name!r} is not a device with a stack"
        notes = (listing("devices with a stack", able),)
        yield Mistake(("default-device",), message, notes, closest(target.default_device_name, able))


def _name_problems(target: model.Target, pools: list[tuple[model.Pool, Path]]) -> Iterator[Mistake]:
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
        if pool.role is model.Role.PARAMETERS and pool.identifier in FUNCTION_NAMES:
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


def _reaches_unknown(target: model.Target, device: model.Device) -> bool:
    """Whether a mistyped memory in `reach`, reported already, may be the one that seems out of reach."""
    return any(target.find_memory(name) is None for name in device.reached_memories)


def _pool_problems(target: model.Target, pool: model.Pool, path: Path) -> Iterator[Mistake]:
    memory = target.find_memory(pool.memory)
    if memory is None:
        yield _unknown_memory(target, (*path, "memory"), f"pool {pool.name!r} is in", pool.memory)
        return
    if pool.role is not model.Role.PARAMETERS and not memory.is_writable:
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
            yield _unknown((*path, "devices"), f"pool {pool.name!r} is for device", name, "devices", names)
        elif not device.reaches(memory.name) and not _reaches_unknown(target, device):
            message = (
                f"pool {pool.name!r} is for device {name!r}, which does not reach memory {memory.name!r}"
            )
            yield _out_of_reach((*path, "devices"), message, device, memory.name)


def _load_problems(target: model.Target, pool: model.Pool, path: Path) -> Iterator[Mistake]:
    """Bytes that are brought to a pool: from a read-only memory into one that can be written."""
    memory = target.find_memory(pool.memory)
    if memory is None or (pool.load is model.Loader.LINKER and pool.load_memory is None):
        return
    read_only = read_only_memories(target)
    note = listing("memories that are read-only", read_only)
    if not memory.is_writable:
        message = f"nothing can be loaded into pool {pool.name!r}: its memory {memory.name!r} is read-only"
        key = "from" if pool.load is model.Loader.LINKER else "load"
        yield Mistake((*path, key), message, help="drop `load` and `from`: the bytes are in place already")
        return  # whatever else is wrong with the two keys goes with them
    other_source = _source_help(pool, read_only)
    if (
        pool.load is model.Loader.COPY
        and pool.load_memory is None
        and pool.provider is model.Provider.GENERATED
    ):
        message = (
            f"pool {pool.name!r} is copied, so its bytes need a second memory: the key 'from' is missing"
        )
        yield Mistake((*path, "load"), message, (note,), other_source)
    if pool.load is model.Loader.COPY:
        yield from _copy_reach_problems(target, pool, path)
    if pool.load_memory is not None:
        yield from _source_problems(target, pool, pool.load_memory, path)


def _source_problems(
    target: model.Target, pool: model.Pool, load_memory: str, path: Path
) -> Iterator[Mistake]:
    """What is wrong with the memory that bytes are loaded from."""
    read_only = read_only_memories(target)
    note, other_source = listing("memories that are read-only", read_only), _source_help(pool, read_only)
    source = target.find_memory(load_memory)
    if source is None:
        message = f"pool {pool.name!r} is loaded from memory {load_memory!r}, which does not exist"
        yield Mistake((*path, "from"), message, (note,), closest(load_memory, read_only) or other_source)
    elif source.is_writable:
        message = (
            f"pool {pool.name!r} is loaded from memory {source.name!r}, which is not read-only, so nobody knows "
            "what it holds at start"
        )
        yield Mistake((*path, "from"), message, (note,), other_source)
    elif source.size_bytes is not None and limit_bytes(target, pool) is None:
        message = (
            f"pool {pool.name!r} has no limit, but memory {source.name!r}, from which it is loaded, has "
            f"{format_size(source.size_bytes)}"
        )
        yield Mistake((*path, "size"), message, help=f"give pool {pool.name!r} a size")


def _source_help(pool: model.Pool, read_only: Sequence[str]) -> str:
    """Another memory that a pool can be loaded from; without one, what does without."""
    if read_only:
        return in_target_file(from_line(pool.name, read_only[0]))
    if pool.load is model.Loader.COPY and pool.provider is model.Provider.GENERATED:
        return "drop `load` and `from`: the linker brings the bytes then"
    return "drop `from`"


def _copy_reach_problems(target: model.Target, pool: model.Pool, path: Path) -> Iterator[Mistake]:
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


def _section_problems(target: model.Target, pools: list[tuple[model.Pool, Path]]) -> Iterator[Mistake]:
    """What the linker places in one section lies in one memory, and is loaded from one."""
    yield from _shared_section_problems(target, pools)
    seen: dict[str, model.Pool] = {}
    for pool, path in pools:
        section = target.section_of(pool) if target.find_memory(pool.memory) else None
        if section is None or pool.load_memory is None or pool.load is model.Loader.COPY:
            continue
        other = seen.setdefault(section, pool)
        if pool.provider is model.Provider.GENERATED and other.load_memory != pool.load_memory:
            message = (
                f"pools {other.name!r} and {pool.name!r} are both in section {section!r}, so they cannot be loaded "
                f"from {other.load_memory!r} and {pool.load_memory!r}"
            )
            yield Mistake((*path, "from"), message, help=f"give pool {pool.name!r} a `section` of its own")


def _shared_section_problems(target: model.Target, pools: list[tuple[model.Pool, Path]]) -> Iterator[Mistake]:
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


def _capacity_problems(
    target: model.Target, memory: model.Memory, pools: list[tuple[model.Pool, Path]]
) -> Iterator[Mistake]:
    left_bytes = bytes_left(target, memory)
    open_pools = [(p, path) for p, path in pools if p.memory == memory.name and p.takes_remainder]
    notes = tuple(str(part) for part in fixed_parts(target, memory) if part.size_bytes)
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
