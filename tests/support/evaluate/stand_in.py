"""Python functions in the place of what the module has no body of: the application's functions, command streams."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from bytewright import ir
from bytewright.diagnostics import InternalError
from support.evaluate.runtime import recast

StandIn = Callable[..., object]


class StreamExecutor(Protocol):
    """A device that carries out command streams."""

    def __call__(self, code: bytes, regions: Sequence[np.ndarray[Any, np.dtype[np.uint8]]]) -> object:
        """Carries one out.

        Args:
            code: The stream.
            regions: The memories that it works on, in the kernel's order; those that are only read cannot be written.
        """
        ...


def stream_body(function: ir.PrimFunc, execute: StreamExecutor | None) -> Callable[..., None]:
    """What the evaluator calls for a kernel that is a command stream."""

    def body(*values: Any) -> None:
        if execute is None:
            raise InternalError(
                f"'{function.name}' is a command stream, and nothing executes those of device '{function.device}'"
            )
        given = iter(values)
        arrays = [_array(p, next(given), next(given), next(given)) for p in function.buffer_parameters]
        stream, *regions = (array.reshape(-1).view(np.uint8) for array in arrays)
        execute(stream.tobytes(), regions)

    return body


def stand_in_body(function: ir.PrimFunc, stand_in: StandIn | None) -> Callable[..., None]:
    """What the evaluator calls: memory, marks and numbers become arrays and numbers.

    Scratch that is not passed yet, because storage is undecided, is given here.
    """

    def body(*values: Any) -> None:
        if stand_in is None:
            raise InternalError(f"'{function.name}' is the application's and has no stand-in")
        given = iter(values)
        arguments: list[object] = []
        for parameter in function.parameters:
            if isinstance(parameter, ir.BufferParameter):
                arguments.append(_array(parameter, next(given), next(given), next(given)))
            elif isinstance(parameter, ir.ScalarParameter):
                arguments.append(next(given))
        arguments.extend(
            _fresh(statement) for statement in function.body.statements if isinstance(statement, ir.Allocate)
        )
        status = stand_in(*arguments)
        if status not in (None, 0):
            raise InternalError(f"'{function.name}' returned {status}")

    return body


def _array(parameter: ir.BufferParameter, data: Any, shadow: Any, mark: int) -> np.ndarray[Any, Any]:
    """The memory as an array; what may be written counts as written."""
    array = np.frombuffer(recast(data, "B"), dtype=parameter.buffer.dtype.numpy)
    if parameter.access is ir.Access.READ:
        array.flags.writeable = False
    elif parameter.role is not ir.ParameterRole.SCRATCH:
        marks = np.frombuffer(shadow, dtype=f"u{shadow.itemsize}")
        marks[:] = mark
    shape = parameter.buffer.shape
    fixed = [extent for extent in shape if isinstance(extent, int)]
    return array.reshape(fixed) if len(fixed) == len(shape) else array


def _fresh(allocation: ir.Allocate) -> np.ndarray[Any, Any]:
    buffer = allocation.buffer
    shape = [ir.upper_bound(extent) for extent in buffer.shape]
    return np.zeros(shape, dtype=ir.DType(buffer.dtype).numpy)
