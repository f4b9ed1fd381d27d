"""Runs the passes that lower a target's tags: each comes from a plug-in, under the name that the target gives it.

A tag of a target may name the pass that lowers it (`lowered-by`), and every other pass leaves buffers with such a scope
alone. The pass is found among the entry points of the group `bytewright.passes`, which any installed distribution may
have. It runs first of the stage, only if the module has the tag, and what it returns is verified as if it were one of
Bytewright's own; but what is wrong with it is the plug-in's fault, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bytewright import ir
from bytewright.diagnostics import CompileError, compile_error
from bytewright.ir.definitions import Definition, redefined, redefined_constants
from bytewright.ir.verify.stages import Stage, find_violations
from bytewright.ir.walk import allocations
from bytewright.scopes.check_scopes import placed_definitions, undeclared_tags
from bytewright.target.model import Target

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "bytewright.passes"
_MOST_NOTES = 10


def lower_tags(module: ir.Module, target: Target) -> ir.Module:
    """Returns the module without the tags that passes lower; itself if it has none.

    Raises:
        CompileError: BW503 if a pass is missing; BW504 if it fails, or returns what does not verify.
    """
    for name in dict.fromkeys(tag.lowering_pass for tag in target.scope_tags if tag.lowering_pass):
        tagged = tuple(_tagged(module, target, name))
        if tagged:
            module = _run(name, module, target, tagged)
    return module


def _tagged(module: ir.Module, target: Target, name: str) -> Iterator[str]:
    """The buffers that a pass has to lower, each with its function."""
    for place, definition in placed_definitions(module):
        if ir.lowering_pass(definition.scope, target) == name:
            yield f"'{definition.buffer.name}' {place} has the scope {definition.scope}"


def _run(name: str, module: ir.Module, target: Target, tagged: tuple[str, ...]) -> ir.Module:
    point = _find(name, target, tagged)
    what = f"pass '{name}' of {_owner(point)}"
    try:
        lower: Any = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever importing a plug-in may raise, the end of the program too
        raise _failed(f"{what} cannot be loaded", (f"{type(error).__name__}: {error}",)) from error
    if not callable(lower):
        raise _failed(f"{what} is no function", (f"'{point.value}' is a {type(lower).__name__}",))
    try:
        lowered: object = lower(module, target)
    except CompileError:
        raise  # what the plug-in has against the program
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _failed(f"{what} failed", (f"{type(error).__name__}: {error}",)) from error
    if not isinstance(lowered, ir.Module):
        raise _failed(f"{what} returned no module", (f"it returned a {type(lowered).__name__}",))
    faults = _faults(lowered, module, target, name)
    if faults:
        shown = faults[:_MOST_NOTES]
        more = (f"and {len(faults) - len(shown)} more",) if len(faults) > len(shown) else ()
        raise _failed(f"{what} returned a module that does not verify", (*shown, *more))
    return lowered


def _find(name: str, target: Target, tagged: tuple[str, ...]) -> EntryPoint:
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, _owner(point)))
    fitting = [point for point in found if point.name == name]
    owners = list(dict.fromkeys(map(_owner, fitting)))
    if len(owners) == 1:
        return fitting[0]
    if owners:
        raise compile_error(
            "BW503",
            f"{len(owners)} plug-ins have a pass '{name}': {', '.join(owners)}",
            help="uninstall all of them but one",
        )
    known = ", ".join(dict.fromkeys(point.name for point in found)) or "none"
    raise compile_error(
        "BW503",
        f"no plug-in has the pass '{name}', which lowers a tag of target '{target.name}'",
        (*tagged[:_MOST_NOTES], f"passes of plug-ins that are installed: {known}"),
        f"install the package that brings it, in the entry point group '{GROUP}'",
    )


def _owner(point: EntryPoint) -> str:
    """The distribution that a pass comes from, with its version."""
    return "an unknown plug-in" if point.dist is None else f"'{point.dist.name} {point.dist.version}'"


def _failed(message: str, notes: tuple[str, ...]) -> CompileError:
    lines = tuple(line for note in notes for line in note.splitlines())
    return compile_error("BW504", message, lines, "report it to the authors of the plug-in")


def _faults(lowered: ir.Module, module: ir.Module, target: Target, name: str) -> list[str]:
    """What is wrong with the module that a pass returned."""
    try:
        left = [f"{text}, which this pass lowers" for text in _tagged(lowered, target, name)]
        border = ("name", "inputs", "outputs", "numerics")
        changed = [f"it changed the module's {what}" for what in border if _differs(lowered, module, what)]
        unknown = undeclared_tags(module, target)
        changed += [
            f"the target has neither a pool nor a tag for its scope 'global.{tag}' of {', '.join(buffers)}"
            for tag, buffers in undeclared_tags(lowered, target).items()
            if tag not in unknown
        ]
        before = _without_tags(module, target, name)
        known = {violation.text for violation in find_violations(module, Stage.LOWERED, target)}
        violations = find_violations(lowered, Stage.LOWERED, target, before, name)
    except Exception as error:  # nodes that are none, which no check expects
        return [f"it cannot be read: {type(error).__name__}: {error}"]
    named = (
        violation.text if violation.function is None else f"in '{violation.function.name}': {violation.text}"
        for violation in violations
        if violation.text not in known
    )
    return list(dict.fromkeys((*left, *changed, *named)))


def _differs(first: ir.Module, second: ir.Module, what: str) -> bool:
    return getattr(first, what) != getattr(second, what)


def _without_tags(module: ir.Module, target: Target, name: str) -> ir.Module:
    """The module as it was, but a pass may give any global scope to what has its tag: it knows what that means."""

    def widen(scope: ir.Scope | None) -> ir.Scope | None:
        return ir.GLOBAL if ir.lowering_pass(scope, target) == name else scope

    def widened(definitions: Iterable[Definition]) -> dict[str, ir.Storage]:
        return {d.buffer.name: replace(d.storage, scope=widen(d.scope)) for d in definitions}

    def function(primfunc: ir.PrimFunc) -> ir.PrimFunc:
        parameters = tuple(
            replace(p, scope=widen(p.scope)) if isinstance(p, ir.BufferParameter) else p
            for p in primfunc.parameters
        )
        return redefined(replace(primfunc, parameters=parameters), widened(allocations(primfunc)))

    return replace(
        module,
        kernels=tuple(map(function, module.kernels)),
        entries=tuple(map(function, module.entries)),
        constant_buffers=redefined_constants(module, widened(module.constant_buffers)),
    )
