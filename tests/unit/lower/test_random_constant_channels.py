"""Random networks with planted empty channels: the graph without them gives the same bytes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bytewright.frontends.registry import import_model
from bytewright.graph.inline_calls import inline_calls
from bytewright.ir.module import Module
from bytewright.ir.verify.stages import Stage, verify
from bytewright.lower.channels import weighted
from bytewright.lower.fold_constant_channels import fold_constant_channels
from bytewright.lower.fold_pad import fold_pad
from bytewright.options import NOTHING_ASKED
from bytewright.place.plan_devices import plan_devices
from bytewright.target import Target
from bytewright.target.registry import load_target
from support.evaluate.evaluate_graph import evaluate_graph
from support.random_models import RandomModel
from support.random_networks import random_network

HOST = load_target("host")
WIDTHS = ((1,), (4,), (16, 2), (3,), (16,))


def target_of(multiples: tuple[int, ...]) -> Target:
    styled = (
        replace(d, isa=replace(d.isa, style=replace(d.isa.style, channel_multiples=multiples)))
        for d in HOST.devices
    )
    return replace(HOST, devices=tuple(styled))


def imported(model: RandomModel) -> Module:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.tflite"
        path.write_bytes(model.content)
        module = import_model(path, HOST, NOTHING_ASKED).module
    return fold_pad(inline_calls(plan_devices(module, HOST)))


def differs(seed: int, dtype: str, multiples: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether channels went, and whether any result is another."""
    model = random_network(seed, dtype, size=12, has_gaps=True)
    module, target = imported(model), target_of(multiples)
    after = fold_constant_channels(module, target)
    verify(after, Stage.PLACED, target, module, "fold_constant_channels")
    if after is module:
        return False, False
    assert fold_constant_channels(after, target) == after, model
    for number in range(3):
        inputs = model.inputs(number)
        with np.errstate(all="ignore"):
            pairs = zip(evaluate_graph(after, inputs), evaluate_graph(module, inputs), strict=True)
            if any(found.tobytes() != wanted.tobytes() for found, wanted in pairs):
                return True, True
    return True, False


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32), dtype=st.sampled_from(["int8", "float32"]), multiples=st.sampled_from(WIDTHS)
)
def test_no_byte_of_any_result_changes(seed: int, dtype: str, multiples: tuple[int, ...]) -> None:
    assert not differs(seed, dtype, multiples)[1]


def test_a_share_of_these_networks_loses_channels() -> None:
    changed = [differs(seed, "int8", (1,))[0] for seed in range(100)]
    assert sum(changed) >= 15


def test_a_wrong_constant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every constant that a bias takes in is one too large: in a tenth of the networks that lose any, that shows."""
    added = weighted.Weighted.added

    def mutated(
        self: weighted.Weighted, channels: weighted.Mask, values: NDArray[np.generic]
    ) -> weighted.Int64:
        return added(self, channels, values.astype(np.int64) + 1)

    monkeypatch.setattr(weighted.Weighted, "added", mutated)
    found = [differs(seed, "int8", (1,)) for seed in range(150)]
    assert 10 * sum(is_wrong for _, is_wrong in found) >= sum(is_changed for is_changed, _ in found)
