"""What converters work with: one operator's operands, and the part of the graph that it becomes.

A `GraphBuilder` holds the graph so far. A `Conversion` is one operator: its converter reads operands, emits
nodes and defines the operator's results. An operation whose operands are all constants is computed here, so
that only work which depends on the inputs remains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.diagnostics import compile_error
from bytewright.frontends.tflite.flatbuffer import DamagedError, File, Table
from bytewright.frontends.tflite.model import ABSENT, ModelRecord, OperatorRecord, TensorRecord
from bytewright.ir.where import Where
from bytewright.ops.arithmetic.multiplier import Affine
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.data import Reshape

DTYPES = {
    "INT8": ir.DType.I8,
    "FLOAT32": ir.DType.F32,
    "INT32": ir.DType.I32,
    "INT64": ir.DType.I64,
    "BOOL": ir.DType.BOOL,
}
"""Element types that values may have, those that are known at import included."""
FOLDING_BUDGET = 1 << 25
"""Multiplications and moves that computing constants at import may take, over the whole model."""


@dataclass(slots=True)
class GraphBuilder:
    """The graph so far.

    Attributes:
        has_infinities: True if a float32 constant of the model is infinite or not a number.
        has_open_batch: True if an input's first extent is open; it is fixed to 1.
        values: Name of the value that each tensor index stands for.
        buffers: Bytes of the file's buffers that were taken, so that tensors share them.
    """

    model: ModelRecord
    file_name: str
    numerics: Numerics
    has_infinities: bool
    has_open_batch: bool = False
    values: dict[int, str] = field(default_factory=dict[int, str])
    types: dict[str, ir.TensorType] = field(default_factory=dict[str, ir.TensorType])
    constants: dict[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])
    nodes: list[ir.Node] = field(default_factory=list[ir.Node])
    buffers: dict[int, bytes] = field(default_factory=dict[int, bytes])
    folding_budget: int = FOLDING_BUDGET

    def content(self, tensor: TensorRecord) -> ir.TensorData:
        """The values of a constant tensor."""
        if tensor.buffer not in self.buffers:
            view = self.model.buffers[tensor.buffer]
            self.model.file.charge(len(view))
            self.buffers[tensor.buffer] = bytes(view)
        return ir.TensorData(tensor.shape, DTYPES[tensor.element_type], self.buffers[tensor.buffer])

    def name_constant(self, index: int, name: str, data: ir.TensorData) -> str:
        """Makes a constant of the file the value of its tensor."""
        self.constants[name] = data
        self.types[name] = data.type
        self.values[index] = name
        return name


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of the operator at hand.

    Attributes:
        tensor: What the file says of it.
        type: Its shape, as computed, and element type.
        data: Its values, if they are known at import.
    """

    tensor: TensorRecord
    type: ir.TensorType
    data: ir.TensorData | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; all extents are fixed here."""
        return self.type.fixed_shape

    @property
    def dtype(self) -> ir.DType:
        """The element type."""
        return self.type.dtype

    @property
    def is_float(self) -> bool:
        """True for float32."""
        return self.type.dtype is ir.DType.F32


@dataclass(slots=True)
class Conversion:
    """One operator on its way into the graph.

    Attributes:
        options_type: The schema's name of the table of options that the operator has.
    """

    graph: GraphBuilder
    operator: OperatorRecord
    options_type: str
    nodes: list[ir.Node] = field(default_factory=list[ir.Node])
    constants: dict[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])
    types: dict[str, ir.TensorType] = field(default_factory=dict[str, ir.TensorType])
    results: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def prefix(self) -> str:
        """`conv2d_3`: what names of this operator's values start with."""
        kind = "ethos_u" if self.operator.stream else self.operator.kind.lower().replace("_2d", "2d")
        return f"{kind}_{self.operator.index}"

    @property
    def numerics(self) -> Numerics:
        """The kernel set that the model is compiled for."""
        return self.graph.numerics

    @property
    def options(self) -> Table:
        """The operator's table of options; an empty one, which means the defaults, where the file has none."""
        if self.operator.options is None:
            return Table(File(b"", 0), 0, 0, 0)
        if self.operator.options_type != self.options_type:
            found = f"{self.operator.options_type}, not {self.options_type}"
            raise DamagedError(f"operator {self.operator.label} has {found}")
        return self.operator.options

    # Refusing

    def where(self, tensor: TensorRecord | None = None) -> Where:
        """The operator's place in the model, with its first result or the tensor given."""
        if tensor is None and self.operator.outputs:
            tensor = self.graph.model.tensors[self.operator.outputs[0]]
        name = tensor.name if tensor is not None and tensor.name else None
        return Where(self.graph.file_name, self.operator.label, name)

    def fail(
        self,
        message: str,
        *,
        code: str = "BW107",
        tensor: TensorRecord | None = None,
        help: str | None = None,  # noqa: A002
    ) -> NoReturn:
        """Refuses the operator."""
        kind = self.operator.kind
        raise compile_error(code, f"{kind}: {message}", help=help, where=str(self.where(tensor)))

    def require(self, condition: bool, message: str) -> None:
        """Refuses the operator (BW107) unless the condition holds."""
        if not condition:
            self.fail(message)

    # Operands

    def require_counts(self, inputs: Sequence[int], outputs: int = 1) -> None:
        """The operator has one of the given numbers of operands and `outputs` results."""
        found = len(self.operator.inputs)
        self.require(found in inputs, f"{found} operands where {' or '.join(map(str, inputs))} are needed")
        results = len(self.operator.outputs)
        self.require(results == outputs, f"{results} results where {outputs} are needed")

    def is_present(self, position: int) -> bool:
        """True if the operand is there."""
        return position < len(self.operator.inputs) and self.operator.inputs[position] != ABSENT

    def operand(self, position: int, role: str) -> Operand:
        """An operand by position."""
        if not self.is_present(position):
            self.fail(f"the {role} is missing")
        index = self.operator.inputs[position]
        tensor = self.graph.model.tensors[index]
        if index in self.graph.values:
            name = self.graph.values[index]
            return Operand(tensor, self.graph.types[name], self.graph.constants.get(name))
        data = self.graph.content(tensor)
        return Operand(tensor, data.type, data)

    def activation_operand(self, position: int, role: str) -> Operand:
        """An operand that must be int8 or float32."""
        operand = self.operand(position, role)
        if operand.dtype not in (ir.DType.I8, ir.DType.F32):
            self.fail(f"the {role} is {operand.tensor.element_type}", code="BW105", tensor=operand.tensor)
        return operand

    def truth_operand(self, position: int, role: str) -> Operand:
        """An operand that must be a truth value."""
        operand = self.operand(position, role)
        if operand.dtype is not ir.DType.BOOL:
            self.fail(f"the {role} is {operand.tensor.element_type}", code="BW105", tensor=operand.tensor)
        return operand

    def constant_operand(self, position: int, role: str) -> tuple[Operand, NDArray[np.generic]]:
        """An operand whose values must be known, and the values."""
        operand = self.operand(position, role)
        if operand.data is None:
            self.fail(f"the {role} must be constant", tensor=operand.tensor)
        return operand, operand.data.array

    def integers_operand(self, position: int, role: str) -> tuple[int, ...]:
        """A constant operand of type int32 or int64, flattened, as numbers."""
        operand, array = self.constant_operand(position, role)
        if operand.dtype not in (ir.DType.I32, ir.DType.I64):
            self.fail(f"the {role} is {operand.tensor.element_type}, not an integer", code="BW105")
        return tuple(int(number) for number in array.astype(np.int64).reshape(-1))

    def axes(self, stated: Sequence[int], rank: int) -> tuple[int, ...]:
        """Axes that may count from the end and repeat, in ascending order."""
        fits = all(-rank <= axis < rank for axis in stated)
        self.require(fits, f"axes {list(stated)} of a tensor of rank {rank}")
        return tuple(sorted({axis % rank for axis in stated}))

    def output_tensor(self, position: int = 0) -> TensorRecord:
        """What the file says of a result."""
        return self.graph.model.tensors[self.operator.outputs[position]]

    def require_result(self, element_type: str) -> None:
        """The result has this element type."""
        found = self.output_tensor().element_type
        self.require(found == element_type, f"the result is {found}, not {element_type}")

    def require_same_dtype(self, *operands: Operand) -> None:
        """Operands and first result have one element type."""
        kinds = [operand.tensor.element_type for operand in operands] + [self.output_tensor().element_type]
        self.require(len(set(kinds)) == 1, f"operands and result have different types: {', '.join(kinds)}")

    # Quantisation

    def affine(self, tensor: TensorRecord) -> Affine:
        """Scale and zero point of an int8 tensor that is quantised per tensor."""
        record = tensor.quantization
        if len(record.scales) != 1:
            count = len(record.scales)
            self.fail(f"'{tensor.name}' is int8 with {count} scales, one is needed", tensor=tensor)
        scale, zero_point = record.scales[0], record.zero_points[0]
        if not (isfinite(scale) and scale > 0):
            self.fail(f"'{tensor.name}' has scale {scale}, which is not positive", tensor=tensor)
        if not -128 <= zero_point <= 127:
            self.fail(f"'{tensor.name}' has zero point {zero_point}, which is no int8 value", tensor=tensor)
        return Affine(scale, zero_point)

    def weight_scales(self, tensor: TensorRecord, channels: int, axis: int) -> tuple[float, ...]:
        """Scales of int8 weights: one, or one a channel along `axis`; zero points must be 0."""
        record = tensor.quantization
        count = len(record.scales)
        if count not in (1, channels):
            self.fail(f"weights of {channels} channels have {count} scales", tensor=tensor)
        if count > 1 and record.axis != axis:
            self.fail(f"weights are quantised along axis {record.axis}, not {axis}", tensor=tensor)
        for scale in record.scales:
            if not (isfinite(scale) and scale > 0):
                self.fail(f"weights have scale {scale}, which is not positive", tensor=tensor)
        if any(record.zero_points):
            self.fail("weights have a zero point that is not 0", tensor=tensor)
        return record.scales

    # Emitting

    def value_of(self, operand: Operand, role: str = "operand") -> str:
        """Name of the operand's value in the graph; a constant of the file gets one when it is first used."""
        index = operand.tensor.index
        if index not in self.graph.values:
            assert operand.data is not None
            self.graph.name_constant(index, f"{self.prefix}/{role}", operand.data)
        return self.graph.values[index]

    def constant(self, role: str, array: NDArray[Any], dtype: ir.DType) -> str:
        """A constant of this operator."""
        name, data = self._unique(role), ir.TensorData.from_array(array, dtype)
        self.constants[name] = data
        self.types[name] = data.type
        return name

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
        types = tuple(self.type_of(name) for name in inputs)
        try:
            (result,) = operation.infer(types)
        except ValueError as error:
            self.fail(str(error))
        if any(extent < 1 for extent in result.fixed_shape):
            self.fail(f"the result [{ir.format_shape(result.shape)}] has no elements")
        known = [self._data(name) for name in inputs]
        data = [item for item in known if item is not None]
        if inputs and len(data) == len(known):
            return self._fold(operation, data, result, role)
        name = self._unique(role)
        self.nodes.append(ir.Node(operation, tuple(inputs), (ir.Value(name, result),), self.where()))
        self.types[name] = result
        return name

    def _data(self, name: str) -> ir.TensorData | None:
        """Values of a constant of the graph or of this operator."""
        return self.constants.get(name) or self.graph.constants.get(name)

    def _fold(
        self, operation: ir.Operation, data: list[ir.TensorData], result: ir.TensorType, role: str
    ) -> str:
        """Computes an operation on constants, within the budget."""
        work = result.num_elements * operation.work_per_element(tuple(item.type for item in data))
        work += sum(item.type.num_elements for item in data)
        self.graph.folding_budget -= work
        if self.graph.folding_budget < 0:
            self.fail("its operands are all constants, and computing it at import would take too long")
        try:
            (array,) = operation.evaluate(tuple(item.array for item in data))
        except OverflowError as error:
            self.fail(str(error), code="BW110")
        return self.constant(role, array, result.dtype)

    def reshape(self, name: str, shape: tuple[int, ...], role: str = "reshaped") -> str:
        """The value under another shape; the value itself if it has that shape."""
        return name if self.type_of(name).shape == shape else self.emit(Reshape(shape), (name,), role)

    def define(self, name: str, position: int = 0) -> None:
        """Makes a value the operator's result at `position`, after a look at what the file declares."""
        tensor = self.output_tensor(position)
        found = self.type_of(name)
        if DTYPES.get(tensor.element_type) is not found.dtype:
            self.fail(f"the result is {tensor.element_type}, {found.dtype.value} was computed", tensor=tensor)
        if not self._shape_agrees(tensor, found.fixed_shape):
            declared, computed = ir.format_shape(tensor.shape), ir.format_shape(found.shape)
            self.fail(
                f"'{tensor.name}' is declared as [{declared}], operands give [{computed}]",
                code="BW103",
                tensor=tensor,
            )
        self.results[position] = name

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
            self.graph.nodes.append(replace(node, inputs=tuple(map(new_name, node.inputs)), outputs=outputs))
        self.graph.constants |= {new_name(name): data for name, data in self.constants.items()}
        self.graph.types |= {new_name(name): kind for name, kind in self.types.items()}
        for position, name in self.results.items():
            self.graph.values[self.operator.outputs[position]] = new_name(name)
