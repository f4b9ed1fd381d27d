"""What the hardware is, as frozen values: memories, devices that reach them, pools lent to the compiler.

Everything here is data that was checked before it was built (`load.py`, `options.py`), so that the stages
look things up and never validate. Where something physically is (`Memory`) and what it is for (`Role`) are
two types. Sizes are bytes; a size of `None` means that there is no limit, which only a memory that was
declared `"unlimited"` (the host's) can have.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, TypeVar

from bytewright.base.c_names import c_identifier
from bytewright.diagnostics import InternalError
from bytewright.target.isa.isa import Isa


class MemoryAccess(Enum):
    """What running code may do with a memory."""

    READ_WRITE = "rw"
    READ_ONLY = "r"


class Role(StrEnum):
    """What a pool is for; the order is the order of pools in a target."""

    WORKSPACE = "workspace"  # read and written, dead after a run
    PARAMETERS = "parameters"  # constants
    STATE = "state"  # survives between runs
    IO = "io"  # inputs and outputs


# What comes before the constants in a parameter pool that the application provides: magic, size, hash.
PARAMETER_HEADER_BYTES = 32


class Provider(StrEnum):
    """Who declares the array behind a pool."""

    CALLER = "caller"  # the application passes a pointer at run time
    GENERATED = "generated"  # the generated C declares it in the memory's section


class Loader(StrEnum):
    """Who brings the bytes of a parameter pool to where they are read, its memory, before the first run."""

    LINKER = (
        "linker"  # the linker script alone: in place, or at a load address from which the startup code copies
    )
    COPY = "copy"  # `<model>_set_parameters`


class Rank(Enum):
    """Ranks of storage scopes: the closed set that the thread hierarchy gives."""

    GLOBAL = "global"
    SHARED = "shared"
    WARP = "warp"
    LOCAL = "local"


class Unlimited(Enum):
    """The type of `UNLIMITED`, the limit that admits every size."""

    UNLIMITED = "unlimited"


UNLIMITED: Final = Unlimited.UNLIMITED

DEFAULT_ALIGNMENT = 16
MAX_SPAN_BYTES = (1 << 32) - 1  # what is lent to another device: its size is a `uint32_t` in C
ALL_OPERATORS = "all"  # of a device that takes every operator
DEFAULT_LOCAL_SIZE_BYTES = 128
# The pool of states, where a target has none of its own.
DEFAULT_STATE_POOL = "kept"
DEFAULT_PROVIDER: Final[dict[Role, Provider]] = {
    Role.WORKSPACE: Provider.CALLER,
    Role.PARAMETERS: Provider.GENERATED,
    Role.STATE: Provider.CALLER,
    Role.IO: Provider.CALLER,
}


@dataclass(frozen=True, slots=True)
class Memory:
    """A physical region, owned by nobody and reached by many devices.

    Attributes:
        name: How pools, stacks and devices refer to it.
        size_bytes: Its size; `None` for no limit.
        base: Its address in the system's map, if known.
        aliases: Further addresses of the same bytes.
        access: What running code may do with it.
        section: The linker section that places an array in it; `None` leaves the choice to the linker.
        region: What the linker script's MEMORY block calls it, if that is known.
        read_cost: Cost of reading one byte, relative to the other memories.
        write_cost: Cost of writing one byte, likewise.
    """

    name: str
    size_bytes: int | None
    base: int | None = None
    aliases: tuple[int, ...] = ()
    access: MemoryAccess = MemoryAccess.READ_WRITE
    section: str | None = None
    region: str | None = None
    read_cost: int = 1
    write_cost: int = 1

    @property
    def is_writable(self) -> bool:
        """Whether running code may write it."""
        return self.access is MemoryAccess.READ_WRITE

    def address_ranges(self) -> tuple[tuple[int, int], ...]:
        """Half-open address intervals, the base's first, then the aliases'; none without a base."""
        if self.base is None or self.size_bytes is None:
            return ()
        return tuple((start, start + self.size_bytes) for start in (self.base, *self.aliases))

    def offset_of(self, address: int, size_bytes: int = 1) -> int | None:
        """How far into this memory bytes are, through the base or an alias; `None` if they are not all in it."""
        for first, last in self.address_ranges():
            if first <= address and address + size_bytes <= last:
                return address - first
        return None


@dataclass(frozen=True, slots=True)
class Reach:
    """One memory that a device reaches.

    Attributes:
        memory: Its name.
        base: Its address as this device sees it, where that differs from the memory's own.
        port: Through which of the device's ports, where it has several and the choice must be configured.
        is_coherent: False if the device, or the default device, may see bytes there that the other has changed only
            after a cache was cleaned or invalidated.
    """

    memory: str
    base: int | None = None
    port: str | None = None
    is_coherent: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether nothing is said of it but the name."""
        return self == Reach(self.memory)

    def __str__(self) -> str:
        """As a target file has it."""
        if self.is_plain:
            return f'"{self.memory}"'
        items = [f'memory = "{self.memory}"']
        items += [] if self.base is None else [f"base = {self.base:#x}"]
        items += [] if self.port is None else [f'port = "{self.port}"']
        items += [] if self.is_coherent else ["coherent = false"]
        return f"{{ {', '.join(items)} }}"


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """A flow of control with a stack of its own: `cpu`, `dsp`, `dsp.thread0`.

    Attributes:
        name: The device's name, or `<device>.<context>`.
        memory: Where the stack is.
        max_stack_size_bytes: The size of the stack; `None` for no limit.
        stack_reserve_bytes: The part of it that interrupts and linked libraries need.
    """

    name: str
    memory: str
    max_stack_size_bytes: int | None = None
    stack_reserve_bytes: int = 0

    @property
    def available_stack_bytes(self) -> int | None:
        """What inference may use: the size less the reserve; `None` for no limit."""
        if self.max_stack_size_bytes is None:
            return None
        return self.max_stack_size_bytes - self.stack_reserve_bytes


@dataclass(frozen=True, slots=True)
class Device:
    """Something that executes kernels.

    Attributes:
        name: How pools and the graph refer to it.
        isa: What its core has; kernels, compilers and the harness are chosen by it.
        reach: The memories it can access, as it sees them.
        contexts: Its stacks; none if it runs no C.
        max_stack_alloca_size_bytes: The largest single `global` allocation that may become a local array.
        max_local_size_bytes: The same for `local` allocations.
        use_backend_alloc_workspace: If set, no `global` allocation goes to the stack, and scratch that names no pool is
            requested at run time.
        stack_allowance_per_call_bytes: What one call level may need beyond its explicit arrays (saved
            registers, spills, the return address).
        ranks: The ranks of scopes that exist on it.
        address_bits: The width of its addresses.
        operators: The graph operators that it takes without being asked, by name, or `all`; none: what is annotated.
        cost_per_mac: Cost of one step of work, relative to the other devices; beside the memories' costs of a byte.
        cache_line_bytes: Size of the lines in which memory that is not coherent is cleaned and invalidated; 0: none.
        touch_alignment: What the first byte of everything that it touches is aligned to, at least.
    """

    name: str
    isa: Isa
    reach: tuple[Reach, ...]
    contexts: tuple[ExecutionContext, ...] = ()
    max_stack_alloca_size_bytes: int | Unlimited = 0
    max_local_size_bytes: int = DEFAULT_LOCAL_SIZE_BYTES
    use_backend_alloc_workspace: bool = False
    stack_allowance_per_call_bytes: int = 256
    ranks: tuple[Rank, ...] = (Rank.GLOBAL, Rank.LOCAL)
    address_bits: int = 64
    operators: tuple[str, ...] = ()
    cost_per_mac: int = 1
    cache_line_bytes: int = 0
    touch_alignment: int = 1

    @property
    def largest_object_bytes(self) -> int:
        """The size of the largest array: C counts the distance between two of its elements with a sign."""
        return (1 << (self.address_bits - 1)) - 1

    @property
    def runs_c(self) -> bool:
        """Whether generated C runs on it, which needs a stack."""
        return bool(self.contexts)

    @property
    def copies(self) -> bool:
        """Whether it can be given copies to make: the driver of an NPU takes its command streams alone."""
        return self.isa.accelerator is None

    @property
    def reached_memories(self) -> tuple[str, ...]:
        """Names of the memories it reaches, in the order of the description."""
        return tuple(entry.memory for entry in self.reach)

    def reaches(self, memory_name: str) -> bool:
        """Whether it can access a memory."""
        return memory_name in self.reached_memories

    def find_reach(self, memory_name: str) -> Reach | None:
        """How it reaches a memory; None if it does not."""
        return next((entry for entry in self.reach if entry.memory == memory_name), None)

    def takes(self, operator: str) -> bool:
        """Whether it takes an operator of the graph without being asked."""
        return operator in self.operators or ALL_OPERATORS in self.operators

    def admits_stack_allocation(self, size_bytes: int) -> bool:
        """Whether a `global` allocation of this size may become a local array; a limit of N admits N."""
        if not self.runs_c or self.use_backend_alloc_workspace:
            return False
        limit = self.max_stack_alloca_size_bytes
        return isinstance(limit, Unlimited) or size_bytes <= limit


@dataclass(frozen=True, slots=True)
class Pool:
    """A part of one memory lent to the compiler in one role.

    Attributes:
        name: Unique in the target; also the tag of the scope `global.<pool>`.
        memory: The memory that it is a part of.
        role: What it is for.
        size_bytes: A hard limit; `None` for none.
        alignment: Of its first byte: a power of two.
        provider: Who declares the array.
        devices: The devices that may use it; all of them reach the memory.
        takes_remainder: Whether the size was omitted, so that it follows what the memory has left.
        section: The linker section of its array, if not the memory's.
        load: Of a parameter pool: who brings its bytes.
        load_memory: Of a parameter pool: the read-only memory that keeps its bytes for whoever brings them; `None` if
            they need no second place, or one that is not known.
        is_for_io: Of a workspace pool: whether it holds inputs and outputs, and nothing else; see `with_io_pools`.
    """

    name: str
    memory: str
    role: Role
    size_bytes: int | None
    alignment: int = DEFAULT_ALIGNMENT
    provider: Provider = Provider.CALLER
    devices: tuple[str, ...] = ()
    takes_remainder: bool = False
    section: str | None = None
    load: Loader = Loader.LINKER
    load_memory: str | None = None
    is_for_io: bool = False

    @property
    def identifier(self) -> str:
        """The pool's name as a C identifier."""
        return c_identifier(self.name)

    @property
    def is_copied(self) -> bool:
        """Whether the application's call of `<model>_set_parameters` writes it."""
        return self.load is Loader.COPY


@dataclass(frozen=True, slots=True)
class ScopeTag:
    """A tag that storage scopes may carry besides pool names, with the pass that lowers it, if any."""

    name: str
    lowering_pass: str | None = None


@dataclass(frozen=True, slots=True)
class ExternalStack:
    """Stack that a symbol outside the generated code needs, callees included."""

    symbol: str
    size_bytes: int


_BEYOND_ALL_BYTES = 1 << 62  # what no sum of sizes reaches

_Named = TypeVar("_Named", Memory, Device, Pool, ExecutionContext, ScopeTag)


def _find(items: tuple[_Named, ...], name: str) -> _Named | None:
    return next((item for item in items if item.name == name), None)


@dataclass(frozen=True, slots=True)
class Target:
    """One machine: memories, devices, and the pools the compiler may use.

    Attributes:
        name: For reports and plan.json.
        memories: In the order of the description.
        devices: Likewise.
        pools: Grouped by role in the order of `Role`, inside a role in preference order.
        default_device_name: The device that runs the entry function; it has a stack.
        tags: Properties of the whole machine, such as `micro`.
        scope_tags: Declared tags of storage scopes.
        external_stacks: Stack needs of symbols that the generated code may call.
        description: One line for people.
    """

    name: str
    memories: tuple[Memory, ...]
    devices: tuple[Device, ...]
    pools: tuple[Pool, ...]
    default_device_name: str
    tags: tuple[str, ...] = ()
    scope_tags: tuple[ScopeTag, ...] = ()
    external_stacks: tuple[ExternalStack, ...] = ()
    description: str = ""

    @property
    def default_device(self) -> Device:
        """The device that runs the entry function."""
        return self.device(self.default_device_name)

    @property
    def contexts(self) -> tuple[ExecutionContext, ...]:
        """All execution contexts, device by device."""
        return tuple(context for device in self.devices for context in device.contexts)

    @property
    def workspace_pools(self) -> tuple[Pool, ...]:
        """The workspace pools, in preference order."""
        return self.pools_of(Role.WORKSPACE)

    @property
    def entry_pools(self) -> tuple[Pool, ...]:
        """The pools that what the entry allocates is planned in: workspaces, then those of state."""
        return (*self.workspace_pools, *self.pools_of(Role.STATE))

    @property
    def parameter_pools(self) -> tuple[Pool, ...]:
        """The parameter pools, in preference order."""
        return self.pools_of(Role.PARAMETERS)

    def find_memory(self, name: str) -> Memory | None:
        """The memory of this name, if there is one."""
        return _find(self.memories, name)

    def find_device(self, name: str) -> Device | None:
        """The device of this name, if there is one."""
        return _find(self.devices, name)

    def find_pool(self, name: str) -> Pool | None:
        """The pool of this name, of any role, if there is one."""
        return _find(self.pools, name)

    def find_context(self, name: str) -> ExecutionContext | None:
        """The execution context of this name, if there is one."""
        return _find(self.contexts, name)

    def scope_tag(self, name: str) -> ScopeTag | None:
        """The declared scope tag of this name, if there is one."""
        return _find(self.scope_tags, name)

    def memory(self, name: str) -> Memory:
        """The memory of this name, which must exist."""
        return self._existing("memory", self.find_memory(name), name)

    def device(self, name: str) -> Device:
        """The device of this name, which must exist."""
        return self._existing("device", self.find_device(name), name)

    def pool(self, name: str) -> Pool:
        """The pool of this name, which must exist."""
        return self._existing("pool", self.find_pool(name), name)

    def context(self, name: str) -> ExecutionContext:
        """The execution context of this name, which must exist."""
        return self._existing("execution context", self.find_context(name), name)

    def address_seen_by(self, device_name: str, memory_name: str) -> int | None:
        """Where a device sees a memory begin; None if it does not reach it, or no base is known."""
        reach = self.device(device_name).find_reach(memory_name)
        if reach is None:
            return None
        return self.memory(memory_name).base if reach.base is None else reach.base

    def _existing(self, kind: str, item: _Named | None, name: str) -> _Named:
        if item is None:
            raise InternalError(f"target {self.name!r} has no {kind} {name!r}")
        return item

    def pools_of(self, role: Role) -> tuple[Pool, ...]:
        """The pools of a role, in preference order."""
        return tuple(pool for pool in self.pools if pool.role is role)

    def pools_in(self, memory_name: str) -> tuple[Pool, ...]:
        """The pools that are parts of a memory, of all roles."""
        return tuple(pool for pool in self.pools if pool.memory == memory_name)

    def memory_of(self, pool: Pool | str) -> Memory:
        """The memory that a pool is a part of."""
        return self.memory((self.pool(pool) if isinstance(pool, str) else pool).memory)

    def section_of(self, pool: Pool) -> str | None:
        """The linker section of a pool's array; `None` leaves the choice to the linker.

        Where regions are known, parameters in memory that can be written have one of their own: it is loaded, and what
        begins empty is not.
        """
        memory = self.memory_of(pool)
        if pool.section is None and memory.section is not None and memory.region is not None:
            is_loaded = pool.role is Role.PARAMETERS and memory.is_writable
            return f"{memory.section}.{pool.identifier}" if is_loaded else memory.section
        return pool.section or memory.section

    def pools_loaded_from(self, memory_name: str) -> tuple[Pool, ...]:
        """The pools of other memories whose bytes a memory keeps until they are brought there."""
        return tuple(pool for pool in self.pools if pool.load_memory == memory_name)

    def devices_reaching(self, memory_name: str) -> tuple[Device, ...]:
        """The devices that can access a memory."""
        return tuple(device for device in self.devices if device.reaches(memory_name))

    def common_memories(self, devices: tuple[str, ...], *, is_written: bool) -> tuple[str, ...]:
        """The memories that all of some devices reach, in the target's order; those that can be written, if asked."""
        reaching = [self.device(name) for name in devices]
        return tuple(
            memory.name
            for memory in self.memories
            if (memory.is_writable or not is_written) and all(each.reaches(memory.name) for each in reaching)
        )

    def capacity_bytes(self, pool: Pool) -> int | None:
        """What can be used of a pool: its size, and no more than an array that its devices can address, or than can be
        handed to them; None for no limit that matters.
        """
        limits = [self.device(name) for name in pool.devices] or self.devices
        largest_bytes = min(device.largest_object_bytes for device in limits)
        if any(device.name != self.default_device_name for device in limits):
            largest_bytes = min(largest_bytes, MAX_SPAN_BYTES)
        if pool.size_bytes is None:
            return None if largest_bytes >= _BEYOND_ALL_BYTES else largest_bytes
        return min(pool.size_bytes, largest_bytes)

    def external_stack_bytes(self, symbol: str) -> int | None:
        """The stack that an external symbol needs; `None` if the target does not declare it."""
        return next((entry.size_bytes for entry in self.external_stacks if entry.symbol == symbol), None)
