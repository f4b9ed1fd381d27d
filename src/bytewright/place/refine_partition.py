"""Partition refinement: items are told apart by what they are tied to, as far as that goes.

Items start in classes. A class splits where its members have not equally many ties of each kind into some class, until
none does. Only the smaller parts of what split are looked at again, so that each tie is followed a logarithmic number
of times. What comes first is decided by classes and numbers of ties alone: the outcome depends on no order of items.

Source: A. Cardon, M. Crochemore, Partitioning a graph in O(|A| log2 |V|), Theoretical Computer Science 19, 1982.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Ties = Sequence[Sequence[tuple[str, int]]]

_Signature = tuple[tuple[str, int], ...]


def refine_partition(first: Sequence[bytes], ties: Ties) -> list[int]:
    """The number of each item's class.

    Args:
        first: By item; what differs here is told apart to begin with.
        ties: By item, what it is tied to and how; each tie stands at both ends, at either with a word of its own.
    """
    numbers = {key: number for number, key in enumerate(sorted(set(first)))}
    classes = _Classes([numbers[key] for key in first], ties, [set() for _ in numbers])
    for item, number in enumerate(classes.of):
        classes.members[number].add(item)
    if len(numbers) < len(first):
        classes.refine()
    return classes.of


@dataclass(slots=True)
class _Classes:
    of: list[int]
    ties: Ties
    members: list[set[int]]
    pending: deque[int] = field(default_factory=deque[int])

    def refine(self) -> None:
        """Splits classes until all members of each are tied alike."""
        self.pending.extend(range(len(self.members)))
        while self.pending:
            for number, parts in self.tied_to(self.pending.popleft()):
                self.split(number, parts)

    def tied_to(self, splitter: int) -> Iterator[tuple[int, dict[_Signature, list[int]]]]:
        """The classes with members that are tied to a class, and these members by their ties to it."""
        found: dict[int, dict[str, int]] = {}
        for item in self.members[splitter]:
            for word, other in self.ties[item]:
                if len(self.members[self.of[other]]) > 1:
                    counts = found.setdefault(other, {})
                    counts[word] = counts.get(word, 0) + 1
        parts: dict[int, dict[_Signature, list[int]]] = {}
        for item, counts in found.items():
            signature = tuple(sorted(counts.items()))
            parts.setdefault(self.of[item], {}).setdefault(signature, []).append(item)
        yield from sorted(parts.items())

    def split(self, number: int, parts: dict[_Signature, list[int]]) -> None:
        """Makes classes of the parts; the largest one keeps the number, and needs no second look."""
        members = self.members[number]
        num_untied = len(members) - sum(map(len, parts.values()))
        ordered = [part for _, part in sorted(parts.items())]
        largest = max(ordered, key=len)
        if num_untied < len(largest):
            ordered.remove(largest)
            tied = {item for part in parts.values() for item in part}
            untied = [item for item in members if item not in tied]
            ordered = [untied, *ordered] if untied else ordered
        for part in ordered:
            members.difference_update(part)
            for item in part:
                self.of[item] = len(self.members)
            self.pending.append(len(self.members))
            self.members.append(set(part))
