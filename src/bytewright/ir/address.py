"""Where an element of a buffer lies: row-major, in elements, rings of rows included.

One place computes addresses, so that the evaluator, the size of an allocation and the generated C agree.
"""

from math import prod

from bytewright.diagnostics import InternalError
from bytewright.ir.expr import Buffer, Expr, Var, cast, const
from bytewright.ir.prim import Region
from bytewright.ir.types import DType, Extent, Quotient, Symbol, upper_bound


def storage_shape(buffer: Buffer) -> tuple[Extent, ...]:
    """The extents that are stored: a ring keeps `num_rows` rows of its axis."""
    if buffer.rows is None:
        return buffer.shape
    ring = buffer.rows
    if not 0 <= ring.axis < len(buffer.shape) or ring.num_rows < 1:
        raise InternalError(f"buffer '{buffer.name}': ring of {ring.num_rows} rows on axis {ring.axis}")
    return (*buffer.shape[: ring.axis], ring.num_rows, *buffer.shape[ring.axis + 1 :])


def num_elements(buffer: Buffer) -> int:
    """Elements that the buffer occupies, with every symbolic extent at its upper bound."""
    return prod([upper_bound(extent) for extent in storage_shape(buffer)])


def size_bytes(buffer: Buffer) -> int:
    """Bytes that the buffer occupies, with every symbolic extent at its upper bound."""
    return num_elements(buffer) * buffer.dtype.size_bytes


def extent_bytes(buffer: Buffer) -> int:
    """Bytes that nothing else has while the buffer lives: its own, and what is left of its last cache line."""
    own, line = size_bytes(buffer), max(buffer.line_bytes, 1)
    return -(-own // line) * line


def has_constant_size(buffer: Buffer) -> bool:
    """True if no stored extent is symbolic."""
    return all(isinstance(extent, int) for extent in storage_shape(buffer))


def extent_expr(extent: Extent) -> Expr:
    """The extent as an I32; a symbol is the variable of its name, which the function has as a parameter."""
    if isinstance(extent, Quotient):
        return (extent_expr(extent.of) * extent.scale + extent.offset) // extent.divisor
    return Var(extent.name, DType.I32) if isinstance(extent, Symbol) else const(extent)


def flat_index(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The element's number in row-major order, in Horner form with constants folded: `(y * 64 + x) * 8 + c`.

    It is an I64 if an index is one.
    """
    if len(indices) != len(buffer.shape):
        raise InternalError(
            f"buffer '{buffer.name}' has {len(buffer.shape)} axes, {len(indices)} indices given"
        )
    total: Expr = const(0)
    dtype = DType.I64 if DType.I64 in [index.dtype for index in indices] else DType.I32
    for axis, (given, extent) in enumerate(zip(indices, storage_shape(buffer), strict=True)):
        index = cast(given, dtype)
        if buffer.rows is not None and axis == buffer.rows.axis:
            index = index % buffer.rows.num_rows  # the slot of the row
        total = index if axis == 0 else total * cast(extent_expr(extent), dtype) + index
    return total


def region_index(region: Region) -> Expr:
    """The number of the element that a region starts at."""
    return flat_index(region.buffer, region.indices) if region.indices else const(0)
