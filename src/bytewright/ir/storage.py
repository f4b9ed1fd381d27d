"""What is decided of where a buffer lies: one record on its definition, which passes narrow and never widen.

The definition is an allocation or a constant. Every narrowing keeps its reason; `Storage.narrowed` is the one way to
make one. Annotations that are not in the record belong to whoever wrote them, and stay beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from bytewright.diagnostics import InternalError
from bytewright.ir.scope import Scope, is_within

AnnotationValue = int | str | tuple[str, ...]
Annotations = tuple[tuple[str, AnnotationValue], ...]


class Border(Enum):
    """What a tensor at the model's border is: given to a run, given back by it, or kept from one run to the next."""

    INPUT = "input"
    OUTPUT = "output"
    STATE = "state"


# Of a run, whose tensors the application brings and takes.
SIDES = (Border.INPUT, Border.OUTPUT)


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a buffer may lie, and why.

    Attributes:
        scope: The places that it may still choose from; None while nothing constrains it.
        candidates: The pools that it may end in, in order of preference; None while that is open.
        offset: In its pool, once planned.
        pinned_offset: The offset that the user wants it at.
        arena: Of an allocation of the entry that is requested around its call, at run time: what serves it, by name.
        on_request: On scratch of constant size that is requested at run time all the same: what asks for that.
        border: What an allocation of the entry is at the border of the model.
        provenance: Why it may be where it may be, one narrowing a line: the pass, and its reason.
    """

    scope: Scope | None = None
    candidates: tuple[str, ...] | None = None
    offset: int | None = None
    pinned_offset: int | None = None
    arena: str | None = None
    on_request: str | None = None
    border: Border | None = None
    provenance: tuple[str, ...] = ()

    @property
    def pool(self) -> str | None:
        """The pool that its scope names; None while it names none."""
        return None if self.scope is None else self.scope.pool

    def narrowed(
        self,
        *reasons: str,
        scope: Scope | None = None,
        candidates: tuple[str, ...] | None = None,
        offset: int | None = None,
        pinned_offset: int | None = None,
        arena: str | None = None,
        on_request: str | None = None,
        border: Border | None = None,
    ) -> Storage:
        """The record with what a pass decided, and why; what is not given stays.

        Raises:
            InternalError: It would allow what the record rules out.
        """
        given = {
            "scope": scope,
            "candidates": candidates,
            "offset": offset,
            "pinned_offset": pinned_offset,
            "arena": arena,
            "on_request": on_request,
            "border": border,
        }
        decided: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        for field, value in decided.items():
            before = getattr(self, field)
            if before not in (None, value) and not _is_less(field, value, before):
                raise InternalError(f"{field} '{before}' cannot become '{value}': a pass may only narrow")
        return replace(self, **decided, provenance=(*self.provenance, *reasons))


def _is_less(field: str, value: Any, before: Any) -> bool:
    """Whether a value allows no more than the one before it, of a field whose values allow several places."""
    if field == "scope":
        return is_within(value, before)
    return field == "candidates" and set(value) <= set(before)


UNDECIDED = Storage()

CANDIDATE_POOLS = "candidate_memory_pools"
POOL_OFFSET = "pool_offset"
# The keys of the record in the text of the IR, in their order: the field, its type, and what a value is that has none.
# The scope has none: it stands among what else the text says of a buffer where that is defined.
_KEYS: Mapping[str, tuple[str, type, str]] = {
    "io": ("border", Border, "{!r}, not one of input, output, state"),
    "on_request": ("on_request", str, "not a name"),
    "pinned_offset": ("pinned_offset", int, "not a whole number"),
    CANDIDATE_POOLS: ("candidates", tuple, "not a list of pools"),
    "arena": ("arena", str, "not a name"),
    "provenance": ("provenance", tuple, "not a list of reasons"),
    POOL_OFFSET: ("offset", int, "not a whole number"),
}


def to_annotations(storage: Storage) -> Annotations:
    """The record as the text shows it: what is decided, under its keys."""
    values = ((key, getattr(storage, field)) for key, (field, _, _) in _KEYS.items())
    return tuple(
        (key, value.value if isinstance(value, Border) else value)
        for key, value in values
        if value is not None and (key, value) != ("provenance", ())
    )


def from_annotations(annotations: Annotations) -> tuple[Storage, Annotations]:
    """The record that annotations of a text stand for, and those that are not in it.

    A value under one of its keys that makes no sense is among the latter (`misused`).
    """
    decided: dict[str, Any] = {}
    others: list[tuple[str, AnnotationValue]] = []
    for key, value in annotations:
        field, kind, _ = _KEYS.get(key, ("", Border, ""))
        if field and kind is Border and value in [border.value for border in Border]:
            decided[field] = Border(value)
        elif isinstance(value, kind):
            decided[field] = value
        else:
            others.append((key, value))
    return Storage(**decided), tuple(others)


def misused(annotations: Annotations, name: str) -> tuple[str, ...]:
    """What is wrong with annotations of a buffer that stand beside the record under one of its keys."""
    return tuple(
        f"{key} of '{name}' is {_KEYS[key][2].format(value)}" for key, value in annotations if key in _KEYS
    )


class Stored:
    """Abstract: the definition of a buffer, which has such a record."""

    __slots__ = ()
    storage: Storage

    @property
    def scope(self) -> Scope | None:
        """The places that it may still choose from."""
        return self.storage.scope
