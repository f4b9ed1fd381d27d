"""The logistic function and tanh of 16-bit gates, as numpy has them and as generated code has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bytewright.ops.arithmetic import fixedpoint16
from support.evaluate import evaluate
from support.evaluate.runtime import Pools, namespace
from support.tiers import THOROUGH

VALUES = np.arange(-(2**15), 2**15)[:: 1 if THOROUGH else 13]


def scalar(name: str) -> Callable[..., int]:
    names: dict[str, Any] = dict(namespace(Pools()))
    exec(evaluate._scalar_functions(), names)  # pyright: ignore[reportPrivateUsage]
    return names[name]


def test_logistic() -> None:
    wanted = fixedpoint16.logistic(VALUES)
    assert [scalar_logistic(int(value)) for value in VALUES] == wanted.tolist()
    np.testing.assert_allclose(wanted / 2**15, 1 / (1 + np.exp(-VALUES / 2**12)), rtol=0, atol=2e-4)


scalar_logistic = scalar("scalar_logistic_15")
scalar_tanh = scalar("scalar_tanh_15")


@pytest.mark.parametrize("integer_bits", range(7))
def test_tanh(integer_bits: int) -> None:
    wanted = fixedpoint16.tanh(VALUES, integer_bits)
    assert [scalar_tanh(int(value), integer_bits) for value in VALUES] == wanted.tolist()
    np.testing.assert_allclose(wanted / 2**15, np.tanh(VALUES / 2 ** (15 - integer_bits)), rtol=0, atol=4e-4)
