"""Pools that the entry's device does not reach: who obtains them, and that code of the entry's device has no way there.

In C such a pool is a number. The proof is by its words: the number and the offsets in the pool stand in spans and
nowhere else, a span of it is made by one function, which gives it no address, and nobody reads the address of any span.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from bytewright.inspect.c_nodes import spell
from bytewright.inspect.c_source import CSource, words_of
from bytewright.record.buffers import BufferRole, PlaceKind, PlannedPool
from bytewright.record.names import Names
from bytewright.record.plan import Plan
from bytewright.target.model import Role

_HANDED_ON = (BufferRole.INPUT, BufferRole.OUTPUT, BufferRole.STATE, BufferRole.ARENA)


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
    plan: Plan, names: Names, path: str, source: CSource, others: Mapping[str, CSource]
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
    for pool in pools:
        yield from _named_elsewhere(plan, names, path, source, pool)
    maker = source.function("lend_in")
    expected = CSource(_definition(names)).function("lend_in")
    if maker is None or expected is None or spell(maker) != spell(expected):
        yield f"{path} does not make spans of devices' memories as it is generated, without an address"
    words = _words(source)
    if any(_is_address_of_span(words[: end + 1]) for end, word in enumerate(words) if word == "base"):
        yield f"{path} reads the address of a span"
    for other, text in others.items():
        if {names.span_type, *map(names.device_memory, pools)} & set(_words(text)):
            yield f"{other} knows of devices' memories"


def _words(source: CSource) -> list[str]:
    """The words of a file, its macros among them."""
    return [*source.words, *(word for line in source.directives for word in words_of(line.text))]


def _words_of_spans(words: Sequence[str]) -> Iterator[str]:
    """Those that spans in devices' memories are made from."""
    depth = 0
    for before, word in pairwise(words):
        if depth or before == "lend_in":
            depth += (word == "(") - (word == ")")
            yield word


def _is_address_of_span(words: Sequence[str]) -> bool:
    """Whether words that end with `base` are such a member of anything but an arena, or what the application lends."""
    begin = len(words) - 1
    while begin > 1 and words[begin - 1] in {".", "->"}:
        begin -= 2
    match words[begin::2]:  # without what is between them
        case ["base"] | ["workspaces" | "parameters", _, "base"] | ["parameters", _, "to", "base"]:
            return False
        case ["context", arena, "base"]:
            return not arena.endswith("_arena")
        case _:
            return True


def _named_elsewhere(
    plan: Plan, names: Names, path: str, source: CSource, pool: PlannedPool
) -> Iterator[str]:
    """Words that stand for the pool outside of the definitions of offsets, and of spans."""
    words = _words(source)
    left = Counter(words) - Counter([*source.enumerators, *source.macros, *_words_of_spans(words)])
    offsets = [names.argument(buffer) for buffer in plan.buffers_in(pool.name)]
    found = sorted({*offsets, names.device_memory(pool), names.array(pool)} & left.keys())
    if any(
        (before, arrow, word) == ("context", "->", pool.c_name)
        or (word == names.base(pool) and arrow not in {".", "->"})
        for before, arrow, word in zip(words, words[1:], words[2:], strict=False)
    ):
        found.append(pool.c_name)
    for word in found:
        yield f"{path} names {word} outside of spans, but '{plan.device.name}' does not reach pool '{pool.name}'"


def _definition(names: Names) -> str:
    arguments = "uint32_t memory, uint32_t offset, uint32_t size_bytes, uint32_t access"
    span = "{NULL, size_bytes, access, memory, offset}"
    head = f"static {names.span_type} lend_in({arguments})"
    return f"{head} {{ const {names.span_type} span = {span}; return span; }}"
