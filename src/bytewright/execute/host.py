"""Runs a bundle on this machine: as a shared library in this process, or as a program of its own.

The library is what `CompiledModel.run` uses. The program is for sanitizers, which cannot be loaded into a
running Python, and for anything that may crash. Both are timed in C, round the model's run function alone.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from bytewright.diagnostics import CompileError, compile_error
from bytewright.execute.build import (
    LANGUAGE_FLAGS,
    SANITIZER_FLAGS,
    BuildOptions,
    application_sources,
    blob_name,
    include_flags,
    staged,
    watch_flags,
    write_harness,
)
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.tensors import (
    Array,
    check_inputs,
    output_array,
    output_size_bytes,
    pack,
    unpack_outputs,
)
from bytewright.execute.tools import (
    CrashError,
    build_folder,
    compile_c,
    ending_of,
    failure,
    find_host_compiler,
)
from bytewright.execute.watch import Watch
from bytewright.programs import execute

_IO_ALIGNMENT = 16
_EXIT_VIOLATED = 3
_FILL = 0xA5  # HARNESS_WORKSPACE_FILL
_GUARD = 0xC3
_GUARD_BYTES = 64


@dataclass(frozen=True, slots=True, eq=False)
class HostRun:
    """What a program printed and wrote: outputs by inference, and one time for each inference and repetition.

    A paranoid run that found something has a report alone.
    """

    outputs: tuple[tuple[Array, ...], ...]
    nanoseconds: tuple[int, ...]
    report: str


def model_error(bundle: Bundle, status: int) -> CompileError:
    """The error for a status that the model returned to a harness that did all its plan asks for."""
    external = bundle.names.error("EXTERNAL")
    if bundle.plan.externals and bundle.status_name(status).startswith(f"{external} "):
        names = ", ".join(f"'{name}'" for name in bundle.plan.externals)
        return compile_error(
            "BW502",
            f"a function of the application ended the run: {bundle.status_name(status)}",
            notes=(f"model '{bundle.plan.model}' calls {names}, and one of them did not return 0",),
        )
    return compile_error(
        "BW402",
        f"model '{bundle.plan.model}' refused to run and returned {bundle.status_name(status)}",
        notes=("the harness passed memory of exactly the sizes and alignments that the header states",),
        help="compile the model again; the bundle's files do not belong together",
    )


def _build(
    bundle: Bundle,
    folder: Path,
    options: BuildOptions,
    *,
    main: str,
    product: str,
    extra_flags: Sequence[str] = (),
    watch: Watch | None = None,
) -> Path:
    """Compiles bundle and harness into one file of the folder."""
    compiler = find_host_compiler(options.compiler)
    bundle = staged(bundle, folder)
    write_harness(bundle, folder, [("harness", main)], watch=watch)
    command = [
        *compiler,
        *LANGUAGE_FLAGS,
        *options.flags,
        *(SANITIZER_FLAGS if options.sanitize else ()),
        *extra_flags,
        *include_flags(bundle, folder),
        *watch_flags(watch, folder),
        *(str(source) for source in bundle.sources),
        *map(str, application_sources(bundle, options)),
        "adapter.c",
        *(() if watch is None else ("paranoid.c",)),
        main,
        "-o",
        product,
        "-lm",
    ]
    compile_c(command, directory=folder, what=f"the C compiler '{Path(compiler[0]).name}'")
    return folder / product


def run_program(
    bundle: Bundle,
    batch: Sequence[Sequence[Array]],
    *,
    repeat: int = 1,
    options: BuildOptions | None = None,
    timeout_seconds: float = 300.0,
    watch: Watch | None = None,
) -> HostRun:
    """Builds the bundle as a program and runs all inferences of a batch in one process; a watch makes it paranoid.

    Raises:
        CompileError: BW205 for wrong inputs, BW501/BW502 for the compiler, BW502 if the program crashes, is
            stopped by a sanitizer or by the time limit, BW402 if the model returns an error.
    """
    checked = [check_inputs(bundle.plan, inputs) for inputs in batch]
    with build_folder() as folder:
        program = _build(
            bundle, folder, options or BuildOptions(), main="host_main.c", product="program", watch=watch
        )
        (folder / "inputs.bin").write_bytes(pack(bundle.plan, checked))
        blobs = [blob_name(index) for index in range(len(bundle.plan.caller_parameters))]
        command = [
            str(program),
            "inputs.bin",
            "outputs.bin",
            "times.txt",
            str(len(batch)),
            str(repeat),
            *blobs,
        ]
        done = execute(
            command,
            directory=folder,
            timeout_seconds=timeout_seconds,
            what=f"the program of model '{bundle.plan.model}'",
            environment={"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
        )
        if done.returncode == 2 and done.stdout.startswith("status "):
            raise model_error(bundle, int(done.stdout.split()[1]))
        if done.returncode == _EXIT_VIOLATED and watch is not None:
            return HostRun((), (), done.stdout)
        if done.returncode != 0:
            ending = f"the program of model '{bundle.plan.model}' ended with {ending_of(done.returncode)}"
            raise CrashError(failure(ending, done.stderr).diagnostics)
        data = (folder / "outputs.bin").read_bytes()
        times = (folder / "times.txt").read_text(encoding="utf-8").split()
    if len(data) != output_size_bytes(bundle.plan) * len(batch):
        raise failure(f"the program of model '{bundle.plan.model}' wrote {len(data)} B of outputs")
    return HostRun(
        unpack_outputs(bundle.plan, data, checked), tuple(int(time) for time in times), done.stdout
    )


class _Block:
    """Aligned memory of at most one size, with guard bytes on both sides of what is used of it."""

    __slots__ = ("_storage", "address", "view")

    def __init__(self, size_bytes: int, alignment: int) -> None:
        alignment = max(alignment, _IO_ALIGNMENT)
        self._storage = np.full(size_bytes + alignment + 2 * _GUARD_BYTES, _GUARD, dtype=np.uint8)
        start = -(self._storage.ctypes.data + _GUARD_BYTES) % alignment + _GUARD_BYTES
        self.address = self._storage.ctypes.data + start
        self.view: Array = self._storage[:0]
        self.use(size_bytes)
        self.view.fill(_FILL)

    def use(self, size_bytes: int) -> None:
        """Guards all behind the first bytes; their content stays."""
        start = self.address - self._storage.ctypes.data
        self.view = self._storage[start : start + size_bytes]
        self._storage[start + size_bytes :] = _GUARD

    def is_intact(self) -> bool:
        """Whether the bytes next to the block still are what they were."""
        start = self.address - self._storage.ctypes.data
        before, after = self._storage[:start], self._storage[start + self.view.size :]
        return bool((before == _GUARD).all() and (after == _GUARD).all())


def _pointers(addresses: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * (len(addresses) + 1))(*addresses)


class HostModel:
    """A bundle as a shared library in this process."""

    def __init__(self, bundle: Bundle, library: ctypes.CDLL) -> None:
        self.bundle = bundle
        self._library = library
        for name in ("session_size_bytes", "workspace_size_bytes", "workspace_alignment"):
            getattr(library, f"bytewright_{name}").restype = ctypes.c_size_t
        library.bytewright_workspace_size_bytes.argtypes = [ctypes.c_size_t]
        library.bytewright_workspace_alignment.argtypes = [ctypes.c_size_t]
        library.bytewright_set_up.argtypes = [ctypes.c_void_p] * 4
        library.bytewright_set_up.restype = ctypes.c_int32
        library.bytewright_run.argtypes = [*[ctypes.c_void_p] * 4, ctypes.c_size_t, ctypes.c_void_p]
        library.bytewright_run.restype = ctypes.c_int32
        # Memory that the C itself declares serves one context at a time.
        is_shared = bundle.plan.own_workspaces or bundle.plan.own_copies
        self._lock = threading.Lock() if is_shared else None
        self._opening = threading.Lock()
        self._context: HostContext | None = None

    @classmethod
    def build(cls, directory: str | PathLike[str], options: BuildOptions | None = None) -> HostModel:
        """Compiles a bundle and loads it.

        Raises:
            CompileError: BW207, BW501, BW502; BW402 if header and plan.json state different sizes.
        """
        bundle = read_bundle(directory)
        options = options or BuildOptions()
        if options.sanitize:
            raise compile_error(
                "BW204", "a sanitized build is a program of its own and cannot be a shared library"
            )
        # The file may go once it is loaded: the mapping stays. Hidden symbols let the compiler inline.
        flags = ("-shared", "-fPIC", "-fvisibility=hidden")
        with build_folder() as folder:
            path = _build(
                bundle, folder, options, main="host_library.c", product="library.so", extra_flags=flags
            )
            try:
                library = ctypes.CDLL(str(path))
            except OSError as error:
                raise failure("the compiled bundle cannot be loaded", str(error)) from error
        return cls(bundle, library)

    def open(self) -> HostContext:
        """A context with workspaces of its own; contexts may run in different threads at once."""
        return HostContext(self.bundle, self._library, self._lock)

    def prepare(self) -> HostContext:
        """The model's own context, opened now if it was not: the bundle's folder is not needed afterwards."""
        with self._opening:
            if self._context is None:
                self._context = self.open()
            return self._context

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """One inference in the model's own context, after those that run. Raises BW205 for wrong inputs."""
        return self.prepare().run(inputs)[0]


class HostContext:
    """One context of a loaded model: its session, workspaces, inputs and outputs.

    One run at a time has them, from the copy of its inputs to that of its outputs; other threads wait.
    """

    def __init__(self, bundle: Bundle, library: ctypes.CDLL, lock: threading.Lock | None) -> None:
        self._bundle = bundle
        self._library = library
        self._lock = lock or threading.Lock()
        self._session = _Block(library.bytewright_session_size_bytes(), _IO_ALIGNMENT)
        self._workspaces = [self._workspace(index) for index in range(len(bundle.plan.caller_workspaces))]
        self._inputs = [
            _Block(tensor.size_bytes, bundle.plan.caller_alignment) for tensor in bundle.plan.inputs
        ]
        self._outputs = [
            _Block(tensor.size_bytes, bundle.plan.caller_alignment) for tensor in bundle.plan.outputs
        ]
        self._blobs = [self._blob(index) for index in range(len(bundle.plan.caller_parameters))]
        self._copies = [_Block(pool.used_bytes, pool.alignment) for pool in bundle.plan.caller_copies]
        with self._lock:
            status = library.bytewright_set_up(
                self._session.address,
                _pointers([block.address for block in self._workspaces]),
                _pointers([block.address for block in self._blobs]),
                _pointers([block.address for block in self._copies]),
            )
        if status < 0:
            raise model_error(bundle, status)

    def _workspace(self, index: int) -> _Block:
        pool = self._bundle.plan.caller_workspaces[index]
        size_bytes = self._library.bytewright_workspace_size_bytes(index)
        alignment = self._library.bytewright_workspace_alignment(index)
        if (size_bytes, alignment) != (pool.used_bytes, pool.alignment):
            raise compile_error(
                "BW402",
                f"workspace '{pool.name}' is {pool.used_bytes} B at alignment {pool.alignment} in plan.json, "
                f"but {size_bytes} B at alignment {alignment} in the header",
            )
        return _Block(size_bytes, alignment)

    def _blob(self, index: int) -> _Block:
        pool = self._bundle.plan.caller_parameters[index]
        data = self._bundle.blob(pool).read_bytes()
        block = _Block(len(data), pool.alignment)
        block.view[:] = np.frombuffer(data, dtype=np.uint8)
        return block

    def run(self, inputs: Sequence[Array], repeat: int = 1) -> tuple[list[Array], list[int]]:
        """The outputs of one inference, and the nanoseconds of each repetition of it."""
        checked = check_inputs(self._bundle.plan, inputs)
        extents = (ctypes.c_int32 * (len(checked.extents) + 1))(*checked.extents.values())
        nanoseconds = (ctypes.c_int64 * repeat)()
        with self._lock:
            for block, array in zip(self._inputs, checked.arrays, strict=True):
                block.use(array.nbytes)
                block.view[:] = np.frombuffer(array.tobytes(), dtype=np.uint8)
            for block, tensor in zip(self._outputs, self._bundle.plan.outputs, strict=True):
                block.use(tensor.bytes_for(checked.extents))
            status = self._library.bytewright_run(
                self._session.address,
                _pointers([block.address for block in self._inputs]),
                _pointers([block.address for block in self._outputs]),
                extents,
                repeat,
                nanoseconds,
            )
            if status < 0:
                raise model_error(self._bundle, status)
            self._check_guards()
            outputs = [
                output_array(tensor, block.view, checked)
                for block, tensor in zip(self._outputs, self._bundle.plan.outputs, strict=True)
            ]
        return outputs, list(nanoseconds)

    def _check_guards(self) -> None:
        names = [
            *(f"workspace '{pool.name}'" for pool in self._bundle.plan.caller_workspaces),
            *(f"parameters '{pool.name}'" for pool in self._bundle.plan.caller_copies),
            *(f"input '{tensor.name}'" for tensor in self._bundle.plan.inputs),
            *(f"output '{tensor.name}'" for tensor in self._bundle.plan.outputs),
        ]
        blocks = [*self._workspaces, *self._copies, *self._inputs, *self._outputs]
        broken = [name for name, block in zip(names, blocks, strict=True) if not block.is_intact()]
        if broken:
            raise compile_error(
                "BW402", f"model '{self._bundle.plan.model}' wrote outside of {', '.join(broken)}"
            )
