"""What calls of an entry are given in memory that their devices do not reach: where each of it is to be instead.

A buffer may be touched by devices that reach no pool together. It lies then where those reach that write it, and others
as long as a pool is left; who is left over is given a copy, in a pool of its own. Pools are chosen so that the copies
take the fewest hops (`routes.py`), and of these the first in the target's order. `place_scopes` makes the copies, as it
does where kernels ask for places themselves. Where no device copies, nothing is asked for, and storage says what is
missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.homes import Pools
from bytewright.ir.analyses.touch import TouchTable
from bytewright.ir.walk import allocations, condition_buffer, statements_of
from bytewright.place.routes import Routes
from bytewright.scopes.scope_uses import Memory, Use
from bytewright.target.model import Role, Target

# A place, and why something is to be there.
_Wanted = tuple[ir.Scope, str]


@dataclass(frozen=True, slots=True)
class Parted:
    """Places for what devices touch that reach no pool together.

    Attributes:
        homes: Of definitions of the entry, by name. Inputs and outputs that the application has are not among them, nor
            are states: of their pools any will do that is left to those without a copy.
        copies: Of arguments that are to be given copies, by the call's identity and their number.
    """

    homes: Mapping[str, _Wanted]
    copies: Mapping[tuple[int, int], _Wanted]


@dataclass(slots=True)
class Parting:
    """Finds these places for one entry; places are bits of `pools`.

    Args:
        entry: The entry.
        memory: What its names stand for.
        table: Who touches what a call is given.
        target: What the module is for.
        io: Where inputs and outputs are.
    """

    entry: ir.PrimFunc
    memory: Memory
    table: TouchTable
    target: Target
    io: ir.Io
    pools: Pools = field(init=False)
    told: Pools = field(init=False)
    states: set[str] = field(default_factory=set[str])
    homes: dict[str, _Wanted] = field(default_factory=dict[str, "_Wanted"])
    copies: dict[tuple[int, int], _Wanted] = field(default_factory=dict[tuple[int, int], "_Wanted"])

    def __post_init__(self) -> None:
        self.pools, self.told = Pools(self.target), Pools(self.target, is_told=True)

    def find(self, uses: Iterable[Use]) -> Parted:
        """The places, from all that the entry's calls pass."""
        by_name: dict[str, list[Use]] = {}
        for use in sorted(uses, key=lambda use: (use.is_scratch, not use.is_written)):
            for name in self.memory.of(use.piece.buffer.name):
                by_name.setdefault(name, []).append(use)
        branched = {
            buffer.name
            for statement in statements_of(self.entry)
            if (buffer := condition_buffer(statement)) is not None
        }
        for name, first in self._first_places().items():
            reach = self.pools.of_device(self.entry.device) if name in branched else -1
            self._part(name, first & reach, by_name.get(name, []))
        return Parted(self.homes, self.copies)

    def _first_places(self) -> dict[str, int]:
        """Where each definition may be by itself."""
        found: dict[str, int] = {}
        own = self.pools.of_device(self.entry.device)
        for allocation in allocations(self.entry):
            places = self.pools.of_scope(allocation.scope) & self._planned(is_io=False)
            if allocation.storage.candidates is not None:
                places &= self._of_pools(allocation.storage.candidates)
            if allocation.storage.border is ir.Border.STATE:
                places &= own & self._beside_states()
                self.states.add(allocation.buffer.name)
            if places:  # no tag that a pass will lower
                found[allocation.buffer.name] = places
        for parameter in self.entry.buffer_parameters:
            scope = parameter.scope
            if self.io is ir.Io.WORKSPACE or (scope is not None and scope.pool is not None):
                found[parameter.name] = self.pools.of_scope(scope) & own & self._planned(is_io=True)
            elif ir.border_of(parameter) is ir.Border.INPUT:
                found[parameter.name] = self.pools.input
            else:
                found[parameter.name] = self.pools.output
        return found

    def _planned(self, *, is_io: bool) -> int:
        """Pools that tensors may be in, or inputs and outputs that are planned."""
        has_own = any(pool.is_for_io for pool in self.target.workspace_pools)
        names = (p.name for p in self.target.workspace_pools if p.is_for_io is (is_io and has_own))
        return self._of_pools(names)

    def _of_pools(self, names: Iterable[str]) -> int:
        places = 0
        for name in names:
            places |= self.pools.of_scope(ir.pool_scope(name))
        return places

    def _beside_states(self) -> int:
        """The pools in whose memories states may be."""
        memories = {pool.memory for pool in self.target.pools_of(Role.STATE)}
        pools = self.target.workspace_pools
        return self._of_pools(pool.name for pool in pools if not memories or pool.memory in memories)

    def _reach(self, use: Use) -> int:
        """Where the devices reach that touch an argument, as far as its parameter may lie there."""
        places = self.pools.of_scope(use.parameter.scope)
        for touch in self.table.of_argument(use.call, use.index):
            places &= self.pools.of_device(touch.device)
        return places

    def _part(self, name: str, places: int, uses: list[Use]) -> None:
        """Chooses places for one definition, if not all that touch it reach it in one."""
        is_given = bool(places & (self.pools.input | self.pools.output))
        if is_given and self._is_told(uses):
            return
        far: list[Use] = []
        for use in uses:
            reach = self._reach(use)
            if places & reach:
                places &= reach
            else:
                far.append(use)
        chosen = self._chosen(places, far, is_given=is_given) if far else None
        if chosen is None:
            return
        home, copies = chosen
        for use, pool in zip(far, copies, strict=True):
            devices = " and ".join(f"'{device}'" for device in self._devices((use,)))
            reason = f"device {devices} does not reach '{name}' where others do"
            self.copies.setdefault((id(use.call), use.index), (ir.pool_scope(pool), reason))
        if home is not None and name not in self.states:
            near = self._devices(use for use in uses if use not in far) or (self.entry.device,)
            devices = " and ".join(f"'{device}'" for device in near)
            self.homes[name] = (
                ir.pool_scope(home),
                f"device {devices} reaches it there, and others have copies",
            )

    def _devices(self, uses: Iterable[Use]) -> tuple[str, ...]:
        """Who touches what is passed."""
        touches = (touch for use in uses for touch in self.table.of_argument(use.call, use.index))
        return tuple(dict.fromkeys(touch.device for touch in touches))

    def _is_told(self, uses: Iterable[Use]) -> bool:
        """Whether all that touch what the application has reach some memory where it can write: then it is told."""
        return bool(self.target.common_memories((self.entry.device, *self._devices(uses)), is_written=True))

    def _chosen(self, places: int, far: list[Use], *, is_given: bool) -> tuple[str | None, list[str]] | None:
        """The pool where a definition is to be, and those of copies of it; None where no device can make one.

        What the application has is in no pool.
        """
        best: tuple[int, str | None, list[str]] | None = None
        for home in (None,) if is_given else self.pools.names(places):
            at = places if home is None else self._of_pools((home,))
            ways = [self._nearest(at, self._reach(use)) for use in far]
            if any(way is None for way in ways):
                continue
            found = [way for way in ways if way is not None]
            num_hops = sum(count for count, _ in found)
            if best is None or num_hops < best[0]:
                best = (num_hops, home, [pool for _, pool in found])
        return None if best is None else best[1:]

    def _nearest(self, source: int, places: int) -> tuple[int, str] | None:
        """How many hops it takes to the nearest pool of some, and that pool."""
        names = self.pools.names(places & self._planned(is_io=False))
        for pools in (self.pools, self.told):
            ways = [(len(Routes(pools).find((source,), self._of_pools((name,)))), name) for name in names]
            found = [way for way in ways if way[0]]
            if found:
                return min(found, key=lambda way: way[0])
        return None
