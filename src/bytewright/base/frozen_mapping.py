"""A mapping that cannot be changed and can be copied and pickled, which a `MappingProxyType` cannot.

Plans and compiled models cross process borders: a pool of workers that compiles one model for many targets hands them
back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value_co = TypeVar("Value_co", covariant=True)


class FrozenMapping(Mapping[Key, Value_co], Generic[Key, Value_co]):
    """The items of another mapping as they are now, in their order."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[Key, Value_co]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Key) -> Value_co:
        return self._items[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"FrozenMapping({self._items!r})"

    def __reduce__(self) -> tuple[type[FrozenMapping[Key, Value_co]], tuple[dict[Key, Value_co]]]:
        return FrozenMapping, (self._items,)
