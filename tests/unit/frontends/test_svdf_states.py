"""How many inputs SVDF layers keep in place of frames, beside all other choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.frontends.tflite.model import ModelRecord
from bytewright.frontends.tflite.reader import read_model
from bytewright.frontends.tflite.svdf_states import inputs_kept
from support.recurrent_models import Writer
from support.wake_word import wake_word_net

WAKE_WORD = read_model(wake_word_net(), "net.tflite", None)
# Of its layers: samples, inputs, filters and memory; and the type of the state.
Layer = tuple[int, int, int, int, str]
LAYERS = st.tuples(
    *(st.integers(1, most) for most in (2, 40, 60, 4)),
    st.sampled_from(["int8", "int16"]),
)
SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 7.0])


def model_of(layers: Sequence[Layer], **kinds: str) -> ModelRecord:
    """A file of layers side by side."""
    writer, sources, results = Writer(), list[int](), list[int]()
    for samples, depth, filters, memory, state in layers:
        given = writer.tensor((samples, depth), kinds.get("source", "int8"), (0.1, 0))
        features = writer.tensor(
            (filters, depth), "int8", (0.1, 0), values=np.ones((filters, depth), np.int8)
        )
        time = writer.tensor((filters, memory), state, (0.1, 0), values=np.ones((filters, memory), state))
        frames = writer.tensor((samples, filters * memory), state, (0.1, 0), is_variable=True)
        results.append(writer.tensor((samples, filters), "int8", (0.1, 0)))
        writer.operator(
            "SVDF", [given, features, time, -1, frames], results[-1:], ("SVDFOptions", {"rank": 1})
        )
        sources.append(given)
    return read_model(writer.build(sources, results), "layers.tflite", None)


def saved(layer: Layer) -> int:
    """Bytes by each frame that is not kept."""
    samples, depth, filters, _, state = layer
    return samples * (filters * np.dtype(state).itemsize - depth)


def products(layer: Layer) -> int:
    """Those of a frame."""
    samples, depth, filters, *_ = layer
    return samples * depth * filters


@given(st.lists(LAYERS, min_size=1, max_size=4), SHARES)
def test_the_choice_beside_all_others(layers: list[Layer], share: float) -> None:
    found = inputs_kept(model_of(layers), share)
    chosen = [found.get(number, 0) for number in range(len(layers))]
    able = [layer for layer in layers if saved(layer) > 0 and layer[3] > 1]
    budget = share * sum(map(products, able))
    best = 0
    for numbers in product(*(range(layer[3]) for layer in able)):
        if sum(n * products(layer) for n, layer in zip(numbers, able, strict=True)) <= budget:
            best = max(best, sum(n * saved(layer) for n, layer in zip(numbers, able, strict=True)))
    own = sum(n * saved(layer) for n, layer in zip(chosen, layers, strict=True))
    spent = sum(n * products(layer) for n, layer in zip(chosen, layers, strict=True))
    assert spent <= budget
    # What was given up first saves most for its products, so that less than a frame is missing to the best.
    assert best - max(map(saved, able), default=0) <= own <= best
    for number, layer in zip(chosen, layers, strict=True):
        assert number == 0 or layer in able
        assert layer not in able or number == layer[3] - 1 or spent + products(layer) > budget


@pytest.mark.parametrize(
    ("share", "numbers"),
    [(0.0, [0, 0, 0, 0]), (0.25, [0, 0, 1, 0]), (2.0, [7, 0, 0, 0]), (inf, [9, 9, 9, 9])],
)
def test_the_wake_word(share: float, numbers: list[int]) -> None:
    """A frame of its layers saves 216, 128, 144 and 80 bytes, for 5120, 6144, 4608 and 3072 products."""
    found = inputs_kept(WAKE_WORD, share)
    assert [found[index] for index in range(4)] == numbers


def test_inputs_that_are_no_smaller_are_not_kept() -> None:
    assert not inputs_kept(model_of([(1, 8, 8, 4, "int8"), (1, 9, 4, 4, "int16")]), inf)


@pytest.mark.parametrize("kind", ["float32", "int16"])
def test_layers_of_other_types_keep_frames(kind: str) -> None:
    assert not inputs_kept(model_of([(1, 2, 8, 4, "int16")], source=kind), inf)


def test_a_layer_that_is_refused_is_passed_over() -> None:
    """It has too few operands, or weights over time of another rank."""
    model = model_of([(1, 2, 8, 4, "int16")])
    (operator,) = model.operators
    assert inputs_kept(model, inf) == {0: 3}
    for inputs in (operator.inputs[:4], (*operator.inputs[:2], len(model.tensors), *operator.inputs[3:])):
        tensors = (*model.tensors, replace(model.tensors[operator.inputs[2]], shape=(8, 2, 2)))
        changed = replace(model, operators=(replace(operator, inputs=inputs),), tensors=tensors)
        assert not inputs_kept(changed, inf)
