"""What the sections of an object file take of memory, by what they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bytewright.elf.image import opened

if TYPE_CHECKING:
    from elftools.elf.sections import Section

_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR = 0x1, 0x2, 0x4


@dataclass(frozen=True, slots=True)
class SectionSizes:
    """Bytes of sections.

    Attributes:
        text_bytes: Instructions, and what stands among them.
        rodata_bytes: All else that nobody writes.
        data_bytes: Variables that the image brings the first values of.
        bss_bytes: Those that begin as zeros.
    """

    text_bytes: int = 0
    rodata_bytes: int = 0
    data_bytes: int = 0
    bss_bytes: int = 0

    def __add__(self, other: SectionSizes) -> SectionSizes:
        return SectionSizes(
            self.text_bytes + other.text_bytes,
            self.rodata_bytes + other.rodata_bytes,
            self.data_bytes + other.data_bytes,
            self.bss_bytes + other.bss_bytes,
        )

    @property
    def kept_bytes(self) -> int:
        """What an image has of it."""
        return self.text_bytes + self.rodata_bytes + self.data_bytes

    @property
    def written_bytes(self) -> int:
        """What lies in memory that is written."""
        return self.data_bytes + self.bss_bytes

    @property
    def all_bytes(self) -> int:
        """Each byte once."""
        return self.kept_bytes + self.bss_bytes


def section_sizes(path: Path, without: Collection[str] = ()) -> SectionSizes:
    """The sizes of an object file or image.

    Args:
        path: An ELF file.
        without: Arrays that do not count.

    Raises:
        CompileError: BW208 if the file cannot be read, is no ELF file, or is damaged.
    """
    from elftools.elf.sections import SymbolTableSection

    with opened(path) as (file, _, _):
        found = {index: section for index, section in enumerate(file.iter_sections()) if _is_loaded(section)}
        sizes = {index: section["sh_size"] for index, section in found.items()}
        for table in file.iter_sections():
            if isinstance(table, SymbolTableSection):
                for symbol in table.iter_symbols():
                    if symbol.name in without and symbol["st_shndx"] in sizes:
                        sizes[symbol["st_shndx"]] -= symbol["st_size"]
        return sum((_of_kind(found[index], size) for index, size in sizes.items()), SectionSizes())


def _is_loaded(section: Section) -> bool:
    return bool(section["sh_flags"] & _SHF_ALLOC)


def _of_kind(section: Section, size_bytes: int) -> SectionSizes:
    if section["sh_flags"] & _SHF_EXECINSTR:
        return SectionSizes(text_bytes=size_bytes)
    if not section["sh_flags"] & _SHF_WRITE:
        return SectionSizes(rodata_bytes=size_bytes)
    if section["sh_type"] == "SHT_NOBITS":
        return SectionSizes(bss_bytes=size_bytes)
    return SectionSizes(data_bytes=size_bytes)
