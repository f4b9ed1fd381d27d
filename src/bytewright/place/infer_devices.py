"""Which device each item is on: unification over flows, from what was asked to what is left.

Items that nothing was asked of take the device of what they are tied to. Where ties lead to several devices, an item
takes the one that all its users ask for, else the one that all it uses comes from, else the default device; there a
value crosses from one device to the other. Sets of devices are bits and only grow while they spread, so the outcome
depends on neither names nor order. Nothing recurs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bytewright.diagnostics import Collector, Diagnostic
from bytewright.ir.union_find import UnionFind
from bytewright.place.flows import Asked, Program, Tie
from bytewright.target.mistake import closest, listing

_Edges = Sequence[tuple[int, int]]


@dataclass(slots=True)
class Devices:
    """The devices of classes of items, by the number that a device has in the target, and why they are these."""

    program: Program
    known: dict[int, int] = field(default_factory=dict[int, int])
    reasons: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def default(self) -> int:
        """The default device's number."""
        return self.number(self.program.target.default_device_name)

    def number(self, name: str) -> int:
        """A device's number."""
        return next(i for i, device in enumerate(self.program.target.devices) if device.name == name)

    def of(self, item: int) -> str:
        """The name of an item's device."""
        number = self.known.get(self.program.classes.find(item), self.default)
        return self.program.target.devices[number].name

    def reason_of(self, item: int) -> str | None:
        """Why it is there."""
        return self.reasons.get(self.program.classes.find(item))

    def edges(self, *ties: Tie) -> list[tuple[int, int]]:
        """The flows of some ties between classes, each once."""
        find = self.program.classes.find
        pairs = (
            (find(flow.value), find(flow.user))
            for flow in self.program.flows
            if flow.tie in ties and flow.user is not None
        )
        return list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))

    def take_asked(self) -> None:
        """Starts from what was asked.

        Raises:
            CompileError: BW701 for what is asked to be on two devices; all at once.
        """
        program, collector = self.program, Collector()
        asked: dict[int, list[Asked]] = {}
        names = [device.name for device in program.target.devices]
        for item, places in program.asked.items():
            for place in places:
                if place.place.device not in (None, *names):
                    collector.add(_no_device(place, names))
            named = [place for place in places if place.place.device is not None]
            asked.setdefault(program.classes.find(item), []).extend(named)
        for item, places in asked.items():
            devices = {place.place.device: place for place in sorted(places, key=lambda place: place.text)}
            if len(devices) > 1:
                collector.add(_two_places(program.name_of(item), list(devices.values())))
            for name, place in devices.items():
                if name not in names:
                    continue
                self.known[item] = self.number(name)
                self.reasons[item] = place.text
        for flow in program.flows:
            item = program.classes.find(flow.value)
            if (
                flow.tie is Tie.FIXED
                and flow.user is None
                and self.known.get(item, self.default) != self.default
            ):
                entry = f"it says which way the entry goes, which device '{program.target.default_device_name}' runs"
                name = program.name_of(flow.value)
                message = f"{name} is fixed on device '{self.of(item)}', and used on another"
                notes = (self.reasons[item], entry)
                collector.add(Diagnostic("BW701", message, notes, "leave 'fixed' out"))
        collector.stop_if_any()

    def spread(self, edges: _Edges) -> None:
        """Gives open items the devices of what they are tied to, as far as any is known."""
        while True:
            around = _Around.of(edges, self.known)
            if not around.members:
                return
            for members, devices in around.members:
                if _is_one(devices):
                    self.assign(members, devices, around)
                else:
                    self.settle(members, around)

    def assign(self, members: Iterable[int], devices: int, around: _Around) -> None:
        """Puts items on the one device of a set, because of the neighbours that are there."""
        number = devices.bit_length() - 1
        because = sorted(
            self.reasons[other]
            for member in members
            for other in around.neighbours(member)
            if self.known.get(other) == number and other in self.reasons
        )
        for member in members:
            self.known[member] = number
            if because:
                self.reasons[member] = because[0]

    def settle(self, members: Sequence[int], around: _Around) -> None:
        """Devices of open items that ties lead from to several: in turns, each of what the one before has reached."""
        left = dict.fromkeys(members)
        reached: Iterable[int] = members
        while reached:
            wanted = _spread(left, reached, around.users, around.sources, self.known)
            now = {item: bits.bit_length() - 1 for item, bits in wanted.items() if _is_one(bits)}
            self.put(now, left, around)
            reached = dict.fromkeys((*reached, *around.beside(now, left)))
            given = _spread(left, reached, around.sources, around.users, self.known)
            rest = {
                item: given[item].bit_length() - 1 if _is_one(given.get(item, 0)) else self.default
                for item in dict.fromkeys((*given, *wanted))
                if item in left
            }
            self.put(rest, left, around)
            reached = around.beside((*now, *rest), left)

    def put(self, now: Mapping[int, int], left: dict[int, None], around: _Around) -> None:
        """Puts items on devices, which are not left then, because of what was there before."""
        text = "what it is used by, or made from, is on this device"
        reasons = {
            item: min(
                (
                    self.reasons[other]
                    for other in around.neighbours(item)
                    if self.known.get(other) == number and other in self.reasons
                ),
                default=text,
            )
            for item, number in now.items()
            if number != self.default
        }
        self.reasons.update(reasons)
        for item, number in now.items():
            self.known[item] = number
            left.pop(item)


def _spread(
    members: Mapping[int, None],
    reached: Iterable[int],
    ahead: Mapping[int, Sequence[int]],
    behind: Mapping[int, Sequence[int]],
    known: Mapping[int, int],
) -> dict[int, int]:
    """Sets of devices that members meet ahead, through each other, from those that may have one right before them."""
    found: dict[int, int] = {}
    for item in reached:
        if item in members:
            for other in ahead.get(item, ()):
                number = known.get(other)
                if number is not None:
                    found[item] = found.get(item, 0) | 1 << number
    pending = list(found)
    while pending:
        item = pending.pop()
        for other in behind.get(item, ()):
            before = found.get(other, 0)
            if other in members and found[item] & ~before:
                found[other] = before | found[item]
                pending.append(other)
    return found


@dataclass(slots=True)
class _Around:
    """Open items, by what ties them together, and the devices that are known around each group of them."""

    users: dict[int, list[int]]
    sources: dict[int, list[int]]
    members: list[tuple[list[int], int]]

    def neighbours(self, item: int) -> tuple[int, ...]:
        """What an item is tied to."""
        return (*self.users.get(item, ()), *self.sources.get(item, ()))

    def beside(self, items: Iterable[int], left: Mapping[int, None]) -> dict[int, None]:
        """The open items that some items are tied to."""
        return dict.fromkeys(other for item in items for other in self.neighbours(item) if other in left)

    @staticmethod
    def of(edges: _Edges, known: Mapping[int, int]) -> _Around:
        """The groups that have a known device around them."""
        users: dict[int, list[int]] = {}
        sources: dict[int, list[int]] = {}
        numbers: dict[int, int] = {}
        classes = UnionFind()
        for value, user in edges:
            if value in known and user in known:
                continue
            users.setdefault(value, []).append(user)
            sources.setdefault(user, []).append(value)
            for item in (value, user):
                if item not in known and item not in numbers:
                    numbers[item] = classes.add()
            if value in numbers and user in numbers:
                classes.join(numbers[value], numbers[user])
        groups: dict[int, list[int]] = {}
        devices: dict[int, int] = {}
        for item, number in numbers.items():
            groups.setdefault(classes.find(number), []).append(item)
        for value, user in edges:
            for item, other in ((value, user), (user, value)):
                if item in numbers and other in known:
                    group = classes.find(numbers[item])
                    devices[group] = devices.get(group, 0) | 1 << known[other]
        return _Around(users, sources, [(groups[group], bits) for group, bits in devices.items()])


def _is_one(devices: int) -> bool:
    return devices != 0 and devices & (devices - 1) == 0


def _no_device(asked: Asked, names: list[str]) -> Diagnostic:
    device = asked.place.device or ""
    message = f"{asked.text}, which the target does not have"
    return Diagnostic("BW702", message, (listing("devices", names),), closest(device, names))


def _two_places(name: str, asked: Sequence[Asked]) -> Diagnostic:
    first, second = asked[0].place, asked[1].place
    return Diagnostic(
        "BW701",
        f"{name} is to be on device '{first.device}' and on device '{second.device}'",
        tuple(place.text for place in asked),
        "take one of the annotations away, or put a device_copy between them",
    )
