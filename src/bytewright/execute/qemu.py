"""Runs a bundle on a bare board that QEMU emulates, and counts what it executes.

An image is the bundle, the harness and the board's start-up code; it takes any number of inferences from a
file. QEMU models neither latency nor caches, so time means nothing here: the cost is the number of executed
instructions, which is exact and repeatable. The count is of the model's run function alone, from its first
instruction to its return.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bytewright.diagnostics import CompileError
from bytewright.execute.arrays import ArrayKind
from bytewright.execute.boards.arrays import ImageArray, check_places, image_arrays
from bytewright.execute.boards.counts import (
    AddressRange,
    ImageSymbol,
    address_of,
    build_plugin,
    function_at,
    parse_counts,
    plugin_argument,
)
from bytewright.execute.boards.facts import Board
from bytewright.execute.boards.fault import describe_address, fault_error, parse_report, stack_error
from bytewright.execute.boards.layout import (
    Layout,
    board_for,
    board_table,
    lay_out,
    linker_script,
    set_up_spans,
)
from bytewright.execute.boards.protection import (
    ProtectedRegion,
    Rights,
    access_at,
    fitted_regions,
    region_words,
)
from bytewright.execute.build import (
    LANGUAGE_FLAGS,
    BoardTable,
    BuildOptions,
    application_sources,
    include_flags,
    staged,
    write_harness,
)
from bytewright.execute.description import Bundle
from bytewright.execute.host import model_error
from bytewright.execute.result import BatchResult
from bytewright.execute.tensors import Array, check_inputs, output_size_bytes, pack, unpack_outputs
from bytewright.execute.tools import (
    TIMEOUT_SECONDS,
    CrashError,
    ViolationError,
    build_folder,
    compile_c,
    ending_of,
    failure,
    find_cross_compiler,
    find_cross_tool,
    find_tool,
)
from bytewright.execute.watch import Watch
from bytewright.programs import execute
from bytewright.target.isa.isa import Isa
from bytewright.target.model import Role

_EXIT_MODEL = 2
_EXIT_FAULT = 3
_EXIT_VIOLATED = 4


@dataclass(frozen=True, slots=True)
class BoardImage:
    """A linked image in its folder.

    Attributes:
        regions: What a run may touch; empty if the board does not protect it.
    """

    folder: Path
    layout: Layout
    table: BoardTable
    symbols: tuple[ImageSymbol, ...]
    arrays: tuple[ImageArray, ...]
    regions: tuple[ProtectedRegion, ...]

    @property
    def board(self) -> Board:
        """The board that it is for."""
        return self.layout.board


def run_on_board(
    bundle: Bundle,
    batch: Sequence[Sequence[Array]],
    *,
    repeat: int = 1,
    options: BuildOptions | None = None,
    measure_memory: bool = False,
    timeout_seconds: float = TIMEOUT_SECONDS,
    watch: Watch | None = None,
) -> BatchResult:
    """Builds an image, runs all inferences of a batch in it, and counts each.

    Args:
        bundle: The bundle; its target decides the board.
        batch: The inputs of each inference.
        repeat: How often each inference runs.
        options: Compiler flags; `sanitize` does not apply.
        measure_memory: Also attribute loads and stores to memory ranges, at half the speed.
        timeout_seconds: Limit of QEMU's run, in host time.
        watch: What a paranoid run watches; None for a usual run.

    Raises:
        CompileError: BW204 without a board for the target, BW205 for wrong inputs, BW501/BW502 for tools, BW502
            for a fault or the time limit, BW402 if the model returns an error.
        ViolationError: The watch found something.
    """
    checked = [check_inputs(bundle.plan, inputs) for inputs in batch]
    board = board_for(bundle.plan.hardware)
    qemu = find_tool("qemu-system-arm", "qemu-system-arm")
    with build_folder() as folder:
        image = build_image(bundle, board, folder, options or BuildOptions(), watch)
        flash_bytes = _flash_bytes(folder, bundle, board.isa)
        build_plugin(folder, qemu)
        ranges = _ranges(image, bundle) if measure_memory else []
        (folder / "inputs.bin").write_bytes(pack(bundle.plan, checked))
        facts = _emulate(qemu, image, bundle, ranges, len(batch), repeat, timeout_seconds)
        counts = parse_counts((folder / "counts.txt").read_text(encoding="utf-8"), image.symbols, ranges)
        data = (folder / "outputs.bin").read_bytes()
    if (
        len(data) != output_size_bytes(bundle.plan) * len(batch)
        or len(counts.instructions) != len(batch) * repeat
    ):
        raise failure(f"the run of model '{bundle.plan.model}' on {board.name} is not complete")
    stack_bytes = facts["stack"]
    if stack_bytes > image.table.stack_bytes:
        raise stack_error(board.name, bundle.plan.model, image.table.stack_bytes)
    outputs = unpack_outputs(bundle.plan, data, checked)
    return BatchResult(
        outputs,
        "qemu",
        bundle.plan.hardware.name,
        bundle.plan.workspace_bytes,
        board.name,
        instructions=counts.instructions,
        stack_bytes=stack_bytes,
        flash_bytes=flash_bytes,
        functions=counts.functions,
        traffic=counts.traffic,
    )


def build_image(
    bundle: Bundle, board: Board, folder: Path, options: BuildOptions, watch: Watch | None = None
) -> BoardImage:
    """Compiles and links the image into a folder.

    Raises:
        CompileError: BW501 or BW502 for the cross compiler; BW502 if something outgrows its memory; BW405 if an
            array lies in another memory than the target says.
    """
    compiler = find_cross_compiler(board.isa, options.compiler)
    what = f"the cross compiler '{Path(compiler[0]).name}'"
    bundle = staged(bundle, folder)
    layout = lay_out(bundle.plan.hardware, board)
    table = board_table(layout, bundle.plan)
    harness_sources = [("boards", "startup.S"), ("boards", "board_main.c")]
    harness = write_harness(bundle, folder, harness_sources, table, watch)
    common = [*compiler, *LANGUAGE_FLAGS, "-ffunction-sections", "-fdata-sections"]
    includes = include_flags(bundle, folder, watch)
    objects = _objects(bundle)
    for source, product in zip(bundle.sources, objects, strict=True):
        command = [*common, *options.flags, *includes, "-c", str(source), "-o", product]
        compile_c(command, directory=folder, what=what)
    linking = ["-nostartfiles", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-T", "board.ld"]
    defines = [
        f"-DHARNESS_RUN={bundle.names.run}",
        f"-DHARNESS_NUM_REGIONS={board.num_protected_regions}",
    ]
    startup = ["-O2", *defines, "startup.S", "-c", "-o", "startup.o"]
    compile_c([*common, *startup], directory=folder, what=what)
    sources = ["startup.o", *harness, *map(str, application_sources(bundle, options))]
    command = [*common, "-O2", *includes, *linking, *sources, *objects, "-lm", "-o", "image.elf"]
    what = f"{what} (linking for {board.name})"
    link = partial(_link, bundle, layout, table, folder, command, what)
    try:
        return link(has_gaps=board.num_protected_regions > 0)
    except CompileError:  # a memory has no room for gaps, or the unit no regions: then do without
        return link(has_gaps=False)


def _objects(bundle: Bundle) -> list[str]:
    """The bundle's own object files; board.ld finds its parameters by the name."""
    return [f"bundle_{source.stem}.o" for source in bundle.sources]


def _link(
    bundle: Bundle,
    layout: Layout,
    table: BoardTable,
    folder: Path,
    command: Sequence[str],
    what: str,
    *,
    has_gaps: bool,
) -> BoardImage:
    """Links the objects of a folder, and says what may be touched where the board protects it."""
    (folder / "board.ld").write_text(linker_script(layout, bundle.plan, has_gaps=has_gaps), encoding="utf-8")
    compile_c(command, directory=folder, what=what)
    symbols = _symbols(folder, layout.board.isa)
    arrays = image_arrays(bundle.plan, symbols)
    check_places(bundle.plan, arrays, _memory_ranges(layout), layout.board.name)
    regions = _protect(folder, layout, bundle, symbols, arrays) if layout.board.num_protected_regions else ()
    return BoardImage(folder, layout, table, symbols, arrays, regions)


def _protect(
    folder: Path, layout: Layout, bundle: Bundle, symbols: Sequence[ImageSymbol], arrays: Sequence[ImageArray]
) -> tuple[ProtectedRegion, ...]:
    """Writes regions.bin: the regions outside of runs, then those of a run, which are returned.

    A run may write the arrays that are its own, execute the code, and read all else that the image has.
    """
    board, num_regions = layout.board, layout.board.num_protected_regions
    code = (address_of(symbols, "__harness_code_start"), address_of(symbols, "__harness_code_end"))
    own = (address_of(symbols, "__harness_bss_start"), address_of(symbols, "__harness_writable_end"))
    spans = [
        (*code, Rights.EXECUTE),
        (*own, Rights.WRITE),
        *(
            (array.place.first, array.place.last + 1, Rights.WRITE if array.is_writable else Rights.READ)
            for array in arrays
        ),
        *((first, end, Rights.READ) for first, end in _allocated_sections(folder, board.isa)),
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


def _allocated_sections(folder: Path, isa: Isa) -> list[tuple[int, int]]:
    """First address and end of the sections that a run may read; those with arrays and gaps alone are not among them.

    Nobody reads the vectors, the processor apart.
    """
    return [
        (int(row[3], 16), int(row[3], 16) + int(row[2], 16))
        for row in _rows(folder, isa, "objdump", "-h", "-w", "image.elf")
        if any(word.startswith("ALLOC") for word in row)
        if row[1] != ".vectors" and not row[1].endswith(".empty")
    ]


def _symbols(folder: Path, isa: Isa) -> tuple[ImageSymbol, ...]:
    """The image's symbols by address."""
    symbols = [
        ImageSymbol(int(row[0], 16), row[-1], row[-2] in "tTwW", int(row[1], 16) if len(row) == 4 else 0)
        for row in _rows(folder, isa, "nm", "-S", "image.elf")
        if len(row) in (3, 4)
    ]
    return tuple(sorted(symbols, key=lambda symbol: (symbol.address, symbol.name)))


def _flash_bytes(folder: Path, bundle: Bundle, isa: Isa) -> int:
    """Code, constants and initialised data of the bundle's own objects."""
    _, *rows = _rows(folder, isa, "size", *_objects(bundle))
    return sum(int(row[0]) + int(row[1]) for row in rows)


def _rows(folder: Path, isa: Isa, name: str, *arguments: str) -> list[list[str]]:
    """The words of each line that a tool prints."""
    tool = find_cross_tool(isa, name)
    return [line.split() for line in compile_c([tool, *arguments], directory=folder, what=tool).splitlines()]


def _ranges(image: BoardImage, bundle: Bundle) -> list[AddressRange]:
    """What memory traffic is attributed to, most special first: the harness's arrays, then whole memories."""
    kinds = [ArrayKind.WORKSPACE, ArrayKind.STACK]
    if not bundle.plan.io_in_workspace:  # else the model does not touch the harness's copies
        kinds += [ArrayKind.INPUT, ArrayKind.OUTPUT]
    ranges = [array.place for array in image.arrays if array.planned.kind in kinds]
    return [*ranges, *_described_memories(image.layout)]


def _described_memories(layout: Layout) -> list[AddressRange]:
    """The memories, called what a user reads of them."""
    return [replace(memory, name=f"memory {memory.name}") for memory in _memory_ranges(layout)]


def _memory_ranges(layout: Layout) -> list[AddressRange]:
    """The target's memories, through every address that they have."""
    return [
        AddressRange(memory.name, first, first + region.size_bytes - 1)
        for memory, region in layout.memories
        for first in dict.fromkeys((region.base, *(start for start, _ in memory.address_ranges())))
    ]


def _emulate(
    qemu: str,
    image: BoardImage,
    bundle: Bundle,
    ranges: Sequence[AddressRange],
    num_inferences: int,
    repeat: int,
    timeout_seconds: float,
) -> dict[str, int]:
    """Runs the image until it ends well; what it reported."""
    absent = [word for device in ("display", "monitor", "serial", "nic") for word in (f"-{device}", "none")]
    command = [
        *(qemu, "-M", image.board.name, *absent, "-kernel", "image.elf"),
        *("-plugin", plugin_argument(image.symbols, ranges)),
        *("-semihosting-config", f"enable=on,target=native,arg={num_inferences},arg={repeat}"),
    ]
    what = f"model '{bundle.plan.model}' on {image.board.name} (QEMU)"
    done = execute(command, directory=image.folder, timeout_seconds=timeout_seconds, what=what)
    path = image.folder / "report.txt"
    report = path.read_text(encoding="utf-8") if path.is_file() else ""
    if done.returncode == _EXIT_VIOLATED:
        raise ViolationError(report)
    facts = parse_report(report)
    if done.returncode != 0:
        raise _run_error(done.returncode, done.stderr, facts, image, bundle)
    return facts


def _run_error(
    returncode: int, output: str, facts: dict[str, int], image: BoardImage, bundle: Bundle
) -> CompileError:
    if returncode == _EXIT_MODEL and "status" in facts:
        return model_error(bundle, -facts["status"])
    if returncode == _EXIT_FAULT and "fault_cfsr" in facts:
        function = function_at(image.symbols, facts["fault_pc"]) if "fault_pc" in facts else None
        place = _place_of_fault(image, facts)
        error = fault_error(
            image.board.name, bundle.plan.model, facts, function, image.table.stack_bytes, place
        )
        return CrashError(error.diagnostics)
    run = f"the run of model '{bundle.plan.model}' on {image.board.name}"
    return failure(f"QEMU ended {run} with {ending_of(returncode)}", output)


def _place_of_fault(image: BoardImage, facts: dict[str, int]) -> str:
    """What lies at the address that the memory protection forbade to a run, and what it may do there."""
    if not image.regions or facts.get("fault_in_run") != 1:
        return ""
    address = facts["fault_mmfar"]
    place = describe_address(
        address, [array.place for array in image.arrays], _described_memories(image.layout)
    )
    right = "the run may only read it" if access_at(image.regions, address) else "the run may not touch it"
    return f"{place}; {right}"
