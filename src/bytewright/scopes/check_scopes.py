"""Scopes name what the target has: a tag after the rank is a pool or a tag that the target declares.

First of storage, because the other passes take a tag for the place that it names. Modules that come from a model's
file name no pools; kernels that were written by hand may.
"""

from collections.abc import Iterator

from bytewright import ir
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.definitions import Definition
from bytewright.ir.walk import definitions
from bytewright.target.mistake import closest, listing
from bytewright.target.model import Role, Target


def check_scopes(module: ir.Module, target: Target) -> None:
    """Refuses tags that mean nothing on the target.

    Raises:
        CompileError: BW209 for each such tag, with the buffers that carry it and the tags that exist.
    """
    unknown = undeclared_tags(module, target)
    if not unknown:
        return
    pools = [pool.name for role in (Role.WORKSPACE, Role.PARAMETERS) for pool in target.pools_of(role)]
    known = [ir.WORKSPACE_TAG, ir.STACK_TAG, *pools, *(tag.name for tag in target.scope_tags)]
    raise CompileError(
        Diagnostic(
            "BW209",
            f"scope 'global.{tag}' names neither a pool nor a tag of target '{target.name}'",
            (f"it is the scope of {', '.join(buffers)}", listing("tags", known)),
            closest(tag, known),
        )
        for tag, buffers in unknown.items()
    )


def undeclared_tags(module: ir.Module, target: Target) -> dict[str, tuple[str, ...]]:
    """Tags of rank global that the target does not know -> the buffers that carry them, each with its function."""
    found: dict[str, tuple[str, ...]] = {}
    for place, definition in placed_definitions(module):
        tag = None if definition.scope is None else definition.scope.pool
        if tag is not None and target.find_pool(tag) is None and target.scope_tag(tag) is None:
            names = (*found.get(tag, ()), f"'{definition.buffer.name}' {place}")
            found[tag] = tuple(dict.fromkeys(names))
    return found


def placed_definitions(module: ir.Module) -> Iterator[tuple[str, ir.BufferParameter | Definition]]:
    """Where the module's buffers are defined, and in words where that is."""
    for function in (*module.kernels, *module.entries):
        place = "of the entry" if function in module.entries else f"of kernel '{function.name}'"
        yield from ((place, definition) for definition in definitions(function))
    yield from (("among the constants", constant) for constant in module.constant_buffers)
