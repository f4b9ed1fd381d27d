"""Programs by rows, compiled to C, compute what they compute layer by layer, whatever else is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright import ir
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.ir.walk import allocations
from bytewright.options import Options, Pin, Rows
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides, parse_resize_option
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference, differences
from support.compilers import QUICK_COMPILER, QUICK_FLAGS
from support.digits_bundle import DIGITS
from support.evaluate.evaluate import Evaluator
from support.many_models import SANITIZERS, Job, build
from support.reference import LiteRt
from support.row_programs import row_program
from support.spatial_networks import spatial_model
from support.tiers import TIMES, some

SANITIZED = ("-O0", *SANITIZERS)
SANITIZED_BUILD = BuildOptions(flags=("-O0",), sanitize=True, compiler="gcc")
HOST, BOARD = load_target("host"), load_target("mps3-an547")
# Networks in which rows save memory, by their seeds.
FUSED = (60_004, 60_007, 60_010)
SAVING = (60_003, 60_005, 60_008, 60_012)


@pytest.mark.run
@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "dtype", "target", "options"),
    [
        pytest.param(50_000, "int8", "host", Options(rows=Rows.MAX), id="max"),
        pytest.param(
            51_000, "int8", "mps3-an547", Options(rows=Rows.MAX, io=Io.WORKSPACE), id="max-workspace"
        ),
        pytest.param(52_000, "int8", "host", Options(rows=Rows.OFF), id="off"),
        pytest.param(53_000, "float32", "host", Options(rows=Rows.MAX), id="float32"),
    ],
)
def test_networks(first: int, dtype: str, target: str, options: Options, tmp_path: Path) -> None:
    count = 12
    seeds = some(range(first, first + count * TIMES), every=2)
    models = [spatial_model(seed, dtype, extents=(1, 24)) for seed in seeds]
    for begin in range(0, len(models), count):
        part = models[begin : begin + count]
        folder = tmp_path / str(begin)
        assert_equals_reference(
            part, folder, target=target, flags=SANITIZED, every=4, io=options.io, options=options
        )


@pytest.mark.run
@pytest.mark.slow
@pytest.mark.parametrize("rows", [Rows.AUTO, Rows.MAX])
@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_programs_by_hand(rows: Rows, io: Io, tmp_path: Path) -> None:
    """Kernels that no template wrote: against the evaluator, which runs them layer by layer."""
    jobs: list[Job] = []
    wanted: list[list[bytes]] = []
    num_fused = 0
    seeds = some(range(30 * TIMES), every=5, always=[0, 10])  # rows save memory in these two
    for seed in seeds:
        program = row_program(seed, 8)
        module, path = program.module, tmp_path / f"m{seed}.bw"
        path.write_text(program.text.replace("module m", f"module m{seed}"), encoding="utf-8")
        found = compile_model(path, load_target("host"), Options(rows=rows, io=io))
        num_fused += fused(found)
        generator = np.random.default_rng(seed)
        given = module.main.buffer_parameters[0].buffer
        x = generator.integers(0, 1000, [ir.upper_bound(extent) for extent in given.shape]).astype(np.int32)
        jobs.append(Job(found.files, found.document, [[x]]))
        wanted.append([array.tobytes() for array in Evaluator(module).run("main", {given.name: x}).values()])
    is_sanitized = rows is Rows.MAX and io is Io.CALLER
    compiler, flags = ("gcc", SANITIZED) if is_sanitized else (QUICK_COMPILER, QUICK_FLAGS)
    results = build(jobs, tmp_path, flags, compiler=compiler).run()
    for seed, batch, arrays in zip(seeds, results, wanted, strict=True):
        assert [array.tobytes() for array in batch[0]] == arrays, seed
    assert num_fused >= len(seeds) // 12  # where ports lie in the workspace, rows save memory in 11 of 120


def fused(found: Compiled) -> bool:
    """Whether the entry runs something row by row."""
    loops = [statement for statement in found.module.main.body.statements if isinstance(statement, ir.For)]
    return any(loop.note.endswith("are left out") for loop in loops)


# With what else may be asked for


def model_file(seed: int, folder: Path) -> Path:
    path = folder / f"m{seed}.tflite"
    path.write_bytes(spatial_model(seed).content)
    return path


def assert_runs(path: Path, seed: int, folder: Path, options: Options, target: Target = HOST) -> Compiled:
    """What is compiled equals LiteRT, run under sanitizers, and its bundle checks."""
    compiled = compile_model(path, target, options)
    write_bundle(compiled.files, folder)
    model = spatial_model(seed)
    inputs = [model.inputs(number) for number in range(3)]
    reference = LiteRt(model.content)
    result = run_batch(folder, inputs, options=SANITIZED_BUILD)
    for given, found in zip(inputs, result.outputs, strict=True):
        wanted = [np.array(array) for array in reference.run(*given)]
        assert not differences(found, wanted)
    check_bundle(folder)
    return compiled


def rings_of(compiled: Compiled) -> list[ir.Buffer]:
    found = [allocation.buffer for allocation in allocations(compiled.module.main)]
    return [buffer for buffer in found if buffer.rows is not None]


@pytest.mark.run
@pytest.mark.parametrize("seed", FUSED)
def test_packed_calls(seed: int, tmp_path: Path) -> None:
    options = Options(rows=Rows.MAX, calling_form=ir.Form.PACKED, entry_form=ir.Form.PACKED)
    assert rings_of(assert_runs(model_file(seed, tmp_path), seed, tmp_path / "out", options))


@pytest.mark.run
@pytest.mark.parametrize("seed", FUSED)
def test_a_ring_that_is_pinned(seed: int, tmp_path: Path) -> None:
    path = model_file(seed, tmp_path)
    plain = compile_model(path, HOST, Options(rows=Rows.MAX))
    name = rings_of(plain)[0].name
    offset = 64 * (plain.plan.pools["ram"].used_bytes // 64 + 3)
    options = Options(rows=Rows.MAX, pins=(Pin(name, "ram", offset=offset),))
    pinned = assert_runs(path, seed, tmp_path / "out", options)
    assert pinned.plan.buffers[name].place.offset == offset
    assert name in [buffer.name for buffer in rings_of(pinned)]


@pytest.mark.run
def test_a_batch_of_several_samples_has_no_rows(tmp_path: Path) -> None:
    """Rows of one sample are not beside those of the next."""
    compiled = compile_model(DIGITS, HOST, Options(rows=Rows.MAX, batch_max=3))
    assert not rings_of(compiled)
    write_bundle(compiled.files, tmp_path / "out")
    images = np.random.default_rng(4).integers(-128, 128, (3, 8, 8, 1), np.int8)
    (outputs,) = run_batch(tmp_path / "out", [[images]], options=SANITIZED_BUILD).outputs
    reference = LiteRt(DIGITS)
    for image, found in zip(images, outputs[0], strict=True):
        assert np.array_equal(found, reference.run(image[np.newaxis])[0][0])


@pytest.mark.run
@pytest.mark.parametrize("seed", FUSED)
def test_two_pools(seed: int, tmp_path: Path) -> None:
    """The first holds half of what a plan by rows needs."""
    path = model_file(seed, tmp_path)
    need = compile_model(path, HOST, Options(rows=Rows.MAX)).plan.pools["ram"].used_bytes
    target = apply_overrides(BOARD, Overrides(resize=(parse_resize_option(f"dtcm={need // 2 // 16 * 16}"),)))
    for rows in (Rows.AUTO, Rows.MAX):
        assert_runs(path, seed, tmp_path / rows.value, Options(rows=rows), target)


@pytest.mark.parametrize("seed", SAVING)
def test_rows_where_nothing_else_fits(seed: int, tmp_path: Path) -> None:
    """In exactly the memory of the plan by rows; a byte less is too little, and so is all of it without rows."""
    path = model_file(seed, tmp_path)
    off, auto = (
        compile_model(path, HOST, Options(rows=rows)).plan.pools["ram"].used_bytes
        for rows in (Rows.OFF, Rows.AUTO)
    )
    assert auto < off

    def within(num_bytes: int, rows: Rows) -> int:
        resized = Overrides(resize=(parse_resize_option(f"ram={num_bytes}"),))
        return compile_model(path, HOST, Options(overrides=resized, rows=rows)).plan.pools["ram"].used_bytes

    assert within(auto, Rows.AUTO) == auto
    with pytest.raises(CompileError) as caught:
        within(auto, Rows.OFF)
    assert caught.value.diagnostics[0].code == "BW301"
    with pytest.raises(CompileError) as caught:
        within(auto - 1, Rows.AUTO)
    assert caught.value.diagnostics[0].code == "BW301"
