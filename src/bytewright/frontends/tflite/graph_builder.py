"""The graph so far, on its way from the records of a file, and what is known of its tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from bytewright import ir
from bytewright.base.c_names import c_name, unique_name
from bytewright.frontends.tflite.bounds import Bounds
from bytewright.frontends.tflite.known import Growth
from bytewright.frontends.tflite.model import ModelRecord, TensorRecord
from bytewright.frontends.tflite.stored import STORED
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.checks import QUANTISED

DTYPES = {
    "INT8": ir.DType.I8,
    "INT16": ir.DType.I16,
    "FLOAT32": ir.DType.F32,
    "INT32": ir.DType.I32,
    "INT64": ir.DType.I64,
    "UINT32": ir.DType.U32,
    "UINT64": ir.DType.U64,
    "UINT8": ir.DType.I8,
    "BOOL": ir.DType.BOOL,
    "COMPLEX64": ir.DType.F32,
}
"""Element types that values may have, those that are known at import included.

Those of uint8 are int8 inside of a graph: 128 less, and so is the zero point, so that they mean the same.
"""
RUN_TIME_TYPES = ("INT8", "FLOAT32", "BOOL")
"""Those that any value may have at run time; of others operators say that they take them."""
PARTS = {"COMPLEX64": (2,)}
"""Extents behind those of a tensor: values of complex numbers have an axis more, real parts first."""
FOLDING_BUDGET = 1 << 25
"""Multiplications and moves that computing constants at import may take, over the whole model."""


def quantization_of(tensor: TensorRecord) -> ir.Quantization | None:
    """The quantisation that the generated header documents: as the file has it."""
    record = tensor.quantization
    if tensor.element_type not in ("INT8", "UINT8", "INT16", "INT32") or len(record.scales) != 1:
        return None
    return ir.Quantization(record.scales[0], record.zero_points[0])


def quantization_inside(tensor: TensorRecord) -> ir.Quantization | None:
    """That of the tensor's value inside of a graph, where uint8 is int8."""
    found = quantization_of(tensor)
    if found is None or tensor.element_type != "UINT8":
        return found
    return replace(found, zero_point=found.zero_point + ir.DType.I8.bounds[0])


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
        note: Why it is what it is, for people.
    """

    parameter: ir.Value
    current: str
    initial: ir.TensorData | None
    stated: str
    note: str = ""


OwnKey = str | tuple[int, str]
"""What a custom operator calls its own; or the index of a variable tensor, and what else that stands for."""
KeptKey = str | tuple[int | None, OwnKey | int]
"""A variable's name; or a subgraph, and there the index of a variable tensor, or what is kept beside those."""


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
    def parts(self) -> tuple[int, ...]:
        """Extents that its value has behind the shape."""
        return PARTS.get(self.tensor.element_type, ())

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
        return self.type.dtype in QUANTISED


@dataclass(slots=True)
class GraphBuilder:
    """The graph so far.

    Attributes:
        has_infinities: True if a float32 constant of the model is infinite or not a number.
        batch_max: The largest batch, if the module's batch is opened after the import.
        bounds: The most that the run alone knows: turns of loops, and sizes.
        expands_weights: True if integer weights under float activations are widened to float32.
        keeps_weights: True if weights that a DEQUANTIZE widens stay integers, where a layer can scale its sums instead.
        recomputed: Products that layers with state may form again in every run to keep less, over those that they form
            of their newest inputs.
        inputs_kept: How many inputs layers keep so, by operator; None before the first of them.
        dequantised: By the tensor of its result, the integer constant that a DEQUANTIZE widens.
        is_opened: True if axes of inputs are opened after the import.
        has_open_batch: True if an input's first extent is open; it is fixed to 1.
        values: Name of the value that each tensor index stands for.
        rearranged: Constants that hold a tensor's values in another form: the tensor's index.
        growths: Of constants that depend on the batch: by what each value grows with each sample more.
        batched: Constants that have the batch as their first extent, each sample alike.
        buffers: Bytes of the file's buffers that were taken, and of those that were widened by what they were, so that
            tensors share them.
        producers: The node that makes each value.
        infinite: Float values that may be infinite although no input is, and no sum or product overflows.
        made: Values that are made of numbers of the run, by what of and how.
        spreads: Tensors that are the samples of a spread image.
        handles: The variable that each resource stands for, by the index of the tensor.
        assigned: The variables that a run assigns.
        before: Those that something may have assigned before the first operator.
        initial: What variables are before the first run, by their names.
        kept: What survives runs: variables by their names, and what belongs to an operator by its subgraph and a key.
        number: Of a subgraph that operators run.
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
    recomputed: float = 0.0
    inputs_kept: Mapping[int, int] | None = None
    is_opened: bool = False
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
    infinite: set[str] = field(default_factory=set[str])
    made: dict[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])
    spreads: dict[int, Spread] = field(default_factory=dict[int, Spread])
    handles: dict[int, str] = field(default_factory=dict[int, str])
    assigned: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    initial: dict[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])
    kept: dict[KeptKey, Kept] = field(default_factory=dict[KeptKey, Kept])
    number: int | None = None
    folding_budget: int = FOLDING_BUDGET
    convert: Callable[["GraphBuilder"], None] = field(kw_only=True)
    prefix: str = ""
    functions: list[ir.Function] = field(default_factory=list[ir.Function])

    def inside(self, number: int, prefix: str) -> "GraphBuilder":
        """The graph of a subgraph that an operator runs, by its number."""
        return GraphBuilder(
            self.model.called[number],
            self.file_name,
            self.numerics,
            self.has_infinities,
            bounds=self.bounds,
            expands_weights=self.expands_weights,
            keeps_weights=self.keeps_weights,
            recomputed=self.recomputed,
            is_opened=self.is_opened,
            buffers=self.buffers,
            assigned=self.assigned,
            before=self.before.union(key for key in self.kept if isinstance(key, str)),
            initial=self.initial,
            number=number,
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
        key: OwnKey | int,
        stated: str,
        tensor: TensorRecord,
        kind: ir.TensorType,
        initial: ir.TensorData | None,
        note: str = "",
    ) -> Kept:
        """What an operator keeps, known by a key of its subgraph; `tensor` says what it is quantised as.

        Each subgraph has its own, whoever runs it.
        """
        if self.number is not None:
            stated = f"subgraph_{self.number}/{stated}"
        elif self.model.beside:
            stated = f"{self.model.owner}/{stated}"
        return self._keep((self.number, key), stated, quantization_inside(tensor), kind, initial, note)

    def keep_variable(self, name: str, tensor: TensorRecord, kind: ir.TensorType) -> Kept:
        """A variable, which all subgraphs and signatures share."""
        initial = self.initial.get(name)
        return self._keep(name, name, quantization_inside(tensor), kind, initial)

    def keep_for(self, key: KeptKey, inner: Kept) -> Kept:
        """What a subgraph keeps, here, where an operator runs it."""
        value = inner.parameter
        return self.kept.get(key) or self._keep(
            key, inner.stated, value.quantization, value.type, inner.initial, inner.note
        )

    def _keep(
        self,
        key: KeptKey,
        stated: str,
        quantization: ir.Quantization | None,
        kind: ir.TensorType,
        initial: ir.TensorData | None,
        note: str = "",
    ) -> Kept:
        plain = c_name(stated, f"state_{len(self.kept)}")
        name = unique_name(f"{self.prefix}{plain}", {*self.types})
        self.types[name] = kind
        self.kept[key] = Kept(ir.Value(name, kind, quantization), name, initial, stated, note)
        return self.kept[key]

    def name_constant(self, index: int, name: str, data: ir.TensorData) -> str:
        """Makes a constant of the file the value of its tensor."""
        self.constants[name] = data
        self.types[name] = data.type
        self.values[index] = name
        return name
