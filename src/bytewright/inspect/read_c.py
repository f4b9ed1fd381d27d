"""Reads back what the generated C says in numbers: macros, offsets, calls and bytes.

The texts are those that Bytewright writes, so patterns suffice; what they do not find counts as missing.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from bytewright.record.names import REQUEST, Names

_DEFINE = re.compile(r"^#define (\w+) (\d+)\b", re.MULTILINE)
_PLAN_HASH = re.compile(r"\bPlan ([0-9a-f]{64})\.")


@dataclass(frozen=True, slots=True)
class CallText:
    """One call of the entry: the kernel, and the names of what it is given, each once."""

    kernel: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class RequestText:
    """One request of the entry, or its release.

    Attributes:
        pool: What the pool is called there.
        size: The expression for its bytes; None for a release.
        alignment: None for a release.
    """

    name: str
    pool: str
    size: str | None = None
    alignment: int | None = None


def read_macros(header: str) -> dict[str, int]:
    """Macros that are defined as numbers."""
    return {name: int(value) for name, value in _DEFINE.findall(header)}


def read_hashes(text: str) -> list[str]:
    """The plan hashes that comments state."""
    return _PLAN_HASH.findall(text)


def read_offsets(source: str, names: Names) -> dict[str, int]:
    """The enumerators that hold offsets in pools, and the macros of those that are too large for one."""
    name = rf"({names.offset_front}\w+)"
    pattern = re.compile(rf"^(?:\s+{name} =|#define {name}) (\d+)\b", re.MULTILINE)
    return {enumerator or macro: int(value) for enumerator, macro, value in pattern.findall(source)}


def read_calls(source: str, names: Names, externals: Collection[str] = ()) -> list[CallText]:
    """The kernel calls in the body of the run function, in order.

    `externals` are functions of the application, which have names of their own. An argument is named by its offset's
    enumerator, by `inputs->x` or `outputs->y`, or by what was requested.
    """
    body = _body_of_run(source, names)
    kernel = "|".join([rf"{names.model}_\w+", *map(re.escape, sorted(externals))])
    before, behind = r"(?:if \(|\w+ = )?", r"(?:;| != 0\) \{| == 0 \? \w+ : \w+;)"
    call = re.compile(rf"^ +{before}({kernel})\(([^;{{]*?)\){behind}$", re.MULTILINE)
    name = re.compile(rf"\b{names.offset_front}\w+|\b(?:inputs|outputs)->\w+|\b{REQUEST}\w+")
    return [
        CallText(kernel, frozenset(name.findall(arguments)))
        for kernel, arguments in call.findall(body)
        # Not the macro between the kernels, of a model in capitals, and not what serves requests.
        if kernel not in (names.step, names.allocate, names.release)
    ]


def read_requests(source: str, names: Names) -> list[RequestText]:
    """What the body of the run function requests at run time and releases, in order."""
    pool = rf"\(\s*context,\s*({names.arena_front}\w+),\s*"
    text = re.compile(
        rf"\bvoid \*const ({REQUEST}\w+)\s*=\s*{names.allocate}{pool}([^,;]+?),\s*(\d+)\s*\);"
        rf"|\b{names.release}{pool}({REQUEST}\w+)\s*\)"
    )
    return [
        RequestText(found[6], found[5])
        if found[1] is None
        else RequestText(found[1], found[2], found[3], int(found[4]))
        for found in text.finditer(_body_of_run(source, names))
    ]


def read_arenas(source: str, names: Names) -> dict[str, tuple[str, str]]:
    """The arenas that the run function sets: where each begins, as an offset's name, and its size's macro."""
    bases, sizes = (
        dict(re.findall(rf"^ +context->(\w+)\.{text};$", _body_of_run(source, names), re.MULTILINE))
        for text in (r"base = \w+ \+ (\w+)", r"size_bytes = (\w+)")
    )
    return {pool: (bases.get(pool, ""), sizes.get(pool, "")) for pool in {**bases, **sizes}}


def _body_of_run(source: str, names: Names) -> str:
    return source.partition(f"int32_t {names.run}(")[2]


def read_addresses(source: str, names: Names) -> dict[str, tuple[str, str]]:
    """What the functions that give addresses of inputs and outputs return: the pool's base, and the offset's name."""
    function = re.compile(
        rf"^[\w ]+ \*({names.model}_(?:input|output)_\w+)\(const \w+ \*context\) \{{$(.*?)^\}}$",
        re.MULTILINE | re.DOTALL,
    )
    address = re.compile(rf"\((context->\w+|\w+) \+ ({names.offset_front}\w+)\);$", re.MULTILINE)
    returned = {name: address.findall(body) for name, body in function.findall(source)}
    return {name: found[0] for name, found in returned.items() if len(found) == 1}


def read_bytes(initialiser: str) -> bytes:
    """The bytes of an initialiser that is numbers and commas.

    Raises:
        ValueError: It is something else.
    """
    numbers = initialiser.replace("\n", "").split(",")
    if numbers[-1].strip():
        raise ValueError("the last number has no comma")
    return bytes(int(number) for number in numbers[:-1])
