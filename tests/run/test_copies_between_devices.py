"""Programs of kernels whose devices have no memory together: what passes between them is copied, in one hop or in two.

What is expected is computed by numpy alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright import ir
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.options import Options, parse_on_option
from bytewright.record.plan import Plan
from bytewright.target import Target, load_text
from support.parsing import parse_module
from support.reference import LiteRt
from support.tiers import some

Array = NDArray[np.int32]

ONE_DMA = """
[device.dma]
isa = "dma"
reach = ["ram", "flash", "first", "second", "between"]
"""
# Neither reaches what both cores have: a value goes through the memory of the CPU, or through one that is theirs.
TWO_DMAS = """
[device.dma]
isa = "dma"
reach = ["ram", "flash", "first"]
[device.mover]
isa = "dma"
reach = ["ram", "flash", "second", "between"]
"""
THROUGH_THEIRS = """
[device.dma]
isa = "dma"
reach = ["ram", "flash", "first", "between"]
[device.mover]
isa = "dma"
reach = ["between", "second"]
"""
TARGET = """
name = "apart"
default-device = "cpu"
[memory.ram]
size = "64KiB"
[memory.first]
size = "64KiB"
[memory.second]
size = "64KiB"
[memory.between]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "flash"]
stack = "ram"
[device.core1]
isa = "host"
reach = ["first", "flash"]
stack = "first"
max-stack-size = "4KiB"
[device.core2]
isa = "host"
reach = ["second", "flash"]
stack = "second"
max-stack-size = "4KiB"
{devices}
[[workspace]]
name = "ram"
memory = "ram"
[[workspace]]
name = "first"
memory = "first"
[[workspace]]
name = "second"
memory = "second"
[[workspace]]
name = "between"
memory = "between"
[[parameters]]
name = "flash"
memory = "flash"
"""
PROGRAM = """
module chain

input %x : tensor<32xi32>
output %y : tensor<32xi32>

constant steps : buffer<32xi32> = data<32xi32> [{steps}]

kernel chain_double(x : buffer<32xi32> r, y : buffer<32xi32> w) on core1 {{
  for i : i32 in 0 .. 32 {{
    y[i] = x[i] + x[i]
  }}
}}

kernel chain_add(x : buffer<32xi32> r, by : buffer<32xi32> r parameter, y : buffer<32xi32> w) on core2 {{
  for i : i32 in 0 .. 32 {{
    y[i] = x[i] + by[i]
  }}
}}

kernel chain_last(x : buffer<32xi32> r, s : buffer<32xi32> r, y : buffer<32xi32> w) on cpu {{
  for i : i32 in 0 .. 32 {{
    y[i] = x[i] - s[31 - i]
  }}
}}

kernel chain_grow(t : buffer<32xi32> rw) on core2 {{
  for i : i32 in 0 .. 32 {{
    t[i] = t[i] * 3
  }}
}}

entry main(x : buffer<32xi32> r, y : buffer<32xi32> w) on cpu {{
  allocate s : buffer<32xi32>
  allocate t : buffer<32xi32>
  call_extern chain_double(&x, &s)
  call_extern chain_add(&s, &steps, &t)
{middle}  call_extern chain_last(&t, &s, &y)
}}
""".format(steps=", ".join(str(7 * i - 50) for i in range(32)), middle="{middle}")
STEPS = 7 * np.arange(32, dtype=np.int32) - 50
X = (np.arange(32, dtype=np.int32) * 9973) % 4001 - 1777
CALL_OF_GROW = "call_extern chain_grow(&s)\n"
# What stands between, and s and t as it leaves them.
S, T = 2 * X, 2 * X + STEPS
MIDDLES: dict[str, tuple[str, Array, Array]] = {
    "chain": ("", S, T),
    "written": (f"  {CALL_OF_GROW}", 3 * S, T),
    "loop": (
        f"  for turn : i32 in 0 .. 3 {{\n    {CALL_OF_GROW}    call_extern chain_add(&s, &steps, &t)\n  }}\n",
        27 * S,
        27 * S + STEPS,
    ),
    "turns": (
        "  for turn : i32 in 0 .. 2 {\n    call_extern chain_double(&t, &s)\n"
        "    call_extern chain_add(&s, &steps, &t)\n  }\n",
        2 * (2 * T + STEPS),
        2 * (2 * T + STEPS) + STEPS,
    ),
}
TARGETS = {"one": ONE_DMA, "two": TWO_DMAS, "theirs": THROUGH_THEIRS}


def target(devices: str) -> Target:
    return load_text(TARGET.replace("{devices}", devices), "apart.toml")


def expected(middle: str) -> Array:
    _, s, t = MIDDLES[middle]
    return t - s[::-1]


def compiled(folder: Path, devices: str, middle: str, io: ir.Io) -> Path:
    module = parse_module(PROGRAM.replace("{middle}", MIDDLES[middle][0]), {}, {})
    write_bundle(compile_model(module, target(devices), Options(io=io)).files, folder / "b")
    return folder / "b"


CHAINS = [("one", "chain"), ("one", "loop"), ("two", "written"), ("two", "turns"), ("theirs", "chain")]


@pytest.mark.parametrize(
    ("devices", "middle", "io"),
    some([(*each, io) for each in CHAINS for io in (ir.Io.CALLER, ir.Io.WORKSPACE)], every=5),
)
def test_what_another_device_makes_is_copied_by_jobs(
    devices: str, middle: str, io: ir.Io, tmp_path: Path
) -> None:
    """It was BW301: 's' is touched by core1 and core2, which reach no pool together."""
    directory = compiled(tmp_path, TARGETS[devices], middle, io)
    plan: Plan = check_bundle(directory).plan
    copying = {"one": {"dma"}, "two": {"dma", "mover"}, "theirs": {"dma", "mover"}}[devices]
    assert {step.device for step in plan.steps} == {"cpu", "core1", "core2", *copying}
    (y,) = run_bundle(directory, [X]).outputs
    np.testing.assert_array_equal(y, expected(middle))
    (y,) = run_paranoid(directory, [X]).result.outputs
    np.testing.assert_array_equal(y, expected(middle))


def test_an_npu_that_streams_drive_copies_nothing() -> None:
    """Its driver refuses what is no stream, so each run ended with ERROR_DEVICE."""
    npu = ONE_DMA.replace('"dma"', '"ethos-u55-128"')
    module = parse_module(PROGRAM.replace("{middle}", ""), {}, {})
    with pytest.raises(CompileError) as refused:
        compile_model(module, target(npu), Options(io=ir.Io.WORKSPACE))
    assert {each.code for each in refused.value.diagnostics} == {"BW301"}
    both = compile_model(module, target(npu + TWO_DMAS.replace("device.dma", "device.engine"))).plan
    assert {step.device for step in both.steps} == {"cpu", "core1", "core2", "engine", "mover"}


DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"


@pytest.mark.parametrize(
    ("devices", "io", "between_cores"),
    some(
        [
            ("one", ir.Io.CALLER, ["dma"]),
            ("two", ir.Io.WORKSPACE, ["dma", "mover"]),
            ("theirs", ir.Io.CALLER, ["dma", "mover"]),
        ],
        every=3,
    ),
)
def test_what_operators_of_a_graph_pass_on_is_copied_by_jobs(
    devices: str, io: ir.Io, between_cores: list[str], tmp_path: Path
) -> None:
    """It was BW703 where no device reaches what both cores do."""
    on = tuple(map(parse_on_option, ("CONV_2D=core1", "DEPTHWISE_CONV_2D=core2")))
    compiled = compile_model(DIGITS, target(TARGETS[devices]), Options(io=io, on=on))
    write_bundle(compiled.files, tmp_path / "b")
    plan: Plan = check_bundle(tmp_path / "b").plan
    ran = [step.device for step in plan.steps]
    first, second = ran.index("core1"), ran.index("core2")
    assert ran[first + 1 : second] == between_cores
    x = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 1), dtype=np.int8)
    (wanted,) = LiteRt(DIGITS).run(x)
    np.testing.assert_array_equal(run_bundle(tmp_path / "b", [x]).outputs[0], wanted)
    np.testing.assert_array_equal(run_paranoid(tmp_path / "b", [x]).result.outputs[0], wanted)


def test_where_no_way_leads_it_is_said_what_a_device_would_have_to_reach() -> None:
    apart = TWO_DMAS.replace('"ram", "flash", "second", "between"', '"second", "between"')
    with pytest.raises(CompileError) as refused:
        compile_model(DIGITS, target(apart), Options(on=(parse_on_option("DEPTHWISE_CONV_2D=core2"),)))
    assert {(each.code, each.help) for each in refused.value.diagnostics} == {
        ("BW703", "a device of the target that copies and reaches ram or first, and second or between"),
        ("BW703", "a device of the target that copies and reaches second or between, and ram or first"),
    }
