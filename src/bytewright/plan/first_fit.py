"""First fit: buffers one after another, each at the lowest place that is free, in several orders.

Fast, never proved by itself, and the start of everything else. Buffers with a fixed offset go first. A pool
that has no room for a buffer in its turn is passed over for that buffer alone, and nothing is ever moved, so
no later decision can bring a buffer into a place that was not checked when it was taken.
"""

from collections.abc import Callable, Sequence

from bytewright.plan import native
from bytewright.plan.flat import Choice, FlatProblem, align_up
from bytewright.plan.outcome import Draft, draft_of
from bytewright.plan.pile import is_pile, place_pile
from bytewright.plan.problem import coexist
from bytewright.plan.sweep import count_meetings

# Beyond so many coexisting pairs they are not listed, here and in `_first_fit.h`: memory stays that of the buffers.
MAX_PAIRS = 1 << 23


def first_fit(flat: FlatProblem, use_native: bool = True) -> Draft:
    """The best of the standard orders, the first of equals."""
    place = placer(flat, use_native)
    return min((place(order) for order in standard_orders(flat)), key=lambda draft: draft.rank)


def placer(flat: FlatProblem, use_native: bool = True) -> Callable[[Sequence[int]], Draft]:
    """A function from an order to the outcome of first fit in it; the C core serves if there is one."""
    if is_pile(flat):
        return lambda order: draft_of(flat, *place_pile(flat, order))
    if not use_native or not native.AVAILABLE:
        return lambda order: place_in_order(flat, order)
    prepared = native.NativeFirstFit(flat)
    return lambda order: draft_of(flat, *prepared.place(order))


def standard_orders(flat: FlatProblem) -> list[list[int]]:
    """By size, by area, by length of life, by birth, by death and by alignment; ties by size and position.

    By alignment the strictest comes first, and before others with the same the multiples of it: where all live at once,
    those leave nothing between them.
    """
    buffers = flat.buffers
    sizes = flat.size_bytes
    lengths = [buffer.last_tick - buffer.first_tick for buffer in buffers]
    starts = [buffer.first_tick for buffer in buffers]
    ends = [buffer.last_tick for buffer in buffers]
    alignments = [max((choice.alignment for choice in row), default=1) for row in flat.choices]
    keys: list[Callable[[int], tuple[int, ...]]] = [
        lambda i: (-sizes[i], -lengths[i]),
        lambda i: (-sizes[i] * lengths[i], -sizes[i]),
        lambda i: (-lengths[i], -sizes[i]),
        lambda i: (starts[i], -sizes[i]),
        lambda i: (-ends[i], -sizes[i]),
        lambda i: (-alignments[i], int(sizes[i] % alignments[i] > 0), -sizes[i], -lengths[i]),
    ]
    orders = (tuple(sorted(range(flat.num_buffers), key=key)) for key in keys)
    # Of buffers that live equally long, some are the same.
    return [list(order) for order in dict.fromkeys(orders)]


def place_in_order(flat: FlatProblem, order: Sequence[int]) -> Draft:
    """First fit in the given order; fixed buffers are moved to the front."""
    pools = [-1] * flat.num_buffers
    offsets = [0] * flat.num_buffers
    is_dense = count_meetings(flat, range(flat.num_buffers))[0] > MAX_PAIRS
    residents: list[int] = []  # where pairs are too many to be listed: who is placed and has bytes
    fixed_first = [i for i in order if flat.fixed[i] >= 0] + [i for i in order if flat.fixed[i] < 0]
    for index in fixed_first:
        for choice in flat.choices[index]:
            near = _neighbours_among(flat, index, residents) if is_dense else flat.neighbours[index]
            placed = [(other, offsets[other]) for other in near if pools[other] == choice.pool]
            offset = _lowest_offset(flat, index, choice, placed)
            if offset is not None and offset + flat.size_bytes[index] <= flat.capacity[choice.pool]:
                pools[index], offsets[index] = choice.pool, offset
                if flat.size_bytes[index]:
                    residents.append(index)
                break
    return draft_of(flat, pools, offsets)


def _neighbours_among(flat: FlatProblem, index: int, others: Sequence[int]) -> list[int]:
    """Which of some buffers that have bytes coexist with this one."""
    if not flat.size_bytes[index]:
        return []
    first, last = flat.first_tick[index], flat.last_tick[index]
    return [
        other
        for other in others
        if flat.first_tick[other] < last
        and first < flat.last_tick[other]
        and coexist(flat.buffers[index], flat.buffers[other])
    ]


def _lowest_offset(
    flat: FlatProblem, index: int, choice: Choice, placed: Sequence[tuple[int, int]]
) -> int | None:
    """The lowest free aligned offset, or the fixed one if it is free; `placed` are neighbours and their offsets."""
    forbidden = [  # open intervals of offsets
        (at - flat.separation(index, other), at + flat.separation(other, index)) for other, at in placed
    ]
    fixed = flat.fixed[index]
    if fixed >= 0:
        return None if any(low < fixed < high for low, high in forbidden) else fixed
    forbidden.sort()
    offset = align_up(0, choice.alignment, flat.base[choice.pool])
    for low, high in forbidden:
        if low < offset < high:
            offset = align_up(high, choice.alignment, flat.base[choice.pool])
    return offset
