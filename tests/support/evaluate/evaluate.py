"""Runs PrimFuncs on numpy arrays, for tests after every pass.

The evaluator is the meaning of PrimFuncs: integers are exact, float32 is rounded at every operation, and what C
leaves undefined (overflow, a shift out of range, an index outside its axis, memory read before it was written,
division by zero) is an `InternalError` that names function and buffer. Buffers with an offset in a pool share the
pool's bytes, so a wrong plan gives wrong results here too. exp and tanh are computed in double and rounded once.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType
from typing import assert_never, cast

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.scalar_functions import SCALAR_FUNCTIONS
from bytewright.ir.walk import walk_statements
from support.evaluate.runtime import Pair, Pools, given, namespace, recast, rt_allocate
from support.evaluate.source import (
    function_name,
    translate,
    translate_scalar_function,
    written_mark,
)
from support.evaluate.stand_in import StandIn, StreamExecutor, stand_in_body, stream_body

Array = NDArray[np.generic]
Argument = Array | int | float


@cache
def _scalar_functions() -> CodeType:
    """What expressions call, as Python."""
    defined = (function for function in SCALAR_FUNCTIONS.values() if function.result is not None)
    return compile("\n".join(map(translate_scalar_function, defined)), "<scalar functions>", "exec")


class Evaluator:
    """The PrimFuncs of a module, ready to run as often as wanted.

    Args:
        module: Kernels, entries and constants.
        extra: Further functions that are not in the module.
        stand_ins: For each function of the application a Python function of the same arguments: arrays, which it
            writes to as the prototype says, and numbers; a status that it returns must be 0 or None.
        executors: For each device that is given command streams what carries them out.
    """

    def __init__(
        self,
        module: ir.Module,
        extra: tuple[ir.PrimFunc, ...] = (),
        stand_ins: Mapping[str, StandIn] | None = None,
        executors: Mapping[str, StreamExecutor] | None = None,
    ) -> None:
        functions = (*module.kernels, *module.entries, *extra)
        self._functions = {function.name: function for function in functions}
        self._pools = Pools()
        self._namespace = namespace(self._pools)
        exec(_scalar_functions(), self._namespace)
        self._initial = {
            buffer.name: bytes(ir.size_bytes(buffer)) if port.initial is None else port.initial.content
            for entry in module.entries
            for buffer, port in zip(ir.border_buffers(entry, ir.Border.STATE), module.state, strict=True)
        }
        self.reset()
        constants: dict[str, tuple[ir.Buffer, str]] = {}
        for position, constant in enumerate(module.constant_buffers):
            python = f"k{position}"
            constants[constant.buffer.name] = (constant.buffer, python)
            pair = given(constant.data.content, constant.buffer.dtype.format)
            self._namespace[python], self._namespace[f"{python}_s"] = pair
            self._namespace[f"{python}_w"] = written_mark(constant.buffer.dtype)
        for function in functions:
            if function.external is not None:
                body = stand_in_body(function, (stand_ins or {}).get(function.symbol))
                self._namespace[function_name(function.name)] = body
                continue
            if function.job is ir.Job.STREAM:
                body = stream_body(function, (executors or {}).get(function.device))
                self._namespace[function_name(function.name)] = body
                continue
            self._reserve_pools(function.body)
            source = translate(function, self._functions, constants)
            exec(compile(source, f"<{function.name}>", "exec"), self._namespace)

    def _reserve_pools(self, body: ir.Seq) -> None:
        for statement in walk_statements(body):
            if isinstance(statement, ir.Allocate):
                offset, pool = statement.storage.offset, statement.storage.pool
                if offset is not None and pool is not None:
                    self._pools.reserve(pool, offset + ir.size_bytes(statement.buffer))

    def reset(self, saved: Mapping[str, bytes] | None = None) -> None:
        """The next run finds every state as before the first run, or as it was saved."""
        self._pools.begin(self._initial | dict(saved or {}))

    def saved(self) -> dict[str, bytes]:
        """The bytes of each state, by the name of its buffer."""
        return self._pools.saved()

    def run(
        self, name: str, arguments: Mapping[str, Argument], require_complete: bool = True
    ) -> dict[str, Array]:
        """Runs a function.

        Args:
            name: A kernel or an entry.
            arguments: By name: arrays for parameters that are read, numbers for scalars. What is only written, and
                scratch, is supplied here unless given.
            require_complete: Refuse if an element of a written parameter was not written.

        Returns:
            The parameters that were written, scratch excepted, by name; the arguments are not changed.

        Raises:
            InternalError: The function breaks a rule of the IR.
        """
        function = self._functions.get(name)
        if function is None:
            raise InternalError(f"there is no function '{name}' to run")
        unknown = [key for key in arguments if key not in {p.name for p in function.parameters}]
        if unknown:
            raise InternalError(f"'{name}' has no parameter '{unknown[0]}'")
        values: list[object] = []
        written: list[tuple[ir.BufferParameter, tuple[int, ...], Pair]] = []
        for parameter in function.parameters:
            match parameter:
                case ir.ScalarParameter():
                    values.append(_scalar(parameter, arguments, name))
                case ir.BufferParameter():
                    shape = _shape(parameter.buffer, arguments)
                    pair = _memory(parameter, shape, arguments, name)
                    values.extend((*pair, written_mark(parameter.buffer.dtype)))
                    if (
                        parameter.access is not ir.Access.READ
                        and parameter.role is not ir.ParameterRole.SCRATCH
                    ):
                        written.append((parameter, shape, pair))
                case ir.ContextParameter():
                    pass
                case _:
                    assert_never(parameter)
        body = cast(Callable[..., None], self._namespace[function_name(name)])
        try:
            body(*values)
        except (TypeError, ValueError, IndexError) as error:
            raise InternalError(f"'{name}' cannot be evaluated: {error}") from error
        return {
            parameter.buffer.name: _array(parameter.buffer, shape, pair, require_complete, name)
            for parameter, shape, pair in written
        }


def _scalar(parameter: ir.ScalarParameter, arguments: Mapping[str, Argument], name: str) -> object:
    variable = parameter.variable
    if variable.name not in arguments:
        raise InternalError(f"'{name}' needs a value for '{variable.name}'")
    converted = np.asarray(arguments[variable.name])
    exact = converted.astype(variable.dtype.numpy)
    if variable.dtype.is_integer and int(exact) != int(converted):
        raise InternalError(f"'{variable.name}': {converted} does not fit {variable.dtype.value}")
    return exact.item()


def _shape(buffer: ir.Buffer, arguments: Mapping[str, Argument]) -> tuple[int, ...]:
    """The extents that are stored, with symbols as the arguments say."""
    shape: list[int] = []
    for extent in ir.storage_shape(buffer):
        symbol, value = ir.symbol_in(extent), 0
        if symbol is not None:
            if symbol.name not in arguments:
                raise InternalError(f"'{buffer.name}' needs a value for the extent '{extent}'")
            value = int(np.asarray(arguments[symbol.name]))
            if not symbol.lower <= value <= symbol.upper:
                raise InternalError(f"{value} is outside the extent '{symbol}'")
        shape.append(ir.extent_at(extent, value))
    return tuple(shape)


def _memory(
    parameter: ir.BufferParameter, shape: tuple[int, ...], arguments: Mapping[str, Argument], name: str
) -> Pair:
    buffer = parameter.buffer
    kind = buffer.dtype.format
    if buffer.name not in arguments:
        if parameter.access is not ir.Access.WRITE and parameter.role is not ir.ParameterRole.SCRATCH:
            raise InternalError(f"'{name}' needs an array for '{buffer.name}'")
        return rt_allocate(int(np.prod(shape, dtype=np.int64)), kind)
    array = np.asarray(arguments[buffer.name])
    if array.shape != shape or array.dtype != buffer.dtype.numpy:
        raise InternalError(
            f"'{name}': '{buffer.name}' is {buffer.dtype.value}{list(shape)}, "
            f"the array is {array.dtype}{list(array.shape)}"
        )
    return given(bytearray(np.ascontiguousarray(array).tobytes()), kind)


def _array(buffer: ir.Buffer, shape: tuple[int, ...], pair: Pair, complete: bool, name: str) -> Array:
    data, shadow = pair
    array = np.frombuffer(recast(data, "B"), dtype=buffer.dtype.numpy).reshape(shape)
    flags = np.frombuffer(recast(shadow, "B"), dtype=np.uint8)
    if complete and not flags.all():
        element = int(np.argmin(flags)) // buffer.dtype.size_bytes
        raise InternalError(
            f"'{name}' leaves element {element} of {ir.num_elements(buffer)} of '{buffer.name}' unwritten"
        )
    return array
