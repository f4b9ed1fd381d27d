"""Which element of an input an element of an output comes from, as arithmetic that the analyses of rows understand.

The elements are known one by one. Where they rise as a line of fractions does, rounded down and kept inside the input,
the line is written: `min(max(factor * i + addend, 0) / divisor, last)`, which equals all of them because each one is
compared. Small fractions are tried first: of two rows for one that is `i / 2`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernel import KernelBuilder

Int64 = NDArray[np.int64]
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FloorLine:
    """`(factor * i + addend) / divisor`, rounded down, for `i` from 0 to before `count`, within `[0, size)`.

    Attributes:
        size: Elements of the input.
        count: Elements of the output.
    """

    factor: int
    addend: int
    divisor: int
    size: int
    count: int

    def at(self, index: ir.Expr) -> ir.Expr:
        """The element of the input; what is rounded down is not negative, as C rounds towards zero."""
        value = index * self.factor + self.addend
        if self.addend < 0:
            value = ir.maximum(value, 0)
        if self.divisor > 1:
            value = value // self.divisor
        if (self.factor * (self.count - 1) + self.addend) // self.divisor >= self.size:
            value = ir.minimum(value, self.size - 1)
        return value

    def elements(self) -> Int64:
        """All of them."""
        line = (np.arange(self.count, dtype=np.int64) * self.factor + self.addend) // self.divisor
        return np.clip(line, 0, self.size - 1)


def source_index(
    kernel: KernelBuilder, elements: Int64, size: int, ratio: tuple[int, int], index: ir.Expr
) -> ir.Expr:
    """The element of the input that element `index` of the output comes from.

    Args:
        kernel: Gets a table where there is no line.
        elements: For each element of the output, in `[0, size)`.
        size: Elements of the input.
        ratio: Steps of the input in so many steps of the output, roughly.
        index: Of the output.
    """
    line = floor_line(elements, size, ratio)
    if line is not None:
        return line.at(index)
    table = kernel.constant("source_index", elements, ir.DType.I32)
    return load(table, index)


def floor_line(elements: Int64, size: int, ratio: tuple[int, int]) -> FloorLine | None:
    """The first line through all elements, of small fractions and then of powers of two; None if there is none."""
    count = len(elements)
    for factor, divisor in _slopes(ratio):
        if factor * count + divisor * 2 > _INT32_MAX:
            continue
        addend = _addend(elements, size, factor, divisor)
        if addend is not None:
            common = gcd(factor, divisor)
            return FloorLine(factor // common, addend // common, divisor // common, size, count)
    return None


def _slopes(ratio: tuple[int, int]) -> Iterator[tuple[int, int]]:
    steps, out = ratio
    common = gcd(steps, out) or 1
    for times in (1, 2):
        yield steps // common * times, out // common * times
    for bits in range(10, 28):
        yield ((steps << bits) + out // 2) // out, 1 << bits


def _addend(elements: Int64, size: int, factor: int, divisor: int) -> int | None:
    """The least magnitude of an addend with which the line meets every element; None if no addend does.

    An element at either end of the input only bounds it from one side, as the line is kept inside.
    """
    line = np.arange(len(elements), dtype=np.int64) * factor
    least = (elements * divisor - line)[elements > 0]
    most = ((elements + 1) * divisor - 1 - line)[elements < size - 1]
    low = int(least.max()) if least.size else -divisor
    high = int(most.min()) if most.size else divisor
    return min(max(0, low), high) if low <= high else None
