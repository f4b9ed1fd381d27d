"""plan.json, read back: typed and frozen, checked for form but not yet for truth (`inspect` does that).

The reports, the checks and `CompiledModel` all see a plan through these classes, whether it has just been made or
comes from a folder. Nothing here knows how a plan is found, so it stands below all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frozen_mapping import FrozenMapping
from bytewright.ir.types import Symbol
from bytewright.target.load import load_description
from bytewright.target.model import Target

PLAN_FILE = "plan.json"
SCHEMA = 1
# What the plan's hash leaves out: itself, and the digests of files that contain it, which `files_hash` covers.
UNHASHED_KEYS = ("plan_hash", "files", "files_hash")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer ends.

    Attributes:
        kind: "planned", "constant", "stack", "arena" (requested there at run time) or "caller".
        name: The pool, the execution context, or the caller's tensor.
        offset: In the pool, in bytes; None where it has none.
    """

    kind: str
    name: str
    offset: int | None


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """One buffer.

    Attributes:
        role: "input", "output", "tensor", "scratch", "arena" or "parameter".
        size_bytes: The most that it takes, where that is known only at run time.
        live: Half-open interval of ticks; None for what lives inside a kernel.
        first_step: The first step that touches it; None for what lives inside a kernel.
        scope: Its storage scope.
        candidates: Pools that it might have gone to, preferred first.
        reason: How its scope came to be what it is.
        devices: Those that touch it, by way of whatever call.
    """

    name: str
    role: str
    size_bytes: int
    alignment: int
    place: Place
    live: tuple[int, int] | None
    first_step: int | None
    last_step: int | None
    scope: str | None
    candidates: tuple[str, ...]
    reason: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """One pool.

    Attributes:
        c_name: Its name in C.
        role: "workspace" or "parameters".
        provider: "caller" or "generated".
        capacity_bytes: The limit; None for none.
        used_bytes: One past the last byte used.
        lower_bound_bytes: No plan with these buffers in this pool uses less.
        optimal: Whether the two are equal.
        section: Linker section; None for the compiler's default.
        sha256: Of the bytes of a parameter pool; None for a workspace.
        load: Who brings the bytes of a parameter pool to its memory: "linker" or "copy".
        load_memory: The memory that keeps them until then; None if they need none, or one that is not known.
    """

    name: str
    c_name: str
    memory: str
    role: str
    provider: str
    capacity_bytes: int | None
    used_bytes: int
    lower_bound_bytes: int
    optimal: bool
    alignment: int
    section: str | None
    sha256: str | None
    load: str = "linker"
    load_memory: str | None = None

    @property
    def loading(self) -> str:
        """How the bytes of a parameter pool come to its memory: `copied from 'flash'`; empty if they begin there."""
        if self.load_memory is None:
            return "copied from the application's memory" if self.load == "copy" else ""
        return f"{'copied' if self.load == 'copy' else 'loaded'} from '{self.load_memory}'"


@dataclass(frozen=True, slots=True)
class PlannedStack:
    """The stack of one execution context.

    Attributes:
        planned_bytes: Explicit arrays on the worst path.
        size_bytes: That, and the allowance for each call.
        limit_bytes: None for no limit.
        path: Functions on the worst path, the entry first.
    """

    planned_bytes: int
    size_bytes: int
    limit_bytes: int | None
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One call of the entry.

    Attributes:
        ticks: Half-open interval on the clock: reading, the body, writing.
        operators: Those of the model that became this call.
        reads: Buffers that it reads.
        writes: Buffers that it writes.
        scratch: Buffers that it works in.
        alive: For each of them the ticks, half-open, in which the call needs its bytes: from the first use to the last.
    """

    index: int
    ticks: tuple[int, int]
    kernel: str
    device: str
    operators: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    scratch: tuple[str, ...]
    alive: Mapping[str, tuple[int, int]]

    @property
    def touched(self) -> tuple[str, ...]:
        """All buffers of the call, each once."""
        return tuple(dict.fromkeys((*self.reads, *self.writes, *self.scratch)))


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """An input or output of the model; scale and zero point are None for float tensors.

    Attributes:
        buffer: Its buffer. One that the caller provides and no step touches is not among the plan's buffers.
        shape: With every extent that a run is given at its largest; size_bytes is that of this shape.
        extents: The same with the names of such extents.
    """

    name: str
    c_name: str
    buffer: str
    dtype: str
    shape: tuple[int, ...]
    extents: tuple[int | str, ...]
    size_bytes: int
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True, slots=True)
class PlannedLoop:
    """Steps that come again.

    Attributes:
        steps: The first of them and the last.
        inside: Buffers that are born in the loop; others that its steps touch live from its first tick to its last.
    """

    steps: tuple[int, int]
    inside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that plan.json holds.

    Attributes:
        model: The C identifier of the model.
        target: The target's name.
        numerics: The reference that the output equals.
        io: "caller" or "workspace": where inputs and outputs are.
        symbols: Extents that each run is given.
        plan_hash: sha256 of the plan.
        pools: By name: workspaces, then parameters, each in preference order.
        buffers: By name.
        stack: By execution context, that of the entry first.
        hardware: The target that the plan was made for.
        files: sha256 of every other file of the bundle, by path.
        externals: Functions of the application that the steps call, or their kernels do.
    """

    model: str
    target: str
    numerics: str
    io: str
    plan_hash: str
    inputs: tuple[PlannedTensor, ...]
    outputs: tuple[PlannedTensor, ...]
    symbols: tuple[Symbol, ...]
    pools: Mapping[str, PlannedPool]
    buffers: Mapping[str, PlannedBuffer]
    stack: Mapping[str, PlannedStack]
    steps: tuple[PlannedStep, ...]
    loops: tuple[PlannedLoop, ...]
    hardware: Target
    files: Mapping[str, str]
    externals: tuple[str, ...] = ()

    @property
    def extents_text(self) -> str:
        """`batch 1 to 4`: what each run is given; empty if nothing."""
        return ", ".join(f"{symbol.name} {symbol.lower} to {symbol.upper}" for symbol in self.symbols)

    @property
    def workspace_bytes(self) -> int:
        """Bytes of all workspace pools."""
        return sum(pool.used_bytes for pool in self.pools.values() if pool.role == "workspace")

    @property
    def parameter_bytes(self) -> int:
        """Bytes of all parameter pools."""
        return sum(pool.used_bytes for pool in self.pools.values() if pool.role == "parameters")

    @property
    def stack_bytes(self) -> int:
        """What all stacks are promised together."""
        return sum(stack.size_bytes for stack in self.stack.values())

    @property
    def ram_parameter_bytes(self) -> int:
        """Bytes of the parameter pools that lie in memory that can be written, however they come there."""
        writable = {memory.name for memory in self.hardware.memories if memory.is_writable}
        pools = (pool for pool in self.pools.values() if pool.role == "parameters")
        return sum(pool.used_bytes for pool in pools if pool.memory in writable)

    @property
    def ram_bytes(self) -> int:
        """Workspace, stacks as promised, and parameters in memory that can be written.

        Inputs and outputs count where they are in the workspace.
        """
        return self.workspace_bytes + self.stack_bytes + self.ram_parameter_bytes

    @property
    def num_ticks(self) -> int:
        """The end of the clock."""
        return max((step.ticks[1] for step in self.steps), default=0)


def hash_document(document: Mapping[str, Any]) -> str:
    """The plan's hash: sha256 of the document without the keys that depend on it."""
    content = {key: value for key, value in document.items() if key not in UNHASHED_KEYS}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def hash_files(plan_hash: str, files: Mapping[str, str]) -> str:
    """The hash of the list of files: sha256 of the plan's hash and of all paths with their digests."""
    return hashlib.sha256(json.dumps([plan_hash, sorted(files.items())]).encode()).hexdigest()


def read_document(directory: str | PathLike[str]) -> dict[str, Any]:
    """The JSON object in a bundle's plan.json.

    Raises:
        CompileError: BW207.
    """
    directory = Path(directory)
    path = directory / PLAN_FILE
    if not path.is_file():
        raise _not_a_bundle(directory, f"there is no {PLAN_FILE}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _not_a_bundle(directory, f"{PLAN_FILE} cannot be read ({error})") from error
    if not isinstance(document, dict):
        raise _not_a_bundle(directory, f"{PLAN_FILE} is not an object")
    return cast("dict[str, Any]", document)


def read_plan(directory: str | PathLike[str]) -> Plan:
    """The plan of a bundle.

    Raises:
        CompileError: BW207 if there is none or it cannot be understood.
    """
    return understand(read_document(directory), Path(directory))


def understand(document: dict[str, Any], directory: Path) -> Plan:
    """The typed plan of a document that was read from a directory.

    Raises:
        CompileError: BW207 if something is missing, of a wrong type, or twice.
    """
    try:
        return plan_of(document)
    except ValueError as error:
        raise _not_a_bundle(directory, f"{PLAN_FILE} cannot be understood: {error}") from error
    except CompileError as error:
        reason = f"{PLAN_FILE} describes no valid target: {error.diagnostics[0].message}"
        raise _not_a_bundle(directory, reason) from error


def plan_of(document: dict[str, Any]) -> Plan:
    """The typed plan of a document.

    Raises:
        ValueError: Something is missing, of a wrong type, or twice.
        CompileError: BW202, for the target's description.
    """
    whole = _Record(document, PLAN_FILE)
    schema = whole.integer("schema")
    if schema != SCHEMA:
        raise ValueError(f"it has schema {schema}, this version reads schema {SCHEMA}")
    stack = whole.record("stack")
    files = whole.record("files")
    return Plan(
        model=whole.text("model"),
        target=whole.text("target"),
        numerics=whole.text("numerics"),
        io=whole.text("io"),
        plan_hash=whole.text("plan_hash"),
        inputs=tuple(_tensor(entry) for entry in whole.records("inputs")),
        outputs=tuple(_tensor(entry) for entry in whole.records("outputs")),
        symbols=tuple(
            Symbol(entry.text("name"), entry.integer("lower"), entry.integer("upper"))
            for entry in whole.records("symbols")
        ),
        pools=_by_name("pool", [(entry.text("name"), _pool(entry)) for entry in whole.records("pools")]),
        buffers=_by_name(
            "buffer", [(entry.text("name"), _buffer(entry)) for entry in whole.records("buffers")]
        ),
        stack=FrozenMapping({name: _stack(stack.record(name)) for name in stack.keys}),
        steps=tuple(_step(entry) for entry in whole.records("steps")),
        loops=tuple(
            PlannedLoop(entry.interval("steps"), entry.texts("inside")) for entry in whole.records("loops")
        ),
        hardware=load_description(whole.record("target_description").values, PLAN_FILE),
        files=FrozenMapping({name: files.text(name) for name in files.keys}),
        externals=whole.texts("externals") if "externals" in whole.keys else (),
    )


def _not_a_bundle(directory: Path, why: str) -> CompileError:
    return CompileError(
        Diagnostic(
            "BW207",
            f"'{directory}' is not a Bytewright bundle: {why}",
            help="give the folder that 'bytewright compile MODEL -o DIR' wrote",
        )
    )


class _Record:
    """An object of the document, whose members are taken with the type that they must have."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{where} is not an object")
        self.values = cast("dict[str, Any]", value)
        self._where = where

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the members, in order."""
        return tuple(self.values)

    def text(self, key: str) -> str:
        value = self._take(key)
        return value if isinstance(value, str) else self._refuse(key, "a text")

    def optional_text(self, key: str) -> str | None:
        return None if self._take(key) is None else self.text(key)

    def integer(self, key: str) -> int:
        value = self._take(key)
        return value if type(value) is int and value >= 0 else self._refuse(key, "a natural number")

    def optional_integer(self, key: str) -> int | None:
        return None if self._take(key) is None else self.integer(key)

    def flag(self, key: str) -> bool:
        value = self._take(key)
        return value if isinstance(value, bool) else self._refuse(key, "true or false")

    def number(self, key: str, kinds: type[int] | tuple[type, ...]) -> Any:
        value = self._take(key)
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        return value if value is None or is_number else self._refuse(key, "a number")

    def interval(self, key: str) -> tuple[int, int]:
        value = self._take(key)
        if isinstance(value, list):
            items = cast("list[object]", value)
            if len(items) == 2 and all(type(item) is int for item in items):
                return cast("tuple[int, int]", tuple(items))
        return self._refuse(key, "two integers")

    def integers(self, key: str) -> tuple[int, ...]:
        return cast("tuple[int, ...]", self._items(key, int, "a list of integers"))

    def extents(self, key: str) -> tuple[int | str, ...]:
        value = self._take(key)
        items = cast("list[object]", value) if isinstance(value, list) else [None]
        if all(type(item) in (int, str) for item in items):
            return cast("tuple[int | str, ...]", tuple(items))
        return self._refuse(key, "a list of integers and names")

    def texts(self, key: str) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self._items(key, str, "a list of texts"))

    def record(self, key: str) -> _Record:
        return _Record(self._take(key), f"{self._where}: {key}")

    def records(self, key: str) -> list[_Record]:
        items = self._items(key, dict, "a list of objects")
        return [_Record(item, f"{self._where}: {key}[{index}]") for index, item in enumerate(items)]

    def _items(self, key: str, kind: type, description: str) -> tuple[object, ...]:
        value = self._take(key)
        if isinstance(value, list):
            items = cast("list[object]", value)
            if all(type(item) is kind for item in items):
                return tuple(items)
        return self._refuse(key, description)

    def _take(self, key: str) -> Any:
        if key not in self.values:
            raise ValueError(f"{self._where} has no '{key}'")
        return self.values[key]

    def _refuse(self, key: str, description: str) -> Any:
        raise ValueError(f"{self._where}: '{key}' is not {description}")


def _by_name(kind: str, entries: list[tuple[str, Any]]) -> Mapping[str, Any]:
    named = dict(entries)
    if len(named) != len(entries):
        names = [name for name, _ in entries]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two {kind}s are named '{repeated}'")
    return FrozenMapping(named)


def _tensor(entry: _Record) -> PlannedTensor:
    return PlannedTensor(
        name=entry.text("name"),
        c_name=entry.text("c_name"),
        buffer=entry.text("buffer"),
        dtype=entry.text("dtype"),
        shape=entry.integers("shape"),
        extents=entry.extents("extents"),
        size_bytes=entry.integer("size_bytes"),
        scale=entry.number("scale", (int, float)),
        zero_point=entry.number("zero_point", int),
    )


def _pool(entry: _Record) -> PlannedPool:
    return PlannedPool(
        name=entry.text("name"),
        c_name=entry.text("c_name"),
        memory=entry.text("memory"),
        role=entry.text("role"),
        provider=entry.text("provider"),
        capacity_bytes=entry.optional_integer("capacity_bytes"),
        used_bytes=entry.integer("used_bytes"),
        lower_bound_bytes=entry.integer("lower_bound_bytes"),
        optimal=entry.flag("optimal"),
        alignment=entry.integer("alignment"),
        section=entry.optional_text("section"),
        sha256=entry.optional_text("sha256"),
        load=entry.text("load") if "load" in entry.values else "linker",
        load_memory=entry.optional_text("load_memory") if "load_memory" in entry.values else None,
    )


def _buffer(entry: _Record) -> PlannedBuffer:
    place = entry.record("place")
    return PlannedBuffer(
        name=entry.text("name"),
        role=entry.text("role"),
        size_bytes=entry.integer("size_bytes"),
        alignment=entry.integer("alignment"),
        place=Place(place.text("kind"), place.text("name"), place.optional_integer("offset")),
        live=None if entry.values.get("live") is None else entry.interval("live"),
        first_step=entry.optional_integer("first_step"),
        last_step=entry.optional_integer("last_step"),
        scope=entry.optional_text("scope"),
        candidates=entry.texts("candidates"),
        reason=entry.text("reason"),
        devices=entry.texts("devices"),
    )


def _stack(entry: _Record) -> PlannedStack:
    return PlannedStack(
        planned_bytes=entry.integer("planned_bytes"),
        size_bytes=entry.integer("size_bytes"),
        limit_bytes=entry.optional_integer("limit_bytes"),
        path=entry.texts("path"),
    )


def _step(entry: _Record) -> PlannedStep:
    alive = entry.record("alive")
    return PlannedStep(
        index=entry.integer("index"),
        ticks=entry.interval("ticks"),
        kernel=entry.text("kernel"),
        device=entry.text("device"),
        operators=entry.texts("operators"),
        reads=entry.texts("reads"),
        writes=entry.texts("writes"),
        scratch=entry.texts("scratch"),
        alive=FrozenMapping({name: alive.interval(name) for name in alive.keys}),
    )
