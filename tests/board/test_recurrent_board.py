"""LSTM layers of integers on an emulated Cortex-M55, whose sums are vectors, and a Cortex-M4: as the references."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright import ir
from bytewright.execute.build import BuildOptions
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.run import run_batch, run_bundle
from bytewright.frontends.tflite.importer import import_content
from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.text.modules import print_module
from bytewright.lower.isa.mve.lanes import LANES, UNIT
from bytewright.ops.arithmetic import fixedpoint16
from bytewright.ops.arithmetic.numerics import Numerics
from support.recurrent_models import lstm_model
from support.reference import LiteRt, TfLiteMicro
from support.tiers import some

pytestmark = pytest.mark.board
TARGET = "mps3-an547"
TEMPLATES = {TARGET: "mve.lstm", "mps2-an386": "dsp.lstm"}
LEAST = 4  # elements of a sum, of which there are vectors
# Samples, steps, elements of the input and units: multiples of what a vector holds, less, and more.
SIZES = [(1, 2, 40, 64), (2, 3, 4, 5), (1, 2, 17, 9), (2, 1, 3, 6), (1, 1, 260, 16)]
STEPS, DEPTH, UNITS = 5, 40, 64
MOST_A_PRODUCT = 0.6  # on the M55; 4.29 element after element, of int16 1.13 with gates so
GATES = np.arange(-(2**15), 2**15)


@pytest.mark.parametrize(("target", "sizes"), some(product(TEMPLATES, SIZES), every=4), ids=str)
@pytest.mark.parametrize("is_wide", [False, True], ids=["int8", "int16"])
def test_a_layer_equals_its_reference_run_after_run(
    tmp_path: Path, is_wide: bool, target: str, sizes: tuple[int, int, int, int]
) -> None:
    seed = 9 if is_wide and sizes == SIZES[0] else 7  # biases of 64 bits are another kernel's
    content = lstm_model(seed, form="int16" if is_wide else "int8", sizes=sizes)
    path, random = tmp_path / "lstm.tflite", np.random.default_rng(0)
    path.write_bytes(content)
    numerics = Numerics.TFLM if is_wide else Numerics.LITERT_REF
    kind = import_content(content, "lstm.tflite", numerics=numerics).inputs[0].type
    ends, shape = kind.dtype.bounds, kind.fixed_shape
    batch = [random.integers(*ends, shape, endpoint=True).astype(kind.dtype.numpy) for _ in range(3)]
    model = TfLiteMicro(content) if is_wide else LiteRt(content)
    wanted = [np.array(model.run(x)[0]) for x in batch]
    compiled = bytewright.compile(path, target=target, numerics=numerics.value)
    if min(sizes[2:]) >= LEAST and (seed == 9 or not is_wide):
        assert TEMPLATES[target] in {step.template for step in compiled.plan.steps}
    folder = compiled.write(tmp_path / "m")
    for compiler in (None, "clang"):
        options = BuildOptions(compiler=compiler)
        found = run_batch(folder, [[x] for x in batch], on="qemu", keep_state=True, options=options).outputs
        for (y,), beside in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(y, beside)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(("form", "seed"), [("int8", 1), ("int16", 9)])
def test_what_a_product_costs(tmp_path: Path, compiler: str, form: str, seed: int) -> None:
    """All instructions, those of the gates too, over the products of weights; of int16 biases that fit 32 bits."""
    path, sizes = tmp_path / "lstm.tflite", (1, STEPS, DEPTH, UNITS)
    path.write_bytes(lstm_model(seed, form=form, one_hidden_scale=form == "int8", sizes=sizes))
    numerics = "litert-ref" if form == "int8" else "tflm"
    folder = bytewright.compile(path, target=TARGET, numerics=numerics).write(tmp_path / "m")
    options = BuildOptions(compiler=None if compiler == "gcc" else compiler)
    profile = profile_bundle(folder, seed=1, on="qemu", options=options)
    cost = sum(line.cost.amount for line in profile.steps)
    assert 0 < cost / (STEPS * 4 * UNITS * (DEPTH + UNITS)) <= MOST_A_PRODUCT


def test_gates_are_gemmlowps_for_every_argument(tmp_path: Path) -> None:
    """On the board's own vectors, by both compilers."""
    wanted = {"logistic": fixedpoint16.logistic(GATES)}
    wanted |= {f"tanh{bits}": fixedpoint16.tanh(GATES, bits) for bits in range(7)}
    body = BodyBuilder()
    gates, *outputs = (ir.Buffer(name, GATES.shape, ir.DType.I16, 16) for name in ("gates", *wanted))
    with body.for_("first", 0, len(GATES) // LANES) as number:
        first = number * LANES
        value, bits = UNIT.register(body, "value"), UNIT.register(body, "bits")
        body.execute(UNIT.loads[ir.DType.I16], value, region(gates, first))
        for integer_bits, output in enumerate(outputs, start=-1):
            found = UNIT.register(body, "found")
            if output is outputs[0]:
                body.execute(UNIT.functions["logistic_15"], found, value)
            else:
                body.execute(UNIT.broadcasts[ir.DType.I32], bits, ir.const(integer_bits))
                body.execute(UNIT.functions["tanh_15"], found, value, bits)
            body.execute(UNIT.stores[ir.DType.I16], region(output, first), found)
    access = [ir.Access.READ] + [ir.Access.WRITE] * len(outputs)
    pairs = list(zip((gates, *outputs), access, strict=True))
    kernel = ir.PrimFunc(
        "k", tuple(ir.BufferParameter(*pair, scope=ir.GLOBAL) for pair in pairs), body.finish()
    )
    body = BodyBuilder()
    body.call("k", *(region(buffer) for buffer, _ in pairs))
    ports = (ir.BufferParameter(*pair, scope=ir.WORKSPACE) for pair in pairs)
    entry = ir.PrimFunc("main", tuple(ports), body.finish())
    path = tmp_path / "m.bw"
    path.write_text(print_module(ir.Module("m", kernels=(kernel,), entries=(entry,))))
    folder = bytewright.compile(path, target=TARGET).write(tmp_path / "m")
    for compiler in (None, "clang"):
        options = BuildOptions(compiler=compiler)
        found = run_bundle(folder, [GATES.astype(np.int16)], on="qemu", options=options).outputs
        for (name, values), output in zip(wanted.items(), found, strict=True):
            np.testing.assert_array_equal(output, values, err_msg=name)
