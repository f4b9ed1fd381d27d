"""The generated C as text and as objects: no warnings, nothing global and mutable, no heap, no recursion."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.codegen.writer import OWNERSHIP
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.run import run_batch
from bytewright.ir.scalar_functions import MATH_FUNCTIONS
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option, parse_provider_option
from bytewright.target.registry import load_target
from support.c_program import LANGUAGE, WARNINGS, run_command
from support.reference import LiteRt
from support.shared_models import (
    BOARD,
    FLOAT,
    HOST,
    INT8,
    KWS,
    bundle,
    compiled,
    model_path,
    new_folder,
    random_inputs,
    target_with,
)
from support.tiers import some
from tflite_writer import ModelBuilder

COMPILERS = {
    "gcc": ("gcc", "-O2"),
    "clang": ("clang", "-O1"),
    "arm": ("arm-none-eabi-gcc", "-O2", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
}
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)
LIBRARY = {"memcpy", "memset", "memmove", "memcmp", *(f.name for f in MATH_FUNCTIONS)}
ARM_LIBRARY = re.compile(r"__aeabi_\w+")


def variant(name: str) -> Target:
    """Targets by the names that the tests' parameters have."""
    if name == "generated":
        return target_with(HOST, "ram=generated")
    if name == "caller":
        return target_with(HOST, "rodata=caller")
    if name == "two":
        pools = (parse_pool_option("fast=8000@ram"), parse_pool_option("slow@ram"))
        return apply_overrides(load_target(HOST), Overrides(workspace=pools))
    return load_target(name)


VARIANTS = [
    *((name, target) for name in (*INT8, *FLOAT) for target in (HOST, BOARD)),
    *((KWS, target) for target in ("generated", "caller", "two")),
]

# Each with each compiler, by turns.
COMPILED = [
    pytest.param(*variant, compiler, marks=[pytest.mark.board] * (compiler == "arm"))
    for variant in VARIANTS
    for compiler in COMPILERS
]


@cache
def compile_object(compiler: str, texts: tuple[tuple[str, bytes], ...], flags: tuple[str, ...]) -> Path:
    """The first text's object, with the headers that follow; identical texts of several targets are compiled once."""
    folder = new_folder()
    for name, content in texts:
        (folder / name).write_bytes(content)
    command = [*COMPILERS[compiler], *LANGUAGE, *WARNINGS, "-pedantic", *flags, "-c", texts[0][0]]
    run_command([*command, "-o", "out.o"], folder)
    return folder / "out.o"


def objects(compiler: str, name: str, target: Target, *flags: str) -> dict[str, Path]:
    """The objects of a bundle, by the name of their source."""
    files = {Path(path).name: content for path, content in compiled(name, target).files.items()}
    headers = [item for item in files.items() if item[0].endswith((".h", ".inc", ".bin"))]
    kernels_header = f"{name}_kernels.h"
    built: dict[str, Path] = {}
    for source in sorted(file for file in files if file.endswith(".c")):
        needed = [(kernels_header, files[kernels_header])] if source == f"{name}_kernels.c" else headers
        texts = ((source, files[source]), *needed)
        built[source] = compile_object(compiler, texts, flags)
    return built


@pytest.mark.parametrize("name", [KWS, "ad01_fp32"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_header_is_also_cpp(name: str, compiler: str) -> None:
    folder = bundle(name, load_target(HOST)) / "include"
    command = [compiler, "-std=c++11", *WARNINGS, "-fsyntax-only", "-x", "c++", f"{name}.h"]
    if compiler == "clang++":
        command.insert(1, "-Wno-pragma-once-outside-header")
    run_command(command, folder)


@pytest.mark.parametrize("optimise", ["-O1", "-O3"])
def test_every_float_is_quantised_without_undefined_conversions(optimise: str, tmp_path: Path) -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 8], "float32")
    y = builder.tensor("y", [1, 8], "int8", scale=0.5, zero_point=3)
    builder.operator("QUANTIZE", [x], [y])
    model = tmp_path / "quantise.tflite"
    model.write_bytes(builder.build([x], [y]))
    write_bundle(compile_model(model, load_target(HOST)).files, tmp_path / "bundle")
    values = np.array([[np.nan, -np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1.25, -1.25]], np.float32)
    strict = BuildOptions(flags=(optimise, "-fsanitize=float-cast-overflow"), sanitize=True)
    (output,) = run_batch(tmp_path / "bundle", [[values]], options=strict).outputs[0]
    assert output.tolist() == [[-128, -128, 127, -128, 127, -128, 6, 0]]


def symbols(path: Path, nm: str = "nm") -> list[tuple[str, str, int]]:
    """(name, type, size) of every symbol of an object."""
    found: list[tuple[str, str, int]] = []
    for line in run_command([nm, "--format=posix", path], path.parent).splitlines():
        words = line.split()
        found.append((words[0], words[1], int(words[3], 16) if len(words) > 3 else 0))
    return found


def mutable(path: Path, nm: str = "nm") -> list[tuple[str, int]]:
    """Symbols in sections that can be written."""
    return [(name, size) for name, kind, size in symbols(path, nm) if kind in "bBcCdDsSgG"]


def undefined(paths: dict[str, Path], nm: str) -> set[str]:
    """What the objects need from elsewhere."""
    listed = [symbol for path in paths.values() for symbol in symbols(path, nm)]
    defined = {name for name, kind, _ in listed if kind != "U"}
    return {name for name, kind, _ in listed if kind == "U"} - defined - {"_GLOBAL_OFFSET_TABLE_"}


@pytest.mark.parametrize(
    ("name", "target", "compiler"),
    some(COMPILED, every=4),
)
def test_objects_are_clean(name: str, target: str, compiler: str) -> None:
    """No warning is an error; nothing is global and mutable; memory and maths functions are all that is called."""
    built = objects(compiler, name, variant(target))
    assert len(built) == 3
    nm = "arm-none-eabi-nm" if compiler == "arm" else "nm"
    arrays = [item for path in built.values() for item in mutable(path, nm)]
    generated = [
        (f"{name}_{pool['c_name']}_workspace", pool["used_bytes"])
        for pool in compiled(name, variant(target)).document["pools"]
        if (pool["role"], pool["provider"]) == ("workspace", "generated")
    ]
    assert arrays == generated
    assert bool(generated) == (target == "generated")
    needed = undefined(built, nm)
    allowed = {symbol for symbol in needed if compiler == "arm" and ARM_LIBRARY.fullmatch(symbol)} | LIBRARY
    assert needed <= allowed


def test_mutable_globals_and_the_heap_would_be_found() -> None:
    source = b"#include <stdlib.h>\nint counter;\nvoid *use(void);\nvoid *use(void) { return malloc(1); }\n"
    path = compile_object("gcc", (("bad.c", source),), ())
    assert mutable(path) == [("counter", 4)]
    assert undefined({"bad.c": path}, "nm") == {"malloc"}


def call_graph(paths: dict[str, Path]) -> dict[str, set[str]]:
    """Callees of each function, from the compiler's own call graph."""
    edges: dict[str, set[str]] = {}
    for path in paths.values():
        text = path.with_suffix(".ci").read_text()
        for source, target in re.findall(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', text):
            edges.setdefault(plain(source), set()).add(plain(target))
    return edges


def plain(name: str) -> str:
    return name.rpartition(":")[2]


def depth(edges: dict[str, set[str]], function: str, above: tuple[str, ...] = ()) -> int:
    """Levels of calls from a function on; fails on a cycle."""
    assert function not in above, f"recursion: {' -> '.join((*above, function))}"
    return 1 + max(
        (depth(edges, callee, (*above, function)) for callee in edges.get(function, set())), default=0
    )


@pytest.mark.parametrize("name", [*INT8, *FLOAT])
def test_there_is_no_recursion_and_no_indirect_call(name: str) -> None:
    edges = call_graph(objects("gcc", name, variant(HOST), "-fcallgraph-info", "-fno-inline"))
    assert "__indirect_call" not in {callee for callees in edges.values() for callee in callees}
    for function in edges:
        depth(edges, function)
    kernels = {step["kernel"] for step in compiled(name, variant(HOST)).document["steps"]}
    assert kernels <= edges[f"{name}_run"]
    assert depth(edges, f"{name}_run") >= 2


def test_recursion_would_be_found() -> None:
    with pytest.raises(AssertionError, match="recursion: a -> b -> a"):
        depth({"a": {"b"}, "b": {"a"}}, "a")


@pytest.mark.parametrize("target", ["generated", "caller", "two"])
def test_other_providers_give_the_references_output(target: str) -> None:
    batch = random_inputs(KWS, 5, seed=41)
    result = run_batch(bundle(KWS, variant(target)), batch, options=SANITIZED)
    reference = LiteRt(model_path(KWS))
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        assert (outputs[0] == reference.run(*inputs)[0]).all()


def test_a_blob_of_a_pool_with_a_dash_in_its_name() -> None:
    pools = (parse_pool_option("ext-flash@rom"),)
    provider = (parse_provider_option("ext-flash=caller"),)
    target = apply_overrides(load_target(HOST), Overrides(parameters=pools, provider=provider))
    batch = random_inputs(KWS, 1, seed=41)
    result = run_batch(bundle(KWS, target), batch, options=SANITIZED)
    assert (result.outputs[0][0] == LiteRt(model_path(KWS)).run(*batch[0])[0]).all()


def fnv1a_64(data: bytes) -> int:
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = ((digest ^ byte) * 0x100000001B3) % (1 << 64)
    return digest


def test_a_blob_begins_with_magic_size_and_hash() -> None:
    result = compiled(KWS, variant("caller"))
    blob = result.files["parameters/rodata.bin"]
    (pool,) = [p for p in result.document["pools"] if p["role"] == "parameters"]
    assert len(blob) == pool["used_bytes"]
    assert len(blob[:8].strip(b"\0")) == 8
    assert int.from_bytes(blob[8:16], "little") == len(blob) - 32
    assert int.from_bytes(blob[16:24], "little") == fnv1a_64(blob[32:])
    initialiser = result.files["include/kws_ref_model_rodata_parameters.inc"].decode()
    assert bytes(int(number) for number in initialiser.replace("\n", "").split(",") if number) == blob
    offsets = [b["place"]["offset"] for b in result.document["buffers"] if b["place"]["kind"] == "constant"]
    assert min(offsets) >= 32


@pytest.mark.parametrize(("name", "target"), VARIANTS)
def test_every_call_says_what_it_computes_and_where(name: str, target: str) -> None:
    """A comment with operators, shapes and places stands above each call, in the plan's order."""
    result = compiled(name, variant(target))
    text = result.files[f"src/{name}.c"].decode()
    calls = re.findall(r"/\* ((?:[^*]|\*(?!/))+) \*/\n\s+(\w+)\(", text)
    called = [(comment, callee) for comment, callee in calls if " -> " in comment]
    assert [callee for _, callee in called] == [step["kernel"] for step in result.document["steps"]]
    buffers = {buffer["name"]: buffer for buffer in result.document["buffers"]}
    tensor = r"(i8|f32|i32|i16)\[[\d,]*\] (ring of \d+ rows? )?@(caller|\w+\+\d+)"
    for (comment, _), step in zip(called, result.document["steps"], strict=True):
        words = " ".join(comment.replace("\n", " ").replace(" * ", " ").split())
        operators, _, rest = words.partition(": ")
        places, *shared = rest.split("; ")
        assert operators == " + ".join(step["operators"])
        assert re.fullmatch(rf"({tensor})(, {tensor})* -> {tensor}(, {tensor})*", places), words
        touched = [buffers[name] for name in (*step["reads"], *step["writes"])]
        rings = [buffer["ring"]["num_rows"] for buffer in touched if "ring" in buffer]
        assert sorted(map(int, re.findall(r"ring of (\d+) row", places))) == sorted(rings)
        assert shared == overlaps_of(step, buffers)


def overlaps_of(step: dict[str, Any], buffers: dict[str, dict[str, Any]]) -> list[str]:
    """What a comment says of the buffers that share bytes in a step of plan.json."""
    found: list[str] = []
    for pair in step.get("overlaps", ()):
        source, output = buffers[pair["source"]], buffers[pair["output"]]
        first, second = source["place"], output["place"]
        if first["kind"] != "planned" or (first["kind"], first["name"]) != (second["kind"], second["name"]):
            continue
        ends = (first["offset"] + source["size_bytes"], second["offset"] + output["size_bytes"])
        num_bytes = min(ends) - max(first["offset"], second["offset"])
        if num_bytes > 0:
            asked = f"at least {pair['below_bytes']} B below it, or {pair['above_bytes']} B above"
            found.append(f"overlaps {pair['source']} by {num_bytes} B (contract: {asked})")
    return [*found, *(["downwards"] if step.get("runs_down") else [])]


@pytest.mark.parametrize(("name", "target"), VARIANTS)
def test_the_source_holds_the_plan(name: str, target: str) -> None:
    """Offsets and the plan's hash can be read back from the C text."""
    result = compiled(name, variant(target))
    text = result.files[f"src/{name}.c"].decode()
    header = result.files[f"include/{name}.h"].decode()
    assert f"Plan {result.document['plan_hash']}." in text
    assert f"Plan {result.document['plan_hash']}." in header
    offsets = {key: int(value) for key, value in re.findall(r"(\w+_AT_\w+) = (\d+)", text)}
    planned = [b for b in result.document["buffers"] if b["place"]["kind"] in ("planned", "constant")]
    assert len(planned) == len(offsets) > 0
    for buffer in planned:
        place = buffer["place"]
        key = f"{name}_at_{place['name']}_{buffer['name']}".replace("/", "__").upper()
        assert offsets[key] == place["offset"]
        assert place["offset"] % buffer["alignment"] == 0


@pytest.mark.parametrize(("name", "target"), VARIANTS)
def test_the_text_is_tidy(name: str, target: str) -> None:
    """Plain ASCII, no tabs, no trailing space, no line that is hard to read."""
    for path, content in compiled(name, variant(target)).files.items():
        if path.endswith((".c", ".h")):
            lines = content.decode("ascii").split("\n")
            assert lines[-1] == ""
            assert lines[-2] != ""
            assert not [line for line in lines if line != line.rstrip() or "\t" in line], path
            assert max(len(line) for line in lines) <= 130, path


def test_cmake_builds_the_library(tmp_path: Path) -> None:
    if subprocess.run(["sh", "-c", "command -v cmake"], capture_output=True, check=False).returncode != 0:
        pytest.skip("cmake is not installed")
    folder = bundle("ad01_fp32", load_target(HOST))
    run_command(["cmake", "-S", folder, "-B", tmp_path], tmp_path)
    run_command(["cmake", "--build", tmp_path], tmp_path)
    assert (tmp_path / "libad01_fp32.a").is_file()


APPLICATION = """cmake_minimum_required(VERSION 3.13)
project(application C)
{before}
add_subdirectory({folder} model)
file(WRITE ${{CMAKE_BINARY_DIR}}/main.c "int main(void) {{ return 0; }}")
add_executable(application ${{CMAKE_BINARY_DIR}}/main.c)
target_link_libraries(application PRIVATE {model}::{model})
"""


@pytest.mark.parametrize(
    ("build_type", "before", "level"),
    [
        ("", "", "-O2"),
        ("Debug", "", "-O2"),
        ("Debug", f"set({KWS.upper()}_OPTIMIZATION -O0)", "-O0"),
        ("Debug", f'set({KWS.upper()}_OPTIMIZATION "")', None),
        ("Release", "", "-O3"),
        ("MinSizeRel", "", "-Os"),
    ],
)
def test_an_application_links_the_alias_and_may_choose_the_optimisation(
    build_type: str, before: str, level: str | None, tmp_path: Path
) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    folder = bundle(KWS, load_target(HOST))
    text = APPLICATION.format(before=before, folder=folder, model=KWS)
    (tmp_path / "CMakeLists.txt").write_text(text)
    choices = [f"-DCMAKE_BUILD_TYPE={build_type}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    run_command(["cmake", "-S", tmp_path, "-B", tmp_path / "build", *choices], tmp_path)
    commands = json.loads((tmp_path / "build" / "compile_commands.json").read_text())
    (kernels,) = (c["command"] for c in commands if c["file"].endswith(f"{KWS}_kernels.c"))
    levels = re.findall(r" (-O\w)", kernels)
    assert (levels[-1] if levels else None) == level


def test_every_generated_text_says_whose_it_is() -> None:
    files = compiled(KWS, load_target(HOST)).files
    texts = [path for path in files if path.endswith((".c", ".h", ".txt"))]
    assert len(texts) == 6
    assert [path for path in texts if OWNERSHIP not in files[path].decode().replace("\n * ", " ")] == []


def test_cmake_lists_every_source_and_flag() -> None:
    folder = bundle(KWS, load_target(HOST))
    text = (folder / "CMakeLists.txt").read_text()
    for source in read_bundle(folder).sources:
        assert f"src/{source.name}" in text
    for flag in compiled(KWS, load_target(HOST)).document["build"]["flags"][1:]:
        assert flag in text
    assert "C_STANDARD 99" in text
