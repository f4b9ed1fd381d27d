"""The user's pins: `PATTERN=POOL` narrows the scope of every buffer whose name matches to that pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from bytewright.diagnostics import Collector, CompileError, Diagnostic
from bytewright.ir.expr import Buffer
from bytewright.ir.module import ConstantBuffer, Module
from bytewright.ir.prim import (
    CANDIDATE_POOLS,
    Allocate,
    AnnotationValue,
    PrimFunc,
    Statement,
    with_reason,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import Scope, join_scopes, pool_scope
from bytewright.ir.walk import walk_statements
from bytewright.target.model import Role, Target
from bytewright.target.options import OptionSyntaxError
from bytewright.target.problem import closest_names

_ROLES = (Role.WORKSPACE, Role.PARAMETERS)


@dataclass(frozen=True, slots=True)
class Pin:
    """One pin: buffers whose name matches the shell pattern belong in the pool."""

    pattern: str
    pool: str

    def __str__(self) -> str:
        return f"{self.pattern}={self.pool}"


def parse_pin_option(text: str) -> Pin:
    """Reads `PATTERN=POOL`.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    pattern, separator, pool = text.rpartition("=")
    if not separator or not pattern or not pool:
        raise OptionSyntaxError(f"'{text}' is not PATTERN=POOL")
    return Pin(pattern, pool)


def pin_buffers(module: Module, target: Target, pins: tuple[Pin, ...]) -> Module:
    """Narrows scopes of the entry's allocations and of constants.

    Raises:
        CompileError: BW204 for a pool that does not exist or has another role, a pattern that matches nothing,
            or two pins that contradict each other; all at once.
    """
    if not pins:
        return module
    allocated = [s for s in walk_statements(module.main.body) if isinstance(s, Allocate)]
    allocations = [allocation.buffer for allocation in allocated]
    constants = [constant.buffer for constant in module.constant_buffers]
    listed: dict[str, AnnotationValue | None] = {
        **{a.buffer.name: a.annotation(CANDIDATE_POOLS) for a in allocated},
        **{constant.buffer.name: constant.candidates for constant in module.constant_buffers},
    }
    collector = Collector()
    scopes: dict[str, Scope | None] = {b.name: b.scope for b in (*allocations, *constants)}
    reasons: dict[str, list[str]] = {}
    for pin in pins:
        with collector.catch():
            role = _role(pin, target)
            buffers = allocations if role is Role.WORKSPACE else constants
            matching = [buffer.name for buffer in buffers if fnmatchcase(buffer.name, pin.pattern)]
            if not matching:
                what, place = f"matches no {_noun(role)}; {_some_names(buffers)}", f"--pin '{pin}'"
                raise _refused(pin, what, _other_pattern(pin, buffers), place)
            for name in matching:
                earlier = reasons.setdefault(name, [])
                scopes[name] = _joined(pin, name, scopes[name], earlier)
                _check_candidates(pin, name, listed[name])
                earlier.append(f"--pin '{pin}'")
    collector.stop_if_any()
    return replace(
        module,
        entries=tuple(_pin_entry(entry, scopes, reasons) for entry in module.entries),
        constant_buffers=tuple(_pin_constant(c, scopes, reasons) for c in module.constant_buffers),
    )


def _role(pin: Pin, target: Target) -> Role:
    pool = target.find_pool(pin.pool)
    if pool is None or pool.role not in _ROLES:
        names = ", ".join(p.name for role in _ROLES for p in target.pools_of(role))
        raise _refused(pin, f"names the pool '{pin.pool}', which does not exist; the pools are {names}")
    return pool.role


def _noun(role: Role) -> str:
    return "tensor or scratch of the workspace" if role is Role.WORKSPACE else "constant"


def _other_pattern(pin: Pin, buffers: list[Buffer]) -> str | None:
    meant = closest_names(pin.pattern, [buffer.name for buffer in buffers])
    return f"--pin '{replace(pin, pattern=meant[0])}'" if meant else None


def _some_names(buffers: list[Buffer]) -> str:
    shown = ", ".join(buffer.name for buffer in buffers[:8])
    return f"names are {shown}{', ...' if len(buffers) > 8 else ''}"


def _joined(pin: Pin, name: str, scope: Scope | None, earlier: list[str]) -> Scope | None:
    try:
        return join_scopes(scope, pool_scope(pin.pool))
    except ValueError:
        other = earlier[-1] if earlier else "the program"
        what = f"contradicts {other}: '{name}' has the scope {scope} already"
        raise _refused(pin, what) from None


def _check_candidates(pin: Pin, name: str, pools: AnnotationValue | None) -> None:
    if isinstance(pools, tuple) and pin.pool not in pools:
        one = pools[0] if len(pools) == 1 else f"one of {', '.join(pools)}"
        raise _refused(
            pin,
            f"contradicts the program: the {CANDIDATE_POOLS} of '{name}' are {', '.join(pools)}",
            f"pin it to {one}, or change {CANDIDATE_POOLS} in the program",
        )


def _refused(pin: Pin, what: str, help_text: str | None = None, where: str | None = None) -> CompileError:
    return CompileError(Diagnostic("BW204", f"--pin '{pin}' {what}", help=help_text, where=where))


def _pin_entry(entry: PrimFunc, scopes: dict[str, Scope | None], reasons: dict[str, list[str]]) -> PrimFunc:
    parameters = {parameter.buffer.name for parameter in entry.buffer_parameters}

    def narrow(buffer: Buffer) -> Buffer:
        if buffer.name in parameters or buffer.name not in scopes:
            return buffer
        return replace(buffer, scope=scopes[buffer.name])

    def explain(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Allocate):
            for reason in reasons.get(statement.buffer.name, []):
                statement = statement.because(f"pin_buffers: {reason}")
        return (statement,)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(buffer=narrow, statement=explain)))


def _pin_constant(
    constant: ConstantBuffer, scopes: dict[str, Scope | None], reasons: dict[str, list[str]]
) -> ConstantBuffer:
    annotations = constant.annotations
    for reason in reasons.get(constant.buffer.name, []):
        annotations = with_reason(annotations, f"pin_buffers: {reason}")
    buffer = replace(constant.buffer, scope=scopes[constant.buffer.name])
    return replace(constant, buffer=buffer, annotations=annotations)
