"""Target files and importers under hostile input: a diagnostic, in bounded time and memory, whatever the text."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError
from bytewright.target import dump, dump_toml, load_description, load_file, load_target, load_text
from bytewright.target.importers import ImportOptions, import_target, limits

ACCEPTED_SECONDS = 10  # for a megabyte of input: what the project promises
MEMORY = '[memory.ram]\nsize = "64KiB"\n[device.cpu]\nisa = "cortex-m4"\nreach = ["ram"]\nstack = "ram"\n'


def refused(load: Callable[[], object]) -> CompileError:
    """The refusal, in time, and printable wherever it is printed."""
    start = time.process_time()
    with pytest.raises(CompileError) as caught:
        load()
    assert time.process_time() - start < ACCEPTED_SECONDS
    str(caught.value).encode("utf-8")
    assert len(str(caught.value)) < 20_000
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        f"name = {'9' * 4301}",
        f"name = 0x{'f' * 5000}",
        f'name = "x"\n[memory.ram]\nsize = 0x{"f" * 5000}',
        f'name = "x"\n[memory.ram]\nbase = 0b{"1" * 50000}\nsize = 1',
        f'{{"name": {"9" * 4301}}}',
        f'{{"name": "x", "memory": {{"ram": {{"size": 1{"0" * 4000}}}}}}}',
        f'name = "x"\n[memory.ram]\nsize = "{"9" * 100_000}"',
        f'name = "x"\n[memory.ram]\nread-cost = 1{"0" * 4000}\nsize = 4',
        ".".join(["a"] * 100_000) + " = 1",
        f"[{'.'.join(['a'] * 100_000)}]\nb = 1",
        f"[[{'.'.join(['a'] * 100_000)}]]\nb = 1",
        f"a = {{ {'.'.join(['b'] * 100_000)} = 1 }}",
        "".join(f"{'.'.join(['a'] * 400)}.b{i} = 1\n" for i in range(1200)),
        f"a = {'[' * 100_000}",
        f"a = {'[' * 100_000}{']' * 100_000}",
        '{"a": ' * 100_000,
        f'{{"a": {"[" * 100_000}{"]" * 100_000}}}',
        "a = {b = " * 50_000,
        '{"name": "\\ud800", "memory": {"\\ud800": 1}, "device": {}, "\\udfff": 3}',
        '{"name": "x", "memory": {}, "device": {}, "tags": ["\\ud800"]}',
        '"\\uffff" = 1\n"\\u0007" = 2\n"\\u001b[31m" = 3\n',
        "a = 1e999999999\nb = nan\nc = 1979-05-27T07:32:00Z",
        'name = "x"\n' + "".join(f"[memory.m{i}]\nsiez = 4\n" for i in range(20_000)),
        "\n".join(f"k{i} = 1" for i in range(100_000)),
        "\0",
        "\r",
        "[" * 500_000,
        '"' * 500_000,
        "#" * 1_000_000,
        "a.b = 1\na.b.c = 2\n",
        "",
        "{",
        "{}",
    ],
    ids=range(33),
)
def test_hostile_texts_are_refused(text: str) -> None:
    error = refused(lambda: load_text(text, "board.toml"))
    assert {diagnostic.code for diagnostic in error.diagnostics} == {"BW202"}


def test_large_and_deep_descriptions_are_refused_in_python_too() -> None:
    deep: dict[str, object] = {}
    inner = deep
    for _ in range(100_000):
        inner["a"] = {}
        inner = inner["a"]  # type: ignore[assignment]
    for values in (
        {"name": 10**5000},
        {"name": "x", "memory": {"ram": {"size": -(10**5000)}}},
        {"name": deep},
    ):
        refused(lambda values=values: load_description(values))


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00", b"\x80", "name = '\ufeff'".encode("utf-16"), b"\x7fELF\x01\x01\x01" + bytes(64)],
)
def test_files_that_are_no_text_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_bytes(content)
    refused(lambda: load_file(path))


def test_a_file_without_end_is_refused() -> None:
    assert refused(lambda: load_file("/dev/zero")).diagnostics[0].code == "BW201"
    assert refused(lambda: import_target("/dev/zero")).diagnostics[0].code == "BW201"


HOSTILE_TREES = {
    "includes itself": '/dts-v1/;\n/include/ "board.dts"\n/ { };\n',
    "includes itself by the preprocessor": '#include "board.dts"\n/dts-v1/;\n/ { };\n',
    "includes itself many times": "/dts-v1/;\n" + '/include/ "board.dts"\n' * 50 + "/ { };\n",
    "a number too long": f"/dts-v1/;\n/ {{ a = <{'9' * 5000}>; }};\n",
    "deep": "/dts-v1/;\n/ {" + "a {" * 20_000 + "};" * 20_000 + "};\n",
    "deep in parentheses": f"/dts-v1/;\n/ {{ a = <{'(' * 20_000}1{')' * 20_000}>; }};\n",
    "a shift too far": "/dts-v1/;\n/ { a = <(1 << 99999999999)>; };\n",
    "a power tower": f"/dts-v1/;\n/ {{ a = <({' << '.join(['9999999'] * 9)})>; }};\n",
    "laughs": "\n".join(
        [
            "#define a0 ha",
            *(f"#define a{i} a{i - 1} a{i - 1} a{i - 1} a{i - 1}" for i in range(1, 40)),
            "/dts-v1/;",
            "/ { a = <a39>; };",
        ]
    ),
    "cells": '/dts-v1/;\n/ { #address-cells = <0xffffffff>; m@0 { device_type = "memory"; reg = <0 0>; }; };\n',
    "no cells": "/dts-v1/;\n/ { #address-cells=<0>; #size-cells=<0>; "
    "b { #address-cells=<0>; #size-cells=<0>; ranges=<1>; c {"
    ' #address-cells=<1>; #size-cells=<1>; ranges=<1 1>; m@0 { device_type="memory"; reg=<1 4096>; }; }; }; };\n',
    "no memory": "/dts-v1/;\n/ { };\n",
    "empty": "/dts-v1/;",
    "binary": "/dts-v1/;\n\0\1\2",
    "an incbin of a device": '/dts-v1/;\n/ { a = /incbin/("/dev/zero"); };\n',
}


@pytest.mark.parametrize("name", HOSTILE_TREES)
def test_hostile_devicetrees_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("devicetree")
    monkeypatch.setattr(limits, "TIMEOUT_SECONDS", 2.0)
    path = tmp_path / "board.dts"
    path.write_text(HOSTILE_TREES[name])
    refused(lambda: import_target(path))


HOSTILE_SCRIPTS = {
    "includes itself": "INCLUDE app.ld\nMEMORY { RAM (rw) : ORIGIN = 0, LENGTH = 64K }\n",
    "deep": f"MEMORY {{ RAM (rw) : ORIGIN = 0, LENGTH = {'(' * 20_000}4{')' * 20_000} }}\n",
    "vast fill": "MEMORY { RAM (rw) : ORIGIN = 0, LENGTH = 64K }\n"
    "SECTIONS { .a : { . += 0x7fffffffff; BYTE(1) } > RAM }\nBAD",
    "no regions": "MEMORY { }\n",
    "shifts": "MEMORY { RAM (rw) : ORIGIN = 1 << 99999, LENGTH = 1 / 0 }\n",
}


@pytest.mark.parametrize("name", HOSTILE_SCRIPTS)
def test_hostile_linker_scripts_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "app.ld"
    path.write_text(HOSTILE_SCRIPTS[name])
    refused(lambda: import_target(path))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import time; time.sleep(60)", "did not end"),
        ("import sys\nwhile True: sys.stdout.write('x' * 1000000)", "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 1000000)", "output"),
        ("open('/proc/self/fd/1', 'w'); import os; os.kill(os.getpid(), 11)", "signal"),
        ("while True: pass", "did not end"),
    ],
)
def test_programs_of_importers_have_limits(
    body: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "tool.py"
    tool.write_text(body)
    monkeypatch.setattr(limits, "TIMEOUT_SECONDS", 2.0)
    error = refused(lambda: limits.run_program([sys.executable, str(tool)], "the linker"))
    assert error.diagnostics[0].code == "BW502"
    assert said in str(error)


def test_programs_of_importers_get_no_more_memory_than_they_may_have(tmp_path: Path) -> None:
    tool = tmp_path / "tool.py"
    tool.write_text("x = bytearray(8 << 30)")
    done = limits.run_program([sys.executable, str(tool)], "the linker")
    assert done.returncode == 1
    assert "MemoryError" in done.stderr


def _mutated(text: str, rng: random.Random) -> str:
    """A few random edits of a text: characters, lines and numbers."""
    for _ in range(rng.randint(1, 4)):
        position = rng.randrange(len(text) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            text = (
                text[:position]
                + chr(rng.choice([0, 10, 34, 39, 46, 61, 91, 93, 123, 125, 0x1F600, 0xFFFD]))
                + text[position:]
            )
        elif kind == 1:
            text = text[:position] + text[position + rng.randint(1, 8) :]
        elif kind == 2:
            lines = text.split("\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            text = "\n".join(lines)
        elif kind == 3:
            lines = text.split("\n")
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines)
        elif kind == 4:
            lines = text.split("\n")
            rng.shuffle(lines)
            text = "\n".join(lines)
        else:
            digits = [i for i, c in enumerate(text) if c.isdigit()]
            if digits:
                at = rng.choice(digits)
                text = (
                    text[:at]
                    + rng.choice(["0", "9" * 30, "-1", "1e9", "true", '"x"', "[]", "{}"])
                    + text[at + 1 :]
                )
    return text


@pytest.mark.parametrize("builtin", ["mps3-an547", "host", "generic-cortex-m"])
def test_mutated_target_files_load_or_are_refused(builtin: str) -> None:
    rng = random.Random(builtin)
    target = load_target(builtin)
    sources = [dump_toml(target), json.dumps(dump(target), indent=1)]
    num_loaded = 0
    for _ in range(200):
        text = _mutated(rng.choice(sources), rng)
        try:
            loaded = load_text(text, "board.toml")
        except CompileError as error:
            str(error).encode("utf-8")
        else:
            num_loaded += 1
            assert load_description(dump(loaded)) == loaded
            assert load_text(dump_toml(loaded), "again.toml") == loaded
    assert num_loaded >= 3


def test_an_include_option_that_is_no_folder_is_no_bug(tmp_path: Path) -> None:
    path = tmp_path / "app.ld"
    path.write_text("MEMORY { RAM (rw) : ORIGIN = 0x20000000, LENGTH = 64K }\n")
    for odd in ("nowhere", "a b", "-Map=x", "'"):
        import_target(path, ImportOptions(include=(odd,)))
