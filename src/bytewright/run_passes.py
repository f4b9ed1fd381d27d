"""Carries out passes, one after the other: tells what is being done, shows each module, and verifies it, always."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from bytewright import ir
from bytewright.ir.verify.stages import Stage, verify
from bytewright.target.model import Target

Progress = Callable[[str], None]
AfterPass = Callable[[str, ir.Module], None]
_Rest = ParamSpec("_Rest")

# Every pass, in the order in which they run, and what a module is after it. Some run with certain options alone.
PASSES: dict[str, Stage] = {
    "import_tflite": Stage.IMPORTED,
    "import_text": Stage.IMPORTED,
    "open_batch": Stage.IMPORTED,
    "place_bound": Stage.IMPORTED,
    "plan_devices": Stage.PLACED,
    "inline_calls": Stage.PLACED,
    "fold_pad": Stage.PLACED,
    "fold_constant_channels": Stage.PLACED,
    "lower_graph": Stage.OPEN,
    "share_kernels": Stage.OPEN,
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
_REMADE = ("open_batch", "lower_tags", "name_symbols")


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the passes of one compile.

    Attributes:
        target: What modules are verified for.
        progress: Told the name of each stage as it begins.
        after_pass: Given the name of each pass as it ends, and the module that it returned.
    """

    target: Target
    progress: Progress | None = None
    after_pass: AfterPass | None = None

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
        changed = run_pass(module, *rest, **named)
        return self.verified(name, changed, PASSES[name], None if name in _REMADE else module)

    def verified(
        self, pass_name: str, module: ir.Module, stage: Stage, previous: ir.Module | None = None
    ) -> ir.Module:
        """The module that a pass returned, shown to whoever watches and then verified."""
        if self.after_pass is not None:
            self.after_pass(pass_name, module)
        verify(module, stage, self.target, previous, pass_name)
        return module
