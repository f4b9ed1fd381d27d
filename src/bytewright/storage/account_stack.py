"""The planned stack: explicit arrays along the worst call path, entry to leaf.

Only arrays count. Scalars and saved registers are the compiler's, and the target states an allowance for them per
call level; `<MODEL>_STACK_SIZE` is the sum of both.
"""

from __future__ import annotations

from dataclasses import dataclass

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.address import size_bytes
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate, Call, For, If, PrimFunc, Seq, Statement
from bytewright.ir.scope import STACK, Rank
from bytewright.target.model import Target


@dataclass(frozen=True, slots=True)
class StackUse:
    """The stack of one execution context.

    Attributes:
        planned_bytes: Explicit arrays on the worst path.
        size_bytes: That, plus the target's allowance for each call level.
        limit_bytes: What the target admits, its reserve subtracted; None for no limit.
        path: Functions on the worst path, the entry first.
    """

    context: str
    planned_bytes: int
    size_bytes: int
    limit_bytes: int | None
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Worst:
    planned_bytes: int
    total_bytes: int
    path: tuple[str, ...]


def account_stack(module: Module, target: Target) -> StackUse:
    """Adds up the stack along every path from the entry.

    Raises:
        CompileError: BW302, naming the path, if it exceeds the target's limit.
    """
    device = target.default_device
    allowance = device.stack_allowance_per_call_bytes
    functions = {function.name: function for function in (*module.kernels, *module.entries)}
    worst: dict[str, _Worst] = {}
    # Kernels stand callees first, so each function finds its callees finished; no recursion can be expressed.
    for function in (*module.kernels, module.main):
        worst[function.name] = _worst_of(function, worst, functions, allowance)
    result = worst[module.main.name]
    limit = device.available_stack_bytes
    if limit is not None and result.total_bytes > limit:
        raise CompileError(
            Diagnostic(
                "BW302",
                f"the stack of device '{device.name}' needs {result.total_bytes} B; "
                f"its limit is {limit} B: {result.total_bytes - limit} B too few",
                notes=(f"worst path: {' -> '.join(result.path)}, {result.planned_bytes} B of arrays",),
                help=f"--max-stack-size {result.total_bytes + device.stack_reserve_bytes}",
            )
        )
    context = device.contexts[0].name if device.contexts else device.name
    return StackUse(context, result.planned_bytes, result.total_bytes, limit, result.path)


def _worst_of(
    function: PrimFunc, worst: dict[str, _Worst], functions: dict[str, PrimFunc], allowance: int
) -> _Worst:
    own = _array_bytes(function.body)
    callees = [worst[name] for name in _callees(function.body) if name in functions and name in worst]
    deepest = max(callees, key=lambda callee: callee.total_bytes, default=_Worst(0, 0, ()))
    return _Worst(
        own + deepest.planned_bytes,
        own + allowance + deepest.total_bytes,
        (function.name, *deepest.path),
    )


def _array_bytes(statement: Statement) -> int:
    """Bytes of arrays that exist at once: those of a sequence together, those of separate blocks in turn."""
    match statement:
        case Seq():
            own = sum(_array_bytes(s) for s in statement.statements if isinstance(s, Allocate))
            nested = (_array_bytes(s) for s in statement.statements if not isinstance(s, Allocate))
            return own + max(nested, default=0)
        case Allocate():
            scope = statement.buffer.scope
            on_stack = scope is not None and (scope == STACK or scope.rank is Rank.LOCAL)
            return size_bytes(statement.buffer) if on_stack and statement.buffer.shape else 0
        case For():
            return _array_bytes(statement.body)
        case If():
            other = _array_bytes(statement.otherwise) if statement.otherwise else 0
            return max(_array_bytes(statement.then), other)
        case _:
            return 0


def _callees(statement: Statement) -> list[str]:
    match statement:
        case Seq():
            return [name for s in statement.statements for name in _callees(s)]
        case For():
            return _callees(statement.body)
        case If():
            rest = _callees(statement.otherwise) if statement.otherwise else []
            return _callees(statement.then) + rest
        case Call():
            return [statement.callee]
        case _:
            return []
