"""Classes of numbers that only grow together: union-find, without recursion."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class UnionFind:
    """The numbers from 0 on, each at first in a class of its own."""

    _parents: list[int] = field(default_factory=list[int])

    def add(self) -> int:
        """One number more."""
        self._parents.append(len(self._parents))
        return len(self._parents) - 1

    def find(self, item: int) -> int:
        """The number that stands for an item's class."""
        parents = self._parents
        while parents[item] != item:
            parents[item] = parents[parents[item]]
            item = parents[item]
        return item

    def join(self, first: int, second: int) -> int:
        """Makes one class of two; the smaller of the numbers that stood for them stands for it."""
        low, high = sorted((self.find(first), self.find(second)))
        self._parents[high] = low
        return low
