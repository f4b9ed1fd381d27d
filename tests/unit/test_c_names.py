"""Names of the generated C: what compilers and their headers claim is known, measured with those that are here."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from bytewright.base.c_names import (
    MAX_IDENTIFIER_LENGTH,
    c_identifier,
    c_name,
    is_c_name,
    is_reserved,
    model_name,
    unique_names,
)
from bytewright.target.model import Pool, Role

HEADERS_OF_C = [
    "assert",
    "complex",
    "ctype",
    "errno",
    "fenv",
    "float",
    "inttypes",
    "iso646",
    "limits",
    "locale",
    "math",
    "setjmp",
    "signal",
    "stdalign",
    "stdarg",
    "stdatomic",
    "stdbool",
    "stddef",
    "stdint",
    "stdio",
    "stdlib",
    "stdnoreturn",
    "string",
    "tgmath",
    "threads",
    "time",
    "uchar",
    "wchar",
    "wctype",
]
HEADERS_OF_CPP = [
    "atomic",
    "chrono",
    "cmath",
    "cstdio",
    "map",
    "memory",
    "mutex",
    "string",
    "thread",
    "vector",
]
COMPILERS = {
    "gcc-c99": (("gcc", "-std=c99"), "c"),
    "gcc-c2x": (("gcc", "-std=gnu2x"), "c"),
    "clang": (("clang", "-std=gnu17"), "c"),
    "arm": (("arm-none-eabi-gcc", "-std=gnu17"), "c"),
    "g++": (("g++", "-std=gnu++23"), "c++"),
}


def preprocessed(command: tuple[str, ...], language: str, options: tuple[str, ...]) -> str:
    """What the preprocessor says of all headers of a language that the compiler has."""
    # Newlib has <threads.h>, and no threads on bare metal.
    names = [f"{name}.h" for name in HEADERS_OF_C if name != "threads" or "arm" not in command[0]] + (
        HEADERS_OF_CPP if language == "c++" else []
    )
    source = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in names)
    done = subprocess.run(
        [*command, "-E", *options, "-x", language, "-"],
        input=source,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def command_of(compiler: str) -> tuple[tuple[str, ...], str]:
    command, language = COMPILERS[compiler]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return command, language


@pytest.mark.parametrize("compiler", sorted(COMPILERS))
def test_macros_without_arguments_are_reserved(compiler: str) -> None:
    text = preprocessed(*command_of(compiler), ("-dM",))
    macros = re.findall(r"^#define ([A-Za-z]\w*)(?!\w|\()", text, re.MULTILINE)
    assert len(macros) > 100
    assert [name for name in macros if not is_reserved(name)] == []


@pytest.mark.parametrize("compiler", sorted(COMPILERS))
def test_no_model_is_called_like_a_header(compiler: str) -> None:
    command, language = command_of(compiler)
    files = set(re.findall(r"(\S+)/([\w-]+)\.h\b", preprocessed(command, language, ("-M",))))
    search = subprocess.run(
        [*command, "-E", "-v", "-x", language, "/dev/null"], capture_output=True, text=True, check=True
    ).stderr
    roots = [line.strip() for line in search.splitlines() if line.startswith(" /")]
    stems = sorted({stem for folder, stem in files if folder in roots and re.fullmatch(r"[a-z]\w*", stem)})
    assert "stdint" in stems
    assert [stem for stem in stems if model_name(stem) == stem] == []


@pytest.mark.parametrize("standard", ["c99", "c11", "c2x"])
def test_c_compiles_each_name_that_is_free(standard: str) -> None:
    """And, the other way round, a keyword is one that a compiler refuses as a variable."""
    words = [
        "alignas",
        "asm",
        "bool",
        "char8_t",
        "class",
        "concept",
        "constexpr",
        "errno",
        "final",
        "int",
        "linux",
        "module",
        "nullptr",
        "one",
        "typeof",
    ]
    for word in words:
        source = f"#include <errno.h>\nstruct s {{ int *{word}; }};\n"
        done = subprocess.run(
            ["gcc", f"-std=gnu{standard[1:]}", "-fsyntax-only", "-x", "c", "-"],
            input=source, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0 or is_reserved(word), word


@pytest.mark.parametrize(
    "name",
    [
        "features",
        "stdint",
        "stdio",
        "time",
        "math",
        "string",
        "all",
        "install",
        "clean",
        "help",
        "test",
        "Time",
        "STDIO",
        "con",
    ],
)
def test_models_of_such_names_are_called_otherwise(name: str) -> None:
    assert model_name(name) == f"{name}_"
    assert model_name(f"{name}_net") == f"{name}_net"


@pytest.mark.parametrize(
    "name",
    ["unix", "linux", "stdin", "concept", "char8_t", "class", "new", "private", "errno", "NULL", "nullptr"],
)
def test_members_of_such_names_are_called_otherwise(name: str) -> None:
    assert not is_c_name(name)
    assert c_name(name, "x") == f"{name}_"


@pytest.mark.parametrize(
    "name",
    [
        "ram",
        "flash",
        "dtcm",
        "RAM",
        "DTCM",
        "EXT_FLASH",
        "X_RAM",
        "input_1",
        "exp",
        "round",
        "log",
        "M_RAM",
        "b0",
        "E",
    ],
)
def test_plain_names_stay(name: str) -> None:
    assert is_c_name(name)
    assert c_name(name, "x") == name


def test_characters_that_c_has_not() -> None:
    assert c_identifier("s-1.b") == "s_1_b"
    assert c_identifier("1st") == "_1st"
    assert c_identifier("é") == "_"
    assert Pool("a-b", "m", Role.WORKSPACE, 1).identifier == "a_b"
    assert c_name("serving_default_x:0", "input_0") == "serving_default_x_0"
    assert c_name("3 ways", "input_0") == "input_0_3_ways"
    assert c_name("日本", "input_0") == "input_0"
    assert len(c_name("x" * 100, "y")) == MAX_IDENTIFIER_LENGTH


def test_unique_names() -> None:
    names = unique_names(["a b", "a_b", "int", "int_", "a.b", "run"], {"run"})
    assert names == {
        "a b": "a_b",
        "a_b": "a_b_1",
        "int": "int_",
        "int_": "int__1",
        "a.b": "a_b_2",
        "run": "run_1",
    }
    assert len(set(names.values())) == len(names)
