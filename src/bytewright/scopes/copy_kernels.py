"""The kernels that copy between scopes, each once, on devices that reach from one end to the other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import compile_error
from bytewright.ir.analyses.homes import Pools
from bytewright.ir.copy import copy_kernel
from bytewright.place.routes import Hop, Routes, what_makers_reach
from bytewright.scopes.scope_uses import Use
from bytewright.target.model import Device, Target

_ANYWHERE = -1  # places that are not known here, or are none of tensors


class CopyKernels:
    """Kernels that are made when they are wanted.

    Args:
        module: Whose kernels they become.
        target: Has the devices that copy.
        io: Where inputs and outputs are.

    Attributes:
        functions: The kernels so far, by what they copy.
        buffers: Functions and what they keep copies in, by name.
    """

    def __init__(self, module: ir.Module, target: Target, io: ir.Io) -> None:
        self.module, self.target, self.io = module, target, io
        self.pools, self.told = Pools(target), Pools(target, is_told=True)
        self.names = {function.name for function in (*module.kernels, *module.entries)}
        self.entries = {entry.name for entry in module.entries}
        self.constants = {constant.buffer.name for constant in module.constant_buffers}
        self.buffers: set[tuple[str, str]] = set()
        self.functions: dict[tuple[object, ...], ir.PrimFunc] = {}

    def between(
        self,
        shape: tuple[ir.Extent, ...],
        dtype: ir.DType,
        device: Device,
        scopes: tuple[ir.Scope | None, ir.Scope | None],
    ) -> ir.PrimFunc:
        """The kernel that copies elements on a device from one scope to another."""
        key = (shape, dtype, device.name, scopes)
        if key not in self.functions:
            name = unique_name(f"{self.module.name}_copy", self.names)
            copied = ir.Buffer("copied", shape, dtype, dtype.size_bytes)
            job = None if device.runs_c else ir.Job.COPY
            self.functions[key] = copy_kernel(name, copied, device.name, scopes, job)
        return self.functions[key]

    def route(
        self,
        function: ir.PrimFunc,
        use: Use,
        homes: Iterable[tuple[str, ir.Scope | None]],
        scope: ir.Scope | None,
    ) -> tuple[Hop, ...]:
        """Who makes a copy in a function: its own device, or those that the entry hands it to, one after another.

        Args:
            function: Where it is made.
            use: What it is made for.
            homes: The buffers that may be copied, and their scopes.
            scope: Where the copy is to be.

        Raises:
            CompileError: BW703 if no devices reach from one end to the other.
        """
        if function.name not in self.entries:
            return (Hop(self.target.device(function.device)),)
        sources = tuple(self._places(function, name, home) for name, home in homes)
        destination = self.pools.of_scope(scope)
        for pools in (self.pools, self.told):
            found = Routes(pools).find(sources, destination or _ANYWHERE)
            if found:
                return found
        raise compile_error(
            "BW703",
            f"'{use.piece.buffer.name}' is needed in {use.parameter.scope}, and no device can copy it there",
            (
                f"{use.text} asks for {use.parameter.scope}",
                *what_makers_reach(self.target),
            ),
            Routes(self.pools).what_is_missing(reduce(and_, sources), destination),
            str(use.call.where),
        )

    def _places(self, entry: ir.PrimFunc, name: str, scope: ir.Scope | None) -> int:
        """Where a buffer of the entry may be, as bits of `pools`."""
        if name in self.constants:
            return _ANYWHERE
        parameter = next((p for p in entry.buffer_parameters if p.name == name), None)
        if parameter is not None and self.io is not ir.Io.WORKSPACE and (scope is None or scope.pool is None):
            is_input = ir.border_of(parameter) is ir.Border.INPUT
            return self.pools.input if is_input else self.pools.output
        return self.pools.of_scope(scope) or _ANYWHERE
