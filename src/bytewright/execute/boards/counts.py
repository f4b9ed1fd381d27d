"""The instruction counter: building the TCG plugin, and what it wrote, attributed to functions and memories."""

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bytewright.base.programs import execute
from bytewright.diagnostics import InternalError
from bytewright.elf.image import ElfSymbol
from bytewright.execute.build import harness_source
from bytewright.execute.objects import compile_object
from bytewright.execute.result import FunctionCount, RegionTraffic, StepWork
from bytewright.execute.tools import compile_c, find_host_compiler

_NOTHING_WRITTEN = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class AddressRange:
    """A named interval of addresses, both ends included."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class CoreCounts:
    """Of one core: a total for each inference, and the functions of the last, largest first."""

    instructions: tuple[int, ...] = ()
    functions: tuple[FunctionCount, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """Of the cores, of which the second may have nothing to do; the traffic is that of the last inference."""

    first: CoreCounts
    second: CoreCounts
    traffic: tuple[RegionTraffic, ...]


@dataclass(frozen=True, slots=True)
class CoreWork:
    """Of one core in the last inference: bytes loaded and stored by memory, and what it did for steps, as it ended."""

    loaded_bytes: Mapping[str, int]
    stored_bytes: Mapping[str, int]
    calls: tuple[StepWork, ...]


def build_plugin(folder: Path, qemu: str) -> Path:
    """Compiles the plugin for the QEMU that will load it.

    Raises:
        CompileError: BW501 or BW502 for the host's C compiler.
    """
    (folder / "counter.c").write_text(harness_source("boards", "counter.c"), encoding="utf-8")
    compiler = find_host_compiler()
    version = execute(
        [qemu, "--version"], directory=folder, timeout_seconds=30.0, what="qemu-system-arm"
    ).stdout
    match = re.search(r"version (\d+)\.", version)
    # QEMU 9 refuses plugins of interface 1; the functions that the counter uses are the same in 2.
    interface = 1 if match is not None and int(match.group(1)) < 9 else 2
    flags = ["-std=c99", "-O2", "-fPIC", f"-DPLUGIN_INTERFACE={interface}"]
    what = "the C compiler"
    compile_object([*compiler, *flags, "-c"], "counter.c", "counter.o", folder=folder, what=what)
    compile_c([*compiler, "-shared", "counter.o", "-o", "counter.so"], directory=folder, what=what)
    return folder / "counter.so"


def plugin_argument(
    symbols: Sequence[ElfSymbol], ranges: Sequence[AddressRange], steps: str | None = None
) -> str:
    """QEMU's -plugin argument; file names are relative to the folder where QEMU runs, `steps` the one of pieces."""
    begin, end = address_of(symbols, "harness_measure_begin"), address_of(symbols, "harness_measure_end")
    parts = ["./counter.so", f"begin={begin:#x}", f"end={end:#x}", "out=counts.txt"]
    if any(symbol.name == "second_core_measure_begin" for symbol in symbols):
        for word in ("begin", "end"):
            parts.append(f"second_{word}={address_of(symbols, f'second_core_measure_{word}'):#x}")
    if steps is not None:
        parts.append(f"steps={steps}")
    return ",".join([*parts, *(f"range={entry.first:#x}:{entry.last:#x}" for entry in ranges)])


def address_of(symbols: Sequence[ElfSymbol], name: str) -> int:
    """The address of a symbol that the harness defines."""
    for symbol in symbols:
        if symbol.name == name:
            return symbol.address
    raise InternalError(f"the image has no symbol {name!r}")


def function_at(symbols: Sequence[ElfSymbol], address: int) -> str | None:
    """The function that holds an address, if it is in the image's code."""
    if not address_of(symbols, "harness_vectors") <= address < address_of(symbols, "__harness_code_end"):
        return None
    code = _code_of(symbols)
    index = bisect.bisect_right([symbol.address for symbol in code], address)
    return code[index - 1].name if index else None


def _code_of(symbols: Iterable[ElfSymbol]) -> list[ElfSymbol]:
    """What is in the code, by address."""
    return sorted(
        (symbol for symbol in symbols if symbol.is_code), key=lambda symbol: (symbol.address, symbol.name)
    )


def parse_counts(text: str, symbols: Sequence[ElfSymbol], ranges: Sequence[AddressRange]) -> Counts:
    """Reads what the plugin wrote."""
    totals: dict[str, list[int]] = {"inference": [], "second": []}
    blocks: dict[str, list[list[int]]] = {"block": [], "second_block": []}
    traffic: dict[str, list[list[int]]] = {}
    names = [*(entry.name for entry in ranges), "elsewhere"]
    for line in text.splitlines():
        kind, *words = line.split()
        numbers = [int(word) for word in words]
        if kind in totals:
            totals[kind].append(numbers[0])
        elif kind in blocks:
            blocks[kind].append(numbers)
        elif kind == "range":
            traffic.setdefault(names[numbers[0]], []).append(numbers[1:])
    return Counts(
        CoreCounts(tuple(totals["inference"]), _functions(blocks["block"], symbols)),
        CoreCounts(tuple(totals["second"]), _functions(blocks["second_block"], symbols)),
        tuple(_traffic(name, lines) for name, lines in traffic.items()),
    )


def parse_work(text: str, ranges: Sequence[AddressRange]) -> tuple[CoreWork, CoreWork]:
    """What the plugin wrote of steps, of each core."""
    names = [*(entry.name for entry in ranges), "(elsewhere)"]
    bytes_of: list[list[int]] = []
    calls: dict[str, list[StepWork]] = {"call": [], "job": []}
    is_over = False
    for line in text.splitlines():
        kind, *words = line.split()
        if kind in calls:
            if is_over:  # what is here is of an inference before
                calls, is_over = {"call": [], "job": []}, False
            step, address, began_at, instructions, *traffic = map(int, words)
            loaded, stored = (_by_memory(names, traffic[which::2]) for which in (0, 1))
            index = step if step >= 0 else None
            calls[kind].append(StepWork(index, address, began_at, instructions, loaded, stored))
        elif kind == "inference":
            is_over = True
        elif kind == "bytes":
            bytes_of.append([int(word) for word in words[1:]])
    columns = [_by_memory(names, column) for column in zip(*bytes_of, strict=True)] or [{}] * 4
    return (
        CoreWork(columns[0], columns[1], tuple(calls["call"])),
        CoreWork(columns[2], columns[3], tuple(calls["job"])),
    )


def _by_memory(names: Sequence[str], num_bytes: Sequence[int]) -> dict[str, int]:
    """Bytes of ranges by their names, which several may have; of those that any were touched of."""
    found: Counter[str] = Counter()
    for name, number in zip(names, num_bytes, strict=True):
        found[name] += number
    return {name: number for name, number in found.items() if number}


def unanswered_ring(text: str) -> int | None:
    """Of what the plugin had written when it was stopped: which ring of its inference, from 1, had no reply; None if
    none was open.
    """
    events = [line.split(" ")[0] for line in text.splitlines()]
    if not events or events[-1] != "ring":
        return None
    last = max((index for index, event in enumerate(events) if event == "second"), default=-1)
    return events[last + 1 :].count("ring")


def _functions(blocks: Sequence[Sequence[int]], symbols: Sequence[ElfSymbol]) -> tuple[FunctionCount, ...]:
    """The plugin's blocks, each an address and a number of instructions, by function."""
    code = _code_of(symbols)
    starts = [symbol.address for symbol in code]
    by_function: Counter[str] = Counter()
    for address, instructions in blocks:
        index = bisect.bisect_right(starts, address)
        by_function[code[index - 1].name if index else "?"] += instructions
    functions = sorted(by_function.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(FunctionCount(*entry) for entry in functions)


def _traffic(name: str, lines: Sequence[Sequence[int]]) -> RegionTraffic:
    """The plugin's lines for all ranges of one name: a memory has several."""
    loads, stores, loaded_bytes, stored_bytes, lowest, highest = zip(*lines, strict=True)
    written = [index for index, address in enumerate(lowest) if address != _NOTHING_WRITTEN]
    return RegionTraffic(
        name,
        sum(loads),
        sum(stores),
        sum(loaded_bytes),
        sum(stored_bytes),
        min((lowest[index] for index in written), default=None),
        max((highest[index] for index in written), default=None),
    )
