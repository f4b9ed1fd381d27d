"""The graph as far as its extents are open: new operators, and values that are kept with rows in place of columns."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import CompileError, compile_error
from bytewright.graph.stream.new_nodes import NewNodes
from bytewright.ir.where import Where
from bytewright.ops.data import Reshape

WITHOUT = "leave out --open: each run then has as many rows as the file says"
ROWS, COLUMNS = 1, 2


def swapped(values: Sequence[ir.Extent]) -> tuple[ir.Extent, ...]:
    """A shape [N,H,W,C] with H and W swapped."""
    first, rows, columns, *rest = values
    return first, columns, rows, *rest


class Opening:
    """One run of the pass.

    An image [1,1,T,C] has the bytes of [1,T,1,C], and windows slide along open rows. So what windows make of such an
    image stays in the second form, as far as operators on each element follow: it is *turned*.

    Attributes:
        symbol: The open extent.
        extent: What it is in the file.
        new: The operators so far; a value that is turned has the type of that.
        turned: Names of such values.
        constants: Those that were added.
        sources: What values are in the model's file.
        model: Its name.
        parameters: Its inputs, and what it keeps, as the file has them.
    """

    def __init__(self, module: ir.Module, symbol: ir.Symbol, extent: int) -> None:
        self.symbol, self.extent = symbol, extent
        self.new = NewNodes()
        self.new.types = module.constant_types
        self.new.names = set(module.graph_types)
        self.before = ir.value_types(module.graph, module.constants)
        self.turned: set[str] = set()
        self.constants: list[ir.Constant] = []
        self.sources = module.sources
        self.model, self.parameters = module.name, module.graph.parameters
        self._data = {constant.name: constant.data for constant in module.constants}
        self._views: dict[tuple[str, tuple[ir.Extent, ...]], str] = {}

    # What operators are given

    def is_open(self, name: str) -> bool:
        """Whether a value has an open extent."""
        return bool(self.open_axes(name))

    def open_axes(self, name: str) -> list[int]:
        """The axes of a value that are open, in the form that the graph has it in."""
        return [axis for axis, extent in enumerate(self.shape(name)) if not isinstance(extent, int)]

    def shape(self, name: str) -> tuple[ir.Extent, ...]:
        """The shape of a value in the form that the graph has it in."""
        shape = self.new.types[name].shape
        return swapped(shape) if name in self.turned else shape

    def whole(self, name: str) -> str:
        """The value in the form that the graph has it in."""
        return self._view(name, self.shape(name), "columns") if name in self.turned else name

    def in_rows(self, name: str) -> str:
        """The value, an image [1,1,T,C], turned."""
        return name if name in self.turned else self._view(name, swapped(self.shape(name)), "rows")

    def _view(self, name: str, shape: tuple[ir.Extent, ...], role: str) -> str:
        key = name, shape
        if key not in self._views:
            where, quantization = self._origin(name)
            view = self.new.fresh(f"{name}/{role}")
            self.new.add(Reshape(shape), (name,), view, where, quantization)
            self._views[key] = view
        return self._views[key]

    def _origin(self, name: str) -> tuple[Where, ir.Quantization | None]:
        """The operator that has a value as its result, or the model of which it is an input; and its quantisation."""
        made = ((value, node.where) for node in reversed(self.new.nodes) for value in node.outputs)
        given = ((value, Where(self.model)) for value in self.parameters)
        return next((where, value.quantization) for value, where in (*given, *made) if value.name == name)

    def array(self, name: str) -> NDArray[np.generic] | None:
        """The values of a constant; None of what is none."""
        return self._data[name].array if name in self._data else None

    def constant(self, name: str, array: NDArray[np.generic], dtype: ir.DType, of: str | None = None) -> str:
        """A new constant, named after another one or a value; `of` is the one whose tensor of the file it is."""
        fresh = self.new.fresh(name)
        data = ir.TensorData.from_array(array, dtype)
        self.constants.append(ir.Constant(fresh, data))
        self._data[fresh], self.new.types[fresh] = data, data.type
        if of is not None and of in self.sources:
            self.sources = FrozenMapping({**self.sources, fresh: self.sources[of]})
        return fresh

    # What they become

    def add(
        self, node: ir.Node, operation: ir.Operation, inputs: tuple[str, ...], *, is_turned: bool = False
    ) -> None:
        """The operator in place of a node, whose results it has.

        Raises:
            ValueError: Its types do not allow it, or its results would not be those of the file with the file's extent.
        """
        found = operation.infer(tuple(self.new.types[name] for name in inputs))
        outputs: list[ir.Value] = []
        for value, type_ in zip(node.outputs, found, strict=True):
            shape = swapped(type_.shape) if is_turned else type_.shape
            closed = tuple(ir.extent_at(extent, self.extent) for extent in shape)
            if closed != value.type.shape or type_.dtype is not value.type.dtype:
                raise ValueError(f"it makes [{ir.format_shape(shape)}] of what it is given")
            outputs.append(replace(value, type=replace(value.type, shape=type_.shape)))
            self.new.types[value.name] = outputs[-1].type
            if is_turned:
                self.turned.add(value.name)
        self.new.nodes.append(replace(node, operation=operation, inputs=inputs, outputs=tuple(outputs)))

    def refused(self, node: ir.Node, reason: str) -> CompileError:
        """The error that an operator does not allow it."""
        operator = node.where.operator or node.operation.name
        message = f"extent '{self.symbol.name}' cannot be opened: {operator} does not allow it: {reason}"
        return compile_error("BW121", message, help=WITHOUT, where=str(node.where))
