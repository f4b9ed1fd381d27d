"""First fit of buffers that all live at the same time, such as parameters: a pile with a few gaps from alignment.

What first fit of `first_fit.py` and of the C core finds by comparing each buffer with all others, in time that does
not grow with the square of their number. A gap is smaller than an alignment, so hardly any buffer is tried in one.
"""

from collections.abc import Sequence

from bytewright.plan.flat import FlatProblem, align_up


def is_pile(flat: FlatProblem) -> bool:
    """Whether all buffers meet, none shares bytes with another or is fixed, and all go to the one pool."""
    return (
        len(flat.capacity) == 1
        and flat.num_buffers > 0
        and not flat.contract_gaps
        and all(fixed < 0 for fixed in flat.fixed)
        and all(size > 0 for size in flat.size_bytes)
        and all(len(choices) == 1 for choices in flat.choices)
        and all(len(buffer.lifetimes) == 1 for buffer in flat.buffers)
        and max(b.first_tick for b in flat.buffers) < min(b.last_tick for b in flat.buffers)
    )


def place_pile(flat: FlatProblem, order: Sequence[int]) -> tuple[list[int], list[int]]:
    """Pools and offsets by buffer, each buffer in its turn at the lowest place that is free; pool -1: there is none."""
    pools, offsets = [-1] * flat.num_buffers, [0] * flat.num_buffers
    gaps: list[tuple[int, int]] = []  # begin and end, ascending
    top = widest = 0
    for index in order:
        size, alignment = flat.size_bytes[index], flat.choices[index][0].alignment
        offset = None
        if size <= widest:
            offset = _taken_from(gaps, size, alignment, flat.base[0])
        if offset is None:
            offset = align_up(top, alignment, flat.base[0])
            if offset + size > flat.capacity[0]:
                continue
            if offset > top:
                gaps.append((top, offset))
                widest = max(widest, offset - top)
            top = offset + size
        pools[index], offsets[index] = 0, offset
    return pools, offsets


def _taken_from(gaps: list[tuple[int, int]], size: int, alignment: int, base: int) -> int | None:
    """The lowest offset in a gap, which is then as much smaller; None if no gap has room."""
    for position, (begin, end) in enumerate(gaps):
        offset = align_up(begin, alignment, base)
        if offset + size <= end:
            gaps[position : position + 1] = [
                gap for gap in ((begin, offset), (offset + size, end)) if gap[0] < gap[1]
            ]
            return offset
    return None
