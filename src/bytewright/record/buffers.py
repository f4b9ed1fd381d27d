"""Buffers and pools of a plan, as frozen values: what each is, where it lies, how long, and why."""

from dataclasses import dataclass, field
from enum import StrEnum

from bytewright import ir
from bytewright.base.signed import Signed
from bytewright.record.rows import PlannedRing
from bytewright.target.model import PARAMETER_HEADER_BYTES, Loader, Provider, Role


class PlaceKind(StrEnum):
    """What sort of place a buffer ends in."""

    PLANNED = "planned"  # at an offset in a workspace pool, or one of state
    CONSTANT = "constant"  # at an offset in a parameter pool
    STACK = "stack"  # of an execution context
    ARENA = "arena"  # requested from the arena of a pool at run time
    CALLER = "caller"  # the application brings it to each run


class BufferRole(StrEnum):
    """What a buffer is for."""

    INPUT = "input"
    OUTPUT = "output"
    STATE = "state"
    TENSOR = "tensor"
    SCRATCH = "scratch"
    ARENA = "arena"
    PARAMETER = "parameter"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer ends.

    Attributes:
        name: The pool, the execution context, or the caller's tensor.
        offset: In the pool, in bytes; None where it has none.
    """

    kind: PlaceKind
    name: str
    offset: int | None


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A tensor that lies in another one, so that nothing is copied.

    Attributes:
        offset_bytes: Where it begins in that.
        tensor: What it is called in the model's file; None for what the compiler made.
    """

    name: str
    offset_bytes: int
    size_bytes: int
    tensor: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """One buffer.

    Attributes:
        size_bytes: The most that it takes, where that is known only at run time; without padding.
        live: When it is alive, as a half-open interval of ticks; None for what lives inside a kernel.
        first_step, last_step: Those of the steps that use it, of what none uses of those that it is alive in; None for
            what lives inside a kernel.
        scope: Its storage scope.
        candidates: Pools that it might have gone to, preferred first.
        devices: Those that touch it, by way of whatever call.
        reason: How its scope came to be what it is.
        tensor: What it is called in the model's file; None for what the compiler made.
        shape: In elements, with every extent that a run is given at its largest.
        dtype: Of an element.
        scale: Of a tensor of the model's file that is quantised as a whole.
        zero_point: The same.
        line_bytes: Size of the cache lines that it has to itself while it lives, because a device touches it whose view
            of the memory is not coherent; 0 if it may share lines.
        shape_before: Of a tensor or of weights that lost channels: the shape in the model; None if it lost none.
        kept_channels: Of a tensor that lost channels: those of the last axis in the model that are left, in order.
        constant_channels: Of a tensor that lost channels: those in the model that are constant whatever it is given.
        ring: Where it keeps some rows of a tensor only: `shape` is then that of the tensor.
        parts: Tensors that lie in it, by offset.
    """

    name: str
    role: BufferRole
    size_bytes: int
    alignment: int
    place: Place
    live: tuple[int, int] | None
    first_step: int | None
    last_step: int | None
    scope: str | None
    candidates: tuple[str, ...]
    devices: tuple[str, ...]
    reason: str
    tensor: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: ir.DType | None = None
    scale: float | None = None
    zero_point: Signed | None = None
    line_bytes: int = field(default=0, metadata={"omit_empty": True})
    shape_before: tuple[int, ...] | None = field(default=None, metadata={"omit_empty": True})
    kept_channels: tuple[int, ...] = field(default=(), metadata={"omit_empty": True})
    constant_channels: tuple[int, ...] = field(default=(), metadata={"omit_empty": True})
    ring: PlannedRing | None = field(default=None, metadata={"omit_empty": True})
    parts: tuple[PlannedPart, ...] = field(default=(), metadata={"omit_empty": True})

    @property
    def extent_bytes(self) -> int:
        """Bytes that nothing else has while it lives: its own, and what is left of its last cache line."""
        line_bytes = max(self.line_bytes, 1)
        return -(-self.size_bytes // line_bytes) * line_bytes

    @property
    def has_offset(self) -> bool:
        """Whether the plan gives it an offset in a pool. What is requested at run time has none; its arena does."""
        return self.place.kind in (PlaceKind.PLANNED, PlaceKind.CONSTANT)

    @property
    def pool_role(self) -> Role:
        """The role of the pools that may hold it."""
        if self.place.kind is PlaceKind.CONSTANT:
            return Role.PARAMETERS
        return Role.STATE if self.role is BufferRole.STATE else Role.WORKSPACE


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """One pool.

    Attributes:
        c_name: Its name in C.
        capacity_bytes: The limit; None for none.
        used_bytes: One past the last byte used.
        lower_bound_bytes: No plan with these buffers in this pool uses less.
        optimal: Whether the two are equal.
        section: Linker section; None for the compiler's default.
        sha256: Of the bytes of a parameter pool; None for a workspace.
        load: Who brings the bytes of a parameter pool to its memory.
        load_memory: The memory that keeps them until then; None if they need none, or one that is not known.
        read_cost: Of a byte in its memory, relative to the others.
        write_cost: The same.
        obtained_by: The device that obtains it for each run, in a memory that the entry's device does not reach; None
            for a pool that the program has.
    """

    name: str
    c_name: str
    memory: str
    role: Role
    provider: Provider
    capacity_bytes: int | None
    used_bytes: int
    lower_bound_bytes: int
    optimal: bool
    alignment: int
    section: str | None
    sha256: str | None
    load: Loader = Loader.LINKER
    load_memory: str | None = None
    read_cost: int = 1
    write_cost: int = 1
    obtained_by: str | None = field(default=None, metadata={"omit_empty": True})

    @property
    def is_caller(self) -> bool:
        """Whether the application provides the memory."""
        return self.provider is Provider.CALLER

    @property
    def is_copied(self) -> bool:
        """Whether the application's call of `<model>_set_parameters` brings its bytes."""
        return self.load is Loader.COPY and self.used_bytes > 0

    @property
    def is_set(self) -> bool:
        """Whether the context has its address, which a set function puts there."""
        return self.is_caller or self.is_copied

    @property
    def begins_empty(self) -> bool:
        """Whether its array holds nothing that matters when the program starts."""
        return self.role is not Role.PARAMETERS or self.is_copied

    @property
    def header_bytes(self) -> int:
        """What comes before the constants of a parameter pool from the application."""
        has_header = self.role is Role.PARAMETERS and self.is_caller and self.used_bytes > 0
        return PARAMETER_HEADER_BYTES if has_header else 0

    @property
    def loading(self) -> str:
        """How the bytes of a parameter pool come to its memory: `copied from 'flash'`; empty if they begin there."""
        if self.load_memory is None:
            return "copied from the application's memory" if self.load is Loader.COPY else ""
        return f"{'copied' if self.load is Loader.COPY else 'loaded'} from '{self.load_memory}'"


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
