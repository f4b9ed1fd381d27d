"""Checks modules between passes: what is legal at each stage is the table below, the rest holds always.

Every rule that a later stage relies on is checked here and nowhere else. A violation is a bug of the pass that ran
last, so it is an `InternalError`, whose text is the function's IR with remarks under the guilty lines.
"""

from enum import Enum

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.depth import MAX_DEPTH, depth_of
from bytewright.ir.analyses.homes import missing_copies
from bytewright.ir.definitions import scopes_of_constants
from bytewright.ir.remember import Remembered, remembered
from bytewright.ir.text.graphs import print_function
from bytewright.ir.text.primfuncs import print_primfunc
from bytewright.ir.verify.verify_change import check_changes
from bytewright.ir.verify.verify_graph import check_functions
from bytewright.ir.verify.verify_instructions import check_instructions
from bytewright.ir.verify.verify_module import check_module
from bytewright.ir.verify.verify_prim import check_primfunc
from bytewright.ir.verify.verify_rings import check_rings
from bytewright.ir.verify.verify_state import check_state
from bytewright.ir.verify.violation import Context, ModuleIndex, StageRules, Violation, word_for
from bytewright.ir.walk import allocations, calls, named_buffers, statements_of
from bytewright.target.model import Target


class Stage(Enum):
    """What has been done to a module."""

    IMPORTED = "imported"
    PLACED = "placed"
    OPEN = "open"
    LOWERED = "lowered"
    STORED = "stored"
    PLANNED = "planned"


_UNDECIDED = (None, ir.GLOBAL, ir.WORKSPACE)

RULES: dict[Stage, StageRules] = {
    Stage.IMPORTED: StageRules(graph=True),
    Stage.PLACED: StageRules(graph=True, devices=True),
    Stage.OPEN: StageRules(entries=True, unknown_tags=True, open_scopes=True),
    Stage.LOWERED: StageRules(entries=True, unknown_tags=True),
    Stage.STORED: StageRules(entries=True, undecided=_UNDECIDED),
    Stage.PLANNED: StageRules(entries=True, undecided=_UNDECIDED, offsets=True, lowered_tags=True),
}


def verify(
    module: ir.Module,
    stage: Stage,
    target: Target | None = None,
    previous: ir.Module | None = None,
    pass_name: str | None = None,
) -> None:
    """Checks a module.

    Args:
        module: What a pass returned.
        stage: What the module is supposed to be.
        target: Where given, devices, pools and tags must exist in it.
        previous: What the pass was given; where given, scopes may only have shrunk and devices stayed.
        pass_name: The pass, for the message.

    Raises:
        InternalError: A rule is broken; all violations are in the text.
    """
    violations = find_violations(module, stage, target, previous, pass_name)
    if violations:
        raise InternalError(_message(module, stage, pass_name, violations))


def find_violations(
    module: ir.Module,
    stage: Stage,
    target: Target | None = None,
    previous: ir.Module | None = None,
    pass_name: str | None = None,
) -> tuple[Violation, ...]:
    """Every rule that the module breaks; see `verify`."""
    primfuncs = (*module.kernels, *module.entries)
    too_deep = tuple(_too_deep(f) for f in primfuncs if depth_of(f) > MAX_DEPTH)
    if too_deep:
        return too_deep  # nothing else may look at it
    rules = RULES[stage]
    context = Context(module, ModuleIndex.of(module), target, rules)
    if not rules.graph:
        for function in module.functions:
            context.report(function, function, f"a graph function is not legal at stage {stage.name}")
    if not rules.entries:
        for entry in module.entries:
            context.report(entry, entry, f"an entry is not legal at stage {stage.name}")
        for constant in module.constant_buffers:
            context.report(None, constant, f"constant buffer '{constant.buffer.name}' at stage {stage.name}")
    if not check_rings(context):
        return tuple(context.violations)  # buffers have sizes from here on
    check_module(context)
    check_instructions(context)
    check_functions(context)
    check_state(context)
    if rules.devices and target is not None and module.functions and not context.violations:
        for function, node, text in missing_copies(module, target):
            context.report(function, node, text)
    for primfunc in primfuncs:
        surroundings, num_before = _surroundings(context, primfunc), len(context.violations)
        if _CLEAN.get(primfunc) != surroundings:
            check_primfunc(context, primfunc)
            if len(context.violations) == num_before:
                _CLEAN.put(primfunc, surroundings)
    if previous is not None:
        check_changes(context, previous, pass_name or "the last pass")
    return tuple(context.violations)


# In what surroundings a function was last found to keep to the rules.
_CLEAN: Remembered[tuple[object, ...]] = Remembered()


@remembered
def _names_in(function: ir.PrimFunc) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The callees and the buffers that a function's body names."""
    calls = (s.callee for s in statements_of(function) if isinstance(s, ir.Call))
    names = (buffer.name for buffer in named_buffers(function.body))
    return tuple(dict.fromkeys(calls)), tuple(dict.fromkeys(names))


@remembered
def _concerns_a_stage(function: ir.PrimFunc) -> bool:
    """Whether what is legal at a stage has to do with a function: it calls others, or a place is open, or named."""
    own, given = allocations(function), [parameter.scope for parameter in function.buffer_parameters]
    scopes = [scope for scope in (*given, *(allocation.scope for allocation in own)) if scope is not None]
    if any(scope.tag not in (None, ir.WORKSPACE_TAG, ir.STACK_TAG) for scope in scopes):
        return True
    return bool(calls(function)) or not all(map(_is_settled, own))


def _is_settled(allocation: ir.Allocate) -> bool:
    """Whether it is the function's own, in registers or on the stack, and nobody decides anything of it any more."""
    is_on_stack = ir.is_on_stack(allocation.scope) and ir.has_constant_size(allocation.buffer)
    storage = allocation.storage
    is_open = storage.candidates is not None or storage.offset is not None or storage.arena is not None
    return (ir.is_local(allocation.scope) or is_on_stack) and not is_open


def _surroundings(context: Context, function: ir.PrimFunc) -> tuple[object, ...]:
    """All that the verdict on a function depends on, besides itself."""
    index = context.index
    callees, buffers = _names_in(function)
    position = index.positions.get(function.name, len(index.positions))
    return (
        context.rules if _concerns_a_stage(function) else None,
        context.target,
        word_for(context.module, function),
        tuple(entry.device for entry in context.module.entries),
        *((c.buffer, c.scope) for c in map(index.constants.get, buffers) if c is not None),
        *(
            (index.known[name].function, name in index.entries, index.positions.get(name, -1) < position)
            for name in callees
            if name in index.known
        ),
    )


def _too_deep(function: ir.PrimFunc) -> Violation:
    text = (
        f"'{function.name}' nests {depth_of(function)} levels of blocks and operations, more than {MAX_DEPTH}"
    )
    return Violation(None, function, text)


def _message(
    module: ir.Module, stage: Stage, pass_name: str | None, violations: tuple[Violation, ...]
) -> str:
    after = "" if pass_name is None else f"after pass '{pass_name}': "
    count = f"{len(violations)} violation{'s' if len(violations) > 1 else ''}"
    parts = [f"{after}module '{module.name}' is not what stage {stage.name} admits ({count})"]
    parts.extend(f"^ {violation.text}" for violation in violations if violation.function is None)
    for function in (*module.functions, *module.kernels, *module.entries):
        notes: dict[int, list[str]] = {}
        for violation in violations:
            if violation.function is function:
                notes.setdefault(id(violation.node), []).append(violation.text)
        if not notes:
            continue
        if isinstance(function, ir.Function):
            parts.append(print_function(function, notes))
        else:
            parts.append(
                print_primfunc(function, word_for(module, function), notes, scopes_of_constants(module))
            )
    return "\n".join(parts)
