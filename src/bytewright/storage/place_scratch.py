"""Stack or workspace, for each allocation inside a kernel.

`local` stays private to the kernel. `global` becomes a local array where the device's limits admit it, so that the
C compiler may keep it in registers; otherwise, like anything that asks for a workspace, it becomes a parameter of
the kernel and an allocation of the entry at each call, which the planner then places among the tensors. The scopes
say afterwards what was decided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bytewright.diagnostics import CompileError, Diagnostic, InternalError
from bytewright.ir.address import has_constant_size, size_bytes
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    PrimFunc,
    Region,
    Role,
    Seq,
    Statement,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import GLOBAL, STACK, WORKSPACE, Rank, Scope
from bytewright.ir.walk import walk_statements
from bytewright.target.model import Device, Target

SCRATCH_ALIGNMENT = 16


def place_scratch(module: Module, target: Target) -> Module:
    """Decides every allocation of every kernel.

    Raises:
        CompileError: BW302 for private storage that is larger than the device admits.
    """
    hoisted = {kernel.name: _hoist(kernel, target.device(kernel.device)) for kernel in module.kernels}
    kernels = tuple(hoisted[kernel.name].kernel for kernel in module.kernels)
    for kernel in kernels:
        inner = [s for s in walk_statements(kernel.body) if isinstance(s, Call) and s.callee in hoisted]
        if any(hoisted[call.callee].scratch for call in inner):
            raise InternalError(f"kernel '{kernel.name}' calls a kernel that needs scratch from the entry")
    entries = tuple(_pass_scratch(entry, hoisted) for entry in module.entries)
    return replace(module, kernels=kernels, entries=entries)


@dataclass(frozen=True, slots=True)
class _Hoisted:
    """A kernel whose workspace scratch became parameters."""

    kernel: PrimFunc
    scratch: tuple[Buffer, ...]


def _hoist(kernel: PrimFunc, device: Device) -> _Hoisted:
    scratch: list[Buffer] = []
    renamed: dict[Buffer, Buffer] = {}
    removed: set[str] = set()
    for statement in walk_statements(kernel.body):
        if not isinstance(statement, Allocate):
            continue
        buffer = statement.buffer
        scope = _decided(buffer, device, kernel)
        if scope == STACK or scope.rank is Rank.LOCAL:
            renamed[buffer] = replace(buffer, scope=scope)
        else:
            scratch.append(replace(buffer, scope=scope))
            renamed[buffer] = scratch[-1]
            removed.add(buffer.name)

    def drop(statement: Statement) -> tuple[Statement, ...]:
        is_hoisted = isinstance(statement, Allocate) and statement.buffer.name in removed
        return () if is_hoisted else (statement,)

    rewriting = Rewriting(buffer=lambda buffer: renamed.get(buffer, buffer), statement=drop)
    parameters = tuple(BufferParameter(buffer, Access.READ_WRITE, Role.SCRATCH) for buffer in scratch)
    body = rewrite_sequence(kernel.body, rewriting)
    placed = replace(kernel, parameters=(*kernel.parameters, *parameters), body=body)
    return _Hoisted(placed, tuple(scratch))


def _decided(buffer: Buffer, device: Device, kernel: PrimFunc) -> Scope:
    """The scope that says where the buffer goes: private, the stack, or some workspace."""
    scope = buffer.scope or GLOBAL
    if scope.rank is Rank.LOCAL:
        _check_local(buffer, device, kernel)
        return scope
    if scope != GLOBAL:
        return scope
    fits = has_constant_size(buffer) and device.admits_stack_allocation(size_bytes(buffer))
    return STACK if fits else WORKSPACE


def _check_local(buffer: Buffer, device: Device, kernel: PrimFunc) -> None:
    if size_bytes(buffer) > device.max_local_size_bytes:
        raise CompileError(
            Diagnostic(
                "BW302",
                f"'{buffer.name}' of kernel '{kernel.name}' is private ('local') and takes {size_bytes(buffer)} B; "
                f"device '{device.name}' admits {device.max_local_size_bytes} B",
                help=f"set max-local-size = {size_bytes(buffer)} for device '{device.name}' in the target file",
                where=str(kernel.where),
            )
        )


def _pass_scratch(entry: PrimFunc, hoisted: dict[str, _Hoisted]) -> PrimFunc:
    """Allocates each call's scratch right before the call and passes it."""

    def expand(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Call) or not (scratch := _scratch_of(statement, hoisted)):
            return (statement,)
        stem = _call_stem(statement)
        own = tuple(
            replace(buffer, name=f"{stem}/{buffer.name}", alignment=SCRATCH_ALIGNMENT) for buffer in scratch
        )
        arguments = (*statement.arguments, *(Region(buffer) for buffer in own))
        return (Seq((*(Allocate(buffer) for buffer in own), replace(statement, arguments=arguments))),)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(statement=expand)))


def _scratch_of(call: Call, hoisted: dict[str, _Hoisted]) -> tuple[Buffer, ...]:
    return hoisted[call.callee].scratch if call.callee in hoisted else ()


def _call_stem(call: Call) -> str:
    """A name for one call: that of the tensor it writes, which is unique in the entry."""
    regions = [argument for argument in call.arguments if isinstance(argument, Region)]
    return regions[-1].buffer.name.partition("/")[0]
