"""Operators with functions, variables or streams in them, and those that TensorFlow Lite calls custom."""

from bytewright.frontends.tflite.control import convert_if, convert_while
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.detection import convert_detections
from bytewright.frontends.tflite.operators.row import (
    MOVED,
    TfliteOperator,
)
from bytewright.frontends.tflite.signal import (
    convert_circular_buffer,
    convert_delay,
    convert_overlap_add,
    convert_window,
)
from bytewright.frontends.tflite.variables import (
    convert_assign_variable,
    convert_nothing,
    convert_read_variable,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.target.isa.ethos_u import DECODED_PRODUCTS


def _convert_ethos_u(conversion: Conversion) -> None:
    """What knows streams is loaded when a file has one."""
    from bytewright.frontends.tflite.ethos_u import convert_ethos_u

    convert_ethos_u(conversion)


_KEPT = (*MOVED, "uint8", "resource")

CONTROL: dict[str, TfliteOperator] = {
    "ASSIGN_VARIABLE": TfliteOperator(convert_assign_variable, types=_KEPT),
    "CALL_ONCE": TfliteOperator(
        convert_nothing, limits="of a subgraph that assigns constants to variables", types=("resource",)
    ),
    "CUSTOM 'CIRCULAR_BUFFER'": TfliteOperator(
        convert_circular_buffer,
        limits="one frame a run, which always goes on: cycles_max 1",
        types=("int8",),
        has_state=True,
    ),
    "CUSTOM 'SignalDelay'": TfliteOperator(convert_delay, types=("int16",)),
    "CUSTOM 'SignalOverlapAdd'": TfliteOperator(
        convert_overlap_add, limits="at most 32 frames a run", types=("int16", "float32"), cost_ms=4.0
    ),
    "CUSTOM 'SignalWindow'": TfliteOperator(
        convert_window,
        limits="constant weights, one for each sample of a row; a shift of 0 to 30",
        types=("int16",),
    ),
    "CUSTOM 'TFLite_Detection_PostProcess'": TfliteOperator(
        convert_detections,
        limits="one image; boxes and anchors alike float32 or uint8, scores either; tflm: neither uint8, nor several "
        "classes of one box unless classes are looked at one by one",
        types=("float32", "uint8"),
        cost_ms=5.0,
        absent={Numerics.TFLM: ("uint8",)},
    ),
    "CUSTOM 'ethos-u'": TfliteOperator(
        _convert_ethos_u, limits=f"made by Vela for {DECODED_PRODUCTS}; tflm", types=("int8",), cost_ms=5.0
    ),
    "IF": TfliteOperator(
        convert_if, "IfOptions", "results of fixed shapes", types=(*MOVED, "uint8"), cost_ms=1.0
    ),
    "READ_VARIABLE": TfliteOperator(
        convert_read_variable, limits="of a variable that is assigned, in a run or once", types=_KEPT
    ),
    "VAR_HANDLE": TfliteOperator(convert_nothing, types=("resource",)),
    "WHILE": TfliteOperator(
        convert_while,
        "WhileOptions",
        "a number of turns that constants say, at most 65,536, or the run, up to `--bound`; operands of fixed shapes",
        types=(*MOVED, "uint8"),
        cost_ms=1.0,
    ),
}

CONTROL_FLOW = ("IF", "WHILE", "CALL", "CALL_ONCE")
