"""The cache of objects: what is compiled again, what is not, and that nothing that is wrong with it matters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.host import run_program
from bytewright.execute.object_cache import ObjectCache
from bytewright.execute.objects import compile_object
from bytewright.execute.run import run_bundle
from bytewright.execute.settings import Settings
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from support.tiny_bundle import COUNT, write_tiny_bundle

INPUTS = [np.arange(COUNT, dtype=np.int8).reshape(1, COUNT)]
FLAGS = ("-std=c99", "-O1", "-Iinclude", "-I.", "-c")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache, which is the one in use."""
    monkeypatch.setenv("BYTEWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Compiler:
    """gcc behind a script that notes each compilation."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.path = folder / "cc"
        self._notes = folder / "notes"
        self._notes.touch()
        self.write("")

    def write(self, comment: str) -> None:
        note = f'case " $* " in *" -c "*) echo "$*" >> {self._notes};; esac'
        text = f'#!/bin/sh\n# {comment}\n{note}\nexec gcc "$@"\n'
        self.path.write_text(text)
        self.path.chmod(0o755)

    @property
    def num_calls(self) -> int:
        return len(self._notes.read_text().splitlines())


@pytest.fixture
def compiler(tmp_path: Path) -> Compiler:
    return Compiler(tmp_path / "compiler")


class Source:
    """A C file with a header in a build folder; `value` is what its function returns."""

    def __init__(self, folder: Path, compiler: Compiler) -> None:
        self.folder, self.compiler = folder, compiler
        (folder / "include").mkdir(parents=True)
        self.write("value.h", "#define VALUE 3")
        self.write(
            "one.c", '#include <stdint.h>\n#include "value.h"\nint32_t value(void) { return VALUE + OWN; }'
        )

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"{text}\n")

    def compile(self, *flags: str) -> bytes:
        command = [str(self.compiler.path), *FLAGS, *(flags or ("-DOWN=0",))]
        compile_object(command, "one.c", "one.o", folder=self.folder, what="gcc")
        return (self.folder / "one.o").read_bytes()


@pytest.fixture
def source(tmp_path: Path, compiler: Compiler, cache: Path) -> Source:
    del cache
    return Source(tmp_path / "source", compiler)


def test_what_was_compiled_is_not_compiled_again(source: Source, tmp_path: Path) -> None:
    first = source.compile()
    (source.folder / "one.o").unlink()
    assert source.compile() == first
    assert Source(tmp_path / "elsewhere", source.compiler).compile() == first
    assert source.compiler.num_calls == 1


def test_a_changed_header_is_seen_and_so_is_the_old_one(source: Source) -> None:
    first = source.compile()
    source.write("value.h", "#define VALUE 4")
    second = source.compile()
    assert second != first
    assert source.compiler.num_calls == 2
    source.write("value.h", "#define VALUE 3")
    assert source.compile() == first
    assert source.compiler.num_calls == 2


def test_a_header_of_a_header_is_seen(source: Source) -> None:
    source.write("value.h", '#include "deep.h"')
    source.write("deep.h", "#define VALUE 5")
    first = source.compile()
    source.write("deep.h", "#define VALUE 6")
    assert source.compile() != first
    assert source.compiler.num_calls == 2


def test_a_header_that_hides_another_one_is_seen(source: Source) -> None:
    source.write("one.c", "#include <value.h>\nint value(void) { return VALUE + OWN; }")
    first = source.compile()
    source.write("include/value.h", "#define VALUE 7")
    assert source.compile() != first


def test_headers_elsewhere_are_seen(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "system").mkdir()
    header = tmp_path / "system" / "system.h"
    monkeypatch.setenv("CPATH", str(tmp_path / "system"))
    source.write("one.c", "#include <system.h>\nint value(void) { return SYSTEM; }")
    header.write_text("#define SYSTEM 1\n")
    first = source.compile()
    header.write_text("#define SYSTEM 22\n")
    assert source.compile() != first
    assert source.compile() != first
    assert source.compiler.num_calls == 2


def test_changed_flags_sources_and_compilers_are_seen(source: Source) -> None:
    first = source.compile()
    assert source.compile("-DOWN=1") != first
    source.compile("-DOWN=0", "-O2")
    assert source.compiler.num_calls == 3
    source.write("one.c", "int value(void) { return 9; }")
    assert source.compile() != first
    source.compiler.write("another version")
    source.compile()
    assert source.compiler.num_calls == 5


@pytest.mark.parametrize(
    "flag",
    ["-march=native", "--coverage", "-fprofile-generate", "-save-temps", "-I/usr/include", "-gsplit-dwarf"],
)
def test_commands_that_touch_other_things_are_not_cached(source: Source, cache: Path, flag: str) -> None:
    source.compile("-DOWN=0", flag)
    source.compile("-DOWN=0", flag)
    assert source.compiler.num_calls == 2
    assert not cache.exists()


@pytest.mark.parametrize("file", ["one.c", "value.h"])
def test_what_the_assembler_includes_is_not_cached(source: Source, file: str) -> None:
    text = (source.folder / file).read_text()
    source.write(file, text + '__asm__(".pushsection .rodata\\n.incbin \\"blob.bin\\"\\n.popsection");')
    source.write("blob.bin", "first")
    first = source.compile()
    source.write("blob.bin", "other")
    assert source.compile() != first
    assert source.compiler.num_calls == 2


def test_a_damaged_entry_is_compiled_again(source: Source, cache: Path) -> None:
    first = source.compile()
    for damage in (lambda content: content[:0], lambda content: content[:-1] + bytes([content[-1] ^ 1])):
        for path in [path for path in cache.rglob("*") if path.is_file()]:
            path.write_bytes(damage(path.read_bytes()))
        calls = source.compiler.num_calls
        assert source.compile() == first
        assert source.compile() == first
        assert source.compiler.num_calls == calls + 1


def test_each_file_of_the_cache_may_be_gone(source: Source, cache: Path) -> None:
    first = source.compile()
    for path in [path for path in cache.rglob("*") if path.is_file()]:
        path.unlink()
        assert source.compile() == first


def test_a_folder_that_cannot_be_written_changes_nothing(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = source.compile()
    (tmp_path / "file").touch()
    monkeypatch.setenv("BYTEWRIGHT_CACHE", str(tmp_path / "file" / "cache"))
    assert source.compile() == first
    assert source.compiler.num_calls == 2


def test_off_keeps_nothing(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYTEWRIGHT_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    source.compile()
    source.compile()
    assert source.compiler.num_calls == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compiler", "source"]


def test_the_folder_of_the_desktop_standard(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BYTEWRIGHT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    source.compile()
    assert list((tmp_path / "xdg" / "bytewright").rglob("*"))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    source.compile()
    assert list((tmp_path / "home" / ".cache" / "bytewright").rglob("*"))


_MANY_TIMES = """
import sys
from pathlib import Path
from bytewright.execute.objects import compile_object
folder = Path(sys.argv[1])
for number in range(8):
    (folder / "one.c").write_text(f"int value(void) {{ return {number % 4}; }}\\n")
    compile_object(["gcc", "-std=c99", "-c"], "one.c", "one.o", folder=folder, what="gcc")
    sys.stdout.write((folder / "one.o").read_bytes().hex() + "\\n")
"""


def test_processes_share_it_at_once(cache: Path, tmp_path: Path) -> None:
    processes: list[subprocess.Popen[str]] = []
    for number in range(3):
        folder = tmp_path / f"build{number}"
        folder.mkdir()
        command = [sys.executable, "-c", _MANY_TIMES, str(folder)]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    said = [process.communicate(timeout=120)[0].split() for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert said[0] == said[1] == said[2]
    assert len(set(said[0])) == 4
    assert not list(cache.rglob("new-*"))


def test_it_holds_no_more_than_it_may_and_keeps_what_was_used_last(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, most_bytes=16 * 4096)
    names = [f"a{number:02d}" for number in range(12)]
    for number, name in enumerate(names):
        cache.write(name, os.urandom(1000))
        path = next(tmp_path.rglob(name))
        os.utime(path, ns=(number * 10**9, number * 10**9))
        assert cache.read(names[0]) is not None or number > 9
        os.utime(next(tmp_path.rglob(names[0])), ns=(10**12, 10**12))
    kept = [name for name in names if cache.read(name) is not None]
    assert kept == [names[0], *names[-2:]]
    assert sum(path.stat().st_size for path in tmp_path.rglob("a*") if path.is_file()) <= 4096
    cache.write("b0", os.urandom(5000))
    assert cache.read("b0") is None


def test_a_second_run_compiles_nothing(tmp_path: Path, cache: Path, compiler: Compiler) -> None:
    bundle, options = write_tiny_bundle(tmp_path / "tiny"), BuildOptions(compiler=str(compiler.path))
    first = run_bundle(bundle, INPUTS, options=options)
    calls = compiler.num_calls
    assert calls >= 3
    assert list(cache.rglob("*"))
    second = run_bundle(bundle, INPUTS, options=options)
    assert [a.tobytes() for a in second.outputs] == [a.tobytes() for a in first.outputs]
    assert compiler.num_calls == calls
    run_program(read_bundle(bundle), [INPUTS], Settings(options))  # without -fPIC: other objects
    assert compiler.num_calls > calls


def test_call_graphs_are_kept_with_the_objects(tmp_path: Path, cache: Path, compiler: Compiler) -> None:
    bundle = read_bundle(write_tiny_bundle(tmp_path / "tiny", target="host"))
    first = compile_call_graphs(bundle, compiler=str(compiler.path))
    calls = compiler.num_calls
    assert calls > 0
    assert list(cache.rglob("*"))
    assert compile_call_graphs(bundle, compiler=str(compiler.path)) == first
    assert compiler.num_calls == calls
