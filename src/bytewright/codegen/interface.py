"""What the generated files agree on: names, sizes and pools, computed once from the planned module."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bytewright.c_names import c_identifier
from bytewright.diagnostics import InternalError
from bytewright.ir.address import size_bytes
from bytewright.ir.border import Border, Io, border_ports
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module, Port
from bytewright.ir.prim import Allocate, Call, Region
from bytewright.ir.types import Symbol
from bytewright.ir.walk import walk_statements
from bytewright.options import Embedding
from bytewright.record.plan import Plan
from bytewright.target.model import PARAMETER_HEADER_BYTES, Pool, Provider, Role, Target

_OF_THE_FILE = (
    "first_error",
    "shared",
    "request_status",
    "memory_span",
    "wraps",
    "share_bytes",
    "lies_within",
    "first_address",
)
_PLAIN_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*(/[a-z0-9]+(_[a-z0-9]+)*)*")
# Variables of the run function that hold what it requested begin with this.
REQUEST = "request_"


@dataclass(frozen=True, slots=True)
class PoolInterface:
    """A pool as the generated C knows it.

    Attributes:
        used_bytes: The exact size.
        alignment: What the base must be a multiple of.
        ranges: Address ranges `[first, last)` of the pool's memory, aliases included; empty if unknown.
        content: The bytes of a parameter pool, its header included if it has one.
        load_section: Of the array from which `<model>_set_parameters` copies a generated parameter pool.
        as_numbers: The bytes are in the bundle as C numbers; else as they are, for the assembler.
    """

    pool: Pool
    used_bytes: int
    alignment: int
    section: str | None
    ranges: tuple[tuple[int, int], ...]
    content: bytes = b""
    load_section: str | None = None
    as_numbers: bool = True

    @property
    def identifier(self) -> str:
        """The C identifier of the pool, a struct member."""
        return self.pool.identifier

    @property
    def is_caller(self) -> bool:
        """True if the application provides the memory."""
        return self.pool.provider is Provider.CALLER

    @property
    def is_copied(self) -> bool:
        """True if `<model>_set_parameters` brings its bytes."""
        return self.pool.is_copied and self.used_bytes > 0

    @property
    def is_set(self) -> bool:
        """True if the context has its address, which a set function puts there."""
        return self.is_caller or self.is_copied

    @property
    def header_bytes(self) -> int:
        """What comes before the constants of a parameter pool."""
        return PARAMETER_HEADER_BYTES if self.is_caller else 0


@dataclass(frozen=True, slots=True)
class ArenaInterface:
    """An arena as the generated C knows it: a planned buffer that serves requests at run time.

    Attributes:
        pool: The pool that it lies in, which has no other arena.
        requests: What is requested from it, in all calls.
        depth: How many requests are outstanding at once, at most.
    """

    pool: PoolInterface
    buffer: Buffer
    requests: tuple[Buffer, ...]
    depth: int

    @property
    def size_bytes(self) -> int:
        """The most that is requested at once."""
        return size_bytes(self.buffer)

    @property
    def member(self) -> str:
        """Its name in the context."""
        return f"{self.pool.identifier}_arena"


@dataclass(frozen=True, slots=True)
class Alias:
    """Further addresses, `first` to `last`, of bytes that a memory has from `base` on."""

    first: int
    last: int
    base: int


def memory_aliases(target: Target) -> tuple[Alias, ...]:
    """The aliases of all memories that the entry's device reaches: inputs and outputs may lie in any of them."""
    reached = [target.memory(name) for name in target.default_device.reached_memories]
    return tuple(
        Alias(first, end - 1, memory.base)
        for memory in reached
        if memory.base is not None
        for first, end in memory.address_ranges()[1:]
    )


@dataclass(frozen=True, slots=True)
class Interface:
    """Everything that more than one generated file mentions.

    Attributes:
        aliases: Second addresses of bytes, which overlaps are looked for through.
        arenas: What serves requests at run time; none for most models.
        symbols: Extents that the application gives with each run: what `<model>_run` takes, in order.
        strict_ports: Inputs and outputs of the application that are aligned to more than their type asks for.
    """

    model: str
    version: str
    numerics: str
    io: Io
    target: str
    plan_hash: str
    workspaces: tuple[PoolInterface, ...]
    parameters: tuple[PoolInterface, ...]
    aliases: tuple[Alias, ...]
    arenas: tuple[ArenaInterface, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    symbols: tuple[Symbol, ...]
    stack_planned_bytes: int
    stack_size_bytes: int
    offsets: tuple[tuple[str, int], ...]
    strict_ports: tuple[tuple[Border, str, int], ...] = ()

    @property
    def prefix(self) -> str:
        """Start of every macro."""
        return self.model.upper()

    @property
    def caller_workspaces(self) -> tuple[PoolInterface, ...]:
        """Workspace pools that the application provides."""
        return tuple(pool for pool in self.workspaces if pool.is_caller)

    @property
    def caller_parameters(self) -> tuple[PoolInterface, ...]:
        """Parameter pools that the application provides."""
        return tuple(pool for pool in self.parameters if pool.is_caller)

    @property
    def set_parameters(self) -> tuple[PoolInterface, ...]:
        """Parameter pools that `<model>_set_parameters` makes known to the context."""
        return tuple(pool for pool in self.parameters if pool.is_set)

    @property
    def own_copies(self) -> tuple[PoolInterface, ...]:
        """Parameter pools that are copied into arrays of the generated code."""
        return tuple(pool for pool in self.parameters if pool.is_copied and not pool.is_caller)

    @property
    def caller_copies(self) -> tuple[PoolInterface, ...]:
        """Parameter pools that are copied into memory of the application."""
        return tuple(pool for pool in self.caller_parameters if pool.is_copied)

    @property
    def io_in_workspace(self) -> bool:
        """True if functions return the addresses of inputs and outputs, instead of structs that bring them."""
        return self.io is Io.WORKSPACE

    def pool_of(self, buffer: Buffer) -> PoolInterface:
        """The pool that a buffer of a planned module lies in."""
        name = buffer.scope.pool if buffer.scope is not None else None
        return next(pool for pool in (*self.workspaces, *self.parameters) if pool.pool.name == name)

    def address_function(self, border: Border, port: Port) -> str:
        """The function that returns the address of an input or output in the workspace."""
        return f"{self.model}_{border.value}_{port.name}"

    def run_head(self) -> str:
        """The head of the run function, as the header declares and the entry defines it."""
        model = self.model
        ports = (
            "" if self.io_in_workspace else f", const {model}_inputs *inputs, const {model}_outputs *outputs"
        )
        symbols = "".join(f", int32_t {symbol.name}" for symbol in self.symbols)
        return f"int32_t {model}_run({model}_context *context{ports}{symbols})"

    def bound_macro(self, symbol: Symbol) -> str:
        """`KWS_BATCH_MAX`: the largest value of an extent that the application gives."""
        return f"{self.prefix}_{symbol.name.upper()}_MAX"

    def base_name(self, pool: PoolInterface) -> str:
        """The variable of the run function that holds a pool's base: its name, unless something else may have that.

        Functions and arrays of the C begin with the model's name, but for a few that the file has for itself.
        """
        taken = {"context", "inputs", "outputs", *_OF_THE_FILE, *(symbol.name for symbol in self.symbols)}
        is_taken = (
            pool.identifier in taken
            or pool.identifier.startswith((REQUEST, f"{self.model}_"))
            or pool.identifier.startswith("check_")
            or pool.identifier.endswith(("_base", "_at"))
        )
        return f"{pool.identifier}_base" if is_taken else pool.identifier

    def array_name(self, pool: PoolInterface) -> str:
        """The C array of a generated pool."""
        kind = "workspace" if pool.pool.role is Role.WORKSPACE else "parameters"
        return f"{self.model}_{pool.identifier}_{kind}"

    def load_array_name(self, pool: PoolInterface) -> str:
        """The C array from which a generated parameter pool is copied."""
        return f"{self.array_name(pool)}_load"

    def macro(self, pool: PoolInterface, what: str) -> str:
        """A macro about a pool: SIZE or ALIGN."""
        return f"{self.prefix}_{pool.identifier.upper()}_{pool.pool.role.name}_{what}"

    def port_macro(self, border: Border, port: Port, what: str) -> str:
        """`KWS_INPUT_IMAGE_SIZE`: a macro about an input or output: SIZE, SHAPE, SCALE and so on.

        Of several that are the same in capitals, each has digits of its hash.
        """
        ports = self.inputs if border is Border.INPUT else self.outputs
        name = port.name.upper()
        if sum(other.name.upper() == name for other in ports) > 1:
            name = f"{name}_X{hashlib.sha256(port.name.encode()).hexdigest()[:8].upper()}"
        return f"{self.prefix}_{border.name}_{name}_{what}"

    def pool_macro(self, arena: ArenaInterface) -> str:
        """`KWS_POOL_DTCM`: what the functions of the backend call the pool of an arena."""
        return f"{self.prefix}_POOL_{arena.pool.identifier.upper()}"

    def arena_macro(self, arena: ArenaInterface) -> str:
        """`KWS_DTCM_ARENA_SIZE`: the bytes of an arena."""
        return f"{self.prefix}_{arena.pool.identifier.upper()}_ARENA_SIZE"

    @property
    def arena_of(self) -> dict[str, ArenaInterface]:
        """The arena of each buffer that is requested at run time, by the buffer's name."""
        return {buffer.name: arena for arena in self.arenas for buffer in arena.requests}

    @property
    def arena_depth(self) -> int:
        """How many requests are outstanding at once in any arena."""
        return max((arena.depth for arena in self.arenas), default=0)

    def offset_macro(self, buffer: Buffer) -> str:
        """The enumerator that holds a buffer's offset."""
        if buffer.scope is None or buffer.scope.pool is None:
            raise InternalError(f"storage of '{buffer.name}' ({buffer.scope}) was not decided")
        return offset_macro(self.model, buffer.scope.pool, buffer.name)


def offset_macro(model: str, pool: str, buffer: str) -> str:
    """`KWS_AT_DTCM_CONV2D_3__OUT`: the offset of a buffer in its pool."""
    return f"{c_identifier(f'{model}_at_{pool}')}_{_part(buffer)}".upper()


def blob_path(pool: str) -> str:
    """`parameters/ext-flash.bin`: the file in the bundle with the bytes of a parameter pool from the caller."""
    return f"parameters/{pool}.bin"


def request_name(buffer: str) -> str:
    """`request_y__scratch0`: the variable of the run function that holds what was requested for a buffer."""
    return REQUEST + _part(buffer)


def _part(buffer: str) -> str:
    """A buffer's name as a part of a C name, which no other buffer's is, in capitals either.

    A slash becomes two underscores. A name that could then be mistaken for another, because it has capitals,
    characters that C has not, or underscores next to each other or at an end, gets digits of its hash.
    """
    plain = c_identifier(buffer.replace("/", "__"))
    if _PLAIN_NAME.fullmatch(buffer):
        return plain
    return f"{plain}_x{hashlib.sha256(buffer.encode()).hexdigest()[:8]}"


def strict_ports(module: Module) -> tuple[tuple[Border, str, int], ...]:
    """Inputs and outputs that the entry is given and that ask for more than their type's alignment."""
    ports = border_ports(module)
    given = (parameter.buffer for parameter in module.main.buffer_parameters)
    return tuple(
        (ports[buffer.name][0], ports[buffer.name][1].name, buffer.alignment)
        for buffer in given
        if buffer.name in ports and buffer.alignment > buffer.dtype.size_bytes
    )


def planned_offsets(module: Module) -> tuple[tuple[Buffer, int], ...]:
    """Every buffer that has an offset in a pool, and that: allocations of the entry, then constants.

    What is requested at run time has none; its arena does.
    """
    allocations = [
        s for s in walk_statements(module.main.body) if isinstance(s, Allocate) and s.storage.arena is None
    ]
    placed: list[tuple[Buffer, int]] = []
    for allocation in allocations:
        offset = allocation.storage.offset
        if offset is None:
            raise InternalError(f"'{allocation.buffer.name}' has no offset")
        placed.append((allocation.buffer, offset))
    for constant in module.constant_buffers:
        if constant.storage.offset is None:
            raise InternalError(f"constant '{constant.buffer.name}' has no offset")
        placed.append((constant.buffer, constant.storage.offset))
    return tuple(placed)


def arena_interfaces(module: Module, workspaces: tuple[PoolInterface, ...]) -> tuple[ArenaInterface, ...]:
    """The arenas of a planned module, in the order of its allocations."""
    allocations = [s for s in walk_statements(module.main.body) if isinstance(s, Allocate)]
    calls = [s for s in walk_statements(module.main.body) if isinstance(s, Call)]
    pools = {pool.pool.name: pool for pool in workspaces}
    requests: dict[str, list[Buffer]] = {}
    for allocation in allocations:
        if allocation.storage.arena is not None:
            requests.setdefault(allocation.storage.arena, []).append(allocation.buffer)
    arenas: list[ArenaInterface] = []
    for arena in allocations:
        own = requests.get(arena.buffer.name)
        if own and arena.buffer.scope is not None:
            names = {buffer.name for buffer in own}
            depth = max(
                sum(isinstance(a, Region) and a.buffer.name in names for a in call.arguments)
                for call in calls
            )
            pool = pools[arena.buffer.scope.pool or ""]
            arenas.append(ArenaInterface(pool, arena.buffer, tuple(own), depth))
    return tuple(arenas)


def pool_interfaces(
    plan: Plan, role: Role, contents: Mapping[str, bytes], embedding: Embedding
) -> tuple[PoolInterface, ...]:
    """The pools of one role that hold a byte; parameter pools with their bytes. The C has nothing of the others."""
    interfaces: list[PoolInterface] = []
    for planned in (pool for pool in plan.pools_of(role) if pool.used_bytes):
        pool, target = plan.hardware.pool(planned.name), plan.hardware
        load_section = target.memory(pool.load_memory).section if pool.load_memory is not None else None
        interfaces.append(
            PoolInterface(
                pool,
                planned.used_bytes,
                planned.alignment,
                planned.section,
                target.memory_of(pool).address_ranges(),
                contents.get(pool.name, b""),
                load_section,
                embedding.as_numbers(planned.used_bytes),
            )
        )
    return tuple(interfaces)


def interface_of(
    module: Module, plan: Plan, contents: Mapping[str, bytes], embedding: Embedding
) -> Interface:
    """The interface of a planned module.

    Args:
        module: Planned.
        plan: Its plan.
        contents: The bytes of the parameter pools, by name.
        embedding: How they come into the program.
    """
    workspaces = pool_interfaces(plan, Role.WORKSPACE, contents, embedding)
    stack = next(iter(plan.stack.values()))
    return Interface(
        model=plan.model,
        version=plan.build.bytewright,
        numerics=plan.numerics,
        io=plan.io,
        target=plan.target,
        plan_hash=plan.plan_hash,
        workspaces=workspaces,
        parameters=pool_interfaces(plan, Role.PARAMETERS, contents, embedding),
        aliases=memory_aliases(plan.hardware),
        arenas=arena_interfaces(module, workspaces),
        inputs=module.inputs,
        outputs=module.outputs,
        symbols=plan.symbols,
        stack_planned_bytes=stack.planned_bytes,
        stack_size_bytes=stack.size_bytes,
        offsets=tuple(
            (offset_macro(module.name, buffer.scope.pool or "", buffer.name), offset)
            for buffer, offset in planned_offsets(module)
            if buffer.scope is not None
        ),
        strict_ports=strict_ports(module),
    )
