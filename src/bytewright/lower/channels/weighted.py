"""A convolution as what it does to channels: which of its input it reads, and what constant ones add to its sums."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d

Mask = NDArray[np.bool_]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Weighted:
    """The sums of a convolution, which are of int8 or of float32 products.

    Attributes:
        weights: [OC, K, IC], with all taps of the window in one axis; of a depthwise one [OC, K, 1].
        bias: [OC].
        source: [OC], the channel of the input that each sum of a depthwise convolution reads; None if it is none.
        zero_point: Of the input.
        reaches_padding: Whether any window reaches beyond the input.
    """

    weights: NDArray[Any]
    bias: NDArray[Any]
    source: NDArray[np.intp] | None
    zero_point: int
    reaches_padding: bool

    @property
    def is_float(self) -> bool:
        """Whether sums are of floats."""
        return self.weights.dtype == np.float32

    def read_by(self, sums: Mask) -> Mask:
        """[IC]: what any of these sums, [OC], reads."""
        return np.logical_or.reduce(self._is_read()[sums], axis=0)

    def _is_read(self) -> Mask:
        """[OC, IC]: whether any weight is not zero; of floats, whose zeros are not without effect, all are read."""
        if self.is_float:
            return np.ones((self.weights.shape[0], self.weights.shape[2]), bool)
        return np.logical_or.reduce(self.weights != 0, axis=1)

    def unknown(self, is_constant: Mask, values: NDArray[Any]) -> Mask:
        """[IC]: the channels of the input that must stay, of constants and others, where any sum reads them.

        The products of one of the others are known with every weight. It is a constant that is the zero point,
        or that no window sees beside padding; of floats, a zero. If the constants together might carry a bias
        beyond 32 bits, all of them stay.
        """
        if self.is_float:
            finite = self.by_channel(np.logical_and.reduce(np.isfinite(self.weights), axis=1), np.logical_and)
            return ~(is_constant & (values == 0) & finite)
        if not is_constant.any():
            return ~is_constant
        folding = is_constant & ((values == self.zero_point) | (not self.reaches_padding))
        centred = np.where(folding, np.abs(values.astype(np.int64) - self.zero_point), 0)
        if centred.any():
            largest = np.abs(self.bias.astype(np.int64)) + self._products(np.abs(self._tap_sums()), centred)
            if largest.max() > np.iinfo(np.int32).max:
                return np.ones_like(is_constant)
        return ~folding

    def by_channel(self, flags: Mask, combine: np.ufunc) -> Mask:
        """[IC] of what is known of each weight, [OC, IC]."""
        if self.source is None:
            return combine.reduce(flags, axis=0)
        found = np.full(int(self.source.max()) + 1, combine is np.logical_and)
        combine.at(found, self.source, flags[:, 0])
        return found

    def added(self, channels: Mask, values: NDArray[Any]) -> Int64:
        """[OC]: what channels of the input with these values add to each sum; 0 of floats, where they are zeros."""
        if self.is_float:
            return np.zeros(len(self.bias), np.int64)
        centred = np.where(channels, values.astype(np.int64) - self.zero_point, 0)
        return (
            self._products(self._tap_sums(), centred) if centred.any() else np.zeros(len(self.bias), np.int64)
        )

    def constant_sums(self, staying: Mask) -> Mask:
        """[OC]: the sums whose products are all known, where these channels of the input are not."""
        read = self._is_read()
        if self.source is None:
            return ~np.logical_or.reduce(read & staying, axis=1)
        return ~(read[:, 0] & staying[self.source])

    def _tap_sums(self) -> Int64:
        return self.weights.sum(axis=1, dtype=np.int64)

    def _products(self, sums: Int64, centred: Int64) -> Int64:
        return sums @ centred if self.source is None else sums[:, 0] * centred[self.source]


def weighted_of(
    node: ir.Node, arrays: Mapping[str, ir.Array], types: Mapping[str, ir.TensorType]
) -> Weighted | None:
    """A node as that; None if it is no convolution, or its weights are not known.

    Args:
        node: Any node.
        arrays: The constants of the module by name.
        types: Of what the node names.
    """
    operation = node.operation
    if not isinstance(operation, Conv2d | DepthwiseConv2d) or not {*node.inputs[1:]} <= arrays.keys():
        return None
    weights, bias = arrays[node.inputs[1]], arrays[node.inputs[2]]
    taken, given = types[node.inputs[0]].fixed_shape, node.outputs[0].type.fixed_shape
    beyond = _reaches_padding(operation, operation.kernel(weights.shape), taken, given)
    if isinstance(operation, Conv2d):
        by_tap = weights.reshape(len(bias), -1, weights.shape[3])
        return Weighted(by_tap, bias, None, operation.input_zero_point, beyond)
    by_tap = weights.reshape(-1, len(bias)).T[..., np.newaxis]
    source = np.arange(len(bias)) // weights.shape[3]
    return Weighted(by_tap, bias, source, operation.input_zero_point, beyond)


def _reaches_padding(
    operation: Conv2d | DepthwiseConv2d,
    kernel: tuple[int, int],
    taken: tuple[int, ...],
    given: tuple[int, ...],
) -> bool:
    """Whether the first window begins before the input, or the last ends behind it, of what `taken` is the largest."""
    if operation.is_same and any(operation.padding[:2]):
        return True
    for axis in (0, 1):
        first = -operation.padding[2 * axis]
        reach = (kernel[axis] - 1) * operation.dilation[axis]
        last = first + (given[axis + 1] - 1) * operation.stride[axis] + reach
        if first < 0 or last >= taken[axis + 1]:
            return True
    return False
