"""Random networks of several types, with states, branches and loops, equal LiteRT under each option and target.

What a run leaves in its state is saved after it and restored before the next. Other networks run each day;
BYTEWRIGHT_TESTS=thorough runs many under all options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model, plan_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import NOTHING_ASKED, Optimize, Options, Rows
from bytewright.target import Target, load_text
from bytewright.target.isa.find import require_isa
from bytewright.target.isa.this_machine import this_machine
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference, differences
from support.compilers import QUICK
from support.many_models import SANITIZERS, Job, build
from support.random_mixed import mixed_network
from support.random_models import RandomModel
from support.reference import LiteRt
from support.tiers import THOROUGH, some, turn

COUNT = 60 if THOROUGH else 4
MOST_BUFFERS = 16
SANITIZED = ("-O0", *SANITIZERS)
TWO_POOLS = """
name = "narrow"
default-device = "cpu"
memory.a.size = "{size_bytes}"
memory.b.size = "{size_bytes}"
memory.rest.size = "64KiB"
memory.rom = {{ size = "4MiB", access = "r" }}
workspace = [{{ name = "a", memory = "a" }}, {{ name = "b", memory = "b" }}]
state = [{{ name = "kept", memory = "rest" }}]
parameters = [{{ name = "rodata", memory = "rom" }}]

[device.cpu]
isa = "host"
reach = ["a", "b", "rest", "rom"]
stack = "rest"
max-stack-size = "16KiB"
"""


@dataclass(frozen=True)
class Cell:
    """What networks are compiled with."""

    target: str
    options: Options = NOTHING_ASKED
    flags: Sequence[str] = SANITIZED


CELLS = (
    Cell("host"),
    Cell("host", Options(rows=Rows.MAX, io=Io.WORKSPACE)),
    Cell("host", Options(rows=Rows.OFF, optimize=Optimize.SPEED)),
    Cell("host", Options(rows=Rows.MAX, optimize=Optimize.SIZE)),
    Cell("mps3-an547", Options(rows=Rows.MAX)),
    Cell("mps3-an547", Options(optimize=Optimize.SIZE)),
    Cell("mps2-an386", Options(optimize=Optimize.SPEED, rows=Rows.MAX)),
    Cell("aarch64", Options(rows=Rows.MAX)),
    Cell("x86-64-v3", Options(rows=Rows.MAX), ("-O2",)),
    Cell("x86-64-v3", Options(optimize=Optimize.SIZE), ("-O2",)),
    Cell("x86-64-v4-vnni", Options(optimize=Optimize.SPEED), ("-O2",)),
)


def networks(first: int, count: int) -> list[RandomModel]:
    """Other ones each day."""
    start = first if THOROUGH else 1_000_000 + 100 * turn() + first
    return [mixed_network(seed) for seed in range(start, start + count)]


@pytest.mark.parametrize("number", some(range(len(CELLS)), every=5))
def test_networks(number: int, tmp_path: Path) -> None:
    cell = CELLS[number]
    flags = cell.flags
    if "-O2" in flags:
        isa = require_isa(cell.target)
        if not this_machine().executes(isa) or this_machine().lacks(isa):
            pytest.skip(f"this machine does not have what {cell.target} needs")
        flags = (*flags, *isa.flags)
    models = networks(COUNT * number, COUNT)
    io = cell.options.io
    assert_equals_reference(models, tmp_path, target=cell.target, flags=flags, options=cell.options, io=io)


def narrow(path: Path) -> Target | None:
    """Two pools, each of three quarters of what a network takes of one; None where more buffers take planning long."""
    plan = plan_model(path, load_target("host"), NOTHING_ASKED).plan
    if len(plan.buffers) > MOST_BUFFERS:
        return None
    return load_text(TWO_POOLS.format(size_bytes=max(64, plan.workspace_bytes * 3 // 4)), "narrow.toml")


def test_networks_that_no_pool_holds(tmp_path: Path) -> None:
    """Most fit two pools, which `check` and a run under watch find to be kept to; the others are too large."""
    jobs: list[Job] = []
    models: list[RandomModel] = []
    for model in networks(5000, 3 * COUNT):
        path = tmp_path / f"m{len(jobs)}.tflite"
        path.write_bytes(model.content)
        target = narrow(path)
        if target is None:
            continue
        try:
            compiled = compile_model(path, target, NOTHING_ASKED)
        except CompileError as error:
            if {diagnostic.code for diagnostic in error.diagnostics} != {"BW301"}:
                raise
            continue
        write_bundle(compiled.files, tmp_path / path.stem)
        check_bundle(tmp_path / path.stem)
        models.append(model)
        jobs.append(Job(compiled.files, compiled.document, [model.inputs(number) for number in range(4)]))
    for model, job, runs in zip(models, jobs, build(jobs, tmp_path, SANITIZED).run(), strict=True):
        reference = LiteRt(model.content)
        for inputs, outputs in zip(job.batch, runs, strict=True):
            assert not differences(outputs, list(reference.run(*inputs)), model.tolerance), model.description
    for model, job in zip(models[:1], jobs[:1], strict=True):
        watched = run_paranoid(tmp_path / job.model, job.batch[2], options=QUICK).result.outputs
        assert not differences(watched, list(LiteRt(model.content).run(*job.batch[2])), model.tolerance), (
            model.description
        )
