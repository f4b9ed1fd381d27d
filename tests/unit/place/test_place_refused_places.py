"""BW702: places that no value can have. Each error says who asks for it, and what would do instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.module import Module
from bytewright.ir.types import VirtualDevice
from bytewright.ops.registry import OPERATIONS
from bytewright.place.plan_devices import plan_devices
from bytewright.target import Target, load_text
from support.parsing import parse_module
from support.three_devices import MOVER, POOLS, TEXT, three_devices

T = "tensor<4xi8>"


def annotated(value: str, device: str, scope: str = "none") -> Module:
    """`b` is where somebody wants a value: the input `x`, the constant `k`, or what is computed, `a`."""
    text = f"""module m
input %x : {T}
constant %k = data<4xi8> [1, 2, 3, 4]
func main(%x : {T}) -> (%c) {{
  %a : {T} = identity(%x)
  %b : {T} = on_device({value}) {{device="{device}", scope={scope}, fixed=false, free=false}}
  %c : {T} = add(%a, {"%k" if value == "%k" else "%b"})
}}
"""
    return parse_module(text, {}, OPERATIONS)


def refused(module: Module, target: Target | None = None) -> Diagnostic:
    """The first error; what is drawn to the same place has one as well."""
    with pytest.raises(CompileError) as caught:
        plan_devices(module, target or three_devices())
    (first, *others) = caught.value.diagnostics
    assert {diagnostic.code for diagnostic in (first, *others)} == {"BW702"}
    return first


def test_a_device_that_the_target_does_not_have() -> None:
    found = refused(annotated("%a", "nqu"))
    assert found.message == "on_device puts 'a' on device 'nqu', which the target does not have"
    assert found.notes == ("devices: cpu, dsp, npu, mover",)
    assert found.help == "did you mean 'npu'?"
    plan_devices(annotated("%a", "npu"), three_devices())


@pytest.mark.parametrize("pool", ["far", "side", "flash", "none_such"])
def test_a_pool_that_the_device_may_not_use(pool: str) -> None:
    found = refused(annotated("%a", "cpu", f'"global.{pool}"'))
    assert found.message == f"'a' cannot be in 'global.{pool}' on device 'cpu'"
    who, pools = found.notes
    assert who == f"on_device puts 'a' on device 'cpu' in 'global.{pool}'"
    assert pools == "pools that device 'cpu' may use: near, shared"
    for name in ("near", "shared"):
        plan_devices(annotated("%a", "cpu", f'"global.{name}"'), three_devices())


def test_a_device_without_any_pool_for_tensors() -> None:
    without = POOLS.replace('[[workspace]]\nname = "side"\nmemory = "side"\n', "")
    without = without.replace('[[workspace]]\nname = "far"\nmemory = "far"\n', "")
    found = refused(annotated("%a", "npu"), load_text(TEXT + MOVER + without, "three.toml"))
    assert found.message == "'a' cannot be in any pool for tensors on device 'npu'"
    assert found.notes[0] == "on_device puts 'a' on device 'npu'"
    assert found.help == "a [[workspace]] of target 'three' in a memory that 'npu' reaches"
    one = '[[workspace]]\nname = "far"\nmemory = "far"\n'
    plan_devices(annotated("%a", "npu"), load_text(TEXT + MOVER + without + one, "three.toml"))


def test_a_constant_has_no_place_of_its_own() -> None:
    found = refused(annotated("%k", "cpu"))
    assert found.message == "'k' is a constant, which has no place of its own: it is where parameters are"
    assert found.help == "--pin 'NAME=POOL' puts a constant into a pool"


def test_an_input_on_a_device_is_the_applications_where_that_reaches_some_of_its_memory() -> None:
    """The application is told which; an input that it could have nowhere for the device is refused."""
    module = annotated("%a", "cpu")
    (x,) = module.graph.parameters

    def on(device: str) -> Module:
        typed = replace(x, type=replace(x.type, place=VirtualDevice(device, None, None)))
        return replace(module, functions=(replace(module.graph, parameters=(typed,)),))

    found = plan_devices(on("dsp"), three_devices())
    assert [value.type.place.device for value in found.graph.parameters] == ["dsp"]
    with pytest.raises(CompileError) as caught:
        plan_devices(on("npu"), three_devices(joined=False))
    (diagnostic,) = caught.value.diagnostics
    message = "'x' is to be on device 'npu', which does not reach all memory that the application has"
    assert (diagnostic.code, diagnostic.message) == ("BW702", message)
    assert diagnostic.notes == ("the type of 'x' says @npu",)
    assert diagnostic.help == "--io workspace"
