"""Products of two tensors of int8 on MVE: two rows by four columns at a time, by dot products along the inner axis.

Four columns are packed as the weights of a convolution are, once for all rows. Their elements stay as they are, and so
do those of rows: what zero points come to is `- z1 * sum(b)` of a column, in what its sums start from, and
`- z2 * sum(a)` of a row.
"""

from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.isa.mve.convolve import PIXELS, sum_block
from bytewright.lower.isa.mve.dot_products import CHANNELS, LEAST_DEPTH, Chunks
from bytewright.lower.isa.mve.lanes import UNIT
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.kernels.context import Template, counted, loops, named
from bytewright.lower.kernels.matmul import Product
from bytewright.lower.kernels.side_by_side import Finished
from bytewright.lower.point import Coordinates
from bytewright.ops.matmul import TflBatchMatMul

I8, I32 = ir.DType.I8, ir.DType.I32
# Sums of products and all that zero points come to stay within 32 bits: four times 2^14 a product.
MAX_DEPTH = 1 << 14


def matmul_declines(template: Template, operation: TflBatchMatMul) -> str | None:
    """Why this is no product for the kernel below."""
    if any(template.type(operand).dtype is not I8 for operand in range(2)):
        return "its elements are not int8"
    if operation.adjoint_first:
        return "the rows of its first operand lie across"
    product = Product(template, operation)
    extents = product.depth, product.num_columns, template.result_type.shape[-2]
    if not all(isinstance(extent, int) for extent in extents):
        return "how large its matrices are is not known"
    depth = ir.upper_bound(product.depth)
    if not LEAST_DEPTH <= depth <= MAX_DEPTH:
        return f"its sums are of {depth} products, not of {LEAST_DEPTH} to {MAX_DEPTH}"
    return None


def write_matmul(template: Template, operation: TflBatchMatMul) -> None:
    """Writes the kernel of a product: [..., H, K] and [..., K, W] to [..., H, W]."""
    product, shape = Product(template, operation), template.result_type.shape
    whole, rest = divmod(ir.upper_bound(product.num_columns), CHANNELS)
    with loops(template.kernel, shape, range(len(shape) - 2)) as indices:
        kernel = _Kernel(template, product, tuple(indices.values()))
        if whole:
            with counted(template.body, "block", whole) as block, template.body.block():
                kernel.write(block * CHANNELS, None)
        if rest:
            with template.body.block():
                kernel.write(ir.const(whole * CHANNELS), rest)


@dataclass(frozen=True, slots=True)
class _Packed:
    """Columns beside one another, and what their sums start from."""

    columns: ir.Buffer
    initial: ir.Buffer


class _Kernel:
    """One product of two matrices."""

    def __init__(self, template: Template, product: Product, batch: Coordinates) -> None:
        self.template, self.body, self.product, self.batch = template, template.body, product, batch
        self.chunks = Chunks(ir.upper_bound(product.depth))
        self.num_rows = ir.upper_bound(template.result_type.shape[-2])
        self.zero_points = product.operation.first_zero_point, product.operation.second_zero_point
        self.of_rows = self._sums_of_rows() if self.zero_points[1] else None

    def _sums_of_rows(self) -> ir.Buffer:
        """What comes off the sums of each row for the second zero point."""
        body = self.body
        found = self.template.kernel.scratch("of_rows", (self.num_rows,), I32)
        with body.for_("row", 0, self.num_rows) as row:
            total = body.scalar("total", I32, 0)
            elements = self._row(row)
            with body.for_("k", 0, self.chunks.depth) as k:
                *outer, _ = elements.indices
                body.add_to(total, (), ir.cast(load(elements.buffer, *outer, k), I32))
            body.store(found, row, load(total) * self.zero_points[1])
        return found

    def _row(self, row: ir.Expr) -> ir.Region:
        """A row of the first operand."""
        return self.product.place(0, self.batch, (row, ir.const(0)))

    def write(self, first: ir.Expr, num: int | None) -> None:
        """Writes four columns from one on, or as many as there are left."""
        packed = self._pack(first, CHANNELS if num is None else num)
        pairs, single = divmod(self.num_rows, PIXELS)
        if pairs:
            with counted(self.body, "pair", pairs) as pair, self.body.block():
                self._write_rows(pair * PIXELS, PIXELS, packed, first, num)
        if single:
            with self.body.block():
                self._write_rows(ir.const(pairs * PIXELS), single, packed, first, num)

    def _pack(self, first: ir.Expr, num: int) -> _Packed:
        """Packs columns, and adds them up; those that fill up a block are zeros, and so is what two chunks share."""
        body, kernel, chunks = self.body, self.template.kernel, self.chunks
        depth, width, whole = chunks.depth, chunks.width, chunks.num_whole
        columns = kernel.scratch("columns", (chunks.block_bytes,), I8)
        initial = kernel.scratch("initial", (CHANNELS,), I32)
        if num < CHANNELS or chunks.is_ragged:
            with body.for_("place", 0, chunks.block_bytes) as place:
                body.store(columns, place, 0)
            with body.for_("j", 0, CHANNELS) as j:
                body.store(initial, j, 0)
        with body.for_("j", 0, num) as j:
            total = body.scalar("total", I32, 0)

            def copy(chunk: ir.Expr, begin: ir.Expr, end: int, source: ir.Expr) -> None:
                with body.for_("k", begin, end) as k:
                    value = body.let("value", self._second(source + k, first + j))
                    body.store(columns, (chunk * CHANNELS + j) * width + k, value)
                    body.add_to(total, (), ir.cast(value, I32))

            with counted(body, "chunk", whole) as chunk:
                copy(chunk, ir.const(0), width, chunk * width)
            if chunks.is_ragged:
                shared = whole * width - chunks.offsets[-1]
                copy(ir.const(whole), ir.const(shared), width, ir.const(chunks.offsets[-1]))
            one, two = self.zero_points
            body.store(initial, j, depth * one * two - load(total) * one)
        return _Packed(columns, initial)

    def _second(self, k: ir.Expr, column: ir.Expr) -> ir.Expr:
        """An element of the second operand as it is."""
        place = self.product.place(
            1, self.batch, (column, k) if self.product.operation.adjoint_second else (k, column)
        )
        return load(place.buffer, *place.indices)

    def _write_rows(self, row: ir.Expr, size: int, packed: _Packed, first: ir.Expr, num: int | None) -> None:
        """Sums four columns of one row or two, and stores them."""
        body = self.body
        rows = [named(body, f"row{i}", row + i) for i in range(size)]
        totals = [UNIT.register(body, f"totals{i}") for i in range(size)]
        body.execute(
            sum_block(size, self.chunks.depth),
            *totals,
            *(self._row(each) for each in rows),
            region(packed.columns, 0),
            region(packed.initial, 0),
        )
        for i, (each, total) in enumerate(zip(rows, totals, strict=True)):
            with body.numbered(i):
                store_lanes(
                    self.template, UNIT, (*self.batch, each), first, total, self._finished(each), num=num
                )

    def _finished(self, row: ir.Expr) -> Finished:
        if self.of_rows is None:
            return lambda total, _: self.product.bounded(total)
        off = named(self.body, "off", load(self.of_rows, row))
        return lambda total, _: self.product.bounded(total - off)
