"""Channels that never matter: constant in LiteRT whatever the input, and the bytes of weights that go with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bytewright.compiler.pipeline import compile_model
from bytewright.report.dead_channels import dead_channels
from bytewright.report.report_view import report_view
from bytewright.target.registry import load_target
from support.digits_bundle import digits_plan
from support.narrowed_models import written
from support.reference import LiteRt
from support.shared_models import model_content, model_path
from support.views import report_document, text_of


def test_a_layers_dead_channels_and_weights(tmp_path: Path) -> None:
    plan = compile_model(written(tmp_path / "m.tflite", empty=(1, 3)), load_target("generic-cortex-m")).plan
    first, second = dead_channels(plan)
    assert (first.layer, first.num_channels, first.constant, first.unread) == ("0 (CONV_2D)", 4, (1, 3), ())
    assert (first.weight_bytes, first.dead_bytes, first.share) == (4, 2, 50.0)
    assert (second.layer, second.constant, second.weight_bytes, second.dead_bytes) == (
        "1 (CONV_2D)",
        (),
        8,
        4,
    )
    text = text_of(report_view(plan))
    assert "to train again: exact; 50.0 % of these weights never matter, in 2 layers\n" in text
    (row,) = [line.split() for line in text.splitlines() if "0 (CONV_2D)" in line and "1, 3" in line]
    assert row[-9:] == ["(CONV_2D)", "4", "2", "0", "4", "2", "50.0", "1,", "3"]
    document = report_document(plan)["dead_channels"]
    assert [(each["constant"], each["unread"]) for each in document] == [([1, 3], []), ([], [])]


def test_constant_channels_are_constant_in_litert() -> None:
    """Of vww, whose later layers have lost most: random images give each such channel one value, and others several."""
    plan = compile_model(model_path("vww_96_int8"), load_target("host")).plan
    reference = LiteRt(model_content("vww_96_int8"), keep_all_tensors=True)
    generator = np.random.default_rng(5)
    seen: dict[str, list[np.ndarray]] = {}
    found = [each for each in dead_channels(plan) if each.constant]
    for _ in range(3):
        reference.run(generator.integers(-128, 128, (1, 96, 96, 3), dtype=np.int8))
        for each in found:
            seen.setdefault(each.tensor, []).append(
                reference.tensor(each.tensor).reshape(-1, each.num_channels)
            )
    assert len(found) > 10
    for each in found:
        values = np.concatenate(seen[each.tensor])
        is_same = (values == values[0]).all(axis=0)
        assert is_same[list(each.constant)].all(), each.layer
        assert not {*each.constant} & {*each.unread}
    assert plan.narrowed is not None
    dead = plan.narrowed.weight_bytes_before - plan.narrowed.weight_bytes
    assert sum(each.dead_bytes for each in dead_channels(plan)) == dead


def test_of_a_network_without_any_nothing_is_said() -> None:
    assert dead_channels(digits_plan()) == ()
    assert "never matter" not in text_of(report_view(digits_plan()))
    assert "dead_channels" not in report_document(digits_plan())
