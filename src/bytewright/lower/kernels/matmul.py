"""Matrix products of two tensors: dot products where both lie along the inner axis, else columns side by side.

Of columns side by side each sum is in the order of the inner axis, as the reference's.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.kernels.context import Template, channel_blocks, counted, loops, named
from bytewright.lower.kernels.side_by_side import ArrayReducer, Results, Start, WaitingReducer, WaitingResults
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import Scalar, require_fits
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.options import Optimize

I32 = ir.DType.I32
INTEGER_LANES = 16
# Of each column that is copied to lie side by side, and of its sums that wait for the next elements.
COPIED, COPIED_FOR_SIZE = 128, 32


def lower_batch_matmul(
    template: Template, operation: TflBatchMatMul, reducer: WaitingReducer | None = None
) -> None:
    """Writes the kernel of a product: [..., H, K] and [..., K, W] to [..., H, W]; with a reducer, of its columns."""
    product = Product(template, operation)
    is_integer = template.type(0).dtype.is_integer
    if reducer is not None and operation.adjoint_second:
        product.write_transposed(reducer)
        return
    result = template.result_type.shape
    with loops(template.kernel, result, range(len(result) - 1)) as indices:
        row = tuple(indices.values())
        if reducer is None and is_integer and operation.adjoint_second:
            product.write_dots(row)
        else:
            lanes = INTEGER_LANES if is_integer else template.style.float_lanes
            product.write_columns(row, ArrayReducer(lanes) if reducer is None else reducer)


@dataclass(frozen=True, slots=True)
class Product:
    """One product; a `row` is where a row of the result lies."""

    template: Template
    operation: TflBatchMatMul

    @property
    def depth(self) -> ir.Extent:
        """Products of a sum."""
        shape = self.template.type(0).shape
        return shape[-2] if self.operation.adjoint_first else shape[-1]

    @property
    def dtype(self) -> ir.DType:
        """Of sums."""
        return self.template.result_type.dtype

    @property
    def factors_dtype(self) -> ir.DType:
        """Of factors and their products, which 32 bits hold."""
        return I32 if self.dtype.is_integer else self.dtype

    @property
    def num_rows(self) -> ir.Extent:
        """Of a matrix of the result."""
        return self.template.result_type.shape[-2]

    @property
    def num_columns(self) -> ir.Extent:
        """Of the result."""
        return self.template.result_type.shape[-1]

    def write_dots(self, row: Coordinates) -> None:
        """Some columns at a time, each a scalar."""
        body = self.template.body
        block = self.template.style.channel_block
        for first, size in channel_blocks(body, self.num_columns, block, _summed):
            column = named(body, "column", first)
            sums = [body.scalar(f"acc{j}", self.dtype, 0) for j in range(size)]
            with counted(body, "k", self.depth) as k:
                value = body.let("value", self.first(row, k))
                for j, total in enumerate(sums):
                    product = value * self.second(row, k, column + j)
                    body.add_to(total, (), ir.cast(product, self.dtype))
            for j, total in enumerate(sums):
                with body.numbered(j):
                    self.store_element(row, column + j, load(total))

    def write_columns(self, row: Coordinates, reducer: WaitingReducer) -> None:
        """Some columns at a time, side by side."""
        for first, size in self._blocks(reducer):
            self._write_block(
                row, reducer, (first, size), lambda k, j, first=first: self.second(row, k, first + j)
            )

    def write_transposed(self, reducer: WaitingReducer) -> None:
        """As `write_columns`, of columns that lie one after another: copied for many rows, to lie side by side."""
        kernel, shape = self.template.kernel, self.template.result_type.shape
        with loops(kernel, shape, range(len(shape) - 2)) as indices:
            for first, size in self._blocks(reducer):
                block = _CopiedColumns(self, reducer, tuple(indices.values()), first, size)
                with block.each_rows() as rows:
                    block.write(*rows)

    def _blocks(self, reducer: WaitingReducer) -> Iterator[tuple[ir.Expr, int]]:
        return channel_blocks(self.template.body, self.num_columns, reducer.most_channels, _summed)

    def _write_block(
        self,
        row: Coordinates,
        reducer: WaitingReducer,
        block: tuple[ir.Expr, int],
        second: Callable[[ir.Expr, ir.Expr], ir.Expr],
    ) -> None:
        """Sums and stores some columns; `second` gives a factor by its place along the inner axis, and its column."""
        first, size = block
        results = reducer.begin(self.template, size, self.dtype, lambda _: ir.const(0, self.dtype))
        self.add(results, row, (ir.const(0), self.depth), second)
        self.store(results, row, first)

    def add(
        self,
        results: Results,
        row: Coordinates,
        inner: tuple[ir.Expr, ir.Extent],
        second: Callable[[ir.Expr, ir.Expr], ir.Expr],
    ) -> None:
        """Adds some products, from a place along the inner axis on, to sums of a row."""
        body, (begin, count) = self.template.body, inner
        with counted(body, "k", count) as k:
            value = body.let("value", self.first(row, begin + k))
            results.update(lambda total, j: total + ir.cast(value * second(k, j), self.dtype))

    def store(self, results: Results, row: Coordinates, first: ir.Expr) -> None:
        """Stores the columns of a row from one on."""
        results.store(row, first, lambda total, _: self.bounded(total))

    def first(self, row: Coordinates, k: ir.Expr) -> ir.Expr:
        """A factor by its row, and its place along the inner axis."""
        batch, height = row[:-1], row[-1]
        inner = (k, height) if self.operation.adjoint_first else (height, k)
        return self._element(0, batch, inner, self.operation.first_zero_point)

    def second(self, row: Coordinates, k: ir.Expr, column: ir.Expr) -> ir.Expr:
        """A factor by its place along the inner axis, and its column."""
        inner = (column, k) if self.operation.adjoint_second else (k, column)
        return self._element(1, row[:-1], inner, self.operation.second_zero_point)

    def _element(
        self, operand: int, batch: Coordinates, inner: tuple[ir.Expr, ir.Expr], zero_point: int
    ) -> ir.Expr:
        place = self.place(operand, batch, inner)
        value = ir.cast(load(place.buffer, *place.indices), self.factors_dtype)
        return value - zero_point if zero_point else value

    def place(self, operand: int, batch: Coordinates, inner: tuple[ir.Expr, ir.Expr]) -> ir.Region:
        """Where an element of an operand lies; its leading axes are the last of the result's, and may be broadcast."""
        outer = self.template.type(operand).shape[:-2]
        own = batch[len(batch) - len(outer) :]
        indices = [ir.const(0) if extent == 1 else index for index, extent in zip(own, outer, strict=True)]
        return region(self.template.input(operand), *indices, *inner)

    def store_element(self, row: Coordinates, column: ir.Expr, total: ir.Expr) -> None:
        """Stores one element of a row, given its sum."""
        self.template.epilogue.store((*row, column), self.bounded(total))

    def bounded(self, total: ir.Expr) -> Scalar:
        """A finished sum.

        Raises:
            CompileError: BW110 if a sum of integers could leave its type.
        """
        if not self.dtype.is_integer:
            return Scalar(total)
        ends = [
            tuple(bound - zero_point for bound in self.template.type(operand).dtype.bounds)
            for operand, zero_point in enumerate(
                (self.operation.first_zero_point, self.operation.second_zero_point)
            )
        ]
        corners = [a * b * ir.upper_bound(self.depth) for a in ends[0] for b in ends[1]]
        ends = min(corners), max(corners)
        require_fits(ends, self.dtype, "the accumulator", self.template.anchor.where)
        return Scalar(total, *ends)


@dataclass(frozen=True, slots=True)
class _CopiedColumns:
    """A block of columns that lie one after another, copied to lie side by side: a stretch of them at a time.

    Where there are several stretches, sums of a row wait in scratch for the next.

    Attributes:
        batch: Coordinates before the row.
        first: The first column.
        size: How many.
    """

    product: Product
    reducer: WaitingReducer
    batch: Coordinates
    first: ir.Expr
    size: int

    @property
    def depth(self) -> int:
        """Elements of a column."""
        extent = self.product.depth
        assert isinstance(extent, int)  # or the template declines
        return extent

    @property
    def most_kept(self) -> int:
        """Elements in scratch for each column, sums that wait included."""
        is_small = self.product.template.kernel.optimize is Optimize.SIZE
        return COPIED_FOR_SIZE if is_small else COPIED

    @property
    def rows_at_once(self) -> int:
        """Rows whose sums wait: as many each time, of which half of what is kept is enough."""
        return _part(ir.upper_bound(self.product.num_rows), self.most_kept // 2)

    @property
    def stretch(self) -> int:
        """Elements of each column that are copied at once: all, or as many each time beside the sums."""
        kept = self.most_kept
        return self.depth if self.depth <= kept else _part(self.depth, kept - self.rows_at_once)

    @contextmanager
    def each_rows(self) -> Generator[tuple[ir.Expr, ir.Expr], None, None]:
        """Yields the first of some rows, and the end of them."""
        num_rows, at_once = self.product.num_rows, self.rows_at_once
        if self.stretch == self.depth or ir.upper_bound(num_rows) == at_once:
            yield ir.const(0), ir.extent_expr(num_rows)
            return
        body = self.product.template.body
        with counted(body, "rows", ir.quotient(num_rows, at_once - 1, at_once)) as index:
            begin = named(body, "begin", index * at_once)
            end = ir.minimum(begin + at_once, ir.extent_expr(num_rows))
            yield begin, body.let("end", end)

    def write(self, begin: ir.Expr, end: ir.Expr) -> None:
        """Writes the sums of some rows."""
        product, body = self.product, self.product.template.body
        kernel, dtype = product.template.kernel, product.dtype
        columns = kernel.scratch("columns", (self.stretch, self.size), dtype)
        num_before = (self.depth - 1) // self.stretch
        if not num_before:
            self._copy(columns, ir.const(0), self.depth)
            with body.for_("row", begin, end) as row:
                self._finish(row, columns, (ir.const(0), self.depth), lambda _: ir.const(0, dtype))
            return
        sums = kernel.scratch("sums", (self.rows_at_once, self.size), dtype)
        with body.for_("row", 0, self.rows_at_once) as row, body.for_("column", 0, self.size) as column:
            body.store(sums, (row, column), 0)
        with counted(body, "stretch", num_before) as index, body.block():
            first = named(body, "inner", index * self.stretch)
            self._copy(columns, first, self.stretch)
            with body.for_("row", begin, end) as row:
                results = self._added(row, columns, (first, self.stretch), self._waiting(sums, row - begin))
                results.keep(sums, row - begin)
        done = num_before * self.stretch
        self._copy(columns, ir.const(done), self.depth - done)
        with body.for_("row", begin, end) as row:
            inner = ir.const(done), self.depth - done
            self._finish(row, columns, inner, self._waiting(sums, row - begin))

    def _waiting(self, sums: ir.Buffer, row: ir.Expr) -> Start:
        """What the sums of a row start from after the first stretch."""
        return lambda column: load(sums, row, column)

    def _copy(self, columns: ir.Buffer, first: ir.Expr, count: int) -> None:
        body, row = self.product.template.body, (*self.batch, ir.const(0))
        with body.for_("column", 0, self.size) as column, counted(body, "k", count) as k:
            body.store(columns, (k, column), self.product.second(row, first + k, self.first + column))

    def _added(
        self, row: ir.Expr, columns: ir.Buffer, inner: tuple[ir.Expr, int], start: Start
    ) -> WaitingResults:
        """Sums of a row with the products of a stretch."""
        product = self.product
        results = self.reducer.begin(product.template, self.size, product.dtype, start)
        product.add(results, (*self.batch, row), inner, lambda k, j: load(columns, k, j))
        return results

    def _finish(self, row: ir.Expr, columns: ir.Buffer, inner: tuple[ir.Expr, int], start: Start) -> None:
        results = self._added(row, columns, inner, start)
        self.product.store(results, (*self.batch, row), self.first)


def _part(whole: int, most: int) -> int:
    """The least part of at most so many of which no more are needed."""
    return -(-whole // -(-whole // most))


def _summed(num_columns: int, are_several: bool) -> str:
    """Says of blocks of columns that they are summed."""
    what = "1 column" if num_columns == 1 else f"{num_columns} columns"
    return f"{what} at a time: sum, then store each" if are_several else f"sum {what}"
