"""Random models tell small mistakes: a bias that is one too large, in the last channel alone, changes what they give.

Both results are LiteRT's, of a file and of the same file with that bias; so this is about the draws, and no compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from support.against_reference import drawn
from support.random_models import RandomModel, operator_models
from support.reference import LiteRt

NUM_MODELS = 6  # of a kind in tests/run/test_random_operators.py, the same ones


def bias_of(model: RandomModel) -> NDArray[Any] | None:
    interpreter: Any = Interpreter(model_content=model.content)
    interpreter.allocate_tensors()
    found = [each for each in interpreter.get_tensor_details() if each["name"] == "bias"]
    return interpreter.get_tensor(found[0]["index"]) if found else None


def with_bias(model: RandomModel, bias: NDArray[Any], changed: NDArray[Any]) -> bytes | None:
    """The file with another bias; None if the bytes of this one are not its alone."""
    if model.content.count(bias.tobytes()) != 1:
        return None
    return model.content.replace(bias.tobytes(), changed.tobytes())


def tells(model: RandomModel) -> bool:
    """Whether the inputs that the tests use show that the last bias is one too large."""
    bias = bias_of(model)
    if bias is None:
        return False
    changed = bias.copy()
    changed[-1] += 1
    content = with_bias(model, bias, changed)
    if content is None:
        return False
    right, wrong = LiteRt(model.content), LiteRt(content)
    inputs = [model.inputs(seed) for seed in range(4)]
    return any(not np.array_equal(right.run(*own)[0], wrong.run(*own)[0]) for own in inputs)


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_a_bias_one_too_large_in_the_last_channel_is_seen(kind: str) -> None:
    models = drawn(operator_models(kind, "int8"), NUM_MODELS)
    assert any(tells(model) for model in models)


def test_a_share_of_all_draws_sees_it() -> None:
    models = drawn(operator_models("CONV_2D", "int8"), 60)
    assert sum(tells(model) for model in models) >= len(models) // 6
