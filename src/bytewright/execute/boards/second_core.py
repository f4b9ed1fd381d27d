"""The second core of a board, as the device of a plan: what its sources are compiled with, and which addresses it sees.

Its device runs C, reaches some of the memories at addresses of its own, and is one of those that the steps name. The
driver (`second_core_driver.c`) translates what it is lent by the windows that are made here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bytewright.diagnostics import compile_error
from bytewright.elf.image import ElfSymbol
from bytewright.execute.arrays import device_stack_array
from bytewright.execute.boards.counts import AddressRange
from bytewright.execute.boards.facts import Board
from bytewright.record.names import names_of
from bytewright.record.plan import Plan
from bytewright.target.model import Device, Memory, Target

DEFAULT_STACK_BYTES = 64 << 10
SECOND_CORE_SOURCES = (
    *("second_core.h", "second_core_regions.h", "second_core.S"),
    *("second_core_agent.c", "second_core_driver.c"),
)
# Data of the driver and of the agent on core 1; the message units, and the registers of each processor.
_OWN_DATA = (
    *("second_core_mailbox", "second_core_stack", "second_core_main_stack"),
    *("second_core_driver", "second_core_opened", "second_core_num_opened"),
)
_OWN_REGISTERS = ((0x50003000, 0x50004FFF), (0xE000E000, 0xE000EFFF))
GRANULE_BYTES = 32  # of its memory protection unit


@dataclass(frozen=True, slots=True)
class Window:
    """An interval of addresses of core 0, and where core 1 sees it."""

    memory: str
    first: int
    size_bytes: int
    seen_at: int


@dataclass(frozen=True, slots=True)
class SecondCore:
    """The device that a plan has on the second core.

    Attributes:
        device: As the target describes it.
        windows: What it reaches, through every address that core 0 has for it.
        stack_bytes: The size of its stack, in whole granules.
        harness_view: What is added to an address of the harness's data for core 1 to see it.
        stack_view: The same for its stack.
    """

    device: Device
    windows: tuple[Window, ...]
    stack_bytes: int
    harness_view: int
    stack_view: int

    def seen_by_core_0(self, address: int) -> tuple[str, int] | None:
        """The memory that core 1 sees at an address, and the first address of core 0 for the same byte."""
        for window in self.windows:
            if window.seen_at <= address < window.seen_at + window.size_bytes:
                return window.memory, window.first + address - window.seen_at
        return None

    def seen_by_core_1(self, address: int) -> int | None:
        """Where core 1 sees what core 0 has at an address."""
        for window in self.windows:
            if window.first <= address < window.first + window.size_bytes:
                return address - window.first + window.seen_at
        return None

    def further_ranges(
        self, ranges: Sequence[AddressRange], symbols: Sequence[ElfSymbol]
    ) -> list[AddressRange]:
        """The same arrays as core 1 sees them, and all that its driver has on both cores."""
        views = ((entry, self.seen_by_core_1(entry.first)) for entry in ranges)
        name = f"driver of {self.device.name}"
        own = [symbol for symbol in symbols if symbol.size_bytes and symbol.name in _OWN_DATA]
        return [
            *(
                AddressRange(
                    f"{entry.name} as {self.device.name} sees it", seen_at, entry.last - entry.first + seen_at
                )
                for entry, seen_at in views
                if seen_at is not None
            ),
            *(AddressRange(name, symbol.address, symbol.address + symbol.size_bytes - 1) for symbol in own),
            *(AddressRange(name, first, last) for first, last in _OWN_REGISTERS),
        ]

    def sources(self, plan: Plan) -> tuple[str, ...]:
        """The bundle's C files that are compiled for it, by name."""
        return (Path(names_of(plan).device_source(plan.devices[self.device.name])).name,)

    def assembly_flags(self, plan: Plan) -> list[str]:
        """What the start-up code is told on the command line, because it includes no table."""
        execute = names_of(plan).execute(plan.devices[self.device.name])
        return ["-DHARNESS_SECOND_CORE=1", f"-DHARNESS_DEVICE_EXECUTE={execute}"]

    def macros(self, plan: Plan) -> list[str]:
        """What the harness's C knows of it."""
        names, device = names_of(plan), plan.devices[self.device.name]
        stack = device_stack_array(plan, device.name)
        windows = [
            f"ENTRY({window.first:#010x}u, {window.size_bytes:#x}u, {window.seen_at:#010x}u)"
            for window in self.windows
        ]
        return [
            f'#include "{names.included(names.device_header(device))}"',
            f"#define HARNESS_DEVICE_MEMBER {device.c_name}",
            f"#define HARNESS_DEVICE_WINDOWS(ENTRY) {' '.join(windows)}",
            f"#define HARNESS_DEVICE_VIEW(address) ((address) + {self.harness_view % (1 << 32):#010x}u)",
            f"#define HARNESS_DEVICE_STACK_VIEW(address) ((address) + {self.stack_view % (1 << 32):#010x}u)",
            f"#define HARNESS_DEVICE_STACK_BYTES {self.stack_bytes}",
            f'#define HARNESS_DEVICE_STACK_SECTION "{stack.section}"',
        ]


def second_core_of(plan: Plan, board: Board) -> SecondCore | None:
    """The device of a plan that the board's second core executes; None if the plan needs none.

    Raises:
        CompileError: BW204 if the board cannot be all devices of the plan.
    """
    names = tuple(plan.devices)
    if not names:
        return None
    target = plan.hardware
    obstacle = _obstacle(plan, board, names)
    if obstacle is not None:
        raise compile_error(
            "BW204",
            f"board {board.name} cannot execute what model '{plan.model}' has on device '{names[-1]}'",
            (obstacle,),
            help="run it on the host, or leave everything on the default device",
        )
    device = target.device(names[0])
    context = device.contexts[0]
    stack_bytes = context.max_stack_size_bytes
    harness = board.target.memory(board.harness_memory)
    return SecondCore(
        device,
        _windows(target, device),
        (DEFAULT_STACK_BYTES if stack_bytes is None else stack_bytes) // GRANULE_BYTES * GRANULE_BYTES,
        (board.target.address_seen_by(board.second_device or "", harness.name) or 0) - (harness.base or 0),
        (target.address_seen_by(device.name, context.memory) or 0)
        - (target.memory(context.memory).base or 0),
    )


def _obstacle(plan: Plan, board: Board, names: Sequence[str]) -> str | None:
    """Why the board cannot be these devices of a plan's target, if so."""
    target = plan.hardware
    if board.second_device is None:
        return f"it has one core, which is '{target.default_device_name}'"
    if len(names) > 1:
        return f"it has two cores, the model uses {', '.join(names)} besides '{target.default_device_name}'"
    for pool in plan.device_workspaces:
        return f"'{pool.obtained_by}' is to obtain pool '{pool.name}', and the harness's driver obtains no memory"
    device, isa = target.device(names[0]), board.target.device(board.second_device).isa
    if not device.runs_c or device.isa != isa:
        return f"its second core is a {isa.name} that runs C, '{device.name}' is a {device.isa.name}"
    for name in device.reached_memories:
        seen_at, memory = target.address_seen_by(device.name, name), target.memory(name)
        if seen_at is None or not _is_same(board, memory, seen_at):
            at = "no address" if seen_at is None else f"{seen_at:#010x}"
            return f"device '{device.name}' sees memory '{name}' at {at}, where the board does not have it"
    return None


def _is_same(board: Board, memory: Memory, seen_at: int) -> bool:
    """Whether the board has the same bytes at another address of a memory of the target."""
    if memory.base is None or memory.size_bytes is None:
        return False
    base, size_bytes = memory.base, memory.size_bytes
    places = (
        (whole.offset_of(base, size_bytes), whole.offset_of(seen_at, size_bytes))
        for whole in board.target.memories
    )
    return any(offset is not None and offset == seen for offset, seen in places)


def _windows(target: Target, device: Device) -> tuple[Window, ...]:
    """Of each memory that a device reaches: every address that core 0 may have for it."""
    windows: list[Window] = []
    for name in device.reached_memories:
        seen_at, memory = target.address_seen_by(device.name, name), target.memory(name)
        for first, end in memory.address_ranges():
            windows.append(Window(name, first, end - first, seen_at or 0))
    return tuple(windows)
