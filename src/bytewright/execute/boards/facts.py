"""Facts about the boards, as one table: adding a board that QEMU emulates means adding an entry.

Sources: the machines' memory maps in QEMU's documentation of the Arm MPS boards (docs/system/arm/mps2) and
Arm's application notes AN547, AN500 and AN386.
"""

from __future__ import annotations

from dataclasses import dataclass

_KIB = 1 << 10
_MIB = 1 << 20
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class BoardMemory:
    """One memory of a board; `alias_offsets` lead to further addresses of the same bytes."""

    name: str
    base: int
    size_bytes: int
    alias_offsets: tuple[int, ...] = ()

    def offset_of(self, first: int, size_bytes: int) -> int | None:
        """The offset of an interval that lies wholly in this region, through the base or an alias."""
        for alias_offset in (0, *self.alias_offsets):
            offset = first - self.base - alias_offset
            if offset >= 0 and offset + size_bytes <= self.size_bytes:
                return offset
        return None


@dataclass(frozen=True, slots=True)
class Board:
    """What the harness must know.

    Attributes:
        name: The target of the same name uses this board.
        machine: QEMU's name for it.
        isa: Targets of another name may use the board if their device has this ISA and their memories fit.
        compiler_flags: What makes the cross compiler generate code for its core.
        regions: Its memories.
        code_region: Where vectors and code go: the processor fetches its vectors from the region's start.
        code_base: The address at which code is linked, if not the region's base. A Cortex-M55 boots Secure
            and must fetch from Secure addresses.
        harness_region: Where the harness's own data, inputs and outputs go: out of the way of the pools.
        num_protected_regions: Regions of its v8-M memory protection unit; 0 for earlier ones, which cannot describe
            arrays of any size at any address.
    """

    name: str
    machine: str
    isa: str
    compiler_flags: tuple[str, ...]
    regions: tuple[BoardMemory, ...]
    code_region: str
    code_base: int
    harness_region: str
    num_protected_regions: int = 0

    def region(self, name: str) -> BoardMemory:
        """A region by its name."""
        return next(region for region in self.regions if region.name == name)


_SECURE = (0x10000000,)

BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        Board(
            name="mps3-an547",
            machine="mps3-an547",
            isa="cortex-m55",
            compiler_flags=("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
            regions=(
                BoardMemory("itcm", 0x00000000, 512 * _KIB, _SECURE),
                BoardMemory("sram", 0x01000000, 2 * _MIB, _SECURE),
                BoardMemory("dtcm", 0x20000000, 512 * _KIB, _SECURE),
                BoardMemory("isram", 0x21000000, 4 * _MIB, _SECURE),
                BoardMemory("flash", 0x28000000, 8 * _MIB, _SECURE),
                BoardMemory("ddr", 0x60000000, 2 * _GIB),
            ),
            code_region="itcm",
            code_base=0x10000000,
            harness_region="ddr",
            num_protected_regions=16,
        ),
        Board(
            name="mps2-an500",
            machine="mps2-an500",
            isa="cortex-m7",
            compiler_flags=("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
            regions=(
                BoardMemory("ssram1", 0x00000000, 4 * _MIB),
                BoardMemory("ssram23", 0x20000000, 4 * _MIB),
                BoardMemory("psram", 0x60000000, 16 * _MIB),
            ),
            code_region="ssram1",
            code_base=0x00000000,
            harness_region="psram",
        ),
        Board(
            name="mps2-an386",
            machine="mps2-an386",
            isa="cortex-m4",
            compiler_flags=("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
            regions=(
                BoardMemory("ssram1", 0x00000000, 4 * _MIB),
                BoardMemory("bram", 0x01000000, 16 * _KIB),
                BoardMemory("ssram23", 0x20000000, 4 * _MIB),
                BoardMemory("psram", 0x21000000, 16 * _MIB),
            ),
            code_region="ssram1",
            code_base=0x00000000,
            harness_region="psram",
        ),
    )
}
