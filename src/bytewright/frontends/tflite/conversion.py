"""What converters work with: one operator, and the part of the graph that it becomes.

A converter reads operands, emits nodes and defines the operator's results. An operation whose operands are all
constants is computed here, so that only work which depends on the inputs remains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.base.c_names import c_name
from bytewright.frontends.tflite.bounds import SIZE
from bytewright.frontends.tflite.graph_builder import DTYPES, PARTS, Kept, Operand
from bytewright.frontends.tflite.known import UNKNOWN, Growth, Known, no_growth
from bytewright.frontends.tflite.model import CUSTOM, TensorRecord
from bytewright.frontends.tflite.operator_reader import OperatorReader
from bytewright.frontends.tflite.stored import STORED
from bytewright.ops.data import Concat, Reshape, Slice, Transpose
from bytewright.ops.float_functions import may_be_infinite

WITHOUT_ELEMENTS = (
    "give the model a larger input, or leave out the layer: its window, slice or crop takes all that there is"
)


OUTSIDE = "let the loop or branch give the data, and what depends on its size stand behind it"


@dataclass(slots=True)
class Conversion(OperatorReader):
    """One operator on its way into the graph.

    Attributes:
        limited: Values that are finite whatever their operands are.
    """

    nodes: list[ir.Node] = field(default_factory=list[ir.Node])
    constants: dict[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])
    types: dict[str, ir.TensorType] = field(default_factory=dict[str, ir.TensorType])
    growths: dict[str, Growth] = field(default_factory=dict[str, Growth])
    batched: set[str] = field(default_factory=set[str])
    results: dict[int, str] = field(default_factory=dict[int, str])
    limited: set[str] = field(default_factory=set[str])
    changed: list[tuple[Kept, str]] = field(default_factory=list[tuple[Kept, str]])

    @property
    def prefix(self) -> str:
        """`conv2d_3`: what names of this operator's values start with."""
        kind = self.operator.kind.removeprefix(CUSTOM).strip(" '").lower()
        kind = c_name(kind, "custom").replace("_2d", "2d")
        return f"{self.graph.prefix}{kind}_{self.operator.index}"

    def value_of(self, operand: Operand, role: str = "operand") -> str:
        """Name of the operand's value in the graph; a constant of the file gets one when it is first used."""
        index = operand.tensor.index
        if operand.data is not None and operand.is_expanded:
            return self.constant(role, operand.data.array, operand.dtype)
        if index not in self.graph.values:
            assert operand.data is not None
            self.graph.name_constant(index, f"{self.prefix}/{role}", operand.data)
        return self.graph.values[index]

    def constant(
        self,
        role: str,
        array: NDArray[Any],
        dtype: ir.DType,
        growth: Growth | None = None,
        *,
        of: TensorRecord | None = None,
    ) -> str:
        """A constant of this operator; `growth` is how its values grow with the batch, `of` whose values they are."""
        name, data = self._unique(role), ir.TensorData.from_array(array, dtype)
        self.constants[name] = data
        self.types[name] = data.type
        if of is not None:
            self.graph.rearranged[name] = of.index
        if growth is not None and growth.any():
            self.growths[name] = growth
        return name

    def follow_batch(self, name: str, growth: tuple[int, ...]) -> None:
        """Lets the extents of a constant grow with the batch, where they do; all samples of it are alike."""
        if not any(growth):
            return
        shape = self.type_of(name).shape
        if growth[0] != 1 or shape[0] != 1:
            self.refuse_batch(f"a constant of shape [{ir.format_shape(shape)}] is not one of each sample")
        self.batched.add(name)

    def _unique(self, role: str) -> str:
        """A name that this operator has not used."""
        name, count = f"{self.prefix}/{role}", 1
        while name in self.types or name in self.graph.types:
            count += 1
            name = f"{self.prefix}/{role}_{count}"
        return name

    def type_of(self, name: str) -> ir.TensorType:
        """Type of a value of the graph or of this operator."""
        return self.types[name] if name in self.types else self.graph.types[name]

    def emit(self, operation: ir.Operation, inputs: Sequence[str], role: str) -> str:
        """Adds a node with one result, or its value if all operands are constants; returns the name."""
        types, result = self._inferred(operation, inputs)
        if not self.graph.bounds.allows_none:
            if any(extent < 1 for extent in result.fixed_shape):
                return self._empty(result, types, role)
            if not all(type_.num_elements for type_ in types):
                self.fail("an operand has no elements", help=WITHOUT_ELEMENTS)
        if inputs and all(self.data_of(name) is not None for name in inputs):
            return self._fold(operation, inputs, result, role)
        if self._growths(inputs):
            self.refuse_batch("an operand that is constant depends on the batch")
        value = ir.Value(self._unique(role), result)
        return self._add(ir.Node(operation, tuple(inputs), (value,), self.where()))

    def emit_all(
        self, operation: ir.Operation, inputs: Sequence[str], roles: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Adds a node with several results, whatever its operands are; returns their names."""
        types = tuple(self.type_of(name) for name in inputs)
        try:
            results = operation.infer(types)
        except ValueError as error:
            self.fail(str(error))
        values = tuple(ir.Value(self._unique(role), kind) for role, kind in zip(roles, results, strict=True))
        self.nodes.append(ir.Node(operation, tuple(inputs), values, self.where()))
        self.types |= {value.name: value.type for value in values}
        return tuple(value.name for value in values)

    @property
    def names(self) -> tuple[str, ...]:
        """What an option may call it: its name, its kind, and as the file does by the tensors that it makes."""
        tensors = (self.graph.model.tensors[index].name for index in self.operator.outputs)
        return (self.prefix, self.operator.kind, *filter(None, tensors))

    @property
    def may_count(self) -> bool:
        """Whether data may decide a size, or refuse a run: neither a sample of a batch can, nor a turn of a loop."""
        return self.graph.batch_max is None and self.graph.number is None

    def size(
        self,
        what: str,
        natural: int | None = None,
        *,
        is_sure: bool = False,
        name: str | None = None,
        least: int = 0,
    ) -> int:
        """What an extent is in this graph that the data decides: the most that it may be, or what is looked at.

        Args:
            what: It is, for people.
            natural: The most that is possible, as shapes say it.
            is_sure: Whether data cannot ask for more than that.
            name: Of the extent, where it is not the operator's.
            least: The least that the file is read for.
        """
        name = name or self.prefix
        if self.graph.batch_max is not None:
            self.refuse_batch(f"{what} is known in the run alone, and may be another for each sample")
        if self.graph.number is not None:
            self.fail(f"{what} is known in the run alone, in a loop or branch", help=OUTSIDE)
        found = self.graph.bounds.extent(name, self.names, natural, is_sure=is_sure, least=least)
        if found is None:
            self.fail(
                f"{what} is known in the run alone", help=f"--bound {name}=N, N being the most that it may be"
            )
        self.require(self.graph.bounds.counted[name].extent.upper > 0, f"{what} can be 0 at most")
        return found

    def emit_size(self, name: str, operation: ir.Operation, number: str, kind: ir.TensorType) -> None:
        """Adds a node that says an extent by a number of the graph."""
        value = ir.Value(f"{name}/{SIZE}", kind)
        self.nodes.append(ir.Node(operation, (number,), (value,), self.where()))
        self.types[value.name] = kind

    def emit_sized(self, operation: ir.Operation, inputs: Sequence[str], *roles: str) -> str:
        """Adds a node that says, behind its results, how large an extent is; returns the first of its results."""
        return self.emit_all(operation, inputs, (*roles, SIZE))[0]

    def emit_control(
        self, operation: ir.ControlOperation, inputs: Sequence[str], types: Mapping[int, ir.TensorType]
    ) -> dict[int, str]:
        """Adds a node that runs functions, with a result of each type; their names, by the keys of the types."""
        values: dict[int, ir.Value] = {}
        for position, kind in types.items():
            values[position] = ir.Value(self._unique(f"result_{position}"), kind)
            self.types[values[position].name] = kind
        self.nodes.append(ir.Node(operation, tuple(inputs), tuple(values.values()), self.where()))
        return {position: value.name for position, value in values.items()}

    def keep(self, kept: Kept, name: str) -> None:
        """What survives runs is this value from here on."""
        self.changed.append((kept, name))

    def _inferred(
        self, operation: ir.Operation, inputs: Sequence[str]
    ) -> tuple[tuple[ir.TensorType, ...], ir.TensorType]:
        """The types of an operation's operands and of its one result."""
        types = tuple(self.type_of(name) for name in inputs)
        try:
            (result,) = operation.infer(types)
        except ValueError as error:
            self.fail(str(error))
        return types, result

    def _add(self, node: ir.Node) -> str:
        (value,) = node.outputs
        self.nodes.append(node)
        self.types[value.name] = value.type
        return value.name

    def _empty(self, result: ir.TensorType, operands: tuple[ir.TensorType, ...], role: str) -> str:
        """A result without elements: known if it is of an operand without any; else a window does not fit."""
        if all(type_.num_elements for type_ in operands):
            self.fail(f"the result [{ir.format_shape(result.shape)}] has no elements", help=WITHOUT_ELEMENTS)
        return self.empty(result.fixed_shape, result.dtype, role)

    def empty(self, shape: tuple[int, ...], dtype: ir.DType, role: str) -> str:
        """A constant without bytes in place of an activation without elements."""
        name = self.constant(role, np.zeros(shape, dtype.numpy), dtype)
        if self.graph.batch_max is not None and shape[:1] == (1,):
            self.batched.add(name)
        return name

    def data_of(self, name: str) -> ir.TensorData | None:
        """Values of a constant of the graph or of this operator."""
        return self.constants.get(name) or self.graph.constants.get(name)

    def _growths(self, names: Sequence[str]) -> dict[str, Growth]:
        """Of those constants that depend on the batch, how they grow."""
        found = ((name, self.growths.get(name, self.graph.growths.get(name))) for name in names)
        return {name: growth for name, growth in found if growth is not None}

    def charge(self, work: int) -> None:
        """Takes multiplications and moves from the budget of what is computed at import."""
        self.graph.folding_budget -= work
        if self.graph.folding_budget < 0:
            self.fail("its operands are all constants, and computing it at import would take too long")

    def _fold(self, operation: ir.Operation, inputs: Sequence[str], result: ir.TensorType, role: str) -> str:
        """Computes an operation on constants, within the budget."""
        data = [item for item in map(self.data_of, inputs) if item is not None]
        work = result.num_elements * operation.work_per_element(tuple(item.type for item in data))
        self.charge(work + sum(item.type.num_elements for item in data))
        try:
            (array,) = operation.evaluate(tuple(item.array for item in data))
        except OverflowError as error:
            self.fail(str(error), code="BW110")
        name = self.constant(role, array, result.dtype, self._folded_growth(operation, inputs, result))
        if self._is_batched(operation, inputs, result):
            self.batched.add(name)
        return name

    def _folded_growth(
        self, operation: ir.Operation, inputs: Sequence[str], result: ir.TensorType
    ) -> Growth | None:
        """How the result of an operation on constants grows with the batch: moved as they are, or unknown."""
        growths = self._growths(inputs)
        if not growths:
            return None
        if not isinstance(operation, Concat | Reshape | Slice | Transpose):
            return np.full(result.fixed_shape, UNKNOWN)
        moved = [growths.get(name, no_growth(self.type_of(name).fixed_shape)) for name in inputs]
        return operation.evaluate(tuple(moved))[0].astype(np.int64)

    def _is_batched(self, operation: ir.Operation, inputs: Sequence[str], result: ir.TensorType) -> bool:
        """Whether the result of an operation on constants has the batch as its first extent, as an operand has.

        The rule is that of `open_batch`: the operator must keep the samples apart.
        """
        batched = self.graph.batched | self.batched
        if self.graph.batch_max is None or batched.isdisjoint(inputs):
            return False
        symbol = ir.Symbol("batch", 1, self.graph.batch_max)
        types = (self.type_of(name) for name in inputs)
        opened = tuple(
            replace(kind, shape=(symbol, *kind.shape[1:])) if name in batched else kind
            for name, kind in zip(inputs, types, strict=True)
        )
        try:
            (found,) = operation.with_batch(symbol).infer(opened)
        except ValueError as error:
            self.refuse_batch(f"it does not keep the samples of a batch apart: {error}")
        if found.shape != (symbol, *result.shape[1:]):
            self.refuse_batch(f"it makes [{ir.format_shape(found.shape)}] of the samples of a batch")
        return True

    def reshape(self, name: str, shape: tuple[int, ...], role: str = "reshaped") -> str:
        """The value under another shape; the value itself if it has that shape."""
        return name if self.type_of(name).shape == shape else self.emit(Reshape(shape), (name,), role)

    def define_reshaped(self, source: Operand, shape: tuple[int, ...]) -> None:
        """Makes an operand under another shape the operator's result."""
        self.define(self.reshape(self.value_of(source), (*shape, *source.parts)))

    def transpose(self, name: str, permutation: tuple[int, ...], role: str) -> str:
        """The value with its axes in another order."""
        return self.emit(Transpose(permutation), (name,), role)

    def slice(self, name: str, start: tuple[int, ...], size: tuple[int, ...], role: str) -> str:
        """So many elements along each axis, from the given ones on."""
        return self.emit(Slice(start, size, (1,) * len(size)), (name,), role)

    def emit_like(self, node: ir.Node, operation: ir.Operation, inputs: Sequence[str], role: str) -> str:
        """Adds another form of a node of the graph, which has its name, with a role, and its place in the model."""
        _, result = self._inferred(operation, inputs)
        name = f"{node.outputs[0].name}/{role}"
        name = name if name not in self.graph.types and name not in self.types else self._unique(role)
        value = ir.Value(name, result)
        return self._add(replace(node, operation=operation, inputs=tuple(inputs), outputs=(value,)))

    def define(self, name: str, position: int = 0) -> None:
        """Makes a value the operator's result at `position`, after a look at what the file declares."""
        tensor = self.output_tensor(position)
        found = self.type_of(name)
        stored = STORED.get(tensor.element_type)
        if (stored.dtype if stored else DTYPES.get(tensor.element_type)) is not found.dtype:
            self.fail(f"the result is {tensor.element_type}, {found.dtype.value} was computed", tensor=tensor)
        parts = PARTS.get(tensor.element_type, ())
        shape = found.fixed_shape[: len(found.shape) - len(parts)]
        if found.shape != (*shape, *parts) or not self._shape_agrees(tensor, shape):
            declared, computed = ir.format_shape(tensor.shape), ir.format_shape(shape)
            self.fail(
                f"'{tensor.name}' is declared as [{declared}], operands give [{computed}]",
                code="BW103",
                tensor=tensor,
            )
        self.results[position] = name

    def reads_infinities(self) -> bool:
        """Whether an operand is a float that may be infinite."""
        return any(name in self.graph.infinite for node in self.nodes for name in node.inputs)

    def define_known(self, value: Known, position: int = 0) -> None:
        """Makes a value that is known the operator's result, in the element type that the file declares."""
        element_type = self.output_tensor(position).element_type
        dtype = DTYPES.get(element_type)
        if dtype is None or np.dtype(dtype.numpy) != value.array.dtype:
            self.fail(f"the result is {element_type}, {value.array.dtype} was computed", code="BW105")
        self.define(self.constant("value", value.array, dtype, value.growth), position)

    def define_handle(self, variable: str, position: int = 0) -> None:
        """Makes a result the handle of a variable, which is no value."""
        self.results[position] = ""
        self.graph.handles[self.operator.outputs[position]] = variable

    def _shape_agrees(self, tensor: TensorRecord, shape: tuple[int, ...]) -> bool:
        """True if the declared shape is the computed one, but for extents that the file leaves open."""
        if not tensor.shape:  # of a scalar, or of what the file does not know
            return True
        if len(tensor.shape) != len(shape):
            return False
        signature = tensor.signature or tensor.shape
        return all(
            signature[axis] == -1 or (axis == 0 and self.graph.has_open_batch) or tensor.shape[axis] == extent
            for axis, extent in enumerate(shape)
        )

    def finish(self) -> None:
        """Hands nodes and constants to the graph, results named `<prefix>/out`."""
        if len(self.results) != len(self.operator.outputs):
            self.fail("not every result was computed")
        renamed: dict[str, str] = {}
        for position, name in sorted(self.results.items()):
            if name in self.types:
                number = "" if len(self.results) == 1 else f"_{position}"
                renamed.setdefault(name, f"{self.prefix}/out{number}")

        def new_name(name: str) -> str:
            return renamed.get(name, name)

        for node in self.nodes:
            outputs = tuple(ir.Value(new_name(value.name), value.type) for value in node.outputs)
            named = replace(node, inputs=tuple(map(new_name, node.inputs)), outputs=outputs)
            self.graph.nodes.append(named)
            self.graph.producers |= dict.fromkeys((value.name for value in outputs), named)
            is_infinite = any(name in self.graph.infinite for name in named.inputs)
            if node.outputs[0].name not in self.limited and may_be_infinite(named.operation, is_infinite):
                self.graph.infinite.update(
                    value.name for value in outputs if value.type.dtype is ir.DType.F32
                )
        self.graph.constants |= {new_name(name): data for name, data in self.constants.items()}
        self.graph.types |= {new_name(name): kind for name, kind in self.types.items()}
        self.graph.growths |= {new_name(name): growth for name, growth in self.growths.items()}
        self.graph.batched.update(map(new_name, self.batched))
        for kept, name in self.changed:
            kept.current = new_name(name)
        for position, name in self.results.items():
            self.graph.values[self.operator.outputs[position]] = new_name(name)
