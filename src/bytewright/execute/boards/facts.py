"""Facts about the boards, as one table: adding a board that QEMU emulates means adding a built-in target and an entry.

The target of the same name has the core and the memories. Sources: the machines' memory maps in QEMU's documentation of
the Arm MPS boards (docs/system/arm/mps2) and Arm's application notes AN547, AN500 and AN386.
"""

from dataclasses import dataclass
from functools import cache

from bytewright.target.isa.isa import Isa
from bytewright.target.model import Target
from bytewright.target.registry import load_target


@dataclass(frozen=True, slots=True)
class Board:
    """What the harness must know.

    Attributes:
        name: QEMU's for the machine; the built-in target of the same name describes the board, and uses it.
        code_memory: Where vectors and code go: the processor fetches its vectors from the memory's start.
        code_base: The address at which code is linked, if not the memory's base. A Cortex-M55 boots Secure
            and must fetch from Secure addresses.
        harness_memory: Where the harness's own data, inputs and outputs go: out of the way of the pools.
        num_protected_regions: Regions of its v8-M memory protection unit; 0 for earlier ones, which cannot describe
            arrays of any size at any address.
        second_device: The device of its target that its second core is, if it has one.
    """

    name: str
    code_memory: str
    code_base: int
    harness_memory: str
    num_protected_regions: int = 0
    second_device: str | None = None

    @property
    def target(self) -> Target:
        """The built-in target."""
        return _builtin(self.name)

    @property
    def isa(self) -> Isa:
        """Of its core; targets of another name may use the board if it is theirs and their memories fit."""
        return self.target.default_device.isa


_builtin = cache(load_target)

BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        Board("mps3-an547", "itcm", 0x10000000, "ddr", num_protected_regions=16),
        Board("mps2-an521", "ssram1", 0x10000000, "ssram3", num_protected_regions=16, second_device="core1"),
        Board("mps2-an500", "ssram1", 0x00000000, "psram"),
        Board("mps2-an386", "ssram1", 0x00000000, "psram"),
    )
}
