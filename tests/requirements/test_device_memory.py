"""C7: memory that the CPU does not reach is obtained and released by drivers, and no code of the CPU comes near it."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.host import HostModel
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch, run_bundle
from bytewright.frontends.text.constants_file import constants_archive
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.ir.text.modules import named_constants, print_module
from bytewright.options import Options, parse_on_option
from bytewright.record.buffers import BufferRole
from bytewright.record.plan_file import read_plan
from bytewright.report.lanes import is_copy
from bytewright.target import load_text
from support.c_program import WARNINGS, build_program, run_c, run_command
from support.compilers import host_build
from support.device_memory import ALONE, APPLICATION, DRIVERS, PRIVATE, TARGET, replaced
from support.random_graphs import random_graph
from support.reference import LiteRt
from support.three_devices import MOVER, POOLS, TEXT, annotated
from support.tiers import some
from support.two_devices import INPUT, PROGRAM, bundle, evaluated

Y = evaluated(PROGRAM, {"x": INPUT})["y"]
# M and F: the DMA, which is opened first, obtains the memory of both and gives it back after all.
WHOLE = "Ad Ac Od Md Oc Ld Wd Lc Wc Ld Wd Ld Wd Lc Wc Ld Wd Cc Cd Fd Dc Dd"
NUM_FALLIBLE = 17
RUNS = r"""
int main(void)
{
    prepare();
    for (int call = 0; call <= 18; ++call) {
        restart(call);
        const int32_t status = run();
        for (size_t i = 0; i < num_events; i += 2) {
            printf("%s%c%c", i ? " " : "", events[i], events[i + 1]);
        }
        printf("|%d %d %d %d %d\n", (int)status, refusals, (int)num_held, heap[1] != NULL,
            core1_driver.in_flight + dma_driver.in_flight);
        restart(0);
        if (run() != 0) {
            return 1;
        }
        for (int i = 0; i < 32; ++i) {
            printf("%d ", y[i]);
        }
        printf("\n");
    }
    finish();
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the program whose core has a memory of its own."""
    return bundle(tmp_path_factory.mktemp("private") / "bundle", PRIVATE, TARGET)


def test_c7_every_call_fails_once_and_what_was_obtained_is_released_in_reverse(
    folder: Path, tmp_path: Path
) -> None:
    lines = run_command(
        [build_program(folder, DRIVERS + APPLICATION + RUNS, tmp_path)], tmp_path
    ).splitlines()
    outcomes, outputs = lines[::2], lines[1::2]
    assert {tuple(map(int, line.split())) for line in outputs} == {tuple(Y.tolist())}, (
        "each next run is right"
    )
    assert outcomes[0] == f"{WHOLE}|0 0 0 0 0"
    begun = WHOLE.split()[:NUM_FALLIBLE]
    released = {1: "", 2: "Dd", 3: "Dc Dd", 4: "Dc Dd", 5: "Cd Fd Dc Dd"}
    for call in range(1, NUM_FALLIBLE + 1):
        events, _, numbers = outcomes[call].partition("|")
        assert events == " ".join([*begun[:call], *released.get(call, "Cc Cd Fd Dc Dd").split()])
        assert numbers == "-8 1 0 0 0", "ERROR_DEVICE, one refusal, nothing held, obtained or in flight"
    assert outcomes[NUM_FALLIBLE + 1] == outcomes[0], "there are no more"


WITHOUT = r"""
int main(void)
{
    static uint8_t there[@M@_LOCAL_WORKSPACE_SIZE];
    prepare();
    devices.dma.open = devices.core1.open = NULL;
    devices.dma.close = devices.core1.close = NULL;
    heap[1] = there;
    dma_driver.is_open = core1_driver.is_open = 1;
    dma_driver.num_memories = core1_driver.num_memories = 2;
    dma_driver.memories[0] = (@m@_span){workspaces.near.base, (uint32_t)workspaces.near.size_bytes, 3, 0, 0};
    dma_driver.memories[1] = (@m@_span){NULL, sizeof there, 3, @M@_MEMORY_LOCAL, 0};
    core1_driver.memories[0] = dma_driver.memories[1];
    core1_driver.memories[1] = (@m@_span){(void *)(uintptr_t)@m@_flash_parameters, 8, 1, 0, 0};
    core1_driver.mirrors[1] = block(64, 8);
    dma_driver.is_active = core1_driver.is_active = 1;
    devices.dma.activate = devices.core1.activate = NULL;
    devices.dma.deactivate = devices.core1.deactivate = NULL;
    restart(0);
    SHOW("run", run());
    for (int i = 0; i < 32; ++i) {
        printf("y.%d %d\n", i, y[i]);
    }
    free(core1_driver.mirrors[1]);
    finish();
    return 0;
}
"""


def test_c7_without_open_the_memory_is_simply_there(folder: Path, tmp_path: Path) -> None:
    shown = run_c(folder, DRIVERS + APPLICATION + WITHOUT, tmp_path)
    assert shown["run"] == 0
    assert [shown[f"y.{i}"] for i in range(32)] == Y.tolist()


# On the host


@pytest.mark.parametrize("sanitize", [False, True])
def test_c7_only_the_processes_of_devices_have_the_memory(folder: Path, sanitize: bool) -> None:
    inputs = [(INPUT * factor).astype(np.int16) for factor in (1, 0, -1)]
    result = run_batch(
        folder, [[x] for x in inputs], repeat=3, options=host_build(flags=WARNINGS, sanitize=sanitize)
    )
    for x, (y,) in zip(inputs, result.outputs, strict=True):
        assert np.array_equal(y, evaluated(PROGRAM, {"x": x})["y"])


def test_c7_no_page_of_it_is_mapped_in_the_process_of_the_model(folder: Path) -> None:
    context = HostModel.build(folder).open()
    context.run([INPUT])
    mapped = Path("/proc/self/maps").read_text()
    open_files = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.exists()]
    assert any("bytewright-device-memory" in name for name in open_files), "the file is there"
    assert "/memfd:bytewright-device " in mapped, "what is lent is mapped"
    assert "bytewright-device-memory" not in mapped


def test_c7_a_paranoid_run_watches_the_rest(folder: Path) -> None:
    watched = run_paranoid(folder, [INPUT])
    assert np.array_equal(watched.result.outputs[0], Y)


def changed(folder: Path, file: str, before: str, after: str) -> Path:
    """The bundle with a line of its C changed."""
    directory = bundle(folder / "pair", PRIVATE, TARGET)
    path = directory / file
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))
    return directory


def refusal(directory: Path) -> tuple[str, str, tuple[str, ...]]:
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for sanitize in (False, True):
        with pytest.raises(CompileError) as caught:
            run_bundle(directory, [INPUT], options=host_build(sanitize=sanitize))
        (diagnostic,) = caught.value.diagnostics
        found.append((diagnostic.code, diagnostic.message, diagnostic.notes))
    assert found[0][:2] == found[1][:2]
    return found[0]


KERNELS, ENTRY = "src/pair_core1_kernels.c", "src/pair.c"
END_OF_FILTER = "        y[row] = sum;\n    }\n"
LENT = "lend_in(PAIR_MEMORY_LOCAL, 0u, 192u, PAIR_SPAN_READ | PAIR_SPAN_WRITE)"


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("((volatile int8_t *)y)[130] ^= 1;", "in pool 'local', of which it was given other bytes"),
        ("((volatile int8_t *)y)[4096] = 1;", "behind the last byte of what it is lent of pool 'local'"),
    ],
)
def test_c7_a_byte_that_a_job_was_not_given_of_it(tmp_path: Path, statement: str, place: str) -> None:
    directory = changed(tmp_path, KERNELS, END_OF_FILTER, f"{END_OF_FILTER}    {statement}\n")
    code, message, notes = refusal(directory)
    assert (code, place in notes[0]) == ("BW730", True), notes
    assert "(kernel 'pair_filter', step 2)" in message


def test_c7_a_part_of_it_that_was_not_opened(tmp_path: Path) -> None:
    code, _, notes = refusal(changed(tmp_path, ENTRY, LENT, LENT.replace("192u", "100u")))
    assert code == "BW732"
    assert re.fullmatch(r"span \d at byte \d+ of pool 'local'", notes[0]), notes


def test_c7_memory_that_nobody_obtains(tmp_path: Path) -> None:
    directory = changed(tmp_path, ENTRY, " | PAIR_SPAN_OBTAIN", "")
    assert refusal(directory)[:2] == (
        "BW731",
        "device 'dma' was given what it is lent of model 'pair' on the host out of turn",
    )


FIRST_JOB = "            lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_LENT, 64u, PAIR_SPAN_WRITE),\n"
DEREFERENCES = {
    "the address of a span": "((volatile uint8_t *)spans[0].base)[spans[0].offset] = 1;",
    "the offset as an address": "*(volatile uint8_t *)((uintptr_t)spans[0].base + PAIR_AT_LOCAL_LENT) = 1;",
}


@pytest.mark.parametrize("statement", DEREFERENCES.values(), ids=DEREFERENCES.keys())
def test_c7_c_that_dereferences_it_is_noticed_by_check_and_by_a_run(tmp_path: Path, statement: str) -> None:
    before = "        if (hand_over(&devices->dma, NULL, 0u, spans, 2u) != PAIR_OK) {\n"
    directory = bundle(tmp_path / "pair", PRIVATE, TARGET)
    path = directory / ENTRY
    head, found, tail = path.read_text().partition(before)
    assert found
    path.write_text(f"{head}        {statement}\n{found}{tail}")
    with pytest.raises(CompileError, match=r"src/pair\.c reads the address of a span"):
        check_bundle(directory)
    with pytest.raises(CompileError, match=r"SIGSEGV|SEGV|ended with|null pointer"):
        run_bundle(directory, [INPUT], options=BuildOptions(flags=("-O0",), sanitize=True))


# Random graphs


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", some([range(first, first + 14) for first in range(0, 42, 14)], every=3), ids=str
)
def test_c7_random_graphs_with_such_memories_equal_numpy(seeds: range, tmp_path: Path) -> None:
    """`side` and `far` are of the other devices alone; a mover reaches all, and every other npu no parameters."""
    used: list[str] = []
    fetched = 0
    for seed in seeds:
        random = Random(seed)
        graph = random_graph(random)
        io = random.choice([Io.CALLER, Io.WORKSPACE])
        module = annotated(graph.module, random, often=0.3)
        text = tmp_path / f"random{seed}.bw"
        text.write_text(print_module(module))
        text.with_suffix(".npz").write_bytes(constants_archive(named_constants(module)))
        found = compiled_or_contradictory(text, io, has_flash=bool(seed % 2))
        if found is None:
            continue
        folder = tmp_path / str(seed)
        write_bundle(found.files, folder)
        check_bundle(folder)
        plan = read_plan(folder)
        fetched += sum(
            plan.buffers[name].role is BufferRole.PARAMETER
            for step in plan.steps
            for name in step.reads
            if is_copy(step)
        )
        used += [pool.name for pool in plan.device_workspaces]
        assert {pool.name for pool in plan.workspaces} <= {"near", "shared"}
        inputs = graph.inputs(2)
        outputs = run_batch(folder, inputs, options=host_build(flags=WARNINGS, sanitize=True)).outputs
        for run, own in zip(inputs, outputs, strict=True):
            for value, wanted in zip(own, graph.expected(run), strict=True):
                np.testing.assert_array_equal(value, wanted, strict=True)
    assert set(used) == {"side", "far"}
    assert len(used) >= 4
    assert fetched > 0


def compiled_or_contradictory(text: Path, io: Io, *, has_flash: bool) -> Compiled | None:
    """None where annotations contradict each other, or take an operand from the limit that its range is proved by."""
    reach = ('"far", "flash"]\nstack', '"far"]\nstack')
    target = load_text(replaced(TEXT + MOVER + POOLS, *([] if has_flash else [reach])), "three.toml")
    try:
        return compile_model(text, target, Options(io=io))
    except CompileError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} <= {"BW701", "BW702", "BW110"}:
            return None
        raise


# Parameters


DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"


@pytest.mark.parametrize("sanitize", [False, True])
def test_c7_parameters_are_copied_to_a_device_that_reaches_nothing_else(
    tmp_path: Path, sanitize: bool
) -> None:
    """Weights, biases and tables of a layer: as LiteRT computes it, with a core that has its own memory alone."""
    options = Options(on=(parse_on_option("DEPTHWISE_CONV_2D=core1"),))
    write_bundle(compile_model(DIGITS, load_text(ALONE, "alone.toml"), options).files, tmp_path / "digits")
    check_bundle(tmp_path / "digits")
    plan = read_plan(tmp_path / "digits")
    copied = {name for step in plan.steps if step.device == "dma" for name in step.reads}
    assert {"depthwise_conv2d_1/weights", "depthwise_conv2d_1/bias"} <= copied
    images = np.random.default_rng(7).integers(-128, 128, (4, 1, 8, 8, 1)).astype(np.int8)
    result = run_batch(
        tmp_path / "digits", [[x] for x in images], options=host_build(flags=WARNINGS, sanitize=sanitize)
    )
    reference = LiteRt(DIGITS.read_bytes())
    for image, (found,) in zip(images, result.outputs, strict=True):
        np.testing.assert_array_equal(found, reference.run(image)[0])
