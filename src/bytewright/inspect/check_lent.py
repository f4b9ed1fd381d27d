"""Whether each device is lent for a run what the plan says: the tables of memories, and the table of the devices."""

from collections.abc import Iterator

from pycparser import c_ast

from bytewright import ir
from bytewright.inspect.c_nodes import call_of, most_bytes, spell, type_name
from bytewright.inspect.c_source import CSource, descend
from bytewright.inspect.read_entry import flags_of
from bytewright.record.devices import PlannedDevice
from bytewright.record.names import Names
from bytewright.record.plan import Plan

# One entry of a table: the address, or number and offset of what has none; the bytes with every extent at its largest;
# and the access.
_Lent = tuple[str, int | None, str]


def differences_of_lent(path: str, plan: Plan, names: Names, source: CSource) -> Iterator[str]:
    """What is lent to devices otherwise than the plan says, and devices that are not taken into use."""
    if not plan.devices:
        return
    run = source.function(names.end)
    nodes = [] if run is None else list(descend(run.body))
    arrays = {node.name: node for node in nodes if isinstance(node, c_ast.Decl) and _is_array(node)}
    tables = {name: node for name, node in arrays.items() if type_name(node.type) == names.span_type}
    used: list[list[str]] = []
    for device in plan.devices.values():
        expected, table = _expected(plan, names, device), f"{device.c_name}_memories"
        actual = [_lent(node, plan) for node in tables.pop(table).init.exprs] if table in tables else []
        used.append([f"&devices->{device.c_name}", table if expected else "NULL", f"{len(expected)}u"])
        for lent in (entry for entry in expected if entry not in actual):
            yield f"{path} does not lend device '{device.name}' {_text(lent)}"
        for lent in (entry for entry in actual if entry not in expected):
            yield f"{path} lends device '{device.name}' {_text(lent)}, which the plan does not"
        if sorted(actual, key=str) == sorted(expected, key=str) and actual != expected:
            yield f"{path} lends device '{device.name}' its memories in another order than the plan"
    yield from (f"{path} has the table {table}, which is of no device of the plan" for table in tables)
    uses = [[spell(item) for item in row] for row in arrays["uses"].init.exprs] if "uses" in arrays else []
    if uses != used:
        yield f"{path} does not take the devices of the plan into use, in order, each with its memories"
    number = f"{len(used)}u"
    expected_calls = [f"begin_devices(uses, {number})", f"end_devices(uses, {number}, {number})"]
    if [
        spell(node) for node in nodes if call_of(node)[0] in {"begin_devices", "end_devices"}
    ] != expected_calls:
        yield f"{path} does not begin and end the use of all {len(used)} devices once"


def _is_array(node: c_ast.Decl) -> bool:
    return isinstance(node.type, c_ast.ArrayDecl) and isinstance(node.init, c_ast.InitList)


def _lent(node: c_ast.Node, plan: Plan) -> _Lent:
    """What an entry of a table lends."""
    upper = {symbol.name: symbol.upper for symbol in plan.symbols}
    match call_of(node):
        case ("lend", (*place, size, access)) | ("lend_in", (*place, size, access)):
            return ", ".join(map(spell, place)), most_bytes(size, upper), " | ".join(flags_of(access))
        case _:
            return spell(node), None, ""


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
        base = names.pool_address(pool)
        address = f"{base} + {lent.offset}" if lent.offset else base
        found.append((address, lent.size_bytes, both if lent.is_written else read))
    for border in ir.SIDES:
        access = read if border is ir.Border.INPUT else both
        for tensor in plan.tensors_lent_to(device.name, border):
            found.append((names.member(border, tensor.c_name), tensor.size_bytes, access))
    return found


def _text(lent: _Lent) -> str:
    address, size_bytes, access = lent
    return f"{'some' if size_bytes is None else size_bytes} B at '{address}' as '{access}'"
