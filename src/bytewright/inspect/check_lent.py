"""Whether each device is lent for a run what the plan says: the tables of memories, and the table of the devices."""

import re
from collections.abc import Iterator

from bytewright import ir
from bytewright.inspect.read_c import most_bytes
from bytewright.record.names import Names
from bytewright.record.plan import Plan, PlannedDevice

# One entry of a table: the address, or number and offset of what has none; the bytes with every extent at its largest;
# and the access.
_Lent = tuple[str, int | None, str]


def differences_of_lent(path: str, plan: Plan, names: Names, source: str) -> Iterator[str]:
    """What is lent to devices otherwise than the plan says, and devices that are not taken into use."""
    if not plan.devices:
        return
    run = source.partition(f"int32_t {names.end}(")[2]
    tables = dict(
        re.findall(rf"const {names.span_type} (\w+_memories)\[\] = \{{\n(.*?)^ +\}};", run, re.M | re.S)
    )
    used: list[tuple[str, str, int]] = []
    for device in plan.devices.values():
        expected, table = _expected(plan, names, device), f"{device.c_name}_memories"
        actual = _entries(tables.pop(table, ""), plan)
        used.append((device.c_name, table if expected else "NULL", len(expected)))
        for lent in (entry for entry in expected if entry not in actual):
            yield f"{path} does not lend device '{device.name}' {_text(lent)}"
        for lent in (entry for entry in actual if entry not in expected):
            yield f"{path} lends device '{device.name}' {_text(lent)}, which the plan does not"
        if sorted(actual, key=str) == sorted(expected, key=str) and actual != expected:
            yield f"{path} lends device '{device.name}' its memories in another order than the plan"
    yield from (f"{path} has the table {table}, which is of no device of the plan" for table in tables)
    uses = re.findall(r"^ +\{&devices->(\w+), (\w+), (\d+)u\},$", run, re.MULTILINE)
    if [(device, table, int(count)) for device, table, count in uses] != used:
        yield f"{path} does not take the devices of the plan into use, in order, each with its memories"
    counts = re.findall(r"\b(begin_devices|end_devices)\(uses, (.*)\);", run)
    number = f"{len(used)}u"
    if counts != [("begin_devices", number), ("end_devices", f"{number}, {number}")]:
        yield f"{path} does not begin and end the use of all {len(used)} devices once"


def _entries(table: str, plan: Plan) -> list[_Lent]:
    """What a table lends."""
    upper = {symbol.name: symbol.upper for symbol in plan.symbols}
    found: list[_Lent] = []
    for line in table.splitlines():
        entry = re.fullmatch(r" +lend(?:_in)?\((.*), (.*?)u, ([\w |]+)\),", line)
        found.append((entry[1], most_bytes(entry[2], upper), entry[3]) if entry else (line.strip(), None, ""))
    return found


def _expected(plan: Plan, names: Names, device: PlannedDevice) -> list[_Lent]:
    """What the plan lends: parts of pools, and arrays of the caller."""
    both, read = f"{names.span_read} | {names.span_write}", names.span_read
    found: list[_Lent] = []
    for lent in plan.lent_to(device.name):
        pool = plan.pools[lent.pool]
        if pool.obtained_by is not None:
            access = f"{both} | {names.span_obtain}" if lent.is_obtained else both
            found.append((f"{names.device_memory(pool)}, {lent.offset}u", lent.size_bytes, access))
            continue
        base = f"context->{pool.c_name}" if pool.is_set else names.array(pool)
        address = f"{base} + {lent.offset}" if lent.offset else base
        found.append((address, lent.size_bytes, both if lent.is_written else read))
    for border in ir.Border:
        access = read if border is ir.Border.INPUT else both
        for tensor in plan.tensors_lent_to(device.name, border):
            found.append((names.member(border, tensor.c_name), tensor.size_bytes, access))
    return found


def _text(lent: _Lent) -> str:
    address, size_bytes, access = lent
    return f"{'some' if size_bytes is None else size_bytes} B at '{address}' as '{access}'"
