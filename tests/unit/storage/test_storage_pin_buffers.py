"""--pin: buffers whose names match go to a pool, or the compile says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.base.option import OptionSyntaxError
from bytewright.compiler.pipeline import compile_model, plan_model
from bytewright.diagnostics import CompileError
from bytewright.options import Options, Pin, parse_pin_option
from bytewright.target import Overrides, apply_overrides, load_target
from bytewright.target.options import parse_pool_option
from support.ir_program import read_module

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"


def _compiled(*pins: str):
    overrides = Overrides(
        workspace=tuple(parse_pool_option(text) for text in ("dtcm=8KiB", "isram=8KiB")),
        parameters=tuple(parse_pool_option(text) for text in ("flash", "ddr=64KiB")),
    )
    target = apply_overrides(load_target("mps3-an547"), overrides)
    return compile_model(DIGITS, target, Options(pins=tuple(parse_pin_option(pin) for pin in pins)))


def _places(document: dict) -> dict[str, str]:
    return {buffer["name"]: buffer["place"]["name"] for buffer in document["buffers"]}


def test_a_pinned_tensor_and_a_pinned_constant_move() -> None:
    free, pinned = _compiled(), _compiled("conv2d_0/out=isram", "conv2d_0/weights=ddr")
    assert _places(free.document)["conv2d_0/out"] == "dtcm"
    assert _places(free.document)["conv2d_0/weights"] == "flash"
    assert _places(pinned.document)["conv2d_0/out"] == "isram"
    assert _places(pinned.document)["conv2d_0/weights"] == "ddr"
    reasons = {buffer["name"]: buffer["reason"] for buffer in pinned.document["buffers"]}
    assert "--pin 'conv2d_0/out=isram'" in reasons["conv2d_0/out"]


def test_a_pattern_pins_every_match() -> None:
    places = _places(_compiled("*/out=isram").document)
    tensors = [name for name, pool in places.items() if pool in ("dtcm", "isram")]
    assert tensors
    assert all(places[name] == "isram" for name in tensors if name.endswith("/out"))


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        (("conv2d_0/out=nowhere",), "names the pool 'nowhere', which does not exist"),
        (("nothing*=dtcm",), "matches no tensor or scratch of the workspace"),
        (
            ("conv2d_0/out=dtcm", "conv2d_0*=isram"),
            "contradicts --pin 'conv2d_0/out=dtcm': 'conv2d_0/out' has the scope global.dtcm already",
        ),
    ],
)
def test_pins_that_cannot_be_kept(pins: tuple[str, ...], message: str) -> None:
    with pytest.raises(CompileError, match="BW204") as caught:
        _compiled(*pins)
    assert message in str(caught.value)


def test_a_pinned_pool_that_is_too_small() -> None:
    overrides = Overrides(workspace=(parse_pool_option("dtcm=64"), parse_pool_option("isram")))
    target = apply_overrides(load_target("mps3-an547"), overrides)
    with pytest.raises(CompileError, match="BW301") as caught:
        compile_model(DIGITS, target, Options(pins=(Pin("conv2d_0/out", "dtcm"),)))
    assert "pool 'dtcm' has 64 B, at least 384 B are needed" in str(caught.value)


@pytest.mark.parametrize("text", ["conv", "=dtcm", "conv="])
def test_malformed(text: str) -> None:
    with pytest.raises(OptionSyntaxError):
        parse_pin_option(text)


MODULE = """module m
input %x : tensor<8xi8>
output %y : tensor<8xi8>
kernel k(x : buffer<8xi8, "global", align=1> r activation, y : buffer<8xi8, "global", align=1> w activation) on cpu {
  allocate s : buffer<8xi8, "global", align=1> {candidate_memory_pools=("isram",)}
  for i : i32 in 0 .. 8 { s[i] = x[i] }
  for j : i32 in 0 .. 8 { y[j] = s[j] }
}
entry main(
    x : buffer<8xi8, "global", align=1> r activation, y : buffer<8xi8, "global", align=1> w activation
) on cpu {
  allocate t : buffer<8xi8, "global.workspace", align=1> {candidate_memory_pools=("isram", "dtcm")}
  call_extern k(&x, &t)
  call_extern k(&t, &y)
}
"""


@pytest.mark.parametrize(
    ("name", "pool", "pools"), [("y/s", "dtcm", "isram"), ("t", "ddr_workspace", "isram, dtcm")]
)
def test_a_pin_against_a_list_of_candidates_names_both(name: str, pool: str, pools: str) -> None:
    overrides = Overrides(workspace=tuple(map(parse_pool_option, ("dtcm", "isram", "ddr_workspace@ddr"))))
    target = apply_overrides(load_target("mps3-an547"), overrides)
    module = read_module(MODULE)
    with pytest.raises(CompileError, match="BW204") as caught:
        plan_model(module, target, Options(pins=(Pin(name, pool),)))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == (
        f"--pin '{name}={pool}' contradicts the program: the candidate_memory_pools of '{name}' are {pools}"
    )
    fits = plan_model(module, target, Options(pins=(Pin(name, "isram"),)))
    assert fits.trial.workspace.placement_of[name].pool == "isram"


def test_a_pin_against_an_offset_of_the_program_names_both() -> None:
    """What a text pins itself is a pin like the user's, and no bug where both speak."""
    program = MODULE.replace('("isram", "dtcm")', '("isram",), pinned_offset=64')
    target = apply_overrides(load_target("mps3-an547"), Overrides(workspace=(parse_pool_option("isram"),)))
    with pytest.raises(CompileError, match="BW204") as caught:
        plan_model(read_module(program), target, Options(pins=(Pin("t", "isram", offset=128),)))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "--pin 't=isram+128' contradicts the program: 't' is at offset 64 already"
    kept = plan_model(read_module(program), target, Options(pins=(Pin("t", "isram", offset=64),)))
    assert kept.trial.workspace.placement_of["t"].offset == 64
