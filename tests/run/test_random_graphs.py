"""Random graphs with functions, conditionals and loops, compiled, checked, watched, run: C computes what numpy does."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.frontends.text.constants_file import constants_archive
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.ir.text.modules import named_constants, print_module
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.c_program import WARNINGS
from support.compilers import QUICK, host_build
from support.evaluate.evaluate_graph import evaluate_graph
from support.random_graphs import random_graph
from support.tiers import THOROUGH, some

pytestmark = [pytest.mark.run, pytest.mark.slow]

SEEDS = range(60) if THOROUGH else some(range(8), every=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_c_of_a_graph_computes_what_its_functions_say(seed: int, tmp_path: Path) -> None:
    graph = random_graph(Random(seed), has_images=seed % 4 > 1)
    inputs = graph.inputs(3)
    expected = [graph.expected(run) for run in inputs]
    text = tmp_path / "random.bw"
    text.write_text(print_module(graph.module))
    text.with_suffix(".npz").write_bytes(constants_archive(named_constants(graph.module)))
    for io in (Io.CALLER, Io.WORKSPACE):
        folder = tmp_path / io.value
        write_bundle(compile_model(text, load_target("host"), Options(io=io)).files, folder)
        check_bundle(folder)
        found = run_batch(folder, inputs, options=host_build(flags=WARNINGS, sanitize=True)).outputs
        watched = run_paranoid(folder, inputs[0], options=QUICK).result.outputs
        for number, own in enumerate((*found, watched)):
            run = number % len(inputs)
            evaluated = evaluate_graph(graph.module, inputs[run])
            for value, wanted, other in zip(own, expected[run], evaluated, strict=True):
                np.testing.assert_array_equal(value, wanted, strict=True)
                np.testing.assert_array_equal(value, other, strict=True)
