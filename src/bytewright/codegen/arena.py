"""Memory that the generated C requests at run time: arenas, the pair of functions that serves them, and its calls.

The pair stands in a file of its own, so that an application can leave it out and link another one. An arena is a
planned buffer; what is known of its blocks stands in the context, so no byte of the pool is hidden from the plan.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from bytewright.codegen.interface import ArenaInterface, Interface, request_name
from bytewright.codegen.writer import Writer
from bytewright.ir.address import storage_shape
from bytewright.ir.backend import backend_functions
from bytewright.ir.expr import Buffer
from bytewright.ir.prim import Call, Region
from bytewright.ir.types import Symbol

_STATUS = "request_status"


def write_arena_sizes(writer: Writer, interface: Interface) -> None:
    """The macros of the header: how large the arenas are, and how many requests are outstanding at most."""
    if not interface.arenas:
        return
    writer.comment("Bytes of each arena, a part of its pool: the most that is requested from it at once.")
    for arena in interface.arenas:
        writer.line(f"#define {interface.arena_macro(arena)} {arena.size_bytes}")
    writer.comment("Requests that are outstanding at once, at most.")
    writer.line(f"#define {interface.prefix}_ARENA_DEPTH {interface.arena_depth}")


def write_arena_types(writer: Writer, interface: Interface) -> None:
    """The names of the pools, and what the context knows of an arena."""
    if not interface.arenas:
        return
    writer.comment("Pools that memory is requested from at run time.")
    with writer.block("enum", "};"):
        for index, arena in enumerate(interface.arenas):
            comma = "," if index + 1 < len(interface.arenas) else ""
            writer.line(f"{interface.pool_macro(arena)} = {index}{comma}")
    writer.line()
    writer.comment("The blocks of an arena, the last requested one on top. Private.")
    writer.line("typedef struct {")
    with writer.indented():
        writer.line("uint8_t *base;")
        writer.line("uint64_t size_bytes;")
        writer.line("uint64_t used_bytes;")
        writer.line("uint32_t depth;")
        with writer.block("struct", f"}} blocks[{interface.prefix}_ARENA_DEPTH];"):
            writer.line("uint64_t begin;")
            writer.line("uint64_t used_bytes_before;")
    writer.line(f"}} {interface.model}_arena;")
    writer.line()


def write_arena_members(writer: Writer, interface: Interface) -> None:
    """The arenas in the context."""
    for arena in interface.arenas:
        writer.line(f"    {interface.model}_arena {arena.member};")


def write_arena_prototypes(writer: Writer, interface: Interface) -> None:
    """The pair of functions, with what a run expects of them, whoever provides them."""
    if not interface.arenas:
        return
    prefix = interface.prefix
    writer.comment(
        f"Requests memory from a pool, {prefix}_POOL_...; {interface.model}_run does, around the kernels that need it. "
        "Returns an address that is a multiple of the alignment, of bytes that nothing else uses until they are "
        "released; NULL refuses, and the run ends with the error NO_MEMORY. Refused is also an alignment that is no "
        "power of two."
    )
    writer.wrapped(f"{_alloc_head(interface)};")
    writer.comment(
        "Releases what was requested last from this pool and is not released yet. A run "
        "releases everything, in reverse order, also if it ends with an error.\n"
        f"Returns {prefix}_OK, or the error NULL or ORDER."
    )
    writer.wrapped(f"{_free_head(interface)};")
    writer.line()


def _alloc_head(interface: Interface) -> str:
    allocate, _ = backend_functions(interface.model)
    context = f"{interface.model}_context *context"
    return f"void *{allocate}({context}, int32_t pool, uint64_t size_bytes, uint32_t alignment)"


def _free_head(interface: Interface) -> str:
    _, release = backend_functions(interface.model)
    return f"int32_t {release}({interface.model}_context *context, int32_t pool, void *memory)"


def backend_source(interface: Interface) -> str:
    """`<model>_backend.c`: the pair, served from the arenas."""
    writer, model, prefix = Writer(), interface.model, interface.prefix
    writer.title(
        f"Serves what model '{model}' requests at run time, from planned arenas. Define {prefix}_OWN_BACKEND for this "
        "file, or leave it out, and link functions of your own instead."
    )
    writer.line(f'#include "{model}.h"')
    writer.line()
    writer.line(f"#ifndef {prefix}_OWN_BACKEND")
    writer.line()
    with writer.block(f"static {model}_arena *find_arena({model}_context *context, int32_t pool)"):
        with writer.block("if (context == NULL)"):
            writer.line("return NULL;")
        for arena in interface.arenas:
            with writer.block(f"if (pool == {interface.pool_macro(arena)})"):
                writer.line(f"return &context->{arena.member};")
        writer.line("return NULL;")
    writer.line()
    _write_alloc(writer, interface)
    writer.line()
    _write_free(writer, interface)
    writer.line()
    writer.line(f"#endif /* {prefix}_OWN_BACKEND */")
    return writer.text()


def _write_alloc(writer: Writer, interface: Interface) -> None:
    with writer.block(_alloc_head(interface)):
        writer.line(f"{interface.model}_arena *const arena = find_arena(context, pool);")
        writer.line()
        with writer.block("if (arena == NULL || alignment == 0 || (alignment & (alignment - 1)) != 0)"):
            writer.line("return NULL;")
        with writer.block(f"if (arena->base == NULL || arena->depth >= {interface.prefix}_ARENA_DEPTH)"):
            writer.line("return NULL;")
        writer.comment("In 64 bits, and by subtraction from what is free, so that nothing overflows.")
        writer.line("const uint64_t address = (uint64_t)(uintptr_t)arena->base + arena->used_bytes;")
        writer.line("const uint64_t padding_bytes = (0u - address) & (uint64_t)(alignment - 1);")
        writer.line("const uint64_t free_bytes = arena->size_bytes - arena->used_bytes;")
        with writer.block("if (padding_bytes > free_bytes || size_bytes > free_bytes - padding_bytes)"):
            writer.line("return NULL;")
        writer.line("const uint64_t begin = arena->used_bytes + padding_bytes;")
        writer.line("arena->blocks[arena->depth].begin = begin;")
        writer.line("arena->blocks[arena->depth].used_bytes_before = arena->used_bytes;")
        writer.line("arena->depth += 1;")
        writer.line("arena->used_bytes = begin + size_bytes;")
        writer.line("return arena->base + (size_t)begin;")


def _write_free(writer: Writer, interface: Interface) -> None:
    prefix = interface.prefix
    with writer.block(_free_head(interface)):
        writer.line(f"{interface.model}_arena *const arena = find_arena(context, pool);")
        writer.line()
        with writer.block("if (context == NULL || memory == NULL)"):
            writer.line(f"return {prefix}_ERROR_NULL;")
        with writer.block("if (arena == NULL || arena->depth == 0)"):
            writer.line(f"return {prefix}_ERROR_ORDER;")
        with writer.block("if (memory != arena->base + (size_t)arena->blocks[arena->depth - 1].begin)"):
            writer.line(f"return {prefix}_ERROR_ORDER;")
        writer.line("arena->depth -= 1;")
        writer.line("arena->used_bytes = arena->blocks[arena->depth].used_bytes_before;")
        writer.line(f"return {prefix}_OK;")


def write_arena_helpers(writer: Writer, interface: Interface) -> None:
    """What the run function needs to end well or not."""
    if not interface.arenas:
        return
    with writer.block("static int32_t first_error(int32_t first, int32_t second)"):
        writer.line(f"return first != {interface.prefix}_OK ? first : second;")
    writer.line()


def write_arena_resets(writer: Writer, interface: Interface) -> None:
    """Empties the arenas: a run may find in the context whatever an application's own pair left there."""
    for arena in interface.arenas:
        member = f"context->{arena.member}"
        base = f"{interface.base_name(arena.pool)} + {interface.offset_macro(arena.buffer)}"
        writer.line(f"{member}.base = {base};")
        writer.line(f"{member}.size_bytes = {interface.arena_macro(arena)};")
        writer.line(f"{member}.used_bytes = 0;")
        writer.line(f"{member}.depth = 0;")


def requests_of(
    call: Call, arena_of: Mapping[str, ArenaInterface]
) -> tuple[tuple[Buffer, ArenaInterface], ...]:
    """What a call needs that is requested at run time, in order and once each, and from which arena."""
    buffers = dict.fromkeys(a.buffer for a in call.arguments if isinstance(a, Region))
    return tuple((buffer, arena_of[buffer.name]) for buffer in buffers if buffer.name in arena_of)


def describe_requests(requests: Sequence[tuple[Buffer, ArenaInterface]]) -> str:
    """`; requests scratch0, scratch1 from the arena of 'ram', 144 B at most`."""
    text = ""
    for arena in dict.fromkeys(arena for _, arena in requests):
        names = ", ".join(buffer.name for buffer, owner in requests if owner is arena)
        text += (
            f"; requests {names} from the arena of '{arena.pool.pool.name}', which has {arena.size_bytes} B"
        )
    return text


@contextmanager
def requested(
    writer: Writer, interface: Interface, requests: Sequence[tuple[Buffer, ArenaInterface]]
) -> Generator[str | None, None, None]:
    """Requests before what is written inside, and their release behind it, nested: nothing stays on any way out.

    Gives the variable that holds the status of the run; None without requests.
    """
    if not requests:
        yield None
        return
    with writer.block(""):
        writer.line(f"int32_t {_STATUS} = {interface.prefix}_ERROR_NO_MEMORY;")
        with ExitStack() as held:
            for buffer, arena in requests:
                held.enter_context(_held(writer, interface, buffer, arena))
            yield _STATUS
        with writer.block(f"if ({_STATUS} != {interface.prefix}_OK)"):
            writer.line(f"return {_STATUS};")


@contextmanager
def _held(
    writer: Writer, interface: Interface, buffer: Buffer, arena: ArenaInterface
) -> Generator[None, None, None]:
    """One request, what is done if it is granted, and its release."""
    name, pool = request_name(buffer.name), interface.pool_macro(arena)
    allocate, release = backend_functions(interface.model)
    arguments = ["context", pool, _size_text(buffer), f"{buffer.alignment}"]
    writer.listed(f"void *const {name} = {allocate}", arguments, ";")
    with writer.block(f"if ({name} != NULL)"):
        yield
        writer.listed(f"{_STATUS} = first_error", [_STATUS, f"{release}(context, {pool}, {name})"], ";")


def _size_text(buffer: Buffer) -> str:
    """The bytes of a request as C text: the run's extents, if any, times a number, in 64 bits."""
    shape = storage_shape(buffer)
    names = [extent.name for extent in shape if isinstance(extent, Symbol)]
    num_bytes = prod(extent for extent in shape if isinstance(extent, int)) * buffer.dtype.size_bytes
    return " * ".join([*(f"(uint64_t){name}" for name in names), str(num_bytes)])
