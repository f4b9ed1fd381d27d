"""Examples in docs/errors.md, provoked and compared line for line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.description import read_bundle
from bytewright.execute.tools import compile_c, find_tool
from bytewright.frontends.tflite import import_tflite
from bytewright.ir.border import Io
from bytewright.options import Options, Rows
from bytewright.plan.problem import Buffer, Pool, Problem
from bytewright.plan.solution import Placement
from bytewright.plan.solve import SOLVERS, register_solver, solve
from bytewright.target import load_target, load_text
from bytewright.target.options import Overrides, apply_overrides, parse_resize_option
from support.costly_models import pools
from support.digits_bundle import DIGITS
from support.with_plan import with_plan
from tflite_writer import ModelBuilder

ROOT = Path(__file__).resolve().parents[2]
BUFFERS = (
    Buffer("conv_1/out", 8192, ((0, 6),)),
    Buffer("conv_2/out", 8192, ((4, 9),)),
    Buffer("conv_2/scratch", 4096, ((5, 6),)),
)
PROBLEM = Problem(BUFFERS, (Pool("dtcm", 16384),))
MISSPELT_KEY = """name = "mine"

[memory.ram]
size = "64KiB"
lenght = 4

[device.cpu]
isa = "cortex-m3"
reach = ["ram"]
stack = "ram"
"""
FULL_MEMORY = """name = "full"
tags = ["micro"]

[memory.ram]
size = 544

[memory.fast]
size = 1500

[memory.rom]
size = "16KiB"
access = "r"

[device.cpu]
isa = "cortex-m3"
reach = ["ram", "fast", "rom"]
stack = "ram"
max-stack-size = 544

[[workspace]]
name = "fast"
memory = "fast"

[[parameters]]
name = "rom"
memory = "rom"
"""
FAILING_COMPILER = (
    "import sys; sys.exit('kws.c:1:10: fatal error: kws.h: No such file or directory')"  # status 1, on stderr
)


def not_a_model() -> None:
    Path("model.onnx").write_bytes(b"\x08\x07\x12\x07pytorch\x1a")
    import_tflite(Path("model.onnx"))


def torn_memory() -> None:
    kernel = ", ".join(
        f'{name} : buffer<8xi8, "global.{pool}"> r' for name, pool in (("near", "isram"), ("far", "dtcm"))
    )
    Path("mix.bw").write_text(f"""module m

input %x : tensor<8xi8>
output %y : tensor<8xi8>

kernel m_mix({kernel}, y : buffer<8xi8> w) on cpu {{
  for i : i32 in 0 .. 8 {{ y[i] = i8(min(i32(near[i]), i32(far[i]))) }}
}}

entry main(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {{
  call_extern m_mix(&x, &x, &y)
}}
""")
    compile_model(Path("mix.bw"), load_target("mps3-an547"))


def truncated_model() -> None:
    content = (ROOT / "examples" / "digits" / "digits.tflite").read_bytes()
    Path("digits.tflite").write_bytes(content[:4000])
    import_tflite(Path("digits.tflite"))


def a_recurrent_layer() -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 8), "float32") for name in ("x", "y"))
    builder.operator("RNN", [x], [y])
    Path("recurrent.tflite").write_bytes(builder.build([x], [y]))
    import_tflite(Path("recurrent.tflite"))


def too_many_operators() -> None:
    Path("pools.tflite").write_bytes(pools(12000))
    import_tflite(Path("pools.tflite"))


def misspelt_key() -> None:
    Path("mine.toml").write_text(MISSPELT_KEY, encoding="utf-8")
    load_target("./mine.toml")


def misspelt_pool() -> None:
    overrides = Overrides(resize=(parse_resize_option("dctm=32KiB"),))
    apply_overrides(load_target("mps3-an547"), overrides)


def mean_by_rows() -> None:
    builder = ModelBuilder()
    image = builder.tensor("image", (1, 6, 6, 2), "float32")
    axes = builder.tensor("axes", (2,), "int32", data=[1, 2])
    result = builder.tensor("result", (1, 2), "float32")
    builder.operator("MEAN", [image, axes], [result])
    Path("mean.tflite").write_bytes(builder.build([image], [result]))
    compile_model(Path("mean.tflite"), load_target("host"), Options(io=Io.ROWS))


def wrong_plan() -> None:
    register_solver("mine", lambda problem, _: [Placement(b.name, "dtcm", 0) for b in problem.buffers])
    try:
        solve(PROBLEM, solver="mine")
    finally:
        del SOLVERS["mine"]


def failing_solver() -> None:
    def refuse(problem: Problem, _: int) -> None:
        raise RuntimeError(f"{len(problem.buffers)} buffers are too many")

    register_solver("mine", refuse)
    try:
        solve(PROBLEM, solver="mine")
    finally:
        del SOLVERS["mine"]


def other_files() -> None:
    Path("out").mkdir()
    Path("out", "thesis.txt").write_text("years of work")
    write_bundle({"plan.json": b"{}"}, Path("out"))


def failing_compiler() -> None:
    compile_c([sys.executable, "-c", FAILING_COMPILER], directory=Path(), what="the C compiler")


PROVOKED: dict[str, Callable[[], object]] = {
    "BW101": lambda: import_tflite(Path("kws.tflite")),
    "BW102": not_a_model,
    "BW103": truncated_model,
    "BW104": a_recurrent_layer,
    "BW114": too_many_operators,
    "BW201": lambda: load_target("boards/mine.toml"),
    "BW202": misspelt_key,
    "BW203": lambda: load_target("mps3-an574"),
    "BW204": misspelt_pool,
    "BW206": other_files,
    "BW207": lambda: read_bundle(Path("out")),
    "BW210": mean_by_rows,
    "BW301": lambda: with_plan(solve(PROBLEM)),
    "BW401": wrong_plan,
    "BW501": lambda: find_tool("qemu-system-arm", "qemu-system-arm"),
    "BW502": failing_compiler,
    "BW705": torn_memory,
    "BW603": lambda: Problem((Buffer("b", 8, ((0, 1),), 12),), (Pool("dtcm", None),)),
    "BW604": lambda: solve(PROBLEM, solver="best"),
    "BW605": failing_solver,
}


def documented_examples(code: str) -> list[str]:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {code}: .*?(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    return [
        found.rstrip("\n") for found in re.findall(r"^```\n(.*?)```$", section[0], re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize("code", sorted(PROVOKED))
def test_the_example_is_what_bytewright_says(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # no tool is installed there
    with pytest.raises(CompileError) as caught:
        PROVOKED[code]()
    assert str(caught.value) == documented_examples(code)[0]


def test_the_second_example_of_what_does_not_fit() -> None:
    with pytest.raises(CompileError) as caught:
        compile_model(DIGITS, load_text(FULL_MEMORY, "board.toml"), Options(rows=Rows.OFF))
    assert [str(caught.value)] == documented_examples("BW301")[1:]
