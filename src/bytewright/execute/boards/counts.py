"""The instruction counter: building the TCG plugin, and what it wrote, attributed to functions and memories."""

import bisect
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bytewright.diagnostics import InternalError
from bytewright.execute.build import harness_source
from bytewright.execute.result import FunctionCount, RegionTraffic
from bytewright.execute.tools import compile_c, find_host_compiler
from bytewright.programs import execute

_NOTHING_WRITTEN = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ImageSymbol:
    """A symbol of the image; a label has no size."""

    address: int
    name: str
    is_code: bool
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AddressRange:
    """A named interval of addresses, both ends included."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Counts:
    """One total for each inference; functions and traffic are those of the last."""

    instructions: tuple[int, ...]
    functions: tuple[FunctionCount, ...]
    traffic: tuple[RegionTraffic, ...]


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
    flags = ["-std=c99", "-O2", "-shared", "-fPIC", f"-DPLUGIN_INTERFACE={interface}"]
    compile_c([*compiler, *flags, "counter.c", "-o", "counter.so"], directory=folder, what="the C compiler")
    return folder / "counter.so"


def plugin_argument(symbols: Sequence[ImageSymbol], ranges: Sequence[AddressRange]) -> str:
    """QEMU's -plugin argument; file names are relative to the folder where QEMU runs."""
    begin, end = address_of(symbols, "harness_measure_begin"), address_of(symbols, "harness_measure_end")
    parts = ["./counter.so", f"begin={begin:#x}", f"end={end:#x}", "out=counts.txt"]
    return ",".join([*parts, *(f"range={entry.first:#x}:{entry.last:#x}" for entry in ranges)])


def address_of(symbols: Sequence[ImageSymbol], name: str) -> int:
    """The address of a symbol that the harness defines, without the Thumb bit."""
    for symbol in symbols:
        if symbol.name == name:
            return symbol.address & ~1 if symbol.is_code else symbol.address
    raise InternalError(f"the image has no symbol {name!r}")


def function_at(symbols: Sequence[ImageSymbol], address: int) -> str | None:
    """The function that holds an address, if it is in the image's code."""
    if not address_of(symbols, "harness_vectors") <= address < address_of(symbols, "__harness_code_end"):
        return None
    code = [symbol for symbol in symbols if symbol.is_code]
    index = bisect.bisect_right([symbol.address & ~1 for symbol in code], address)
    return code[index - 1].name if index else None


def parse_counts(text: str, symbols: Sequence[ImageSymbol], ranges: Sequence[AddressRange]) -> Counts:
    """Reads what the plugin wrote; `symbols` are sorted by address."""
    totals: list[int] = []
    traffic: dict[str, list[list[int]]] = {}
    by_function: Counter[str] = Counter()
    code = [symbol for symbol in symbols if symbol.is_code]
    starts = [symbol.address & ~1 for symbol in code]
    names = [*(entry.name for entry in ranges), "elsewhere"]
    for line in text.splitlines():
        kind, *words = line.split()
        numbers = [int(word) for word in words]
        if kind == "inference":
            totals.append(numbers[0])
        elif kind == "block":
            index = bisect.bisect_right(starts, numbers[0])
            by_function[code[index - 1].name if index else "?"] += numbers[1]
        elif kind == "range":
            traffic.setdefault(names[numbers[0]], []).append(numbers[1:])
    functions = sorted(by_function.items(), key=lambda entry: (-entry[1], entry[0]))
    return Counts(
        tuple(totals),
        tuple(FunctionCount(*entry) for entry in functions),
        tuple(_traffic(name, lines) for name, lines in traffic.items()),
    )


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
