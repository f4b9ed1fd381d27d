"""Reads what `check --elf` needs of a linked image: sections with their bytes, and symbols.

pyelftools does the reading and is an extra, so it is imported here, when an image is read, and nowhere else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bytewright.diagnostics import CompileError, compile_error
from bytewright.input_file import require_regular

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section as ElfSection
    from elftools.elf.sections import SymbolTableSection
    from elftools.elf.segments import Segment

_SHF_ALLOC = 0x2
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
    """A symbol with an address; `is_object` for what the compiler made of a variable.

    `section` is the index of the section that it was defined in; None for a mere address.
    """

    name: str
    address: int
    size_bytes: int
    is_object: bool
    section: int | None


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
    """Reads an ELF file.

    Raises:
        CompileError: BW501 without pyelftools; BW208 if the file cannot be read, is no ELF file, is damaged, is
            not linked, or has no symbols.
    """
    try:
        from elftools.common.exceptions import ELFError
    except ImportError as error:
        raise compile_error(
            "BW501",
            "reading an ELF file needs the Python package 'pyelftools', which is not installed",
            help="pip install 'bytewright[elf]'",
        ) from error
    try:
        return _read(path)
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


def _read(path: Path) -> Image:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    require_regular(path)
    with path.open("rb") as stream:
        file_bytes = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        file = ELFFile(stream)
        if file["e_type"] not in ("ET_EXEC", "ET_DYN"):
            raise _refusal(f"'{path}' is not linked: its ELF type is {file['e_type']}")
        _refuse_impossible_tables(file, file_bytes)
        loaded = list(file.iter_segments("PT_LOAD"))
        sections: list[Section] = []
        symbols: list[ElfSymbol] = []
        content_bytes = 0
        names = _Names(stream, file_bytes)
        section_names = file.get_section(file.get_shstrndx())
        for index, section in enumerate(file.iter_sections()):
            has_bytes = section["sh_type"] != "SHT_NOBITS"
            content_bytes += section["sh_size"] if has_bytes else 0
            names.count(section.name, section_names["sh_offset"] + section["sh_name"])
            if section["sh_flags"] & _SHF_ALLOC and section["sh_size"]:
                if has_bytes and (
                    section.compressed or section["sh_offset"] + section["sh_size"] > file_bytes
                ):
                    raise ValueError(
                        f"section {index} has {section['sh_size']} B that the file does not have"
                    )
                content = bytes(section.data()) if has_bytes else None
                place = (section["sh_addr"], _load_address(section, loaded), section["sh_size"])
                sections.append(Section(index, section.name, *place, content))
            if content_bytes > _MOST_READ * file_bytes:
                raise ValueError("its sections share their bytes")
            if isinstance(section, SymbolTableSection):
                symbols += _symbols_of(section, names)
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


def _symbols_of(section: SymbolTableSection, names: _Names) -> list[ElfSymbol]:
    symbols: list[ElfSymbol] = []
    for symbol in section.iter_symbols():
        names.count(symbol.name, section.stringtable["sh_offset"] + symbol["st_name"])
        if symbol.name and symbol["st_shndx"] != "SHN_UNDEF":
            symbols.append(
                ElfSymbol(
                    symbol.name,
                    symbol["st_value"],
                    symbol["st_size"],
                    symbol["st_info"]["type"] == "STT_OBJECT",
                    symbol["st_shndx"] if isinstance(symbol["st_shndx"], int) else None,
                )
            )
    return symbols
