"""Memory that the generated C requests at run time: arenas, the pair of functions that serves them, and its calls.

The pair stands in a file of its own, so that an application can leave it out and link another one. An arena is a
planned buffer; what is known of its blocks stands in the context, so no byte of the pool is hidden from the plan.
"""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from bytewright import ir
from bytewright.codegen.expressions import c_num_bytes
from bytewright.codegen.writer import Writer
from bytewright.record.buffers import PlaceKind, PlannedBuffer
from bytewright.record.names import Names, by_entry
from bytewright.record.plan import Plan

_STATUS = "request_status"


def _depth(plan: Plan) -> int:
    """How many requests are outstanding at once in any arena."""
    pools = (
        Counter(plan.buffers[name].place.name for name in step.touched if _is_requested(plan, name))
        for step in plan.steps
    )
    return max(times for requests in pools for times in requests.values())


def _is_requested(plan: Plan, buffer: str) -> bool:
    return buffer in plan.buffers and plan.buffers[buffer].place.kind is PlaceKind.ARENA


def write_arena_sizes(writer: Writer, plan: Plan, names: Names) -> None:
    """The macros of the header: how large the arenas are, and how many requests are outstanding at most."""
    if not plan.arenas:
        return
    writer.comment("Bytes of each arena, a part of its pool: the most that is requested from it at once.")
    for alone, own in by_entry(plan, names):
        for arena, pool in alone.arenas:
            writer.line(f"#define {own.arena_size(pool)} {arena.size_bytes}")
    writer.comment("Requests that are outstanding at once, at most.")
    writer.line(f"#define {names.arena_depth} {_depth(plan)}")


def write_arena_types(writer: Writer, plan: Plan, names: Names) -> None:
    """The names of the pools, and what the context knows of an arena."""
    if not plan.arenas:
        return
    writer.comment("Pools that memory is requested from at run time.")
    writer.enumeration([f"{names.arena_pool(pool)} = {index}" for index, pool in enumerate(plan.arena_pools)])
    writer.line()
    writer.comment("The blocks of an arena, the last requested one on top. Private.")
    blocks = "    uint64_t begin;\n    uint64_t used_bytes_before;"
    members = (
        *("uint8_t *base;", "uint64_t size_bytes;", "uint64_t used_bytes;", "uint32_t depth;"),
        f"struct {{\n{blocks}\n}} blocks[{names.arena_depth}];",
    )
    writer.structure(names.arena_type, members)


def write_arena_prototypes(writer: Writer, plan: Plan, names: Names) -> None:
    """The pair of functions, with what a run expects of them, whoever provides them."""
    if not plan.arenas:
        return
    runs = [own.run for alone, own in by_entry(plan, names) if alone.arenas]
    does = f"{' and '.join(runs)} {'do' if len(runs) > 1 else 'does'}"
    writer.comment(
        f"Requests memory from a pool, {names.prefix}_POOL_...; {does}, around the kernels that need it. "
        "Returns an address that is a multiple of the alignment, of bytes that nothing else uses until they are "
        "released; NULL refuses, and the run ends with the error NO_MEMORY. Refused is also an alignment that is no "
        "power of two."
    )
    writer.wrapped(f"{_alloc_head(names)};")
    writer.prototype(
        "Releases what was requested last from this pool and is not released yet. A run "
        "releases everything, in reverse order, also if it ends with an error.\n"
        f"Returns {names.ok}, or the error NULL or ORDER.",
        _free_head(names),
    )


def _alloc_head(names: Names) -> str:
    arguments = f"{names.context_type} *context, int32_t pool, uint64_t size_bytes, uint32_t alignment"
    return f"void *{names.allocate}({arguments})"


def _free_head(names: Names) -> str:
    return f"int32_t {names.release}({names.context_type} *context, int32_t pool, void *memory)"


def backend_source(plan: Plan, names: Names) -> str:
    """`<model>_backend.c`: the pair, served from the arenas."""
    writer = Writer()
    writer.title(
        f"Serves what model '{plan.model}' requests at run time, from planned arenas. Define {names.own_backend} "
        "for this file, or leave it out, and link functions of your own instead."
    )
    writer.line(f'#include "{names.included(names.header)}"')
    writer.line()
    writer.line(f"#ifndef {names.own_backend}")
    writer.line()
    with writer.block(f"static {names.arena_type} *find_arena({names.context_type} *context, int32_t pool)"):
        writer.refuse("context == NULL", "NULL")
        for pool in plan.arena_pools:
            writer.refuse(f"pool == {names.arena_pool(pool)}", f"&context->{names.arena(pool)}")
        writer.line("return NULL;")
    writer.line()
    _write_alloc(writer, names)
    writer.line()
    _write_free(writer, names)
    writer.line()
    writer.line(f"#endif /* {names.own_backend} */")
    return writer.text()


def _write_alloc(writer: Writer, names: Names) -> None:
    with writer.block(_alloc_head(names)):
        writer.line(f"{names.arena_type} *const arena = find_arena(context, pool);")
        writer.line()
        writer.refuse("arena == NULL || alignment == 0 || (alignment & (alignment - 1)) != 0", "NULL")
        writer.refuse(f"arena->base == NULL || arena->depth >= {names.arena_depth}", "NULL")
        writer.comment("In 64 bits, and by subtraction from what is free, so that nothing overflows.")
        writer.line("const uint64_t address = (uint64_t)(uintptr_t)arena->base + arena->used_bytes;")
        writer.line("const uint64_t padding_bytes = (0u - address) & (uint64_t)(alignment - 1);")
        writer.line("const uint64_t free_bytes = arena->size_bytes - arena->used_bytes;")
        writer.refuse("padding_bytes > free_bytes || size_bytes > free_bytes - padding_bytes", "NULL")
        writer.line("const uint64_t begin = arena->used_bytes + padding_bytes;")
        writer.line("arena->blocks[arena->depth].begin = begin;")
        writer.line("arena->blocks[arena->depth].used_bytes_before = arena->used_bytes;")
        writer.line("arena->depth += 1;")
        writer.line("arena->used_bytes = begin + size_bytes;")
        writer.line("return arena->base + (size_t)begin;")


def _write_free(writer: Writer, names: Names) -> None:
    with writer.block(_free_head(names)):
        writer.line(f"{names.arena_type} *const arena = find_arena(context, pool);")
        writer.line()
        writer.refuse("context == NULL || memory == NULL", names.error("NULL"))
        writer.refuse("arena == NULL || arena->depth == 0", names.error("ORDER"))
        writer.refuse(
            "memory != arena->base + (size_t)arena->blocks[arena->depth - 1].begin", names.error("ORDER")
        )
        writer.line("arena->depth -= 1;")
        writer.line("arena->used_bytes = arena->blocks[arena->depth].used_bytes_before;")
        writer.line(f"return {names.ok};")


def write_arena_helpers(writer: Writer, plan: Plan, names: Names) -> None:
    """What the run function needs to end well or not."""
    if plan.arenas:
        with writer.block("static int32_t first_error(int32_t first, int32_t second)"):
            writer.line(f"return first != {names.ok} ? first : second;")
        writer.line()


def write_arena_resets(writer: Writer, plan: Plan, names: Names) -> None:
    """Empties the arenas: a run may find in the context whatever an application's own pair left there."""
    for arena, pool in plan.arenas:
        member = f"context->{names.arena(pool)}"
        base = f"{names.base(pool)} + {names.argument(arena)}"
        writer.line(f"{member}.base = {base};")
        writer.line(f"{member}.size_bytes = {names.arena_size(pool)};")
        writer.line(f"{member}.used_bytes = 0;")
        writer.line(f"{member}.depth = 0;")


def requests_of(call: ir.Call, plan: Plan) -> tuple[ir.Buffer, ...]:
    """What a call needs that is requested at run time, in order and once each."""
    buffers = dict.fromkeys(a.buffer for a in call.arguments if isinstance(a, ir.Region))
    return tuple(buffer for buffer in buffers if _is_requested(plan, buffer.name))


def describe_requests(requests: Sequence[ir.Buffer], plan: Plan, arenas: Mapping[str, PlannedBuffer]) -> str:
    """`; requests scratch0, scratch1 from the arena of 'ram', which has 144 B`. Args: `arenas` is by their pools."""
    pools = {buffer.name: plan.buffers[buffer.name].place.name for buffer in requests}
    text = ""
    for pool in dict.fromkeys(pools.values()):
        names = ", ".join(name for name, owner in pools.items() if owner == pool)
        text += f"; requests {names} from the arena of '{pool}', which has {arenas[pool].size_bytes} B"
    return text


@contextmanager
def requested(
    writer: Writer, plan: Plan, names: Names, requests: Sequence[ir.Buffer]
) -> Generator[str | None, None, None]:
    """Requests before what is written inside, and their release behind it, nested: nothing stays on any way out.

    Gives the variable that holds the status of the run; None without requests.
    """
    if not requests:
        yield None
        return
    with writer.block(""):
        writer.line(f"int32_t {_STATUS} = {names.error('NO_MEMORY')};")
        with ExitStack() as held:
            for buffer in requests:
                pool = plan.pools[plan.buffers[buffer.name].place.name]
                held.enter_context(_held(writer, names, buffer, names.arena_pool(pool)))
            yield _STATUS
        writer.refuse(f"{_STATUS} != {names.ok}", _STATUS)


@contextmanager
def _held(writer: Writer, names: Names, buffer: ir.Buffer, pool: str) -> Generator[None, None, None]:
    """One request, what is done if it is granted, and its release."""
    name = names.request(buffer.name)
    extents = map(ir.extent_text, ir.storage_shape(buffer))
    num_bytes = c_num_bytes(extents, buffer.dtype, "uint64_t", buffer.line_bytes)
    arguments = ["context", pool, num_bytes, f"{buffer.alignment}"]
    writer.listed(f"void *const {name} = {names.allocate}", arguments, ";")
    with writer.block(f"if ({name} != NULL)"):
        yield
        writer.listed(f"{_STATUS} = first_error", [_STATUS, f"{names.release}(context, {pool}, {name})"], ";")
