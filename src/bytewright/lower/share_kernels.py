"""Layers whose kernels are the same function share one: nothing in it differs but what the caller passes.

Sizes, zero points and clamps are constants of a kernel, so this costs no speed.
"""

from __future__ import annotations

from dataclasses import replace

from bytewright.ir.module import Module
from bytewright.ir.prim import Call, Parameter, PrimFunc, Seq, Statement
from bytewright.ir.rewrite import Rewriting, rewrite_sequence


def share_kernels(module: Module) -> Module:
    """Returns the module with each distinct kernel once, under the name of its first user."""
    first_by_body: dict[tuple[str, tuple[Parameter, ...], Seq], PrimFunc] = {}
    renamed: dict[str, str] = {}
    for kernel in module.kernels:
        key = (kernel.device, kernel.parameters, kernel.body)
        renamed[kernel.name] = first_by_body.setdefault(key, kernel).name
    entries = tuple(_redirect(entry, renamed) for entry in module.entries)
    return replace(module, kernels=tuple(first_by_body.values()), entries=entries)


def _redirect(entry: PrimFunc, renamed: dict[str, str]) -> PrimFunc:
    def rename(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Call):
            return (replace(statement, callee=renamed.get(statement.callee, statement.callee)),)
        return (statement,)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(statement=rename)))
