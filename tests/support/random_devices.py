"""Random machines of two or three devices, and random programs of kernels on them, with what must hold of each plan.

A machine is a few memories, the devices' ways to them (which, coherent or not), lines and alignments; a program is a
chain of calls on random devices with tensors, constants and scratch. `broken_rules` judges plan.json by the machine and
the program alone: nothing of Bytewright takes part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

_Value = TypeVar("_Value")
Draw = Callable[[st.SearchStrategy[_Value]], _Value]

FLASH = "flash"


@dataclass(frozen=True)
class Way:
    """How a device reaches a memory."""

    is_coherent: bool


@dataclass(frozen=True)
class Core:
    """A device; the first of a machine runs the entry, reaches all, and is what the others are coherent with."""

    name: str
    ways: Mapping[str, Way]
    line: int
    touch: int
    max_array: int
    requests: bool

    def line_in(self, memory: str) -> int:
        """The line that it must have alone of what it touches in a memory; 0 if any may share it."""
        way = self.ways.get(memory)
        return self.line if memory != FLASH and way is not None and not way.is_coherent else 0


@dataclass(frozen=True)
class Machine:
    memories: tuple[str, ...]
    cores: tuple[Core, ...]
    pool_alignments: Mapping[str, int]
    parameter_memories: tuple[str, ...]

    def core(self, name: str) -> Core:
        return next(core for core in self.cores if core.name == name)

    def toml(self) -> str:
        lines = ['name = "random"', 'default-device = "cpu"', 'tags = ["micro"]']
        for number, memory in enumerate((*self.memories, FLASH)):
            lines += [f"[memory.{memory}]", f"base = {0x10000000 * (number + 1):#x}", 'size = "256KiB"']
            lines += ['access = "r"'] if memory == FLASH else []
        for core in self.cores:
            reach = ", ".join(
                f'{{ memory = "{memory}", coherent = {str(way.is_coherent).lower()} }}'
                for memory, way in core.ways.items()
            )
            lines += [f"[device.{core.name}]", 'isa = "cortex-m33"', f"reach = [{reach}]"]
            lines += [f'stack = "{next(iter(core.ways))}"', 'max-stack-size = "8KiB"']
            lines += [f"touch-alignment = {core.touch}", f"max-stack-alloca-size = {core.max_array}"]
            lines += [f"cache-line = {core.line}"] if core.line else []
            lines += ["use-backend-alloc-workspace = true"] if core.requests else []
        for memory in self.memories:
            lines += ["[[workspace]]", f'name = "w_{memory}"', f'memory = "{memory}"', 'size = "64KiB"']
            lines += [f"alignment = {self.pool_alignments[memory]}"]
        for memory in self.parameter_memories:
            lines += ["[[parameters]]", f'name = "p_{memory}"', f'memory = "{memory}"', "size = 4096"]
            lines += [] if memory == FLASH else ['load = "copy"', f'from = "{FLASH}"']
        return "\n".join([*lines, ""])

    def memory_of(self, pool: str) -> str:
        return pool[2:]


@dataclass(frozen=True)
class Call:
    """A kernel of its own on a device, with what it is given, and how many bytes of scratch it works in (0: none)."""

    device: str
    sources: tuple[str, ...]
    constant: str | None
    to: str
    scratch: int


@dataclass(frozen=True)
class Program:
    sizes: Mapping[str, int]
    constants: Mapping[str, int]
    calls: tuple[Call, ...]

    def text(self) -> str:
        """The program as IR."""
        first, last = self.sizes["x"], self.sizes["y"]
        lines = ["module m", f"input %x : tensor<{first}xi8>", f"output %y : tensor<{last}xi8>"]
        for name, size in self.constants.items():
            values = ", ".join(str((7 * i + size) % 100) for i in range(size))
            lines.append(
                f'constant {name} : buffer<{size}xi8, "global", align=1> = data<{size}xi8> [{values}]'
            )
        for number, call in enumerate(self.calls):
            lines += self._kernel(number, call)
        x, y = (f'{name} : buffer<{self.sizes[name]}xi8, "global", align=1>' for name in "xy")
        lines.append(f"entry main({x} r activation, {y} w activation) on cpu {{")
        for name, size in self.sizes.items():
            if name not in ("x", "y"):
                lines.append(f'allocate {name} : buffer<{size}xi8, "global.workspace", align=1>')
        for number, call in enumerate(self.calls):
            given = [*call.sources, *([call.constant] if call.constant else []), call.to]
            lines.append(f"call_extern m_k{number}({', '.join(f'&{name}' for name in given)})")
        return "\n".join([*lines, "}", ""])

    def _kernel(self, number: int, call: Call) -> Iterator[str]:
        given = [(f"s{i}", self.sizes[name], "r activation") for i, name in enumerate(call.sources)]
        if call.constant:
            given.append(("c", self.constants[call.constant], "r parameter"))
        parameters = [*given, ("y", self.sizes[call.to], "w activation")]
        listed = ", ".join(f'{n} : buffer<{size}xi8, "global", align=1> {how}' for n, size, how in parameters)
        yield f"kernel m_k{number}({listed}) on {call.device} {{"
        total = " + ".join(f"i32({name}[i % {size}])" for name, size, _ in given)
        if call.scratch:
            yield f'allocate t : buffer<{call.scratch}xi8, "global", align=1>'
            yield f"for i : i32 in 0 .. {call.scratch} {{ t[i] = i8(({total}) % 50) }}"
            total, index = f"i32(t[j % {call.scratch}])", "j"
        else:
            index = "i"
        yield f"for {index} : i32 in 0 .. {self.sizes[call.to]} {{ y[{index}] = i8(({total}) % 50) }}"
        yield "}"


_SIZES = st.sampled_from((1, 3, 10, 31, 32, 33, 64, 100))


@st.composite
def machines(draw: Draw[Any]) -> Machine:
    """Two or three devices; the default one reaches everything."""
    memories = ("own", "near", "far")[: draw(st.integers(2, 3))]
    cores = [_core(draw, "cpu", {memory: Way(True) for memory in (*memories, FLASH)})]
    for name in ("dsp", "npu")[: draw(st.integers(1, 2))]:
        reached = [memory for memory in memories[1:] if draw(st.booleans())] or [memories[-1]]
        ways = {memory: Way(draw(st.booleans())) for memory in reached}
        ways |= {FLASH: Way(draw(st.booleans()))} if draw(st.booleans()) else {}
        cores.append(_core(draw, name, ways))
    alignments = {memory: draw(st.sampled_from((4, 16))) for memory in memories}
    in_memories = tuple(memory for memory in memories[1:] if draw(st.booleans()))
    return Machine(memories, tuple(cores), alignments, (*in_memories, FLASH))


def _core(draw: Draw[Any], name: str, ways: Mapping[str, Way]) -> Core:
    is_first = name == "cpu"
    return Core(
        name,
        ways,
        line=0 if is_first else draw(st.sampled_from((16, 32, 64))),
        touch=1 if is_first else draw(st.sampled_from((1, 4, 32, 128))),
        max_array=draw(st.sampled_from((0, 64))),
        requests=draw(st.booleans()),
    )


@st.composite
def programs(draw: Draw[Any], machine: Machine, io_in_workspace: bool) -> Program:
    """A chain of calls; each reads what is there already, and its result is read by a later one."""
    names = [core.name for core in machine.cores]
    number = draw(st.integers(2, 6))
    sizes = {"x": draw(_SIZES), **{f"t{i}": draw(_SIZES) for i in range(number - 1)}, "y": draw(_SIZES)}
    constants = {f"c{i}": draw(_SIZES) for i in range(draw(st.integers(0, 3)))}
    unused, calls, known = list(constants), list[Call](), ["x"]
    for index in range(number):
        is_border = index in (0, number - 1) and not io_in_workspace
        sources = dict.fromkeys((known[-1], draw(st.sampled_from(known if not is_border else known[-1:]))))
        if not io_in_workspace and index:
            sources = {name: None for name in sources if name != "x"}
        calls.append(
            Call(
                "cpu" if is_border else draw(st.sampled_from(names)),
                tuple(sources),
                unused.pop() if unused and draw(st.booleans()) else None,
                "y" if index == number - 1 else f"t{index}",
                draw(st.sampled_from((0, 0, 10, 33, 100))),
            )
        )
        known.append(calls[-1].to)
    used = {call.constant for call in calls}
    return Program(sizes, {name: size for name, size in constants.items() if name in used}, tuple(calls))


# The rules


def touching(program: Program, document: Mapping[str, Any]) -> dict[str, set[str]]:
    """The devices of the calls that each buffer is given to, by the numbers of the plan's steps."""
    found: dict[str, set[str]] = {}
    for step, call in zip(document["steps"], program.calls, strict=True):
        for name in (*step["reads"], *step["writes"], *step["scratch"]):
            found.setdefault(name, set()).add(call.device)
    return found


def lines_of(first: int, size: int, line: int) -> range:
    """The numbers of the lines that bytes are in."""
    return range(first // line, (first + size - 1) // line + 1)


def broken_rules(machine: Machine, program: Program, document: Mapping[str, Any]) -> list[str]:
    """What a plan does that it may not; empty if it is right."""
    touched = touching(program, document)
    faults = list[str]()
    pools = {pool["name"]: pool for pool in document["pools"]}
    placed: dict[str, list[Mapping[str, Any]]] = {}
    for buffer in document["buffers"]:
        kind, name, pool = buffer["place"]["kind"], buffer["name"], buffer["place"]["name"]
        devices = [machine.core(device) for device in sorted(touched.get(name, ()))]
        if kind == "caller":
            faults += _caller_faults(machine, buffer, devices)
        elif kind in ("planned", "constant", "arena"):
            faults += _single_faults(machine, buffer, devices, pools)
        if kind in ("planned", "constant"):
            placed.setdefault(pool, []).append(buffer)
    for pool, inside in placed.items():
        memory = machine.memory_of(pool)
        for buffer in inside:
            line = max((machine.core(d).line_in(memory) for d in touched.get(buffer["name"], ())), default=0)
            if line:
                beside = [b for b in inside if not _is_in_place(machine, program, buffer["name"], b["name"])]
                faults += _line_faults(buffer, line, pools[pool], beside)
    return faults


def _caller_faults(machine: Machine, buffer: Mapping[str, Any], devices: list[Core]) -> Iterator[str]:
    line = max((core.line_in(memory) for core in devices for memory in machine.memories), default=0)
    touch = max((core.touch for core in devices), default=1)
    if buffer["alignment"] % max(line, touch, 1) or buffer.get("line_bytes", 0) < line:
        yield f"{buffer['name']} of the caller"


def _single_faults(
    machine: Machine, buffer: Mapping[str, Any], devices: list[Core], pools: Mapping[str, Any]
) -> Iterator[str]:
    pool = buffer["place"]["name"]
    offset = buffer["place"]["offset"] or 0
    for core in devices:
        if any(machine.memory_of(candidate) not in core.ways for candidate in (*buffer["candidates"], pool)):
            yield f"{buffer['name']} may go where {core.name} does not reach"
        if offset % core.touch or pools[pool]["alignment"] % core.touch or buffer["alignment"] % core.touch:
            yield f"{buffer['name']} at {pool}+{offset} is not aligned for {core.name}"


def _is_in_place(machine: Machine, program: Program, first: str, second: str) -> bool:
    """Whether two buffers meet in one call alone, which reads the one for the last time and makes the other.

    Their lines are one device's at a time if the call is of the entry's device, or no other device touches them.
    """
    for source, output in ((first, second), (second, first)):
        made = [number for number, call in enumerate(program.calls) if call.to == output]
        read = [number for number, call in enumerate(program.calls) if source in call.sources]
        if len(made) == 1 and read and max(read) == made[0]:
            touching = {c.device for c in program.calls if {first, second} & {*c.sources, c.to}}
            return program.calls[made[0]].device == machine.cores[0].name or len(touching) == 1
    return False


def _line_faults(
    buffer: Mapping[str, Any], line: int, pool: Mapping[str, Any], inside: list[Mapping[str, Any]]
) -> Iterator[str]:
    if (
        pool["alignment"] % line
        or pool["used_bytes"] < lines_of(_offset(buffer), buffer["size_bytes"], line).stop * line
    ):
        yield f"{buffer['name']} shares a line with what is beside pool {pool['name']}"
    if buffer["place"]["kind"] == "constant":
        return  # constants share lines with each other
    own = lines_of(_offset(buffer), buffer["size_bytes"], line)
    for other in inside:
        (lower, upper), (other_lower, other_upper) = buffer["live"], other["live"]
        if other is buffer or max(lower, other_lower) >= min(upper, other_upper):
            continue
        theirs = lines_of(_offset(other), other["size_bytes"], line)
        if max(own.start, theirs.start) < min(own.stop, theirs.stop):
            yield f"{buffer['name']} and {other['name']} share a line of {line} B"


def _offset(buffer: Mapping[str, Any]) -> int:
    return buffer["place"]["offset"]


def has_no_home(machine: Machine, program: Program) -> bool:
    """Whether some buffer is touched by devices that have no memory in common where a pool of its role is."""
    touched: dict[str, set[str]] = {}
    for call in program.calls:
        for name in (*call.sources, call.to, *([call.constant] if call.constant else [])):
            touched.setdefault(name, set()).add(call.device)
    for name, devices in touched.items():
        memories = machine.parameter_memories if name in program.constants else machine.memories
        if not any(all(memory in machine.core(d).ways for d in devices) for memory in memories):
            return True
    return False
