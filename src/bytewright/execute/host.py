"""Runs a bundle on this machine: as a shared library in this process, or as a program of its own.

The library is what `CompiledModel.run` uses. The program is for sanitizers, which cannot be loaded into a
running Python, and for anything that may crash. Both are timed in C, round the model's run function alone.
"""

from __future__ import annotations

import ctypes
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bytewright import ir
from bytewright.base.programs import execute
from bytewright.diagnostics import CompileError, compile_error
from bytewright.execute.build import (
    LANGUAGE_FLAGS,
    LIBRARY_FLAGS,
    SANITIZER_FLAGS,
    BuildOptions,
    HostDevices,
    StepHarness,
    application_sources,
    include_flags,
    staged,
    write_harness,
)
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.jobs import FailureRecord, read_failure
from bytewright.execute.model_error import model_error
from bytewright.execute.objects import build_from_sources
from bytewright.execute.program import MEASURED_FILE, Ending, parse_report, read_report
from bytewright.execute.result import BatchResult
from bytewright.execute.settings import Settings
from bytewright.execute.step_clock import STEPS_FILE, read_timed_runs
from bytewright.execute.tensors import (
    Array,
    Inputs,
    as_sized,
    check_calls,
    check_inputs,
    output_array,
    output_size_bytes,
    pack,
    unpack_outputs,
)
from bytewright.execute.tools import (
    CrashError,
    ViolationError,
    build_folder,
    ending_of,
    failure,
    find_host_compiler,
    flags_on_this_machine,
)
from bytewright.execute.watch import Watch
from bytewright.execute.worker.commands import build_workers, device_sources
from bytewright.execute.worker.failure import DeviceFacts, device_error
from bytewright.record.buffers import PlannedPool
from bytewright.record.plan import Plan

_IO_ALIGNMENT = 16
_FILL = 0xA5  # HARNESS_WORKSPACE_FILL
_GUARD = 0xC3
_GUARD_BYTES = 64

# Given the step that comes next, or the number of all, and the addresses of the workspaces.
StepHook = Callable[[int, Sequence[int]], None]
_STEP_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p))


class Elsewhere(Protocol):
    """A machine that is emulated: what its programs are compiled by, and what is known of a run."""

    @property
    def compiler(self) -> Sequence[str]:
        """The command of the compiler, with the flags that choose the machine."""
        ...

    def prepare(self, folder: Path, program: Path) -> Sequence[str]:
        """What stands before a program's command, so that it runs."""
        ...

    def finish(self, folder: Path, result: BatchResult) -> BatchResult:
        """The result of a run in a folder, with what was counted there instead of times."""
        ...


def _build(
    bundle: Bundle,
    folder: Path,
    options: BuildOptions,
    *,
    is_library: bool = False,
    watch: Watch | None = None,
    compiler: Sequence[str] = (),
    steps: StepHarness | None = None,
) -> Path:
    """Compiles bundle and harness into one file of the folder: a library, or a program that has it inside.

    For this machine, unless a compiler for another one is given.
    """
    if not compiler:
        compiler = (*find_host_compiler(options.compiler), *flags_on_this_machine(bundle.plan.device.isa))
    bundle = staged(bundle, folder)
    own = ["host_library.c"] if is_library else ["host_library.c", "main.c", "port_host.c"]
    devices = None
    if bundle.plan.devices:
        devices = HostDevices(build_workers(bundle, folder, options), options.device_timeout_seconds)
    others = device_sources(bundle)
    files = [("harness", name) for name in own]
    harness = write_harness(bundle, folder, files, watch=watch, devices=devices, steps=steps)
    command = [
        *compiler,
        *LANGUAGE_FLAGS,
        *options.flags,
        *(SANITIZER_FLAGS if options.sanitize else ()),
        *(LIBRARY_FLAGS if is_library else ()),
        *include_flags(bundle, folder, has_steps=watch is not None or steps is not None),
    ]
    sources = [*(source for source in bundle.sources if source not in others), *map(Path, harness)]
    product = folder / ("library.so" if is_library else "program")
    link = ("-shared",) if is_library else ()
    applications = application_sources(bundle, options)
    build_from_sources(command, sources, product, folder=folder, link=link, applications=applications)
    return product


def run_program(
    bundle: Bundle,
    batch: Sequence[Sequence[Array]],
    settings: Settings,
    elsewhere: Elsewhere | None = None,
) -> BatchResult:
    """Builds the bundle as a program and runs all inferences of a batch in one process; a watch makes it paranoid.

    It is a program of this machine, or of one that is emulated, elsewhere.

    Raises:
        CompileError: BW205 for wrong inputs, BW501/BW502 for the compiler, BW502 if the program crashes, is
            stopped by a sanitizer or by the time limit, BW402 if the model returns an error.
        ViolationError: The watch found something.
    """
    checked = check_calls(bundle.plan, batch, settings.entries)
    what = f"the program of model '{bundle.plan.model}'"
    with build_folder() as folder:
        compiler = () if elsewhere is None else elsewhere.compiler
        steps = StepHarness.CLOCK if settings.by_step else None
        options, watch = settings.build, settings.watch
        program = _build(bundle, folder, options, watch=watch, compiler=compiler, steps=steps)
        emulator = () if elsewhere is None else elsewhere.prepare(folder, program)
        (folder / "inputs.bin").write_bytes(pack(checked, settings.repeat, keep_state=settings.keep_state))
        done = execute(
            [*emulator, str(program)],
            directory=folder,
            timeout_seconds=settings.timeout_seconds,
            what=what,
            environment={"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
        )
        report = read_report(folder)
        if done.returncode == Ending.MODEL_FAILED and "status" in parse_report(report):
            raise _run_error(bundle, options, parse_report(report), folder)
        if done.returncode == Ending.VIOLATED and watch is not None:
            raise ViolationError(report)
        if done.returncode != 0:
            ending = f"{what} ended with {ending_of(done.returncode)}"
            raise CrashError(failure(ending, done.stderr).diagnostics)
        data = (folder / "outputs.bin").read_bytes()
        if len(data) != output_size_bytes(bundle.plan, checked):
            raise failure(f"{what} wrote {len(data)} B of outputs")
        nanoseconds = np.fromfile(folder / MEASURED_FILE, np.int64)
        runs = read_timed_runs((folder / STEPS_FILE).read_bytes()) if settings.by_step else ()
        result = _result(bundle.plan, unpack_outputs(bundle.plan, data, checked), nanoseconds.tolist())
        result = replace(result, timed_runs=runs)
        return result if elsewhere is None else elsewhere.finish(folder, result)


def _run_error(bundle: Bundle, options: BuildOptions, facts: dict[str, int], folder: Path) -> CompileError:
    """The error for a run that the model ended, or a device."""
    record = read_failure(folder)
    if record is not None:
        places = [
            (f"workspace '{pool.name}'", facts[f"workspace_{index}"], pool.used_bytes)
            for index, pool in enumerate(bundle.plan.caller_workspaces)
        ]
        found = DeviceFacts.of(record, options.device_timeout_seconds, places)
        return device_error(bundle, found)
    return model_error(bundle, facts["status"])


def run_library(
    bundle: Bundle,
    batch: Sequence[Sequence[Array]],
    settings: Settings,
) -> BatchResult:
    """Builds the bundle as a library and runs all inferences of a batch in this process; errors as of `HostModel`."""
    checked = check_calls(bundle.plan, batch, settings.entries)  # before the C compiler takes its time
    context = HostModel.build(bundle.directory, settings.build).open(keep_state=settings.keep_state)
    runs = [context.run_checked(inputs, settings.repeat) for inputs in checked]
    outputs = tuple(tuple(arrays) for arrays, _ in runs)
    return _result(bundle.plan, outputs, (time for _, times in runs for time in times))


def _result(plan: Plan, outputs: tuple[tuple[Array, ...], ...], nanoseconds: Iterable[int]) -> BatchResult:
    microseconds = tuple(time / 1000 for time in nanoseconds)
    return BatchResult(outputs, "host", plan.hardware.name, plan.workspace_bytes, microseconds=microseconds)


class _Block:
    """Aligned memory of at most one size, with guard bytes on both sides of what is used of it."""

    __slots__ = ("_start", "_storage", "address", "name", "view")

    def __init__(self, name: str, size_bytes: int, alignment: int) -> None:
        alignment = max(alignment, _IO_ALIGNMENT)
        self.name = name
        self._storage = np.full(size_bytes + 2 * alignment + 2 * _GUARD_BYTES, _GUARD, dtype=np.uint8)
        self._start = -(self._storage.ctypes.data + _GUARD_BYTES) % alignment + _GUARD_BYTES
        self.address = self._storage.ctypes.data + self._start
        self.view: Array = self._storage[:0]
        self.use(size_bytes)
        self.view.fill(_FILL)

    def use(self, size_bytes: int) -> None:
        """Guards all behind the first bytes; their content stays."""
        end = self._start + size_bytes
        self.view = self._storage[self._start : end]
        self._storage[end:] = _GUARD

    def is_intact(self) -> bool:
        """Whether the bytes next to the block still are what they were."""
        before, after = self._storage[: self._start], self._storage[self._start + self.view.size :]
        return bool((before == _GUARD).all() and (after == _GUARD).all())


def _pointers(blocks: Sequence[_Block]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * (len(blocks) + 1))(*(block.address for block in blocks))


class _DeviceProcesses:
    """The other devices of a loaded model: they begin at the first run, and end with the last who has this."""

    def __init__(
        self, library: ctypes.CDLL, timeout_seconds: float, folder: tempfile.TemporaryDirectory[str]
    ) -> None:
        self.timeout_seconds = timeout_seconds
        self._library = library
        self._folder = folder  # of the programs that they are begun with
        library.harness_failure_of_device.restype = ctypes.POINTER(FailureRecord)
        weakref.finalize(self, library.harness_stop_devices)

    def failure(self) -> FailureRecord | None:
        """What the last run failed at, if that was a device."""
        record = self._library.harness_failure_of_device().contents
        return record if record.kind else None


class HostModel:
    """A bundle as a shared library in this process; its other devices, if it has any, are processes."""

    def __init__(
        self,
        bundle: Bundle,
        library: ctypes.CDLL,
        options: BuildOptions,
        folder: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self.bundle = bundle
        self._library = library
        self._devices = (
            None if folder is None else _DeviceProcesses(library, options.device_timeout_seconds, folder)
        )
        library.harness_set_up.argtypes = [ctypes.c_void_p] * 5
        library.harness_repeat.argtypes = [*[ctypes.c_void_p] * 4, ctypes.c_size_t, ctypes.c_void_p]
        # Memory that the C itself declares serves one context at a time.
        is_shared = bundle.plan.own_workspaces or bundle.plan.own_copies or bundle.plan.devices
        self._lock = threading.Lock() if is_shared else None
        self._opening = threading.Lock()
        self._context: HostContext | None = None
        self._hook: Any = None

    @classmethod
    def build(
        cls,
        directory: str | PathLike[str],
        options: BuildOptions | None = None,
        *,
        steps: StepHarness | None = None,
    ) -> HostModel:
        """Compiles a bundle and loads it.

        Args:
            directory: The bundle.
            options: How to compile.
            steps: What stands between the kernels: nothing, or the hook of `on_step`.

        Raises:
            CompileError: BW207, BW501, BW502; BW402 if header and plan.json state different sizes.
        """
        bundle = read_bundle(directory)
        options = options or BuildOptions()
        if options.sanitize:
            raise compile_error(
                "BW204", "a sanitized build is a program of its own and cannot be a shared library"
            )
        with build_folder() as folder:
            # The file may go once it is loaded: the mapping stays. Programs of devices stay with the model.
            kept = tempfile.TemporaryDirectory(prefix="bytewright-") if bundle.plan.devices else None
            place = folder if kept is None else Path(kept.name)
            path = _build(bundle, place, options, is_library=True, steps=steps)
            try:
                library = ctypes.CDLL(str(path))
            except OSError as error:
                raise failure("the compiled bundle cannot be loaded", str(error)) from error
        return cls(bundle, library, options, kept)

    def open(self, *, keep_state: bool = False) -> HostContext:
        """A context with workspaces of its own; contexts may run in different threads at once.

        With `keep_state` a run goes on from where the last one ended; else each begins like the first.
        """
        return HostContext(self.bundle, self._library, self._lock, self._devices, keep_state=keep_state)

    def prepare(self) -> HostContext:
        """The model's own context, opened now if it was not: the bundle's folder is not needed afterwards."""
        with self._opening:
            if self._context is None:
                self._context = self.open()
            return self._context

    def on_step(self, hook: StepHook) -> None:
        """Has a function called before each step of every run, and after the last; for a build with the hook."""
        num_pools = len(self.bundle.plan.workspaces)

        def called(step: int, pools: Any) -> None:
            hook(step, [pools[index] for index in range(num_pools)])

        self._hook = _STEP_HOOK(called)  # which C knows by its address alone
        self._library.harness_set_step_hook(self._hook)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """One inference in the model's own context, after those that run. Raises BW205 for wrong inputs."""
        return self.prepare().run(inputs)[0]


class HostContext:
    """One context of a loaded model: its session, workspaces, inputs and outputs.

    One run at a time has them, from the copy of its inputs to that of its outputs; other threads wait.
    """

    def __init__(
        self,
        bundle: Bundle,
        library: ctypes.CDLL,
        lock: threading.Lock | None,
        devices: _DeviceProcesses | None = None,
        *,
        keep_state: bool = False,
    ) -> None:
        self._bundle = bundle
        self._devices = devices
        self._library = library
        self._lock = lock or threading.Lock()
        plan = bundle.plan
        self._session, self._context = (
            _Block(what, ctypes.c_size_t.in_dll(library, f"harness_{what}_size_bytes").value, _IO_ALIGNMENT)
            for what in ("session", "context")
        )
        self._workspaces = self._workspace_blocks()
        self._inputs = self._io_blocks(ir.Border.INPUT)
        self._outputs = self._io_blocks(ir.Border.OUTPUT)
        self._blobs = [self._blob(pool) for pool in plan.caller_parameters]
        self._copies = [
            _Block(f"parameters '{pool.name}'", pool.used_bytes, pool.alignment)
            for pool in plan.caller_copies
        ]
        with self._lock:
            status = library.harness_set_up(
                self._session.address,
                self._context.address,
                *map(_pointers, (self._workspaces, self._blobs, self._copies)),
            )
        if status < 0:
            raise model_error(bundle, status)
        library.harness_keep_state(ctypes.c_void_p(self._session.address), int(keep_state))

    def _workspace_blocks(self) -> list[_Block]:
        pools = self._bundle.plan.caller_workspaces
        array = ctypes.c_size_t * len(pools)
        sizes, alignments = (
            array.in_dll(self._library, f"harness_workspace_{what}") for what in ("size_bytes", "alignment")
        )
        for pool, size_bytes, alignment in zip(pools, sizes, alignments, strict=True):
            if (size_bytes, alignment) != (pool.used_bytes, pool.alignment):
                raise compile_error(
                    "BW402",
                    f"workspace '{pool.name}' is {pool.used_bytes} B at alignment {pool.alignment} in plan.json, "
                    f"but {size_bytes} B at alignment {alignment} in the header",
                )
        return [_Block(f"workspace '{pool.name}'", pool.used_bytes, pool.alignment) for pool in pools]

    def _io_blocks(self, border: ir.Border) -> list[_Block]:
        plan = self._bundle.plan
        return [
            _Block(f"{border.value} '{tensor.name}'", tensor.size_bytes, plan.caller_alignment)
            for tensor in plan.tensors(border)
        ]

    def _blob(self, pool: PlannedPool) -> _Block:
        data = self._bundle.blob(pool).read_bytes()
        block = _Block(f"blob '{pool.name}'", len(data), pool.alignment)
        block.view[:] = np.frombuffer(data, dtype=np.uint8)
        return block

    def reset(self) -> None:
        """What survives runs is as before the first one."""
        with self._lock:
            status = self._library.harness_reset_state(ctypes.c_void_p(self._session.address))
        if status < 0:
            raise model_error(self._bundle, status)

    def run(self, inputs: Sequence[Array], entry: str | None = None) -> tuple[list[Array], list[int]]:
        """As `run_checked`, of inputs that are looked at here: of an entry, or of all."""
        return self.run_checked(check_inputs(self._bundle.plan, inputs, entry))

    def run_checked(self, checked: Inputs, repeat: int = 1) -> tuple[list[Array], list[int]]:
        """The outputs of one inference, and the nanoseconds of each repetition of it."""
        extents = (ctypes.c_int32 * (len(checked.extents) + 1))(*checked.extents.values())
        nanoseconds = (ctypes.c_int64 * repeat)()
        with self._lock:
            for block, array in zip(self._inputs, checked.arrays, strict=True):
                block.use(array.nbytes)
                block.view[:] = np.frombuffer(array.tobytes(), dtype=np.uint8)
            for block, tensor in zip(self._outputs, self._bundle.plan.outputs, strict=True):
                block.use(tensor.bytes_for(checked.extents))
            inputs_at, outputs_at = _pointers(self._inputs), _pointers(self._outputs)
            entry = -1 if checked.entry is None else checked.entry
            self._library.harness_choose(ctypes.c_void_p(self._session.address), entry)
            status = self._library.harness_repeat(
                self._session.address, inputs_at, outputs_at, extents, repeat, nanoseconds
            )
            if status < 0:
                raise self._error(status)
            self._check_guards()
            own = checked.outputs_of(self._bundle.plan)
            outputs = [
                output_array(tensor, block.view, checked)
                for block, tensor in zip(self._outputs, self._bundle.plan.outputs, strict=True)
                if tensor in own
            ]
            outputs = as_sized(own, outputs, checked)
        return outputs, list(nanoseconds)

    def _error(self, status: int) -> CompileError:
        """The error for a run that the model ended, or a device."""
        record = None if self._devices is None else self._devices.failure()
        if self._devices is not None and record is not None:
            blocks = (*self._workspaces, *self._inputs, *self._outputs, *self._blobs, *self._copies)
            places = [(block.name, block.address, block.view.size) for block in blocks]
            return device_error(self._bundle, DeviceFacts.of(record, self._devices.timeout_seconds, places))
        plan = self._bundle.plan
        # Outputs in the workspace are taken from there after a run that went well.
        outputs = () if plan.io_in_workspace else zip(plan.outputs, self._outputs, strict=True)
        asked = {tensor.name: int(block.view.view(np.int32)[0]) for tensor, block in outputs if tensor.most}
        return model_error(self._bundle, status, asked)

    def _check_guards(self) -> None:
        blocks = (*self._workspaces, *self._copies, *self._inputs, *self._outputs)
        broken = [block.name for block in blocks if not block.is_intact()]
        if broken:
            raise compile_error(
                "BW402", f"model '{self._bundle.plan.model}' wrote outside of {', '.join(broken)}"
            )
