"""What plan.json says of steps that run together row by row, and of the rings between them.

`PlannedRows` states which rows a step makes each time that it is called, and which it reads for each of them: with the
loops of the plan that is the whole schedule, so whoever reads a plan can go through it again (`row_calls.py`).
"""

from dataclasses import dataclass
from math import prod

from bytewright import ir
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.analyses.row_program import rows_of_call
from bytewright.record.codec import Signed


@dataclass(frozen=True, slots=True)
class PlannedRing:
    """That a buffer keeps some rows of a tensor: row `r` lies in slot `r % num_rows`.

    Attributes:
        axis: Of the tensor's shape, the one that counts rows.
        num_rows: How many are kept.
        tensor_rows: How many the tensor has.
        tensor_bytes: Its size, if it were kept as a whole.
    """

    axis: int
    num_rows: int
    tensor_rows: int
    tensor_bytes: int


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """That a step needs rows `stride * r + first` to `stride * r + last` of a buffer for row `r` of what it makes.

    Attributes:
        num_rows: Of the tensor; rows before its first and behind its last are not read.
        divisor: What both numbers are divided by and rounded down, as where one row is read for two that are made.
    """

    buffer: str
    num_rows: int
    stride: int
    first: Signed
    last: Signed
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """The rows that a call makes: from `begin` to before `end`, without those that the tensor does not have.

    Attributes:
        buffer: What it makes.
        num_rows: Of that tensor.
        begin: A number, or a sum of the variables of loops such as `2*turn - 4`; None for what is no sum.
        end: The same.
        windows: What it needs for a row; of other buffers that it reads it needs all of it for each row.
    """

    buffer: str
    num_rows: int
    begin: Signed | str | None
    end: Signed | str | None
    windows: tuple[PlannedWindow, ...]


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """Steps that run together row by row.

    Attributes:
        steps: The first of them and the last.
        num_turns: Of the loop around them.
        rings: The buffers of which they keep some rows only.
        alive_bytes: The most that is alive at one time while they run, in all workspace pools.
        plain_alive_bytes: The same if each ran by itself, and all tensors were whole.
    """

    steps: tuple[int, int]
    num_turns: int
    rings: tuple[str, ...]
    alive_bytes: int
    plain_alive_bytes: int


def ring_of(buffer: ir.Buffer) -> PlannedRing | None:
    """The ring that a buffer is, if it is one."""
    if buffer.rows is None:
        return None
    axis = buffer.rows.axis
    extents = [ir.upper_bound(extent) for extent in buffer.shape]
    return PlannedRing(axis, buffer.rows.num_rows, extents[axis], prod(extents) * buffer.dtype.size_bytes)


def rows_of(kernel: ir.PrimFunc | None, call: ir.Call, numbers: Definitions) -> PlannedRows | None:
    """The rows that a call makes and reads; None for one that makes its output as a whole, or not row by row."""
    rows = rows_of_call(kernel, call, numbers)
    if rows is None:
        return None
    windows = tuple(
        PlannedWindow(w.buffer, w.num_rows, w.stride, w.first, w.last, w.divisor) for w in rows.windows
    )
    return PlannedRows(rows.buffer, rows.num_rows, rows.begin, rows.end, windows)
