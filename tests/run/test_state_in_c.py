"""What survives runs, in C: streams in contexts of their own, reset, saved bytes, runs that fail in the middle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import Options, Rows
from bytewright.target import load_text
from bytewright.target.registry import load_target
from support.c_program import WARNINGS, run_c
from support.compilers import QUICK, host_build
from support.parsing import parse_module
from support.parted_states import APART, keeping
from support.senseless import SENSELESS
from support.state_programs import ACCUMULATOR, accumulated, next_stateful_graph
from support.tiers import THOROUGH, some

pytestmark = pytest.mark.run

SEEDS = range(100) if THOROUGH else some(range(24), every=12)

# Each stream is given its number, and numbers that grow; streams take turns, and one has its bytes saved and put back.
STREAMS = """\
enum { STREAMS = 3, STEPS = 12 };

typedef struct {
    @m@_context context;
    void *kept;
} stream;

static void open(stream *opened)
{
    @m@_workspaces memory;

    memset(opened, 0, sizeof *opened);
    opened->kept = block(@M@_KEPT_STATE_ALIGN, @M@_KEPT_STATE_SIZE);
    memory.kept.base = opened->kept;
    memory.kept.size_bytes = @M@_KEPT_STATE_SIZE;
    if (@m@_set_workspaces(&opened->context, &memory) != @M@_OK || @m@_reset(&opened->context) != @M@_OK) {
        abort();
    }
}

static int32_t step(stream *running, int32_t given)
{
    int32_t x[8];
    int32_t y[8];
    const @m@_inputs inputs = {x};
    const @m@_outputs outputs = {y};

    for (int i = 0; i < 8; ++i) {
        x[i] = given + i;
    }
    if (@m@_run(&running->context, &inputs, &outputs) != @M@_OK) {
        abort();
    }
    return y[3];
}

int main(void)
{
    static stream streams[STREAMS];
    static stream restored;
    uint8_t saved[@M@_KEPT_STATE_SIZE];
    char name[32];

    for (int i = 0; i < STREAMS; ++i) {
        open(&streams[i]);
    }
    open(&restored);
    for (int number = 0; number < STEPS; ++number) {
        for (int i = 0; i < STREAMS; ++i) {
            if (i == 1) {
                memcpy(saved, streams[i].kept, sizeof saved);
            }
            snprintf(name, sizeof name, "%d.%d", i, number);
            SHOW(name, step(&streams[i], (i + 1) * number));
        }
        if (@m@_reset(&restored.context) != @M@_OK) {
            abort();
        }
        memcpy(restored.kept, saved, sizeof saved);
        snprintf(name, sizeof name, "restored.%d", number);
        SHOW(name, step(&restored, 2 * number));
    }
    @m@_reset(&streams[0].context);
    SHOW("again", step(&streams[0], 0));
    for (int i = 0; i < STREAMS; ++i) {
        free(streams[i].kept);
    }
    free(restored.kept);
    return 0;
}
"""

REFUSALS = """\
int main(void)
{
    int32_t x[8] = {0};
    int32_t y[8];
    @m@_context context;
    @m@_workspaces memory;
    const @m@_inputs inputs = {x};
    const @m@_outputs outputs = {y};

    memset(&context, 0, sizeof context);
    SHOW("null", @m@_reset(NULL));
    SHOW("unset", @m@_reset(&context));
    memory.kept.base = block(@M@_KEPT_STATE_ALIGN, @M@_KEPT_STATE_SIZE);
    memory.kept.size_bytes = @M@_KEPT_STATE_SIZE;
    SHOW("set", @m@_set_workspaces(&context, &memory));
    SHOW("not reset", @m@_run(&context, &inputs, &outputs));
    SHOW("reset", @m@_reset(&context));
    SHOW("run", @m@_run(&context, &inputs, &outputs));
    SHOW("set again", @m@_set_workspaces(&context, &memory));
    SHOW("not reset again", @m@_run(&context, &inputs, &outputs));
    memory.kept.size_bytes -= 1;
    SHOW("small", @m@_set_workspaces(&context, &memory));
    free(memory.kept.base);
    return 0;
}
"""


def draw(count: int, seed: int = 5) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(-999, 999, 8).astype(np.int32) for _ in range(count)]


@pytest.fixture(scope="module")
def accumulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")
    text = folder / "acc.bw"
    text.write_text(ACCUMULATOR)
    bytewright.compile(text).write(folder / "acc")
    check_bundle(folder / "acc")
    return folder / "acc"


def test_streams_take_turns_are_saved_and_restored(accumulator: Path, tmp_path: Path) -> None:
    shown = run_c(accumulator, STREAMS, tmp_path)
    for stream in range(3):
        given = [np.arange(8, dtype=np.int32) + (stream + 1) * number for number in range(12)]
        for number, wanted in enumerate(accumulated(given)):
            assert shown[f"{stream}.{number}"] == wanted[3]
            if stream == 1:
                assert shown[f"restored.{number}"] == wanted[3]
    assert shown["again"] == accumulated([np.arange(8, dtype=np.int32)])[0][3]


def test_what_is_not_set_or_reset_is_refused(accumulator: Path, tmp_path: Path) -> None:
    shown = run_c(accumulator, REFUSALS, tmp_path)
    not_set = -7
    assert shown == {
        "null": -1,
        "unset": not_set,
        "set": 0,
        "not reset": not_set,
        "reset": 0,
        "run": 0,
        "set again": 0,
        "not reset again": not_set,
        "small": -2,
    }


def test_inferences_begin_alike_unless_state_is_kept(accumulator: Path) -> None:
    inputs = draw(5)
    batch = [[array] for array in inputs]
    for options in (QUICK, host_build(flags=WARNINGS, sanitize=True)):
        kept = run_batch(accumulator, batch, keep_state=True, options=options)
        for (found,), wanted in zip(kept.outputs, accumulated(inputs), strict=True):
            np.testing.assert_array_equal(found, wanted)
        alone = run_batch(accumulator, batch, repeat=3, options=options)
        for (found,), array in zip(alone.outputs, inputs, strict=True):
            np.testing.assert_array_equal(found, accumulated([array])[0])


def test_what_goes_on_from_the_last_one_runs_once(accumulator: Path) -> None:
    with pytest.raises(CompileError, match="runs once"):
        run_batch(accumulator, [[draw(1)[0]]], keep_state=True, repeat=2)


def test_a_paranoid_run_watches_it(accumulator: Path) -> None:
    (array,) = draw(1)
    found = run_paranoid(accumulator, [array], options=QUICK)
    np.testing.assert_array_equal(found.result.outputs[0], accumulated([array])[0])
    assert found.watched_bytes > 36


def test_a_state_of_two_cores_that_share_no_memory_is_what_both_made_of_it(tmp_path: Path) -> None:
    program = parse_module(keeping(("core1", "a"), ("core2", "a")), {}, {})
    write_bundle(compile_model(program, load_text(APART, "apart.toml")).files, tmp_path / "two")
    check_bundle(tmp_path / "two")
    inputs, kept = draw(5), np.zeros(8, np.int32)
    options = host_build(flags=WARNINGS, sanitize=True)
    result = run_batch(tmp_path / "two", [[array] for array in inputs], keep_state=True, options=options)
    for (found,), x in zip(result.outputs, inputs, strict=True):
        kept = np.maximum(np.maximum(kept, x) + 1, x) + 2
        np.testing.assert_array_equal(found, kept)


UPDATED = """
module tracks

input %x : tensor<3x5xf32>
output %y : tensor<3x5xf32>
state %mean : tensor<3x5xf32>
state %most : tensor<3x5xf32> = data<3x5xf32> [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
constant %half = data<1x1xf32> [0.5]

func main(%a : tensor<3x5xf32>, %mean : tensor<3x5xf32>, %most : tensor<3x5xf32>) -> (%r, %n, %m) {
  %both : tensor<3x5xf32> = add(%a, %mean)
  %n : tensor<3x5xf32> = mul(%both, %half)
  %m : tensor<3x5xf32> = maximum(%most, %n)
  %r : tensor<3x5xf32> = sub(%m, %n)
}
"""


@pytest.mark.parametrize("target", ["host", "x86-64-v3"])
def test_states_that_are_updated_where_they_are_are_what_numpy_says(target: str, tmp_path: Path) -> None:
    (tmp_path / "tracks.bw").write_text(UPDATED)
    compiled = compile_model(tmp_path / "tracks.bw", load_target(target))
    read_and_written = [{*step.reads} & {*step.writes} for step in compiled.plan.steps]
    assert [{"mean"}, {"most"}] == [names for names in read_and_written if names]
    assert not any("identity" in step.kernel for step in compiled.plan.steps)
    write_bundle(compiled.files, tmp_path / "tracks")
    check_bundle(tmp_path / "tracks")
    inputs = np.random.default_rng(1).normal(0, 9, (6, 3, 5)).astype(np.float32)
    mean, most = np.zeros((3, 5), np.float32), np.tile(np.arange(1, 6, dtype=np.float32), (3, 1))
    options = host_build(flags=WARNINGS, sanitize=True)
    result = run_batch(tmp_path / "tracks", [[array] for array in inputs], keep_state=True, options=options)
    for (found,), x in zip(result.outputs, inputs, strict=True):
        mean = (x + mean) * np.float32(0.5)
        most = np.maximum(most, mean)
        np.testing.assert_array_equal(found, most - mean)
    watched = run_paranoid(tmp_path / "tracks", [inputs[0]], options=QUICK)
    np.testing.assert_array_equal(watched.result.outputs[0], result.outputs[0][0])


FAILING = """\
module half

state %h : tensor<8xi32>

extern app_check(x : buffer<8xi32> r, y : buffer<8xi32> w) on cpu stack=64 status

kernel half_add(x : buffer<8xi32> r activation, h : buffer<8xi32> rw activation) on cpu {
  for i : i32 in 0 .. 8 {
    h[i] = h[i] + x[i]
  }
}

entry main(x : buffer<8xi32> r activation, y : buffer<8xi32> w activation) on cpu {
  allocate h : buffer<8xi32> {io="state"}
  allocate t : buffer<8xi32>
FIRST
SECOND
  call_extern half_copy(&h, &y)
}
"""
COPY = """\
kernel half_copy(h : buffer<8xi32> r activation, y : buffer<8xi32> w activation) on cpu {
  for i : i32 in 0 .. 8 {
    y[i] = h[i]
  }
}

entry"""
ADD, CHECK = "  call_extern half_add(&t, &h)", "  call_extern app_check(&x, &t)"
FAILS = """\
#include "half_externals.h"

int32_t app_check(const int32_t *x, int32_t *y)
{
    memcpy(y, x, 8 * sizeof *x);
    return x[0] == 13 ? 1 : 0;
}

int main(void)
{
    int32_t x[8] = {0};
    int32_t y[8];
    half_context context;
    half_workspaces memory;
    const half_inputs inputs = {x};
    const half_outputs outputs = {y};

    memset(&context, 0, sizeof context);
    memory.ram.base = block(HALF_RAM_WORKSPACE_ALIGN, HALF_RAM_WORKSPACE_SIZE);
    memory.ram.size_bytes = HALF_RAM_WORKSPACE_SIZE;
    memory.kept.base = block(HALF_KEPT_STATE_ALIGN, HALF_KEPT_STATE_SIZE);
    memory.kept.size_bytes = HALF_KEPT_STATE_SIZE;
    half_set_workspaces(&context, &memory);
    half_reset(&context);
    for (int number = 11; number < 15; ++number) {
        char name[32];

        x[0] = number;
        snprintf(name, sizeof name, "status %d", number);
        SHOW(name, half_run(&context, &inputs, &outputs));
        snprintf(name, sizeof name, "state %d", number);
        SHOW(name, *(int32_t *)memory.kept.base);
    }
    free(memory.ram.base);
    free(memory.kept.base);
    return 0;
}
"""


def test_a_run_that_fails_before_the_state_is_written_leaves_it_and_the_header_says_so(
    tmp_path: Path,
) -> None:
    text = tmp_path / "half.bw"
    program = FAILING.replace("FIRST", CHECK).replace("SECOND", ADD).replace("entry", COPY, 1)
    text.write_text(program)
    bytewright.compile(text).write(tmp_path / "half")
    header = (tmp_path / "half/include/half.h").read_text()
    assert "A run that fails leaves the state as it was." in header
    shown = run_c(tmp_path / "half", FAILS, tmp_path / "c")
    assert [shown[f"state {number}"] for number in range(11, 15)] == [11, 23, 23, 37]
    assert [shown[f"status {number}"] < 0 for number in range(11, 15)] == [False, False, True, False]


def test_a_run_that_may_fail_later_is_said_to_change_the_state(tmp_path: Path) -> None:
    text = tmp_path / "half.bw"
    program = FAILING.replace("  allocate t : buffer<8xi32>\n", "").replace("entry", COPY, 1)
    add = "  call_extern half_add(&x, &h)"
    check = "  allocate t : buffer<8xi32>\n  call_extern app_check(&x, &t)"
    text.write_text(program.replace("FIRST", add).replace("SECOND", check))
    bytewright.compile(text).write(tmp_path / "half")
    header = " ".join((tmp_path / "half/include/half.h").read_text().split())
    assert "may have changed the state" in header
    shown = run_c(tmp_path / "half", FAILS, tmp_path / "c")
    assert [shown[f"state {number}"] for number in range(11, 15)] == [11, 23, 36, 50]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("has_images", [False, True])
def test_the_c_of_a_graph_with_state_computes_what_its_functions_say(
    has_images: bool, seed: int, tmp_path: Path
) -> None:
    """Loops, branches; with images islands, layers row by row, overlaps and parts; by turns for both kinds of io."""
    graph = next_stateful_graph(seed, has_images=has_images, most_nodes=7 if has_images else 5)
    given, expected = graph.steps(4)
    folder = tmp_path / "bundle"
    options = Options(rows=(Rows.AUTO, Rows.MAX)[seed % 2], io=(Io.CALLER, Io.WORKSPACE)[seed // 2 % 2])
    model = compile_model(graph.write(tmp_path / "random.bw"), load_target("host"), options)
    write_bundle(model.files, folder)
    check_bundle(folder)
    sanitized = host_build(flags=(*WARNINGS, *SENSELESS), sanitize=True)
    found = run_batch(folder, given, options=sanitized, keep_state=True).outputs
    for run, wanted in zip(found, expected, strict=True):
        for value, other in zip(run, wanted, strict=True):
            np.testing.assert_array_equal(value, other, strict=True)
    watched = run_paranoid(folder, given[0], options=QUICK).result.outputs
    for value, other in zip(watched, expected[0], strict=True):
        np.testing.assert_array_equal(value, other, strict=True)
