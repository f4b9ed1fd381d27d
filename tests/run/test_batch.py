"""An open batch on the host: each sample equals the reference's, in the workspace planned for the largest batch.

LiteRT computes the samples one at a time, so a batch whose samples influence each other cannot agree with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.cli.main import bytewright as command
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.record.plan_file import read_plan
from bytewright.target.registry import load_target
from support import shared_models as models
from support.against_reference import draws
from support.c_program import build_program, run_c, run_command
from support.compilers import QUICK, UNOPTIMISED
from support.random_models import CASES, RandomModel, operator_models
from support.random_networks import random_network
from support.reference import LiteRt
from support.tiers import THOROUGH, some, turn

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True, compiler="gcc")
TOLERANCE = 1e-5
# The first axis of these is no batch as they are drawn: all of a tensor is made, indexed or moved at once.
WITHOUT_BATCH = {
    "DYNAMIC_UPDATE_SLICE",
    "FILL",
    "GATHER_ND",
    "SCATTER_ND",
    "SEGMENT_SUM",
    "SPACE_TO_BATCH_ND",
    "SPARSE_TO_DENSE",
    "STABLEHLO_GATHER",
    "STABLEHLO_SCATTER",
    "UNSORTED_SEGMENT_MAX",
    "UNSORTED_SEGMENT_MIN",
    "UNSORTED_SEGMENT_PROD",
    "UNSORTED_SEGMENT_SUM",
}
# Operators of which some draws mix samples, and so have no open batch.
MIXING = {
    "BATCH_TO_SPACE_ND",
    "BROADCAST_TO",
    "BATCH_MATMUL",
    "CONCATENATION",
    "GATHER",
    "L2_NORMALIZATION",
    "LOG_SOFTMAX",
    "MEAN",
    "MIRROR_PAD",
    "PACK",
    "PAD",
    "PADV2",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "RESHAPE",
    "REVERSE_V2",
    "SLICE",
    "SPACE_TO_BATCH_ND",
    "SPLIT_V",
    "SQUEEZE",
    "SELECT",
    "SELECT_V2",
    "STRIDED_SLICE",
    "TILE",
    "SUM",
    "TRANSPOSE",
    "SOFTMAX",
    "UNPACK",
}


def write_with_batch(
    model: Path, folder: Path, batch_max: int, *, io: Io = Io.CALLER, target: str = "host"
) -> Path:
    write_bundle(compile_model(model, load_target(target), Options(io=io, batch_max=batch_max)).files, folder)
    return folder


def joined(samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The inputs, or outputs, of several samples as one batch."""
    return [np.concatenate(arrays) for arrays in zip(*samples, strict=True)]


def one_by_one(reference: LiteRt, batch: np.ndarray) -> np.ndarray:
    """What the reference says of each sample of an input, joined."""
    return np.concatenate([np.array(reference.run(sample[np.newaxis])[0]) for sample in batch])


def assert_same(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for one, other in zip(actual, expected, strict=True):
        assert one.shape == other.shape
        if other.dtype == np.float32:
            scale = float(np.abs(other).max())
            assert float(np.abs(one.astype(np.float64) - other).max()) <= TOLERANCE * scale
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [*models.INT8, *models.FLOAT])
def test_models_in_every_batch(name: str, tmp_path: Path) -> None:
    folder = write_with_batch(models.model_path(name), tmp_path / "bundle", 3)
    reference = LiteRt(models.model_content(name))
    samples = models.random_inputs(name, 6, seed=5)
    expected = [[np.array(output) for output in reference.run(*inputs)] for inputs in samples]
    parts = [slice(0, 1), slice(1, 3), slice(3, 6), slice(2, 3)]  # 1, 2, 3 and 1 samples
    is_optimised = name in some([*models.INT8, *models.FLOAT])
    options = BuildOptions(flags=("-O3",)) if is_optimised else UNOPTIMISED
    result = run_batch(folder, [joined(samples[part]) for part in parts], options=options)
    for outputs, part in zip(result.outputs, parts, strict=True):
        assert_same(outputs, joined(expected[part]))


@pytest.mark.parametrize("name", [models.KWS, models.AD01])
def test_the_plan_is_made_for_the_largest_batch_and_is_optimal(name: str, tmp_path: Path) -> None:
    plan = read_plan(write_with_batch(models.model_path(name), tmp_path / "bundle", 5))
    one = models.compiled(name, load_target("host")).document
    (single,) = [pool for pool in one["pools"] if pool["role"] == "workspace"]
    (pool,) = [pool for pool in plan.pools.values() if pool.role == "workspace"]
    assert pool.optimal
    assert 4 * single["used_bytes"] < pool.used_bytes <= 5 * single["used_bytes"]  # some lie nearer
    assert plan.symbols[0].upper == 5
    assert plan.inputs[0].shape[0] == 5
    assert plan.inputs[0].extents[0] == "batch"


def open_bundles(
    drafts: Sequence[RandomModel], folder: Path, *, io: Io = Io.CALLER
) -> list[tuple[RandomModel, Path]]:
    """Bundles of the models that have an open batch; each of the others must be refused for that."""
    folder.mkdir(exist_ok=True)
    folders: list[tuple[RandomModel, Path]] = []
    refusals: list[str] = []
    for index, model in enumerate(drafts):
        path = folder / f"m{index}.tflite"
        path.write_bytes(model.content)
        try:
            folders.append((model, write_with_batch(path, folder / f"b{index}", 3, io=io)))
        except CompileError as error:
            refusals += [diagnostic.code for diagnostic in error.diagnostics]
    assert set(refusals) <= {"BW111", "BW110"}
    return folders


def assert_batches_equal_samples(model: RandomModel, folder: Path, options: BuildOptions) -> None:
    reference = LiteRt(model.content)
    samples = [model.inputs(number) for number in range(6)]
    expected = [[np.array(output) for output in reference.run(*inputs)] for inputs in samples]
    parts = [slice(0, 3), slice(3, 4), slice(4, 6)]
    result = run_batch(folder, [joined(samples[part]) for part in parts], options=options)
    for outputs, part in zip(result.outputs, parts, strict=True):
        assert_same(outputs, joined(expected[part]))


@pytest.mark.parametrize(("kind", "dtype"), some(CASES, every=4))
def test_operators_keep_samples_apart(kind: str, dtype: str, tmp_path: Path) -> None:
    single = (
        model
        for model in islice(draws(operator_models(kind, dtype)), 400)
        if all(shape[:1] == (1,) for shape in model.input_shapes)
    )
    tried = islice(single, 100)
    # The first one that has an open batch; whether there is any is what the others are for.
    found = (open_bundles([model], tmp_path / str(number)) for number, model in enumerate(tried))
    bundles = next(filter(None, found), [])
    assert bundles or kind in WITHOUT_BATCH
    number = CASES.index((kind, dtype))
    options = SANITIZED if THOROUGH or (number + turn()) % 5 == 0 else QUICK
    for model, folder in bundles[:1]:
        assert_batches_equal_samples(model, folder, options)


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_networks_keep_samples_apart(io: Io, tmp_path: Path) -> None:
    numbers = some(range(400, 424), every=4)
    bundles = open_bundles([random_network(number, "int8") for number in numbers], tmp_path, io=io)
    assert len(bundles) >= 2
    sanitized = some(range(len(bundles)))
    for index, (model, folder) in enumerate(bundles):
        assert_batches_equal_samples(model, folder, SANITIZED if index in sanitized else QUICK)


def test_a_run_refuses_a_batch_out_of_range_and_needs_no_byte_more_than_stated(tmp_path: Path) -> None:
    folder = write_with_batch(DIGITS, tmp_path / "bundle", 4)
    plan = read_plan(folder)
    source = """
static int8_t *tensor(size_t size_bytes) { return block(16, size_bytes); }
int main(void)
{
    @m@_context context;
    @m@_workspaces workspaces;
    memset(&context, 0, sizeof context);
    workspaces.ram.base = block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE);
    workspaces.ram.size_bytes = @M@_RAM_WORKSPACE_SIZE;
    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    for (int32_t batch = 1; batch <= @M@_BATCH_MAX; ++batch) {
        @m@_inputs inputs;
        @m@_outputs outputs;
        int8_t *const x = tensor((size_t)batch * @IN@);
        int8_t *const y = tensor((size_t)batch * @OUT@);
        inputs.@x@ = x;
        outputs.@y@ = y;
        SHOW("run", @m@_run(&context, &inputs, &outputs, batch));
        SHOW("none", @m@_run(&context, &inputs, &outputs, 0) == @M@_ERROR_EXTENT);
        SHOW("negative", @m@_run(&context, &inputs, &outputs, INT32_MIN) == @M@_ERROR_EXTENT);
        SHOW("more", @m@_run(&context, &inputs, &outputs, @M@_BATCH_MAX + 1) == @M@_ERROR_EXTENT);
        outputs.@y@ = x + (size_t)batch * @IN@ - 1;
        SHOW("overlap", @m@_run(&context, &inputs, &outputs, batch) == @M@_ERROR_OVERLAP);
        free(x);
        free(y);
    }
    free(workspaces.ram.base);
    return 0;
}
"""
    (x,), (y,) = plan.inputs, plan.outputs
    for word, text in {"@x@": x.c_name, "@y@": y.c_name}.items():
        source = source.replace(word, text)
    for word, tensor in {"@IN@": x, "@OUT@": y}.items():
        source = source.replace(word, str(tensor.size_bytes // 4))
    program = build_program(folder, source, tmp_path)
    lines = run_command([program], tmp_path).splitlines()
    assert lines == ["set 0", *["run 0", "none 1", "negative 1", "more 1", "overlap 1"] * 4]


STRAYS = {
    "an output": ("outputs->probabilities[batch * 10] = 1;", True),
    "an input": ("(void)*(const volatile int8_t *)&inputs->image[batch * 64];", False),
}


def with_stray(folder: Path, statement: str) -> Path:
    """Digits for up to 4 samples, with one more statement before the first kernel."""
    write_with_batch(DIGITS, folder, 4)
    source = folder / "src" / "digits.c"
    text, count = re.subn(r"\n    DIGITS_STEP\(0, ", rf"\n    {statement}\g<0>", source.read_text())
    assert count == 1
    source.write_text(text)
    return folder


@pytest.mark.parametrize("what", STRAYS)
def test_an_access_behind_the_samples_of_a_smaller_batch_is_seen(what: str, tmp_path: Path) -> None:
    """The memory of the largest batch would take it; a caller with fewer samples need not have that."""
    statement, is_store = STRAYS[what]
    folder = with_stray(tmp_path / "bundle", statement)
    samples = np.zeros((4, 8, 8, 1), np.int8)
    for batch in (1, 3):
        with pytest.raises(CompileError, match="heap-buffer-overflow"):
            run_batch(folder, [[samples[:batch]]], options=SANITIZED)
        if is_store:  # without a sanitizer, loads are not seen
            with pytest.raises(CompileError, match="wrote outside of output 'probabilities'"):
                run_batch(folder, [[samples], [samples[:batch]]])


def test_inputs_and_outputs_in_the_workspace_have_the_bytes_of_the_batch(tmp_path: Path) -> None:
    """Sanitized: what is copied there and back is no byte more than the run's inputs and outputs have."""
    folder = write_with_batch(DIGITS, tmp_path / "bundle", 4, io=Io.WORKSPACE)
    samples = np.random.default_rng(3).integers(-128, 128, (4, 8, 8, 1)).astype(np.int8)
    batches = [samples, samples[1:2], samples[:3]]
    for options in (SANITIZED, BuildOptions()):
        outputs = run_batch(folder, [[batch] for batch in batches], options=options).outputs
        for batch, (output,) in zip(batches, outputs, strict=True):
            np.testing.assert_array_equal(output, one_by_one(LiteRt(DIGITS), batch))


@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_one_model_serves_several_threads(io: str) -> None:
    """One run after the other; each thread gets the outputs of its own inputs."""
    model = bytewright.compile(DIGITS, batch_max=4, io=io)
    generator = np.random.default_rng(5)
    batches = [
        generator.integers(-128, 128, (1 + index % 4, 8, 8, 1)).astype(np.int8) for index in range(400)
    ]
    expected = [model.run(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        for actual, wanted in zip(pool.map(model.run, batches), expected, strict=True):
            np.testing.assert_array_equal(actual, wanted)


def test_a_paranoid_run_and_check_know_the_batch(tmp_path: Path) -> None:
    folder = write_with_batch(DIGITS, tmp_path / "bundle", 3)
    check_bundle(folder)
    shape = read_plan(folder).inputs[0].shape
    for batch in (1, 3):
        x = np.random.default_rng(batch).integers(-128, 128, (batch, *shape[1:])).astype(np.int8)
        run = run_paranoid(folder, [x], options=QUICK)
        np.testing.assert_array_equal(run.result.outputs[0], one_by_one(LiteRt(DIGITS), x))


def test_the_python_interface_takes_any_batch_in_runs_of_the_largest() -> None:
    model = bytewright.compile(DIGITS, batch_max=4)
    reference = LiteRt(DIGITS)
    shape = model.plan.inputs[0].shape[1:]
    for batch in (4, 1, 2, 8):
        x = np.random.default_rng(batch).integers(-128, 128, (batch, *shape)).astype(np.int8)
        np.testing.assert_array_equal(model.run(x), one_by_one(reference, x))


@pytest.mark.parametrize("batch_max", [0, -1, True, 2.0, "2"])
def test_the_python_interface_refuses_what_is_no_number_of_samples(batch_max: Any) -> None:
    with pytest.raises(ValueError, match="not a whole number of 1 or more"):
        bytewright.compile(DIGITS, batch_max=batch_max)


def test_the_command_line_opens_the_batch_and_says_how_large_one_may_be(tmp_path: Path) -> None:
    runner = CliRunner()
    folder = tmp_path / "bundle"
    done = runner.invoke(command, ["compile", str(DIGITS), "-o", str(folder), "--batch-max", "2"])
    assert done.exit_code == 0, done.output
    shape = read_plan(folder).inputs[0].shape[1:]
    for batch, exit_code in ((1, 0), (2, 0), (3, 1)):
        np.save(tmp_path / "x.npy", np.zeros((batch, *shape), np.int8))
        done = runner.invoke(command, ["run", str(folder), "--input", str(tmp_path / "x.npy"), "--json"])
        assert done.exit_code == exit_code
        if exit_code == 0:
            assert len(json.loads(done.stdout)["outputs"][0]) == batch
    for wrong in ("0", "-1", "many"):
        done = runner.invoke(
            command, ["compile", str(DIGITS), "-o", str(tmp_path / "no"), "--batch-max", wrong]
        )
        assert done.exit_code == 2


@pytest.mark.parametrize("name", ["context", "inputs", "outputs", "batch"])
def test_pools_may_be_called_as_parameters_of_the_run_are(name: str, tmp_path: Path) -> None:
    model = bytewright.compile(
        DIGITS, workspace=[f"{name}@ram"], parameters=["outputs@rom"] * (name != "outputs"), batch_max=2
    )
    folder = model.write(tmp_path / "bundle")
    build_program(folder, "int main(void) { return 0; }", tmp_path)  # without a warning
    x = np.zeros((2, *model.plan.inputs[0].shape[1:]), np.int8)
    np.testing.assert_array_equal(model.run(x), one_by_one(LiteRt(DIGITS), x))


FAR = """
#include <sys/mman.h>

int main(void)
{
    static @m@_context context;
    static const int8_t images[2][64] = {SAMPLES};
    int8_t probabilities[2][10];
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *const memory = mmap(NULL, @M@_RAM_WORKSPACE_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
    const @m@_workspaces workspaces = {.ram = {memory, @M@_RAM_WORKSPACE_SIZE}};
    const @m@_inputs inputs = {.image = images[0]};
    const @m@_outputs outputs = {.probabilities = probabilities[0]};

    if (memory == MAP_FAILED) {
        abort();
    }
    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("run", @m@_run(&context, &inputs, &outputs, 2));
    for (int i = 0; i < 20; ++i) {
        printf("output %d %d\\n", i, probabilities[i / 10][i % 10]);
    }
    return 0;
}
"""


def test_offsets_may_be_larger_than_an_int(tmp_path: Path) -> None:
    """Workspace of 6 GB, of which two samples touch little; what the C says of it is C99."""
    pinned = "depthwise_conv2d_1/out"
    model = bytewright.compile(DIGITS, batch_max=2097151, pins=[f"{pinned}=ram+{1 << 32}"])
    folder = model.write(tmp_path / "bundle")
    plan = check_bundle(folder).plan
    assert plan.buffers[pinned].place.offset == 1 << 32
    assert plan.buffers[pinned].size_bytes == 2097151 * 1024
    batch = np.random.default_rng(3).integers(-128, 128, (2, 8, 8, 1)).astype(np.int8)
    samples = ", ".join("{" + ", ".join(map(str, sample.ravel())) + "}" for sample in batch)
    flags = (
        "-O1",
        "-pedantic-errors",
        "-D_DEFAULT_SOURCE",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=all",
    )
    shown = run_c(folder, FAR.replace("SAMPLES", samples), tmp_path, flags)
    assert (shown["set"], shown["run"]) == (0, 0)
    expected = one_by_one(LiteRt(DIGITS.read_bytes()), batch)
    assert [shown[f"output {index}"] for index in range(20)] == expected.ravel().tolist()
