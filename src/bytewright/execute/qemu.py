"""Runs a bundle on a bare board that QEMU emulates, and counts what it executes.

An image is the bundle, the harness and the board's start-up code; it takes any number of inferences from a
file. QEMU models neither latency nor caches, so time means nothing here: the cost is the number of executed
instructions, which is exact and repeatable. The count is of the model's run function alone, from its first
instruction to its return.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bytewright.base.programs import execute
from bytewright.diagnostics import CompileError
from bytewright.execute.arrays import ArrayKind
from bytewright.execute.boards.counts import (
    AddressRange,
    CoreCounts,
    CoreWork,
    Counts,
    build_plugin,
    function_at,
    parse_counts,
    parse_work,
    plugin_argument,
    unanswered_ring,
)
from bytewright.execute.boards.device_fault import Surroundings, device_error, hang_error
from bytewright.execute.boards.entry_lines import PIECES_FILE, flags_of_entry, write_pieces
from bytewright.execute.boards.fault import describe_address, fault_error, stack_error
from bytewright.execute.boards.image import BoardImage, build_image, flash_bytes, memory_ranges
from bytewright.execute.boards.layout import Layout
from bytewright.execute.boards.placement import place_on_board
from bytewright.execute.boards.protection import access_at
from bytewright.execute.boards.second_core import SecondCore
from bytewright.execute.description import Bundle
from bytewright.execute.jobs import FailureRecord, read_failure
from bytewright.execute.model_error import model_error
from bytewright.execute.program import MEASURED_FILE, Ending, parse_report, read_report
from bytewright.execute.result import BatchResult, DeviceRun, DeviceWork
from bytewright.execute.settings import Settings
from bytewright.execute.tensors import Array, check_calls, output_size_bytes, pack, unpack_outputs
from bytewright.execute.tools import (
    CrashError,
    ViolationError,
    build_folder,
    ending_of,
    failure,
    find_tool,
)


def run_on_board(
    bundle: Bundle,
    batch: Sequence[Sequence[Array]],
    settings: Settings,
) -> BatchResult:
    """Builds an image, runs all inferences of a batch in it, and counts each.

    Args:
        bundle: The bundle; its target decides the board.
        batch: The inputs of each inference.
        settings: How they run; `by_step` takes the place of `measure_memory`.

    Raises:
        CompileError: BW204 without a board for the target, BW205 for wrong inputs, BW501/BW502 for tools, BW502
            for a fault or the time limit, BW402 if the model returns an error.
        ViolationError: The watch found something.
    """
    checked = check_calls(bundle.plan, batch, settings.entries)
    placement = place_on_board(bundle.plan)
    board = placement.board
    qemu = find_tool("qemu-system-arm", "qemu-system-arm")
    with build_folder() as folder:
        flags = flags_of_entry(bundle.plan, settings.build.compiler) if settings.by_step else ()
        image = build_image(bundle, placement, folder, settings.build, settings.watch, flags)
        flash_size_bytes = flash_bytes(folder, bundle)
        build_plugin(folder, qemu)
        ranges = _ranges(image, bundle) if settings.measure_memory else []
        if settings.by_step:
            write_pieces(folder, bundle)
            ranges = _memories_by_name(image)
        (folder / "inputs.bin").write_bytes(pack(checked, settings.repeat, keep_state=settings.keep_state))
        argument = plugin_argument(image.symbols, ranges, PIECES_FILE if settings.by_step else None)
        facts = _emulate(qemu, image, bundle, argument, settings.timeout_seconds)
        written = (folder / "counts.txt").read_text(encoding="utf-8")
        counts = parse_counts(written, image.symbols, ranges)
        data = (folder / "outputs.bin").read_bytes()
        stack_bytes = int(np.fromfile(folder / MEASURED_FILE, np.int64).max(initial=0))
    if (
        len(data) != output_size_bytes(bundle.plan, checked)
        or len(counts.first.instructions) != len(batch) * settings.repeat
    ):
        raise failure(f"the run of model '{bundle.plan.model}' on {board.name} is not complete")
    devices = _devices(image, facts, counts.second)
    if any(len(device.instructions) != len(counts.first.instructions) for device in devices):
        raise failure(f"the run of model '{bundle.plan.model}' on {board.name} is not complete")
    if stack_bytes > image.table.stack_bytes:
        raise stack_error(board.name, bundle.plan.model, image.table.stack_bytes)
    outputs = unpack_outputs(bundle.plan, data, checked)
    return BatchResult(
        outputs,
        "qemu",
        bundle.plan.hardware.name,
        bundle.plan.workspace_bytes,
        board.name,
        stand_in=placement.stand_in,
        instructions=counts.first.instructions,
        stack_bytes=stack_bytes,
        flash_bytes=flash_size_bytes,
        functions=counts.first.functions,
        traffic=counts.traffic,
        devices=devices,
        work=_work(bundle, devices, counts, parse_work(written, ranges)) if settings.by_step else (),
    )


def _work(
    bundle: Bundle, devices: Sequence[DeviceRun], counts: Counts, work: Sequence[CoreWork]
) -> tuple[DeviceWork, ...]:
    """What each core did in the last inference, under the names of the devices that they are."""
    totals = (counts.first.instructions[-1], *counts.second.instructions[-1:])
    names = (bundle.plan.device.name, *(device.name for device in devices))
    return tuple(
        DeviceWork(name, total, of_core.loaded_bytes, of_core.stored_bytes, of_core.calls)
        for name, total, of_core in zip(names, totals, work, strict=False)
    )


def _devices(image: BoardImage, facts: dict[str, int], counts: CoreCounts) -> tuple[DeviceRun, ...]:
    """What the second core did, if the bundle has work for it."""
    if image.second is None:
        return ()
    stack_bytes = facts["device_stack"]
    return (DeviceRun(image.second.device.name, counts.instructions, stack_bytes, counts.functions),)


def _ranges(image: BoardImage, bundle: Bundle) -> list[AddressRange]:
    """What memory traffic is attributed to, most special first: the harness's arrays, then whole memories."""
    kinds = [ArrayKind.WORKSPACE, ArrayKind.STACK, ArrayKind.DEVICE_STACK]
    if not bundle.plan.io_in_workspace:  # else the model does not touch the harness's copies
        kinds += [ArrayKind.INPUT, ArrayKind.OUTPUT]
    ranges = [array.place for array in image.arrays if array.planned.kind in kinds]
    if image.second is not None:
        ranges += image.second.further_ranges(ranges, image.symbols)
    return [*ranges, *_described_memories(image.layout)]


def _described_memories(layout: Layout) -> list[AddressRange]:
    """The memories, called what a user reads of them."""
    return [replace(memory, name=f"memory {memory.name}") for memory in memory_ranges(layout)]


def _memories_by_name(image: BoardImage) -> list[AddressRange]:
    """The target's memories as each core sees them, and what else the image has of the board."""
    memories = memory_ranges(image.layout)
    if image.second is not None:
        memories += [
            AddressRange(window.memory, window.seen_at, window.seen_at + window.size_bytes - 1)
            for window in image.second.windows
        ]
    known = {region for _, region in image.layout.memories}
    others = [region for region in (image.layout.code, image.layout.harness) if region not in known]
    return [
        *dict.fromkeys(memories),
        *(
            AddressRange(f"({region.name})", region.base, region.base + region.size_bytes - 1)
            for region in others
        ),
    ]


def _emulate(
    qemu: str,
    image: BoardImage,
    bundle: Bundle,
    argument: str,
    timeout_seconds: float,
) -> dict[str, int]:
    """Runs the image until it ends well, with the plugin's `argument`; what it reported."""
    absent = [word for device in ("display", "monitor", "serial", "nic") for word in (f"-{device}", "none")]
    command = [
        *(qemu, "-M", image.board.name, *absent, "-kernel", "image.elf"),
        *("-plugin", argument),
        # One core at a time, in turn: which of them runs when follows from the program alone.
        *(("-accel", "tcg,thread=single") if image.second is not None else ()),
        *("-semihosting-config", "enable=on,target=native"),
    ]
    what = f"model '{bundle.plan.model}' on {image.board.name} (QEMU)"
    try:
        done = execute(command, directory=image.folder, timeout_seconds=timeout_seconds, what=what)
    except CompileError as error:
        hang = _hang_of_device(image, bundle, timeout_seconds)
        raise error if hang is None else hang from error
    report = read_report(image.folder)
    if done.returncode == Ending.VIOLATED:
        raise ViolationError(report)
    facts = parse_report(report)
    if done.returncode != 0:
        raise _run_error(done.returncode, done.stderr, facts, image, bundle)
    return facts


def _run_error(
    returncode: int, output: str, facts: dict[str, int], image: BoardImage, bundle: Bundle
) -> CompileError:
    record = read_failure(image.folder)
    if returncode == Ending.MODEL_FAILED and record is not None and image.second is not None:
        return _device_error(record, facts, image, image.second, bundle)
    if returncode == Ending.MODEL_FAILED and "status" in facts:
        return model_error(bundle, facts["status"])
    if returncode == Ending.FAULTED and "fault_cfsr" in facts:
        function = function_at(image.symbols, facts["fault_pc"]) if "fault_pc" in facts else None
        place = _place_of_fault(image, facts)
        error = fault_error(
            image.board.name, bundle.plan.model, facts, function, image.table.stack_bytes, place
        )
        return CrashError(error.diagnostics)
    run = f"the run of model '{bundle.plan.model}' on {image.board.name}"
    return failure(f"QEMU ended {run} with {ending_of(returncode)}", output)


def _surroundings(image: BoardImage, second: SecondCore, bundle: Bundle) -> Surroundings:
    arrays, memories = [array.place for array in image.arrays], _described_memories(image.layout)
    return Surroundings(bundle.plan, image.board.name, second, arrays, memories)


def _hang_of_device(image: BoardImage, bundle: Bundle, timeout_seconds: float) -> CompileError | None:
    """The error for a run that was stopped, if that is because the second core did not reply."""
    path = image.folder / "counts.txt"
    if image.second is None or not path.is_file():
        return None
    ring = unanswered_ring(path.read_text(encoding="utf-8"))
    if ring is None:
        return None
    return hang_error(_surroundings(image, image.second, bundle), ring, timeout_seconds)


def _device_error(
    record: FailureRecord, facts: dict[str, int], image: BoardImage, second: SecondCore, bundle: Bundle
) -> CompileError:
    surroundings = _surroundings(image, second, bundle)
    function = function_at(image.symbols, facts["fault_pc"]) if "fault_pc" in facts else None
    return device_error(surroundings, record, facts, function)


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
