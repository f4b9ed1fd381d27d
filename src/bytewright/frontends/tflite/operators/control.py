"""Operators with functions, variables or streams in them, and those that TensorFlow Lite calls custom."""

from bytewright.frontends.tflite.control import convert_case, convert_if, convert_while
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.convolution import convert_biased_transpose_conv
from bytewright.frontends.tflite.detection import convert_detections
from bytewright.frontends.tflite.operators.row import (
    MOVED,
    TfliteOperator,
)
from bytewright.frontends.tflite.signal import (
    convert_circular_buffer,
    convert_delay,
    convert_framer,
    convert_overlap_add,
    convert_stacker,
    convert_window,
)
from bytewright.frontends.tflite.spectrum import (
    convert_auto_scale,
    convert_energy,
    convert_filter_bank,
    convert_fixed_log,
    convert_gain_control,
    convert_inverse_real_fft,
    convert_real_fft,
    convert_spectral_subtraction,
    convert_square_root,
)
from bytewright.frontends.tflite.variables import (
    convert_assign_variable,
    convert_call_once,
    convert_handle,
    convert_read_variable,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.target.isa.ethos_u import DECODED_PRODUCTS


def _convert_ethos_u(conversion: Conversion) -> None:
    """What knows streams is loaded when a file has one."""
    from bytewright.frontends.tflite.ethos_u import convert_ethos_u

    convert_ethos_u(conversion)


_KEPT = (*MOVED, "uint8", "resource")
_TRANSFORMED = ("int16", "int32", "float32")
_LENGTHS = "an even length of 4 to 32,768, of factors 2, 3 and 5"

CONTROL: dict[str, TfliteOperator] = {
    "ASSIGN_VARIABLE": TfliteOperator(convert_assign_variable, types=_KEPT),
    "CALL_ONCE": TfliteOperator(
        convert_call_once,
        limits="of a subgraph that assigns variables what constants make",
        types=("resource",),
    ),
    "CUSTOM 'CIRCULAR_BUFFER'": TfliteOperator(
        convert_circular_buffer,
        limits="one frame a run, which always goes on: cycles_max 1",
        types=("int8",),
        has_state=True,
        signed_alone=True,
    ),
    "CUSTOM 'Convolution2DTransposeBias'": TfliteOperator(
        convert_biased_transpose_conv,
        limits="MediaPipe's; constant weights and bias; not with tflm",
        types=("float32",),
        cost_ms=2.5,
        absent={Numerics.TFLM: ("float32",)},
    ),
    "CUSTOM 'SignalDelay'": TfliteOperator(convert_delay, types=("int16",)),
    "CUSTOM 'SignalEnergy'": TfliteOperator(
        convert_energy, limits="what no index names is 0", types=("int16",), results=("uint32",)
    ),
    "CUSTOM 'SignalFftAutoScale'": TfliteOperator(convert_auto_scale, types=("int16",), results=("int32",)),
    "CUSTOM 'SignalFilterBank'": TfliteOperator(
        convert_filter_bank,
        limits="constant weights of 0 and more, and constant bands",
        types=("uint32",),
        results=("uint64",),
        of_own_types=(1, 2, 3, 4, 5),
    ),
    "CUSTOM 'SignalFilterBankLog'": TfliteOperator(convert_fixed_log, types=("uint32",), results=("int16",)),
    "CUSTOM 'SignalFilterBankSpectralSubtraction'": TfliteOperator(
        convert_spectral_subtraction, types=("uint32",)
    ),
    "CUSTOM 'SignalFilterBankSquareRoot'": TfliteOperator(
        convert_square_root,
        limits="a scale of 0 to 31 bits",
        types=("uint64",),
        results=("uint32",),
        of_own_types=(1,),
    ),
    "CUSTOM 'SignalFramer'": TfliteOperator(
        convert_framer, limits="at most 32 frames a run", types=("int16",), results=("bool",), cost_ms=4.0
    ),
    "CUSTOM 'SignalIrfft'": TfliteOperator(
        convert_inverse_real_fft, limits=_LENGTHS, types=_TRANSFORMED, cost_ms=4.0
    ),
    "CUSTOM 'SignalOverlapAdd'": TfliteOperator(
        convert_overlap_add, limits="at most 32 frames a run", types=("int16", "float32"), cost_ms=4.0
    ),
    "CUSTOM 'SignalPCAN'": TfliteOperator(
        convert_gain_control,
        limits="constant gains of 0 and more",
        types=("uint32",),
        of_own_types=(2,),
    ),
    "CUSTOM 'SignalRfft'": TfliteOperator(convert_real_fft, limits=_LENGTHS, types=_TRANSFORMED, cost_ms=4.0),
    "CUSTOM 'SignalStacker'": TfliteOperator(
        convert_stacker,
        limits="a step of at most all frames",
        types=("int16",),
        results=("bool",),
        cost_ms=2.0,
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
        _convert_ethos_u,
        limits=f"made by Vela for {DECODED_PRODUCTS}; tflm",
        types=("int8",),
        cost_ms=5.0,
        signed_alone=True,
    ),
    "IF": TfliteOperator(convert_if, "IfOptions", "results of fixed shapes", types=_KEPT, cost_ms=1.0),
    "READ_VARIABLE": TfliteOperator(
        convert_read_variable, limits="of a variable that is assigned, in a run or once", types=_KEPT
    ),
    "STABLEHLO_CASE": TfliteOperator(
        convert_case,
        "StablehloCaseOptions",
        "results of fixed shapes; a number of no branch means the last; not with tflm",
        types=_KEPT,
        cost_ms=1.0,
        absent={Numerics.TFLM: _KEPT},
    ),
    "VAR_HANDLE": TfliteOperator(convert_handle, types=("resource",)),
    "WHILE": TfliteOperator(
        convert_while,
        "WhileOptions",
        "a number of turns that constants say, at most 65,536, or the run, up to `--bound`; operands of fixed shapes",
        types=_KEPT,
        cost_ms=1.0,
    ),
}

CONTROL_FLOW = ("IF", "STABLEHLO_CASE", "WHILE", "CALL", "CALL_ONCE")
