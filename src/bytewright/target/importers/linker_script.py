"""The memories of a GNU linker script, as the linker itself evaluates them.

ORIGIN and LENGTH are expressions over symbols, other regions and included files, so nothing here parses them: a
link of an empty object under the script writes a map, whose table holds every region's address, length and
attributes. What the application would add to such a link is missing, and is put in its place:

- Object files and libraries that the script names and that are not there are empty archives.
- A symbol that only the application defines is tried with two values. If the table is the same both times the
  symbol has no say in it; otherwise the script depends on it, which is an error that asks for its value.

That sections then do not fit, or that assertions fail, says nothing about the memories.
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bytewright.base.programs import find_program
from bytewright.diagnostics import CompileError, Diagnostic, compile_error
from bytewright.target.importers.board import FoundBoard, FoundMemory, memory_name, refusal
from bytewright.target.importers.limits import run_program
from bytewright.target.importers.preprocess import first_directive
from bytewright.target.importers.script_text import ScriptText
from bytewright.target.isa.find import TRIPLES
from bytewright.target.model import MemoryAccess

_MOST_LINKS = 64  # each but the last names something that is missing
_TWO_VALUES = (0, 0x51A3C0)
_EMPTY_ARCHIVE = b"!<arch>\n"
_STACK_SYMBOLS = ("_estack", "__StackTop", "__stack_top", "_stack_top", "__stack", "__initial_sp")
_STACK_SIZE_SYMBOLS = ("_Min_Stack_Size", "__stack_size", "__STACK_SIZE", "__StackSize", "_stack_size")
_NOT_MEMORIES = {"IDT_LIST": "Zephyr's list of interrupts, which exists while linking only"}

_TABLE = re.compile(r"^Memory Configuration$(.*?)^Linker script and memory map$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^(\S+)\s+0x([0-9a-f]+)[ \t]+0x([0-9a-f]+)(?:[ \t]+([!a-z]+))?[ \t]*$", re.MULTILINE)
_MISSING_INPUT = re.compile(r"cannot find (?!entry symbol)(.+?)(?:: No such file or directory)?")
_MISSING_SCRIPT = re.compile(r"cannot open linker script file (.+): [^:]+")
_UNDEFINED = re.compile(r"undefined symbol `([^']+)' referenced in expression")
_BAD_REGION = re.compile(r"invalid (?:origin|length) for memory region (\S+)")
_DUBIOUS_REGION = re.compile(
    r"warning: ((?:redeclaration of memory region|memory region) `([^']+)'(?: not declared)?)"
)


@dataclass(frozen=True, slots=True)
class _Region:
    name: str
    base: int
    size_bytes: int
    attributes: str


@dataclass(frozen=True, slots=True)
class _Message:
    """A line of the linker's, with its place if it gave one; line 0 is the end of a file."""

    text: str
    file: str | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class _Link:
    """How a link ended: the map, if it came so far, and everything that was said on the way."""

    map_text: str | None
    messages: tuple[_Message, ...]
    guessed_symbols: tuple[str, ...]


def read_linker_script(path: Path, text: str, include: Sequence[Path], define: Sequence[str]) -> FoundBoard:
    """The memories of a script, in its order.

    Args:
        path: The script.
        text: Its content.
        include: Folders in which `INCLUDE` looks, besides the working directory.
        define: `NAME=VALUE`, symbols that the build gives to the linker (`--defsym`).

    Raises:
        CompileError: BW202 with file and line for what the linker refuses, for regions that are not numbers
            without the application, and for a script without memories; BW501, BW502 for the linker.
    """
    linkers = (*(f"{triple}-ld" for triple in TRIPLES), "ld")
    missing = f"a linker script needs {linkers[0]!r}, which is not installed"
    linker = find_program(linkers, f"binutils-{TRIPLES[0]}", missing, "LD")
    directive = first_directive(text)
    if directive is not None:
        raise refusal(
            "this line is for the C preprocessor; the linker would take it for a comment",
            f"{path}:{directive}",
            help_text=f"import what `gcc -E -P -x c {path}` prints, with the build's own -D and -I",
        )
    script = ScriptText(path, text, include)
    with tempfile.TemporaryDirectory(prefix="bytewright-import-") as folder:
        laboratory = _Laboratory(linker, path, tuple(include), tuple(define), Path(folder))
        link = laboratory.link(_TWO_VALUES[0])
        _refuse_errors(link, script)
        regions, last_address = _read_table(link)
        if link.guessed_symbols:
            other, _ = _read_table(laboratory.link(_TWO_VALUES[1]))
            _refuse_dependence(regions, other, link.guessed_symbols, script)
    return _board(path, script, regions, last_address, link.map_text or "")


class _Laboratory:
    """Links nothing under a script, again and again, until everything that is missing has a stand-in."""

    def __init__(
        self,
        linker: list[str],
        script: Path,
        include: tuple[Path, ...],
        define: tuple[str, ...],
        folder: Path,
    ) -> None:
        self._linker = linker
        self._folder = folder
        self._stand_ins = folder / "stand-ins"
        self._stand_ins.mkdir()
        # Folders come before the script, which is read as soon as it is named.
        self._options = [f"-L{directory}" for directory in (*include, self._stand_ins)]
        self._options += ["-nostdlib", "--noinhibit-exec", "-T", str(script)]
        self._options += ["-o", str(folder / "nothing.elf")]
        self._options += [f"--undefined={symbol}" for symbol in (*_STACK_SYMBOLS, *_STACK_SIZE_SYMBOLS)]
        self._definitions = [f"--defsym={definition}" for definition in define]

    def link(self, guess: int) -> _Link:
        """Links with a value for each symbol that turns out to be undefined."""
        map_file = self._folder / "memory.map"
        options = [*self._options, f"-Map={map_file}", str(self._empty_object())]
        guessed: list[str] = []
        messages: dict[_Message, None] = {}
        for _ in range(_MOST_LINKS):
            map_file.unlink(missing_ok=True)
            # Definitions come first: DEFINED() in the script asks for what was defined before it.
            definitions = [*self._definitions, *(f"--defsym={symbol}={guess}" for symbol in guessed)]
            done = run_program([*self._linker, *definitions, *options], "the linker")
            said = [self._message(line) for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            messages.update(dict.fromkeys(said))
            map_text = map_file.read_text(encoding="utf-8", errors="replace") if map_file.exists() else ""
            if _TABLE.search(map_text):  # a link that was given up leaves the beginning of a map
                return _Link(map_text, tuple(messages), tuple(guessed))
            undefined = [match.group(1) for m in said if (match := _UNDEFINED.fullmatch(m.text))]
            new = [symbol for symbol in undefined if symbol not in guessed]
            guessed.extend(dict.fromkeys(new))
            num_stand_ins = sum(self._stand_in(message) for message in said)
            if not num_stand_ins and not new:
                break
        return _Link(None, tuple(messages), tuple(guessed))

    def _empty_object(self) -> Path:
        """An object of the linker's own format, which it makes of an empty file."""
        empty, made = self._folder / "empty", self._folder / "empty.o"
        if not made.exists():
            empty.touch()
            command = [*self._linker, "-r", "-b", "binary", str(empty), "-o", str(made)]
            done = run_program(command, "the linker")
            if done.returncode != 0:
                notes = tuple(done.stderr.splitlines()[:4])
                message = f"{self._linker[0]!r} does not link like a GNU linker"
                raise compile_error("BW502", message, notes, "name another one in LD")
        return made

    def _stand_in(self, message: _Message) -> bool:
        """Makes an empty archive for an input that was not found; whether it did."""
        match = _MISSING_INPUT.fullmatch(message.text)
        if match is None:
            return False
        name = match.group(1)
        if name.startswith("-l"):
            name = name[3:] if name.startswith("-l:") else f"lib{name[2:]}.a"
        path = self._stand_ins / name
        if path.exists() or ".." in path.parts or not path.is_relative_to(self._stand_ins):
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_EMPTY_ARCHIVE)
        return True

    def _message(self, line: str) -> _Message:
        text = line.strip().removeprefix(f"{self._linker[0]}:").strip()
        match = re.fullmatch(r"(.+?):(\d+):? (.*)", text)
        if match is None:
            return _Message(text)
        return _Message(match.group(3), match.group(1), int(match.group(2)))


def _refuse_errors(link: _Link, script: ScriptText) -> None:
    """Raises what the linker said against the memories, or what kept it from writing a map."""
    refusals: list[Diagnostic] = []
    for message in link.messages:
        bad, dubious = _BAD_REGION.fullmatch(message.text), _DUBIOUS_REGION.fullmatch(message.text)
        if bad:
            where = script.region(bad.group(1))
            why = f"{message.text}: it is not a number before anything is linked"
            definitions = _definitions(link.guessed_symbols or ("NAME",))
            help_text = f"give the symbols that the build defines with {definitions}"
            refusals.append(Diagnostic("BW202", why, where=where, help=help_text))
        elif dubious:
            # The linker reads on before it misses a region, and is past the line.
            is_missing = message.text.endswith("not declared")
            where = None if is_missing else _place(message, script)
            where = where or script.region(dubious.group(2))
            refusals.append(Diagnostic("BW202", dubious.group(1), where=where))
    if refusals:
        raise CompileError(refusals)
    if link.map_text is not None:
        return
    fatal = [m for m in link.messages if "warning: " not in m.text and not _replaced(m)]
    fatal = [message for message in fatal if message.file] or fatal[-1:] or [_Message("it wrote no map")]
    raise CompileError(
        Diagnostic("BW202", f"the linker: {m.text}", where=_place(m, script) or _quoted(m, script))
        for m in fatal
    )


def _replaced(message: _Message) -> bool:
    """Whether the message named something that has a stand-in by now."""
    match = _MISSING_INPUT.fullmatch(message.text)
    return _UNDEFINED.fullmatch(message.text) is not None or (
        match is not None and not Path(match.group(1)).is_absolute()
    )


def _definitions(symbols: Sequence[str]) -> str:
    return " ".join(f"--define {symbol}=VALUE" for symbol in symbols)


def _place(message: _Message, script: ScriptText) -> str | None:
    """File and line of a message that has both; line 0 is where the file ends."""
    if message.file is None:
        return None
    file = script.full_name(message.file)
    return f"{file}:{message.line or script.num_lines(file)}"


def _quoted(message: _Message, script: ScriptText) -> str:
    """The place of what a message without a place speaks of."""
    if message.text == "EOF in comment":
        return script.open_comment()
    match = _MISSING_SCRIPT.fullmatch(message.text) or _MISSING_INPUT.fullmatch(message.text)
    return script.first(re.escape(match.group(1))) if match else script.file


def _read_table(link: _Link) -> tuple[list[_Region], int]:
    """The regions of a map in the script's order, and the last address that there is."""
    table = _TABLE.search(link.map_text or "")
    rows = _ROW.findall(table.group(1)) if table else []
    regions = [
        _Region(name, int(base, 16), int(size, 16), flags)
        for name, base, size, flags in rows
        if name[0] != "*"
    ]
    last_address = max((int(size, 16) for name, _, size, _ in rows if name == "*default*"), default=0)
    return regions, last_address


def _refuse_dependence(
    regions: list[_Region], other: list[_Region], symbols: Sequence[str], script: ScriptText
) -> None:
    for region in regions:
        if region not in other:
            names = ", ".join(symbols)
            raise refusal(
                f"memory region {region.name} depends on symbols that are not defined here: {names}",
                script.region(region.name),
                help_text=_definitions(symbols),
            )


def _memory(region: _Region, name: str, where: str) -> FoundMemory:
    access, reason = _access(region)
    attributes = f" ({region.attributes})" if region.attributes else ""
    origin = f"{region.name}{attributes}{reason}"
    size_bytes = region.size_bytes
    return FoundMemory(name, region.base, size_bytes, access, f".{name}", origin, where, region=region.name)


def _board(
    path: Path, script: ScriptText, regions: list[_Region], last_address: int, map_text: str
) -> FoundBoard:
    memories: list[FoundMemory] = []
    remarks: list[str] = []
    taken: set[str] = set()
    for region in regions:
        where = script.region(region.name)
        if region.name in _NOT_MEMORIES:
            remarks.append(f"{region.name} is left out: {_NOT_MEMORIES[region.name]}")
        elif region.size_bytes == 0:
            remarks.append(f"{region.name} is left out: its length is 0")
        elif region.base + region.size_bytes > last_address + 1:
            message = (
                f"memory region {region.name} at {region.base:#x} with {region.size_bytes} B ends behind the last "
                f"address, {last_address:#x}"
            )
            raise refusal(message, where)
        else:
            memories.append(_memory(region, memory_name(region.name, taken), where))
    if not memories:
        raise refusal(
            "the script describes no memory: there is no MEMORY block with regions in it", script.file
        )
    stack = _stack_memory(map_text, memories)
    return FoundBoard(path.stem, "", None, tuple(memories), stack, tuple(remarks), _stack_bytes(map_text))


def _access(region: _Region) -> tuple[MemoryAccess, str]:
    """What the attributes mean for running code, and a remark where they are not taken at their word.

    Attributes choose sections, so `w` stands for memory that variables go to. Many scripts call their flash
    writable all the same, and a workspace in flash would fail on the board alone.
    """
    name = region.name.lower()
    chosen, _, refused = region.attributes.partition("!")
    is_random_access = re.search("ram|tcm|ddr", name) is not None
    is_permanent = re.search("flash|rom|xip", name) is not None and not is_random_access
    if not region.attributes:
        is_read_only = is_permanent or (
            re.search("text|code|vector|interrupt|boot", name) is not None and not is_random_access
        )
        return (
            MemoryAccess.READ_ONLY if is_read_only else MemoryAccess.READ_WRITE
        ), ", no attributes: access by its name"
    if "w" in refused or ("w" not in chosen and chosen):
        return MemoryAccess.READ_ONLY, ""
    if is_permanent:
        return MemoryAccess.READ_ONLY, ", read-only by its name"
    return MemoryAccess.READ_WRITE, ""


def _stack_memory(map_text: str, memories: Sequence[FoundMemory]) -> tuple[str, str] | None:
    """The memory below the address that the script calls the top of the stack, if it does."""
    for symbol, top in _values_in(map_text, _STACK_SYMBOLS):
        for memory in memories:
            if memory.is_writable and memory.base < top <= memory.end:
                return memory.name, f"the script's {symbol} is {top:#x}"
    return None


def _stack_bytes(map_text: str) -> tuple[int, str] | None:
    """The size that the script gives the stack, if it does."""
    for symbol, size_bytes in _values_in(map_text, _STACK_SIZE_SYMBOLS):
        if size_bytes:
            return size_bytes, f"the script's {symbol}"
    return None


def _values_in(map_text: str, symbols: Sequence[str]) -> Iterator[tuple[str, int]]:
    """What a script assigns to some symbols, as the map has it."""
    for symbol in symbols:
        pattern = rf"^\s+0x([0-9a-f]+)\s+(?:PROVIDE \()?{re.escape(symbol)} = "
        if match := re.search(pattern, map_text, re.MULTILINE):
            yield symbol, int(match.group(1), 16)
