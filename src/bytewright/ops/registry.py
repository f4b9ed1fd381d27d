"""All graph operators, by the name that printed IR uses; each file of operators ends with the tuple of its own."""

from bytewright import ir
from bytewright.ops import (
    cast,
    comparisons,
    control,
    convolution,
    data,
    detection,
    dynamic_quantization,
    elementwise,
    ethos_u,
    float_functions,
    fourier,
    interpolation,
    lstm,
    matmul,
    placement,
    places,
    pooling,
    quantization,
    rescale,
    resize,
    roots,
    sizes,
    softmax,
    spectrum,
)

OPERATIONS: dict[str, type[ir.Operation]] = {
    operation.name: operation
    for operation in (
        *cast.OPERATIONS,
        *comparisons.OPERATIONS,
        *control.OPERATIONS,
        *convolution.OPERATIONS,
        *data.OPERATIONS,
        *detection.OPERATIONS,
        *dynamic_quantization.OPERATIONS,
        *elementwise.OPERATIONS,
        *ethos_u.OPERATIONS,
        *float_functions.OPERATIONS,
        *fourier.OPERATIONS,
        *lstm.OPERATIONS,
        *interpolation.OPERATIONS,
        *matmul.OPERATIONS,
        *placement.OPERATIONS,
        *places.OPERATIONS,
        *pooling.OPERATIONS,
        *quantization.OPERATIONS,
        *rescale.OPERATIONS,
        *resize.OPERATIONS,
        *roots.OPERATIONS,
        *sizes.OPERATIONS,
        *softmax.OPERATIONS,
        *spectrum.OPERATIONS,
    )
}

# Operators of which an element of the result reads one element of each operand, in its place or broadcast to it; a
# table beside them is read whole.
ELEMENTWISE: tuple[type[ir.Operation], ...] = (
    *cast.OPERATIONS,
    *comparisons.OPERATIONS,
    *elementwise.OPERATIONS,
    *float_functions.OPERATIONS,
    *quantization.OPERATIONS,
    *rescale.OPERATIONS,
)
