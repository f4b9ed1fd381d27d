"""What configurations of one group need: read and lowered once, planned for each.

Whatever carries this out, a thread or a process on another machine, the results are the same. A process keeps what it
lowered last, and what came of passes, for the next configurations of the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from bytewright.compiler.pipeline import Lowered, Planned, compile_planned, plan_lowered, read_and_lower
from bytewright.compiler.remedy.mend_options import require_hardware
from bytewright.compiler.run_passes import Known, Runner
from bytewright.diagnostics import CompileError
from bytewright.options import Options
from bytewright.plan.solve import find_solver
from bytewright.sweeps.grid import Configuration
from bytewright.target.model import Role, Target
from bytewright.target.options import Overrides
from bytewright.target.variants import without_limits

Result = Mapping[str, Any]


@dataclass(slots=True)
class _Group:
    """What is shared by configurations that differ in sizes alone."""

    key: object
    lowered: Lowered | CompileError
    known: Known = field(default_factory=Known)


_lock = Lock()
_last: _Group | None = None


def group_key(configuration: Configuration) -> object:
    """What is equal for configurations of one group; of one whose target is refused, its own key."""
    try:
        target = require_hardware(configuration.target, configuration.options.overrides)
    except CompileError:
        return configuration.key
    return _shared(configuration, target)


def _shared(configuration: Configuration, target: Target) -> object:
    options = replace(configuration.options, overrides=Overrides())
    return (str(configuration.model), without_limits(target), options)


def evaluate(configurations: Sequence[Configuration], measure: bool = False) -> list[Result]:
    """The results of configurations, in their order; a refusal is a result."""
    with _lock:  # of threads, each of which would else throw away what the other one lowered
        return [_evaluate(each, measure) for each in configurations]


def _evaluate(configuration: Configuration, measure: bool) -> Result:
    head = {
        "key": configuration.key,
        "model": configuration.model.name,
        "target": configuration.target.name,
        "options": list(configuration.chosen),
    }
    try:
        return {**head, "fits": True, **_figures(configuration, measure)}
    except CompileError as error:
        refusals = [{"code": each.code, "message": each.message} for each in error.diagnostics]
        return {**head, "fits": False, "refusals": refusals}


def _figures(configuration: Configuration, measure: bool) -> Result:
    options = configuration.options
    find_solver(options.solver)
    target = require_hardware(configuration.target, options.overrides)
    group = _group_of(configuration, target, options)
    if isinstance(group.lowered, CompileError):
        raise CompileError(group.lowered.diagnostics)
    run = Runner(target, known=group.known)
    planned = plan_lowered(group.lowered, target, options, run)
    plan = planned.plan
    return {
        "ram_bytes": plan.ram_bytes,
        "workspace_bytes": plan.workspace_bytes,
        "parameter_bytes": sum(pool.used_bytes for pool in plan.pools_of(Role.PARAMETERS)),
        "stack_bytes": sum(stack.size_bytes for stack in plan.stack.values()),
        "pools": {pool.name: pool.used_bytes for pool in plan.pools.values()},
        "optimal": all(pool.optimal for pool in plan.pools.values()),
        **({"instructions": _instructions(planned, options, run)} if measure else {}),
    }


def _group_of(configuration: Configuration, target: Target, options: Options) -> _Group:
    global _last  # one for each process: the groups of a sweep come one after the other
    key = _shared(configuration, target)
    if _last is None or _last.key != key:
        bare = without_limits(target)
        try:
            lowered = read_and_lower(configuration.model, bare, options, Runner(bare))
        except CompileError as error:
            lowered = error
        _last = _Group(key, lowered)
    return _last


def _instructions(planned: Planned, options: Options, run: Runner) -> int | None:
    """Executed instructions of one inference on the target's board in QEMU."""
    from bytewright.bundle.write import write_bundle
    from bytewright.execute.run import run_bundle
    from bytewright.execute.tools import build_folder

    with build_folder() as folder:
        write_bundle(compile_planned(planned, options, run).files, folder / "bundle")
        return run_bundle(folder / "bundle", on="qemu").instructions
