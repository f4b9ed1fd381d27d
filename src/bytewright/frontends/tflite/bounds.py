"""What the run alone knows, and its bounds, `--bound PATTERN=N`: turns of loops, and extents that the data decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import compile_error
from bytewright.target.mistake import closest

SIZE = "size"
"""What the result that says how large such an extent is has behind the name of its operator."""
NO_BOUNDS: Mapping[str, int] = FrozenMapping({})


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a file, of all its graphs.

    Attributes:
        most: Turns, or what an extent may be, by shell patterns of the names of operators, or of their kind,
            or names of tensors that they make in the file.
        bounded: The names and kinds of the loops, and of what has such extents, that there are so far.
        prefix: What the names of such extents begin with, where a file has several graphs.
        counted: Such extents by their names, those of their operators.
        roots: The names of those that numbers of the run state, by a value of the graph and the place of an element.
        made: What is made of such a number where a run may cut it off, by the place of the element that it is.
        joined: The elements of which all that is made is one size, and runs in which it is not are refused.
        asked: Of which extent which operators have said what is possible, with all others at their largest.
        chosen: What these are taken to be in a graph that is read; their bound, where nothing is said.
    """

    most: Mapping[str, int] = field(default_factory=lambda: NO_BOUNDS)
    bounded: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    prefix: str = ""
    counted: dict[str, ir.Counted] = field(default_factory=dict[str, ir.Counted])
    roots: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    made: dict[tuple[str, int], set[tuple[object, ...]]] = field(
        default_factory=dict[tuple[str, int], set[tuple[object, ...]]]
    )
    joined: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    asked: set[tuple[str, tuple[str, ...]]] = field(default_factory=set[tuple[str, tuple[str, ...]]])
    chosen: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def allows_none(self) -> bool:
        """Whether this graph may have values without elements: a size is 0 in it."""
        return 0 in self.chosen.values()

    @property
    def has_single(self) -> bool:
        """Whether a size is 0 or 1: what is written otherwise for an extent of 1 is none that is common."""
        return any(each.extent.lower < each.extent.upper == 1 for each in self.counted.values())

    def of(self, *names: str) -> int | None:
        """The bound of an operator, by its names, which are noted; None if nothing was said.

        Of several patterns the last counts.
        """
        self.bounded.append(names)
        found = [most for pattern, most in self.most.items() if _matches(pattern, names)]
        return found[-1] if found else None

    def extent(
        self, name: str, operator: tuple[str, ...], natural: int | None, *, is_sure: bool, least: int = 0
    ) -> int | None:
        """What an extent that the data decides is in this graph; None without a bound.

        Args:
            name: Of the extent. Several operators may have it: what is possible for one is for all.
            operator: The names of the one that asks.
            natural: The most that is possible, as shapes say it.
            is_sure: Whether data cannot ask for more than that.
            least: The least that the file is read for.
        """
        known, stated = self.counted.get(name), self.of(name, *operator)
        if known is not None and (name, operator) in self.asked:
            return self.chosen.get(name, known.extent.upper)
        so_far = None if known is None else known.extent.upper
        bounds = [each for each in (natural, stated, so_far) if each is not None]
        if not bounds:
            return None
        self.asked.add((name, operator))
        most = min(bounds)
        is_checked = not is_sure or natural is None or most < natural
        is_checked = is_checked or (known is not None and known.is_checked)
        self.counted[name] = ir.Counted(
            f"{name}/{SIZE}", ir.Symbol(f"{self.prefix}{name}_size", least, most), is_checked
        )
        return self.chosen.get(name, most)

    def join(self) -> bool:
        """Takes each number of which there are several sizes for one, and forgets what was read; whether any is new."""
        several = {each for each, made in self.made.items() if len(made) > 1 or each in self.roots}
        if several <= self.joined:
            return False
        self.joined.update(several)
        for known in (self.counted, self.roots, self.made, self.asked, self.chosen):
            known.clear()
        return True

    def require_matches(self, where: str) -> None:
        """Refuses a bound of nothing.

        Raises:
            CompileError: BW204.
        """
        for pattern, most in self.most.items():
            if not any(_matches(pattern, each) for each in self.bounded):
                names = list(dict.fromkeys(name for name, *_ in self.bounded))
                listed = ", ".join(map(repr, names))
                message = f"--bound {pattern}={most} matches no loop, and no size that the data decides; " + (
                    f"there are {listed}" if listed else "the model has none"
                )
                help_text = closest(pattern, names) if names else "leave out --bound"
                raise compile_error("BW204", message, help=help_text, where=where)


def _matches(pattern: str, each: tuple[str, ...]) -> bool:
    return pattern in each or any(fnmatchcase(text, pattern) for text in each)
