"""Modules by hand whose kernels have scratch of sizes known at run time, and what they compute, by numpy.

Every tensor has `rows` int8 elements, an extent that the run is given. A kernel fills each of its arrays of scratch
from the one before it and then sums over all of them, so that all of their bytes are needed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer, Var, cast
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, BufferParameter, PrimFunc, ScalarParameter
from bytewright.ir.scope import GLOBAL, WORKSPACE, Scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType, Symbol
from support.hand_built import WHERE, module_of

ROWS = Symbol("rows", 1, 8)


@dataclass(frozen=True, slots=True)
class Scratch:
    """An array of scratch of `width` elements a row."""

    width: int = 1
    dtype: DType = DType.I8
    alignment: int = 1
    scope: Scope | None = GLOBAL

    def bytes_of(self, rows: int) -> int:
        """Its size for a number of rows."""
        return rows * self.width * self.dtype.size_bytes


def rows_of(name: str, rows: Symbol = ROWS) -> Buffer:
    """A tensor."""
    return Buffer(name, (rows,), DType.I8, 1)


def value_of(rows: Symbol) -> Var:
    """The parameter that a symbol is the value of."""
    return Var(rows.name, DType.I32)


def open_kernel(
    name: str, scratch: Sequence[Scratch], rows: Symbol = ROWS, *, device: str = "cpu"
) -> PrimFunc:
    """The kernel that `expected` computes too."""
    source, result, num_rows = rows_of("source", rows), rows_of("result", rows), value_of(rows)
    body = BodyBuilder(("source", "result", rows.name))
    arrays = [
        body.allocate(Buffer(f"scratch{index}", (rows, s.width), s.dtype, s.alignment), Storage(s.scope))
        for index, s in enumerate(scratch)
    ]
    for index, array in enumerate(arrays):
        with body.for_("i", 0, num_rows) as i:
            total = body.scalar("total", DType.I32, cast(load(source, i), DType.I32))
            if index:
                body.store(total, (), 0)
                with body.for_("k", 0, scratch[index - 1].width) as k:
                    body.add_to(total, (), cast(load(arrays[index - 1], i, k), DType.I32))
            value = body.let("value", cast(cast(load(total), DType.I8), DType.I32))
            with body.for_("j", 0, scratch[index].width) as j:
                body.store(array, (i, j), cast(value * (j + 1) + index, array.dtype))
    with body.for_("i", 0, num_rows) as i:
        total = body.scalar("total", DType.I32, 0)
        if not arrays:
            body.add_to(total, (), cast(load(source, i), DType.I32))
        for array, shape in zip(arrays, scratch, strict=True):
            with body.for_("j", 0, shape.width) as j:
                body.add_to(total, (), cast(load(array, i, j), DType.I32))
        body.store(result, num_rows - 1 - i, cast(load(total), DType.I8))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
        ScalarParameter(num_rows),
    )
    return PrimFunc(name, parameters, body.finish(), device=device, where=WHERE)


def outer_kernel(
    name: str, callees: Sequence[PrimFunc], between: Scope | None = GLOBAL, rows: Symbol = ROWS
) -> PrimFunc:
    """Calls kernels one after the other, by way of scratch of its own."""
    source, result = rows_of("source", rows), rows_of("result", rows)
    body = BodyBuilder(("source", "result", rows.name))
    before = source
    for index, callee in enumerate(callees):
        is_last = index + 1 == len(callees)
        after = result if is_last else body.allocate(rows_of(f"between{index}", rows), Storage(between))
        body.call(callee.name, region(before), region(after), value_of(rows))
        before = after
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
        ScalarParameter(value_of(rows)),
    )
    return PrimFunc(name, parameters, body.finish(), where=WHERE)


def open_chain(
    name: str,
    called: Sequence[PrimFunc],
    others: Sequence[PrimFunc] = (),
    rows: Symbol = ROWS,
    passed: int | None = None,
) -> Module:
    """An entry that calls kernels in order; `others` are those that kernels call.

    Calls pass the extent on, or `passed` for it; their scratch then has a constant size.
    """
    first, last = rows_of("x", rows), rows_of("y", rows)
    body = BodyBuilder(("x", "y", rows.name))
    before = first
    for index, kernel in enumerate(called):
        is_last = index + 1 == len(called)
        after = last if is_last else body.allocate(rows_of(f"t{index}/out", rows), Storage(WORKSPACE))
        operators = (f"{index} (OPEN)",)
        extent = value_of(rows) if passed is None else passed
        body.call(kernel.name, region(before), region(after), extent, operators=operators)
        before = after
    scalars = [value_of(rows)]
    return module_of(name, [*others, *called], body.finish(), first, last, scalars=scalars)


def expected(values: np.ndarray, kernels: Sequence[Sequence[Scratch]]) -> np.ndarray:
    """What kernels with this scratch give one after another."""
    for scratch in kernels:
        total = np.zeros(values.shape, np.int32)
        value = values.astype(np.int8).astype(np.int32)
        for index, shape in enumerate(scratch):
            factors = np.arange(1, shape.width + 1, dtype=np.int32)
            array = (value[:, np.newaxis] * factors + index).astype(shape.dtype.numpy).astype(np.int32)
            total += array.sum(axis=1, dtype=np.int32)
            value = array.sum(axis=1, dtype=np.int32).astype(np.int8).astype(np.int32)
        values = (total if scratch else values).astype(np.int8)[::-1]
    return values
