"""Python functions in the place of functions that the application brings, for the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bytewright.diagnostics import InternalError
from bytewright.ir.evaluate.runtime import recast
from bytewright.ir.prim import Access, Allocate, BufferParameter, ParameterRole, PrimFunc
from bytewright.ir.types import DType, Symbol

StandIn = Callable[..., object]


def stand_in_body(function: PrimFunc, stand_in: StandIn | None) -> Callable[..., None]:
    """What the evaluator calls: memory, marks and numbers become arrays and numbers.

    Scratch that is not passed yet, because storage is undecided, is given here.
    """

    def body(*values: Any) -> None:
        if stand_in is None:
            raise InternalError(f"'{function.name}' is the application's and has no stand-in")
        given = iter(values)
        arguments: list[object] = []
        for parameter in function.parameters:
            if isinstance(parameter, BufferParameter):
                arguments.append(_array(parameter, next(given), next(given), next(given)))
            else:
                arguments.append(next(given))
        arguments.extend(
            _fresh(statement) for statement in function.body.statements if isinstance(statement, Allocate)
        )
        status = stand_in(*arguments)
        if status not in (None, 0):
            raise InternalError(f"'{function.name}' returned {status}")

    return body


def _array(parameter: BufferParameter, data: Any, shadow: Any, mark: int) -> np.ndarray[Any, Any]:
    """The memory as an array; what may be written counts as written."""
    array = np.frombuffer(recast(data, "B"), dtype=parameter.buffer.dtype.numpy)
    if parameter.access is Access.READ:
        array.flags.writeable = False
    elif parameter.role is not ParameterRole.SCRATCH:
        marks = np.frombuffer(shadow, dtype=f"u{shadow.itemsize}")
        marks[:] = mark
    shape = parameter.buffer.shape
    fixed = [extent for extent in shape if not isinstance(extent, Symbol)]
    return array.reshape(fixed) if len(fixed) == len(shape) else array


def _fresh(allocation: Allocate) -> np.ndarray[Any, Any]:
    buffer = allocation.buffer
    shape = [extent.upper if isinstance(extent, Symbol) else extent for extent in buffer.shape]
    return np.zeros(shape, dtype=DType(buffer.dtype).numpy)
