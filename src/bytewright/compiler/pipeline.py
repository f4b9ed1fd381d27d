"""From a model to a bundle: the stages in order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from bytewright import ir
from bytewright.base.input_file import read_input
from bytewright.bundle.write import bundle_files
from bytewright.codegen.generate import generate_c
from bytewright.codegen.includes import uses_math
from bytewright.compiler.remedy.mend_options import require_hardware
from bytewright.compiler.remedy.refuse import fit, require_fit
from bytewright.compiler.remedy.smaller_states import with_smaller_states
from bytewright.compiler.run_passes import AfterPass, Known, Progress, Runner
from bytewright.compiler.self_test import self_test_files
from bytewright.compiler.store import REMEDY_NODES, above_steps, store_smallest
from bytewright.compiler.trial import Conditions, Trial
from bytewright.diagnostics import CompileError, compile_error
from bytewright.frontends.registry import OtherSizes, import_model
from bytewright.graph.bound.find_bound import find_bound, place_bound, refuse_bindings
from bytewright.graph.bound.function import BoundValues
from bytewright.graph.inline_calls import inline_calls
from bytewright.graph.open.open_axis import open_axis
from bytewright.graph.open_batch import open_batch
from bytewright.graph.stream.stream import stream
from bytewright.graph.tie_states import tie_states
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.analyses.stack import stack_uses
from bytewright.ir.rewrite import folded, with_body
from bytewright.ir.verify.admit import admit, admit_to_codegen
from bytewright.ir.verify.check_indices import check_indices
from bytewright.lower.calling_forms import require_forms
from bytewright.lower.fold_constant_channels import fold_constant_channels
from bytewright.lower.fold_pad import fold_pad
from bytewright.lower.join_entries import join_entries
from bytewright.lower.lower_graph import lower_graph
from bytewright.lower.pack_calls import pack_calls
from bytewright.lower.share_kernels import share_kernels
from bytewright.naming.name_symbols import name_symbols, taken_names
from bytewright.options import NOTHING_ASKED, Options
from bytewright.options.names_of_file import named_as_in_graphs
from bytewright.place.plan_devices import plan_devices
from bytewright.plan.solve import find_solver
from bytewright.record.base_pointers import require_ports
from bytewright.record.build_plan import build_plan
from bytewright.record.names import names_of
from bytewright.record.parameter_bytes import parameter_bytes
from bytewright.record.plan import Plan
from bytewright.record.plan_file import document_of
from bytewright.scopes.check_scopes import undeclared_tags
from bytewright.scopes.fetch_constants import fetch_constants, lacks_constants
from bytewright.scopes.lower_tags import lower_tags
from bytewright.scopes.place_scopes import place_scopes
from bytewright.storage.apply_solution import apply_solution
from bytewright.storage.choose_ways import choose_ways
from bytewright.storage.drop_unused_buffers import drop_unused_buffers
from bytewright.storage.external_stacks import with_external_stacks
from bytewright.storage.keep_initial import keep_initial
from bytewright.storage.own_names import own_names
from bytewright.storage.pass_constants import pass_constants
from bytewright.storage.update_in_place import update_in_place
from bytewright.storage.with_state_pools import with_state_pools
from bytewright.target.capacity import with_remainders
from bytewright.target.model import Role, Target
from bytewright.target.variants import without_limits


@dataclass(frozen=True, slots=True)
class Planned:
    """A model with a place for every byte.

    Attributes:
        module: At stage PLANNED.
        plan: Its plan; there are no files yet.
        contents: The bytes of the parameter pools, by name.
        trial: What storage and planner found.
    """

    module: ir.Module
    plan: Plan
    contents: Mapping[str, bytes]
    trial: Trial


@dataclass(frozen=True, slots=True)
class Lowered:
    """A model before any byte of it has a place.

    Attributes:
        sources: What was lowered: a graph for each entry, or the program that a text is.
        module: Lowered.
        bound: Operators that functions of the application compute.
        model_files: What it was read from, by name.
        is_program: Whether its steps are what somebody wrote.
    """

    sources: tuple[ir.Module, ...]
    module: ir.Module
    bound: BoundValues
    model_files: Mapping[str, bytes]
    is_program: bool


@dataclass(frozen=True, slots=True)
class Compiled:
    """What compiling gives.

    Attributes:
        module: Planned.
        plan: What plan.json holds.
        files: Path in the bundle -> content.
    """

    module: ir.Module
    plan: Plan
    files: dict[str, bytes]

    @property
    def document(self) -> dict[str, Any]:
        """plan.json."""
        return document_of(self.plan)


def compile_model(
    model: Path | ir.Module,
    target: Target,
    options: Options = NOTHING_ASKED,
    *,
    progress: Progress | None = None,
    after_pass: AfterPass | None = None,
) -> Compiled:
    """Compiles a model for a target; nothing is written.

    Args:
        model: A .tflite file; a .bw file, which is IR text; or a program of kernels and an entry from wherever.
        target: What to compile for, before the options.
        options: What the user asked for; those of a file do not concern a program.
        progress: Told the name of each stage as it begins.
        after_pass: Given the name of each pass as it ends, and the module that it returned.

    Raises:
        CompileError: The model or an option is wrong, or it does not fit.
    """
    run = Runner(target, progress, after_pass)
    planned = plan_model(model, target, options, run)  # from a model to a place for every byte: below
    return compile_planned(planned, options, run)


def compile_planned(planned: Planned, options: Options, run: Runner) -> Compiled:
    """The stages of `compile_model` from the plan on, with the same options and what carried out those before."""
    run.begin("codegen")  # C text
    admit_to_codegen(planned.module, planned.plan.hardware)
    names = names_of(planned.plan)
    c_files = generate_c(planned.module, planned.plan, names, planned.contents, options.embedding)
    run.begin("bundle")  # what the user takes away
    needs_math = uses_math(planned.module)
    if options.self_test is not None:
        c_files |= self_test_files(
            planned.plan, names, c_files, planned.contents, options.self_test, needs_math=needs_math
        )
    plan, files = bundle_files(c_files, planned.plan, needs_math, options.package)
    return Compiled(planned.module, plan, files)


def plan_model(
    model: Path | ir.Module, target: Target, options: Options = NOTHING_ASKED, run: Runner | None = None
) -> Planned:
    """The stages of `compile_model` up to the plan; `run` carries them out."""
    find_solver(options.solver)  # before the model is read
    target = require_hardware(target, options.overrides)
    run = replace(run or Runner(target), target=target)

    def lowered_as(asked: Options) -> Lowered:
        return read_and_lower(model, target, asked, Runner(target))

    try:
        lowered = read_and_lower(model, target, options, run)
    except CompileError as error:  # states may have no room before there is anything else to place

        def attempt(asked: Options) -> Planned:
            return plan_lowered(lowered_as(asked), target, asked, Runner(target))

        raise with_smaller_states(error, target, options, attempt) from error
    return plan_lowered(lowered, target, options, run, lowered_as)


def read_and_lower(model: Path | ir.Module, target: Target, options: Options, run: Runner) -> Lowered:
    """The stages of `plan_model` that no size of a pool or a stack changes; the target is as the options make it."""
    run.begin("frontends")  # bytes of a file -> graph, or the program that a text is
    others: tuple[OtherSizes, ...] = ()
    if isinstance(model, Path):
        imported = import_model(model, target, options)
        model_files = {file.name: read_input(file) for file in imported.files}
        modules = tuple(run.verified(imported.pass_name, each, imported.stage) for each in imported.modules)
        others, options = imported.others, imported.options or options
        options = named_as_in_graphs(options, modules)
    else:
        admit(model, target)
        modules, model_files = (_folded(model),), dict[str, bytes]()
    is_program = bool(modules[0].entries)
    bound: BoundValues = {}
    modules = tuple(
        _opened(module, each, target, options, run)
        for module, each in zip(modules, others or (OtherSizes(),) * len(modules), strict=True)
    )
    if len(modules) == 1:  # what changes a graph is of one
        module, bound = _as_asked(modules[0], target, options, run)
        modules = (module,)
        if bound and options.kernel_file is not None:
            model_files[options.kernel_file.name] = read_input(options.kernel_file)
    if not is_program:
        run.begin("place")  # every value gets a virtual device
    lowered = lower_model(modules, target, options, bound, run)
    return Lowered(modules, lowered, bound, model_files, is_program)


def _opened(
    module: ir.Module, others: OtherSizes, target: Target, options: Options, run: Runner
) -> ir.Module:
    """The graph, or program, with the states that options name, and with open extents, or on a stream."""
    if options.open and options.stream:
        message = "a stream is given so many rows in each run, and an open extent is given with each run"
        raise compile_error("BW121", message, help="leave out --stream or --open", where=module.name)
    module = _tied(module, options, run)
    if options.stream:
        module = run(stream, _at_their_places(module), options.stream)
    if options.open or others.counted:
        quiet = Runner(target)
        samples = tuple(
            (extents, _at_their_places(_tied(each, options, quiet))) for extents, each in others.samples
        )
        module = run(open_axis, _at_their_places(module), options.open, samples, others.counted)
    return module


def _as_asked(
    module: ir.Module, target: Target, options: Options, run: Runner
) -> tuple[ir.Module, BoundValues]:
    """The one graph, or program, as options change it, and operators that functions of the application compute."""
    if module.entries:
        refuse_bindings(options.kernels)
        return module, {}
    if options.batch_max is not None:
        # Each function at its place, since one may be given samples and another time a constant.
        module = run(open_batch, inline_calls(module), options.batch_max)
    bound = find_bound(module, target, options.kernels, options.kernel_file)
    return run(place_bound, module, bound) if bound else module, bound


def _tied(module: ir.Module, options: Options, run: Runner) -> ir.Module:
    """The graph with the states that options name."""
    return run(tie_states, module, options.state) if options.state else module


def _at_their_places(module: ir.Module) -> ir.Module:
    """A graph in which each function is run at one place, once; a program as it is, for a pass to refuse."""
    return module if module.entries else inline_calls(module)


def plan_lowered(
    model: Lowered,
    target: Target,
    options: Options,
    run: Runner,
    lowered_as: Callable[[Options], Lowered] | None = None,
) -> Planned:
    """The stages of `plan_model` from storage on.

    Args:
        model: Lowered for a target that differs in sizes of pools and stacks alone.
        target: As the options make it.
        options: Those that the model was lowered with, but for such sizes.
        run: Carries the stages out.
        lowered_as: Reads and lowers the model with other options, for a refusal to say with which ones there is a
            plan; None if it need not.

    Raises:
        CompileError: The options contradict each other, or it does not fit.
    """
    options = named_as_in_graphs(options, model.sources)
    lowered, conditions = model.module, conditions_of(model.module, target, options)

    as_asked = _as_lowering_reads(conditions.options)

    @cache
    def lowered_for(asked: tuple[Any, ...], is_wide: bool = False) -> ir.Module:
        """With the options that were asked for of those that lowering reads, or with all channels."""
        if asked == as_asked and not is_wide:
            return lowered
        other = replace(options, **dict(asked))
        if lowered_as is not None and asked[: len(_READ_WITH)] != as_asked[: len(_READ_WITH)]:
            return lowered_as(other).module
        return lower_model(model.sources, target, other, model.bound, Runner(target), is_wide=is_wide)

    # What passes returned is remembered, for the search for a way out; nobody can be shown a pass that does not run.
    in_search = replace(run, after_pass=None, known=run.known or Known())
    run = run if run.after_pass is not None else in_search
    # storage and plan (`store`), as asked for; or else the refusal says with which other options there is a plan
    attempt = partial(store_smallest, lowered, run, is_program=model.is_program)
    if lowered_as is not None:
        quick = partial(_store_quickly, lowered_for, in_search, lowered, target, is_program=model.is_program)
        wide = partial(quick, is_wide=True) if lowered.narrowed is not None else None
        trial = require_fit(lowered, conditions, attempt, quick, wide, is_program=model.is_program)
    else:
        trial = fit(lowered, conditions, attempt)
    return _planned(trial, model.model_files, run)


# Options that a search for a way out may change: those that the model is read with, and those that it is lowered with.
_READ_WITH = ("batch_max", "stream", "optimize")
_LOWERED_WITH = ("kernel_code",)


def _as_lowering_reads(options: Options) -> tuple[tuple[str, Any], ...]:
    """What lowering reads of them, by name; of places of inputs and outputs, whether these are planned."""
    io = ir.Io.WORKSPACE if options.io is ir.Io.WORKSPACE else ir.Io.CALLER
    return (*((name, getattr(options, name)) for name in (*_READ_WITH, *_LOWERED_WITH)), ("io", io))


def _folded(program: ir.Module) -> ir.Module:
    """The program with constants folded, as a text is when it is read: branches that never run are no steps."""
    kernels, entries = (
        tuple(with_body(function, folded(function.body)) for function in functions)
        for functions in (program.kernels, program.entries)
    )
    return replace(program, kernels=kernels, entries=entries)


def _planned(trial: Trial, model_files: Mapping[str, bytes], run: Runner) -> Planned:
    """The model with the plan of a trial that fits."""
    target = trial.conditions.target
    run = replace(run, target=target)
    trial = _with_ways(trial, run)
    module = run(apply_solution, trial.stored.module, trial.workspace, trial.parameters)
    contents = parameter_bytes(module, target, trial.parameters)
    plan = build_plan(
        module,
        target,
        trial.conditions.options,
        trial.stored,
        trial.workspace,
        trial.parameters,
        contents,
        model_files,
        segments=trial.segments,
        plain_workspace_bytes=trial.plain_workspace_bytes,
        parts=trial.parts,
    )
    require_ports(plan)
    return Planned(module, plan, contents, trial)


def lower_model(
    modules: tuple[ir.Module, ...],
    target: Target,
    options: Options,
    bound: BoundValues,
    run: Runner,
    *,
    is_wide: bool = False,
) -> ir.Module:
    """The stages of `read_and_lower` from placement on.

    Args:
        modules: A graph for each entry, or the program that a text is.
        target: As the options change it.
        options: What the user asked for.
        bound: Operators that functions of the application compute.
        run: Carries the stages out.
        is_wide: Whether channels stay that are constant, to see what they take.
    """
    module, *others = modules
    if not module.entries:
        module = _lower_one(module, target, options, bound, run, is_wide=is_wide)
        if others:
            rest = (_lower_one(each, target, options, bound, run, is_wide=is_wide) for each in others)
            module = run(join_entries, module, *rest)
        module = run(share_kernels, module)
    return _made_plain(module, target, options, run)


def _made_plain(module: ir.Module, target: Target, options: Options, run: Runner) -> ir.Module:
    """Every argument, every stack and every name is made plain, for storage to decide about."""
    if len(module.entries) > 1:
        module = run(own_names, module)
    if module.state:
        module = run(keep_initial, module)
    module = run(pass_constants, module)
    if not undeclared_tags(module, target):  # or a buffer could go that storage has to refuse
        module = run(drop_unused_buffers, module)
    # The scopes of kernels and of what they are given meet.
    module = run(place_scopes, module, target, _io(module, options))
    if lacks_constants(module, target):  # of devices that have memory of their own alone
        module = run(fetch_constants, module, target)
    target = _with_pools_of(module, target)
    if any(tag.lowering_pass for tag in target.scope_tags):
        module = run(lower_tags, module, target)
    if options.calling_form is ir.Form.PACKED:
        module = run(pack_calls, module)
    require_forms(module, options)
    module = run(name_symbols, module, options.entry_form)
    check_indices(module)
    return module


def _lower_one(
    module: ir.Module, target: Target, options: Options, bound: BoundValues, run: Runner, *, is_wide: bool
) -> ir.Module:
    """From a graph to an entry and the kernels that it calls."""
    module = run(plan_devices, module, target, options.on, options.io)
    run.begin("lower")  # operators are fused into kernels, which an entry calls
    module = run(inline_calls, module)
    module = run(fold_pad, module, bound)
    if not is_wide:
        module = run(fold_constant_channels, module, target, bound)
    module = run(lower_graph, module, target, bound, options.optimize, options.kernel_code)
    return run(update_in_place, module, target, options.pins) if module.state else module


def conditions_of(module: ir.Module, target: Target, options: Options) -> Conditions:
    """Those under which to store a module that was lowered."""
    return Conditions(_with_pools_of(module, target), replace(options, io=_io(module, options)))


def _io(module: ir.Module, options: Options) -> ir.Io:
    """Where inputs and outputs are: as asked, but for a text that was printed after `place_io`."""
    return ir.Io.WORKSPACE if any(map(ir.allocates_border, module.entries)) else options.io


def _with_pools_of(module: ir.Module, target: Target) -> Target:
    return with_state_pools(module, with_external_stacks(module, target))


def _with_ways(trial: Trial, run: Runner) -> Trial:
    """The trial with each step run the way that its plan needs; offsets and ticks stay as they are."""
    target, options = trial.conditions.target, trial.conditions.options
    stored = trial.stored
    taken = taken_names(stored.module, options.entry_form)
    module = run(choose_ways, stored.module, stored.overlaps, trial.workspace, taken)
    if module is stored.module:
        return trial
    stack = stack_uses(module, target, above_steps(module, target, options.io, options.entry_form))
    stored = replace(stored, module=module, timeline=read_clock(module, target), stack=stack)
    return replace(trial, stored=stored)


def _store_quickly(
    lowered_for: Callable[[tuple[Any, ...], bool], ir.Module],
    run: Runner,
    as_asked: ir.Module,
    own: Target,
    conditions: Conditions,
    *,
    is_program: bool,
    is_wide: bool = False,
) -> Trial:
    """As `store`, for the search for a remedy: nobody is shown the passes, and what no run uses is no obstacle.

    Where the target has no pools of states itself, those of a module that is not `as_asked` are made anew, as large as
    its states are.
    """
    module, target = lowered_for(_as_lowering_reads(conditions.options), is_wide), conditions.target
    if module is not as_asked and target.pools_of(Role.STATE) and not own.pools_of(Role.STATE):
        pools = tuple(pool for pool in target.pools if pool.role is not Role.STATE)
        target = with_remainders(replace(target, pools=pools))
    conditions = replace(conditions, target=_with_pools_of(module, target))
    run = replace(run, target=without_limits(conditions.target))
    module = run(drop_unused_buffers, module)
    return store_smallest(module, run, conditions, is_program=is_program, node_budget=REMEDY_NODES)
