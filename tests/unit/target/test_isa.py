"""`target/isa`: instruction sets are data, which nobody else names; figures of libraries come with them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.target import load_target, load_text
from bytewright.target.isa.find import ISAS, find_isa

PACKAGE = Path(bytewright.__file__).parent
NAMES = re.compile(
    r"cortex-?[amr]?\d|neoverse|hifi\d|xtensa|hexagon|ethos-u\d|ceva|arc-em|(?<!__)riscv(?!_vector.h)|rv(32|64)|x86|arm-none-eabi|aarch64",
    re.IGNORECASE,
)
EXAMPLE = re.compile(r"such as cortex-m\d+")  # in the words of a message or of help


def named_in(source: str) -> list[str]:
    """Words of instruction sets in the code: names and texts, not comments and docstrings."""
    tree = ast.parse(source)
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    ]
    texts += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return [text for text in texts if NAMES.search(EXAMPLE.sub("", text))]


def test_no_file_outside_the_folder_names_an_instruction_set() -> None:
    sources = [p for p in sorted(PACKAGE.rglob("*.py")) if (PACKAGE / "target" / "isa") not in p.parents]
    assert len(sources) > 200
    assert {str(p): found for p in sources if (found := named_in(p.read_text(encoding="utf-8")))} == {}
    assert named_in('def f(isa):\n    "For a Cortex-M4."\n    return isa.startswith("cortex-m4")') == [
        "cortex-m4"
    ]


def test_no_file_outside_the_folder_reads_the_name_of_an_instruction_set() -> None:
    """The name is printed in messages and files, and compared with nothing, looked up in nothing, cut in nothing."""
    read = re.compile(
        r"isa\.name( ?(==|!=|in\b|\[)|\.(start|end|remove|partition|split))|(==|!=|in) \w*\.?isa\.name"
    )
    for path in sorted(PACKAGE.rglob("*.py")):
        if (PACKAGE / "target" / "isa") not in path.parents:
            assert not read.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    ("name", "features", "is_micro"),
    [
        ("cortex-m0", (), True),
        ("cortex-m7", ("dsp", "fp32", "fp64"), True),
        ("cortex-m55", ("dsp", "fp32", "fp64", "mve", "mve-float"), True),
        ("cortex-r52", (), True),
        ("cortex-a55", ("neon", "neon-dotprod"), False),
        ("host", (), False),
        ("rv32imac", ("i", "m", "a", "c"), True),
        ("rv64gc", ("g", "c"), False),
        ("rv64gcv", ("g", "c", "v"), False),
    ],
)
def test_features_are_data(name: str, features: tuple[str, ...], is_micro: bool) -> None:
    isa = find_isa(name)
    assert isa is not None
    assert (isa.features, isa.is_micro) == (features, is_micro)


def test_cores_that_a_name_stands_for_are_there() -> None:
    cores = [core for isa in ISAS.values() for core in isa.cores]
    assert len(cores) == 7
    assert all(ISAS[core].triple and not ISAS[core].cores for core in cores)


BOARD = """name = "b"
[memory.ram]
size = "64KiB"
[device.cpu]
isa = "cortex-m4"
reach = ["ram"]
stack = "ram"
[stack]
libraries = "newlib"
[stack.external]
memcpy = 100
mine = 8
"""


def test_libraries_give_figures_and_lines_of_ones_own_go_before() -> None:
    target = load_text(BOARD, "b.toml")
    found = {name: target.external_stack_bytes(name) for name in ("memcpy", "memset", "mine", "other")}
    assert found == {"memcpy": 100, "memset": 32, "mine": 8, "other": None}


@pytest.mark.parametrize(
    ("old", "new", "message", "note"),
    [
        ('"newlib"', '"newlob"', "no figures of library 'newlob' for 'cortex-m4'", "newlib, newlib-3.3"),
        ('"cortex-m4"', '"rv32imac"', "no figures of library 'newlib' for 'rv32imac'", "libraries: none"),
        ('"newlib"', "3", "'libraries' must be a string, not an integer", ""),
    ],
)
def test_a_library_that_is_not_known_is_refused(old: str, new: str, message: str, note: str) -> None:
    with pytest.raises(CompileError) as caught:
        load_text(BOARD.replace(old, new), "b.toml")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW202"
    assert message in diagnostic.message
    assert note in " ".join(diagnostic.notes)
    assert diagnostic.where == "b.toml:9, key stack.libraries"


def test_one_call_level_of_this_machine_may_need_the_most() -> None:
    allowances = {isa.name: isa.stack_allowance_bytes for isa in ISAS.values()}
    assert {name for name, size in allowances.items() if size > 512} == {
        "host",
        "x86-64-v3",
        "x86-64-v4-vnni",
    }
    assert load_target("host").default_device.stack_allowance_per_call_bytes == 1024
    assert load_target("mps3-an547").default_device.stack_allowance_per_call_bytes == 256
