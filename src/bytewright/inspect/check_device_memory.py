"""Pools that the entry's device does not reach: who obtains them, and that code of the entry's device has no way there.

In C such a pool is a number. The proof is by its words: the number and the offsets in the pool stand in spans and
nowhere else, a span of it is made by one function, which gives it no address, and nobody reads the address of any span.
"""

import re
from collections.abc import Iterator, Mapping

from bytewright.inspect.read_c import without_comments
from bytewright.record.names import Names
from bytewright.record.plan import BufferRole, PlaceKind, Plan, PlannedPool
from bytewright.target.model import Role

# What has a member of this name beside spans: what the application lends, and arenas.
_BASES = re.compile(r"\b(?:workspaces|parameters)->\w+(?:\.to)?\.base\b|\bcontext->\w+_arena\.base\b")
_HANDED_ON = (BufferRole.INPUT, BufferRole.OUTPUT, BufferRole.ARENA)


def faults_of_device_memory(plan: Plan) -> Iterator[str]:
    """Each such pool is obtained by the first device that uses it, and holds nothing whose address the entry gives."""
    for pool in plan.used_pools(Role.WORKSPACE):
        expected = None if plan.device.reaches(pool.memory) else _first_user(plan, pool)
        if pool.obtained_by != expected:
            yield f"pool '{pool.name}' is obtained by '{pool.obtained_by}', and has to be by '{expected}'"
        if pool.obtained_by is None:
            continue
        for buffer in plan.buffers.values():
            is_inside = buffer.place.kind is not PlaceKind.STACK and buffer.place.name == pool.name
            if is_inside and (buffer.role in _HANDED_ON or not buffer.has_offset):
                yield f"{buffer.role} '{buffer.name}' is in pool '{pool.name}', to which there is no address"


def _first_user(plan: Plan, pool: PlannedPool) -> str | None:
    """The first of the devices that a step has touch anything in the pool."""
    inside = {buffer.name for buffer in plan.buffers_in(pool.name)}
    users = {step.device for step in plan.steps if inside & set(step.touched)}
    users |= {device for name in inside for device in plan.buffers[name].devices}
    return next((name for name in plan.devices if name in users), None)


def differences_of_device_memory(
    plan: Plan, names: Names, path: str, source: str, others: Mapping[str, str]
) -> Iterator[str]:
    """How the C could come to bytes of such a pool. What devices are lent of it is for `check_lent.py`.

    Args:
        plan: Of the bundle.
        names: The same.
        path: Of the entry,
        source: and what is in it.
        others: The other C files that the entry's device runs, by their paths.
    """
    pools = plan.device_workspaces
    if not pools:
        return
    source = without_comments(source)
    for pool in pools:
        yield from _named_elsewhere(plan, names, path, source, pool)
    if _definition(names) not in " ".join(source.split()):
        yield f"{path} does not make spans of devices' memories as it is generated, without an address"
    if re.search(r"(?:\.|->)\s*base\b", _BASES.sub("", source)):
        yield f"{path} reads the address of a span"
    for other, text in others.items():
        words = set(re.findall(r"\w+", without_comments(text)))
        if words & {names.span_type, *map(names.device_memory, pools)}:
            yield f"{other} knows of devices' memories"


def _named_elsewhere(plan: Plan, names: Names, path: str, source: str, pool: PlannedPool) -> Iterator[str]:
    """Words that stand for the pool outside of the definitions of offsets, and of spans."""
    used = re.sub(
        rf"^(?: +|#define ){names.offset_front}\w+ (?:= )?\d+,?\s*$", "", source, flags=re.MULTILINE
    )
    used = re.sub(r"^ +lend_in\(.*\),$", "", used, flags=re.MULTILINE)
    offsets = [names.argument(buffer) for buffer in plan.buffers_in(pool.name)]
    words = {*offsets, names.device_memory(pool), names.array(pool)}
    found = sorted(words & set(re.findall(r"\w+", used)))
    if re.search(rf"\bcontext->{pool.c_name}\b|(?<![\w.>]){names.base(pool)}\b", used):
        found.append(pool.c_name)
    for word in found:
        yield f"{path} names {word} outside of spans, but '{plan.device.name}' does not reach pool '{pool.name}'"


def _definition(names: Names) -> str:
    arguments = "uint32_t memory, uint32_t offset, uint32_t size_bytes, uint32_t access"
    span = "{NULL, size_bytes, access, memory, offset}"
    head = f"static {names.span_type} lend_in({arguments})"
    return f"{head} {{ const {names.span_type} span = {span}; return span; }}"
