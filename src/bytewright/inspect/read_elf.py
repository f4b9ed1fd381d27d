"""Reads what `check --elf` needs of a linked image: sections with their bytes, and symbols.

pyelftools does the reading and is an extra, so it is imported here, when an image is read, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bytewright.diagnostics import CompileError, Diagnostic

_SHF_ALLOC = 0x2


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
class Symbol:
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
    symbols: tuple[Symbol, ...]

    def section_of(self, symbol: Symbol, size_bytes: int) -> Section | None:
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
        raise CompileError(
            Diagnostic(
                "BW501",
                "reading an ELF file needs the Python package 'pyelftools', which is not installed",
                help="pip install 'bytewright[elf]'",
            )
        ) from error
    try:
        return _read(path)
    except OSError as error:
        raise _refusal(f"cannot read '{path}': {error.strerror}") from error
    except ELFError as error:
        raise _refusal(f"'{path}' is not an ELF file") from error
    except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise _refusal(f"'{path}' is damaged ({error!r})") from error


def _refusal(message: str) -> CompileError:
    help_text = "give the file that the linker wrote, before objcopy and strip"
    return CompileError(Diagnostic("BW208", message, help=help_text))


def _read(path: Path) -> Image:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section as ElfSection
    from elftools.elf.sections import SymbolTableSection

    def load_address(section: ElfSection) -> int:
        """By the segment that the section is a part of."""
        first = section["sh_addr"]
        for segment in file.iter_segments("PT_LOAD"):
            if segment.section_in_segment(section):
                return int(segment["p_paddr"] + first - segment["p_vaddr"])
        return int(first)

    with path.open("rb") as stream:
        file = ELFFile(stream)
        if file["e_type"] not in ("ET_EXEC", "ET_DYN"):
            raise _refusal(f"'{path}' is not linked: its ELF type is {file['e_type']}")
        sections: list[Section] = []
        symbols: list[Symbol] = []
        for index, section in enumerate(file.iter_sections()):
            if section["sh_flags"] & _SHF_ALLOC and section["sh_size"]:
                content = None if section["sh_type"] == "SHT_NOBITS" else bytes(section.data())
                place = (section["sh_addr"], load_address(section), section["sh_size"])
                sections.append(Section(index, section.name, *place, content))
            if isinstance(section, SymbolTableSection):
                symbols += [
                    Symbol(
                        symbol.name,
                        symbol["st_value"],
                        symbol["st_size"],
                        symbol["st_info"]["type"] == "STT_OBJECT",
                        symbol["st_shndx"] if isinstance(symbol["st_shndx"], int) else None,
                    )
                    for symbol in section.iter_symbols()
                    if symbol.name and symbol["st_shndx"] != "SHN_UNDEF"
                ]
    if not symbols:
        raise _refusal(f"'{path}' has no symbols")
    return Image(path, tuple(sections), tuple(dict.fromkeys(symbols)))
