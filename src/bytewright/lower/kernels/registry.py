"""Which template writes the kernel of which operator: the one visible table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bytewright import ir
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.conv2d import lower_conv2d, lower_grouped_conv2d
from bytewright.lower.kernels.data import (
    lower_concat,
    lower_gather,
    lower_identity,
    lower_pad,
    lower_shift_in,
    lower_slice,
    lower_tile,
    lower_transpose,
)
from bytewright.lower.kernels.depthwise import lower_depthwise_conv2d
from bytewright.lower.kernels.detection import lower_decode_boxes, lower_select_detections, lower_suppress
from bytewright.lower.kernels.fourier import lower_fft, lower_inverse_real_fft, lower_real_fft
from bytewright.lower.kernels.log_softmax import lower_log_softmax
from bytewright.lower.kernels.lstm import lower_hybrid_lstm, lower_lstm, lower_quantized_lstm
from bytewright.lower.kernels.matmul import lower_batch_matmul
from bytewright.lower.kernels.places import (
    lower_arg_extremum,
    lower_cumulative_sum,
    lower_gather_nd,
    lower_scatter,
    lower_top_k,
    lower_update_slice,
)
from bytewright.lower.kernels.pooling import lower_pool
from bytewright.lower.kernels.reduction import lower_reduction
from bytewright.lower.kernels.resize import lower_resize_bilinear, lower_resize_nearest
from bytewright.lower.kernels.roots import lower_inverse_root, lower_l2_normalization
from bytewright.lower.kernels.sizes import lower_distinct_values, lower_stated_size, lower_true_places
from bytewright.lower.kernels.softmax import lower_softmax
from bytewright.lower.kernels.softmax16 import lower_softmax16
from bytewright.lower.kernels.spectrum import (
    lower_auto_scale,
    lower_energy,
    lower_filter_bank,
    lower_rounded_root,
    lower_spectral_subtraction,
)
from bytewright.lower.kernels.transpose_conv2d import lower_transpose_conv2d
from bytewright.ops import pooling
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, ShiftIn, Slice, Tile, Transpose
from bytewright.ops.detection import TflDecodeBoxes, TflSelectDetections, TflSuppress
from bytewright.ops.fourier import TflFft, TflInverseRealFft, TflRealFft
from bytewright.ops.interpolation import TflSoftmax16
from bytewright.ops.lstm import TflHybridLstm, TflLstm, TflQuantizedLstm
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.placement import DeviceCopy
from bytewright.ops.places import (
    ArgMax,
    ArgMin,
    CumulativeSum,
    GatherNd,
    ScatterLast,
    ScatterMax,
    ScatterMin,
    ScatterNd,
    ScatterProduct,
    TopKPlaces,
    UpdateSlice,
)
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest
from bytewright.ops.roots import TflInverseRoot, TflL2Normalization
from bytewright.ops.sizes import DistinctValues, StatedSize, TruePlaces
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax
from bytewright.ops.spectrum import (
    TflAutoScale,
    TflEnergy,
    TflFilterBank,
    TflRoundedRoot,
    TflSpectralSubtraction,
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """How the kernel of an operator is written that is not element-wise.

    Attributes:
        write: Takes the template and the operator's own descriptor.
        takes_epilogue: False if it works on whole rows of elements, and stores them itself.
    """

    write: Callable[[Template, Any], None]
    takes_epilogue: bool = True


TEMPLATES: dict[type[ir.Operation], Anchor] = {
    ArgMax: Anchor(lower_arg_extremum),
    ArgMin: Anchor(lower_arg_extremum),
    Concat: Anchor(lower_concat),
    Conv2d: Anchor(lower_conv2d),
    CumulativeSum: Anchor(lower_cumulative_sum),
    DepthwiseConv2d: Anchor(lower_depthwise_conv2d),
    DeviceCopy: Anchor(lower_identity, takes_epilogue=False),
    Gather: Anchor(lower_gather),
    GatherNd: Anchor(lower_gather_nd),
    GroupedConv2d: Anchor(lower_grouped_conv2d),
    Identity: Anchor(lower_identity),
    StatedSize: Anchor(lower_stated_size, takes_epilogue=False),
    DistinctValues: Anchor(lower_distinct_values, takes_epilogue=False),
    pooling.MaxPool2d: Anchor(lower_pool),
    Pad: Anchor(lower_pad),
    pooling.ReduceAll: Anchor(lower_reduction),
    pooling.ReduceAny: Anchor(lower_reduction),
    pooling.ReduceMax: Anchor(lower_reduction),
    pooling.ReduceMin: Anchor(lower_reduction),
    pooling.ReduceProduct: Anchor(lower_reduction),
    pooling.ReduceSum: Anchor(lower_reduction),
    ShiftIn: Anchor(lower_shift_in, takes_epilogue=False),
    Slice: Anchor(lower_slice),
    pooling.TflAveragePool2d: Anchor(lower_pool),
    TflAutoScale: Anchor(lower_auto_scale, takes_epilogue=False),
    TflBatchMatMul: Anchor(lower_batch_matmul),
    TflInverseRoot: Anchor(lower_inverse_root),
    Tile: Anchor(lower_tile),
    TflDecodeBoxes: Anchor(lower_decode_boxes, takes_epilogue=False),
    TflEnergy: Anchor(lower_energy),
    TflFilterBank: Anchor(lower_filter_bank),
    TflFft: Anchor(lower_fft, takes_epilogue=False),
    TflInverseRealFft: Anchor(lower_inverse_real_fft, takes_epilogue=False),
    TflRealFft: Anchor(lower_real_fft, takes_epilogue=False),
    TflRoundedRoot: Anchor(lower_rounded_root),
    TflSpectralSubtraction: Anchor(lower_spectral_subtraction, takes_epilogue=False),
    TflResizeBilinear: Anchor(lower_resize_bilinear),
    TflResizeNearest: Anchor(lower_resize_nearest),
    **dict.fromkeys(
        (ScatterLast, ScatterMax, ScatterMin, ScatterNd, ScatterProduct),
        Anchor(lower_scatter, takes_epilogue=False),
    ),
    TflL2Normalization: Anchor(lower_l2_normalization, takes_epilogue=False),
    pooling.TflQuantizedProduct: Anchor(lower_reduction),
    TflLogSoftmax: Anchor(lower_log_softmax, takes_epilogue=False),
    TflHybridLstm: Anchor(lower_hybrid_lstm, takes_epilogue=False),
    TflLstm: Anchor(lower_lstm, takes_epilogue=False),
    TflQuantizedLstm: Anchor(lower_quantized_lstm, takes_epilogue=False),
    pooling.TflIntegerMean: Anchor(lower_reduction),
    pooling.TflMean: Anchor(lower_reduction),
    TflSelectDetections: Anchor(lower_select_detections, takes_epilogue=False),
    TflSuppress: Anchor(lower_suppress, takes_epilogue=False),
    TflSoftmax: Anchor(lower_softmax, takes_epilogue=False),
    TflSoftmax16: Anchor(lower_softmax16, takes_epilogue=False),
    Transpose: Anchor(lower_transpose),
    TransposeConv2d: Anchor(lower_transpose_conv2d),
    TopKPlaces: Anchor(lower_top_k),
    TruePlaces: Anchor(lower_true_places, takes_epilogue=False),
    UpdateSlice: Anchor(lower_update_slice),
    pooling.WrappingReduceSum: Anchor(lower_reduction),
}
