"""Why a model does not fit: by how many bytes, at which step, because of which buffers, and what would help.

Everything that is missing is said at once. The help is the same under each, because it mends all of it: options that
were tried with success (`find_remedy.py`), the least first, or that there are none, and which memory would have to be
larger. Where constants alone have more bytes than the target, nothing is tried, and nothing else is asked.
"""

import shlex
from collections.abc import Iterable
from dataclasses import replace

from bytewright import ir
from bytewright.compiler.remedy.at_peak import Words
from bytewright.compiler.remedy.constants import bytes_together, constants_of, where_constants_fit
from bytewright.compiler.remedy.find_remedy import Room, devices_at_work, find_remedies, find_room
from bytewright.compiler.remedy.saved import Savings, problem_of
from bytewright.compiler.remedy.single_changes import SingleChanges
from bytewright.compiler.shortfall import Shortfall, largest_shortfall
from bytewright.compiler.trial import Attempt, Conditions, Trial
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.analyses.stack import stack_refusals
from bytewright.ir.symbols import scalar_symbols
from bytewright.options import parse_pin_option
from bytewright.plan.problem import Buffer, Problem
from bytewright.plan.solution import Shortage, Status
from bytewright.plan.solve import solve
from bytewright.target.model import Role, Target
from bytewright.target.size import format_size

# What other options than those given may mend: pins, pools that scopes name, and everything that does not fit.
_MENDABLE = ("BW204", "BW209", "BW301", "BW302")
_PLAN_IO = "--io workspace"  # of a pin to a pool for inputs and outputs


def fit(module: ir.Module, conditions: Conditions, attempt: Attempt) -> Trial:
    """The module stored under the conditions; a refusal looks for no way out.

    Raises:
        CompileError: It does not fit, or the conditions contradict each other.
    """
    _require_room_for_constants(module, conditions.target)
    trial = attempt(conditions)
    if not trial.fits:
        raise CompileError(refusals(trial))
    return trial


def require_fit(
    module: ir.Module,
    conditions: Conditions,
    attempt: Attempt,
    quick_attempt: Attempt,
    attempt_wide: Attempt | None,
    *,
    is_program: bool = False,
) -> Trial:
    """The module stored under the conditions.

    Args:
        module: What is stored.
        conditions: What the user asked for.
        attempt: Stores it.
        quick_attempt: The same with a smaller budget, for the many attempts that look for a remedy: what it can
            plan, the other one can.
        attempt_wide: Stores it with the channels that were taken away; None if none were.
        is_program: Whether its kernels are what somebody wrote.

    Raises:
        CompileError: It does not fit, or the conditions contradict each other, with options that would work.
    """
    _require_room_for_constants(module, conditions.target)
    trial = None
    try:
        trial = attempt(conditions)
    except CompileError as error:
        if any(diagnostic.code not in _MENDABLE for diagnostic in error.diagnostics):
            raise
        diagnostics, otherwise = error.diagnostics, _NO_PLACE
    else:
        if trial.fits:
            return trial
        savings = Savings(quick_attempt, attempt_wide)
        diagnostics, otherwise = refusals(trial, savings), _NO_PLACE
    meant = _meant(conditions, diagnostics, quick_attempt)
    if meant is not None:
        raise CompileError(replace(diagnostic, help=meant) for diagnostic in diagnostics)
    where_it_may_fit = where_constants_fit(module, conditions.options, quick_attempt)
    single = SingleChanges(module, trial, is_program)
    remedies = find_remedies(module, conditions, where_it_may_fit, single)
    is_said = all(diagnostic.help not in (None, _PLAN_IO) for diagnostic in diagnostics)
    if is_said and (not remedies or remedies[0].without):
        raise CompileError(diagnostics)  # what was meant is better than nothing, where each error can say it
    changes = tuple(remedy.change(conditions.target) for remedy in remedies)
    if not changes and trial is not None:
        otherwise = _no_room(conditions.target, module, find_room(module, conditions, where_it_may_fit))
    text = changes[0].text if changes else otherwise
    raise CompileError(replace(diagnostic, help=text, changes=changes) for diagnostic in diagnostics)


def _require_room_for_constants(module: ir.Module, target: Target) -> None:
    """Refuses a module whose constants have more bytes than all memories together, before it is stored."""
    pools, room_bytes = target.parameter_pools, bytes_together(target.memories)
    constants = constants_of(module, target)
    needed_bytes = sum(constant.size_bytes for constant in constants)
    if not pools or room_bytes is None or needed_bytes <= room_bytes:
        return
    capacity_bytes = sum(target.capacity_bytes(pool) or 0 for pool in pools)
    words = Words(module, None, Role.PARAMETERS)
    names = tuple(constant.name for constant in constants)
    whole = Shortfall(tuple(pool.name for pool in pools), capacity_bytes, needed_bytes, 0, names)
    memories = ", ".join(memory.name for memory in target.memories)
    advice = (
        f"no option helps: all memories ({memories}) have {room_bytes} B together; {_smaller_model(module)}"
    )
    notes = tuple(words.at_peak(whole, constants))
    raise CompileError(Diagnostic("BW301", _headline(whole, words), notes, advice))


def _meant(conditions: Conditions, diagnostics: tuple[Diagnostic, ...], attempt: Attempt) -> str | None:
    """The options that the refusals themselves advise, where all of them do and the compile succeeds with them.

    These are pins, and that inputs and outputs be planned. They keep to what was meant; a search for any options that
    work does not.
    """
    options = conditions.options
    advised: list[str] = []
    for diagnostic in diagnostics:
        if diagnostic.help == _PLAN_IO:
            advised.append(_PLAN_IO)
            options = replace(options, io=ir.Io.WORKSPACE)
            continue
        words = shlex.split(diagnostic.help or "") if (diagnostic.help or "").startswith("--pin ") else []
        wrong = [pin for pin in options.pins if diagnostic.message.startswith(f"--pin '{pin}' ")]
        if len(words) != 2 or not wrong:
            return None
        advised.append(diagnostic.help or "")
        kept = (pin for pin in options.pins if pin != wrong[0])
        options = replace(options, pins=(*kept, parse_pin_option(words[1])))
    try:
        trial = attempt(replace(conditions, options=options))
    except CompileError:
        return None
    return " ".join(dict.fromkeys(advised)) if advised and trial.fits else None


_NO_PLACE = "no option helps: the program asks for a place that the target does not have"


def _no_room(target: Target, module: ir.Module, rooms: Iterable[Room]) -> str:
    devices = devices_at_work(module, target)
    who = " or ".join(f"device '{device.name}'" for device in devices)
    memories = ", ".join(dict.fromkeys(name for device in devices for name in device.reached_memories))
    would_do = "".join(f"it fits with {room.text(target)}; " for room in rooms)
    return (
        f"no option helps: all that {who} reaches ({memories}) was tried; {would_do}{_smaller_model(module)}"
    )


def _smaller_model(module: ir.Module) -> str:
    batch = "batch or " if any(map(scalar_symbols, module.entries)) else ""
    return f"take a smaller {batch}model, or a target with more memory"


def refusals(trial: Trial, savings: Savings | None = None) -> tuple[Diagnostic, ...]:
    """What is missing: a diagnostic for each stack and for each role of pools.

    Args:
        trial: What does not fit.
        savings: Measures what is saved already; None where nobody waits for that.
    """
    stored = trial.stored
    found = stack_refusals(stored.stack, stored.module, trial.conditions.target)
    found.extend(_without_plan(trial, role, savings) for role in trial.failing_roles)
    return tuple(found)


def _without_plan(trial: Trial, role: Role, savings: Savings | None) -> Diagnostic:
    """Why the pools of a role have no plan: what they need at least; or else the few buffers that prove it."""
    problem, words = problem_of(trial, role), Words(trial.stored.module, trial.stored.timeline, role)
    whole = largest_shortfall(problem)
    if whole is None:
        return _conflict(problem, trial.conditions.options.solver, words)
    notes = [*words.at_peak(whole, problem.buffers), *words.larger_than_pools(problem)]
    notes += [] if savings is None else savings.notes(trial, role, whole)
    return Diagnostic("BW301", _headline(whole, words), tuple(notes))


def _conflict(problem: Problem, solver: str, words: Words) -> Diagnostic:
    """Which buffers cannot be placed together, though at no tick they have more bytes than the pools."""
    solution = solve(problem, solver)
    if solution.status is not Status.INFEASIBLE:
        return replace(solution.diagnose(), help=None)
    conflict = [buffer for buffer in problem.buffers if buffer.name in set(solution.infeasible_set)]
    notes = [_pool_note(shortage, words, conflict) for shortage in solution.shortages]
    if len(conflict) == 1:
        return Diagnostic("BW301", f"{words.described(conflict[0])} cannot be placed", tuple(notes))
    total_bytes = sum(buffer.size_bytes for buffer in conflict)
    notes.extend(words.largest(conflict))
    if solution.irreducible:
        notes.append("without any one of them the others can be placed")
    message = f"{len(conflict)} buffers, {total_bytes} B, cannot be placed together"
    return Diagnostic("BW301", message, tuple(notes))


def _headline(whole: Shortfall, words: Words) -> str:
    """Need, capacity and difference of the whole pool, or of several."""
    names = ", ".join(f"'{name}'" for name in whole.pools)
    has = f"pool {names} has {whole.capacity_bytes} B"
    if len(whole.pools) > 1:
        has = f"pools {names} have {whole.capacity_bytes} B together"
    when = words.when(whole.tick)
    return f"{has}, at least {whole.needed_bytes} B are needed{when}: {whole.missing_bytes} B too few"


def _pool_note(shortage: Shortage, words: Words, conflict: list[Buffer]) -> str:
    """What the pool has and would need; one buffer alone needs it in the first step that it lives in."""
    tick = conflict[0].first_tick if shortage.tick is None and len(conflict) == 1 else shortage.tick
    missing = shortage.needed_bytes - shortage.capacity_bytes
    needed = f"{format_size(shortage.capacity_bytes)}, {shortage.needed_bytes} B needed{words.when(tick)}"
    text = f"{shortage.pool}  {needed}"
    return f"{text}: {missing} B too few" if missing > 0 else text
