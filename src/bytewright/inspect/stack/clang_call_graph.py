"""The call graph of a source as clang has it, in the form that gcc writes: clang writes none of its own.

Its `-fstack-usage` says each function's frame. Calls are read from its assembly, so that those are among them which the
compiler makes by itself, of `memcpy` or of a division's helper. Branches to registers count as calls through pointers,
but in a function that has as many tables of a `switch` as such jumps: each table takes one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

FLAGS = ("-fno-lto", "-fstack-usage")
_FUNCTION = re.compile(r"\s*\.type\s+([\w.$]+)\s*,\s*[@%]function")
_GLOBAL = re.compile(r"\s*\.globl\s+([\w.$]+)")
_LABEL = re.compile(r"([\w.$]+):")
_CONDITION = "eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le"
_BRANCH = re.compile(
    rf"\s+(?:(?:b|bl|blx|bx)(?:\.?(?:{_CONDITION}))?(?:\.w)?|blr|br|cbn?z|tbn?z|callq?|j[a-z]+)\s+"
    r"(?:.*,\s*)?(\S+)"
)
_COMMENT = re.compile(r"\s(?:#|//|@)\s.*")
_REGISTER = re.compile(r"\*.*|r\d+|x\d+|ip|lr")
_JUMP_TABLE = re.compile(r"\*(\.LJTI\w+)")
_NAMED_TABLE = re.compile(r"\s+[a-z].*?(\.LJTI\w+)")
_CALL = re.compile(r"\s+(?:bl|call)")
# Of a call, which pushes it and no frame counts it, by the architecture's word for a call.
_RETURN_ADDRESS_BYTES = 8
_PUSHING_CALL = re.compile(r"^\s+(?:callq|retq)\b", re.MULTILINE)
# What aligns the stack pointer to more than calls do: bits that are cleared on Arm, a mask elsewhere. No frame counts
# the bytes that this may skip.
_CLEARED_BITS = re.compile(r"\s+bfc\s+\w+, #0, #(\d+)")
_MASK = re.compile(r"\s+andq?\s+(?:\$-(\d+), %rsp|sp, \w+, #0xf+([0-9a-f]+))")
_POINTER_BYTES = 8
_INDIRECT = "__indirect_call"


def clang_call_graph(source: str, assembly: str, usage: str) -> str:
    """The call graph of a source.

    Args:
        source: The file's name, which titles of its static functions begin with.
        assembly: What clang made of it.
        usage: What `-fstack-usage` wrote.
    """
    exported = set(_GLOBAL.findall(assembly))
    own = set(_FUNCTION.findall(assembly))
    pushed_bytes = _RETURN_ADDRESS_BYTES if _PUSHING_CALL.search(assembly) else 0

    def title(name: str) -> str:
        return name if name in exported or name not in own else f"{source}:{name}"

    skipped = _skipped_bytes(assembly, own)
    lines: list[str] = []
    for line in usage.splitlines():
        place, size, kind = line.split("\t")
        name = place.rpartition(":")[2]
        size_bytes = int(size) + pushed_bytes + skipped.get(name, 0)
        label = f"{name}\\n{source}\\n{size_bytes} bytes ({kind})"
        lines.append(f'node: {{ title: "{title(name)}" label: "{label}" }}')
    for caller, callee in dict.fromkeys(_calls(assembly, own)):
        lines.append(f'edge: {{ sourcename: "{title(caller)}" targetname: "{title(callee)}" }}')
    return "\n".join(lines) + "\n"


def _lines(assembly: str, own: set[str]) -> Iterator[tuple[str, str]]:
    """The lines of each function, without comments, with its name."""
    function = ""
    for line in assembly.splitlines():
        if (label := _LABEL.match(line)) is not None:
            function = label[1] if label[1] in own else function
        elif function:
            yield function, _COMMENT.sub("", line).rstrip()


def _skipped_bytes(assembly: str, own: set[str]) -> dict[str, int]:
    """By function, what aligning its stack pointer may skip."""
    skipped: dict[str, int] = {}
    for function, line in _lines(assembly, own):
        if (bits := _CLEARED_BITS.match(line)) is not None:
            alignment = 1 << int(bits[1])
        elif (mask := _MASK.match(line)) is not None:
            alignment = int(mask[1]) if mask[1] else 16 ** len(mask[2]) - int(mask[2], 16)
        else:
            continue
        skipped[function] = max(skipped.get(function, 0), alignment - _POINTER_BYTES)
    return skipped


def _calls(assembly: str, own: set[str]) -> Iterator[tuple[str, str]]:
    """Each function with what it calls, or ends with; branches to its own labels are none."""
    lines = tuple(_lines(assembly, own))
    switching = _switching(lines)
    for caller, line in lines:
        target = _target(line)
        if target.startswith(".L") or target in ("", "lr") or _JUMP_TABLE.match(target):
            continue
        if _REGISTER.fullmatch(target) is None:
            yield caller, target
        elif caller not in switching or _CALL.match(line):
            yield caller, _INDIRECT


def _target(line: str) -> str:
    """What an instruction branches to; nothing of other instructions."""
    branch = _BRANCH.fullmatch(line)
    return "" if branch is None else branch[1].partition("@")[0]


def _switching(lines: Sequence[tuple[str, str]]) -> set[str]:
    """The functions in which every jump to a register takes its address from a table of a `switch`."""
    jumps: Counter[str] = Counter()
    tables: defaultdict[str, set[str]] = defaultdict(set)
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for function, line in lines:
        target = _target(line)
        if (direct := _JUMP_TABLE.match(target)) is not None:
            taken[function].add(direct[1])
        elif (named := _NAMED_TABLE.match(line)) is not None:
            tables[function].add(named[1])
        jumps[function] += (
            target != "lr" and _REGISTER.fullmatch(target) is not None and not _CALL.match(line)
        )
    return {function for function, count in jumps.items() if count <= len(tables[function] - taken[function])}
