"""Stack or workspace, for each allocation inside a kernel.

`local` stays private to the kernel. `global` becomes a local array where the device's limits admit it, so that the
C compiler may keep it in registers; otherwise, like anything that asks for a workspace, it becomes a parameter of
the kernel and an allocation of the entry at each call, which the planner then places among the tensors. Arrays that
only `global` put on the stack move away again, largest first, while the worst call path exceeds the stack's limit.
The scopes say afterwards what was decided, the provenance why.
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
from bytewright.storage.account_stack import StackUse, stack_use
from bytewright.target.model import Device, Target

SCRATCH_ALIGNMENT = 16


def place_scratch(module: Module, target: Target) -> Module:
    """Decides every allocation of every kernel.

    Raises:
        CompileError: BW302 for what asks for the stack by name and cannot be there.
    """
    moved: frozenset[tuple[str, str]] = frozenset()
    while True:
        placed = _place(module, target, moved)
        stack = stack_use(placed, target)
        movable = _movable(module, placed, stack) if stack.excess_bytes > 0 else []
        if not movable:
            return placed
        moved |= {max(movable)[1:]}


def _place(module: Module, target: Target, moved: frozenset[tuple[str, str]]) -> Module:
    hoisted = {kernel.name: _hoist(kernel, target.device(kernel.device), moved) for kernel in module.kernels}
    kernels = tuple(hoisted[kernel.name].kernel for kernel in module.kernels)
    for kernel in kernels:
        inner = [s for s in walk_statements(kernel.body) if isinstance(s, Call) and s.callee in hoisted]
        if any(hoisted[call.callee].scratch for call in inner):
            raise InternalError(f"kernel '{kernel.name}' calls a kernel that needs scratch from the entry")
    entries = tuple(_pass_scratch(entry, hoisted) for entry in module.entries)
    return replace(module, kernels=kernels, entries=entries)


def _movable(module: Module, placed: Module, stack: StackUse) -> list[tuple[int, str, str]]:
    """Arrays on the worst path that no scope asked to have there: (bytes, kernel, name)."""
    found: list[tuple[int, str, str]] = []
    for name in stack.path:
        before, after = module.kernel(name), placed.kernel(name)
        if before is None or after is None:
            continue
        now = {s.buffer.name: s.buffer for s in walk_statements(after.body) if isinstance(s, Allocate)}
        for statement in walk_statements(before.body):
            if isinstance(statement, Allocate) and statement.buffer.scope in (None, GLOBAL):
                buffer = statement.buffer
                if buffer.name in now and now[buffer.name].scope == STACK:
                    found.append((size_bytes(buffer), name, buffer.name))
    return found


@dataclass(frozen=True, slots=True)
class _Hoisted:
    """A kernel whose workspace scratch became parameters."""

    kernel: PrimFunc
    scratch: tuple[Allocate, ...]


def _hoist(kernel: PrimFunc, device: Device, moved: frozenset[tuple[str, str]]) -> _Hoisted:
    scratch: list[Allocate] = []
    decided: dict[Buffer, tuple[Scope, str]] = {}
    for statement in walk_statements(kernel.body):
        if isinstance(statement, Allocate):
            buffer = statement.buffer
            decided[buffer] = _decide(buffer, device, kernel, (kernel.name, buffer.name) in moved)
            scope, reason = decided[buffer]
            if not _is_on_stack(scope):
                renamed = replace(statement, buffer=replace(buffer, scope=scope))
                scratch.append(renamed.because(f"place_scratch: {reason}"))

    def rename(buffer: Buffer) -> Buffer:
        return replace(buffer, scope=decided[buffer][0]) if buffer in decided else buffer

    names = {allocation.buffer.name for allocation in scratch}
    reasons = {buffer.name: reason for buffer, (_, reason) in decided.items()}

    def drop(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Allocate):
            return (statement,)
        if statement.buffer.name in names:
            return ()
        reason = reasons[statement.buffer.name]
        return (statement.because(f"place_scratch: {reason}") if statement.buffer.shape else statement,)

    body = rewrite_sequence(kernel.body, Rewriting(buffer=rename, statement=drop))
    parameters = tuple(
        BufferParameter(allocation.buffer, Access.READ_WRITE, Role.SCRATCH) for allocation in scratch
    )
    placed = replace(kernel, parameters=(*kernel.parameters, *parameters), body=body)
    return _Hoisted(placed, tuple(scratch))


def _is_on_stack(scope: Scope) -> bool:
    return scope == STACK or scope.rank is Rank.LOCAL


def _decide(buffer: Buffer, device: Device, kernel: PrimFunc, is_moved: bool) -> tuple[Scope, str]:
    """The scope that says where the buffer goes, and why."""
    scope = buffer.scope or GLOBAL
    if scope.rank is Rank.LOCAL:
        _check_local(buffer, device, kernel)
        return scope, "private to the kernel"
    if scope == STACK:
        _check_stack(buffer, device, kernel)
        return scope, "asks for the stack by name"
    if scope != GLOBAL:
        return scope, f"asks for {scope}"
    if not has_constant_size(buffer):
        return WORKSPACE, "its size is known only at run time"
    if is_moved:
        return WORKSPACE, f"the stack of device '{device.name}' has no room for it"
    if device.use_backend_alloc_workspace:
        return WORKSPACE, "use-backend-alloc-workspace keeps scratch off the stack"
    if device.admits_stack_allocation(size_bytes(buffer)):
        return STACK, f"scratch of {size_bytes(buffer)} B, within max-stack-alloca-size"
    return WORKSPACE, f"scratch of {size_bytes(buffer)} B, over max-stack-alloca-size"


def _check_local(buffer: Buffer, device: Device, kernel: PrimFunc) -> None:
    if has_constant_size(buffer) and size_bytes(buffer) <= device.max_local_size_bytes:
        return
    raise _refused(
        kernel,
        f"'{buffer.name}' of kernel '{kernel.name}' is private ('local') and takes {size_bytes(buffer)} B; "
        f"device '{device.name}' admits {device.max_local_size_bytes} B of constant size",
        f"set max-local-size = {size_bytes(buffer)} for device '{device.name}' in the target file",
    )


def _check_stack(buffer: Buffer, device: Device, kernel: PrimFunc) -> None:
    if not has_constant_size(buffer):
        raise _refused(
            kernel,
            f"'{buffer.name}' of kernel '{kernel.name}' asks for global.stack, but its size is known only at "
            "run time",
            "use the scope global or global.workspace for it",
        )
    if device.use_backend_alloc_workspace:
        raise _refused(
            kernel,
            f"'{buffer.name}' of kernel '{kernel.name}' asks for global.stack, and device '{device.name}' has "
            "use-backend-alloc-workspace, which keeps every allocation off the stack",
            "leave out one of the two",
        )


def _refused(kernel: PrimFunc, message: str, help_text: str) -> CompileError:
    return CompileError(Diagnostic("BW302", message, help=help_text, where=str(kernel.where)))


def _pass_scratch(entry: PrimFunc, hoisted: dict[str, _Hoisted]) -> PrimFunc:
    """Allocates each call's scratch right before the call and passes it."""
    taken = {parameter.buffer.name for parameter in entry.buffer_parameters}
    taken |= {s.buffer.name for s in walk_statements(entry.body) if isinstance(s, Allocate)}

    def own_of(allocation: Allocate, stem: str) -> Allocate:
        alignment = max(SCRATCH_ALIGNMENT, allocation.buffer.alignment)
        name = _unique_name(f"{stem}/{allocation.buffer.name}", taken)
        taken.add(name)
        return replace(allocation, buffer=replace(allocation.buffer, name=name, alignment=alignment))

    def expand(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Call) or not (scratch := _scratch_of(statement, hoisted)):
            return (statement,)
        stem = _call_stem(statement)
        own = tuple(own_of(allocation, stem) for allocation in scratch)
        arguments = (*statement.arguments, *(Region(allocation.buffer) for allocation in own))
        return (Seq((*own, replace(statement, arguments=arguments))),)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(statement=expand)))


def _scratch_of(call: Call, hoisted: dict[str, _Hoisted]) -> tuple[Allocate, ...]:
    return hoisted[call.callee].scratch if call.callee in hoisted else ()


def _call_stem(call: Call) -> str:
    """A name for one call: that of the operator whose tensor it writes."""
    regions = [argument for argument in call.arguments if isinstance(argument, Region)]
    return regions[-1].buffer.name.partition("/")[0]


def _unique_name(name: str, taken: set[str]) -> str:
    chosen, number = name, 1
    while chosen in taken:
        chosen, number = f"{name}_{number}", number + 1
    return chosen
