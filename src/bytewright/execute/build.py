"""What every build of a bundle has in common: options, flags, and the generated table of the harness.

`-ffp-contract=off` keeps float results those of the C text; `-fno-strict-aliasing` is what the generated code
is written for, because bytes of a pool are reused with different element types.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from importlib.resources import files
from math import prod
from pathlib import Path

from bytewright import ir
from bytewright.diagnostics import compile_error
from bytewright.execute.arrays import (
    PlannedArray,
    blob_arrays,
    copy_arrays,
    workspace_arrays,
)
from bytewright.execute.description import Bundle
from bytewright.execute.watch import Watch, step_header, table_header
from bytewright.record.entries import PlannedTensor
from bytewright.record.extents import read_extent
from bytewright.record.names import Names, by_entry, names_of
from bytewright.record.placed_sections import placed_sections
from bytewright.record.plan import Plan

LANGUAGE_FLAGS = ("-std=c99", "-ffp-contract=off", "-fno-strict-aliasing")
LIBRARY_FLAGS = ("-fPIC", "-fvisibility=hidden")  # hidden symbols let the compiler inline
# What keeps a sanitized build quick and its reports readable: lines, but no places of variables, which gcc would follow
# through all the checks; and no function inside another, since checks of every lane of 64 bytes, once for each use of a
# helper, make gcc 20 to 100 times as slow.
CHECKED_CODE_FLAGS = ("-fno-sanitize-recover=all", "-g1", "-fno-inline")
SANITIZER_FLAGS = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer", *CHECKED_CODE_FLAGS)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to compile a bundle.

    Attributes:
        flags: Compiler flags, after those that are always given.
        sanitize: Build with the address and undefined behaviour sanitizers (host only).
        compiler: `gcc`, `clang`, or a compiler's command; `None` for the usual one, which is $CC or cc on the host and
            gcc elsewhere.
        sources: C files of the application, which define what the bundle calls of it.
        device_timeout_seconds: How long a device besides the entry's may take for a job (host only).
    """

    flags: tuple[str, ...] = ("-O2",)
    sanitize: bool = False
    compiler: str | None = None
    sources: tuple[Path, ...] = ()
    device_timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class BoardTable:
    """What the board's harness needs besides: where its arrays go, and how they are protected.

    Attributes:
        stack_bytes: The size of the model's stack.
        stack_section: The section of the model's stack.
        num_protected_regions: Regions of its memory protection unit; 0 if the harness cannot use it.
        second_core: What it knows of a second core, where the bundle uses one.
    """

    stack_bytes: int
    stack_section: str
    num_protected_regions: int
    second_core: tuple[str, ...] = ()


class StepHarness(Enum):
    """What stands between the kernels of a build, by its C file; a watch has one of its own."""

    CLOCK = "step_clock.c"
    HOOK = "step_hook.c"


# C of its own, each with a header of its name.
_OF_HOST_DEVICES = ("host_devices", "device_memories", "device_process")


@dataclass(frozen=True, slots=True)
class HostDevices:
    """What the host's harness needs for devices besides the entry's.

    Attributes:
        commands: By the device's name, what its process is begun with.
        timeout_seconds: How long a job may take.
    """

    commands: Mapping[str, tuple[str, ...]]
    timeout_seconds: float


def harness_source(*parts: str) -> str:
    """The text of one of the stage's own C, assembly or linker files."""
    return files("bytewright.execute").joinpath(*parts).read_text(encoding="utf-8")


def write_harness(
    bundle: Bundle,
    folder: Path,
    sources: Iterable[tuple[str, str]],
    board: BoardTable | None = None,
    watch: Watch | None = None,
    devices: HostDevices | None = None,
    *,
    steps: StepHarness | None = None,
) -> list[str]:
    """Copies the harness's sources into a build folder and writes the table of this bundle beside them.

    Returns the C files.
    """
    copied = [
        ("harness", "harness.h"),
        *(("harness", name) for name in ("jobs.h", "port.h", "adapter.c")),
        *sources,
    ]
    if watch is not None:
        copied.append(("harness", "paranoid.c"))
    if steps is not None:
        copied.append(("harness", steps.value))
    if devices is not None:
        copied += [("worker", f"{name}.{kind}") for name in _OF_HOST_DEVICES for kind in "hc"]
        copied.append(("worker", "worker.h"))
    for subfolder, name in copied:
        (folder / name).write_text(harness_source(subfolder, name), encoding="utf-8")
    has_clock = steps is StepHarness.CLOCK
    table = model_table(bundle.plan, board, watch, devices, has_clock=has_clock)
    (folder / "harness_model.h").write_text(table, encoding="utf-8")
    if steps is not None or watch is not None:
        header = step_header(bundle.names, sees_pools=not has_clock)
        (folder / "harness_step.h").write_text(header, encoding="utf-8")
    if watch is not None:
        (folder / "harness_paranoid.h").write_text(table_header(watch), encoding="utf-8")
    for index, pool in enumerate(bundle.plan.caller_parameters):
        (folder / blob_name(index)).write_bytes(bundle.blob(pool).read_bytes())
    return [name for _, name in copied if name.endswith(".c")]


def staged(bundle: Bundle, folder: Path) -> Bundle:
    """The bundle as links to the files that its plan lists, in a build folder: a compiler finds nothing else there.

    A header that was put beside those of the bundle would else be taken in place of the system's.
    """
    directory = folder.resolve() / "bundle"
    for path in bundle.files:
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).symlink_to((bundle.directory / path).resolve())
    return replace(bundle, directory=directory)


def application_sources(bundle: Bundle, options: BuildOptions) -> list[Path]:
    """The C files of the application.

    Raises:
        CompileError: BW204 if one is missing, or none is given and the bundle calls functions of the application.
    """
    if bundle.plan.externals and not options.sources:
        names = ", ".join(f"'{name}'" for name in bundle.plan.externals)
        raise compile_error(
            "BW204",
            f"model '{bundle.plan.model}' calls functions that the application brings: {names}",
            help="--source FILE.c",
        )
    for source in options.sources:
        if not source.is_file():
            raise compile_error("BW204", f"there is no C file '{source}'")
    return [source.resolve() for source in options.sources]


def include_flags(bundle: Bundle, folder: Path, *, has_steps: bool = False) -> list[str]:
    """The compiler's include folders for the bundle and its harness; and the macro between the kernels."""
    step = ["-include", str(folder.resolve() / "harness_step.h")] if has_steps else []
    # The harness has a linker script of its own.
    sections = [f"-D{bundle.names.check_sections}=0"] if placed_sections(bundle.plan) else []
    return [*(f"-I{path}" for path in (*bundle.include_directories, folder.resolve())), *sections, *step]


def blob_name(index: int) -> str:
    """The file of a parameter blob in the build folder."""
    return f"blob_{index}.bin"


def model_table(
    plan: Plan,
    board: BoardTable | None = None,
    watch: Watch | None = None,
    devices: HostDevices | None = None,
    *,
    has_clock: bool = False,
) -> str:
    """The text of harness_model.h: macros only, described in harness.h."""
    names = names_of(plan)
    workspaces = _own_arrays(names, workspace_arrays(plan), "")
    copies = _own_arrays(names, copy_arrays(plan), ".to")
    blobs = _blobs(plan)
    # What is lent to another device shares no granule of its memory protection.
    io_alignment = 32 if plan.devices else 16
    lines = [
        f'#include "{names.included(names.header)}"',
        f"#define HARNESS_IO_IN_WORKSPACE {int(plan.io_in_workspace)}",
        f"#define HARNESS_IO_ALIGNMENT {max(plan.caller_alignment, io_alignment)}",
        f"#define HARNESS_IO_LINE_BYTES {plan.caller_line_bytes}",
        f"#define HARNESS_PARANOID {0 if watch is None else watch.guard_bytes}",
        *(["#define HARNESS_STEP_CLOCK"] if has_clock else []),
        *_calls(plan, names),
        *_list("INPUTS", _tensors(plan.inputs)),
        *_list("OUTPUTS", _tensors(plan.outputs)),
        _sizes("INPUT_SIZES", plan, plan.inputs),
        _sizes("OUTPUT_SIZES", plan, plan.outputs),
        f"#define HARNESS_NUM_EXTENTS {len(plan.symbols)}",
        *_list("WORKSPACES", workspaces),
        *_list("BLOBS", blobs),
        *_list("COPIES", copies),
        f"#define HARNESS_HAS_OWN_COPIES {int(bool(plan.own_copies))}",
        f"#define HARNESS_MODEL(name) {names.model}_##name",
        f"#define HARNESS_NUM_DEVICES {len(plan.devices)}",
        f"#define HARNESS_HAS_STATES {int(bool(plan.states))}",
        *(f"#define HARNESS_{what} {value}" for t in plan.inputs for what, value in t.pieces.items()),
    ]
    lines += [] if board is None else _of_board(board)
    lines += [] if devices is None else _host_devices(plan, devices)
    return "\n".join(lines) + "\n"


def _blobs(plan: Plan) -> list[str]:
    return [
        f"ENTRY({index}, {pool.c_name}{'.from' if pool.is_copied else ''}, "
        f'"{blob_name(index)}", {pool.alignment}, "{array.section}")'
        for index, (pool, array) in enumerate(zip(plan.caller_parameters, blob_arrays(plan), strict=True))
    ]


def _of_board(board: BoardTable) -> list[str]:
    return [
        f"#define HARNESS_NUM_REGIONS {board.num_protected_regions}",
        f"#define HARNESS_STACK_BYTES {board.stack_bytes}",
        f'#define HARNESS_STACK_SECTION "{board.stack_section}"',
        # What a run may write of the harness's own; board.ld knows the section.
        '#define HARNESS_WRITABLE __attribute__((section(".bss.harness_writable")))',
        *board.second_core,
    ]


def call_of_run(plan: Plan, names: Names) -> str:
    """The function that is one run, in the bundle or in the harness."""
    if len(plan.entries) > 1:
        return "harness_run_entries"
    return names.run if plan.form.is_one_call else "harness_push_all"


def _calls(plan: Plan, names: Names) -> list[str]:
    """The structures of the entries, what goes into them, and how the entries are called."""
    views = by_entry(plan, names)
    structures: list[str] = []
    members: list[str] = []
    planned: dict[ir.Border, list[str]] = {side: [] for side in ir.SIDES}
    for number, (alone, own) in enumerate(views):
        for side in ir.SIDES:
            name = _structure(own, side)
            is_given = f"{side.value}s" in alone.structures_of_run
            structures += [f"ENTRY({name})"] if is_given else []
            for tensor in alone.tensors(side):
                index = plan.tensors(side).index(tensor)
                if is_given:
                    members.append(f"ENTRY({side.value}_buffers, {index}, {name}.{tensor.c_name})")
                elif plan.io_in_workspace:
                    planned[side].append(f"ENTRY({number}, {index}, {tensor.c_name})")
    calls = [
        f"ENTRY({number}, {own.run}({', '.join(_arguments(plan, alone, own))}))"
        for number, (alone, own) in enumerate(views)
    ]
    arguments = ["session", "extents"] if len(views) > 1 else _arguments(plan, plan, names)
    return [
        _table("STRUCTURES", structures),
        _table("MEMBERS", members),
        *(_table(f"PLANNED_{side.name}S", planned[side]) for side in ir.SIDES),
        *_list("ENTRIES", calls),
        *_list("ARGUMENTS", [f"ENTRY({argument})" for argument in arguments]),
        f"#define HARNESS_CALL {call_of_run(plan, names)}({', '.join(arguments)})",
    ]


def _structure(names: Names, side: ir.Border) -> str:
    """What a structure's name ends with behind the model's, as a member of the session is called too."""
    kind = names.inputs_type if side is ir.Border.INPUT else names.outputs_type
    return kind.removeprefix(f"{names.model}_")


def _arguments(whole: Plan, plan: Plan, names: Names) -> list[str]:
    """What the session gives a run of an entry; extents are numbered through all of the whole plan."""
    given = {f"{side.value}s": f"&session->{_structure(names, side)}" for side in ir.SIDES}
    given |= {symbol.name: f"extents[{index}]" for index, symbol in enumerate(whole.symbols)}
    given |= {"context": "session->context", "devices": "&harness_devices"}
    if plan.form.is_one_call:
        return [given[argument] for argument in plan.run_arguments]
    pushed = (whole.inputs.index(tensor) for tensor in plan.inputs)
    arguments = (given[argument] for argument in ("context", *plan.structures_of_run))
    return [*arguments, *(f"session->input_buffers[{index}]" for index in pushed)]


def _host_devices(plan: Plan, devices: HostDevices) -> list[str]:
    """How the processes of devices are begun, and what they hand over."""
    entries = [
        f"ENTRY({index}, {device.c_name}, {', '.join(map(json.dumps, devices.commands[device.name]))})"
        for index, device in enumerate(plan.devices.values())
    ]
    return [
        f"#define HARNESS_DEVICE_ALIGNMENT {max(b.alignment for b in plan.buffers.values())}u",
        f"#define HARNESS_DEVICE_TIMEOUT_MS {round(devices.timeout_seconds * 1000)}L",
        f"#define HARNESS_NUM_DEVICE_MEMORIES {len(plan.device_workspaces)}",
        _table("DEVICES", entries),
    ]


def _own_arrays(names: Names, arrays: Sequence[PlannedArray], member: str) -> list[str]:
    """The harness's arrays for pools of the caller, with the macros that say size and alignment."""
    pools = [(array, array.pool) for array in arrays if array.pool is not None]
    return [
        f"ENTRY({index}, {pool.c_name}{member}, {names.size(pool)}, {names.alignment(pool)}, "
        f'"{array.section}")'
        for index, (array, pool) in enumerate(pools)
    ]


def _tensors(tensors: tuple[PlannedTensor, ...]) -> list[str]:
    return [f"ENTRY({index}, {tensor.c_name}, {tensor.size_bytes})" for index, tensor in enumerate(tensors)]


def _sizes(name: str, plan: Plan, tensors: tuple[PlannedTensor, ...]) -> str:
    """The bytes of each tensor in a run with `extents`, as C expressions."""
    positions = {symbol.name: index for index, symbol in enumerate(plan.symbols)}
    by_name = {symbol.name: symbol for symbol in plan.symbols}
    entries: list[str] = []
    for index, tensor in enumerate(tensors):
        read = [extent for e in tensor.extents if (extent := read_extent(e, by_name)) is not None]
        fixed_bytes = prod(extent for extent in read if isinstance(extent, int)) * tensor.dtype.size_bytes
        factors = [f"(size_t){fixed_bytes}"]
        for extent in read:
            if not isinstance(extent, int):
                factors.append(f"(size_t)({ir.extent_text(extent, lambda n: f'extents[{positions[n]}]')})")
        entries.append(f"ENTRY({index}, {' * '.join(factors)})")
    return _table(name, entries)


def _list(name: str, entries: list[str]) -> list[str]:
    return [f"#define HARNESS_NUM_{name} {len(entries)}", _table(name, entries)]


def _table(name: str, entries: list[str]) -> str:
    return f"#define HARNESS_{name}(ENTRY) {' '.join(entries)}".rstrip()
