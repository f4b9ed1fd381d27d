"""What ends a block of channels: the epilogue on vectors of finished sums, or element by element."""

from collections.abc import Sequence

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.ir.rewrite import Rewriting, rewrite_statement
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.vectorise import vectorise
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.side_by_side import Finished
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import element


def store_lanes(
    template: Template,
    unit: VectorUnit,
    pixel: Coordinates,
    channel: ir.Expr,
    totals: ir.Buffer,
    finished: Finished,
    first: ir.Expr | int = 0,
    num: int | None = None,
) -> None:
    """Computes the epilogue of as many channels as the unit has lanes, or of fewer, and stores them.

    Args:
        template: The kernel under construction.
        unit: Its vectors.
        pixel: The position under the output: all coordinates but the channel.
        channel: The first channel.
        totals: A register with their finished sums, or memory.
        finished: The anchor's element, given the sum of a channel, and that channel.
        first: Where the first of them lies in memory; 0 for a register.
        num: How many channels, where they are not as many as lanes: they are computed one by one.
    """
    body, epilogue = template.body, template.epilogue
    lane = ir.Var(body.unique_name("lane"), ir.DType.I32)
    with body.captured() as statements:
        value = finished(element(load(totals, lane + first)).expr, channel + lane)
        epilogue.store((*pixel, channel + lane), value)
    if num is None and vectorise(body, unit, lane, statements):
        return
    # No instruction for something in it: lanes one by one, from memory.
    end = ir.const(unit.count if num is None else num)
    if totals.register:
        sums = template.kernel.scratch("sums", (unit.count,), totals.dtype)
        body.execute(unit.stores[totals.dtype], region(sums, 0), totals)
        statements = _from_memory(statements, totals, sums)
    body.emit(ir.For(lane, ir.const(0), end, ir.Seq(tuple(statements))))


def _from_memory(
    statements: Sequence[ir.Statement], totals: ir.Buffer, sums: ir.Buffer
) -> list[ir.Statement]:
    """The statements with sums that are read from memory instead of a register."""

    def read(node: ir.Expr) -> ir.Expr:
        is_sum = isinstance(node, ir.Load) and node.buffer == totals
        return ir.Load(sums, node.indices) if is_sum and isinstance(node, ir.Load) else node

    rewriting = Rewriting(expression=read)
    return [new for statement in statements for new in rewrite_statement(statement, rewriting)]
