"""What converters ask of one operator: options, operands that must be of some kind, results, and refusals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.diagnostics import compile_error
from bytewright.frontends.tflite.flatbuffer import DamagedError, File, Table
from bytewright.frontends.tflite.flexbuffer import numbers_by_name
from bytewright.frontends.tflite.graph_builder import DTYPES, PARTS, GraphBuilder, Operand
from bytewright.frontends.tflite.known import Known, no_growth
from bytewright.frontends.tflite.model import ABSENT, OperatorRecord, TensorRecord
from bytewright.graph.open_batch import WITHOUT_BATCH
from bytewright.ir.where import Where
from bytewright.ops.arithmetic.multiplier import Affine
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.checks import ARITHMETIC, QUANTISED, WIDE

# Times any other scale it makes the factor that 0 makes, and it is the greater of no two.
_LEAST_SCALE = 2.0**-126


@dataclass(slots=True)
class OperatorReader:
    """One operator as the file has it: its options, operands and results, and how it is refused.

    Attributes:
        options_type: The schema's name of the table of options that the operator has.
    """

    graph: GraphBuilder
    operator: OperatorRecord
    options_type: str

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
        if tensor.element_type == "RESOURCE":
            self.fail(f"the {role} is a variable's handle, and no value", tensor=tensor)
        if index in self.graph.values:
            name = self.graph.values[index]
            kind = self.graph.types[name]
            parts = len(PARTS.get(tensor.element_type, ()))
            shape = kind.shape[: len(kind.shape) - parts]
            return Operand(tensor, replace(kind, shape=shape), self.graph.constants.get(name))
        data = self.graph.content(tensor)
        return Operand(tensor, data.type, data)

    def activation_operand(self, position: int, role: str, *more: ir.DType) -> Operand:
        """An operand that must be int8, int16 or float32, or of one more type that the operator takes."""
        return self.typed_operand(position, role, (*ARITHMETIC, *more))

    def typed_operand(self, position: int, role: str, dtypes: Iterable[ir.DType]) -> Operand:
        """An operand that must be of one of these element types."""
        operand = self.operand(position, role)
        if operand.dtype not in dtypes:
            self.fail(f"the {role} is {operand.tensor.element_type}", code="BW105", tensor=operand.tensor)
        return operand

    def index_operand(self, position: int, role: str) -> Operand:
        """An operand that must be int32 or int64, whatever its values."""
        operand = self.operand(position, role)
        if operand.dtype not in WIDE:
            self.fail(f"the {role} is {operand.tensor.element_type}, not INT32 or INT64", code="BW105")
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
        if operand.dtype not in WIDE:
            self.fail(f"the {role} is {operand.tensor.element_type}, not an integer", code="BW105")

    def axis(self, stated: int, rank: int) -> int:
        """An axis that may count from the end."""
        self.require(-rank <= stated < rank, f"axis {stated} of a tensor of rank {rank}")
        return stated % rank

    def axes(self, stated: Sequence[int], rank: int) -> tuple[int, ...]:
        """Axes that may count from the end and repeat, in ascending order."""
        fits = all(-rank <= axis < rank for axis in stated)
        self.require(fits, f"axes {list(stated)} of a tensor of rank {rank}")
        return tuple(sorted({axis % rank for axis in stated}))

    def output_tensor(self, position: int = 0) -> TensorRecord:
        """What the file says of a result."""
        self.require(position < len(self.operator.outputs), f"there is no result {position}")
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

    def affine(self, tensor: TensorRecord, *, is_symmetric: bool = True) -> Affine:
        """Scale, zero point and bounds of a tensor that is quantised per tensor.

        int16 has the zero point 0, but where `is_symmetric` is false. Those of a uint8 tensor are given as of the int8
        tensor that means the same, which its value is: 128 less.
        """
        is_unsigned = tensor.element_type == "UINT8"
        kind = tensor.element_type.lower()
        dtype = ir.DType.U8 if is_unsigned else DTYPES.get(tensor.element_type, ir.DType.I8)
        low, high = (0, 0) if is_symmetric and dtype is ir.DType.I16 else dtype.bounds
        record = tensor.quantization
        if len(record.scales) != 1:
            count = len(record.scales)
            self.fail(f"'{tensor.name}' is {kind} with {count} scales, one is needed", tensor=tensor)
        scale, zero_point = record.scales[0], record.zero_points[0]
        if scale == zero_point == 0 and self._is_zero(tensor):
            scale = _LEAST_SCALE
        if not (isfinite(scale) and scale > 0):
            self.fail(f"'{tensor.name}' has scale {scale}, which is not positive", tensor=tensor)
        if not low <= zero_point <= high:
            reason = f"no {kind} value" if low < high else "not 0"
            self.fail(f"'{tensor.name}' has zero point {zero_point}, which is {reason}", tensor=tensor)
        if is_unsigned:
            return Affine(scale, zero_point + ir.DType.I8.bounds[0])
        return Affine(scale, zero_point, dtype.bounds)

    def _is_zero(self, tensor: TensorRecord) -> bool:
        """Whether a tensor is known to be zeros alone, to which TensorFlow's quantiser gives scale 0 in int16."""
        name = self.graph.values.get(tensor.index, "")
        data = self.graph.content(tensor) if tensor.has_values else self.graph.constants.get(name)
        return data is not None and not data.array.any()

    @staticmethod
    def zero_points(tensor: TensorRecord) -> tuple[int, ...]:
        """Those of the tensor's scales, of a uint8 tensor as `affine` gives them."""
        offset = ir.DType.I8.bounds[0] if tensor.element_type == "UINT8" else 0
        return tuple(zero_point + offset for zero_point in tensor.quantization.zero_points)

    def real_zero(self, dtype: ir.DType) -> int | float:
        """What stands for zero in a result of a type."""
        if dtype in QUANTISED:
            return self.affine(self.output_tensor()).zero_point
        return 0.0 if dtype is ir.DType.F32 else 0

    def weight_scales(self, tensor: TensorRecord, channels: int, axis: int) -> tuple[float, ...]:
        """Scales of integer weights: one, or one a channel along `axis`; zero points must be 0, but of uint8."""
        record = tensor.quantization
        count = len(record.scales)
        if record.blocks is not None:
            self.fail(f"the weights have a scale for each block of {record.blocks.size}", tensor=tensor)
        if count not in (1, channels):
            self.fail(f"weights of {channels} channels have {count} scales", tensor=tensor)
        if count > 1 and record.axis != axis:
            self.fail(f"weights are quantised along axis {record.axis}, not {axis}", tensor=tensor)
        for scale in record.scales:
            if not (isfinite(scale) and scale > 0):
                self.fail(f"weights have scale {scale}, which is not positive", tensor=tensor)
        is_unsigned = tensor.element_type == "UINT8"
        if any(record.zero_points) and not is_unsigned:
            self.fail("weights have a zero point that is not 0", tensor=tensor)
        self.require(
            not is_unsigned or count == 1, f"uint8 weights have {count} scales; the references take one"
        )
        return record.scales
