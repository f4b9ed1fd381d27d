"""Many workspace pools: the steps stay short, and a paranoid run watches each pool."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.paranoid import run_paranoid
from bytewright.inspect.check import check_bundle
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from bytewright.target.registry import load_target
from support.ir_program import read_module

TYPE = 'buffer<8xi32, "{}", align=4>'


def chain(count: int) -> str:
    """A copy from tensor to tensor, each in a pool of its own."""
    ports = f"x : {TYPE.format('global')} r activation, y : {TYPE.format('global')} w activation"
    names = ["x", *(f"t{n}" for n in range(count)), "y"]
    lines = [f"allocate t{n} : {TYPE.format(f'global.p{n}')}" for n in range(count)]
    lines += [f"call_extern m_copy(&{a}, &{b})" for a, b in pairwise(names)]
    kernel = f"kernel m_copy({ports}) on cpu {{\nfor i : i32 in 0 .. 8 {{ y[i] = x[i] }}\n}}\n"
    tensors = "input %x : tensor<8xi32>\noutput %y : tensor<8xi32>\n"
    return f"module m\n{tensors}{kernel}entry main({ports}) on cpu {{\n" + "\n".join(lines) + "\n}\n"


@pytest.mark.parametrize("count", [8, 9, 24])
def test_steps_name_few_pools_or_one_list(count: int, tmp_path: Path) -> None:
    pools = tuple(parse_pool_option(f"p{n}=1KiB@ram") for n in range(count))
    target = apply_overrides(load_target("host"), Overrides(workspace=pools))
    files = compile_model(read_module(chain(count)), target).files
    source = bytes(files["src/m.c"]).decode()
    steps = re.findall(r"^ +M_STEP\(([^;]*?)\);", source, re.MULTILINE)
    assert len(steps) == count + 2
    if count > 8:
        assert steps == [f"{n}, M_STEP_WORKSPACES" for n in range(count + 2)]
    else:
        assert steps == [", ".join([str(n), *(f"p{k}" for k in range(count))]) for n in range(count + 2)]
    folder = tmp_path / "bundle"
    write_bundle(files, folder)
    check_bundle(folder)
    run = run_paranoid(folder, [np.arange(8, dtype=np.int32)])
    assert run.result.outputs[0].tolist() == list(range(8))
    assert run.num_steps == count + 1
