"""What it costs on the Cortex-M55 that layers run row by row: instructions and code, beside tensors whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.run import run_bundle
from bytewright.options import Options, Rows
from bytewright.target.model import Role
from bytewright.target.registry import load_target
from support.shared_models import AD01, KWS, RESNET8, VWW, model_path, random_inputs

pytestmark = [pytest.mark.board, pytest.mark.slow]


@pytest.mark.parametrize("name", [KWS, VWW, RESNET8, AD01])
def test_rows_add_few_instructions_and_little_code(name: str, tmp_path: Path) -> None:
    instructions: list[int] = []
    code_bytes: list[int] = []
    workspaces: list[int] = []
    (inputs,) = random_inputs(name, 1, seed=3)
    for rows in (Rows.OFF, Rows.AUTO):
        compiled = compile_model(model_path(name), load_target("mps3-an547"), Options(rows=rows))
        write_bundle(compiled.files, tmp_path / rows.value)
        result = run_bundle(tmp_path / rows.value, inputs, on="qemu")
        assert result.instructions is not None
        assert result.details.flash_bytes is not None
        instructions.append(result.instructions)
        parameters = sum(pool.used_bytes for pool in compiled.plan.pools_of(Role.PARAMETERS))
        code_bytes.append(result.details.flash_bytes - parameters)
        workspaces.append(compiled.plan.workspace_bytes)
    assert instructions[1] <= 1.03 * instructions[0]
    assert code_bytes[1] <= 1.10 * code_bytes[0]
    assert (workspaces[1] < workspaces[0]) == (name in (VWW, RESNET8))
