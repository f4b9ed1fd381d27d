"""RFFT2D, and what makes floats of its spectra: a complex number is two floats along a last axis, real part first."""

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_root, emit_square, emit_sum
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.shape import emit_padded, emit_part, emit_slice
from bytewright.ops.fourier import TflFft, TflRealFft

_MOST = 1 << 15


def convert_rfft2d(at: Conversion) -> None:
    """RFFT2D: spectra of the rows, then of the columns of these; images are cut or filled with zeros first."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    at.require(source.is_float, f"the input is {source.tensor.element_type}")
    at.require(len(source.shape) >= 2, f"an input of {len(source.shape)} axes, not two or more")
    lengths = at.integers_operand(1, "lengths")
    at.require(len(lengths) == 2, f"{len(lengths)} lengths, not two")
    height, width = lengths
    fits = all(least <= each <= _MOST and each.bit_count() == 1 for each, least in ((height, 1), (width, 4)))
    at.require(fits, f"lengths {list(lengths)}, which are no powers of two from 1 and 4 to {_MOST:,}")
    *outer, rows, columns = source.shape
    images = source.type.num_elements // (rows * columns)
    taken = min(height, rows), min(width, columns)
    value = at.reshape(at.value_of(source), (images, rows, columns), "images")
    value = emit_slice(at, value, (0, 0, 0), (images, *taken), (1, 1, 1))
    value = emit_padded(at, value, (0, 0, 0), (0, height - taken[0], 0), 0.0)
    value = at.reshape(value, (images * height, taken[1]), "rows")
    value = at.emit(TflRealFft(width, is_double=True), (value,), "spectra")
    numbers = width // 2 + 1
    if height > 1:
        value = _transformed_columns(at, at.reshape(value, (images, height, numbers, 2), "spectra"))
    at.define(at.reshape(value, (*outer, height, numbers, 2)))


def _transformed_columns(at: Conversion, value: str) -> str:
    """Spectra of the columns of images of complex numbers."""
    images, height, columns, _ = at.type_of(value).fixed_shape
    turned = at.transpose(value, (0, 2, 1, 3), "columns")
    rows = at.reshape(turned, (images * columns, 2 * height), "columns")
    spectra = at.emit(TflFft(height), (rows,), "spectra")
    return at.transpose(at.reshape(spectra, (images, columns, height, 2), "spectra"), (0, 2, 1, 3), "rows")


def convert_part(at: Conversion) -> None:
    """REAL and IMAG."""
    at.define(emit_part(at, _numbers(at), int(at.operator.kind == "IMAG")))


def convert_magnitude(at: Conversion) -> None:
    """COMPLEX_ABS."""
    source = _numbers(at)
    real, imaginary = (emit_square(at, emit_part(at, source, part)) for part in (0, 1))
    at.define(emit_root(at, emit_sum(at, real, imaginary)))


def _numbers(at: Conversion) -> Operand:
    at.require_counts((1,))
    return at.operand(0, "input")
