"""FULLY_CONNECTED by weights of 4 bits with a scale for each block of a row, under float activations.

Rows of the input are quantised as under hybrid layers, and blocks of them are groups of a convolution: each group gives
the sums of one block for all channels, which are scaled and added. LiteRT's reference kernels give zeros; this is what
its default kernels compute without a delegate.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_sum
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.hybrid import HybridForm, HybridLayer, layer_sums
from bytewright.frontends.tflite.model import BlocksRecord
from bytewright.ops.convolution import GroupedConv2d
from bytewright.ops.pooling import ReduceSum


def block_product(
    at: Conversion, source: Operand, weights: Operand, blocks: BlocksRecord, *, rows: int, bias: str | None
) -> str:
    """The product with the weights, with the bias, [rows,OC]."""
    assert weights.data is not None
    at.require(weights.tensor.element_type == "INT4", "weights with a scale a block are not of 4 bits")
    channels, depth = weights.shape
    count = depth // blocks.size

    def by_block(values: NDArray[Any]) -> NDArray[Any]:
        """[OC,...] with the blocks first, as groups of channels."""
        return values.reshape(channels, count, -1).transpose(1, 0, 2).reshape(count * channels, -1)

    taps = np.ascontiguousarray(by_block(weights.data.array))
    value = at.constant("weights", taps.reshape(-1, 1, 1, blocks.size), ir.DType.I8, of=weights.tensor)
    scales = by_block(blocks.scales).reshape(-1).tolist()
    layer = HybridLayer(value, taps, scales, bias=None)
    image = at.reshape(at.value_of(source), (1, rows, 1, depth), "rows")
    operation = GroupedConv2d((1, 1), (0, 0, 0, 0), (1, 1), groups=count)
    parts = layer_sums(at, layer, _form, image, operation)
    split = at.reshape(parts, (rows, count, channels), "blocks")
    total = at.emit(ReduceSum((1,), False), (split,), "total")
    return total if bias is None else emit_sum(at, total, bias)


def _form(at: Conversion, layer: HybridLayer) -> HybridForm:
    """With zero points, whatever the option says."""
    del at, layer
    return HybridForm(is_symmetric=False, row_axes=(3,))
