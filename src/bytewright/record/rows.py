"""What plan.json says of steps that run together row by row, and of the rings between them.

Which rows a step makes each time that it is called, and which it reads for each of them, is told as analyses have it
(`row_replay.Rows`): with the loops of the plan that is the whole schedule, so whoever reads a plan can go through it
again (`row_calls.py`).
"""

from dataclasses import dataclass
from math import prod

from bytewright import ir


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

    def has_step(self, index: int) -> bool:
        """Whether a step is among them."""
        return self.steps[0] <= index <= self.steps[1]


def ring_of(buffer: ir.Buffer) -> PlannedRing | None:
    """The ring that a buffer is, if it is one."""
    if buffer.rows is None:
        return None
    axis = buffer.rows.axis
    extents = [ir.upper_bound(extent) for extent in buffer.shape]
    return PlannedRing(axis, buffer.rows.num_rows, extents[axis], prod(extents) * buffer.dtype.size_bytes)
