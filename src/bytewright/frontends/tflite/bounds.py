"""How many turns loops take at most whose number of turns the run alone knows: `--bound PATTERN=N`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import compile_error
from bytewright.target.mistake import closest

NO_BOUNDS: Mapping[str, int] = FrozenMapping({})


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a file, of all its graphs.

    Attributes:
        most_turns: By shell patterns of the names of loops, or of their kind.
        loops: The names and kinds of the loops that there are so far.
    """

    most_turns: Mapping[str, int] = field(default_factory=lambda: NO_BOUNDS)
    loops: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def of_loop(self, name: str, kind: str) -> int | None:
        """The most turns of a loop, which is noted; None if nothing was said. Of several patterns the last counts."""
        self.loops.append((name, kind))
        found = [most for pattern, most in self.most_turns.items() if _matches(pattern, (name, kind))]
        return found[-1] if found else None

    def require_loops(self, where: str) -> None:
        """Refuses a bound of no loop.

        Raises:
            CompileError: BW204.
        """
        for pattern, most in self.most_turns.items():
            if not any(_matches(pattern, loop) for loop in self.loops):
                names = [name for name, _ in self.loops]
                listed = ", ".join(map(repr, names))
                message = f"--bound {pattern}={most} matches no loop; " + (
                    f"there are {listed}" if listed else "the model has none"
                )
                help_text = closest(pattern, names) if names else "leave out --bound"
                raise compile_error("BW204", message, help=help_text, where=where)


def _matches(pattern: str, loop: tuple[str, str]) -> bool:
    return any(fnmatchcase(each, pattern) for each in loop)
