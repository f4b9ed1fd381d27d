"""Products of two tensors of int16 on MVE: dot products along the inner axis, in sums of 64 bits (`vmlaldava`)."""

from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.lower.isa.mve.lanes import FEATURE
from bytewright.lower.isa.vector_unit import memory_parameter, variable_parameter
from bytewright.lower.kernels.context import Template, counted, loops
from bytewright.lower.kernels.matmul import Product
from bytewright.lower.point import Coordinates
from bytewright.ops.matmul import TflBatchMatMul

I16, I64 = ir.DType.I16, ir.DType.I64
_LANES = 8
# Elements of a dot product at once, the most first.
SIZES = (4 * _LANES, _LANES)


@cache
def wide_dot(num: int) -> ir.Instruction:
    """Adds the products of so many elements to a sum."""
    total = variable_parameter("total", I64, ir.Access.READ_WRITE)
    left, right = (memory_parameter(name, num, I16) for name in ("left", "right"))
    body = BodyBuilder(("total", "left", "right"))
    with body.for_("k", 0, num) as k:
        factors = (ir.cast(load(each.buffer, k), I64) for each in (left, right))
        body.add_to(total.buffer, (), next(factors) * next(factors))
    lines = [
        f"total = vmlaldavaq_s16(total, vldrhq_s16(left + {first}), vldrhq_s16(right + {first}));"
        for first in range(0, num, _LANES)
    ]
    text = "\n".join([*lines, "return total;"])
    comment = f"Adds {num} products of elements of 16 bits to a sum of 64."
    return ir.Instruction(f"mve_wide_dot_{num}", (total, left, right), body.finish(), text, FEATURE, comment)


def wide_matmul_declines(template: Template, operation: TflBatchMatMul) -> str | None:
    """Why this is no product for the kernel below."""
    if any(template.type(operand).dtype is not I16 for operand in range(2)):
        return "its elements are not int16"
    if operation.first_zero_point or operation.second_zero_point:
        return "it has zero points"
    if operation.adjoint_first:
        return "the rows of its first operand lie across"
    depth = Product(template, operation).depth
    if not isinstance(depth, int) or depth < _LANES:
        return f"its sums are not of {_LANES} products or more, as far as is known"
    return None


def write_wide_matmul(template: Template, operation: TflBatchMatMul) -> None:
    """Writes the kernel of a product: [..., H, K] and [..., K, W] to [..., H, W]."""
    body, product, shape = template.body, Product(template, operation), template.result_type.shape
    with loops(template.kernel, shape, range(len(shape) - 2)) as indices:
        batch = tuple(indices.values())
        with counted(body, "column", product.num_columns) as column, body.block():
            elements = _column(template, product, batch, column)
            with counted(body, "row", shape[-2]) as row:
                total = body.scalar("total", I64, 0)
                first = product.place(0, batch, (row, ir.const(0)))
                _add(body, total, first, elements, ir.upper_bound(product.depth))
                product.store_element((*batch, row), column, load(total))


def _column(template: Template, product: Product, batch: Coordinates, column: ir.Expr) -> ir.Region:
    """A column of the second operand, copied unless its elements lie beside one another."""
    if product.operation.adjoint_second:
        return product.place(1, batch, (column, ir.const(0)))
    body = template.body
    copy = template.kernel.scratch("copy", (ir.upper_bound(product.depth),), I16)
    with body.for_("k", 0, ir.num_elements(copy)) as k:
        source = product.place(1, batch, (k, column))
        body.store(copy, k, load(source.buffer, *source.indices))
    return region(copy, 0)


def _add(body: BodyBuilder, total: ir.Buffer, left: ir.Region, right: ir.Region, depth: int) -> None:
    """Adds all products of a row and a column."""

    def at(source: ir.Region, k: ir.Expr) -> ir.Region:
        *outer, first = source.indices
        return ir.Region(source.buffer, (*outer, first + k))

    done = 0
    for size in SIZES:
        count = (depth - done) // size
        if count:
            with counted(body, "chunk", count) as chunk:
                first = chunk * size + done
                body.execute(wide_dot(size), total, at(left, first), at(right, first))
            done += count * size
    if done < depth:
        with counted(body, "k", depth - done) as k:
            values = (at(source, k + done) for source in (left, right))
            one, two = (ir.cast(load(value.buffer, *value.indices), I64) for value in values)
            body.add_to(total, (), one * two)
