"""Products of two tensors of int8 and int16 on the DSP extension: two rows by two columns at a time, or one of int16.

Rows and columns become words of two elements less their zero point in scratch: a block of columns once for all rows,
and a pair of rows once for a block of columns. So it does not matter along which axis they lie.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.isa.dsp.dot import dot_of_halves
from bytewright.lower.isa.dsp.requantise import rescaled
from bytewright.lower.isa.dsp.words import I8, I16, I32, halves
from bytewright.lower.kernels.context import Template, counted, loops, named
from bytewright.lower.kernels.matmul import Product
from bytewright.lower.point import Coordinates
from bytewright.ops.matmul import TflBatchMatMul

# Scratch for two columns, and for the columns of a block if that is more; a pair of rows comes to it.
MAX_PAIR_BYTES, BLOCK_BYTES = 4 * 1024, 2 * 1024
_WORD = 4


def matmul_declines(template: Template, operation: TflBatchMatMul) -> str | None:
    """Why the kernel below does not take a product."""
    dtype = template.type(0).dtype
    if dtype not in (I8, I16):
        return f"its elements are {dtype.value}"
    if dtype is I16 and (operation.first_zero_point or operation.second_zero_point):
        return "elements of int16 less a zero point leave 16 bits"
    if (sizes := _sizes(Product(template, operation))) is None:
        return "how many rows or columns there are, or elements of one, is not known"
    *_, depth = sizes
    if -(-depth // 2) * _WORD * 2 > MAX_PAIR_BYTES:
        return f"two columns of {depth} elements would need more than {MAX_PAIR_BYTES} B of scratch"
    return None


def _sizes(product: Product) -> tuple[int, int, int] | None:
    """Rows and columns of the result, and elements of one, if they are the same in each run."""
    rows, columns, depth = product.num_rows, product.num_columns, product.depth
    if isinstance(rows, int) and isinstance(columns, int) and isinstance(depth, int):
        return rows, columns, depth
    return None


def write_matmul(template: Template, operation: TflBatchMatMul) -> None:
    """Writes the kernel: [..., H, K] and [..., K, W] to [..., H, W]."""
    template.kernel.rescale_form = rescaled
    product, body = Product(template, operation), template.body
    sizes, shape = _sizes(product), template.result_type.shape
    assert sizes is not None
    num_rows, num_columns, depth = sizes
    with loops(template.kernel, shape, range(len(shape) - 2)) as outer:
        matrix = _Matrix(product, tuple(outer.values()), num_rows, depth)
        most = max(2, BLOCK_BYTES // (matrix.words * _WORD) // 2 * 2)
        whole, rest = divmod(num_columns, most)
        if whole:
            with counted(body, "block", whole) as block, body.block():
                matrix.write_columns(named(body, "column", block * most), most)
        if rest:
            with body.block():
                matrix.write_columns(ir.const(whole * most), rest)


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A matrix of the result.

    Attributes:
        batch: Coordinates before the row.
        num_rows: Of the matrix.
        depth: Elements of a row of the first operand, and of a column of the second.
    """

    product: Product
    batch: Coordinates
    num_rows: int
    depth: int

    @property
    def words(self) -> int:
        """That a row or a column is."""
        return -(-self.depth // 2)

    @property
    def columns_at_once(self) -> int:
        """Sums of 64 bits are two registers each."""
        return 2 if self.product.dtype is I32 else 1

    def write_columns(self, first: ir.Expr, size: int) -> None:
        """A block of columns: copied, and multiplied by all rows."""
        body, kernel = self.product.template.body, self.product.template.kernel
        columns = kernel.scratch("columns", (size * self.words,), I32)
        body.note("columns as words of two elements, less their zero point")
        for place, num in self._each("columns", size, self.columns_at_once):
            self._copy(columns, place, num, partial(self._second, first + place))
        for row, num_rows in self._each("rows", self.num_rows, 2):
            rows = kernel.scratch("rows", (num_rows * self.words,), I32)
            self._copy(rows, ir.const(0), num_rows, partial(self._first, row))
            for place, num in self._each("columns", size, self.columns_at_once):
                self._multiply((rows, row, num_rows), (columns, place, num), first)

    def _each(self, name: str, count: int, at_once: int) -> Iterator[tuple[ir.Expr, int]]:
        """Loops over rows or columns, so many at once: the first, and how many they are."""
        body, (whole, rest) = self.product.template.body, divmod(count, at_once)
        if whole:
            with counted(body, name, whole) as index, body.block():
                yield named(body, "first", index * at_once), at_once
        if rest:
            with body.block():
                yield ir.const(whole * at_once), rest

    def _first(self, row: ir.Expr, number: int, k: ir.Expr) -> ir.Expr:
        return self.product.first((*self.batch, row + number), k)

    def _second(self, column: ir.Expr, number: int, k: ir.Expr) -> ir.Expr:
        return self.product.second((*self.batch, ir.const(0)), k, column + number)

    def _copy(
        self, words: ir.Buffer, place: ir.Expr, num: int, factor: Callable[[int, ir.Expr], ir.Expr]
    ) -> None:
        """Rows or columns beside one another as words that take turns; a last one without a partner has a zero."""
        body, (whole, rest) = self.product.template.body, divmod(self.depth, 2)
        begin = place * self.words
        with counted(body, "word", whole) as word:
            for i in range(num):
                pair = halves(factor(i, word * 2), factor(i, word * 2 + 1))
                body.store(words, begin + word * num + i, pair)
        if rest:
            for i in range(num):
                body.store(
                    words, begin + (whole * num + i), halves(factor(i, ir.const(2 * whole)), ir.const(0))
                )

    def _multiply(
        self, rows: tuple[ir.Buffer, ir.Expr, int], columns: tuple[ir.Buffer, ir.Expr, int], first: ir.Expr
    ) -> None:
        """The sums of some rows, and some columns of a block that begins at one, and what they end in."""
        product = self.product
        (row_words, row, num_rows), (column_words, column, num_columns) = rows, columns
        body, epilogue = product.template.body, product.template.epilogue
        each = list(itertools.product(range(num_rows), range(num_columns)))
        sums = [body.scalar(f"sum{r}{c}", product.dtype, 0) for r, c in each]
        instruction = dot_of_halves(num_rows, num_columns, self.words, product.dtype)
        body.execute(instruction, *sums, region(row_words, 0), region(column_words, column * self.words))
        places = [(*self.batch, row + r, first + column + c) for r, c in each]
        epilogue.store_each(places, lambda i: product.bounded(load(sums[i])))
