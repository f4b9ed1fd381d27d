"""What was found out about a function once need not be found out again: functions do not change.

Most passes leave most kernels as they are, and modules are verified after each; without this, a compile would spend a
third of its time on looking at the same kernels again. What is remembered ends with the function.
"""

from collections.abc import Callable
from functools import wraps
from typing import Generic, TypeVar
from weakref import ref

from bytewright.ir.prim import PrimFunc

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """A value for each function or constant, by identity; it must not hold the function or constant itself."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ref[object], Value]] = {}

    def get(self, subject: object) -> Value | None:
        """What is remembered, or None."""
        found = self._known.get(id(subject))
        return found[1] if found is not None and found[0]() is subject else None

    def put(self, subject: object, value: Value) -> None:
        """Remembers a value in the place of any before it."""
        key = id(subject)
        self._known[key] = (ref(subject, lambda _: self._known.pop(key, None)), value)


def remembered(find: Callable[[PrimFunc], Value]) -> Callable[[PrimFunc], Value]:
    """The same analysis, done once for each function; nobody may change what it returns."""
    memory: Remembered[tuple[Value]] = Remembered()  # in a tuple, so that None is remembered as well

    @wraps(find)
    def found(function: PrimFunc) -> Value:
        known = memory.get(function)
        if known is None:
            known = (find(function),)
            memory.put(function, known)
        return known[0]

    return found
