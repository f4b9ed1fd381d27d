"""Reads back what the generated C says in numbers: macros, offsets, calls and bytes.

The texts are those that Bytewright writes, so patterns suffice; what they do not find counts as missing.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from bytewright.ir.packed import PACKED_END
from bytewright.record.names import REQUEST, ROWS, RUN_ROW, Names

_DEFINE = re.compile(r"^#define (\w+) (\d+)\b", re.MULTILINE)
_PLAN_HASH = re.compile(r"\bPlan ([0-9a-f]{64})\.")


@dataclass(frozen=True, slots=True)
class SpanText:
    """A part of a buffer that is lent.

    Attributes:
        address: The text behind casts, such as `dtcm + KWS_AT_DTCM_X`.
        element: The type that it is cast to a pointer to; None for no cast.
        index: What is added to it: a number of elements, or the text of one that changes; `0` for nothing.
        size: The expression for its bytes.
        access: The enumerators that say what may be done with it, in their order.
        memory: The enumerator of the memory that the address is an offset in; None for an address of the program.
        element_bytes: What the index counts, in such a memory.
    """

    address: str
    element: str | None
    index: str
    size: str
    access: tuple[str, ...]
    memory: str | None = None
    element_bytes: int = 1


@dataclass(frozen=True, slots=True)
class JobText:
    """A job that the entry hands over.

    Attributes:
        device: The member of the devices that it goes to.
        code: What that is told to do: `&call`, `NULL`, or the address of a stream.
        code_bytes: The expression for the size of that.
        call_type: The type of the constant `call`; None where there is none.
        kernel: The number in it,
        scalars: and those that the kernel is given.
        spans: What the job is given; None for one that was not generated so.
        num_spans: How many it is said to be.
    """

    device: str
    code: str
    code_bytes: str
    call_type: str | None
    kernel: int | None
    scalars: tuple[str, ...]
    spans: tuple[SpanText | None, ...]
    num_spans: str


@dataclass(frozen=True, slots=True)
class CallText:
    """One call of the entry: the kernel, and the names of what it is given, each once; or the job that stands there.

    `position` is that in the body of the function with the steps; `arguments` are those of a plain call, as they stand.
    """

    kernel: str
    names: frozenset[str]
    job: JobText | None = None
    position: int = field(default=0, compare=False)
    arguments: tuple[str, ...] = field(default=(), compare=False)


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
    """The kernel calls, and the jobs that are handed over, in the body of the function with the steps, in order.

    `externals` are functions of the application, which have names of their own. An argument is named by its offset's
    enumerator, by `inputs->x` or `outputs->y`, or by what was requested. A packed call is one of the kernel that it is
    the packed form of, with what was put into the array of arguments since the call before it.
    """
    body = body_of_steps(source, names)
    kernel = "|".join([rf"{names.model}_\w+", *map(re.escape, sorted(externals))])
    before, behind = r"(?:if \(|\w+ = )?", r"(?:;| != 0\) \{| == 0 \? \w+ : \w+;)"
    call = re.compile(rf"^ +{before}({kernel})\(([^;{{]*?)\){behind}$", re.MULTILINE)
    rows = rf"|(?:^|(?<=\s)){ROWS}(?=,)" if names.takes_rows else ""
    name = re.compile(rf"\b{names.offset_front}\w+|\b(?:inputs|outputs)->\w+|\b{REQUEST}\w+{rows}")
    packed = {f"{names.model}_extern_{symbol}{PACKED_END}": symbol for symbol in externals}
    found: list[CallText] = []
    begin = 0
    jobs = _jobs(names).finditer(body) if names.has_devices else ()
    for match in sorted((*call.finditer(body), *jobs), key=re.Match.start):
        if match.re is not call:
            found.append(_handed_over(match, names))
            begin = match.end()
            continue
        kernel, arguments = match.groups()
        if kernel in (names.step, names.allocate, names.release):
            continue  # the macro between the kernels, of a model in capitals, and what serves requests
        if kernel.endswith(PACKED_END) and kernel not in externals:
            kernel = packed.get(kernel, kernel.removesuffix(PACKED_END))
            arguments = _packed(body[begin : match.start()], arguments, names)
        named, texts = frozenset(name.findall(arguments)), split_arguments(arguments)
        found.append(CallText(kernel, named, position=match.start(), arguments=texts))
        begin = match.end()
    return found


def split_arguments(text: str) -> tuple[str, ...]:
    """The arguments of a call, or the parameters of a function, from what stands between the parentheses."""
    found, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return tuple(" ".join(argument.split()) for argument in found if argument.strip())


def _jobs(names: Names) -> re.Pattern[str]:
    """The block of a job: what says which kernel is to run, the spans, and the hand-over."""
    call = (
        r"(?: +(?:static )?const (?P<type>\w+) call = \{(?P<kernel>\d+)u(?:, \{(?P<scalars>[^{}]*)\})?\};\n)?"
    )
    spans = rf" +const {names.span_type} spans\[\] = \{{\n(?P<spans>(?: +lend(?:_in)?\(.*\),\n)*) +\}};\s+"
    outcome = rf"(?:;| != {names.ok}\) \{{)$"
    hand_over = rf"(?:if \(|\w+ = )hand_over\((?P<arguments>[^;{{]*?)\){outcome}"
    return re.compile(rf"^ +\{{\n{call}{spans}{hand_over}", re.MULTILINE)


def _handed_over(match: re.Match[str], names: Names) -> CallText:
    lent = re.findall(r"^ +(lend(?:_in)?)\((.*), (.*?)u, ([\w |]+)\),$", match["spans"], re.MULTILINE)
    spans = tuple(
        read_span(address, size, names, access)
        if how == "lend"
        else _read_span_in(address, size, names, access)
        for how, address, size, access in lent
    )
    device, code, code_bytes, array, num_spans = ("", "", "", "", "")
    arguments = re.split(r",\s*", match["arguments"].strip())
    if len(arguments) == 5:
        device, code, code_bytes, array, num_spans = arguments
    if array != "spans" or len(lent) != match["spans"].count("\n"):
        spans = (None,)
    job = JobText(
        device.removeprefix("&devices->"),
        *(code, code_bytes, match["type"]),
        int(match["kernel"]) if match["kernel"] else None,
        tuple(text.strip() for text in (match["scalars"] or "").split(",") if text.strip()),
        *(spans, num_spans),
    )
    named = frozenset(span.address for span in spans if span is not None)
    return CallText("", named, job, match.start())


def read_span(address: str, size: str, names: Names, access: str = "") -> SpanText | None:
    """A part of a buffer from the text of its address; None for text that was not generated so."""
    place = rf"\w+ \+ {names.offset_front}\w+|(?:inputs|outputs)->\w+|{REQUEST}\w+"
    cast = r"(?:\((?:const )?(\w+) \*\)(?:\((?:const )?void \*\))?)?"
    found = re.fullmatch(rf"{cast}(\()?({place})(?(2)\))(?: \+ (.+))?", address)
    if found is None:
        return None
    return SpanText(found[3], found[1], found[4] or "0", size, tuple(access.split(" | ")))


def _read_span_in(place: str, size: str, names: Names, access: str) -> SpanText | None:
    """A part of a buffer that has no address: `KWS_MEMORY_LOCAL, KWS_AT_LOCAL_X + (4u * (uint32_t)(8))`."""
    found = re.fullmatch(
        rf"(\w+), ({names.offset_front}\w+)(?: \+ \((\d+)u \* \(uint32_t\)\((.+)\)\))?", place
    )
    if found is None:
        return None
    return SpanText(
        found[2], None, found[4] or "0", size, tuple(access.split(" | ")), found[1], int(found[3] or 1)
    )


def without_comments(source: str) -> str:
    """C text without its comments, as it is generated: no text in quotes has one."""
    return re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)


def num_hand_overs(source: str, names: Names) -> int:
    """How many calls hand something over, however they are written, and calls of hooks beside them."""
    return len(re.findall(r"\bhand_over\b|\blaunch\b|\bwait\b", body_of_steps(source, names)))


def num_runs_of_steps(source: str, names: Names) -> int:
    """How often the function is called that has the steps while devices are in use."""
    definition = 1
    return len(re.findall(rf"\b{names.steps}\(", source)) - definition


def _packed(text: str, passed: str, names: Names) -> str:
    """What a packed call passes, from the text before it: one value and one code for each argument, in their order."""
    value = re.compile(rf"^ +{names.packed_arguments}\[(\d+)\]\.(\w+) =\s([^;]*);$", re.MULTILINE)
    code = re.compile(rf"^ +{names.packed_codes}\[(\d+)\] = (\w+);$", re.MULTILINE)
    values, codes = value.findall(text), code.findall(text)
    expected = {"integer": "INT", "real": "FLOAT", "pointer": "POINTER", "constant": "POINTER"}
    stated = [(index, names.argument_code(expected.get(member, ""))) for index, member, _ in values]
    numbers = [str(number) for number in range(len(values))]
    arrays = [names.packed_arguments, names.packed_codes] if values else ["NULL", "NULL"]
    if (
        stated != codes
        or [index for index, _ in codes] != numbers
        or re.split(r",\s*", passed.strip()) != [*arrays, str(len(values)), *["NULL"] * 3]
    ):
        return ""  # no call that was generated so; then it touches nothing that the plan says
    return ", ".join(text for *_, text in values)


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
        for found in text.finditer(body_of_steps(source, names))
    ]


def read_arenas(source: str, names: Names) -> dict[str, tuple[str, str]]:
    """The arenas that the run function sets: where each begins, as an offset's name, and its size's macro."""
    bases, sizes = (
        dict(re.findall(rf"^ +context->(\w+)\.{text};$", body_of_steps(source, names), re.MULTILINE))
        for text in (r"base = \w+ \+ (\w+)", r"size_bytes = (\w+)")
    )
    return {pool: (bases.get(pool, ""), sizes.get(pool, "")) for pool in {**bases, **sizes}}


def body_of_steps(source: str, names: Names) -> str:
    """The function that has the steps, which is the run function where no other device takes part.

    Where the input comes row by row it is several, one behind the other.
    """
    if names.takes_rows:
        functions = (RUN_ROW, names.begin, names.steps)
        return "\n}\n".join(body_of(source, name) for name in functions)
    return body_of(source, names.steps)


def body_of(source: str, function: str) -> str:
    """What stands behind the name of a function that returns a status; nothing if there is none."""
    return source.partition(f"int32_t {function}(")[2].partition("\n}\n")[0]


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


def most_bytes(size: str, upper: Mapping[str, int]) -> int | None:
    """The value of a product of extents and numbers, with every extent at its largest; None if it is none."""
    total = 1
    for factor in size.split(" * "):
        name = re.sub(r"^\(uint(?:32|64)_t\)(?:\((\w+)\)|(?=\w))", r"\1", factor)
        if name.isdecimal():
            total *= int(name)
        elif name != factor and name in upper:
            total *= upper[name]
        else:
            return None
    return total
