"""The number of plan.json's format: what changes the format changes it too, and bundles of another one are called old.

`tests/data/bundles` has what bundles of a schema are: `schema_N.txt` their keys, and `schema_N.tar.xz` some of them as
they were written then. Those of the present schema must be read and verify for as long as it stays; those of older ones
stand for what users have. `make update-golden` writes the two files of a schema that has none, and no others.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bytewright.bundle.folder import read_file_list
from bytewright.cli.main import bytewright
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.record.plan_file import SCHEMA, hash_files, understand
from support.digits_bundle import DIGITS, digits_document
from support.plan_bundles import BUNDLES
from support.plan_format import format_lines

FOLDER = Path(__file__).resolve().parents[2] / "data" / "bundles"
KEPT = ("rows", "requesting", "entries", "stream", "packed", "three devices")
WHAT_TO_DO = "raise SCHEMA in record/plan_file.py, and run make update-golden"


def archive(schema: int) -> Path:
    return FOLDER / f"schema_{schema}.tar.xz"


def unpacked(schema: int, folder: Path) -> Path:
    with tarfile.open(archive(schema)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def write_archive(path: Path) -> None:
    with tarfile.open(path, "w:xz") as tar:
        for kind in KEPT:
            for name, content in BUNDLES[kind]().files.items():
                entry = tarfile.TarInfo(f"{kind}/{name}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [*map(str, arguments)])


def older(folder: Path) -> Path:
    """A bundle of the first schema: the shipped example on a board with less workspace, without edits."""
    return unpacked(1, folder) / "out"


def test_the_keys_of_a_schema_are_those_that_it_had(update_golden: bool) -> None:
    path, lines = FOLDER / f"schema_{SCHEMA}.txt", format_lines()
    if update_golden and not path.exists():
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    expected = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    different = sorted({*lines} ^ {*expected})
    assert lines == expected, f"the format of plan.json changed ({different}): {WHAT_TO_DO}"


def test_bundles_of_this_schema_verify_whenever_they_were_written(
    tmp_path: Path, update_golden: bool
) -> None:
    """Which also says that the words of C that `check` writes again are those that they were then."""
    if update_golden and not archive(SCHEMA).exists():
        write_archive(archive(SCHEMA))
    assert archive(SCHEMA).exists(), f"no bundle of schema {SCHEMA}: {WHAT_TO_DO}"
    unpacked(SCHEMA, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(KEPT)
    for kind in KEPT:
        try:
            check_bundle(tmp_path / kind)
        except CompileError as error:
            pytest.fail(f"bundles from before are called forged: {WHAT_TO_DO}\n{error}")


@pytest.mark.parametrize(
    "command",
    [
        *(
            "check out",
            "check out --report r.md",
            "run out",
            "profile out",
            "validate out --data x.npy",
            "report out",
        ),
        *("report out out", "report out --json", "explain out image", "serial out -o s"),
    ],
)
def test_each_command_says_that_a_bundle_is_older(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    older(tmp_path)
    result = invoke(*command.split())
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[:2] == [
        "error[BW211]: 'out' was written by an older version of Bytewright: its plan.json has schema 1, "
        f"and this version reads schema {SCHEMA}",
        "help: compile the model again, which replaces it: bytewright compile digits.tflite -o out "
        "--target mps3-an547 --resize dtcm=32768",
    ]


def test_the_help_of_an_older_bundle_replaces_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    older(tmp_path)
    shutil.copy(DIGITS, tmp_path)
    (line,) = re.findall(r"^help: .*: bytewright (compile .*)$", invoke("check", "out").stderr, re.MULTILINE)
    result = invoke(*shlex.split(line))
    assert result.exit_code == 0, result.stderr
    assert check_bundle(tmp_path / "out").plan.pools["dtcm"].capacity_bytes == 32768


def test_what_was_edited_in_an_older_bundle_is_not_overwritten(tmp_path: Path) -> None:
    for path in ("src/digits.c", "plan.json"):
        bundle = older(tmp_path / path.replace("/", "_"))
        (bundle / path).write_text((bundle / path).read_text().replace("digits", "digitz", 1))
        result = invoke("compile", DIGITS, "-o", bundle)
        assert result.exit_code == 1
        assert f"error[BW206]: '{bundle}' holds a bundle that was edited since: {path}\n" in result.stderr


def test_a_newer_bundle_is_called_newer_and_is_ours(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        **dict.fromkeys(digits_document(), "of a kind that nobody knows yet"),
        "schema": SCHEMA + 1,
        "files": {},
        "options": ["--io rows", "--name it's", 3],
        "model_files": {"a model.tflite": ""},
        "target": "boards/mine.toml",
    }
    document["files_hash"] = hash_files(document)
    with pytest.raises(CompileError) as caught:
        understand(document, Path("out"))
    (diagnostic,) = caught.value.diagnostics
    assert "'out' was written by a newer version of Bytewright" in diagnostic.message
    command = (diagnostic.help or "").partition(": ")[2]
    assert shlex.split(command) == [
        *("bytewright", "compile", "a model.tflite", "-o", "out", "--target", "TARGET.toml"),
        *("--io", "rows", "--name", "it's"),
    ]
    (tmp_path / "plan.json").write_text(json.dumps(document))
    found = read_file_list(tmp_path)
    assert found is not None
    assert found.is_sealed


@pytest.mark.parametrize("schema", [0, -1, True, 1.0, "1", None, [1]])
def test_what_no_version_writes_is_no_bundle(schema: object, tmp_path: Path) -> None:
    document = {**digits_document(), "schema": schema, "files": {}}
    with pytest.raises(CompileError) as caught:
        understand(document, tmp_path)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["BW207"]
    (tmp_path / "plan.json").write_text(json.dumps({**document, "files_hash": hash_files(document)}))
    assert read_file_list(tmp_path) is None
