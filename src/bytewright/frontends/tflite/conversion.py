"""What converters work with: one operator's operands, and the part of the graph that it becomes.

A `GraphBuilder` holds the graph so far. A `Conversion` is one operator: its converter reads operands, emits
nodes and defines the operator's results. An operation whose operands are all constants is computed here, so
that only work which depends on the inputs remains.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.base.c_names import c_name, unique_name
from bytewright.diagnostics import compile_error
from bytewright.frontends.tflite.bounds import Bounds
from bytewright.frontends.tflite.flatbuffer import DamagedError, File, Table
from bytewright.frontends.tflite.flexbuffer import numbers_by_name
from bytewright.frontends.tflite.known import UNKNOWN, Growth, Known, no_growth
from bytewright.frontends.tflite.model import ABSENT, CUSTOM, ModelRecord, OperatorRecord, TensorRecord
from bytewright.frontends.tflite.stored import STORED
from bytewright.graph.open_batch import WITHOUT_BATCH
from bytewright.ir.where import Where
from bytewright.ops.arithmetic.multiplier import Affine
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.checks import ARITHMETIC
from bytewright.ops.data import Concat, Reshape, Slice, Transpose

DTYPES = {
    "INT8": ir.DType.I8,
    "INT16": ir.DType.I16,
    "FLOAT32": ir.DType.F32,
    "INT32": ir.DType.I32,
    "INT64": ir.DType.I64,
    "UINT8": ir.DType.U8,
    "BOOL": ir.DType.BOOL,
}
"""Element types that values may have, those that are known at import included."""
WITHOUT_ELEMENTS = (
    "give the model a larger input, or leave out the layer: its window, slice or crop takes all that there is"
)
FOLDING_BUDGET = 1 << 25
"""Multiplications and moves that computing constants at import may take, over the whole model."""


def quantization_of(tensor: TensorRecord) -> ir.Quantization | None:
    """The quantisation that the generated header documents."""
    record = tensor.quantization
    if tensor.element_type not in ("INT8", "UINT8", "INT16", "INT32") or len(record.scales) != 1:
        return None
    return ir.Quantization(record.scales[0], record.zero_points[0])


@dataclass(frozen=True, slots=True)
class Spread:
    """What a SPACE_TO_BATCH_ND was given: samples that are every n-th row and column of an image.

    Attributes:
        source: The image's value in the graph.
        sides: The n, for each axis between batch and channels.
        before, after: What the image was padded with first, with `value`.
    """

    source: str
    sides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    value: int | float


@dataclass(slots=True)
class Kept:
    """A tensor that survives runs.

    Attributes:
        parameter: What a run finds there.
        current: The name of what it is at the present operator; in the end, what the run leaves there.
        initial: What is there before the first run; None for zeros.
        stated: What the file calls it.
    """

    parameter: ir.Value
    current: str
    initial: ir.TensorData | None
    stated: str


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of the operator at hand.

    Attributes:
        tensor: What the file says of it.
        type: Its shape, as computed, and element type.
        data: Its values, if they are known at import.
        is_expanded: Whether they are widened for this operator alone.
        is_real: Whether they are integers in place of the floats that a DEQUANTIZE makes of them.
    """

    tensor: TensorRecord
    type: ir.TensorType
    data: ir.TensorData | None
    is_expanded: bool = False
    is_real: bool = False

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

    @property
    def is_quantised(self) -> bool:
        """True for int8 and int16, of which a scale is known."""
        return self.type.dtype in (ir.DType.I8, ir.DType.I16)


@dataclass(slots=True)
class GraphBuilder:
    """The graph so far.

    Attributes:
        has_infinities: True if a float32 constant of the model is infinite or not a number.
        batch_max: The largest batch, if the module's batch is opened after the import.
        bounds: The most turns that loops take.
        expands_weights: True if integer weights under float activations are widened to float32.
        keeps_weights: True if weights that a DEQUANTIZE widens stay integers, where a layer can scale its sums instead.
        dequantised: By the tensor of its result, the integer constant that a DEQUANTIZE widens.
        has_open_batch: True if an input's first extent is open; it is fixed to 1.
        values: Name of the value that each tensor index stands for.
        rearranged: Constants that hold a tensor's values in another form: the tensor's index.
        growths: Of constants that depend on the batch: by what each value grows with each sample more.
        batched: Constants that have the batch as their first extent, each sample alike.
        buffers: Bytes of the file's buffers that were taken, and of those that were widened by what they were, so that
            tensors share them.
        producers: The node that makes each value.
        spreads: Tensors that are the samples of a spread image.
        initial: What variables are before the first run, by their names.
        kept: What survives runs, by the name of a variable or the index of a tensor.
        convert: Converts all operators of a graph.
        prefix: What names of values start with, for a subgraph that operators run.
        functions: Those that operators run, of all graphs of the file.
    """

    model: ModelRecord
    file_name: str
    numerics: Numerics
    has_infinities: bool
    batch_max: int | None = None
    bounds: Bounds = field(default_factory=Bounds)
    expands_weights: bool = False
    keeps_weights: bool = False
    has_open_batch: bool = False
    values: dict[int, str] = field(default_factory=dict[int, str])
    types: dict[str, ir.TensorType] = field(default_factory=dict[str, ir.TensorType])
    constants: dict[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])
    rearranged: dict[str, int] = field(default_factory=dict[str, int])
    growths: dict[str, Growth] = field(default_factory=dict[str, Growth])
    batched: set[str] = field(default_factory=set[str])
    nodes: list[ir.Node] = field(default_factory=list[ir.Node])
    dequantised: dict[int, Operand] = field(default_factory=dict[int, Operand])
    buffers: dict[tuple[int, str | None], bytes] = field(default_factory=dict[tuple[int, str | None], bytes])
    producers: dict[str, ir.Node] = field(default_factory=dict[str, ir.Node])
    spreads: dict[int, Spread] = field(default_factory=dict[int, Spread])
    initial: dict[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])
    kept: dict[str | int, Kept] = field(default_factory=dict[str | int, Kept])
    folding_budget: int = FOLDING_BUDGET
    convert: Callable[["GraphBuilder"], None] = field(kw_only=True)
    prefix: str = ""
    functions: list[ir.Function] = field(default_factory=list[ir.Function])

    def inside(self, model: ModelRecord, prefix: str) -> "GraphBuilder":
        """The graph of a subgraph that an operator runs."""
        return GraphBuilder(
            model,
            self.file_name,
            self.numerics,
            self.has_infinities,
            bounds=self.bounds,
            expands_weights=self.expands_weights,
            keeps_weights=self.keeps_weights,
            buffers=self.buffers,
            folding_budget=self.folding_budget,
            convert=self.convert,
            prefix=prefix,
            functions=self.functions,
        )

    def take_constants(self, inner: "GraphBuilder") -> None:
        """What a subgraph found out: its constants, the types of its values, and what is left of the budget."""
        self.constants |= inner.constants
        self.types |= inner.types
        self.folding_budget = inner.folding_budget

    def result(self, index: int, name: str) -> str:
        """Name of the value of a tensor that is a result; a constant of the file gets the one that is given."""
        found = self.values.get(index)
        return found or self.name_constant(index, name, self.content(self.model.tensors[index]))

    def content(self, tensor: TensorRecord) -> ir.TensorData:
        """The values of a constant tensor, widened where the file stores them in fewer bits."""
        stored = STORED.get(tensor.element_type)
        key = (tensor.buffer, tensor.element_type if stored else None)
        if key not in self.buffers:
            view = self.model.buffers[tensor.buffer]
            self.model.file.charge(len(view) * (stored.growth if stored else 1))
            self.buffers[key] = stored.widen(view).tobytes() if stored else bytes(view)
        dtype = stored.dtype if stored else DTYPES[tensor.element_type]
        num_bytes = (
            prod(tensor.shape) * dtype.size_bytes
        )  # the last byte of a file may hold more than there are
        return ir.TensorData(tensor.shape, dtype, self.buffers[key][:num_bytes])

    def keep(
        self,
        key: str | int,
        stated: str,
        tensor: TensorRecord,
        kind: ir.TensorType,
        initial: ir.TensorData | None,
    ) -> Kept:
        """A tensor that survives runs, known by a key from now on; `tensor` says what it is quantised as."""
        name = unique_name(c_name(stated, f"state_{len(self.kept)}"), {*self.types})
        value = ir.Value(name, kind, quantization_of(tensor))
        self.types[name] = kind
        self.kept[key] = Kept(value, name, initial, stated)
        return self.kept[key]

    def name_constant(self, index: int, name: str, data: ir.TensorData) -> str:
        """Makes a constant of the file the value of its tensor."""
        self.constants[name] = data
        self.types[name] = data.type
        self.values[index] = name
        return name


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
    growths: dict[str, Growth] = field(default_factory=dict[str, Growth])
    batched: set[str] = field(default_factory=set[str])
    results: dict[int, str] = field(default_factory=dict[int, str])
    changed: list[tuple[Kept, str]] = field(default_factory=list[tuple[Kept, str]])

    @property
    def prefix(self) -> str:
        """`conv2d_3`: what names of this operator's values start with."""
        kind = self.operator.kind.removeprefix(CUSTOM).strip(" '").lower()
        kind = c_name(kind, "custom").replace("_2d", "2d")
        return f"{self.graph.prefix}{kind}_{self.operator.index}"

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

    @property
    def custom_options(self) -> dict[str, int | float]:
        """The numbers beside a custom operator, by their names."""
        return numbers_by_name(self.operator.custom_options)

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

    def refuse_batch(self, message: str) -> NoReturn:
        """Refuses the operator in a model whose batch is opened."""
        self.fail(message, code="BW111", help=WITHOUT_BATCH)

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

    def activation_operand(self, position: int, role: str, *more: ir.DType) -> Operand:
        """An operand that must be int8, int16 or float32, or of one more type that the operator takes."""
        operand = self.operand(position, role)
        if operand.dtype not in (*ARITHMETIC, *more):
            self.fail(f"the {role} is {operand.tensor.element_type}", code="BW105", tensor=operand.tensor)
        return operand

    def truth_operand(self, position: int, role: str) -> Operand:
        """An operand that must be a truth value."""
        operand = self.operand(position, role)
        if operand.dtype is not ir.DType.BOOL:
            self.fail(f"the {role} is {operand.tensor.element_type}", code="BW105", tensor=operand.tensor)
        return operand

    def constant_operand(self, position: int, role: str) -> tuple[Operand, NDArray[np.generic]]:
        """An operand whose values must be known, and the same for every batch; and the values."""
        return self.operand(position, role), self.fixed_operand(position, role)

    def known_operand(self, position: int, role: str) -> Known:
        """The values of an operand that must be known, and how they grow with the batch."""
        operand = self.operand(position, role)
        if operand.data is None:
            self.fail(f"the {role} must be constant", tensor=operand.tensor)
        name = self.graph.values.get(operand.tensor.index, "")
        if name in self.graph.batched:
            self.refuse_batch(f"how many values the {role} has depends on the batch")
        array = operand.data.array
        return Known(array, self.graph.growths.get(name, no_growth(array.shape)))

    def fixed_operand(self, position: int, role: str) -> NDArray[Any]:
        """The values of an operand that must be known, and the same for every batch."""
        value = self.known_operand(position, role)
        if not value.is_fixed:
            self.refuse_batch(f"the {role} depends on the batch")
        return value.array

    def extents_operand(self, position: int, role: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A constant list of extents, the first of which may be in proportion to the batch.

        Returns:
            The extents for one sample, and what they grow by with each sample more: 0, but for the first.
        """
        self._require_integers(position, role)
        value = self.known_operand(position, role)
        self.require(value.array.ndim <= 1, f"the {role} is not a list of extents")
        extents = tuple(int(number) for number in value.array.reshape(-1))
        growth = tuple(int(number) for number in value.growth.reshape(-1))
        if any(growth[1:]) or growth[:1] not in ((), (0,), extents[:1]):
            self.refuse_batch(
                f"the {role} {list(extents)} depends on the batch otherwise than in proportion, in its first extent"
            )
        return extents, growth

    def ends_operand(
        self, position: int, role: str, source: int, begin: Sequence[int], stride: Sequence[int]
    ) -> tuple[int, ...]:
        """Constant positions along the axes of an operand: where slices of it end, or how long they are.

        The first may be the batch, where all samples of the operand at `source` are taken in order.
        """
        ends, growth = self.extents_operand(position, role)
        if any(growth):
            whole = (growth[:1], tuple(begin[:1]), tuple(stride[:1])) == (
                self.extent_growth(source)[:1],
                (0,),
                (1,),
            )
            if not whole:
                self.refuse_batch(f"the {role} {list(ends)} depends on the batch, and is not all samples")
        return ends

    def extent_growth(self, position: int) -> tuple[int, ...]:
        """What an operand's extents grow by with each sample: the first, of all that depends on an input."""
        operand = self.operand(position, "input")
        is_batched = self.graph.values.get(operand.tensor.index) in self.graph.batched
        grows = self.graph.batch_max is not None and (operand.data is None or is_batched)
        return (operand.shape[0] if grows else 0, *(0,) * len(operand.shape[1:])) if operand.shape else ()

    def integers_operand(self, position: int, role: str) -> tuple[int, ...]:
        """A constant operand of type int32 or int64, flattened, as numbers."""
        self._require_integers(position, role)
        array = self.fixed_operand(position, role)
        return tuple(int(number) for number in array.astype(np.int64).reshape(-1))

    def _require_integers(self, position: int, role: str) -> None:
        operand = self.operand(position, role)
        if operand.dtype not in (ir.DType.I32, ir.DType.I64):
            self.fail(f"the {role} is {operand.tensor.element_type}, not an integer", code="BW105")

    def axes(self, stated: Sequence[int], rank: int) -> tuple[int, ...]:
        """Axes that may count from the end and repeat, in ascending order."""
        fits = all(-rank <= axis < rank for axis in stated)
        self.require(fits, f"axes {list(stated)} of a tensor of rank {rank}")
        return tuple(sorted({axis % rank for axis in stated}))

    def output_tensor(self, position: int = 0) -> TensorRecord:
        """What the file says of a result."""
        return self.graph.model.tensors[self.operator.outputs[position]]

    def output_dtype(self) -> ir.DType:
        """The first result's element type, which must be one that values may have."""
        tensor = self.output_tensor()
        if tensor.element_type not in DTYPES:
            self.fail(f"the result is {tensor.element_type}", code="BW105", tensor=tensor)
        return DTYPES[tensor.element_type]

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
        """Scale, zero point and bounds of a tensor that is quantised per tensor; int16 has the zero point 0.

        Those of a uint8 tensor are given as of the int8 tensor that means the same: 128 less (`Recentre`).
        """
        kind, dtype = tensor.element_type.lower(), DTYPES.get(tensor.element_type, ir.DType.I8)
        low, high = dtype.bounds if dtype is not ir.DType.I16 else (0, 0)
        record = tensor.quantization
        if len(record.scales) != 1:
            count = len(record.scales)
            self.fail(f"'{tensor.name}' is {kind} with {count} scales, one is needed", tensor=tensor)
        scale, zero_point = record.scales[0], record.zero_points[0]
        if not (isfinite(scale) and scale > 0):
            self.fail(f"'{tensor.name}' has scale {scale}, which is not positive", tensor=tensor)
        if not low <= zero_point <= high:
            reason = f"no {kind} value" if low < high else "not 0"
            self.fail(f"'{tensor.name}' has zero point {zero_point}, which is {reason}", tensor=tensor)
        if dtype is ir.DType.U8:
            return Affine(scale, zero_point + ir.DType.I8.bounds[0])
        return Affine(scale, zero_point, dtype.bounds)

    def real_zero(self, dtype: ir.DType) -> int | float:
        """What stands for zero in a result of a type."""
        if dtype in (ir.DType.I8, ir.DType.I16):
            return self.affine(self.output_tensor()).zero_point
        return 0.0 if dtype is ir.DType.F32 else 0

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
            named = replace(node, inputs=tuple(map(new_name, node.inputs)), outputs=outputs)
            self.graph.nodes.append(named)
            self.graph.producers |= dict.fromkeys((value.name for value in outputs), named)
        self.graph.constants |= {new_name(name): data for name, data in self.constants.items()}
        self.graph.types |= {new_name(name): kind for name, kind in self.types.items()}
        self.graph.growths |= {new_name(name): growth for name, growth in self.growths.items()}
        self.graph.batched.update(map(new_name, self.batched))
        for kept, name in self.changed:
            kept.current = new_name(name)
        for position, name in self.results.items():
            self.graph.values[self.operator.outputs[position]] = new_name(name)
