"""What a .tflite file says, as plain records: nothing is interpreted yet.

Field for field after the public schema (tensorflow/lite/schema/schema.fbs); what Bytewright has no use for is
left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.frontends.tflite.flatbuffer import File, Table
from bytewright.frontends.tflite.signatures import SignatureRecord

COMPOSITE = "STABLEHLO_COMPOSITE"
CASE = "STABLEHLO_CASE"
_BODIES_OF = {"STABLEHLO_SCATTER": (6,), "STABLEHLO_REDUCE_WINDOW": (5,)}
_SUBGRAPHS_OF = {"CALL_ONCE": (0,), "IF": (0, 1), "WHILE": (0, 1), COMPOSITE: (1,), **_BODIES_OF}
WITH_BODY = tuple(_BODIES_OF)
"""Operators with a subgraph that says what they do with two elements."""
ABSENT = -1
"""Index of an operand that is left out."""
CUSTOM = "CUSTOM"


# Members that are younger than the package that has the others.
_YOUNGER = {"BuiltinOperator": {209: CASE}, "BuiltinOptions2": {23: "StablehloCaseOptions"}}


@cache
def schema_names(enumeration: str) -> dict[int, str]:
    """Names of a schema enumeration by number."""
    import tflite

    members: dict[str, Any] = vars(getattr(tflite, enumeration))
    known = {value: name for name, value in members.items() if isinstance(value, int)}
    return {**_YOUNGER.get(enumeration, {}), **known}


@dataclass(frozen=True, slots=True, eq=False)
class BlocksRecord:
    """Scales of blocks of a row's elements, in the order of the elements.

    Zero points of the blocks are not read: LiteRT's kernels take them for 0.
    """

    size: int
    scales: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class QuantizationRecord:
    """Affine quantisation: real = scale * (q - zero_point), per tensor or along one axis, or by blocks."""

    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int = 0
    blocks: BlocksRecord | None = None


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One tensor.

    Attributes:
        element_type: The schema's name ("INT8"), or the number where it has none.
        signature: The shape with -1 where the extent is open; empty if the file has none.
        buffer: Index of the buffer with the values; empty buffers mean that there are none.
        has_values: True for constants.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    element_type: str
    buffer: int
    has_values: bool
    quantization: QuantizationRecord
    is_variable: bool
    is_sparse: bool

    @property
    def stated_shape(self) -> tuple[int, ...]:
        """The shape with -1 where the extent is open."""
        return self.signature or self.shape

    @property
    def label(self) -> str:
        """How diagnostics name it: tensor 3 ('x')."""
        return f"tensor {self.index} ('{self.name}')"


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """What an operator that Vela made for an Ethos-U has besides its inputs and outputs.

    Attributes:
        commands, constants, scratch, fast_scratch: Indices of tensors; the scratch twice where there is one.
        offsets: Where each tensor lies in its block, by index; -1 for constants.
    """

    commands: int
    constants: int
    scratch: int
    fast_scratch: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """One operator.

    Attributes:
        kind: The schema's name of the builtin operator, "CUSTOM <code>", or "operator <number>".
        options_type: The schema's name of the table of options; None if there is none.
        options: The table itself, read by `options`.
        stream: Of an operator that Vela made; then `inputs` are those of the network.
        intermediates: Tensors that say how what is between inputs and outputs is quantised.
        custom_options: Of a custom operator the bytes beside it.
        variable: Of a VAR_HANDLE the variable that it stands for: `container/name`, or the name alone.
    """

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options_type: str | None
    options: Table | None
    stream: StreamRecord | None = None
    intermediates: tuple[int, ...] = ()
    custom_options: bytes = b""
    variable: str = ""

    @property
    def label(self) -> str:
        """How diagnostics name it: 3 (CONV_2D)."""
        return f"{self.index} ({self.kind})"

    @property
    def subgraphs(self) -> tuple[int, ...]:
        """The numbers of the subgraphs that it runs, which fields of its options are."""
        if self.kind == CASE and self.options is not None:
            return self.options.numbers(0, "<i4")
        slots = _SUBGRAPHS_OF.get(self.kind, ())
        return tuple(0 if self.options is None else self.options.integer(slot, "i") for slot in slots)

    @property
    def handed(self) -> tuple[int, ...]:
        """The inputs that its subgraphs are given: of branches those behind what chooses one."""
        return self.inputs[self.kind in ("IF", CASE) :]

    @property
    def operands(self) -> tuple[int, ...]:
        """The inputs that are not left out."""
        return tuple(index for index in self.inputs if index != ABSENT)


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """One file: the subgraph that is compiled, and the buffers of all.

    Attributes:
        signature: The one that names inputs and outputs; None where the file has none.
        called: The subgraphs that loops and branches run, by their numbers.
        bodies: What operators there are in the subgraphs of `WITH_BODY`, by the numbers of these.
        called_once: The subgraphs that give variables their values before the first run, of any signature.
        beside: The subgraphs of the other signatures that are compiled.
        owner: The name of the first signature that is compiled of this subgraph.
    """

    file: File
    num_subgraphs: int
    tensors: tuple[TensorRecord, ...]
    operators: tuple[OperatorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    buffers: tuple[memoryview, ...]
    signature: SignatureRecord | None = None
    called_once: tuple["ModelRecord", ...] = ()
    called: Mapping[int, "ModelRecord"] = field(default_factory=dict[int, "ModelRecord"])
    bodies: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    beside: tuple["ModelRecord", ...] = ()
    owner: str = ""
