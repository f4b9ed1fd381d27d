"""`check --stack` by clang: frames and calls that hold against what boards and compilers show."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.check import prove_stacks
from bytewright.cli.main import bytewright as command_line
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.inspect.stack.call_graph import INDIRECT, read_call_graph, worst_path
from bytewright.inspect.stack.clang_call_graph import FLAGS, clang_call_graph
from bytewright.record.plan_file import read_plan
from support.digits_bundle import DIGITS

pytestmark = [
    pytest.mark.board,
    pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed"),
]
SOURCE = """\
#include <stdint.h>
#include <string.h>
float expf(float x);
void sink(void *x);
static __attribute__((noinline)) float leaf(const float *x) { float a[30]; memcpy(a, x, 120); sink(a); return a[3]; }
float calls(float *x, int n, float (*f)(float)) { float s = leaf(x); while (n-- > 0) s += f(x[n]); return s; }
int64_t divides(int64_t a, int64_t b) { return a / b; }
float ends_with(float x) { return expf(x); }
int32_t alone(int32_t x) { int32_t s = 0; for (int32_t i = 0; i < x; ++i) s += i ^ (x * s); return s; }
void aligned(void) { char a[64] __attribute__((aligned(64))); sink(a); }
void dynamic(int n) { char a[n]; sink(a); }
int chooses(int x) {
    switch (x) { case 0: return 9; case 1: sink(&x); return 7; case 2: return 99; case 3: return -3; case 4: return 4;
                 case 5: sink(0); return 8; default: return 5; }
}
int chooses_a_call(int x, int (*f)(int)) {
    switch (x) { case 0: return f(1); case 1: return 7; case 2: return 99; case 3: return -3; case 4: return f(8);
                 case 5: sink(&x); return 8; default: return 5; }
}
"""
TARGETS = {
    "arm-none-eabi": ("-mcpu=cortex-m0", "-mthumb", "--sysroot=/usr/lib/arm-none-eabi"),
    "aarch64-linux-gnu": ("-mno-red-zone",),
    "x86_64-linux-gnu": ("-mno-red-zone",),
}


@pytest.mark.parametrize("triple", TARGETS)
@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os"])
def test_calls_and_frames_of_a_source(triple: str, level: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    command = ["clang", f"--target={triple}", *TARGETS[triple], *FLAGS, level, "-S", "a.c", "-o", "a.s"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    text = clang_call_graph("a.c", *((tmp_path / f"a.{kind}").read_text() for kind in ("s", "su")))
    graph = read_call_graph([text])
    choosing = {"chooses", "chooses_a_call"}
    assert set(graph) == {
        "calls",
        "divides",
        "ends_with",
        "alone",
        "aligned",
        "dynamic",
        "a.c:leaf",
        *choosing,
    }
    assert [INDIRECT in graph[name].callees for name in sorted(choosing)] == [False, True]
    assert {"a.c:leaf", INDIRECT} <= set(graph["calls"].callees)
    assert "expf" in graph["ends_with"].callees
    assert "sink" in graph["a.c:leaf"].callees
    assert graph["a.c:leaf"].stack_bytes >= 120
    assert graph["alone"].callees == ()
    assert graph["alone"].is_bounded
    assert graph["aligned"].stack_bytes >= 64 + 56  # that many may be skipped to get there
    assert not graph["dynamic"].is_bounded
    if "arm" in triple:  # which has no instruction for it
        assert graph["divides"].callees == ("__aeabi_ldivmod",)
    elif "x86" in triple:  # the address that a call pushes
        assert min(frame.stack_bytes for frame in graph.values()) >= 8
    assert worst_path(graph, "calls", {}).total_bytes >= 120 + graph["calls"].stack_bytes


@pytest.mark.parametrize("board", ["mps3-an547", "mps2-an386", "mps2-an500"])
def test_a_run_needs_no_more_than_was_found(board: str, tmp_path: Path) -> None:
    folder = bytewright.compile(DIGITS, target=board).write(tmp_path / "digits")
    proof, *_ = prove_stacks(folder, read_plan(folder), ("-O2",), "clang")
    ran = run_bundle(folder, on="qemu", options=BuildOptions(compiler="clang"))
    assert ran.stack_bytes is not None
    assert ran.stack_bytes <= proof.measured.total_bytes <= ran.stack_bytes + 64


@pytest.mark.parametrize("target", ["host", "x86-64-v3", "x86-64-v4-vnni", "aarch64", "mps2-an521"])
def test_the_command_takes_a_compiler(target: str, tmp_path: Path) -> None:
    folder = bytewright.compile(DIGITS, target=target).write(tmp_path / "digits")
    outputs: list[str] = []
    for compiler in ("gcc", "clang"):
        result = CliRunner().invoke(command_line, ["check", str(folder), "--stack", "--compiler", compiler])
        assert result.exit_code == 0, result.output
        assert "worst path: digits_run" in result.stdout
        outputs.append(result.stdout)
    assert outputs[0] != outputs[1]
