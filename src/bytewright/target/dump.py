"""A target as the plain values that `load.py` reads, and as TOML text.

Everything that has a default is written out, so that the text shows the layout as the compiler sees it. The
size of a pool that takes what its memory has left is written with `remainder = true` beside it, so that
reading it back gives an equal target, one that still follows when something else in that memory is resized.
"""

import json
from collections.abc import Mapping
from typing import cast

from bytewright.target.model import (
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
)


def dump(target: Target) -> dict[str, object]:
    """The target as values that JSON can hold: sizes and addresses are integers."""
    description: dict[str, object] = {"name": target.name}
    if target.description:
        description["description"] = target.description
    description["tags"] = list(target.tags)
    description["default-device"] = target.default_device_name
    description["memory"] = {memory.name: _dump_memory(memory) for memory in target.memories}
    description["device"] = {device.name: _dump_device(device) for device in target.devices}
    for role in Role:
        if pools := [pool for pool in target.pools if (Role.IO if pool.is_for_io else pool.role) is role]:
            description[role.value] = [_dump_pool(pool) for pool in pools]
    if target.scope_tags:
        description["scope-tag"] = {
            tag.name: {"lowered-by": tag.lowering_pass} if tag.lowering_pass else {}
            for tag in target.scope_tags
        }
    if target.external_stacks:
        external = {entry.symbol: entry.size_bytes for entry in target.external_stacks}
        description["stack"] = {"external": external}
    return description


def _dump_memory(memory: Memory) -> dict[str, object]:
    values: dict[str, object] = {}
    if memory.base is not None:
        values["base"] = memory.base
    if memory.aliases:
        values["aliases"] = list(memory.aliases)
    values["size"] = "unlimited" if memory.size_bytes is None else memory.size_bytes
    values["access"] = memory.access.value
    if memory.section is not None:
        values["section"] = memory.section
    values["read-cost"] = memory.read_cost
    values["write-cost"] = memory.write_cost
    return values


def _dump_reach(reach: Reach) -> object:
    return reach.memory if reach.base is None else {"memory": reach.memory, "base": reach.base}


def _dump_context(context: ExecutionContext) -> dict[str, object]:
    values: dict[str, object] = {"stack": context.memory}
    if context.max_stack_size_bytes is not None:
        values["max-stack-size"] = context.max_stack_size_bytes
    values["stack-reserve"] = context.stack_reserve_bytes
    return values


def _dump_device(device: Device) -> dict[str, object]:
    limit = device.max_stack_alloca_size_bytes
    values: dict[str, object] = {
        "isa": device.isa.name,
        "reach": [_dump_reach(reach) for reach in device.reach],
    }
    own_tables: dict[str, object] = {}
    for context in device.contexts:
        if context.name == device.name:
            values |= _dump_context(context)
        else:
            own_tables[context.name.removeprefix(f"{device.name}.")] = _dump_context(context)
    values["max-stack-alloca-size"] = limit.value if isinstance(limit, Unlimited) else limit
    values["max-local-size"] = device.max_local_size_bytes
    values["use-backend-alloc-workspace"] = device.use_backend_alloc_workspace
    values["stack-allowance-per-call"] = device.stack_allowance_per_call_bytes
    values["ranks"] = [rank.value for rank in device.ranks]
    values["address-bits"] = device.address_bits
    if own_tables:
        values["context"] = own_tables
    return values


def _dump_pool(pool: Pool) -> dict[str, object]:
    values: dict[str, object] = {"name": pool.name, "memory": pool.memory}
    if pool.size_bytes is not None:
        values["size"] = pool.size_bytes
    if pool.takes_remainder:
        values["remainder"] = True
    values["alignment"] = pool.alignment
    values["provider"] = pool.provider.value
    if pool.section is not None:
        values["section"] = pool.section
    if pool.role is Role.PARAMETERS:
        values["load"] = pool.load.value
    if pool.load_memory is not None:
        values["from"] = pool.load_memory
    values["devices"] = list(pool.devices)
    return values


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
