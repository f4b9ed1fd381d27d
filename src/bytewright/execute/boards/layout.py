"""Lays a bundle out on the board that it was placed on: the linker's regions, the linker script.

Linker regions are the target's memories at the target's sizes, so that a pool that outgrows its memory fails
to link. Code and the harness's data share a memory of the target where it covers theirs on the board, and
otherwise have the board's memory for themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import Template

from bytewright.base.c_names import c_identifier
from bytewright.execute.arrays import PlannedArray, blob_section, planned_arrays, stack_array
from bytewright.execute.boards.facts import Board
from bytewright.execute.boards.placement import Placement, stack_bytes
from bytewright.execute.boards.protection import GRANULE_BYTES, Rights
from bytewright.execute.boards.second_core import SecondCore
from bytewright.execute.build import BoardTable, harness_source
from bytewright.record.plan import Plan
from bytewright.target.model import Memory


@dataclass(frozen=True, slots=True)
class LinkerRegion:
    """An entry of the linker script's MEMORY command.

    Attributes:
        base: An address of the board.
    """

    name: str
    base: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything goes.

    Attributes:
        placement: The board, and where the target's memories are on it.
        memories: Those with their addresses on the board, and their linker regions, in the target's order.
        code: The region of vectors and code.
        harness: The region of the harness's data.
    """

    placement: Placement
    memories: tuple[tuple[Memory, LinkerRegion], ...]
    code: LinkerRegion
    harness: LinkerRegion

    @property
    def board(self) -> Board:
        """The board that it is for."""
        return self.placement.board


def lay_out(placement: Placement) -> Layout:
    """Linker regions for a bundle that is placed on a board."""
    board = placement.board
    memories: list[tuple[Memory, LinkerRegion]] = []
    taken: dict[str, list[tuple[int, LinkerRegion]]] = {}
    for place in placement.places:
        memory = place.memory
        region = LinkerRegion(f"memory_{c_identifier(memory.name)}", place.base, place.size_bytes)
        if place.is_moved:
            memory = replace(memory, base=place.base, size_bytes=place.size_bytes, aliases=())
        memories.append((memory, region))
        taken.setdefault(place.board_memory, []).append((place.offset, region))

    def start_of(whole: str, base: int, name: str) -> LinkerRegion:
        """The target's memory at the start of one of the board's, or what is free up to the first."""
        free = LinkerRegion(name, base, board.target.memory(whole).size_bytes or 0)
        offset, region = min(
            taken.get(whole, []), key=lambda entry: entry[0], default=(free.size_bytes, free)
        )
        return region if offset == 0 else replace(free, size_bytes=offset)

    return Layout(
        placement,
        tuple(memories),
        start_of(board.code_memory, board.code_base, "code"),
        start_of(board.harness_memory, board.target.memory(board.harness_memory).base or 0, "harness"),
    )


def board_table(layout: Layout, plan: Plan, second: SecondCore | None = None) -> BoardTable:
    """The board's part of the harness's table: the model's stack as the target has it, and the board's protection."""
    return BoardTable(
        stack_bytes=stack_bytes(plan),
        stack_section=stack_array(plan).section or "",
        num_protected_regions=layout.board.num_protected_regions,
        second_core=() if second is None else tuple(second.macros(plan)),
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


def linker_script(layout: Layout, plan: Plan, *, has_gaps: bool = False) -> str:
    """The linker script of an image; with gaps, nothing lies directly next to what a run writes."""
    regions = {region.name: region for _, region in layout.memories}
    region_names = {memory.name: region.name for memory, region in layout.memories}
    for region in (layout.code, layout.harness):
        regions.setdefault(region.name, region)
    arrays = planned_arrays(plan)
    loaded = [array for array in arrays if array.load_memory is not None]
    sections: list[str] = []
    for memory, region in layout.memories:
        own = [array for array in loaded if array.memory == memory.name]
        sections += [_load_section(plan.model, array, region_names) for array in own]
        # What follows bytes that are loaded from elsewhere would be, too.
        place = f"> {region.name} AT> {region.name}" if own else f"> {region.name}"
        gap = _Gap(at_end=region is layout.harness) if has_gaps else None
        inside = [array for array in arrays if array.memory == memory.name]
        sections.append(_memory_sections(memory, inside, place, gap))
    return Template(harness_source("boards", "board.ld")).substitute(
        regions="\n".join(
            f"    {region.name} (rwx) : ORIGIN = {region.base:#010x}, LENGTH = {region.size_bytes}"
            for region in regions.values()
        ),
        memory_sections="\n".join(sections),
        loads="\n".join(
            f"        LONG(LOADADDR({name})) LONG(ADDR({name})) LONG(ADDR({name}) + SIZEOF({name}))"
            for name in map(_load_name, loaded)
        ),
        code_region=layout.code.name,
        harness_region=layout.harness.name,
    )


def _load_name(array: PlannedArray) -> str:
    return f".memory.{c_identifier(array.memory or '')}.load.{array.symbol}"


def _load_section(model: str, array: PlannedArray, region_names: Mapping[str, str]) -> str:
    """The output section of an array that is loaded from another memory, before all others of its own.

    QEMU puts it at its load address, as a programmer of flash does, and the start-up code copies it. The bundle's bytes
    are found by its object file, because arrays without bytes may share the section.
    """
    inputs = f"{array.section} {array.section}.*" if array.is_named else f"{array.section}"
    content = f"*bundle_{model}_parameters.o({inputs})" if array.is_generated else f"*({inputs})"
    place = f"> {region_names[array.memory or '']} AT> {region_names[array.load_memory or '']}"
    return f"    {_load_name(array)} : ALIGN(32) {{ {content} . = ALIGN(4); }} {place}"


@dataclass(frozen=True, slots=True)
class _Gap:
    """What is left free next to arrays that a run writes; `at_end` also after the last, where others follow."""

    at_end: bool
    text: str = f". = ALIGN({GRANULE_BYTES}); . += {GRANULE_BYTES};"


def _memory_sections(memory: Memory, arrays: Sequence[PlannedArray], place: str, gap: _Gap | None) -> str:
    """Two output sections of one memory: what the image brings, with all that the target names, and what is empty."""
    generated = [array for array in arrays if array.is_generated]
    named = dict.fromkeys([memory.section, *(array.section for array in generated if array.is_named)])
    contents = [f"*({blob_section(memory.name)})"]
    contents += [f"*({section} {section}.*)" for section in named if section is not None]
    contents += [f"*({a.section})" for a in generated if not a.is_named and not a.begins_empty]
    are_written = any(array.is_written and array.is_named and array.has_bytes for array in generated)
    empty = [array for array in arrays if array.begins_empty and not array.is_named]
    name = f".memory.{c_identifier(memory.name)}"
    return (
        f"    {name} : ALIGN(32) {{ {' '.join(contents)} }} {place}\n"
        f"    {name}.empty (NOLOAD) : ALIGN(32) {{ {' '.join(_inputs(empty, are_written, gap))} }} {place}\n"
    )


def _inputs(arrays: Sequence[PlannedArray], is_written_before: bool, gap: _Gap | None) -> list[str]:
    """The arrays as a linker script has them, with gaps between those of which a run writes one or both."""
    inputs: list[str] = []
    has_bytes_before = is_written_before
    for array in arrays:
        is_beside = has_bytes_before and (is_written_before or array.is_written)
        if gap is not None and array.has_bytes and is_beside:
            inputs.append(gap.text)
        inputs.append(f"*({array.section})")
        if array.has_bytes:
            has_bytes_before, is_written_before = True, array.is_written
    if gap is not None and gap.at_end and is_written_before:
        inputs.append(gap.text)
    return inputs
