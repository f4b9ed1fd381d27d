"""Names that `explain` takes: of the plan, the model's file and outputs; whole, shortened, begun, or a pattern."""

from __future__ import annotations

from dataclasses import replace
from unicodedata import normalize

import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.record.buffers import PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.report.find_named import find_named
from support.digits_bundle import digits_plan
from support.plan_bundles import BUNDLES

LONG = ";".join(f"network/block_{number}/Conv2D" for number in range(40))
ODD = {
    "conv2d_0/out": "a b",
    "depthwise_conv2d_1/out": "net[1]/relu;net[1]/conv",
    "add_3/out": "net*?/Übung",
    "conv2d_4/out": LONG,
    "average_pool2d_5/out": "</script>'\"\\",
}


def odd() -> Plan:
    """The example with tensors of names that other files have."""
    plan = digits_plan()
    buffers = {name: replace(b, tensor=ODD.get(name, b.tensor)) for name, b in plan.buffers.items()}
    return replace(plan, buffers=buffers)


def found(plan: Plan, name: str) -> str:
    return find_named(plan, name).name


def refused(plan: Plan, name: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        find_named(plan, name)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW204"
    return diagnostic


def test_tensors_have_the_names_of_the_model_whatever_these_are() -> None:
    assert len(LONG) > 900
    for name, tensor in ODD.items():
        assert found(odd(), tensor) == name
        assert found(odd(), tensor[:-1]) == name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"{LONG[:32]}...{LONG[-32:]}", "conv2d_4/out"),
        (f"'{LONG[:32]}...{LONG[-32:]}'", "conv2d_4/out"),
        ("net[1]*", "depthwise_conv2d_1/out"),
        ("net[1]?relu*conv", "depthwise_conv2d_1/out"),
        ("net[^0]*", ""),
        ("*[ÜU]bung", "add_3/out"),
        ("n*bung", "add_3/out"),
        (normalize("NFD", "net*?/Übung"), "add_3/out"),
        ("*script>*", "average_pool2d_5/out"),
        ("softmax_8/exp", "softmax_8/exponentials"),
        ("*/exponentials", "softmax_8/exponentials"),
        ("softmax_8", "digits_softmax_8"),
        ("digits_conv2d_4", "digits_conv2d_4"),
        ("4 (CONV_2D)", "digits_conv2d_4"),
        ("2 (CONV_2D) + 3 (ADD)", "digits_conv2d_2"),
        ("3 (ADD)", "digits_conv2d_2"),
        ("*(SOFTMAX)", "digits_softmax_8"),
    ],
)
def test_other_ways_to_name_one(written: str, meant: str) -> None:
    if meant:
        assert found(odd(), written) == meant
    else:
        assert "has no buffer" in refused(odd(), written).message


def test_what_may_be_several_is_refused_with_some_of_them_and_their_number() -> None:
    plan = odd()
    weights = [name for name in plan.buffers if name.endswith("/weights")]
    diagnostic = refused(plan, "*/weights")
    assert diagnostic.message == (
        f"'*/weights' may be any of {len(weights)} buffers and kernels of model 'digits'"
    )
    assert [note.split("'")[1] for note in diagnostic.notes] == weights
    assert diagnostic.help == f"did you mean {' or '.join(map(repr, weights[:3]))}?"
    whole = refused(plan, "*")
    things = len(plan.buffers) + len({step.kernel for step in plan.steps})
    assert f"any of {things} buffers" in whole.message
    assert whole.notes[-1] == f"and {things - 6} more"
    convolutions = [step.kernel for step in plan.steps if "(CONV_2D)" in " ".join(step.operators)]
    listed = refused(plan, "*(CONV_2D)*").notes
    assert listed == tuple(f"kernel '{name}'" for name in convolutions)


def test_two_buffers_of_one_tensor_are_several() -> None:
    plan = odd()
    names = ("conv2d_0/out", "add_3/out")
    twice = {**plan.buffers, **{name: replace(plan.buffers[name], tensor="same") for name in names}}
    assert set(refused(replace(plan, buffers=twice), "same").notes) == {f"'{n}': 'same'" for n in names}


@pytest.mark.parametrize("name", ["", "zzz", "*zzz*", "[", "[]", "...", "a" * 900, "\x00", "conv2d_0/oot"])
def test_what_names_nothing_has_the_nearest_names_or_the_count(name: str) -> None:
    diagnostic = refused(odd(), name)
    if name == "...":
        assert "may be any of" in diagnostic.message
        return
    assert len(diagnostic.message) < 200
    if name == "conv2d_0/oot":
        assert "did you mean 'conv2d_0/out'" in (diagnostic.help or "")
    else:
        assert "it has buffers, " in "".join(diagnostic.notes) or "did you mean" in (diagnostic.help or "")


@pytest.mark.parametrize("kind", BUNDLES)
def test_every_name_of_a_plan_is_found(kind: str) -> None:
    plan = BUNDLES[kind]().plan
    for name in plan.buffers:
        assert found(plan, name) == name
    for step in plan.steps:
        assert found(plan, step.kernel) == step.kernel


def test_buffers_of_several_entries_are_told_apart() -> None:
    plan = BUNDLES["entries"]().plan
    assert found(plan, "classify/t") == "classify/t"
    assert isinstance(find_named(plan, "ring"), PlannedBuffer)
    notes = refused(plan, "*/t").notes
    assert notes == ("'push/t'", "'classify/t'")
