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

    @property
    def excess_bytes(self) -> int:
        """Bytes over the limit; 0 if it is kept."""
        return 0 if self.limit_bytes is None else max(0, self.size_bytes - self.limit_bytes)


@dataclass(frozen=True, slots=True)
class _Worst:
    planned_bytes: int
    total_bytes: int
    path: tuple[str, ...]


def account_stack(module: Module, target: Target) -> StackUse:
    """The stack along the worst path, which keeps the target's limit.

    Raises:
        CompileError: BW302, naming the path with its sums, if it does not.
    """
    use = stack_use(module, target)
    if use.excess_bytes == 0:
        return use
    device = target.default_device
    functions = {function.name: function for function in (*module.kernels, module.main)}
    allowance = device.stack_allowance_per_call_bytes
    steps = [f"{name} {_array_bytes(functions[name].body)} B + {allowance} B" for name in use.path]
    raise CompileError(
        Diagnostic(
            "BW302",
            f"the stack of device '{device.name}' needs {use.size_bytes} B; "
            f"its limit is {use.limit_bytes} B: {use.excess_bytes} B too few",
            notes=(f"worst path, arrays + allowance: {' -> '.join(steps)}",),
            help=f"--max-stack-size {use.size_bytes + device.stack_reserve_bytes}",
        )
    )


def stack_use(module: Module, target: Target) -> StackUse:
    """Adds up the stack along every path from the entry, whatever the limit."""
    device = target.default_device
    worst: dict[str, _Worst] = {}
    # Kernels stand callees first, so each function finds its callees finished; no recursion can be expressed.
    for function in (*module.kernels, module.main):
        worst[function.name] = _worst_of(function, worst, device.stack_allowance_per_call_bytes)
    result = worst[module.main.name]
    context = device.contexts[0].name if device.contexts else device.name
    return StackUse(
        context, result.planned_bytes, result.total_bytes, device.available_stack_bytes, result.path
    )


def _worst_of(function: PrimFunc, worst: dict[str, _Worst], allowance: int) -> _Worst:
    own = _array_bytes(function.body)
    callees = [worst[name] for name in _callees(function.body) if name in worst]
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
