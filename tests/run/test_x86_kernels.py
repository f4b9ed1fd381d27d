"""Kernels for x86-64's vectors: random operators and networks beside LiteRT and TensorFlow Lite Micro.

Where this machine has the instructions they run, by gcc and clang at each level; the plain C of the same bundle runs
everywhere, under sanitizers.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright import ir
from bytewright.compiler.pipeline import lower_model
from bytewright.compiler.run_passes import Runner
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.frontends.registry import import_model
from bytewright.ir.walk import allocations
from bytewright.lower.isa.registry import INSTRUCTION_SETS
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Optimize, Options
from bytewright.target import load_target
from bytewright.target.isa.find import require_isa
from bytewright.target.isa.this_machine import this_machine
from support.against_reference import assert_equals_reference, drawn
from support.instruction_program import InstructionProgram
from support.matrix_products import random_product
from support.random_models import RandomModel, operator_models
from support.random_networks import (
    random_convolution,
    random_elements,
    random_function,
    random_network,
    random_reduction,
    random_transposed,
)
from support.shared_models import new_folder
from support.tiers import covering, some
from tflite_writer import OPTIONAL, ModelBuilder

# A target whose processors have the set.
TARGETS = {"avx512vnni": "x86-64-v4-vnni", "avx2": "x86-64-v3"}
SETS = [each for each in INSTRUCTION_SETS if each.name in TARGETS]
COMPILERS = ("gcc", "clang")
LEVELS = ("-O1", "-O2", "-O3", "-Os")
SANITIZERS = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def flags_for(target: str) -> tuple[str, ...]:
    """What makes a compiler generate code for a target's processors; skips the test where this machine is none."""
    isa = require_isa(target)
    if not this_machine().executes(isa) or this_machine().lacks(isa):
        pytest.skip(f"this machine does not have what {target} needs")
    return isa.flags


def models(dtype: str, first: int) -> list[RandomModel]:
    """Convolutions of hard shapes, fully connected layers, pools, means, and networks with residuals."""
    return [
        *(random_convolution(number, dtype) for number in some(range(first, first + 12), every=4)),
        *(random_reduction(number, dtype) for number in some(range(first, first + 12), every=4)),
        *(random_elements(number) for number in some(range(first, first + 12), every=4) if dtype == "int8"),
        *(random_function(number) for number in some(range(first, first + 12), every=4) if dtype == "int8"),
        *(random_product(number, dtype) for number in some(range(first, first + 12), every=4)),
        *(random_transposed(number, dtype) for number in some(range(first, first + 12), every=4)),
        *some(drawn(operator_models("FULLY_CONNECTED", dtype), 4, first), every=4),
        *(random_network(number, dtype, size=8) for number in some(range(first, first + 4), every=4)),
    ]


def instruction_program(set_name: str, seed: int) -> InstructionProgram:
    """Each instruction of a set alone; the seed decides its inputs."""
    (found,) = (each for each in SETS if each.name == set_name)
    return InstructionProgram(found.instructions, found.operands, seed=seed)


@cache
def instruction_bundle(set_name: str) -> Path:
    """The program compiled, which is the same for all seeds."""
    folder = new_folder()
    return bytewright.compile(instruction_program(set_name, 0).write(folder)).write(folder / "m")


@pytest.mark.parametrize(
    ("instruction_set", "compiler", "level"),
    covering(SETS, COMPILERS, LEVELS),
    ids=lambda each: getattr(each, "name", each),
)
def test_each_instruction(instruction_set, compiler: str, level: str) -> None:  # type: ignore[no-untyped-def]
    flags = flags_for(TARGETS[instruction_set.name])
    program = instruction_program(instruction_set.name, LEVELS.index(level))
    options = BuildOptions(flags=(level, *flags), compiler=compiler)
    bundle = instruction_bundle(instruction_set.name)
    found = run_bundle(bundle, list(program.inputs.values()), options=options).outputs
    for name, output, expected in zip(program.outputs, found, program.evaluated(), strict=True):
        assert np.array_equal(output, expected), name


@pytest.mark.parametrize(
    ("target", "dtype", "compiler", "level"),
    covering([TARGETS[each.name] for each in SETS], ["int8", "int16", "float32"], COMPILERS, LEVELS),
)
def test_operators_on_this_machine(
    tmp_path: Path, target: str, dtype: str, compiler: str, level: str
) -> None:
    first = 40 * LEVELS.index(level) + (20 if compiler == "clang" else 0)
    assert_equals_reference(
        models(dtype, first), tmp_path, target=target, flags=(level, *flags_for(target)), compiler=compiler
    )


@pytest.mark.parametrize("target", [TARGETS[each.name] for each in SETS])
def test_operators_of_tflm(tmp_path: Path, target: str) -> None:
    networks = [random_network(number, "int8", size=8, is_tflm=True) for number in some(range(300, 310), 2)]
    flags = ("-O2", *flags_for(target))
    assert_equals_reference(networks, tmp_path, target=target, numerics=Numerics.TFLM, flags=flags)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("target", [TARGETS[each.name] for each in SETS])
def test_plain_c_of_the_same_kernels(tmp_path: Path, target: str, dtype: str) -> None:
    # Compilers take long for what many lanes are in plain C, optimised or not.
    assert_equals_reference(models(dtype, 200), tmp_path, target=target, flags=SANITIZERS, every=4)


@pytest.mark.parametrize("target", [TARGETS[each.name] for each in SETS])
def test_nothing_beside_the_buffers_is_touched(tmp_path: Path, target: str) -> None:
    flags = (*SANITIZERS, *flags_for(target))
    assert_equals_reference(models("int8", 240), tmp_path, target=target, flags=flags, every=2)


def scratch_bytes(path: Path, name: str, options: Options) -> dict[str, int]:
    """What the kernels of a model allocate, by names of buffers."""
    target = load_target(name)
    module = lower_model(import_model(path, target, options).modules, target, options, {}, Runner(target))
    allocated = (each for kernel in module.kernels for each in allocations(kernel))
    return {each.buffer.name: ir.size_bytes(each.buffer) for each in allocated}


@pytest.mark.parametrize("target", [TARGETS[each.name] for each in SETS])
@pytest.mark.parametrize("shape", [(2, 4096, 64), (300, 1100, 40)])
def test_long_columns_are_copied_by_stretches(
    tmp_path: Path, target: str, shape: tuple[int, int, int]
) -> None:
    """It was 512 KiB of 4,096 elements by 32 columns; sums of as many rows as wait for the next stretch come to it."""
    (height, depth, width), builder = shape, ModelBuilder()
    x, y = builder.tensor("x", (height, depth), "float32"), builder.tensor("y", (width, depth), "float32")
    z = builder.tensor("z", (height, width), "float32")
    builder.operator("BATCH_MATMUL", [x, y], [z], adj_x=False, adj_y=True)
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.build([x, y], [z]))
    sizes = scratch_bytes(path, target, Options())
    assert 0 < max(size for name, size in sizes.items() if "columns" in name) <= 32 * 1024
    columns = {"x86-64-v3": 32, "x86-64-v4-vnni": 64}[target]
    assert max(size for name, size in sizes.items() if "sums" in name) <= min(height, 256) * columns * 4
    model = RandomModel(path.read_bytes(), f"{shape}", ((height, depth), (width, depth)), "float32")
    assert_equals_reference(
        [model], tmp_path / "m", target=target, flags=("-O2", *flags_for(target)), num_inputs=1
    )


def test_depthwise_layers_for_size(tmp_path: Path) -> None:
    """What AVX-512 copies of few channels is narrow, and the results are the same."""
    target = TARGETS["avx512vnni"]
    models = drawn(operator_models("DEPTHWISE_CONV_2D", "int8"), 10, 70)
    small = Options(optimize=Optimize.SIZE)
    assert_equals_reference(models, tmp_path / "c", target=target, flags=SANITIZERS, every=5, options=small)
    flags = ("-O2", *flags_for(target))
    assert_equals_reference(models, tmp_path / "m", target=target, flags=flags, options=small)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4-vnni", "aarch64", "rv64gcv", "mps3-an547"])
def test_depthwise_layers_of_floats_over_int8_weights_for_size(target: str, tmp_path: Path) -> None:
    """As weights alone are quantised: they stay int8 where size counts, and no set widens them to floats in lanes."""
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 5, 4, 19), "float32") for name in "xy")
    values = np.random.default_rng(1).integers(-127, 128, (1, 3, 3, 19)).astype(np.int8)
    weights = builder.tensor("weights", values.shape, "float32")
    builder.operator("DEQUANTIZE", [builder.constant("stored", values, scale=0.01)], [weights])
    bias = builder.constant("bias", np.linspace(-1, 1, 19, dtype=np.float32))
    builder.operator("DEPTHWISE_CONV_2D", [x, weights, bias], [y], padding="SAME", depth_multiplier=1)
    model = RandomModel(builder.build([x], [y]), target, ((1, 5, 4, 19),), "float32")
    assert_equals_reference([model], tmp_path, target=target, options=Options(optimize=Optimize.SIZE))


@pytest.mark.parametrize(
    ("channels", "optimize", "width"),
    [
        (8, Optimize.BALANCED, 64),
        (8, Optimize.SIZE, 16),
        (40, Optimize.SIZE, 48),
        (200, Optimize.BALANCED, 64),
        (200, Optimize.SIZE, 64),
    ],
)
def test_depthwise_layers_copy_up_to_64_channels_of_a_row(
    tmp_path: Path, channels: int, optimize: Optimize, width: int
) -> None:
    """Three rows of ten columns and a pad at each end, a whole number of vectors."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 10, 10, channels), "int8", scale=0.5)
    y = builder.tensor("y", (1, 10, 10, channels), "int8", scale=0.5)
    weights = builder.constant("w", np.full((1, 3, 3, channels), 9, np.int8), scale=0.1)
    builder.operator("DEPTHWISE_CONV_2D", [x, weights, OPTIONAL], [y], padding="SAME", depth_multiplier=1)
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.build([x], [y]))
    sizes = scratch_bytes(path, TARGETS["avx512vnni"], Options(optimize=optimize))
    (rows,) = [size for name, size in sizes.items() if "rows" in name]
    assert rows == 3 * -(-12 * width // 64) * 64
