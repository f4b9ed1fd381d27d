"""The driver of an Ethos-U that a bundle has, compiled and run against a core driver that records its calls."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.ethos_u import ADD_ON_CPU, SHARED, U55, needs_vela, vela, vela_operators
from support.shared_models import AD01, RESNET8, model_path

pytestmark = needs_vela
# The functions of the core driver that are used, as its documentation declares them.
DRIVER_H = """
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
struct ethosu_driver;
struct ethosu_driver *ethosu_reserve_driver(void);
void ethosu_release_driver(struct ethosu_driver *drv);
int ethosu_invoke_async(struct ethosu_driver *drv, const void *custom_data_ptr, const int custom_data_size,
    uint64_t *const base_addr, const size_t *base_addr_size, const int num_base_addr, void *user_arg);
int ethosu_wait(struct ethosu_driver *drv, bool block);
"""
APPLICATION = r"""
#include <ethosu_driver.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "m_ethos_u.h"

struct ethosu_driver { int number; };
static struct ethosu_driver only = {7};
static const char *fails = "";
static const uint64_t *kept;
static uint64_t first;

struct ethosu_driver *ethosu_reserve_driver(void) {
    puts("reserve");
    return strcmp(fails, "reserve") == 0 ? NULL : &only;
}
void ethosu_release_driver(struct ethosu_driver *drv) { printf("release %d\n", drv->number); }
int ethosu_invoke_async(struct ethosu_driver *drv, const void *code, const int size, uint64_t *const bases,
    const size_t *sizes, const int num, void *arg) {
    printf("invoke %d %.4s %d", drv->number, (const char *)code, size);
    for (int index = 0; index < num; ++index) {
        printf(" %zu", sizes[index]);
        if (bases[index] % 16u != 0u) { puts(" misaligned"); }
    }
    puts(arg == NULL ? "" : " with an argument");
    kept = bases;
    first = bases[1];
    return strcmp(fails, "invoke") == 0 ? -1 : 0;
}
int ethosu_wait(struct ethosu_driver *drv, bool block) {
    printf("wait %d %d %d\n", drv->number, (int)block, kept[1] == first);
    return strcmp(fails, "wait") == 0 ? -1 : 0;
}

static int8_t input[65536], output[65536];
int main(int count, char **arguments) {
    static m_context context;
    static m_ethos_u state;
    const m_inputs inputs = {input};
    const m_outputs outputs = {output};
    const m_devices devices = {m_ethos_u_device(&state)};
    m_workspaces workspaces = {0};
    fails = count > 1 ? arguments[1] : "";
    SET
    if (m_set_workspaces(&context, &workspaces) != M_OK) { return 1; }
    printf("%d\n", (int)m_run(&context, &inputs, &outputs, &devices));
    return 0;
}
"""
SET = (
    "workspaces.{0}.size_bytes = M_{1}_WORKSPACE_SIZE;"
    "workspaces.{0}.base = aligned_alloc(64, (M_{1}_WORKSPACE_SIZE + 63) / 64 * 64);"
)
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def built(folder: Path, content: bytes) -> tuple[Path, Path]:
    """The bundle, and a program of it."""
    path, directory, own = folder / "m.tflite", folder / "m", folder / "own"
    path.write_bytes(content)
    compiled = compile_model(path, load_target("corstone-300-u55"), Options(numerics=Numerics.TFLM))
    write_bundle(compiled.files, directory)
    own.mkdir()
    (own / "ethosu_driver.h").write_text("#pragma once\n" + DRIVER_H)
    header = (directory / "include" / "m.h").read_text()
    pools = [name for name in ("dtcm", "isram") if f"M_{name.upper()}_WORKSPACE_SIZE" in header]
    text = APPLICATION.replace("SET", "".join(SET.format(name, name.upper()) for name in pools))
    (own / "main.c").write_text(text)
    includes = [f"-I{own}", f"-I{directory / 'include'}", f"-I{directory / 'glue'}", f"-I{directory / 'src'}"]
    glue = directory / "glue" / "m_ethos_u.c"
    strict = ["gcc", *FLAGS, *includes, "-c", str(glue), "-o", str(own / "glue.o")]
    subprocess.run(strict, check=True, timeout=60)
    sources = [str(source) for source in sorted((directory / "src").glob("*.c"))]
    command = ["gcc", "-std=c11", "-O1", *includes, str(own / "main.c"), *sources, str(own / "glue.o")]
    subprocess.run([*command, "-o", str(own / "program"), "-lm"], check=True, timeout=120)
    return directory, own / "program"


def lines(program: Path, *arguments: str) -> list[str]:
    done = subprocess.run([str(program), *arguments], check=True, capture_output=True, text=True, timeout=30)
    return done.stdout.splitlines()


def test_each_job_is_an_invocation_and_each_failure_releases_the_driver(tmp_path: Path) -> None:
    content = vela(model_path(AD01).read_bytes(), U55, SHARED)
    (operator,) = vela_operators(content)
    directory, program = built(tmp_path, content)
    sizes = f"{len(operator.payload)} {operator.read_only.size_bytes} {operator.scratch.size_bytes}"
    invoke, wait = f"invoke 7 COP1 {sizes}", "wait 7 1 1"
    assert lines(program) == ["reserve", invoke, wait, "release 7", "0"]
    refused = "-8"
    assert lines(program, "reserve") == ["reserve", refused]
    assert lines(program, "invoke") == ["reserve", invoke, "release 7", refused]
    assert lines(program, "wait") == ["reserve", invoke, wait, "release 7", refused]
    header = (directory / "glue" / "m_ethos_u.h").read_text()
    assert "NPU_QCONFIG: 2 or 3 (port axi1), for 'flash'" in header
    assert "NPU_REGIONCFG_0: 2 or 3 (port axi1), for 'flash'" in header
    assert "NPU_REGIONCFG_1: 0 or 1 (port axi0), for 'isram'" in header
    assert "glue" not in (directory / "CMakeLists.txt").read_text()


def test_a_model_of_both_processors_reserves_the_driver_once(tmp_path: Path) -> None:
    content = vela(model_path(RESNET8).read_bytes(), U55, SHARED, *ADD_ON_CPU)
    _, program = built(tmp_path, content)
    found = [line.split()[0] for line in lines(program)]
    assert found == ["reserve", *["invoke", "wait"] * 4, "release", "0"]


@pytest.mark.parametrize("target", ["host", "mps2-an521"])
def test_other_targets_have_no_such_driver(target: str) -> None:
    compiled = compile_model(model_path(AD01), load_target(target), Options())
    assert not any(path.startswith("glue/") for path in compiled.files)
