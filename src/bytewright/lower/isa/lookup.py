"""Functions of a byte in registers of bytes: a table of 256 that instructions look up many elements in at once."""

from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.lower.epilogue import Epilogue
from bytewright.lower.group import Group
from bytewright.lower.isa.vector_unit import lane_wise, memory_parameter, register_parameter
from bytewright.lower.kernel import KernelBuilder
from bytewright.lower.kernels.context import counted, loops
from bytewright.ops.quantization import Table

I8 = ir.DType.I8
ENTRIES = 256
_WRITE = ir.Access.WRITE


@dataclass(frozen=True, slots=True)
class ByteLookup:
    """Registers of bytes, and instructions that look them up.

    Attributes:
        lanes: Bytes of a register.
        c_type: Its C type.
        load: `values = elements`, of memory.
        look_up: `found = table[values + 128]` in each lane, of a table in memory.
        store: `elements = values`, to memory.
    """

    lanes: int
    c_type: str
    load: ir.Instruction
    look_up: ir.Instruction
    store: ir.Instruction

    @property
    def instructions(self) -> tuple[ir.Instruction, ...]:
        """All of them."""
        return self.load, self.look_up, self.store


def byte_lookup(
    prefix: str, lanes: int, c_type: str, feature: ir.Feature, *, load_text: str, look_up: str, store: str
) -> ByteLookup:
    """The instructions of a set, made of their C texts, with parameters named as `ByteLookup` has them."""
    values, elements = (
        register_parameter("values", lanes, I8, c_type),
        memory_parameter("elements", lanes, I8),
    )
    loaded, found = (register_parameter(name, lanes, I8, c_type, _WRITE) for name in ("values", "found"))
    written = memory_parameter("elements", lanes, I8, _WRITE)
    table, name = memory_parameter("table", ENTRIES, I8), f"{prefix}_look_up_bytes"
    body = BodyBuilder(("found", "values", "table"))
    with body.for_(f"{name}.lane", 0, lanes) as lane:
        place = ir.cast(load(values.buffer, lane), ir.DType.I32) - I8.bounds[0]
        body.store(found.buffer, lane, load(table.buffer, place))
    comment = f"What a table of {ENTRIES} has for each of {lanes} bytes."
    return ByteLookup(
        lanes,
        c_type,
        lane_wise(
            f"{prefix}_load_bytes_{lanes}",
            lanes,
            (loaded, elements),
            lambda given: given[0],
            load_text,
            feature,
        ),
        ir.Instruction(name, (found, values, table), body.finish(), look_up, feature, comment),
        lane_wise(
            f"{prefix}_store_bytes_{lanes}", lanes, (written, values), lambda given: given[0], store, feature
        ),
    )


def is_lookup(group: Group) -> bool:
    """Whether a group is one table of bytes."""
    return len(group.nodes) == 1 and isinstance(group.nodes[0].operation, Table)


def write_lookup(kernel: KernelBuilder, epilogue: Epilogue, lookup: ByteLookup) -> str | None:
    """Writes the kernel of a group that is one table; why not, in a few words, if it is too short.

    Args:
        kernel: Without a statement.
        epilogue: Of the group, under shapes in which elements that lie side by side are the last axis.
        lookup: How bytes are looked up.
    """
    (node,) = epilogue.group.nodes
    type_ = epilogue.types[node.inputs[0]]
    count = type_.shape[-1] if type_.shape else 1
    if not isinstance(count, int) or count < lookup.lanes:
        return f"fewer than {lookup.lanes} bytes lie side by side"
    body, source = kernel.body, kernel.input(node.inputs[0], type_)
    table = kernel.constant("table", epilogue.array(node.inputs[1]), I8)
    body.note(f"{lookup.lanes} bytes at a time: load, look up, store")
    with loops(kernel, type_.shape, range(len(type_.shape) - 1)) as indices:
        outer = tuple(indices.values())
        whole, rest = divmod(count, lookup.lanes)
        with counted(body, "vector", whole) as vector, body.block():
            values, found = (
                body.register(name, lookup.lanes, I8, lookup.c_type) for name in ("values", "found")
            )
            body.execute(lookup.load, values, region(source, *outer, vector * lookup.lanes))
            body.execute(lookup.look_up, found, values, region(table, 0))
            body.execute(lookup.store, region(epilogue.output, *outer, vector * lookup.lanes), found)
        if rest:
            with counted(body, "rest", rest) as index:
                epilogue.store((*outer, whole * lookup.lanes + index))
    return None
