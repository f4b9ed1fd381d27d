"""All graph operators, by the name that printed IR uses; each file of operators ends with the tuple of its own."""

from bytewright import ir
from bytewright.ops import (
    cast,
    control,
    convolution,
    data,
    detection,
    dynamic_quantization,
    elementwise,
    ethos_u,
    float_functions,
    interpolation,
    lstm,
    matmul,
    placement,
    places,
    pooling,
    rescale,
    resize,
    softmax,
)

OPERATIONS: dict[str, type[ir.Operation]] = {
    operation.name: operation
    for module in (
        cast,
        control,
        convolution,
        data,
        detection,
        dynamic_quantization,
        elementwise,
        ethos_u,
        float_functions,
        lstm,
        interpolation,
        matmul,
        placement,
        places,
        pooling,
        rescale,
        resize,
        softmax,
    )
    for operation in module.OPERATIONS
}
