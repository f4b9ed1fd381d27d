"""Programs whose names C cannot have as they are: the C compiles, computes what the IR means, and can be checked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.description import read_bundle
from bytewright.inspect.check import check_bundle
from bytewright.target.registry import load_target
from support.ir_program import assert_c_is_the_module, read_module, write_module

PROGRAM = """
module m
input %{x} : tensor<4xi8>
output %{y} : tensor<4xi8>
kernel "{kernel}"(
    "{a}" : buffer<4xi8, "global", align=1> r activation,
    "{b}" : buffer<4xi8, "global", align=1> w activation,
    "{scalar}" : i32
) on cpu {{
  allocate "{scratch}" : buffer<4xi8, "local", align=1>
  for "{loop}" : i32 in 0 .. 4 {{
    let "{let}" : i32 = max(i32("{a}"["{loop}"]) - "{scalar}", -128)
    "{scratch}"["{loop}"] = i8("{let}")
    "{b}"["{loop}"] = "{scratch}"["{loop}"]
  }}
}}
kernel "{other}"(
    "{a}" : buffer<4xi8, "global", align=1> r activation,
    "{b}" : buffer<4xi8, "global", align=1> w activation
) on cpu {{
  call_extern "{kernel}"(&"{a}", &"{b}", 1)
}}
entry main(
    "{x}" : buffer<4xi8, "global", align=1> r activation,
    "{y}" : buffer<4xi8, "global", align=1> w activation
) on cpu {{
  allocate "{t}" : buffer<4xi8, "global.workspace", align=1>
  allocate "{u}" : buffer<4xi8, "global.workspace", align=1>
  call_extern "{kernel}"(&"{x}", &"{t}", 3)
  call_extern "{other}"(&"{t}", &"{u}")
  call_extern "{kernel}"(&"{u}", &"{y}", 2)
}}
"""
PLAIN = {
    "kernel": "m_f", "other": "m_g", "a": "a", "b": "b", "scalar": "s", "scratch": "c", "loop": "i", "let": "v",
    "x": "x", "y": "y", "t": "t", "u": "u",
}  # fmt: skip
CASES = {
    "functions of the bundle": {"kernel": "m_run", "other": "m_set_workspaces"},
    "types of the bundle": {"kernel": "m_context", "other": "m_ram_workspace"},
    "functions of ports": {"kernel": "m_input_x", "other": "m_backend_alloc_workspace"},
    "functions of C": {"kernel": "memcpy", "other": "printf"},
    "keywords": {
        "kernel": "int",
        "other": "while",
        "a": "for",
        "b": "double",
        "scalar": "return",
        "loop": "if",
    },
    "more keywords": {"scratch": "typeof", "let": "nullptr", "a": "bool", "b": "uint8_t", "loop": "linux"},
    "characters": {
        "kernel": "a b",
        "other": "a.b",
        "a": "a b",
        "b": "a.b",
        "scratch": "a_b",
        "loop": "ä",
        "let": "1",
    },
    "helpers": {"a": "max_i32", "b": "min_i32", "scratch": "m_f", "let": "expf", "loop": "INT32_MIN"},
    "case": {"t": "T", "u": "t"},
    "slashes": {"t": "a/b", "u": "a__b"},
    "more slashes": {"t": "a_/b", "u": "a/_b"},
    "tensors": {"t": "a b", "u": "a.b"},
    "ports": {"x": "serving:0", "y": "stdin"},
    "more ports": {"x": "class", "y": "char8_t"},
    "bases": {"t": "ram", "u": "context", "kernel": "ram", "other": "shared"},
}


@pytest.mark.parametrize("case", CASES)
def test_every_name_is_one_of_c(case: str, tmp_path: Path) -> None:
    names = {**PLAIN, **CASES[case]}
    text = PROGRAM.format(**names)
    for port in ("x", "y"):
        text = text.replace(f"%{names[port]} ", f'%"{names[port]}" ')
    x = np.array([100, -100, 5, -127], np.int8)
    (result,) = assert_c_is_the_module(text, tmp_path, [x])
    np.testing.assert_array_equal(result, np.maximum(x.astype(np.int32) - 6, -128))
    check_bundle(tmp_path / "bundle")
    source = "#include <errno.h>\n#include <stdio.h>\n" + "".join(
        f'#include "{path.name}"\n' for path in (tmp_path / "bundle" / "include").glob("*.h")
    )
    command = [
        "g++",
        "-std=gnu++20",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsyntax-only",
        "-Iinclude",
        "-x",
        "c++",
        "-",
    ]
    subprocess.run(command, input=source, text=True, check=True, cwd=tmp_path / "bundle")


def test_external_symbols_begin_with_the_models_name(tmp_path: Path) -> None:
    names = {**PLAIN, "kernel": "conv", "other": "m"}
    folder = write_module(read_module(PROGRAM.format(**names)), tmp_path / "bundle")
    for source in read_bundle(folder).sources:
        subprocess.run(["gcc", "-Iinclude", "-c", str(source), "-o", "out.o"], cwd=folder, check=True)
        listed = subprocess.run(["nm", "-g", "out.o"], cwd=folder, capture_output=True, text=True, check=True)
        defined = [line.split()[-1] for line in listed.stdout.splitlines() if " U " not in line]
        assert [name for name in defined if not name.startswith("m_")] == []


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("module m", "module stdio", "BW117"),
        ("module m", "module int", "BW117"),
        ("module m", 'module "a b"', "BW117"),
        ("module m", "module all", "BW117"),
    ],
)
def test_models_that_cannot_be_called_so(before: str, after: str, code: str) -> None:
    module = read_module(PROGRAM.format(**PLAIN).replace(before, after))
    with pytest.raises(CompileError) as caught:
        compile_model(module, load_target("host"))
    assert [d.code for d in caught.value.diagnostics] == [code]
    help_line = caught.value.diagnostics[0].help or ""
    assert compile_model(read_module(PROGRAM.format(**PLAIN).replace(before, help_line)), load_target("host"))


@pytest.mark.parametrize(("first", "second"), [("a.b", "a:b"), ("a b", "a_b"), ("int", "int_")])
def test_ports_that_become_one_get_a_number(first: str, second: str) -> None:
    text = """
module m
input %"FIRST" : tensor<4xi8>
input %"SECOND" : tensor<4xi8>
output %y : tensor<4xi8>
kernel m_f(
    a : buffer<4xi8, "global", align=1> r activation,
    b : buffer<4xi8, "global", align=1> w activation
) on cpu {
  for i : i32 in 0 .. 4 {
    b[i] = a[i]
  }
}
entry main(
    "FIRST" : buffer<4xi8, "global", align=1> r activation,
    "SECOND" : buffer<4xi8, "global", align=1> r activation,
    y : buffer<4xi8, "global", align=1> w activation
) on cpu {
  call_extern m_f(&"FIRST", &y)
}
"""
    compiled = compile_model(
        read_module(text.replace("FIRST", first).replace("SECOND", second)), load_target("host")
    )
    one, two = (tensor.c_name for tensor in compiled.plan.inputs)
    assert two == f"{one}_1"
    assert [port.stated for port in compiled.module.inputs] == [None, second]
    assert f"*{two};" in compiled.files["include/m.h"].decode()


@pytest.mark.parametrize("name", ["int", "context", "first", "index", "stdin"])
def test_extents_that_cannot_be_called_so(name: str) -> None:
    text = """
module m
input %x : tensor<NAME[1..4]xi8>
output %y : tensor<NAME[1..4]xi8>
kernel m_f(
    a : buffer<n[1..4]xi8, "global", align=1> r activation,
    b : buffer<n[1..4]xi8, "global", align=1> w activation,
    n : i32
) on cpu {
  for i : i32 in 0 .. n {
    b[i] = a[i]
  }
}
entry main(
    x : buffer<NAME[1..4]xi8, "global", align=1> r activation,
    y : buffer<NAME[1..4]xi8, "global", align=1> w activation,
    NAME : i32
) on cpu {
  call_extern m_f(&x, &y, NAME)
}
"""
    with pytest.raises(CompileError) as caught:
        compile_model(read_module(text.replace("NAME", name)), load_target("host"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW117"
    assert diagnostic.help is not None
    other = diagnostic.help.removeprefix("call it ")
    assert compile_model(read_module(text.replace("NAME", other)), load_target("host"))
