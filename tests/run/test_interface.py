"""The C interface at its edges: what each function refuses, with which code, and what it leaves as it was."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from bytewright.target.dump import dump
from bytewright.target.load import load_description
from bytewright.target.registry import load_target
from support.c_program import LANGUAGE, WARNINGS, build_program, run_c, run_command
from support.kws_program import (
    ALIGN,
    HASH,
    NOT_SET,
    NULL,
    OK,
    OVERLAP,
    RANGE,
    RUN,
    SIZE,
    expected_output,
    output_of,
    two_workspaces,
)
from support.reference import LiteRt
from support.shared_models import BOARD, HOST, KWS, bundle, model_path, random_inputs, target_with


def codes(shown: dict[str, int]) -> dict[str, int]:
    return {name: code for name, code in shown.items() if not name.startswith("output")}


def test_null_is_refused_everywhere(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};
    uint8_t *const arena = block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE);
    uint8_t *const weights = block(@M@_RODATA_PARAMETERS_ALIGN, @M@_RODATA_PARAMETERS_SIZE);
    static const uint8_t bytes[] = {
#include @M@_RODATA_PARAMETERS_INITIALIZER
    };
    const @m@_workspaces workspaces = {.ram = {arena, @M@_RAM_WORKSPACE_SIZE}};
    const @m@_parameters parameters = {.rodata = weights};
    const @m@_parameters no_parameters = {NULL};
    const @m@_inputs inputs = {input};
    const @m@_outputs outputs = {output};
    const @m@_inputs no_input = {NULL};
    const @m@_outputs no_output = {NULL};

    memcpy(weights, bytes, sizeof bytes);
    SHOW("set_workspaces, context", @m@_set_workspaces(NULL, &workspaces));
    SHOW("set_workspaces, workspaces", @m@_set_workspaces(&context, NULL));
    SHOW("set_parameters, context", @m@_set_parameters(NULL, &parameters));
    SHOW("set_parameters, parameters", @m@_set_parameters(&context, NULL));
    SHOW("set_parameters, member", @m@_set_parameters(&context, &no_parameters));
    SHOW("verify_parameters", @m@_verify_parameters(NULL));
    SHOW("set workspaces", @m@_set_workspaces(&context, &workspaces));
    SHOW("set parameters", @m@_set_parameters(&context, &parameters));
    SHOW("run, context", @m@_run(NULL, &inputs, &outputs));
    SHOW("run, inputs", @m@_run(&context, NULL, &outputs));
    SHOW("run, outputs", @m@_run(&context, &inputs, NULL));
    SHOW("run, input", @m@_run(&context, &no_input, &outputs));
    SHOW("run, output", @m@_run(&context, &inputs, &no_output));
    SHOW("run", run(&context));
    show_output();
    free(arena);
    free(weights);
    return 0;
}
"""
    shown = run_c(bundle(KWS, target_with(HOST, "rodata=caller")), RUN + source, tmp_path)
    assert output_of(shown) == expected_output()
    refused = {
        name: code for name, code in codes(shown).items() if ", " in name or name == "verify_parameters"
    }
    assert len(refused) == 11
    assert set(refused.values()) == {NULL}
    assert (shown["set workspaces"], shown["set parameters"], shown["run"]) == (OK, OK, OK)


def test_parameters_that_are_not_the_models_are_refused(tmp_path: Path) -> None:
    """Every byte of the header counts at set time, every other byte in verify_parameters."""
    source = """
int main(void)
{
    @m@_context context = {0};
    uint8_t *const arena = block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE);
    uint8_t *const weights = block(@M@_RODATA_PARAMETERS_ALIGN, @M@_RODATA_PARAMETERS_SIZE + 16);
    static const uint8_t bytes[] = {
#include @M@_RODATA_PARAMETERS_INITIALIZER
    };
    const @m@_workspaces workspaces = {.ram = {arena, @M@_RAM_WORKSPACE_SIZE}};
    @m@_parameters parameters = {.rodata = weights};
    long header_refusals = 0;
    long body_passed_set = 0;
    long body_refusals = 0;

    SHOW("set workspaces", @m@_set_workspaces(&context, &workspaces));
    memcpy(weights, bytes, sizeof bytes);
    for (size_t i = 0; i < 32; ++i) {
        weights[i] ^= 1;
        header_refusals += @m@_set_parameters(&context, &parameters) == @M@_ERROR_HASH;
        weights[i] ^= 1;
    }
    SHOW("header refusals", header_refusals);
    SHOW("still not set", run(&context));
    parameters.rodata = weights + 8;
    memmove(weights + 8, bytes, sizeof bytes);
    SHOW("misaligned", @m@_set_parameters(&context, &parameters));
    memcpy(weights, bytes, sizeof bytes);
    parameters.rodata = weights;
    for (size_t i = 32; i < sizeof bytes; i += 997) {
        weights[i] ^= 0x80;
        body_passed_set += @m@_set_parameters(&context, &parameters) == @M@_OK;
        body_refusals += @m@_verify_parameters(&context) == @M@_ERROR_HASH;
        weights[i] ^= 0x80;
    }
    weights[sizeof bytes - 1] ^= 1;
    body_passed_set += @m@_set_parameters(&context, &parameters) == @M@_OK;
    body_refusals += @m@_verify_parameters(&context) == @M@_ERROR_HASH;
    weights[sizeof bytes - 1] ^= 1;
    SHOW("bytes tried", (sizeof bytes - 32 + 996) / 997 + 1);
    SHOW("body passed set", body_passed_set);
    SHOW("body refusals", body_refusals);
    SHOW("good", @m@_verify_parameters(&context));
    SHOW("run", run(&context));
    show_output();
    free(arena);
    free(weights);
    return 0;
}
"""
    shown = run_c(bundle(KWS, target_with(HOST, "rodata=caller")), RUN + source, tmp_path)
    assert shown["header refusals"] == 32
    assert shown["still not set"] == NOT_SET
    assert shown["misaligned"] == ALIGN
    assert shown["body passed set"] == shown["body refusals"] == shown["bytes tried"] > 20
    assert (shown["good"], shown["run"]) == (OK, OK)
    assert output_of(shown) == expected_output()


def test_a_refused_set_leaves_the_context_as_it_was(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};
    @m@_context before;
    const @m@_workspaces good = {{block(16, 8000), 8000}, {block(16, 8000), 8000}};
    @m@_workspaces bad = {{block(16, 8000), 8000}, {block(16, 8000), 7999}};

    SHOW("set", @m@_set_workspaces(&context, &good));
    before = context;
    SHOW("second pool too small", @m@_set_workspaces(&context, &bad));
    SHOW("unchanged", memcmp(&before, &context, sizeof context) == 0);
    bad.slow = bad.fast;
    SHOW("overlapping", @m@_set_workspaces(&context, &bad));
    SHOW("still unchanged", memcmp(&before, &context, sizeof context) == 0);
    memset(bad.fast.base, 0, 8000);
    SHOW("run", run(&context));
    for (size_t i = 0; i < 8000; ++i) {
        if (((uint8_t *)bad.fast.base)[i] != 0) {
            abort();
        }
    }
    show_output();
    return 0;
}
"""
    flags = ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")
    shown = run_c(bundle(KWS, two_workspaces()), RUN + source, tmp_path, flags)
    assert output_of(shown) == expected_output()
    assert codes(shown) == {
        "set": OK,
        "second pool too small": SIZE,
        "unchanged": 1,
        "overlapping": OVERLAP,
        "still unchanged": 1,
        "run": OK,
    }


def test_tensors_that_share_bytes_are_refused_at_run(tmp_path: Path) -> None:
    source = """
static int32_t attempt(@m@_context *context, const int8_t *in, int8_t *out)
{
    const @m@_inputs inputs = {in};
    const @m@_outputs outputs = {out};

    return @m@_run(context, &inputs, &outputs);
}

int main(void)
{
    enum { ARENA = 4096, SIZE = @M@_RAM_WORKSPACE_SIZE };
    @m@_context context = {0};
    int8_t *const memory = block(16, 32768);
    const @m@_workspaces workspaces = {{memory + ARENA, SIZE}};

    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("output in input", attempt(&context, memory, memory + 489));
    SHOW("input in output", attempt(&context, memory + 11, memory));
    SHOW("output after input", attempt(&context, memory, memory + 490));
    SHOW("output before input", attempt(&context, memory + 12, memory));
    SHOW("output in workspace", attempt(&context, memory, memory + ARENA + SIZE - 1));
    SHOW("end of output in workspace", attempt(&context, memory, memory + ARENA - 11));
    SHOW("input in workspace", attempt(&context, memory + ARENA + 100, memory));
    SHOW("end of input in workspace", attempt(&context, memory + ARENA - 489, memory));
    SHOW("next to the workspace", attempt(&context, memory + ARENA - 490, memory + ARENA + SIZE));
    free(memory);
    return 0;
}
"""
    assert run_c(bundle(KWS, load_target(HOST)), source, tmp_path) == {
        "set": OK,
        "output in input": OVERLAP,
        "input in output": OVERLAP,
        "output after input": OK,
        "output before input": OK,
        "output in workspace": OVERLAP,
        "end of output in workspace": OVERLAP,
        "input in workspace": OVERLAP,
        "end of input in workspace": OVERLAP,
        "next to the workspace": OK,
    }


def test_parameters_that_would_be_written_are_refused(tmp_path: Path) -> None:
    """Parameters in the caller's memory, where a workspace (once set) or an output (at run) would destroy them."""
    source = """
static int32_t attempt(uint8_t *memory, size_t workspace, size_t out)
{
    @m@_context context = {0};
    static const uint8_t bytes[] = {
#include @M@_RODATA_PARAMETERS_INITIALIZER
    };
    const @m@_workspaces workspaces = {{memory + workspace, @M@_RAM_WORKSPACE_SIZE}};
    const @m@_parameters parameters = {memory + 65536};
    const @m@_inputs inputs = {(const int8_t *)memory + 65536};
    const @m@_outputs outputs = {(int8_t *)memory + out};

    memcpy(memory + 65536, bytes, sizeof bytes);
    if (@m@_set_workspaces(&context, &workspaces)) {
        return 1;
    }
    const int32_t set = @m@_set_parameters(&context, &parameters);
    const int32_t result = @m@_run(&context, &inputs, &outputs);
    if (memcmp(memory + 65536, bytes, sizeof bytes) != 0) {
        return 2;
    }
    return set ? (result == @M@_ERROR_NOT_SET ? set : 3) : result;
}

int main(void)
{
    enum { AT = 65536, END = AT + @M@_RODATA_PARAMETERS_SIZE, LAST = (END - 1) / 16 * 16 };
    uint8_t *const memory = block(16, 262144);

    SHOW("workspace at the front", attempt(memory, AT - @M@_RAM_WORKSPACE_SIZE + 16, 0));
    SHOW("workspace at the end", attempt(memory, LAST, 0));
    SHOW("output at the front", attempt(memory, 16, AT - 11));
    SHOW("output at the end", attempt(memory, 16, END - 1));
    SHOW("next to it, an input inside", attempt(memory, AT - @M@_RAM_WORKSPACE_SIZE, END));
    free(memory);
    return 0;
}
"""
    assert run_c(bundle(KWS, target_with(HOST, "rodata=caller")), source, tmp_path) == {
        "workspace at the front": OVERLAP,
        "workspace at the end": OVERLAP,
        "output at the front": OVERLAP,
        "output at the end": OVERLAP,
        "next to it, an input inside": OK,
    }


def test_inputs_and_what_lies_round_the_arena_are_not_changed(tmp_path: Path) -> None:
    """A larger arena may be lent; only its first bytes are used."""
    source = """
int main(void)
{
    @m@_context context = {0};
    uint8_t *const arena = block(16, 65536);
    const @m@_workspaces workspaces = {{arena + 1024, 65536 - 1024}};
    static int8_t copy[490];

    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("run", run(&context));
    memcpy(copy, input, sizeof copy);
    SHOW("run again", run(&context));
    SHOW("input as it was", memcmp(copy, input, sizeof copy) == 0);
    for (size_t i = 0; i < 65536; ++i) {
        if ((i < 1024 || i >= 1024 + @M@_RAM_WORKSPACE_SIZE) && arena[i] != 0x5A) {
            abort();
        }
    }
    show_output();
    free(arena);
    return 0;
}
"""
    shown = run_c(bundle(KWS, load_target(HOST)), RUN + source, tmp_path)
    assert codes(shown) == {"set": OK, "run": OK, "run again": OK, "input as it was": 1}
    assert output_of(shown) == expected_output()


def test_floats_must_be_aligned(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};
    uint8_t *const memory = block(16, 16384);
    const @m@_workspaces workspaces = {{block(16, @M@_RAM_WORKSPACE_SIZE), @M@_RAM_WORKSPACE_SIZE}};
    const @m@_inputs inputs = {(const float *)(const void *)memory};
    const @m@_outputs outputs = {(float *)(void *)(memory + 8192)};
    @m@_inputs odd_inputs;
    @m@_outputs odd_outputs;
    const uintptr_t odd_input = (uintptr_t)memory + 2;
    const uintptr_t odd_output = (uintptr_t)memory + 8193;

    memset(memory, 0, 16384);
    memcpy(&odd_inputs, &odd_input, sizeof odd_input);
    memcpy(&odd_outputs, &odd_output, sizeof odd_output);
    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("odd input", @m@_run(&context, &odd_inputs, &outputs));
    SHOW("odd output", @m@_run(&context, &inputs, &odd_outputs));
    SHOW("run", @m@_run(&context, &inputs, &outputs));
    return 0;
}
"""
    flags = ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")
    assert run_c(bundle("ad01_fp32", load_target(HOST)), source, tmp_path, flags) == {
        "set": OK,
        "odd input": ALIGN,
        "odd output": ALIGN,
        "run": OK,
    }


def test_a_memory_may_end_where_addresses_end(tmp_path: Path) -> None:
    """Compiled for 32 bits too, where one past the last address is no number."""
    description: dict[str, Any] = dump(load_target(BOARD))
    description["memory"]["top"] = {"base": 0xFFFE0000, "size": "128KiB"}
    description["device"]["cpu"]["reach"].append("top")
    description["workspace"] = [{"name": "top", "memory": "top"}]
    folder = bundle(KWS, load_description(description))
    source = """
static int32_t set(uintptr_t top)
{
    @m@_context context = {0};
    const @m@_workspaces workspaces = {{(void *)top, @M@_TOP_WORKSPACE_SIZE}};
    return @m@_set_workspaces(&context, &workspaces);
}

int main(void)
{
    SHOW("first", set(0xFFFE0000u));
    SHOW("last", set(0xFFFFFFFFu - @M@_TOP_WORKSPACE_SIZE + 1));
    SHOW("past", set(0xFFFFFFFFu - @M@_TOP_WORKSPACE_SIZE + 17));
    SHOW("before", set(0xFFFDFFF0u));
    return 0;
}
"""
    flags = ("-O1", "-DKWS_REF_MODEL_CHECK_RANGE=1")
    expected = {"first": OK, "last": OK, "past": RANGE, "before": RANGE}
    assert run_c(folder, source, tmp_path, flags) == expected
    if shutil.which("arm-none-eabi-gcc") is not None:
        include = [f"-I{path}" for path in (folder / "include", folder / "src")]
        command = ["arm-none-eabi-gcc", *LANGUAGE, *WARNINGS, "-mcpu=cortex-m55", *include, "-c"]
        run_command([*command, folder / "src" / "kws_ref_model.c", "-o", "out.o"], tmp_path)


def test_errors_are_negative_and_distinct() -> None:
    header = (bundle(KWS, load_target(HOST)) / "include" / "kws_ref_model.h").read_text()
    found = dict(re.findall(r"KWS_REF_MODEL_(OK|ERROR_\w+) = (-?\d+)", header))
    names = "NULL SIZE ALIGN OVERLAP RANGE HASH NOT_SET DEVICE NO_MEMORY EXTENT ORDER EXTERNAL"
    assert list(found) == ["OK", *(f"ERROR_{name}" for name in names.split())]
    assert found.pop("OK") == "0"
    numbers = [int(number) for number in found.values()]
    assert len(set(numbers)) == len(numbers)
    assert all(number < 0 for number in numbers)
    named = {"NULL": NULL, "SIZE": SIZE, "ALIGN": ALIGN, "OVERLAP": OVERLAP, "HASH": HASH, "NOT_SET": NOT_SET}
    assert {name: int(found[f"ERROR_{name}"]) for name in named} == named


THREADS = """
#include <pthread.h>

enum { TURNS = 20, INPUT = 490, OUTPUT = 12 };

struct task {
    int8_t inputs[TURNS][INPUT];
    int8_t outputs[TURNS][OUTPUT];
    int32_t status;
};

static struct task tasks[2];
static pthread_barrier_t barrier;

static void *work(void *argument)
{
    struct task *const task = argument;
    @m@_context context = {0};
    const @m@_workspaces workspaces = {
        {block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE), @M@_RAM_WORKSPACE_SIZE}};

    task->status = @m@_set_workspaces(&context, &workspaces);
    pthread_barrier_wait(&barrier);
    for (int turn = 0; turn < TURNS && task->status == 0; ++turn) {
        const @m@_inputs inputs = {task->inputs[turn]};
        const @m@_outputs outputs = {task->outputs[turn]};

        task->status = @m@_run(&context, &inputs, &outputs);
    }
    free(workspaces.ram.base);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    FILE *const file = fopen("inputs.bin", "rb");
    FILE *const result = fopen("outputs.bin", "wb");

    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; ++i) {
        if (fread(tasks[i].inputs, sizeof tasks[i].inputs, 1, file) != 1) {
            return 1;
        }
    }
    for (int i = 0; i < 2; ++i) {
        pthread_create(&threads[i], NULL, work, &tasks[i]);
    }
    for (int i = 0; i < 2; ++i) {
        pthread_join(threads[i], NULL);
        if (tasks[i].status != 0 || fwrite(tasks[i].outputs, sizeof tasks[i].outputs, 1, result) != 1) {
            return 1;
        }
    }
    fclose(file);
    return fclose(result);
}
"""


def test_two_contexts_run_in_two_threads(tmp_path: Path) -> None:
    """Under the thread sanitizer, each thread with inputs of its own."""
    batch = [inputs[0] for inputs in random_inputs(KWS, 40, seed=31)]
    (tmp_path / "inputs.bin").write_bytes(b"".join(x.tobytes() for x in batch))
    flags = ("-O2", "-g", "-fsanitize=thread")
    program = build_program(bundle(KWS, load_target(HOST)), THREADS, tmp_path, flags)
    run_command([program], tmp_path)
    outputs = np.frombuffer((tmp_path / "outputs.bin").read_bytes(), np.int8).reshape(40, 12)
    reference = LiteRt(model_path(KWS))
    expected = [reference.run(x)[0][0] for x in batch]
    np.testing.assert_array_equal(outputs, np.array(expected))
