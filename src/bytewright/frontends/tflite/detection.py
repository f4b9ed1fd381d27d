"""What ends networks that detect objects: TFLite_Detection_PostProcess, and suppression of boxes that overlap."""

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_least
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.quantization import real_value
from bytewright.frontends.tflite.shape import one_integer
from bytewright.frontends.tflite.sized import Number, cut, most_of, numbers_operand, sized
from bytewright.ops.arithmetic.multiplier import single
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.detection import COORDINATES, TflDecodeBoxes, TflSelectDetections, TflSuppress

_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")
_DEFAULT_OF_CLASS = 100
_THRESHOLDS = ("threshold of overlaps", "threshold of scores", "sigma")
_RESULTS = ("boxes", "classes", "scores", "number")


def convert_detections(at: Conversion) -> None:
    """The operator, of one image."""
    at.require_counts((3,), outputs=len(_RESULTS))
    encodings, scores, anchors = (
        at.activation_operand(position, role)
        for position, role in enumerate(("encodings of boxes", "scores of classes", "anchors"))
    )
    at.require(len(encodings.shape) == 3, f"the encodings of boxes have {len(encodings.shape)} axes, not 3")
    samples, count, depth = encodings.shape
    at.require(samples == 1, f"detections in {samples} images; it takes one")
    at.require(depth >= COORDINATES, f"an encoding of a box has {depth} numbers, not {COORDINATES}")
    same = encodings.dtype is anchors.dtype
    at.require(same, f"boxes are {encodings.tensor.element_type}, anchors {anchors.tensor.element_type}")
    options = at.custom_options
    scales = tuple(single(float(options.get(name, 0))) for name in _SCALES)
    at.require(all(scales), f"a box is divided by the scales {list(scales)}")
    rows = at.reshape(_real(at, encodings), (count, depth), "encodings")
    boxes = at.emit(TflDecodeBoxes(scales), (rows, _real(at, anchors)), "boxes")
    operation = _selection(at, options)
    for position, name in enumerate(at.emit_all(operation, (boxes, _real(at, scores)), _RESULTS)):
        at.define(name, position)


def _selection(at: Conversion, options: dict[str, int | float]) -> TflSelectDetections:
    """What the options ask for."""
    num_places = int(options.get("max_classes_per_detection", 0))
    num_classes = int(options.get("num_classes", 0))
    is_regular = bool(options.get("use_regular_nms", 0))
    num_of_class = int(options.get("detections_per_class", _DEFAULT_OF_CLASS))
    at.require(num_of_class >= 1, f"at most {num_of_class} boxes of a class")
    # Its kernel counts places by the number of results so far, and leaves the tensor.
    at.require(
        is_regular or num_places == 1 or at.numerics is not Numerics.TFLM,
        f"TensorFlow Lite Micro misplaces {num_places} classes of one box: --numerics litert-ref",
    )
    return TflSelectDetections(
        num_classes,
        int(options.get("max_detections", 0)),
        num_places,
        num_of_class if is_regular else 0,
        single(float(options.get("nms_score_threshold", 0))),
        single(float(options.get("nms_iou_threshold", 0))),
    )


def convert_suppression(at: Conversion) -> None:
    """NON_MAX_SUPPRESSION_V4, and V5, which has scores as results, and may lower them in place of leaving boxes out."""
    is_soft = at.operator.kind == "NON_MAX_SUPPRESSION_V5"
    results = ("numbers", "scores", "number") if is_soft else ("numbers", "number")
    at.require_counts((6,) if is_soft else (5,), outputs=len(results))
    boxes, scores = at.operand(0, "boxes"), at.operand(1, "scores")
    for operand in (boxes, scores):
        at.require(operand.is_float, f"'{operand.tensor.name}' is {operand.tensor.element_type}")
    is_constant = at.operand(2, "number of boxes").data is not None
    asked = (
        Number(0, one_integer(at, 2, "number of boxes"))
        if is_constant
        else numbers_operand(at, 2, "number")[0]
    )
    count, most = sized(at, asked, "the number of boxes"), most_of(at, asked)
    overlap, least, *sigma = (
        _number(at, place, role) for place, role in enumerate(_THRESHOLDS[: 2 + is_soft], 3)
    )
    operation = TflSuppress(most, least, overlap, *sigma)
    found = at.emit_all(operation, (at.value_of(boxes), at.value_of(scores)), ("numbers", "scores", "number"))
    values: dict[str, str] = dict(zip(("numbers", "scores", "number"), found, strict=True))
    if not is_constant:
        values = _first_boxes(at, values, count)
    for position, role in enumerate(results):
        at.define(values[role], position)


def _first_boxes(at: Conversion, found: dict[str, str], count: int) -> dict[str, str]:
    """Of the most boxes as many as the run asks for: the best are the first, however many are taken."""
    operand = at.operand(2, "number of boxes")
    asked = at.reshape(at.value_of(operand, "most"), (), "asked")
    rows = {role: cut(at, found[role], (count,), role) for role in ("numbers", "scores")}
    return {**rows, "number": emit_least(at, found["number"], asked, "number")}


def _number(at: Conversion, position: int, role: str) -> float:
    """A constant operand with one number, of float32."""
    values = at.fixed_operand(position, role)
    at.require(values.size == 1, f"the {role} has {values.size} values, one is needed")
    return single(float(values.reshape(-1)[0]))


def _real(at: Conversion, operand: Operand) -> str:
    """The operand in float32."""
    return at.value_of(operand) if operand.is_float else real_value(at, operand)
