"""Random models of each operator: the imported graph, evaluated, equals the references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.evaluation import evaluate_function
from support.random_draft import FLOAT_TOLERANCE
from support.random_models import (
    CASES,
    NOT_IN_TFLM,
    TFLM_CASES,
    RandomModel,
    num_examples,
    operator_models,
)
from support.reference import LiteRt, TfLiteMicro
from support.tiers import some

SEEDS = (0, 1, 2, 3)
# uint8 is int8 but for the border.
TODAY = some(CASES, every=4, always=[case for case in CASES if case[1] != "uint8"])
# What else TensorFlow Lite Micro lacks is refused: test_tflite_errors.py.
TFLM_INTEGERS = [case for case in TFLM_CASES if case[1] != "float32"]
QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


def assert_equals(model: RandomModel, reference: LiteRt | TfLiteMicro, numerics: Numerics) -> None:
    module = import_content(model.content, "random.tflite", numerics=numerics)
    graph = module.graph
    for seed in SEEDS:
        inputs = model.inputs(seed)
        expected = reference.run(*inputs)
        values = evaluate_function(graph, module.constants, tuple(inputs))
        for name, wanted in zip(graph.results, expected, strict=True):
            found = values[name]
            assert found.shape == wanted.shape
            assert found.dtype == wanted.dtype
            if wanted.dtype.kind != "f":
                np.testing.assert_array_equal(found, wanted, err_msg=model.description)
            else:
                worst = float(np.abs(found - wanted).max())
                assert worst <= FLOAT_TOLERANCE * float(np.abs(wanted).max()), model.description


@pytest.mark.parametrize(("kind", "dtype"), TODAY)
def test_equals_litert(kind: str, dtype: str) -> None:
    @settings(QUICK, max_examples=num_examples(kind, 15))
    @given(model=operator_models(kind, dtype))
    def check(model: RandomModel) -> None:
        assert_equals(model, LiteRt(model.content), Numerics.LITERT_REF)

    check()


@pytest.mark.parametrize(("kind", "dtype"), TFLM_INTEGERS)
def test_equals_tflm(kind: str, dtype: str) -> None:
    @settings(QUICK, max_examples=num_examples(kind, 15))
    @given(model=operator_models(kind, dtype))
    def check(model: RandomModel) -> None:
        assert_equals(model, TfLiteMicro(model.content), Numerics.TFLM)

    check()


@pytest.mark.parametrize(("kind", "dtype"), some(NOT_IN_TFLM, every=4))
def test_what_tflm_cannot_run_is_refused(kind: str, dtype: str, capfd: pytest.CaptureFixture[str]) -> None:
    @settings(QUICK, max_examples=2)
    @given(model=operator_models(kind, dtype))
    def check(model: RandomModel) -> None:
        with pytest.raises((RuntimeError, ValueError)):
            TfLiteMicro(model.content).run(*model.inputs(0))
        capfd.readouterr()  # it says why
        with pytest.raises(CompileError, match="TensorFlow Lite Micro does not have it"):
            import_content(model.content, "random.tflite", numerics=Numerics.TFLM)

    check()
