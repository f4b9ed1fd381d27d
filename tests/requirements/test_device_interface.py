"""Requirements C2, C3, C4, C6 and C7: what a model and the drivers of an application owe each other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute.description import read_bundle
from bytewright.inspect.check import check_bundle
from bytewright.inspect.check_plan import faults_of_plan
from bytewright.ir.border import Io
from bytewright.ir.packed import Form
from bytewright.options import Options
from bytewright.record.plan_file import plan_of
from support import device_memory
from support.c_program import run_c, run_command
from support.device_memory import replaced
from support.two_devices import APPLICATION, DRIVERS, INPUT, PROGRAM, TARGET, bundle, compiled, evaluated

REFUSALS = r"""
int main(void)
{
    prepare();
    const @m@_devices given = devices;
    const @m@_inputs inputs = {x};
    const @m@_outputs outputs = {y};
    restart(0);
    SHOW("none", @m@_run(&context, &inputs, &outputs, NULL));
    devices.dma.launch = NULL;
    SHOW("launch", run());
    devices = given;
    devices.core1.wait = NULL;
    SHOW("wait", run());
    SHOW("calls", num_calls);
    devices = given;
    devices.core1.activate = NULL;
    devices.core1.deactivate = NULL;
    devices.dma.activate = NULL;
    devices.dma.deactivate = NULL;
    devices.dma.open = NULL;
    devices.dma.close = NULL;
    dma_driver.is_open = core1_driver.is_active = 1;
    dma_driver.num_memories = 2;
    dma_driver.memories[0].base = workspaces.near.base;
    dma_driver.memories[0].size_bytes = (uint32_t)workspaces.near.size_bytes;
    dma_driver.memories[0].access = 3;
    dma_driver.memories[1].base = workspaces.shared.base;
    dma_driver.memories[1].size_bytes = (uint32_t)workspaces.shared.size_bytes;
    dma_driver.memories[1].access = 3;
    SHOW("fewer", run());
    for (int i = 0; i < 32; ++i) {
        printf("y.%d %d\n", i, y[i]);
    }
    finish();
    return 0;
}
"""
CONTEXT = """
module driven

input %x : tensor<8xi8>
output %y : tensor<8xi8>

extern app_drive(x : buffer<8xi8> r, y : buffer<8xi8> w, npu : context<npu>) on cpu stack=64 status {}

kernel driven_pass(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {
  for i : i32 in 0 .. 8 {
    y[i] = x[i]
  }
}

entry main(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {
  allocate t : buffer<8xi8>
  call_extern driven_pass(&x, &t)
  call_extern app_drive(&t, &y, context_of(npu)) {touched_by=(("cpu", "npu"), ("cpu",), ())}
}
"""
WITH_NPU = TARGET.replace('[device.dma]\nisa = "dma"', '[device.npu]\nisa = "npu"')
DRIVES = r"""
#include "driven_externals.h"

typedef struct { int added, active, open; } state;
static state mine = {3, 0, 0};

int32_t app_drive(const int8_t *x, int8_t *y, driven_npu_context npu)
{
    const state *const device = npu.self;
    for (int i = 0; i < 8; ++i) {
        y[i] = (int8_t)(x[i] + device->added);
    }
    return device->active == 1 && device->open == 1 ? 0 : 1;
}

static int32_t activate(void *self) { ((state *)self)->active += 1; return 0; }
static void deactivate(void *self) { ((state *)self)->active -= 1; }
static int32_t open_it(void *self, const driven_span *memories, uint32_t num)
{
    (void)memories;
    ((state *)self)->open += num == 1;
    return 0;
}
static void close_it(void *self) { ((state *)self)->open -= 1; }

int main(void)
{
    driven_context context;
    int8_t x[8] = {0, 1, 2, 3, 4, 5, 6, 7}, y[8] = {0};
    const driven_inputs inputs = {x};
    const driven_outputs outputs = {y};
    const driven_devices devices = {{&mine, activate, open_it, NULL, NULL, close_it, deactivate}};
    driven_workspaces workspaces;
    memset(&context, 0, sizeof context);
    memset(&workspaces, 0, sizeof workspaces);
    workspaces.@POOL@.base = block(16, @SIZE@);
    workspaces.@POOL@.size_bytes = @SIZE@;
    SHOW("set", driven_set_workspaces(&context, &workspaces));
    SHOW("run", driven_run(&context, &inputs, &outputs, &devices));
    SHOW("y", y[7]);
    SHOW("left", mine.active + mine.open);
    free(workspaces.@POOL@.base);
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the program for three devices."""
    return bundle(tmp_path_factory.mktemp("devices") / "bundle")


def refusals(text: str, target: str = TARGET) -> dict[str, str]:
    """What a compile says, by code."""
    with pytest.raises(CompileError) as caught:
        compiled(text, target)
    return {diagnostic.code: diagnostic.message for diagnostic in caught.value.diagnostics}


def test_c3_hooks_may_be_missing_but_for_launch_and_wait(folder: Path, tmp_path: Path) -> None:
    shown = run_c(folder, DRIVERS + APPLICATION + REFUSALS, tmp_path)
    assert {shown[name] for name in ("none", "launch", "wait")} == {-1}, "ERROR_NULL"
    assert shown["calls"] == 0, "nothing was activated"
    assert shown["fewer"] == 0
    expected = evaluated(PROGRAM, {"x": INPUT})["y"]
    assert [shown[f"y.{i}"] for i in range(32)] == expected.tolist()


def test_c4_copies_go_through_the_device_that_reaches_both_memories(folder: Path) -> None:
    plan = read_bundle(folder).plan
    assert [step.device for step in plan.steps] == ["cpu", "dma", "core1", "cpu", "core1", "dma", "cpu"]
    assert plan.devices["dma"].kind == "copy"
    text = (folder / "src" / "pair.c").read_text()
    assert text.count("hand_over(&devices->dma, NULL, 0u, spans, 2u)") == 2
    assert "pair_fetch(" not in text


@pytest.mark.parametrize("form", list(Form))
def test_c2_a_context_is_an_argument_of_the_kernels_that_need_it(tmp_path: Path, form: Form) -> None:
    folder = bundle(tmp_path / "bundle", CONTEXT, WITH_NPU, Options(calling_form=form))
    check_bundle(folder)
    kernels = (folder / "src" / "driven_kernels.h").read_text()
    assert "context" not in kernels.split("driven_pass")[1].split(";")[0]
    externals = (folder / "include" / "driven_externals.h").read_text()
    assert "int32_t app_drive(const int8_t *x, int8_t *y, driven_npu_context npu);" in externals
    (pool,) = read_bundle(folder).plan.caller_workspaces
    program = DRIVES.replace("@POOL@", pool.c_name).replace("@SIZE@", str(pool.used_bytes))
    assert run_c(folder, program, tmp_path) == {"set": 0, "run": 0, "y": 10, "left": 0}


def test_c6_a_context_is_of_the_device_that_its_type_names() -> None:
    other = CONTEXT.replace("context_of(npu)", "context_of(core1)")
    assert (
        "is the context of device 'npu', the argument that of 'core1'" in refusals(other, WITH_NPU)["BW113"]
    )
    own = CONTEXT.replace("context<npu>", "context<cpu>").replace("context_of(npu)", "context_of(cpu)")
    assert "which runs it" in refusals(own, WITH_NPU)["BW113"]
    header = compiled(CONTEXT, WITH_NPU).files["include/driven.h"].decode()
    assert "} driven_npu_context;" in header


def test_c2_no_kernel_hands_work_on() -> None:
    nested = PROGRAM.replace(
        "entry main",
        "kernel pair_both(x : buffer<32xi32> r, y : buffer<32xi16> w) on cpu {\n"
        "  call_extern pair_narrow(&x, &y)\n}\n\nentry main",
    ).replace("call_extern pair_narrow(&shifted", "call_extern pair_both(&shifted")
    assert refusals(nested) == {"BW720": "'pair_narrow' runs on device 'core1', its caller on 'cpu'"}


def test_a_device_without_c_is_handed_jobs_alone() -> None:
    plain = PROGRAM.replace(" on dma\n    job(copy)", " on dma")
    assert refusals(plain)["BW721"] == "kernel 'pair_return' is for device 'dma', which runs no C"
    wide = PROGRAM.replace("first : i32", "first : f32").replace("sum[] = first", "sum[] = i32(first)")
    assert "is handed numbers of i32" in refusals(wide.replace(", 7, true", ", 7.0:f32, true"))["BW721"]


def test_a_job_without_memory_is_none() -> None:
    kernel = "kernel pair_pause(turns : i32) on core1 {\n}\n\nentry main"
    pausing = PROGRAM.replace("entry main", kernel).replace(
        "call_extern pair_return", "call_extern pair_pause(3)\n  call_extern pair_return"
    )
    reason = "has no buffer, so nothing that device 'core1' does in it reaches the model"
    assert refusals(pausing) == {"BW721": f"kernel 'pair_pause' {reason}"}


LINES = TARGET.replace(
    'isa = "host"\nreach = ["shared", "flash"]',
    'isa = "host"\ncache-line = 32\nreach = [{ memory = "shared", coherent = false }, "flash"]',
)


def test_what_a_device_without_coherence_touches_shares_no_line() -> None:
    odd = PROGRAM.replace("32x", "35x").replace("0 .. 32", "0 .. 35").replace("38xi16", "38xi16")
    odd = odd.replace("buffer<35xi16>   ", "buffer<35xi16>").replace("tensor<32", "tensor<35")
    odd = odd.replace("allocate padded : buffer<35xi16>", "allocate padded : buffer<38xi16>")
    plan = compiled(odd, LINES).plan
    # In a step of the entry's own device, what it writes may lie over what dies there.
    in_place = {(pair.source, pair.output) for step in plan.steps for pair in step.overlaps}
    assert in_place == {("filtered", "shifted")}
    of_core1 = [b for b in plan.buffers_in("shared") if "core1" in b.devices]
    assert {b.name for b in of_core1} == {"lent", "filtered", "shifted", "narrow"}
    for buffer in of_core1:
        assert (buffer.place.offset or 0) % 32 == 0
        assert buffer.extent_bytes % 32 == 0
        assert 0 <= buffer.extent_bytes - buffer.size_bytes < 32
        for other in plan.buffers_in("shared"):
            apart = buffer.live[1] <= other.live[0] or other.live[1] <= buffer.live[0]  # type: ignore[index]
            apart = apart or {(buffer.name, other.name), (other.name, buffer.name)} & in_place
            first, second = buffer.place.offset or 0, other.place.offset or 0
            assert other is buffer or apart or first + buffer.extent_bytes <= second or second + 1 <= first
    assert faults_of_plan(plan) == []
    assert all(b.line_bytes == 0 for b in compiled(odd).plan.buffers.values())


def test_what_a_device_touches_is_aligned_for_it() -> None:
    strict = TARGET.replace('[device.dma]\nisa = "dma"', '[device.dma]\nisa = "dma"\ntouch-alignment = 64')
    plan = compiled(PROGRAM, strict).plan
    assert all((b.place.offset or 0) % 64 == 0 for b in plan.buffers_in("near"))
    assert plan.pools["near"].alignment == 64


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d["devices"].clear(), "does not take part"),
        (lambda d: d["devices"][1]["kernels"].pop(), "device 'core1' has the kernels"),
        (lambda d: d["devices"][1]["kernels"][0].update(number=1), "are not numbered from 0"),
        (lambda d: d["devices"][0].update(kind="stream"), "its kernels make it 'copy'"),
        (lambda d: d["devices"][0].update(isa="npu"), "is none that the target has"),
    ],
)
def test_check_proves_what_plan_json_says_of_devices(
    damage: Callable[[dict[str, Any]], object], message: str
) -> None:
    document = json.loads(compiled().files["plan.json"])
    assert faults_of_plan(plan_of(document)) == []
    damage(document)
    assert any(message in fault for fault in faults_of_plan(plan_of(document)))


def test_c7_a_pool_that_the_cpu_does_not_reach_is_obtained_by_a_device_and_has_no_address() -> None:
    found = compiled(device_memory.PRIVATE, device_memory.TARGET)
    (pool,) = found.plan.device_workspaces
    assert (pool.name, pool.obtained_by, pool.used_bytes) == ("local", "dma", 192)
    assert json.loads(found.files["plan.json"])["pools"][2]["obtained_by"] == "dma"
    header, entry = (found.files[path].decode() for path in ("include/pair.h", "src/pair.c"))
    assert re.findall(r"PAIR_MEMORY_\w+ = \d+", header) == ["PAIR_MEMORY_LOCAL = 1"]
    assert re.findall(r"#define (PAIR_LOCAL\w+ \d+)", header) == [
        "PAIR_LOCAL_WORKSPACE_SIZE 192",
        "PAIR_LOCAL_WORKSPACE_ALIGN 16",
    ]
    of_memory = re.search(r"typedef struct \{([^}]*)\} pair_workspaces;", header)
    assert of_memory is not None
    assert "near" in of_memory[1]
    assert "local" not in of_memory[1]
    assert "uint8_t *local" not in header + entry
    assert "pair_local_workspace" not in entry
    assert set(
        re.findall(r"\w*local\w*", re.sub(r"/\*.*?\*/", "", entry.partition("run_steps(")[2]).lower())
    ) == {
        "pair_memory_local",
        *(f"pair_at_local_{name}" for name in ("lent", "filtered", "shifted", "narrow")),
    }


def test_c7_a_model_without_such_a_pool_knows_nothing_of_them(folder: Path) -> None:
    """Neither a bundle for devices that share memory, nor one for a target where only the pool is not used."""
    unused = replaced(
        device_memory.TARGET, ('reach = ["local", "flash"]', 'reach = ["local", "flash", "shared"]')
    )
    files = compiled(PROGRAM, unused).files
    for text in (files["include/pair.h"].decode(), (folder / "include" / "pair.h").read_text()):
        assert "void *base;\n    uint32_t size_bytes;\n    uint32_t access;\n} pair_span;" in text
        assert not re.search("MEMORY_LOCAL|OBTAIN", text)
    assert "obtained_by" not in files["plan.json"].decode()


OWN_IO = '[[io]]\nname = "io"\nmemory = "local"\nsize = "1KiB"\n'
LOOKS = (
    ("kernel pair_fetch(", "extern app_look(x : buffer<32xi16> r) on cpu stack=64 {}\n\nkernel pair_fetch("),
    (
        "  call_extern pair_filter(",
        '  call_extern app_look(&lent) {touched_by=(("core1",),)}\n  call_extern pair_filter(',
    ),
)


@pytest.mark.parametrize(
    ("program", "target", "io", "what", "reason"),
    [
        (LOOKS, (), Io.CALLER, "lent", "'main' on device 'cpu' passes its address to 'app_look'"),
        (
            (),
            (("[device.core1]", "[device.core1]\nuse-backend-alloc-workspace = true"),),
            Io.CALLER,
            "filtered/padded",
            "'main' on device 'cpu' requests it at run time, for 'pair_filter'",
        ),
        (
            (),
            (("[[parameters]]", f"{OWN_IO}[[parameters]]"),),
            Io.WORKSPACE,
            "x",
            "'main' on device 'cpu' returns its address to the application",
        ),
    ],
    ids=["to a function of the CPU", "requested at run time", "input of the application"],
)
def test_c7_what_the_cpu_has_the_address_of_does_not_lie_there(
    program: tuple[tuple[str, str], ...],
    target: tuple[tuple[str, str], ...],
    io: Io,
    what: str,
    reason: str,
) -> None:
    texts = (replaced(device_memory.PRIVATE, *program), replaced(device_memory.TARGET, *target))
    with pytest.raises(CompileError) as caught:
        compiled(*texts, Options(io=io))
    found = next(d for d in caught.value.diagnostics if f"'{what}'" in d.message)
    assert (found.code, found.message) == ("BW301", f"'{what}' cannot be placed in any workspace pool")
    assert reason in found.notes


def test_a_bundle_for_one_device_says_nothing_of_devices() -> None:
    one = PROGRAM.replace(" on dma\n    job(copy)", " on cpu").replace("on core1", "on cpu")
    files = compiled(one).files
    assert "devices" not in json.loads(files["plan.json"])
    assert not any(b"pair_span" in content for content in files.values())


def test_the_c_has_no_warning(folder: Path, tmp_path: Path) -> None:
    plan = read_bundle(folder)
    sources = [str(source) for source in plan.sources]
    assert any(source.endswith("pair_core1_kernels.c") for source in sources)
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-qual", "-Werror")
    for compiler in ("gcc", "clang"):
        includes = [f"-I{path}" for path in plan.include_directories]
        run_command([compiler, "-std=c99", *warnings, "-O2", "-fsyntax-only", *includes, *sources], tmp_path)
