"""A linked image of a bundle for a board: compiled, linked, looked into, and its memory protection written.

The image is the bundle, the harness and the board's start-up code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bytewright.diagnostics import CompileError
from bytewright.elf.image import ElfSymbol, Image, loaded_bytes, read_image
from bytewright.execute.arrays import ArrayKind
from bytewright.execute.boards.arrays import ImageArray, check_places, image_arrays
from bytewright.execute.boards.counts import AddressRange, address_of
from bytewright.execute.boards.facts import Board
from bytewright.execute.boards.layout import Layout, board_table, lay_out, linker_script, set_up_spans
from bytewright.execute.boards.placement import Placement
from bytewright.execute.boards.protection import ProtectedRegion, Rights, fitted_regions, region_words
from bytewright.execute.boards.second_core import SECOND_CORE_SOURCES, SecondCore, second_core_of
from bytewright.execute.build import (
    LANGUAGE_FLAGS,
    BoardTable,
    BuildOptions,
    application_sources,
    call_of_run,
    include_flags,
    staged,
    write_harness,
)
from bytewright.execute.description import Bundle
from bytewright.execute.objects import compile_object
from bytewright.execute.tools import compile_c, find_cross_compiler, find_cross_linker
from bytewright.execute.watch import Watch
from bytewright.target.model import Role


@dataclass(frozen=True, slots=True)
class BoardImage:
    """A linked image in its folder.

    Attributes:
        regions: What a run may touch; empty if the board does not protect it.
        second: The device that the board's second core is, if the bundle uses one.
    """

    folder: Path
    layout: Layout
    table: BoardTable
    symbols: tuple[ElfSymbol, ...]
    arrays: tuple[ImageArray, ...]
    regions: tuple[ProtectedRegion, ...]
    second: SecondCore | None = None

    @property
    def board(self) -> Board:
        """The board that it is for."""
        return self.layout.board


def build_image(
    bundle: Bundle,
    placement: Placement,
    folder: Path,
    options: BuildOptions,
    watch: Watch | None = None,
    flags_of_entry: Sequence[str] = (),
) -> BoardImage:
    """Compiles and links the image into a folder; the entry's file with further flags.

    Raises:
        CompileError: BW501 or BW502 for the cross compiler; BW502 if something outgrows its memory; BW405 if an
            array lies in another memory than the target says.
    """
    board, isa = placement.board, placement.isa
    compiler = find_cross_compiler(isa, options.compiler)
    what = f"the cross compiler '{Path(compiler[0]).name}'"
    bundle = staged(bundle, folder)
    layout = lay_out(placement)
    second = second_core_of(bundle.plan, board)
    table = board_table(layout, bundle.plan, second)
    harness_sources = [("boards", "startup.S"), ("boards", "port_board.c"), ("harness", "main.c")]
    harness_sources += [("boards", name) for name in SECOND_CORE_SOURCES if second is not None]
    harness = write_harness(bundle, folder, harness_sources, table, watch)
    shared = [*LANGUAGE_FLAGS, "-ffunction-sections", "-fdata-sections"]
    includes = [
        *include_flags(bundle, folder, has_steps=watch is not None),
        *_addresses(placement, bundle),
    ]
    objects = _objects(bundle)
    for source, product in zip(bundle.sources, objects, strict=True):
        is_of_second = second is not None and source.name in second.sources(bundle.plan)
        core = second.device.isa if second is not None and is_of_second else isa
        command = [*find_cross_compiler(core, options.compiler), *shared]
        own = flags_of_entry if source.name == Path(bundle.names.entry_source).name else ()
        command += [*options.flags, *own, *includes, "-c"]
        compile_object(command, source, product, folder=folder, what=what)
    startup = _compile_startup(bundle, board, second, shared, options, folder, what)
    linker = find_cross_linker(isa, options.compiler)
    objects_of_harness = [f"{source}.o" for source in harness]
    for source, product in zip(harness, objects_of_harness, strict=True):
        compile_object([*linker, *shared, "-O2", *includes, "-c"], source, product, folder=folder, what=what)
    for index, source in enumerate(application_sources(bundle, options)):
        objects.append(f"application_{index}.o")
        command = [*compiler, *shared, "-O2", *includes, "-c", str(source), "-o", objects[-1]]
        compile_c(command, directory=folder, what=what)
    sources = [*startup, *objects_of_harness]
    linking = ["-nostartfiles", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-T", "board.ld"]
    command = [*linker, *shared, "-O2", *linking, *sources, *objects, "-lm", "-o", "image.elf"]
    what = f"{what} (linking for {board.name})"
    link = partial(_link, bundle, layout, table, second, folder, command, what)
    try:
        return link(has_gaps=board.num_protected_regions > 0)
    except CompileError:  # a memory has no room for gaps, or the unit no regions: then do without
        return link(has_gaps=False)


def _compile_startup(
    bundle: Bundle,
    board: Board,
    second: SecondCore | None,
    shared: Sequence[str],
    options: BuildOptions,
    folder: Path,
    what: str,
) -> list[str]:
    """The objects of what runs before C does, on each core."""
    defines = [
        f"-DHARNESS_RUN={call_of_run(bundle.plan, bundle.names)}",
        f"-DHARNESS_NUM_REGIONS={board.num_protected_regions}",
        *(() if second is None else second.assembly_flags(bundle.plan)),
    ]
    command = [*find_cross_compiler(board.isa, options.compiler), *shared, "-O2", *defines, "-c"]
    sources = ["startup.S"] if second is None else ["startup.S", "second_core.S"]
    for source in sources:
        compile_object(command, source, f"{source}.o", folder=folder, what=what)
    return [f"{source}.o" for source in sources]


def _addresses(placement: Placement, bundle: Bundle) -> list[str]:
    """What the C of the bundle, which compares addresses, is told of memories that are moved."""
    names = bundle.names
    return [
        f"-D{names.memory_base(place.memory.name, index)}={place.base:#x}u"
        for place in placement.places
        if place.is_moved
        for index in range(len(place.memory.address_ranges()))
    ]


def _objects(bundle: Bundle) -> list[str]:
    """The bundle's own object files; board.ld finds its parameters by the name."""
    return [f"bundle_{source.stem}.o" for source in bundle.sources]


def _link(
    bundle: Bundle,
    layout: Layout,
    table: BoardTable,
    second: SecondCore | None,
    folder: Path,
    command: Sequence[str],
    what: str,
    *,
    has_gaps: bool,
) -> BoardImage:
    """Links the objects of a folder, and says what may be touched where the board protects it."""
    (folder / "board.ld").write_text(linker_script(layout, bundle.plan, has_gaps=has_gaps), encoding="utf-8")
    compile_c(command, directory=folder, what=what)
    image = read_image(folder / "image.elf")
    arrays = image_arrays(bundle.plan, image.symbols)
    check_places(bundle.plan, arrays, memory_ranges(layout), layout.board.name)
    regions = _protect(folder, layout, bundle, image, arrays) if layout.board.num_protected_regions else ()
    return BoardImage(folder, layout, table, image.symbols, arrays, regions, second)


def _protect(
    folder: Path, layout: Layout, bundle: Bundle, image: Image, arrays: Sequence[ImageArray]
) -> tuple[ProtectedRegion, ...]:
    """Writes regions.bin: the regions outside of runs, then those of a run, which are returned.

    A run may write the arrays that are its own, execute the code, and read all else that the image has.
    """
    board, num_regions, symbols = layout.board, layout.board.num_protected_regions, image.symbols
    code = (address_of(symbols, "__harness_code_start"), address_of(symbols, "__harness_code_end"))
    own = (address_of(symbols, "__harness_bss_start"), address_of(symbols, "__harness_writable_end"))
    spans = [
        (*code, Rights.EXECUTE),
        (*own, Rights.WRITE),
        *(
            (array.place.first, array.place.last + 1, Rights.WRITE if array.is_writable else Rights.READ)
            for array in arrays
            if array.planned.kind is not ArrayKind.DEVICE_STACK
        ),
        # Arrays and gaps alone are in sections of their own; nobody reads the vectors, the processor apart.
        *(
            (section.address, section.address + section.size_bytes, Rights.READ)
            for section in image.sections
            if section.name != ".vectors" and not section.name.endswith(".empty")
        ),
    ]
    regions = fitted_regions(spans, num_regions, f"a run on {board.name}", _fewer_pools(bundle))
    set_up = fitted_regions(
        set_up_spans(layout, code),
        num_regions,
        f"setting up a run on {board.name}",
        "leave memories that the model does not use out of the target file",
    )
    words = region_words(set_up, num_regions) + region_words(regions, num_regions)
    (folder / "regions.bin").write_bytes(words)
    return regions


def _fewer_pools(bundle: Bundle) -> str:
    """The option for one workspace pool, in the largest memory that has any."""
    pools = bundle.plan.pools_of(Role.WORKSPACE)
    sizes = {pool.memory: bundle.plan.hardware.memory(pool.memory).size_bytes or 0 for pool in pools}
    workspace = max(sizes, key=lambda name: sizes[name], default=bundle.plan.device.contexts[0].memory)
    return f"--workspace {workspace}"


def flash_bytes(folder: Path, bundle: Bundle) -> int:
    """Code, constants and initialised data of the bundle's own objects."""
    return sum(loaded_bytes(folder / name) for name in _objects(bundle))


def memory_ranges(layout: Layout) -> list[AddressRange]:
    """The target's memories, through every address that they have."""
    return [
        AddressRange(memory.name, first, first + region.size_bytes - 1)
        for memory, region in layout.memories
        for first in dict.fromkeys((region.base, *(start for start, _ in memory.address_ranges())))
    ]
