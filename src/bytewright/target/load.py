"""A target description, TOML or JSON, becomes a checked `Target`.

Reading collects every mistake before it stops: first the single values of each table, then what must hold
between them (`check.py`). A table with mistakes is left out of the second step where its absence could make
other, correct lines look wrong.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path as FilePath

from bytewright.diagnostics import CompileError
from bytewright.target import model
from bytewright.target.capacity import with_remainders
from bytewright.target.check import find_problems, with_default_devices
from bytewright.target.isa.find import find_isa, isa_help, isa_note
from bytewright.target.isa.isa import Isa
from bytewright.target.mistake import Mistake, closest, closest_names, in_target_file, listing, shown
from bytewright.target.reader import SYMBOL_PATTERN, TomlTable
from bytewright.target.source import Path, Source, parse_source, refuse_vast_integers
from bytewright.target.text_file import read_text

KNOWN_TAGS = ("micro",)
MOST_SHOWN = 20  # mistakes of one file
DEFAULT_HOST_ALLOCA_SIZE_BYTES = 1024

_TARGET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
_OPERATOR = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_SECTION = re.compile(r"[A-Za-z_.][A-Za-z0-9_.$-]*", re.ASCII)  # goes into C text between quotation marks
_REGION = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]*", re.ASCII)
_A_REGION = "a region of a linker script: letters, digits, '_', '.', '$' and '-'"
_A_SECTION = "a linker section: letters, digits, '_', '.', '$' and '-'"


def load_file(path: str | PathLike[str]) -> model.Target:
    """Reads a target file.

    Raises:
        CompileError: BW201 if it cannot be read, BW202 for everything that is wrong in it.
    """
    return load_text(read_text(FilePath(path)), str(path))


def load_text(text: str, file: str) -> model.Target:
    """Reads a target from TOML text, or from JSON text of the same structure, which begins with a brace."""
    return _load(parse_source(text, file))


def load_description(description: Mapping[str, object], file: str = "<description>") -> model.Target:
    """Builds a target from plain values of the same structure; the inverse of `dump`."""
    return _load(Source(file, description))


def _load(source: Source) -> model.Target:
    refuse_vast_integers(source)
    problems: list[Mistake] = []
    target, pool_paths = _read_target(TomlTable(source.values, (), problems), problems)
    problems.extend(find_problems(target, pool_paths))
    if problems:
        problems.sort(key=lambda problem: source.line_of(problem.path) or 0)  # stable: else as found
        diagnostics = [p.to_diagnostic("BW202", source.where(p.path)) for p in problems[:MOST_SHOWN]]
        if len(problems) > MOST_SHOWN:
            more = f"and {len(problems) - MOST_SHOWN} more mistakes, which are not shown"
            diagnostics[-1] = replace(diagnostics[-1], notes=(*diagnostics[-1].notes, more))
        raise CompileError(diagnostics)
    return with_remainders(target)


def _read_target(top: TomlTable, problems: list[Mistake]) -> tuple[model.Target, list[Path]]:
    """The target as written, without the parts that are broken, and where each of its pools stands."""
    top.require("name", "memory", "device")
    name = top.text("name", "unnamed", _TARGET_NAME, "a target name: letters, digits, '_', '.' and '-'")
    description = top.text("description", "", None, "text on one line")
    tags = _read_tags(top)
    num_problems = len(problems)
    memories = tuple(_read_memory(name, table) for name, table in top.named_tables("memory").items())
    devices = tuple(
        _read_device(name, table, is_micro="micro" in tags)
        for name, table in top.named_tables("device").items()
    )
    hardware_is_sound = len(problems) == num_problems
    pools: list[tuple[model.Pool, Path]] = []
    for role in model.Role:
        for table in top.listed_tables(role.value):
            pool = _read_pool(role, table)
            if hardware_is_sound and not table.has_failed:
                pools.append((pool, table.path))
    scope_tags = tuple(_read_scope_tag(name, table) for name, table in top.named_tables("scope-tag").items())
    first_with_stack = next((d.name for d in devices if d.runs_c and d.isa.runs_programs), "")
    default_device = top.name("default-device", first_with_stack)
    isa = next((device.isa for device in devices if device.name == default_device and device.isa.name), None)
    external_stacks = _read_external_stacks(top.subtable("stack"), isa)
    top.finish()
    target = model.Target(
        name=name,
        memories=memories,
        devices=devices,
        pools=tuple(pool for pool, _ in pools),
        default_device_name=default_device,
        tags=tags,
        scope_tags=scope_tags,
        external_stacks=external_stacks,
        description=description,
    )
    return with_default_devices(target), [path for _, path in pools]


def _read_tags(top: TomlTable) -> tuple[str, ...]:
    tags = top.texts("tags")
    right: list[str] = []
    for tag in tags:
        meant = [tag] if tag in KNOWN_TAGS else closest_names(tag, KNOWN_TAGS)
        right.extend(f'"{name}"' for name in meant[:1])
    for tag in tags:
        if tag not in KNOWN_TAGS:
            top.fail(
                "tags",
                f"unknown tag {shown(tag)}",
                listing("tags", KNOWN_TAGS),
                suggestion=in_target_file(f"tags = [{', '.join(dict.fromkeys(right))}]"),
            )
    return tags


MAX_CACHE_LINE_BYTES = 4096
MAX_TOUCH_ALIGNMENT = 1 << 16
# Of a byte: so that what a whole model costs stays within the numbers that the planner takes.
MAX_COST = 1_000_000


def _read_memory(name: str, table: TomlTable) -> model.Memory:
    table.require("size")
    size = table.limit("size", model.UNLIMITED)
    memory = model.Memory(
        name=name,
        size_bytes=None if isinstance(size, model.Unlimited) else size,
        base=table.address("base"),
        aliases=table.addresses("aliases"),
        access=table.choice("access", model.MemoryAccess.READ_WRITE),
        section=_read_section(table),
        region=table.text("region", "", _REGION, _A_REGION) or None,
        read_cost=table.integer("read-cost", 1, 1, MAX_COST),
        write_cost=table.integer("write-cost", 1, 1, MAX_COST),
    )
    table.finish()
    return replace(memory, size_bytes=None, base=None, aliases=()) if table.has_failed else memory


def _read_section(table: TomlTable) -> str | None:
    return table.text("section", "", _SECTION, _A_SECTION) or None


def _read_device(name: str, table: TomlTable, *, is_micro: bool) -> model.Device:
    table.require("isa", "reach")
    default_alloca_bytes = 0 if is_micro else DEFAULT_HOST_ALLOCA_SIZE_BYTES
    isa = _read_isa(table)
    device = model.Device(
        name=name,
        isa=isa,
        reach=_read_reach(table),
        contexts=_read_contexts(name, table),
        max_stack_alloca_size_bytes=table.limit(
            "max-stack-alloca-size", default_alloca_bytes, zero_allowed=True
        ),
        max_local_size_bytes=table.size("max-local-size", model.DEFAULT_LOCAL_SIZE_BYTES, zero_allowed=True),
        use_backend_alloc_workspace=table.boolean("use-backend-alloc-workspace", False),
        stack_allowance_per_call_bytes=table.size(
            "stack-allowance-per-call", isa.stack_allowance_bytes, zero_allowed=True
        ),
        ranks=_read_ranks(table),
        address_bits=table.integer("address-bits", isa.address_bits, 16, 64),
        operators=_read_operators(table),
        cost_per_mac=table.integer("cost-per-mac", 1, 1, MAX_COST),
        cache_line_bytes=_power_of_two(
            table, "cache-line", table.size("cache-line", 0, zero_allowed=True), MAX_CACHE_LINE_BYTES
        ),
        touch_alignment=_power_of_two(
            table, "touch-alignment", table.integer("touch-alignment", 1, 1), MAX_TOUCH_ALIGNMENT
        ),
    )
    if table.has("reach") and not device.reach and not table.has_failed:
        table.fail("reach", f"device {name!r} reaches no memory")
    table.finish()
    return device


def _power_of_two(table: TomlTable, key: str, value: int, largest: int) -> int:
    """The value; or 0 or 1 where it is no power of two, or too large."""
    if value & (value - 1):
        table.fail(key, f"{key!r} must be a power of two, not {value}")
    elif value > largest:
        table.fail(key, f"{key!r} is {value}, but the largest allowed is {largest}")
    else:
        return value
    return min(value, 1)


def _read_operators(table: TomlTable) -> tuple[str, ...]:
    operators = table.texts("operators")
    for name in operators:
        if not _OPERATOR.fullmatch(name):
            table.fail(
                "operators", f"{shown(name)} is not the name of an operator, such as 'conv2d', nor 'all'"
            )
    return operators


def _read_isa(table: TomlTable) -> Isa:
    """The record of the name; one without a name where there is a mistake, of which no more is said."""
    name = table.text("isa", "", None, "the name of an instruction set")
    isa = find_isa(name)
    if isa is None and table.has("isa") and not table.has_failed:
        table.fail("isa", f"there is no instruction set {shown(name)}", isa_note(), suggestion=isa_help(name))
    return isa or Isa("", 64)


def _read_reach(table: TomlTable) -> tuple[model.Reach, ...]:
    """Memory names, or tables such as `{ memory = NAME, base = ADDRESS }` for a memory seen elsewhere."""
    reach: list[model.Reach] = []
    for value in table.array("reach"):
        if isinstance(value, str):
            reach.append(model.Reach(value))
        elif entry := table.inner_table(value, ("reach",), "'reach' must hold memory names or tables"):
            entry.require("memory")
            memory, base = entry.name("memory"), entry.address("base")
            port, is_coherent = entry.name("port") or None, entry.boolean("coherent", True)
            reach.append(model.Reach(memory, base, port, is_coherent))
            entry.finish()
            table.has_failed |= entry.has_failed
    return tuple(reach)


def _read_contexts(name: str, table: TomlTable) -> tuple[model.ExecutionContext, ...]:
    """The contexts declared in tables of their own, or the single one that bears the device's name.

    With tables, the device's own keys are the defaults of all its contexts.
    """
    shared = _read_context(name, table, model.ExecutionContext(name, ""))
    contexts: list[model.ExecutionContext] = []
    for context_name, context_table in table.named_tables("context").items():
        context = _read_context(f"{name}.{context_name}", context_table, shared)
        if not context.memory and not context_table.has_failed:
            context_table.fail(None, f"context {context.name!r} has no stack: the key 'stack' is missing")
        context_table.finish()
        contexts.append(context)
    if contexts:
        return tuple(context for context in contexts if context.memory)
    if shared.memory:
        return (shared,)
    for key in ("max-stack-size", "stack-reserve"):
        if table.has(key):
            table.fail(key, f"device {name!r} has {key!r} but no stack", suggestion="add `stack = MEMORY`")
    return ()


def _read_context(name: str, table: TomlTable, default: model.ExecutionContext) -> model.ExecutionContext:
    inherited = default.max_stack_size_bytes
    limit = table.limit("max-stack-size", model.UNLIMITED if inherited is None else inherited)
    return model.ExecutionContext(
        name=name,
        memory=table.name("stack", default.memory),
        max_stack_size_bytes=None if isinstance(limit, model.Unlimited) or limit == 0 else limit,
        stack_reserve_bytes=table.size("stack-reserve", default.stack_reserve_bytes, zero_allowed=True),
    )


def _read_ranks(table: TomlTable) -> tuple[model.Rank, ...]:
    names = table.texts("ranks") if table.has("ranks") else (model.Rank.GLOBAL.value, model.Rank.LOCAL.value)
    known = [rank.value for rank in model.Rank]
    for name in names:
        if name not in known:
            table.fail(
                "ranks",
                f"unknown rank {shown(name)}",
                listing("ranks", known),
                suggestion=closest(name, known),
            )
    for needed in (model.Rank.GLOBAL, model.Rank.LOCAL):
        if needed.value not in names:
            table.fail("ranks", f"rank {needed.value!r} is missing from 'ranks'; every device has it")
    return tuple(rank for rank in model.Rank if rank.value in names)


def _read_pool(role: model.Role, table: TomlTable) -> model.Pool:
    table.require("name", "memory")
    size_bytes = table.size("size", 0) or None
    takes_remainder = table.boolean("remainder", not table.has("size"))
    if not takes_remainder and not table.has("size"):
        table.fail("remainder", "a pool without `size` takes the remainder of its memory")
    alignment = table.integer("alignment", model.DEFAULT_ALIGNMENT, 1)
    if alignment & (alignment - 1):
        table.fail("alignment", f"'alignment' must be a power of two, not {alignment}")
    pool = model.Pool(
        name=table.name("name", "unnamed"),
        memory=table.name("memory"),
        role=role,
        size_bytes=size_bytes,
        alignment=alignment,
        provider=table.choice("provider", model.DEFAULT_PROVIDER[role]),
        devices=table.texts("devices"),
        takes_remainder=takes_remainder,
        section=_read_section(table),
    )
    if role is model.Role.PARAMETERS:
        load_memory = table.name("from") or None
        pool = replace(pool, load=table.choice("load", model.Loader.LINKER), load_memory=load_memory)
    if table.has("devices") and not pool.devices and not table.has_failed:
        table.fail(
            "devices", f"pool {pool.name!r} is for no device; without 'devices' it is for all that reach it"
        )
    table.finish()
    return pool


def _read_scope_tag(name: str, table: TomlTable) -> model.ScopeTag:
    lowering_pass = table.text("lowered-by", "", SYMBOL_PATTERN, "the name of a pass")
    table.finish()
    return model.ScopeTag(name, lowering_pass or None)


def _read_external_stacks(table: TomlTable, isa: Isa | None) -> tuple[model.ExternalStack, ...]:
    """Those of a library whose figures the default device's instruction set has, then each that is written out."""
    name = table.text("libraries", "", None, "the name of a library")
    library = isa.library(name) if isa else None
    if isa is not None and table.has("libraries") and not table.has_failed and library is None:
        message = f"there are no figures of library {shown(name)} for {shown(isa.name)}"
        known = [entry.name for entry in isa.libraries]
        table.fail("libraries", message, listing("libraries", known), suggestion=closest(name, known))
    symbols = table.subtable("external")
    table.finish()
    sizes = dict(library.sizes if library else ())
    for symbol in symbols.keys:
        if not SYMBOL_PATTERN.fullmatch(symbol):
            symbols.fail(symbol, f"{symbol!r} is not the name of a C function")
        sizes[symbol] = symbols.size(symbol, 0, zero_allowed=True)
    return tuple(model.ExternalStack(symbol, size_bytes) for symbol, size_bytes in sizes.items())
