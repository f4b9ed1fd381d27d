"""Matrix products of two tensors: dot products where both lie along the inner axis, else columns side by side.

Of columns side by side each sum is in the order of the inner axis, as the reference's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Template, channel_blocks, counted, loops, named
from bytewright.lower.kernels.side_by_side import ArrayReducer, Reducer
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import Scalar, require_fits
from bytewright.ops.matmul import TflBatchMatMul

I32 = ir.DType.I32
INTEGER_LANES = 16


def lower_batch_matmul(template: Template, operation: TflBatchMatMul, reducer: Reducer | None = None) -> None:
    """Writes the kernel of a product: [..., H, K] and [..., K, W] to [..., H, W]; with a reducer, of its columns."""
    product = _Product(template, operation)
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
class _Product:
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
                value = body.let("value", self._first(row, k))
                for j, total in enumerate(sums):
                    product = value * self._second(row, k, column + j)
                    body.add_to(total, (), ir.cast(product, self.dtype))
            for j, total in enumerate(sums):
                with body.numbered(j):
                    self._store(row, column + j, load(total))

    def write_columns(self, row: Coordinates, reducer: Reducer) -> None:
        """Some columns at a time, side by side."""
        for first, size in self._blocks(reducer):
            self._write_block(
                row, reducer, (first, size), lambda k, j, first=first: self._second(row, k, first + j)
            )

    def write_transposed(self, reducer: Reducer) -> None:
        """As `write_columns`, of columns that lie one after another: copied for all rows, once, to lie side by side."""
        body, kernel, shape = self.template.body, self.template.kernel, self.template.result_type.shape
        with loops(kernel, shape, range(len(shape) - 2)) as indices:
            batch = tuple(indices.values())
            for first, size in self._blocks(reducer):
                columns = kernel.scratch("columns", (ir.upper_bound(self.depth), size), self.factors_dtype)
                with body.for_("column", 0, size) as column, counted(body, "k", self.depth) as k:
                    body.store(columns, (k, column), self._second((*batch, ir.const(0)), k, first + column))
                with counted(body, "row", shape[-2]) as height:
                    self._write_block(
                        (*batch, height), reducer, (first, size), lambda k, j, of=columns: load(of, k, j)
                    )

    def _blocks(self, reducer: Reducer) -> Iterator[tuple[ir.Expr, int]]:
        return channel_blocks(self.template.body, self.num_columns, reducer.most_channels, _summed)

    def _write_block(
        self,
        row: Coordinates,
        reducer: Reducer,
        block: tuple[ir.Expr, int],
        second: Callable[[ir.Expr, ir.Expr], ir.Expr],
    ) -> None:
        """Sums and stores some columns; `second` gives a factor by its place along the inner axis, and its column."""
        body, (first, size) = self.template.body, block
        results = reducer.begin(self.template, size, self.dtype, lambda _: ir.const(0, self.dtype))
        with counted(body, "k", self.depth) as k:
            value = body.let("value", self._first(row, k))
            results.update(lambda total, j: total + ir.cast(value * second(k, j), self.dtype))
        results.store(row, first, lambda total, _: self._bounded(total))

    def _first(self, row: Coordinates, k: ir.Expr) -> ir.Expr:
        *batch, height = row
        inner = (k, height) if self.operation.adjoint_first else (height, k)
        return self._element(0, batch, inner, self.operation.first_zero_point)

    def _second(self, row: Coordinates, k: ir.Expr, column: ir.Expr) -> ir.Expr:
        inner = (column, k) if self.operation.adjoint_second else (k, column)
        return self._element(1, list(row[:-1]), inner, self.operation.second_zero_point)

    def _element(
        self, operand: int, batch: list[ir.Expr], inner: tuple[ir.Expr, ir.Expr], zero_point: int
    ) -> ir.Expr:
        """An element of an operand, whose own leading axes are the last of the result's, and may be broadcast."""
        shape = self.template.type(operand).shape
        outer = shape[:-2]
        own = batch[len(batch) - len(outer) :]
        indices = [ir.const(0) if extent == 1 else index for index, extent in zip(own, outer, strict=True)]
        value = ir.cast(load(self.template.input(operand), *indices, *inner), self.factors_dtype)
        return value - zero_point if zero_point else value

    def _store(self, row: Coordinates, column: ir.Expr, total: ir.Expr) -> None:
        self.template.epilogue.store((*row, column), self._bounded(total))

    def _bounded(self, total: ir.Expr) -> Scalar:
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


def _summed(num_columns: int, are_several: bool) -> str:
    """Says of blocks of columns that they are summed."""
    what = "1 column" if num_columns == 1 else f"{num_columns} columns"
    return f"{what} at a time: sum, then store each" if are_several else f"sum {what}"
