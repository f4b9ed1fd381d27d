"""What SVDF layers keep: how many of the last inputs in place of what their filters gave of them.

A frame of filters is more bytes than the input that it was made of, and can be made again. Each frame that is not kept
saves these bytes, and costs the products of all filters in every run. The products that a graph may add are a multiple
of those that its layers form anyway; frames are given up where a product saves most bytes first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from bytewright.frontends.tflite.model import ModelRecord, OperatorRecord

_OPERANDS = 5
_INPUT, _FEATURES, _TIME, _, _STATE = range(_OPERANDS)
_STATE_BYTES = {"INT8": 1, "INT16": 2}


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer whose inputs are smaller than what its filters give.

    Attributes:
        index: Of its operator.
        saved_bytes: By each frame that is not kept.
        num_products: That make a frame.
        num_kept: Frames that are kept where all are.
    """

    index: int
    saved_bytes: int
    num_products: int
    num_kept: int


def inputs_kept(model: ModelRecord, share: float) -> Mapping[int, int]:
    """How many inputs layers keep in place of frames, by operator; 0 of those that are not named.

    Args:
        model: The graph.
        share: Products that may be added, over those that layers form of their newest inputs; infinite for as many as
            save anything.
    """
    layers = list(_layers(model))
    budget = share * sum(layer.num_products for layer in layers)
    found: dict[int, int] = {}
    for layer in sorted(layers, key=lambda each: -Fraction(each.saved_bytes, each.num_products)):
        num = layer.num_kept if budget == inf else min(layer.num_kept, int(budget // layer.num_products))
        budget -= num * layer.num_products
        found[layer.index] = num
    return found


def _layers(model: ModelRecord) -> Iterator[_Layer]:
    for operator in model.operators:
        if operator.kind == "SVDF" and (layer := _layer(model, operator)) is not None:
            yield layer


def _layer(model: ModelRecord, operator: OperatorRecord) -> _Layer | None:
    """None if nothing is saved, or its operands are not those of an SVDF of integers."""
    if len(operator.inputs) != _OPERANDS:
        return None
    source, features, time, state = (
        model.tensors[operator.inputs[number]] for number in (_INPUT, _FEATURES, _TIME, _STATE)
    )
    if source.element_type != "INT8" or state.element_type not in _STATE_BYTES:
        return None
    if not len(source.shape) == len(features.shape) == len(time.shape) == 2:
        return None
    (samples, depth), (filters, _), (_, frames) = source.shape, features.shape, time.shape
    saved_bytes = samples * (filters * _STATE_BYTES[state.element_type] - depth)
    num_products = samples * filters * depth
    if min(saved_bytes, num_products, frames - 1) < 1:
        return None
    return _Layer(operator.index, saved_bytes, num_products, frames - 1)
