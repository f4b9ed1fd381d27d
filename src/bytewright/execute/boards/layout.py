"""Lays a bundle out on a board: which board suits a target, the linker's regions, the linker script.

Linker regions are the target's memories at the target's sizes, so that a pool that outgrows its memory fails
to link. Code and the harness's data share a memory of the target where it covers theirs on the board, and
otherwise have the board's memory for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import Template

from bytewright.c_names import c_identifier
from bytewright.diagnostics import CompileError, Diagnostic, InternalError
from bytewright.execute.boards.facts import BOARDS, Board
from bytewright.execute.boards.load_sections import (
    array_section,
    load_array_section,
    load_sections,
    load_table,
    loaded_pools,
)
from bytewright.execute.boards.protection import GRANULE_BYTES, Rights
from bytewright.execute.build import STACK_OWNER, BoardTable, blob_section, harness_source, memory_section
from bytewright.execute.description import Bundle
from bytewright.target.model import Memory, Provider, Role, Target

DEFAULT_STACK_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class LinkerRegion:
    """An entry of the linker script's MEMORY command."""

    name: str
    base: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything goes.

    Attributes:
        memories: The target's memories and their linker regions, in the target's order.
        code: The region of vectors and code.
        harness: The region of the harness's data.
    """

    board: Board
    memories: tuple[tuple[Memory, LinkerRegion], ...]
    code: LinkerRegion
    harness: LinkerRegion


def board_for(target: Target) -> Board:
    """The board that runs bundles of a target: the one of its name, or one with its ISA and its memories.

    Raises:
        CompileError: BW204 if there is none, with the reason for each board.
    """
    named = BOARDS.get(target.name)
    if named is not None and _obstacle(target, named) is None:
        return named
    for board in BOARDS.values():
        if _obstacle(target, board) is None:
            return board
    raise CompileError(
        Diagnostic(
            "BW204",
            f"no board that QEMU emulates can run a bundle for target '{target.name}'",
            notes=tuple(f"{board.name}: {_obstacle(target, board)}" for board in BOARDS.values()),
            help=f"compile for one of them: --target {' | '.join(BOARDS)}",
        )
    )


def _obstacle(target: Target, board: Board) -> str | None:
    """Why a board cannot run a target's bundles, if so."""
    isa = target.default_device.isa
    if isa != board.isa:
        return f"it has a {board.isa.name}, device '{target.default_device.name}' is a {isa.name}"
    for memory in target.memories:
        if memory.base is None or memory.size_bytes is None:
            return f"memory '{memory.name}' has no address or no size"
        if _place(board, memory) is None:
            return f"it has no memory at {memory.base:#010x} for the {memory.size_bytes} B of '{memory.name}'"
    return None


def _place(board: Board, memory: Memory) -> tuple[str, int] | None:
    """The board's memory and the offset in it where a memory of the target begins."""
    base, size_bytes = _interval(memory)
    for whole in board.memories:
        offset = whole.offset_of(base, size_bytes)
        if offset is not None:
            return whole.name, offset
    return None


def _interval(memory: Memory) -> tuple[int, int]:
    """Base and size of a memory that has both."""
    if memory.base is None or memory.size_bytes is None:
        raise InternalError(f"memory {memory.name!r} has no address or no size")
    return memory.base, memory.size_bytes


def lay_out(target: Target, board: Board) -> Layout:
    """Linker regions for a target that suits the board."""
    memories: list[tuple[Memory, LinkerRegion]] = []
    taken: dict[str, list[tuple[int, LinkerRegion]]] = {}
    for memory in target.memories:
        place = _place(board, memory)
        if place is None:
            raise InternalError(f"memory {memory.name!r} is not on {board.name}")
        whole, offset = place
        own_base, size_bytes = _interval(memory)
        # Where the code is, every address must be one that the processor can fetch from.
        base = board.code_base + offset if whole == board.code_memory else own_base
        region = LinkerRegion(f"memory_{c_identifier(memory.name)}", base, size_bytes)
        memories.append((memory, region))
        taken.setdefault(whole, []).append((offset, region))

    def start_of(whole: str, base: int, name: str) -> LinkerRegion:
        """The target's memory at the start of one of the board's, or what is free up to the first."""
        free = LinkerRegion(name, base, _interval(board.target.memory(whole))[1])
        offset, region = min(
            taken.get(whole, []), key=lambda entry: entry[0], default=(free.size_bytes, free)
        )
        return region if offset == 0 else replace(free, size_bytes=offset)

    harness_base, _ = _interval(board.target.memory(board.harness_memory))
    return Layout(
        board,
        tuple(memories),
        start_of(board.code_memory, board.code_base, "code"),
        start_of(board.harness_memory, harness_base, "harness"),
    )


def board_table(layout: Layout, bundle: Bundle) -> BoardTable:
    """The board's part of the harness's table: the model's stack as the target has it, and the board's protection."""
    device = bundle.device
    limit = device.max_stack_size_bytes
    return BoardTable(
        stack_bytes=(DEFAULT_STACK_BYTES if limit is None else limit) // 8 * 8,
        stack_section=".bss.harness_stack"
        if device.stack_memory is None
        else memory_section(device.stack_memory, STACK_OWNER),
        num_protected_regions=layout.board.num_protected_regions,
    )


def set_up_spans(layout: Layout, code: tuple[int, int]) -> tuple[tuple[int, int, Rights], ...]:
    """What holds outside of runs, where the processor's own map is behind: code and read-only memories cannot be
    written, data memories not executed. Read-only memories come first.
    """
    memories = [(memory, region) for memory, region in layout.memories if region is not layout.code]
    memories.sort(key=lambda entry: entry[0].is_writable)
    return (
        (*code, Rights.EXECUTE),
        *(
            (
                region.base,
                region.base + region.size_bytes,
                Rights.WRITE if memory.is_writable else Rights.READ,
            )
            for memory, region in memories
        ),
    )


def linker_script(layout: Layout, bundle: Bundle, *, has_gaps: bool = False) -> str:
    """The linker script of an image; with gaps, nothing lies directly next to what a run writes."""
    regions = {region.name: region for _, region in layout.memories}
    region_names = {memory.name: region.name for memory, region in layout.memories}
    for region in (layout.code, layout.harness):
        regions.setdefault(region.name, region)
    return Template(harness_source("boards", "board.ld")).substitute(
        regions="\n".join(
            f"    {region.name} (rwx) : ORIGIN = {region.base:#010x}, LENGTH = {region.size_bytes}"
            for region in regions.values()
        ),
        memory_sections="\n".join(
            load_sections(bundle, memory.name, region_names)
            + _memory_sections(memory, region, bundle, _gap(layout, region) if has_gaps else None)
            for memory, region in layout.memories
        ),
        loads=load_table(bundle),
        code_region=layout.code.name,
        harness_region=layout.harness.name,
    )


@dataclass(frozen=True, slots=True)
class _Gap:
    """What is left free next to arrays that a run writes; `at_end` also after the last, where others follow."""

    at_end: bool
    text: str = f". = ALIGN({GRANULE_BYTES}); . += {GRANULE_BYTES};"


def _gap(layout: Layout, region: LinkerRegion) -> _Gap:
    return _Gap(at_end=region is layout.harness)


def _memory_sections(memory: Memory, region: LinkerRegion, bundle: Bundle, gap: _Gap | None) -> str:
    """Two output sections of one memory: what the image brings, and what is empty at start.

    Arrays that the bundle declares are in the memory's section; if the target names none, each is found by its own
    name, which is that of its section with -fdata-sections.
    """
    contents = [f"*({blob_section(memory.name)})"]
    generated = [pool for pool in bundle.pools if pool.provider is Provider.GENERATED]
    inside = [pool for pool in generated if pool.memory == memory.name]
    sections = {pool.name: bundle.target.section_of(bundle.target.pool(pool.name)) for pool in inside}
    for section in dict.fromkeys((memory.section, *sections.values())):
        if section is not None:
            contents.append(f"*({section} {section}.*)")
    for pool in inside:
        if sections[pool.name] is None and not pool.begins_empty:
            contents.append(f"*({array_section(bundle, pool)})")
    for pool in generated:
        if pool.is_copied and pool.load_memory == memory.name and memory.section is None:
            contents.append(f"*({load_array_section(bundle, pool)})")
    contents_are_written = any(
        pool.role is Role.WORKSPACE and pool.used_bytes and sections[pool.name] is not None for pool in inside
    )
    empty = _inputs(_empty_arrays(memory, bundle), contents_are_written, gap)
    # What follows bytes that are loaded from elsewhere would be, too.
    has_loaded = any(pool.memory == memory.name for pool in loaded_pools(bundle))
    place = f"> {region.name} AT> {region.name}" if has_loaded else f"> {region.name}"
    name = f".memory.{c_identifier(memory.name)}"
    return (
        f"    {name} : ALIGN(32) {{ {' '.join(contents)} }} {place}\n"
        f"    {name}.empty (NOLOAD) : ALIGN(32) {{ {' '.join(empty)} }} {place}\n"
    )


@dataclass(frozen=True, slots=True)
class _EmptyArray:
    """An array that holds nothing at start, by its section."""

    section: str
    has_bytes: bool
    is_written: bool


def _empty_arrays(memory: Memory, bundle: Bundle) -> list[_EmptyArray]:
    """Those of a memory in their order; the stack comes last, so that what is behind it is free."""
    arrays = [
        _EmptyArray(memory_section(memory.name, pool.c_name), pool.used_bytes > 0, is_written)
        for pools, is_written in ((bundle.caller_workspaces, True), (bundle.caller_copies, False))
        for pool in pools
        if pool.memory == memory.name
    ]
    arrays += [
        _EmptyArray(array_section(bundle, pool), pool.used_bytes > 0, pool.role is Role.WORKSPACE)
        for pool in bundle.pools
        if pool.provider is Provider.GENERATED and pool.memory == memory.name and pool.begins_empty
        if bundle.target.section_of(bundle.target.pool(pool.name)) is None
    ]
    if bundle.device.stack_memory == memory.name:
        arrays.append(_EmptyArray(memory_section(memory.name, STACK_OWNER), has_bytes=True, is_written=True))
    return arrays


def _inputs(arrays: Sequence[_EmptyArray], is_written_before: bool, gap: _Gap | None) -> list[str]:
    """The arrays as a linker script has them, with gaps between those of which a run writes one or both."""
    inputs: list[str] = []
    has_bytes_before = is_written_before
    for array in arrays:
        if (
            gap is not None
            and array.has_bytes
            and has_bytes_before
            and (is_written_before or array.is_written)
        ):
            inputs.append(gap.text)
        inputs.append(f"*({array.section})")
        if array.has_bytes:
            has_bytes_before, is_written_before = True, array.is_written
    if gap is not None and gap.at_end and is_written_before:
        inputs.append(gap.text)
    return inputs
