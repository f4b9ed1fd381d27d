"""The graph as far as its extents are open: new operators, and values that are kept with rows in place of columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import CompileError, compile_error
from bytewright.graph.open.samples import Sample, Samples
from bytewright.graph.stream.new_nodes import NewNodes
from bytewright.ir.where import Where
from bytewright.ops.data import Reshape, Slice
from bytewright.options.forms import ELSEWHERE

WITHOUT = (
    "leave out --open: each run then has as many rows as the file says, or --input-shape if it says none"
)
ROWS, COLUMNS = 1, 2
_MOST_SHOWN = 4


def swapped(values: Sequence[ir.Extent]) -> tuple[ir.Extent, ...]:
    """A shape [N,H,W,C] with H and W swapped."""
    first, rows, columns, *rest = values
    return first, columns, rows, *rest


class Opening:
    """One run of the pass.

    An image [1,1,T,C] has the bytes of [1,T,1,C], and windows slide along open rows. So what windows make of such an
    image stays in the second form, as far as operators on each element follow: it is *turned*.

    Attributes:
        symbols: The open extents.
        samples: The graph for what they are in the file, and for others.
        extents: All that are open so far, the symbols first.
        functions: Those that operators run, opened, or as they were.
        new: The operators so far; a value that is turned has the type of that.
        turned: Names of such values.
        constants: Those that were added.
        sources: What values are in the model's file.
        model: Its name.
        parameters: Its inputs, and what it keeps, as the file has them.
        counted: Extents that operators find out, by the results that say them.
    """

    def __init__(
        self, module: ir.Module, samples: Sequence[Sample], counted: Mapping[str, ir.Symbol]
    ) -> None:
        self.symbols = tuple(samples[0][0])
        self.samples = Samples(samples)
        self.extents: dict[ir.Extent, None] = dict.fromkeys(self.symbols)
        self.functions = [*module.functions[:-1]]
        self.new = NewNodes()
        self.new.types = module.constant_types
        self.before = module.graph_types
        self.new.names = set(self.before)
        self.turned: set[str] = set()
        self.constants: list[ir.Constant] = []
        self.sources = module.sources
        self.model, self.parameters = module.name, module.graph.parameters
        self.counted = counted
        self._data = {constant.name: constant.data for constant in module.constants}
        self._views_of_constants: dict[str, str] = {}
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

    def result(self, name: str) -> str:
        """What a function gives where it gave a value, or a constant that depends on the extent.

        Raises:
            CompileError: BW121, the constant does not follow from the extent.
        """
        try:
            return self.whole(self.constant_of_all(name))
        except ValueError as error:
            message = f"a result is a constant, and {error}"
            raise compile_error("BW121", message, help=WITHOUT, where=self.model) from error

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

    def constant_of_all(self, name: str) -> str:
        """The constant, or what has its values in each run, where these depend on the extent.

        Raises:
            ValueError: It is neither the first of the elements that it has for the largest extent, nor does each of
                them follow from the extent.
        """
        found = self.samples.constants(name)
        if not found:
            return name
        if name not in self._views_of_constants:
            self._views_of_constants[name] = self._part_of_largest(name, found) or self._of_table(name, found)
        return self._views_of_constants[name]

    def _part_of_largest(self, name: str, found: Sequence[ir.TensorData]) -> str | None:
        """The first of the elements along axes."""
        largest = max(found, key=lambda each: each.array.size)
        arrays = [each.array for each in found]
        if len({each.ndim for each in arrays}) > 1:
            return None
        if not all(np.array_equal(each, largest.array[tuple(map(slice, each.shape))]) for each in arrays):
            return None
        shape = [
            self.samples.fitted(sizes, self.extents)
            for sizes in zip(*(each.shape for each in arrays), strict=True)
        ]
        if None in shape or tuple(map(ir.upper_bound, filter(None, shape))) != largest.shape:
            return None
        size = tuple(each for each in shape if each is not None)
        view = self.new.fresh(f"{name}/part")
        whole = self.constant(f"{name}/largest", largest.array, largest.dtype, name)
        part = Slice((0,) * len(size), size, (1,) * len(size))
        self.new.add(part, (whole,), view, Where(self.model))
        return view

    def _of_table(self, name: str, found: Sequence[ir.TensorData]) -> str:
        """A row of a table of what the values are for each extent: as they were read, or growing by the same."""
        symbol, first = self.samples.deciding(found), found[0]
        if symbol is None or len({each.shape for each in found}) > 1:
            raise ValueError(f"the constant '{name}' has other elements for each extent")
        rows = self.samples.table(name, symbol)
        if rows and {row.shape for row in rows} == {first.shape}:
            table = np.stack([row.array for row in rows])
        else:
            table = self._grown(name, found, symbol)
        whole = self.constant(f"{name}/for_all", table.astype(first.dtype.numpy), first.dtype)
        rest = (0,) * len(first.shape)
        row = self.new.fresh(f"{name}/row")
        start = (ir.quotient(symbol, -symbol.lower), *rest)
        self.new.add(
            Slice(start, (1, *first.shape), (1, *(1 for _ in rest))), (whole,), row, Where(self.model)
        )
        result = self.new.fresh(f"{name}/own")
        self.new.add(Reshape(first.shape), (row,), result, Where(self.model))
        return result

    def _grown(self, name: str, found: Sequence[ir.TensorData], symbol: ir.Symbol) -> NDArray[np.float64]:
        """What the values are for each extent where they grow by the same with each, as those that are known do."""
        arrays = [each.array.astype(np.float64) for each in found]
        at = [each[symbol] for each in self.samples.extents]
        slope = (arrays[0] - arrays[-1]) / (at[0] - at[-1])
        table = np.stack([arrays[0] + slope * (n - at[0]) for n in range(symbol.lower, symbol.upper + 1)])
        for extent, wanted in zip(at, arrays, strict=True):
            if not np.array_equal(table[extent - symbol.lower], wanted):
                raise ValueError(f"the constant '{name}' does not grow by the same with each extent")
        return table

    def following(self, values: Sequence[int], what: str, of: ir.Extent) -> ir.Extent:
        """What is one of the values for each of the extents that are known, as an extent.

        Raises:
            ValueError: It does not follow from one; the sentence begins with what it is.
        """
        found = self.samples.fitted(values, (of, *self.extents))
        if found is None:
            raise ValueError(
                f"{what} {self.in_samples(values)}: no extent of the graph, times a number, and more"
            )
        return found

    def in_samples(self, values: Sequence[object]) -> str:
        """`3 for 5, 4 for 6`: what there is for each extent that is known, in its order."""
        at = [tuple(each.values()) for each in self.samples.extents]
        found = sorted(zip(at, values, strict=True), key=lambda each: each[0])
        if len(found) > _MOST_SHOWN:
            found = [found[0], found[len(found) // 2], *found[-2:]]
        return ", ".join(f"{value} for {' and '.join(map(str, extents))}" for extents, value in found)

    # Functions

    def open_function(
        self, name: str, inputs: Sequence[str], open_nodes: Callable[["Opening", Sequence[ir.Node]], None]
    ) -> ir.Signature:
        """Opens a function that is given such values; returns what it takes and gives."""
        number = next(n for n, each in enumerate(self.functions) if each.name == name)
        function, outside = self.functions[number], self.new.nodes
        parameters = [
            replace(value, type=replace(value.type, shape=self.new.types[given].shape))
            for value, given in zip(function.parameters, inputs, strict=True)
        ]
        self.new.types |= {value.name: value.type for value in parameters}
        self.parameters = (*self.parameters, *parameters)
        self.new.nodes = []
        open_nodes(self, function.nodes)
        results = tuple(map(self.result, function.results))
        self.functions[number] = replace(
            function, parameters=tuple(parameters), nodes=tuple(self.new.nodes), results=results
        )
        self.new.nodes = outside
        return ir.Signature(
            tuple(value.type for value in parameters), tuple(self.new.types[result] for result in results)
        )

    # What they become

    def keep(self, node: ir.Node) -> None:
        """A node that depends on no open extent."""
        self.new.nodes.append(node)
        self.new.types |= {value.name: value.type for value in node.outputs}

    def add_control(
        self,
        node: ir.Node,
        operation: ir.ControlOperation,
        callees: tuple[ir.Signature, ...],
        inputs: tuple[str, ...],
    ) -> None:
        """An operator that runs functions in place of a node."""
        found = operation.infer_from(callees, tuple(self.new.types[name] for name in inputs))
        self._add(node, operation, inputs, found, is_turned=False)

    def add(
        self, node: ir.Node, operation: ir.Operation, inputs: tuple[str, ...], *, is_turned: bool = False
    ) -> None:
        """The operator in place of a node, whose results it has.

        Raises:
            ValueError: Its types do not allow it, or its results would not be those of the file with the file's extent.
        """
        found = operation.infer(tuple(self.new.types[name] for name in inputs))
        self._add(node, operation, inputs, found, is_turned=is_turned)

    def _add(
        self,
        node: ir.Node,
        operation: ir.Operation,
        inputs: tuple[str, ...],
        found: tuple[ir.TensorType, ...],
        *,
        is_turned: bool,
    ) -> None:
        outputs: list[ir.Value] = []
        stated = zip(*(each.outputs for each in self.samples.nodes(node)), strict=True)
        for value, type_, of_samples in zip(node.outputs, found, stated, strict=True):
            shape = swapped(type_.shape) if is_turned else type_.shape
            for number, sample in enumerate(of_samples):
                closed = tuple(self.samples.at(each, number) for each in shape)
                if closed != sample.type.shape or type_.dtype is not value.type.dtype:
                    raise ValueError(f"it makes [{ir.format_shape(shape)}] of what it is given")
            self.extents |= dict.fromkeys(each for each in shape if not isinstance(each, int))
            outputs.append(replace(value, type=replace(value.type, shape=type_.shape)))
            self.new.types[value.name] = outputs[-1].type
            if is_turned:
                self.turned.add(value.name)
        self.new.nodes.append(replace(node, operation=operation, inputs=inputs, outputs=tuple(outputs)))

    def refused(self, node: ir.Node, reason: str) -> CompileError:
        """The error that an operator does not allow it."""
        operator = node.where.operator or node.operation.name
        operands = (extent for name in node.inputs for extent in self.shape(name))
        of_data = [each for each in ir.symbols_in(operands) if each in self.counted.values()]
        given = [each for each in self.symbols if each not in self.counted.values()]
        symbols = of_data or given or list(self.symbols)
        names = " and ".join(f"'{symbol.name}'" for symbol in symbols)
        what = "extents" if len(symbols) > 1 else "extent"
        if of_data or not given:
            what = f"the data decides {what} {names}"
            message, help_text = f"{what}, and {operator} does not allow it: {reason}", ELSEWHERE
        else:
            what = f"{what} {names} cannot be opened"
            message, help_text = f"{what}: {operator} does not allow it: {reason}", WITHOUT
        return compile_error("BW121", message, help=help_text, where=str(node.where))
