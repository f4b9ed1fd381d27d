"""Reads a bundle folder into a typed description: what it needs to run, and nothing about how it was made.

The source of truth is plan.json; the header is only asked for the names of its error codes. A folder that is
not a bundle, or whose plan.json lacks something, is refused here, so that the rest of the stage looks nothing
up twice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from bytewright.bundle_folder import is_inside
from bytewright.c_names import c_identifier
from bytewright.diagnostics import CompileError, compile_error
from bytewright.ir.border import Io
from bytewright.ir.types import Symbol
from bytewright.record.names import Names
from bytewright.target.load import load_description
from bytewright.target.model import Device, Loader, Provider, Role, Target

Array = np.ndarray[Any, Any]
_RUNTIME = "runtime"

_DTYPES: dict[str, str] = {
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "f32": "float32",
    "f64": "float64",
    "bool": "bool",
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output: the name in the model, the struct member in C, and what the buffer holds.

    Attributes:
        shape: With every extent that a run is given at its largest; size_bytes is that of this shape.
        extents: The same with the names of such extents.
    """

    name: str
    c_name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size_bytes: int
    extents: tuple[int | str, ...]

    def shape_for(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """The shape in a run that is given these values of extents."""
        return tuple(values[extent] if isinstance(extent, str) else extent for extent in self.extents)

    def bytes_for(self, values: Mapping[str, int]) -> int:
        """The bytes of that shape."""
        return math.prod(self.shape_for(values)) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class PoolUse:
    """One pool of the plan: how many bytes of it the model uses, who declares the array, and who fills it."""

    name: str
    c_name: str
    memory: str
    role: Role
    provider: Provider
    used_bytes: int
    alignment: int
    load: Loader = Loader.LINKER
    load_memory: str | None = None

    @property
    def is_copied(self) -> bool:
        """Whether the model's set function brings its bytes."""
        return self.load is Loader.COPY and self.used_bytes > 0

    @property
    def begins_empty(self) -> bool:
        """Whether its array holds nothing that matters when the program starts."""
        return self.role is not Role.PARAMETERS or self.is_copied


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle folder, understood.

    Attributes:
        symbols: Extents that each run is given, in the order that `<model>_run` takes them.
        files: What plan.json lists and is there, as paths in the folder; nothing else of it is built.
        externals: Functions that the application brings.
        io_alignment: What the addresses of the caller's inputs and outputs are multiples of.
    """

    directory: Path
    model: str
    target: Target
    io_in_workspace: bool
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    symbols: tuple[Symbol, ...]
    pools: tuple[PoolUse, ...]
    files: tuple[str, ...]
    error_names: Mapping[int, str]
    externals: tuple[str, ...] = ()
    io_alignment: int = 1

    @property
    def device(self) -> Device:
        """The device that runs the entry, with the stack of the run."""
        return self.target.default_device

    @property
    def sources(self) -> tuple[Path, ...]:
        """The C files: those of the model, then those of the runtime."""
        sources = [path for path in self.files if path.endswith(".c")]
        return tuple(self.directory / path for path in sorted(sources, key=lambda p: (_is_runtime(p), p)))

    @property
    def include_directories(self) -> tuple[Path, ...]:
        """Where the C files look for what they include."""
        folders = {path.partition("/")[0] for path in self.files if "/" in path}
        return tuple(self.directory / name for name in ("include", "src", _RUNTIME) if name in folders)

    @property
    def caller_workspaces(self) -> tuple[PoolUse, ...]:
        """Workspace pools whose memory the harness provides, in the order of the plan."""
        return self._pools(Role.WORKSPACE, Provider.CALLER)

    @property
    def caller_parameters(self) -> tuple[PoolUse, ...]:
        """Parameter pools that are blob files."""
        return self._pools(Role.PARAMETERS, Provider.CALLER)

    @property
    def caller_copies(self) -> tuple[PoolUse, ...]:
        """Parameter pools that are copied to memory of the harness."""
        return tuple(pool for pool in self.caller_parameters if pool.is_copied)

    @property
    def own_copies(self) -> tuple[PoolUse, ...]:
        """Parameter pools that are copied to arrays of the C."""
        return tuple(p for p in self._pools(Role.PARAMETERS, Provider.GENERATED) if p.is_copied)

    @property
    def has_generated_workspace(self) -> bool:
        """Whether the C owns memory that changes, so that one context may run at a time."""
        return bool(self._pools(Role.WORKSPACE, Provider.GENERATED))

    @property
    def workspace_bytes(self) -> int:
        """Bytes of all workspace pools that the model uses."""
        return sum(pool.used_bytes for pool in self.pools if pool.role is Role.WORKSPACE)

    @property
    def ram_parameter_bytes(self) -> int:
        """Bytes of the parameter pools that lie in memory that can be written."""
        writable = {memory.name for memory in self.target.memories if memory.is_writable}
        pools = (pool for pool in self.pools if pool.role is Role.PARAMETERS)
        return sum(pool.used_bytes for pool in pools if pool.memory in writable)

    def blob(self, pool: PoolUse) -> Path:
        """The file with a caller-provided parameter pool."""
        return self.directory / Names(self.model).blob(pool.name)

    def status_name(self, status: int) -> str:
        """An error code as the header names it, else its number."""
        name = self.error_names.get(status)
        return f"{name} ({status})" if name else str(status)

    def _pools(self, role: Role, provider: Provider) -> tuple[PoolUse, ...]:
        """Those that hold a byte: of others the C knows nothing."""
        return tuple(p for p in self.pools if p.role is role and p.provider is provider and p.used_bytes)


def _is_runtime(path: str) -> bool:
    return path.startswith(f"{_RUNTIME}/")


def not_a_bundle(directory: Path, why: str) -> CompileError:
    """The error for a folder that cannot be run."""
    return compile_error(
        "BW207",
        f"'{directory}' is not a Bytewright bundle: {why}",
        help="give the folder that 'bytewright compile MODEL -o DIR' wrote",
    )


def read_bundle(directory: str | PathLike[str]) -> Bundle:
    """Reads a bundle folder.

    Raises:
        CompileError: BW207 if plan.json, the header, the sources or a parameter blob are missing or cannot be
            understood.
    """
    directory = Path(directory)
    plan = _read_plan(directory)
    try:
        bundle = _understand(directory, plan)
    except (KeyError, TypeError, ValueError) as error:
        raise not_a_bundle(directory, f"plan.json cannot be understood ({error!r})") from error
    header = directory / "include" / f"{bundle.model}.h"
    blobs = [bundle.blob(pool) for pool in bundle.caller_parameters]
    for path in (path.relative_to(directory).as_posix() for path in (header, *blobs)):
        if path not in bundle.files:
            is_there = (directory / path).is_file()
            raise not_a_bundle(
                directory, f"plan.json does not list {path}" if is_there else f"{path} is missing"
            )
    if not bundle.sources:
        raise not_a_bundle(directory, "plan.json lists no C files")
    return bundle


def _read_plan(directory: Path) -> dict[str, Any]:
    path = directory / "plan.json"
    if not path.is_file():
        raise not_a_bundle(directory, "it has no plan.json")
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise not_a_bundle(directory, f"plan.json cannot be read ({error})") from error
    if not isinstance(plan, dict):
        raise not_a_bundle(directory, "plan.json is not an object")
    plan = cast("dict[str, Any]", plan)
    if plan.get("schema") != 1:
        raise not_a_bundle(
            directory, f"plan.json has schema {plan.get('schema')!r}, this version reads schema 1"
        )
    return plan


def _understand(directory: Path, plan: dict[str, Any]) -> Bundle:
    model = str(plan["model"])
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", model):
        raise ValueError(f"model {model!r} is not a C identifier")
    header = directory / "include" / f"{model}.h"
    symbols = tuple(
        Symbol(str(entry["name"]), int(entry["lower"]), int(entry["upper"])) for entry in plan["symbols"]
    )
    listed = plan["files"]
    if not isinstance(listed, dict) or not all(is_inside(path) for path in cast("dict[str, Any]", listed)):
        raise ValueError("its files are not an object of paths in the folder")
    files = tuple(path for path in sorted(cast("dict[str, Any]", listed)) if (directory / path).is_file())
    return Bundle(
        directory=directory,
        model=model,
        target=load_description(plan["target_description"], "plan.json"),
        io_in_workspace=Io(plan["io"]) is Io.WORKSPACE,
        inputs=tuple(_tensor(entry, symbols) for entry in plan["inputs"]),
        outputs=tuple(_tensor(entry, symbols) for entry in plan["outputs"]),
        symbols=symbols,
        pools=tuple(_pool(entry) for entry in plan["pools"]),
        files=files,
        error_names=_error_names(header, model),
        externals=tuple(str(name) for name in plan.get("externals", ())),
        io_alignment=max(
            (
                int(entry["alignment"])
                for entry in plan.get("buffers", ())
                if entry["place"]["kind"] == "caller"
            ),
            default=1,
        ),
    )


def _tensor(entry: dict[str, Any], symbols: tuple[Symbol, ...]) -> Tensor:
    dtype = np.dtype(_DTYPES[entry["dtype"]])
    shape = tuple(int(extent) for extent in entry["shape"])
    if entry["size_bytes"] != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"size_bytes of {entry['name']!r} is not that of its shape")
    extents = tuple(extent if isinstance(extent, str) else int(extent) for extent in entry["extents"])
    tensor = Tensor(str(entry["name"]), str(entry["c_name"]), dtype, shape, int(entry["size_bytes"]), extents)
    if tensor.shape_for({symbol.name: symbol.upper for symbol in symbols}) != shape:
        raise ValueError(f"extents of {entry['name']!r} are not those of its shape")
    return tensor


def _pool(entry: dict[str, Any]) -> PoolUse:
    return PoolUse(
        name=str(entry["name"]),
        c_name=str(entry.get("c_name") or c_identifier(str(entry["name"]))),
        memory=str(entry["memory"]),
        role=Role(entry["role"]),
        provider=Provider(entry["provider"]),
        used_bytes=int(entry["used_bytes"]),
        alignment=int(entry["alignment"]),
        load=Loader(entry.get("load", Loader.LINKER)),
        load_memory=entry.get("load_memory"),
    )


def _error_names(header: Path, model: str) -> dict[int, str]:
    """The codes of the header's `<MODEL>_ERROR_...` macros or enumerators."""
    if not header.is_file():
        return {}
    pattern = re.compile(rf"\b({re.escape(model.upper())}_ERROR_\w+)\s*=?\s*\(?\s*(-\d+)")
    text = header.read_text(encoding="utf-8", errors="replace")
    return {int(number): name for name, number in pattern.findall(text)}
