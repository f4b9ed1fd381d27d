"""From a model file to a bundle: the stages in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bytewright import __version__
from bytewright.bundle.plan_document import PlannedModel, plan_document
from bytewright.bundle.write import bundle_files
from bytewright.codegen.check_indices import check_indices
from bytewright.codegen.generate import generate_c
from bytewright.codegen.includes import uses_math
from bytewright.codegen.interface import (
    Embedding,
    Interface,
    PoolInterface,
    arena_interfaces,
    memory_aliases,
    offset_macro,
    planned_offsets,
    pool_interfaces,
    strict_ports,
)
from bytewright.codegen.name_symbols import name_symbols
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.open_batch import open_batch
from bytewright.frontends.registry import import_model
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.analyses.stack import stack_uses
from bytewright.ir.border import Io, allocates_border
from bytewright.ir.module import Module
from bytewright.ir.symbols import scalar_symbols
from bytewright.ir.verify.admit import admit, admit_to_codegen
from bytewright.ir.verify.stages import Stage, verify
from bytewright.lower.fold_pad import fold_pad
from bytewright.lower.lower_graph import lower_graph
from bytewright.lower.share_kernels import share_kernels
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.place.plan_devices import plan_devices
from bytewright.plan.request import DEFAULT_NODE_BUDGET
from bytewright.plan.solution import Solution
from bytewright.plan.solve import solve
from bytewright.remedy.refuse import require_fit
from bytewright.remedy.trial import Conditions, Trial
from bytewright.storage.apply_solution import apply_solution
from bytewright.storage.attach_candidates import attach_candidates
from bytewright.storage.build_problem import build_parameter_problem, build_workspace_problem
from bytewright.storage.check_addresses import check_addresses
from bytewright.storage.check_scopes import check_scopes, undeclared_tags
from bytewright.storage.drop_unused_buffers import drop_unused_buffers
from bytewright.storage.external_stacks import with_external_stacks
from bytewright.storage.join_alignments import join_alignments
from bytewright.storage.lower_tags import lower_tags
from bytewright.storage.make_arenas import make_arenas
from bytewright.storage.pass_constants import pass_constants
from bytewright.storage.pin_buffers import Pin, pin_buffers
from bytewright.storage.place_io import place_io
from bytewright.storage.place_scratch import place_scratch
from bytewright.target.model import Role, Target

Progress = Callable[[str], None]
AfterPass = Callable[[str, Module], None]
# What a module is bit for bit that was written by hand: itself, as the evaluator runs it.
OWN_NUMERICS = "ir"
# What each of the attempts may cost that look for a way out when a model does not fit: a fraction of a second.
REMEDY_NODES = 20_000


@dataclass(frozen=True, slots=True)
class Compiled:
    """What compiling gives.

    Attributes:
        planned: The planned module and its evidence.
        document: plan.json.
        files: Path in the bundle -> content.
    """

    planned: PlannedModel
    document: dict[str, Any]
    files: dict[str, bytes]


def compile_model(
    model: Path,
    target: Target,
    *,
    name: str | None = None,
    constants: Path | None = None,
    numerics: Numerics | None = None,
    io: Io = Io.CALLER,
    pins: tuple[Pin, ...] = (),
    batch_max: int | None = None,
    solver: str = "auto",
    embedding: Embedding = Embedding.AUTO,
    progress: Progress | None = None,
    after_pass: AfterPass | None = None,
) -> Compiled:
    """Compiles a model file for a target; nothing is written.

    Args:
        model: A .tflite file, or a module of IR text, which is a .bw file.
        target: What to compile for.
        name: A C identifier; if None, the file's stem, or what the text states.
        constants: The .npz file with the constants of a text; the one beside it if None.
        numerics: The kernel set that the output must equal bit for bit; LITERT_REF if None. A text states its own.
        io: Whether the application brings inputs and outputs to each run, or they lie in the workspace.
        pins: Buffers that belong in a pool by name.
        batch_max: Samples that one run computes at most; None for a run of one sample, without a batch.
        solver: Of the planner, by name.
        embedding: How the bytes of parameter pools come into the program.
        progress: Told the name of each stage as it begins.
        after_pass: Given the name of each pass as it ends, and the module that it returned.

    Raises:
        CompileError: The model is wrong or does not fit.
    """
    module = lower_model(
        model,
        target,
        name=name,
        constants=constants,
        numerics=numerics,
        batch_max=batch_max,
        progress=progress,
        after_pass=after_pass,
    )
    return compile_lowered(
        module,
        target,
        io=io,
        pins=pins,
        solver=solver,
        embedding=embedding,
        progress=progress,
        after_pass=after_pass,
        is_admitted=True,
    )


def lower_model(
    model: Path,
    target: Target,
    *,
    name: str | None = None,
    constants: Path | None = None,
    numerics: Numerics | None = None,
    batch_max: int | None = None,
    progress: Progress | None = None,
    after_pass: AfterPass | None = None,
) -> Module:
    """The part of `compile_model` before storage: kernels and an entry."""
    progress = progress or _silent
    checked = partial(_checked, target=target, after_pass=after_pass)
    progress("frontends")  # bytes of the file -> graph, or what a text says
    imported = import_model(model, target, name=name, numerics=numerics, constants=constants)
    module = checked(imported.module, imported.stage, None, imported.pass_name)
    if imported.stage is Stage.LOWERED:
        if batch_max is not None:
            raise _lowered_batch(model, batch_max)
        return module
    if batch_max is not None:
        module = checked(open_batch(module, batch_max), Stage.IMPORTED, None, "open_batch")
    progress("place")  # every value gets a virtual device
    module = checked(plan_devices(module, target), Stage.PLACED, module, "plan_devices")
    progress("lower")  # operators are fused into kernels
    module = checked(fold_pad(module), Stage.PLACED, module, "fold_pad")
    module = checked(lower_graph(module, target), Stage.LOWERED, module, "lower_graph")
    return checked(share_kernels(module), Stage.LOWERED, module, "share_kernels")


def compile_lowered(
    module: Module,
    target: Target,
    *,
    io: Io = Io.CALLER,
    pins: tuple[Pin, ...] = (),
    solver: str = "auto",
    embedding: Embedding = Embedding.AUTO,
    progress: Progress | None = None,
    after_pass: AfterPass | None = None,
    is_admitted: bool = False,
) -> Compiled:
    """The part of `compile_model` behind lowering, for a module of kernels and an entry from wherever.

    It is verified as a program, unless a frontend or lowering has seen to that (`is_admitted`).

    Raises:
        CompileError: It is no valid program, or does not fit.
    """
    progress = progress or _silent
    planned = plan_lowered(
        module,
        target,
        io=io,
        pins=pins,
        solver=solver,
        embedding=embedding,
        progress=progress,
        after_pass=after_pass,
        is_admitted=is_admitted,
    )
    admit_to_codegen(module)
    progress("codegen")  # C text
    document = plan_document(planned)
    c_files = generate_c(planned.module, _interface(planned, document["plan_hash"]))
    progress("bundle")
    files = bundle_files(c_files, document, planned.module.name, uses_math(planned.module))
    return Compiled(planned, document, files)


def plan_lowered(
    module: Module,
    target: Target,
    *,
    io: Io = Io.CALLER,
    pins: tuple[Pin, ...] = (),
    solver: str = "auto",
    embedding: Embedding = Embedding.AUTO,
    progress: Progress | None = None,
    after_pass: AfterPass | None = None,
    is_admitted: bool = False,
) -> PlannedModel:
    """Stores and plans a lowered module; see `compile_lowered`."""
    checked = partial(_checked, target=target, after_pass=after_pass)
    if not is_admitted:
        admit(module, target)
    module = checked(pass_constants(module), Stage.LOWERED, module, "pass_constants")
    if not undeclared_tags(module, target):  # or a buffer could go that storage has to refuse
        module = checked(drop_unused_buffers(module), Stage.LOWERED, module, "drop_unused_buffers")
    if allocates_border(module.main):  # a text that was printed after `place_io`
        io = Io.WORKSPACE
    target = with_external_stacks(module, target)
    module = _lowered_tags(module, target, after_pass)
    module = checked(name_symbols(module), Stage.LOWERED, None, "name_symbols")
    check_indices(module)
    quiet = partial(store, module, solver=solver, progress=progress)  # `storage` and `plan`
    attempt, quick_attempt = partial(quiet, after_pass=after_pass), partial(quiet, node_budget=REMEDY_NODES)
    trial = require_fit(module, Conditions(target, pins, io), attempt, quick_attempt)
    target = trial.conditions.target
    module, workspace, parameters = trial.module, trial.workspace, trial.parameters
    placed = apply_solution(module, workspace, parameters)
    module = _checked(placed, Stage.PLANNED, module, "apply_solution", target, after_pass)
    return PlannedModel(
        module,
        target,
        module.numerics or OWN_NUMERICS,
        io,
        __version__,
        trial.timeline,
        workspace,
        parameters,
        trial.stack,
        _pools(module, target, Role.PARAMETERS, parameters, embedding),
    )


def store(
    module: Module,
    conditions: Conditions,
    *,
    solver: str = "auto",
    progress: Progress | None = None,
    node_budget: int = DEFAULT_NODE_BUDGET,
    after_pass: AfterPass | None = None,
) -> Trial:
    """Decides every allocation of a lowered module, and plans what goes to pools; whether it fits is in the trial.

    Raises:
        CompileError: The conditions contradict each other or the module.
    """
    target, progress = conditions.target, progress or _silent
    checked = partial(_checked, target=target, after_pass=after_pass)
    progress("storage")  # stack or pool, for each allocation
    check_scopes(module, target)
    check_addresses(module, target)
    if conditions.io is Io.WORKSPACE:
        module = checked(place_io(module), Stage.LOWERED, module, "place_io")
    module = checked(join_alignments(module), Stage.LOWERED, module, "join_alignments")
    module = checked(place_scratch(module, target), Stage.LOWERED, module, "place_scratch")
    pinned = pin_buffers(module, target, conditions.pins)
    module = checked(pinned, Stage.LOWERED, module, "pin_buffers")
    module = checked(attach_candidates(module, target), Stage.STORED, module, "attach_candidates")
    module = checked(make_arenas(module, target), Stage.STORED, module, "make_arenas")
    timeline = read_clock(module, target)
    stack = stack_uses(module, target)
    progress("plan")  # offsets
    workspace_problem = build_workspace_problem(module, timeline, target)
    workspace = solve(workspace_problem, solver=solver, node_budget=node_budget)
    parameter_problem = build_parameter_problem(module, target)
    parameters = solve(parameter_problem, solver=solver, node_budget=node_budget)
    return Trial(
        conditions, module, timeline, stack, workspace_problem, workspace, parameter_problem, parameters
    )


def _silent(stage: str) -> None:
    del stage


def _checked(
    module: Module,
    stage: Stage,
    previous: Module | None,
    pass_name: str,
    target: Target,
    after_pass: AfterPass | None = None,
) -> Module:
    """What a pass returned, shown to whoever watches and then verified."""
    if after_pass is not None:
        after_pass(pass_name, module)
    verify(module, stage, target, previous, pass_name)
    return module


def _lowered_tags(module: Module, target: Target, after_pass: AfterPass | None) -> Module:
    """The module after the passes of plug-ins; their results are verified where they run."""
    lowered = lower_tags(module, target)
    if after_pass is not None and lowered is not module:
        after_pass("lower_tags", lowered)
    return lowered


def _lowered_batch(model: Path, batch_max: int) -> CompileError:
    return CompileError(
        Diagnostic(
            "BW111",
            f"'{model}' is lowered already, so its batch cannot be opened",
            help=f"leave out --batch-max, and give the tensors of the text an extent such as batch[1..{batch_max}]",
        )
    )


def _pools(
    module: Module,
    target: Target,
    role: Role,
    solution: Solution,
    embedding: Embedding = Embedding.AUTO,
) -> tuple[PoolInterface, ...]:
    used_bytes = {use.pool: use.top_bytes for use in solution.pools}
    alignments = {use.pool: use.alignment for use in solution.pools}
    return pool_interfaces(module, target, role, used_bytes, alignments, embedding)


def _interface(planned: PlannedModel, plan_hash: str) -> Interface:
    module, target = planned.module, planned.target
    offsets = tuple(
        (offset_macro(module.name, buffer.scope.pool or "", buffer.name), offset)
        for buffer, offset in planned_offsets(module)
        if buffer.scope is not None
    )
    workspaces = _pools(module, target, Role.WORKSPACE, planned.workspace)
    return Interface(
        model=module.name,
        version=planned.version,
        numerics=planned.numerics,
        io=planned.io,
        target=target.name,
        plan_hash=plan_hash,
        workspaces=workspaces,
        parameters=planned.parameter_pools,
        aliases=memory_aliases(target),
        arenas=arena_interfaces(module, workspaces),
        inputs=module.inputs,
        outputs=module.outputs,
        symbols=tuple(symbol for _, symbol in scalar_symbols(module.main) if symbol is not None),
        stack_planned_bytes=planned.stack[0].planned_bytes,
        stack_size_bytes=planned.stack[0].size_bytes,
        offsets=offsets,
        strict_ports=strict_ports(module),
    )
