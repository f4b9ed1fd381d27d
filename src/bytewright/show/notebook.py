"""What notebooks show of a value: the view that a room above makes of it, where that room is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bytewright.show.view import View

_Kind = TypeVar("_Kind", bound="Shown")
_VIEWS: dict[type, Callable[[Any], View]] = {}


class Shown:
    """A value that a notebook shows as tables and pictures."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """A part of a page; None where nobody has said how, so that its `repr` is shown."""
        from bytewright.show.formats import in_notebook

        view_of = _VIEWS.get(type(self))
        return None if view_of is None else in_notebook(view_of(self))


def show_as(kind: type[_Kind], view_of: Callable[[_Kind], View]) -> None:
    """Says how values of a class are shown."""
    _VIEWS[kind] = view_of
