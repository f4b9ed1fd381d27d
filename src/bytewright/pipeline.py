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
)
from bytewright.frontends.open_batch import open_batch
from bytewright.frontends.tflite import import_tflite
from bytewright.ir.border import Io
from bytewright.ir.module import Module
from bytewright.ir.symbols import scalar_symbols
from bytewright.ir.verify import Stage, verify
from bytewright.lower.fold_pad import fold_pad
from bytewright.lower.lower_graph import lower_graph
from bytewright.lower.share_kernels import share_kernels
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.place.plan_devices import plan_devices
from bytewright.plan.request import DEFAULT_NODE_BUDGET
from bytewright.plan.solution import Solution
from bytewright.plan.solve import solve
from bytewright.storage.account_stack import stack_uses
from bytewright.storage.apply_solution import apply_solution
from bytewright.storage.attach_candidates import attach_candidates
from bytewright.storage.build_problem import build_parameter_problem, build_workspace_problem
from bytewright.storage.check_addresses import check_addresses
from bytewright.storage.check_scopes import check_scopes
from bytewright.storage.clock import read_clock
from bytewright.storage.make_arenas import make_arenas
from bytewright.storage.pin_buffers import Pin, pin_buffers
from bytewright.storage.place_io import place_io
from bytewright.storage.place_scratch import place_scratch
from bytewright.storage.refuse import require_fit
from bytewright.storage.trial import Conditions, Trial
from bytewright.target.model import Role, Target

Progress = Callable[[str], None]
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
    numerics: Numerics = Numerics.LITERT_REF,
    io: Io = Io.CALLER,
    pins: tuple[Pin, ...] = (),
    batch_max: int | None = None,
    solver: str = "auto",
    embedding: Embedding = Embedding.AUTO,
    progress: Progress | None = None,
) -> Compiled:
    """Compiles a model file for a target; nothing is written.

    Args:
        model: A .tflite file.
        target: What to compile for.
        name: A C identifier; the file's stem if None.
        numerics: The kernel set that the output must equal bit for bit.
        io: Whether the application brings inputs and outputs to each run, or they lie in the workspace.
        pins: Buffers that belong in a pool by name.
        batch_max: Samples that one run computes at most; None for a run of one sample, without a batch.
        solver: Of the planner, by name.
        embedding: How the bytes of parameter pools come into the program.
        progress: Told the name of each stage as it begins.

    Raises:
        CompileError: The model is wrong or does not fit.
    """
    progress = progress or _silent
    progress("frontends")  # bytes of the file -> graph
    module = import_tflite(model, name=name, numerics=numerics)
    verify(module, Stage.IMPORTED, target, pass_name="import_tflite")
    if batch_max is not None:
        module = open_batch(module, batch_max)
        verify(module, Stage.IMPORTED, target, pass_name="open_batch")
    progress("place")  # every value gets a virtual device
    module = _checked(plan_devices(module, target), Stage.PLACED, target, module, "plan_devices")
    progress("lower")  # operators are fused into kernels
    module = _checked(fold_pad(module), Stage.PLACED, target, module, "fold_pad")
    module = _checked(lower_graph(module, target), Stage.LOWERED, target, module, "lower_graph")
    module = _checked(share_kernels(module), Stage.LOWERED, target, module, "share_kernels")
    return compile_lowered(
        module,
        target,
        numerics=numerics,
        io=io,
        pins=pins,
        solver=solver,
        embedding=embedding,
        progress=progress,
    )


def compile_lowered(
    module: Module,
    target: Target,
    *,
    numerics: Numerics = Numerics.LITERT_REF,
    io: Io = Io.CALLER,
    pins: tuple[Pin, ...] = (),
    solver: str = "auto",
    embedding: Embedding = Embedding.AUTO,
    progress: Progress | None = None,
) -> Compiled:
    """The part of `compile_model` behind lowering, for a module of kernels and an entry from wherever.

    Raises:
        CompileError: It does not fit.
    """
    progress = progress or _silent
    planned = plan_lowered(
        module,
        target,
        numerics=numerics,
        io=io,
        pins=pins,
        solver=solver,
        embedding=embedding,
        progress=progress,
    )
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
    numerics: Numerics = Numerics.LITERT_REF,
    io: Io = Io.CALLER,
    pins: tuple[Pin, ...] = (),
    solver: str = "auto",
    embedding: Embedding = Embedding.AUTO,
    progress: Progress | None = None,
) -> PlannedModel:
    """Stores and plans a lowered module; see `compile_lowered`."""
    check_indices(module)
    attempt = partial(store, module, solver=solver, progress=progress)  # `storage` and `plan`
    quick_attempt = partial(attempt, node_budget=REMEDY_NODES)
    trial = require_fit(module, Conditions(target, pins, io), attempt, quick_attempt)
    module, workspace, parameters = trial.module, trial.workspace, trial.parameters
    placed = apply_solution(module, workspace, parameters)
    module = _checked(placed, Stage.PLANNED, target, module, "apply_solution")
    return PlannedModel(
        module,
        target,
        numerics.value,
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
) -> Trial:
    """Decides every allocation of a lowered module, and plans what goes to pools; whether it fits is in the trial.

    Raises:
        CompileError: The conditions contradict each other or the module.
    """
    target, progress = conditions.target, progress or _silent
    progress("storage")  # stack or pool, for each allocation
    check_scopes(module, target)
    check_addresses(module, target)
    if conditions.io is Io.WORKSPACE:
        module = _checked(place_io(module), Stage.LOWERED, target, module, "place_io")
    module = _checked(place_scratch(module, target), Stage.LOWERED, target, module, "place_scratch")
    pinned = pin_buffers(module, target, conditions.pins)
    module = _checked(pinned, Stage.LOWERED, target, module, "pin_buffers")
    module = _checked(attach_candidates(module, target), Stage.STORED, target, module, "attach_candidates")
    module = _checked(make_arenas(module, target), Stage.STORED, target, module, "make_arenas")
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


def _checked(module: Module, stage: Stage, target: Target, previous: Module, pass_name: str) -> Module:
    verify(module, stage, target, previous, pass_name)
    return module


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
    )
