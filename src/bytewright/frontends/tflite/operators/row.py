"""What is said of a TFLite operator that compiles, and the words and types that several rows share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.kernels_of import Absent
from bytewright.ops.arithmetic.numerics import Numerics

INDEX_TYPES = ("int32", "int64")
"""Element types of what counts elements."""


@dataclass(frozen=True, slots=True)
class TfliteOperator:
    """An operator that compiles.

    Attributes:
        convert: Reads it, and emits the graph's operators.
        options: The schema's name of its table of options; empty where none is read.
        limits: What is not supported, or asked for, in words.
        types: Element types of its activations; beside int8 uint8 goes without saying, but where it is `signed_alone`.
        signed_alone: Whether LiteRT has it on int8, and not on uint8.
        unsigned_in_tflm: Whether TensorFlow Lite Micro has it on uint8.
        results: Element types that results may have beside those of the activations.
        indices: The position of an operand of one of `INDEX_TYPES`, whatever the activations are.
        cost_ms: What compiling it costs, roughly, in milliseconds (`limits.py`).
        int8_cost_ms: The same for an int8 result, where that is another.
        scale_cost_ms: What each scale of its weights costs besides.
        hybrid: Where its second operand is weights: the types that these may have, by set of kernels, under activations
            of float32 besides that.
        narrow_weights: Types that a constant second operand may have beside int8 and float32.
        input_at: The position of its first operand that is data: what is multiplied with weights, moved or chosen.
        absent: What sets of kernels lack of it (`kernels_of.py`).
        has_state: Its variables survive runs, and are of types of their own.
        of_own_types: Positions of other operands whose types its converter checks.
    """

    convert: Callable[[Conversion], None]
    options: str = ""
    limits: str = ""
    types: tuple[str, ...] = ("int8", "float32")
    results: tuple[str, ...] = ()
    indices: int | None = None
    cost_ms: float = 0.15
    int8_cost_ms: float | None = None
    scale_cost_ms: float = 0.0
    hybrid: Mapping[Numerics, tuple[str, ...]] = field(default_factory=dict[Numerics, tuple[str, ...]])
    narrow_weights: tuple[str, ...] = ()
    input_at: int = 0
    absent: Absent = field(default_factory=dict[Numerics, tuple[str, ...]])
    has_state: bool = False
    of_own_types: tuple[int, ...] = ()
    signed_alone: bool = False
    unsigned_in_tflm: bool = False


def with_unsigned(row: TfliteOperator) -> TfliteOperator:
    """A row with uint8 behind int8, where the operator is on both."""
    if "int8" not in row.types or "uint8" in row.types or row.signed_alone:
        return row
    after = row.types.index("int8") + 1
    types = (*row.types[:after], "uint8", *row.types[after:])
    if row.unsigned_in_tflm:
        return replace(row, types=types)
    absent = {**row.absent, Numerics.TFLM: (*row.absent.get(Numerics.TFLM, ()), "uint8")}
    return replace(row, types=types, absent=absent)


CLAMPS = "fused activation: none, RELU, RELU6, RELU_N1_TO_1"
INT4 = ("int4",)
NUMBERS = ("int8", "int16", "float32", "int32", "int64")
BUT_INT16 = ("int8", "float32", "int32", "int64")
MOVED = (*NUMBERS, "bool")
ACTIVATIONS = ("int8", "int16", "float32")
FLOAT = ("float32",)
NO_INT16_IN_TFLM: Absent = {Numerics.TFLM: ("int16",)}
NO_INT64_IN_TFLM: Absent = {Numerics.TFLM: ("int64",)}
FEW_MOVED = "tflm: int8 and float32 alone"
ALSO_INT16_MOVED = "tflm: int8, int16 and float32 alone"
