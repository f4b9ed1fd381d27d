"""The C core, if it was built when the package was installed; the same answers come from Python otherwise."""

import hashlib
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from bytewright.plan import search as python_search
from bytewright.plan.flat import FlatProblem
from bytewright.plan.instance import Instance, row_starts
from bytewright.plan.search import Answer, Result
from bytewright.plan.sweep import merged_lifetimes

_native: Any
try:
    from bytewright.plan import _native  # type: ignore[no-redef]
except ImportError:  # installed without a C compiler
    _native = None

AVAILABLE = _native is not None
# The search recurses once for each buffer placed; beyond this many it is not tried, in either language.
MAX_SEARCH_BUFFERS = 8000
MOST_WORK = (1 << 63) - 1
# Answers by question, the newest last: plans that are tried with other rows ask the same of the parameters.
_known: dict[bytes, Answer] = {}
_MOST_KNOWN = 256


def search(
    instance: Instance,
    capacity: int,
    node_budget: int,
    poll: Callable[[int], None] | None = None,
    native: bool = True,
    work_budget: int = MOST_WORK,
) -> Answer:
    """The exact search: in C if that is wanted and there, else in Python."""
    if instance.num_buffers > MAX_SEARCH_BUFFERS:
        return Answer(Result.UNKNOWN, (), 0)
    run = _search_natively if native and AVAILABLE else python_search.search
    answer = run(instance, capacity, node_budget, work_budget, poll)
    if answer.result is Result.INFEASIBLE and not instance.exhaustive:
        return Answer(Result.UNKNOWN, (), answer.num_nodes, answer.work)
    return answer


def _search_natively(
    instance: Instance,
    capacity: int,
    node_budget: int,
    work_budget: int,
    poll: Callable[[int], None] | None,
) -> Answer:
    arrays = (
        instance.sizes,
        instance.alignments,
        instance.fixed,
        instance.neighbour_rows,
        instance.neighbours,
        instance.gaps_above,
        instance.gaps_below,
        instance.shared,
        instance.section_rows,
        instance.sections,
        array("i", chain.from_iterable(instance.orders)),
        instance.rooms,
        instance.levels,
    )
    numbers = (
        instance.num_buffers,
        instance.num_sections,
        len(instance.orders),
        instance.has_contracts,
        instance.base,
        capacity,
        node_budget,
        work_budget,
    )
    key = _key_of(numbers, arrays)
    answer = _known.pop(key, None)
    if answer is None:
        result, offsets, num_nodes, work = _native.search(*numbers, poll, arrays)
        found: array[int] = array("q")
        if offsets is not None:
            found.frombytes(offsets)
        answer = Answer(Result(result), tuple(found), num_nodes, work)
        if len(_known) >= _MOST_KNOWN:
            _known.pop(next(iter(_known)), None)
    _known[key] = answer
    return answer


def _key_of(numbers: tuple[int, ...], arrays: "tuple[array[int], ...]") -> bytes:
    """A digest of a question: of all that the answer depends on, and of which core is asked."""
    question = (id(_native), numbers, [len(cells) for cells in arrays])
    digest = hashlib.blake2b(repr(question).encode(), digest_size=32)
    for cells in arrays:
        digest.update(cells)
    return digest.digest()


class NativeFirstFit:
    """A problem laid out for `_first_fit.c`, to be placed in as many orders as one likes."""

    def __init__(self, flat: FlatProblem) -> None:
        buffers = flat.buffers
        lifetimes = [merged_lifetimes(buffer.lifetimes) for buffer in buffers]
        contracts: list[list[tuple[int, int, int]]] = [[] for _ in buffers]
        gaps = flat.contract_gaps
        for (lower, upper), above in gaps.items():
            contracts[lower].append((upper, above, gaps[upper, lower]))
        self._pairs: object | None = None
        self._num_buffers = flat.num_buffers
        self._num_pools = len(flat.capacity)
        self._arrays = (
            array("q", flat.size_bytes),
            array("q", flat.fixed),
            row_starts(lifetimes),
            array("q", (tick for row in lifetimes for pair in row for tick in pair)),
            row_starts(flat.choices),
            array("i", (choice.pool for row in flat.choices for choice in row)),
            array("q", (choice.alignment for row in flat.choices for choice in row)),
            array("q", flat.capacity),
            array("q", flat.base),
            row_starts(contracts),
            array("i", (other for row in contracts for other, _, _ in row)),
            array("q", (above for row in contracts for _, above, _ in row)),
            array("q", (below for row in contracts for _, _, below in row)),
        )

    def place(self, order: Sequence[int]) -> tuple[list[int], list[int]]:
        """Pools (-1: none) and offsets by buffer."""
        pools, offsets = array("i"), array("q")
        cells = array("i", order)
        found = _native.first_fit(self._num_buffers, self._num_pools, self._pairs, (*self._arrays, cells))
        self._pairs, pool_cells, offset_cells = found
        pools.frombytes(pool_cells)
        offsets.frombytes(offset_cells)
        return pools.tolist(), offsets.tolist()
