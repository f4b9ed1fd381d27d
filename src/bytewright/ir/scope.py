"""Storage scopes: the set of places that a buffer may still choose from, written `<rank>[.<tag>]`.

A scope is a constraint, and passes may only shrink it. Scopes join by intersection; a conflict is an empty
intersection, never a difference in spelling. Which memories a scope stands for on a given target is the business
of the storage stage; here are the values, their order, and their text.
"""

import re
from dataclasses import dataclass

from bytewright.target.model import Rank, Target

WORKSPACE_TAG = "workspace"
STACK_TAG = "stack"
_TAG = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")  # pools of a target may have hyphens


@dataclass(frozen=True, slots=True)
class Scope:
    """One scope. `tag` is `workspace`, `stack`, a pool's name, or a tag that the target declares."""

    rank: Rank
    tag: str | None = None

    def __str__(self) -> str:
        return self.rank.value if self.tag is None else f"{self.rank.value}.{self.tag}"

    @property
    def pool(self) -> str | None:
        """The name after `global.`, if it names one place in particular; None for the general scopes."""
        if self.rank is not Rank.GLOBAL or self.tag in (None, WORKSPACE_TAG, STACK_TAG):
            return None
        return self.tag


GLOBAL = Scope(Rank.GLOBAL)
WORKSPACE = Scope(Rank.GLOBAL, WORKSPACE_TAG)
STACK = Scope(Rank.GLOBAL, STACK_TAG)
LOCAL = Scope(Rank.LOCAL)


def pool_scope(pool: str) -> Scope:
    """The scope `global.<pool>`: exactly that pool."""
    return Scope(Rank.GLOBAL, pool)


def parse_scope(text: str, declared: frozenset[str] | None = None) -> Scope:
    """Reads `<rank>[.<tag>]`.

    Args:
        text: The scope as written.
        declared: The tags and pool names that exist besides `workspace` and `stack`; None admits any name.

    Raises:
        ValueError: The rank or the tag does not exist; the message lists what does.
    """
    rank_text, dot, tag = text.partition(".")
    ranks = {rank.value: rank for rank in Rank}
    if rank_text not in ranks:
        raise ValueError(f"there is no rank '{rank_text}' in scope '{text}'; ranks are {', '.join(ranks)}")
    rank = ranks[rank_text]
    if not dot:
        return Scope(rank)
    if rank is Rank.LOCAL:
        raise ValueError(f"scope '{text}': 'local' takes no tag")
    if not _TAG.match(tag):
        raise ValueError(f"scope '{text}': '{tag}' is not a name")
    general = (WORKSPACE_TAG, STACK_TAG) if rank is Rank.GLOBAL else ()
    if declared is not None and tag not in general and tag not in declared:
        known = ", ".join([*general, *sorted(declared)])
        raise ValueError(f"there is no tag '{tag}' in scope '{text}'; the target has {known}")
    return Scope(rank, tag)


def is_local(scope: Scope | None) -> bool:
    """Whether it is private to one call of a kernel."""
    return scope is not None and scope.rank is Rank.LOCAL


def is_on_stack(scope: Scope | None) -> bool:
    """Whether a kernel declares what has it: an array on the stack, or a variable."""
    return scope == STACK or is_local(scope)


def lowering_pass(scope: Scope | None, target: Target) -> str | None:
    """The pass that lowers the scope's tag, where the target names one: no other pass decides about such a buffer."""
    tag = target.scope_tag(scope.tag) if scope is not None and scope.tag else None
    return None if tag is None else tag.lowering_pass


def is_within(inner: Scope | None, outer: Scope | None) -> bool:
    """True if every place of `inner` is a place of `outer`. None, no constraint, is the widest."""
    if outer is None:
        return True
    if inner is None or inner.rank is not outer.rank:
        return False
    if outer.tag is None or inner.tag == outer.tag:
        return True
    return outer == WORKSPACE and inner.pool is not None


def join_scopes(first: Scope | None, second: Scope | None) -> Scope | None:
    """The intersection of two scopes.

    Raises:
        ValueError: The intersection is empty.
    """
    if is_within(first, second):
        return first
    if is_within(second, first):
        return second
    raise ValueError(f"scopes '{first}' and '{second}' have no place in common")
