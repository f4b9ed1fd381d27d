"""Carries out passes, one after the other: tells what is being done, shows each module, and verifies it, always.

A search that stores one module under many conditions asks for the same passes again and again. It may have them
remembered: what a pass returned, or raised, is then known by what the pass was given.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar, cast

from bytewright import ir
from bytewright.diagnostics import CompileError
from bytewright.ir.verify.stages import Stage, verify
from bytewright.target.model import Target

Progress = Callable[[str], None]
AfterPass = Callable[[str, ir.Module], None]
_Rest = ParamSpec("_Rest")
_Found = TypeVar("_Found")

# Every pass, in the order in which they run, and what a module is after it. Some run with certain options alone.
PASSES: dict[str, Stage] = {
    "import_tflite": Stage.IMPORTED,
    "import_text": Stage.IMPORTED,
    "tie_states": Stage.IMPORTED,
    "stream": Stage.IMPORTED,
    "open_axis": Stage.IMPORTED,
    "open_batch": Stage.IMPORTED,
    "place_bound": Stage.IMPORTED,
    "plan_devices": Stage.PLACED,
    "inline_calls": Stage.PLACED,
    "fold_pad": Stage.PLACED,
    "fold_constant_channels": Stage.PLACED,
    "lower_graph": Stage.OPEN,
    "update_in_place": Stage.OPEN,
    "join_entries": Stage.OPEN,
    "share_kernels": Stage.OPEN,
    "own_names": Stage.OPEN,
    "keep_initial": Stage.OPEN,
    "pass_constants": Stage.OPEN,
    "drop_unused_buffers": Stage.OPEN,
    "place_scopes": Stage.LOWERED,
    "fetch_constants": Stage.LOWERED,
    "lower_tags": Stage.LOWERED,
    "pack_calls": Stage.LOWERED,
    "name_symbols": Stage.LOWERED,
    "take_rows": Stage.LOWERED,
    "take_parts": Stage.LOWERED,
    "fuse_rows": Stage.LOWERED,
    "place_io": Stage.LOWERED,
    "join_alignments": Stage.LOWERED,
    "place_scratch": Stage.LOWERED,
    "pin_buffers": Stage.LOWERED,
    "attach_candidates": Stage.STORED,
    "own_lines": Stage.STORED,
    "make_arenas": Stage.STORED,
    "choose_ways": Stage.STORED,
    "apply_solution": Stage.PLANNED,
}
# What these return cannot be compared with what they were given: shapes, tags or names are others.
_REMADE = ("tie_states", "stream", "open_axis", "open_batch", "join_entries", "lower_tags", "name_symbols")


class Known:
    """What came of calls, by the function and what it was given; the functions have no state and no effect.

    Frozen values count as what they are. Modules, and whatever cannot be hashed, count as which they are: so an answer
    is found again if they came from here themselves.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[Hashable, ...], tuple[object, CompileError | None]] = {}
        self._values: dict[int, _Which] = {}

    def answer(self, find: Callable[[], _Found], *question: object) -> _Found:
        """What `find` returns, who is asked once for each question; what it raised is raised each time."""
        key = tuple(map(self._which, question))
        if key not in self._answers:
            try:
                self._answers[key] = find(), None
            except CompileError as error:
                self._answers[key] = None, error
        found, error = self._answers[key]
        if error is not None:
            raise CompileError(error.diagnostics)
        return cast("_Found", found)

    def _which(self, value: object) -> "_Which":
        """What the value is known by; asked again of the same object, no deep hash is computed."""
        found = self._values.get(id(value))
        if found is None:  # it lives as long as this does, so nothing else takes its identity
            found = self._values[id(value)] = _Which(value)
        return found


class _Which:
    """A value by what it is, if it can be hashed, and else by which it is, for as long as this lives."""

    __slots__ = ("_hash", "_is_by_value", "_value")

    def __init__(self, value: object) -> None:
        self._value = value
        self._is_by_value = not isinstance(value, ir.Module)
        try:
            self._hash = hash(value) if self._is_by_value else id(value)
        except TypeError:
            self._hash, self._is_by_value = id(value), False

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Which):
            return NotImplemented
        if self._value is other._value:
            return True
        return self._is_by_value and other._is_by_value and self._value == other._value


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the passes of one compile.

    Attributes:
        target: What modules are verified for.
        progress: Told the name of each stage as it begins.
        after_pass: Given the name of each pass as it ends, and the module that it returned.
        known: What came of passes before, if that is remembered: then nobody is shown them.
    """

    target: Target
    progress: Progress | None = None
    after_pass: AfterPass | None = None
    known: Known | None = None

    def begin(self, stage_name: str) -> None:
        """Tells that a stage of the compile begins."""
        if self.progress is not None:
            self.progress(stage_name)

    def __call__(
        self,
        run_pass: Callable[Concatenate[ir.Module, _Rest], ir.Module],
        module: ir.Module,
        *rest: _Rest.args,
        **named: _Rest.kwargs,
    ) -> ir.Module:
        """What the pass, which is known by its function's name, makes of the module.

        Raises:
            CompileError: The pass refuses the module.
            InternalError: What it returned does not verify.
        """
        name = run_pass.__name__
        changed = self.answer(
            partial(run_pass, module, *rest, **named), run_pass, module, *rest, *named.items()
        )
        previous = None if name in _REMADE else module
        verified = partial(self.verified, name, changed, PASSES[name], previous)
        return self.answer(verified, name, self.target, changed, previous)

    def find(
        self,
        find: Callable[Concatenate[ir.Module, _Rest], _Found],
        module: ir.Module,
        *rest: _Rest.args,
        **named: _Rest.kwargs,
    ) -> _Found:
        """What an analysis finds out about a module, remembered as passes are."""
        return self.answer(partial(find, module, *rest, **named), find, module, *rest, *named.items())

    def answer(self, find: Callable[[], _Found], *question: object) -> _Found:
        """What somebody finds out, which depends on the question alone, remembered as passes are."""
        return find() if self.known is None else self.known.answer(find, *question)

    def same(self, value: _Found) -> _Found:
        """The first value that is equal to this one, if that is remembered; so that it is not compared again."""
        return self.answer(lambda: value, value)

    def verified(
        self, pass_name: str, module: ir.Module, stage: Stage, previous: ir.Module | None = None
    ) -> ir.Module:
        """The module that a pass returned, shown to whoever watches and then verified."""
        if self.after_pass is not None:
            self.after_pass(pass_name, module)
        verify(module, stage, self.target, previous, pass_name)
        return module
