"""A linked image: its sections with their bytes, and its symbols; and the size of what an object file brings."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bytewright.base.input_file import require_regular
from bytewright.diagnostics import CompileError, compile_error

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section as ElfSection
    from elftools.elf.sections import Symbol as TableEntry
    from elftools.elf.sections import SymbolTableSection
    from elftools.elf.segments import Segment

_SHF_ALLOC, _SHF_EXECINSTR = 0x2, 0x4
_MOST_ENTRIES = 10_000  # sections or segments of an image
_MOST_READ = 4  # times the file: sections of a sound image share no bytes
_MOST_NAMED = 16  # times the file: names may share their ends, and symbols their names


@dataclass(frozen=True, slots=True)
class Section:
    """A section that has memory at run time.

    Attributes:
        load_address: Where its bytes are before the startup code copies them; the address itself if it does not.
        content: None where the image brings no bytes.
    """

    index: int
    name: str
    address: int
    load_address: int
    size_bytes: int
    content: bytes | None


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """A symbol with an address.

    Attributes:
        address: Of a function its first instruction, without the bit that says Thumb.
        size_bytes: 0 for a label.
        is_object: It is what the compiler made of a variable.
        is_code: It is a function, or a label in code.
        section: The index of the section that it was defined in; None for a mere address.
    """

    name: str
    address: int
    size_bytes: int = 0
    is_object: bool = False
    is_code: bool = False
    section: int | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A linked image."""

    path: Path
    sections: tuple[Section, ...]
    symbols: tuple[ElfSymbol, ...]

    def section_of(self, symbol: ElfSymbol, size_bytes: int) -> Section | None:
        """The section that holds so many bytes of a symbol: its own one, where others lie over it."""
        first, end = symbol.address, symbol.address + size_bytes
        holding = [s for s in self.sections if s.address <= first and end <= s.address + s.size_bytes]
        own = [section for section in holding if section.index == symbol.section]
        return (own or holding or [None])[0]


def read_image(path: Path) -> Image:
    """Reads an ELF file; its symbols are in the order of the file.

    Raises:
        CompileError: BW208 if the file cannot be read, is no ELF file, is damaged, is not linked, or has no symbols.
    """
    with opened(path) as (file, stream, file_bytes):
        if file["e_type"] not in ("ET_EXEC", "ET_DYN"):
            raise _refusal(f"'{path}' is not linked: its ELF type is {file['e_type']}")
        return _read(path, file, stream, file_bytes)


def loaded_bytes(path: Path) -> int:
    """Code, constants and initialised data of a file, which need not be linked: the bytes that it brings to memory.

    Raises:
        CompileError: BW208 if the file cannot be read, is no ELF file, or is damaged.
    """
    with opened(path) as (file, _, _):
        return sum(
            section["sh_size"]
            for section in file.iter_sections()
            if section["sh_flags"] & _SHF_ALLOC and section["sh_type"] != "SHT_NOBITS"
        )


@contextmanager
def opened(path: Path) -> Generator[tuple[ELFFile, BinaryIO, int], None, None]:
    """The file with its size in bytes; whatever is wrong with it is a refusal."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        require_regular(path)
        with path.open("rb") as stream:
            file_bytes = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            file = ELFFile(stream)
            _refuse_impossible_tables(file, file_bytes)
            yield file, stream, file_bytes
    except OSError as error:
        raise _refusal(f"cannot read '{path}': {error.strerror}") from error
    except ELFError as error:
        raise _refusal(f"'{path}' is not an ELF file") from error
    except CompileError:
        raise
    except Exception as error:  # what the reader trips over in a damaged file can be anything
        raise _refusal(f"'{path}' is damaged ({error!r:.200})") from error


def _refusal(message: str) -> CompileError:
    help_text = "give the file that the linker wrote, before objcopy and strip"
    return compile_error("BW208", message, help=help_text)


def _read(path: Path, file: ELFFile, stream: BinaryIO, file_bytes: int) -> Image:
    from elftools.elf.sections import SymbolTableSection

    loaded = list(file.iter_segments("PT_LOAD"))
    sections: list[Section] = []
    tables: list[SymbolTableSection] = []
    executable: set[int] = set()
    content_bytes = 0
    names = _Names(stream, file_bytes)
    section_names = file.get_section(file.get_shstrndx())
    for index, section in enumerate(file.iter_sections()):
        has_bytes = section["sh_type"] != "SHT_NOBITS"
        content_bytes += section["sh_size"] if has_bytes else 0
        names.count(section.name, section_names["sh_offset"] + section["sh_name"])
        if section["sh_flags"] & _SHF_ALLOC and section["sh_size"]:
            if has_bytes and (section.compressed or section["sh_offset"] + section["sh_size"] > file_bytes):
                raise ValueError(f"section {index} has {section['sh_size']} B that the file does not have")
            content = bytes(section.data()) if has_bytes else None
            place = (section["sh_addr"], _load_address(section, loaded), section["sh_size"])
            sections.append(Section(index, section.name, *place, content))
        if content_bytes > _MOST_READ * file_bytes:
            raise ValueError("its sections share their bytes")
        if section["sh_flags"] & _SHF_EXECINSTR:
            executable.add(index)
        if isinstance(section, SymbolTableSection):
            tables.append(section)
    is_arm = file["e_machine"] == "EM_ARM"
    symbols = [symbol for table in tables for symbol in _symbols_of(table, names, executable, is_arm)]
    if not symbols:
        raise _refusal(f"'{path}' has no symbols")
    return Image(path, tuple(sections), tuple(dict.fromkeys(symbols)))


def _refuse_impossible_tables(file: ELFFile, file_bytes: int) -> None:
    """Counts that the file has no room for, which would be walked through one by one."""
    for what, count, entry_bytes in (
        ("sections", file.num_sections(), file["e_shentsize"]),
        ("segments", file.num_segments(), file["e_phentsize"]),
    ):
        if count > _MOST_ENTRIES or count * max(entry_bytes, 1) > file_bytes or (count and not entry_bytes):
            raise ValueError(f"it says that it has {count} {what} of {entry_bytes} B")


def _load_address(section: ElfSection, loaded: list[Segment]) -> int:
    """By the segment that the section is a part of."""
    first = section["sh_addr"]
    for segment in loaded:
        if 0 <= first - segment["p_vaddr"] <= segment["p_memsz"] and segment.section_in_segment(section):
            return int(segment["p_paddr"] + first - segment["p_vaddr"])
    return int(first)


class _Names:
    """Bounds what is read of names: the reader looks for the end of each, through the whole file if need be."""

    def __init__(self, stream: BinaryIO, file_bytes: int) -> None:
        self._stream = stream
        self._left = _MOST_NAMED * file_bytes

    def count(self, name: str, position: int) -> None:
        """Counts a name that was read from a place in the file.

        Raises:
            ValueError: It has no end, or is one too many.
        """
        self._left -= len(name)
        if self._left < 0:
            raise ValueError("its names share their bytes")
        if not name:
            self._stream.seek(position)
            if self._stream.read(1) not in (b"", b"\0"):
                raise ValueError("a name has no end")


def _symbols_of(
    table: SymbolTableSection, names: _Names, executable: set[int], is_arm: bool
) -> Generator[ElfSymbol, None, None]:
    """The symbols that the program has, in the order of the table.

    Args:
        table: The symbol table.
        names: Counts what is read of names.
        executable: The indices of sections with code.
        is_arm: Addresses of functions have a bit that says Thumb.
    """
    for entry in table.iter_symbols():
        names.count(entry.name, table.stringtable["sh_offset"] + entry["st_name"])
        if not entry.name or entry["st_shndx"] == "SHN_UNDEF" or _is_mark(entry):
            continue
        kind, section = entry["st_info"]["type"], entry["st_shndx"]
        yield ElfSymbol(
            entry.name,
            entry["st_value"] & ~1 if is_arm and kind == "STT_FUNC" else entry["st_value"],
            entry["st_size"],
            kind == "STT_OBJECT",
            section in executable and kind in ("STT_FUNC", "STT_NOTYPE"),
            section if isinstance(section, int) else None,
        )


def _is_mark(entry: TableEntry) -> bool:
    """Whether a symbol names a source file, or says where in a section code and data begin, as `$t` does."""
    information = entry["st_info"]
    is_local_label = (information["bind"], information["type"]) == ("STB_LOCAL", "STT_NOTYPE")
    return information["type"] == "STT_FILE" or (is_local_label and entry.name.startswith("$"))
