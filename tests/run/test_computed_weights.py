"""FULLY_CONNECTED whose weights are computed, as TensorFlow 2.13 writes products of matrices, equals the references."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from bytewright.ops.arithmetic.numerics import Numerics
from support import tiers
from support.against_reference import assert_equals_reference, drawn
from support.random_models import ACTIVATIONS, Draft, RandomModel

NUM_MODELS = 60 if tiers.THOROUGH else 12


def layers(dtype: str) -> SearchStrategy[RandomModel]:
    """Layers that have their weights as a second input, with a constant bias or none."""

    @st.composite
    def models(draw: DrawFn) -> RandomModel:
        draft = Draft(draw, "FULLY_CONNECTED", dtype)
        depth, channels = draw(st.integers(1, 40)), draw(st.integers(1, 9))
        leading = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
        keep, has_bias = draw(st.booleans()), draw(st.booleans())
        first, second = draft.affine(), draft.affine()
        operands = [draft.input((*leading, depth), first), draft.input((channels, depth), second)]
        scale = first[0] * second[0]
        if has_bias and draft.is_int8:
            bias = draft.generator.integers(-(1 << 14), 1 << 14, channels).astype(np.int32)
            operands.append(draft.builder.constant("bias", bias, scale=scale))
        elif has_bias:
            operands.append(draft.builder.constant("bias", draft.weights((channels,))))
        less = draw(st.one_of(st.sampled_from([2.0**power for power in (1, 6, 12)]), st.floats(2.0, 2.0**14)))
        shape = (*leading, channels) if keep else (prod(leading), channels)
        output = draft.output(shape, (float(np.float32(scale * less)), draft.affine()[1]))
        activation = draw(st.sampled_from(ACTIVATIONS))
        draft.builder.operator(draft.kind, operands, [output], activation=activation, keep_num_dims=keep)
        return draft.finish(
            [output], x=(*leading, depth), channels=channels, bias=has_bias, keep=keep, less=less
        )

    return models()


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
@pytest.mark.parametrize("numerics", Numerics)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_layers(dtype: str, numerics: Numerics, target: str, tmp_path: Path) -> None:
    models = drawn(layers(dtype), NUM_MODELS)
    assert_equals_reference(models, tmp_path, numerics=numerics, target=target)
