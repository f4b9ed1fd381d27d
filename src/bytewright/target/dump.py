"""A target as the plain values that `load.py` reads, and as TOML text.

Everything that has a default is written out, so that the text shows the layout as the compiler sees it, but for what
is of a device among others (operators, costs, cache lines), which a lone device need not be told of. The
size of a pool that takes what its memory has left is written with `remainder = true` beside it, so that
reading it back gives an equal target, one that still follows when something else in that memory is resized.
"""

import json
from collections.abc import Mapping
from typing import cast

from bytewright.target.model import (
    UNLIMITED,
    Device,
    ExecutionContext,
    Memory,
    Pool,
    Reach,
    Role,
    Target,
    Unlimited,
)
from bytewright.target.size import format_size

_ADDRESS_KEYS = ("base", "aliases")
_SIZE_KEYS = (
    "size",
    "max-stack-size",
    "stack-reserve",
    "max-stack-alloca-size",
    "max-local-size",
    "stack-allowance-per-call",
    "cache-line",
)


def dump(target: Target) -> dict[str, object]:
    """The target as values that JSON can hold: sizes and addresses are integers."""
    pools = {
        role: [_dump_pool(p) for p in target.pools if (Role.IO if p.is_for_io else p.role) is role]
        for role in Role
    }
    external = {entry.symbol: entry.size_bytes for entry in target.external_stacks}
    return _table(
        name=target.name,
        description=target.description or None,
        tags=list(target.tags),
        default_device=target.default_device_name,
        memory={memory.name: _dump_memory(memory) for memory in target.memories},
        device={device.name: _dump_device(device) for device in target.devices},
        **{role.value: listed or None for role, listed in pools.items()},
        scope_tag={tag.name: _table(lowered_by=tag.lowering_pass) for tag in target.scope_tags} or None,
        stack={"external": external} if external else None,
    )


def _table(**values: object) -> dict[str, object]:
    """A table of a description: its keys have dashes, and those without a value are not there."""
    return {key.replace("_", "-"): value for key, value in values.items() if value is not None}


def _dump_memory(memory: Memory) -> dict[str, object]:
    return _table(
        base=memory.base,
        aliases=list(memory.aliases) or None,
        size=UNLIMITED.value if memory.size_bytes is None else memory.size_bytes,
        access=memory.access.value,
        section=memory.section,
        region=memory.region,
        read_cost=memory.read_cost,
        write_cost=memory.write_cost,
    )


def _dump_reach(reach: Reach) -> object:
    if reach.is_plain:
        return reach.memory
    coherent = None if reach.is_coherent else False
    return _table(memory=reach.memory, base=reach.base, port=reach.port, coherent=coherent)


def _dump_context(context: ExecutionContext) -> dict[str, object]:
    return _table(
        stack=context.memory,
        max_stack_size=context.max_stack_size_bytes,
        stack_reserve=context.stack_reserve_bytes,
    )


def _dump_device(device: Device) -> dict[str, object]:
    """A context that is called as the device has no table of its own."""
    contexts = {context.name: _dump_context(context) for context in device.contexts}
    limit = device.max_stack_alloca_size_bytes
    alone = Device(device.name, device.isa, device.reach)  # what only matters beside other devices

    def beside(value: int, default: int) -> int | None:
        return None if value == default else value

    return _table(
        isa=device.isa.name,
        reach=[_dump_reach(reach) for reach in device.reach],
        **contexts.pop(device.name, {}),
        max_stack_alloca_size=limit.value if isinstance(limit, Unlimited) else limit,
        max_local_size=device.max_local_size_bytes,
        use_backend_alloc_workspace=device.use_backend_alloc_workspace,
        stack_allowance_per_call=device.stack_allowance_per_call_bytes,
        ranks=[rank.value for rank in device.ranks],
        address_bits=device.address_bits,
        operators=list(device.operators) or None,
        cost_per_mac=beside(device.cost_per_mac, alone.cost_per_mac),
        cache_line=beside(device.cache_line_bytes, alone.cache_line_bytes),
        touch_alignment=beside(device.touch_alignment, alone.touch_alignment),
        context={name.removeprefix(f"{device.name}."): own for name, own in contexts.items()} or None,
    )


def _dump_pool(pool: Pool) -> dict[str, object]:
    return _table(
        name=pool.name,
        memory=pool.memory,
        size=pool.size_bytes,
        remainder=True if pool.takes_remainder else None,
        alignment=pool.alignment,
        provider=pool.provider.value,
        section=pool.section,
        load=pool.load.value if pool.role is Role.PARAMETERS else None,
        **{"from": pool.load_memory},
        devices=list(pool.devices),
    )


def dump_toml(target: Target) -> str:
    """The target as TOML text, for people: sizes with units, addresses in hexadecimal."""
    return "\n".join(_table_lines(dump(target), ())).lstrip("\n") + "\n"


def _table_lines(values: Mapping[str, object], path: tuple[str, ...]) -> list[str]:
    """A table's own keys first, then the tables in it, as TOML wants them."""
    are_sizes = path == ("stack", "external")
    lines: list[str] = []
    tables: list[str] = []
    for key, value in values.items():
        inner = (*path, key)
        if isinstance(value, Mapping):
            table = cast("Mapping[str, object]", value)
            if not table or any(not isinstance(item, Mapping) for item in table.values()):
                tables.extend(["", f"[{'.'.join(inner)}]"])
            tables.extend(_table_lines(table, inner))
        elif isinstance(value, list) and not path and key in {role.value for role in Role}:
            for item in cast("list[Mapping[str, object]]", value):
                tables.extend(["", f"[[{key}]]", *_table_lines(item, inner)])
        else:
            lines.append(f"{key} = {_literal(value, key, is_size=are_sizes or key in _SIZE_KEYS)}")
    return lines + tables


def _literal(value: object, key: str, *, is_size: bool = False) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return hex(value) if key in _ADDRESS_KEYS else f'"{format_size(value)}"' if is_size else str(value)
    if isinstance(value, list):
        return f"[{', '.join(_literal(item, key) for item in cast('list[object]', value))}]"
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value).items()
        return f"{{ {', '.join(f'{name} = {_literal(item, name)}' for name, item in members)} }}"
    return json.dumps(value, ensure_ascii=False)  # printable text: JSON's escapes are TOML's
