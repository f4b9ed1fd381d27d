"""Models of one device on the mps2-an521: core 0 runs them like any board, and core 1 sleeps."""

from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch, run_bundle
from bytewright.target.registry import load_target
from support import shared_models as models
from support.reference import LiteRt
from support.tiny_bundle import ADD, COUNT, write_tiny_bundle

pytestmark = pytest.mark.board

BOARD = "mps2-an521"
X = (np.arange(COUNT) * 16 - 128).astype(np.int8).reshape(1, COUNT)


@pytest.mark.parametrize("name", [models.KWS, models.VWW])
def test_models_of_one_device_are_exact_and_counted(name: str) -> None:
    folder = models.bundle(name, load_target(BOARD))
    batch = models.random_inputs(name, 2, seed=5)
    first, second = (run_batch(folder, batch, on="qemu") for _ in range(2))
    reference = LiteRt(models.model_content(name, False))
    for inputs, outputs in zip(batch, first.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])
    assert first.instructions == second.instructions
    assert 0 < (first.stack_bytes or 0) <= 7168


@pytest.mark.parametrize(
    ("statement", "message", "address"),
    [
        # Core 0 was made without DSP extension and floating-point unit: `smulbb r3, r1, r2` and `vmov s0, s1`.
        (".inst.w 0xfb11f302", "undefined instruction", ""),
        (".inst.w 0xeeb00a60", "no coprocessor or floating-point unit", ""),
        # The shared memory as core 1 sees it, and a message unit.
        ("ldr r3, =0x20010000\\n ldr r3, [r3]", "memory protection unit forbids", "0x20010000"),
        ("ldr r3, =0x50003000\\n ldr r3, [r3]", "memory protection unit forbids", "0x50003000"),
    ],
)
def test_what_a_run_on_core_0_may_not_do(tmp_path: Path, statement: str, message: str, address: str) -> None:
    text = f'    __asm__ volatile("{statement}\\n b 0f\\n .ltorg\\n0:" ::: "r3");\n{ADD}'
    write_tiny_bundle(tmp_path, target=BOARD, statements=text)
    with pytest.raises(CompileError) as caught:
        run_bundle(tmp_path, [X], on="qemu")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW502"
    assert message in diagnostic.message
    assert f"address {address}" in "\n".join(diagnostic.notes) or not address
