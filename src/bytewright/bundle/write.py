"""Writes a bundle: all files or none."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from bytewright.bundle.plan_document import BUILD_FLAGS
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.plan_file import PLAN_FILE


def bundle_files(
    c_files: dict[str, bytes], document: dict[str, Any], model: str, uses_math: bool
) -> dict[str, bytes]:
    """Path -> content of everything in the bundle, in the order of the paths.

    The document gets the digest of every other file, as `files`.
    """
    files = dict(c_files)
    sources = [path for path in c_files if path.endswith(".c")]
    files["CMakeLists.txt"] = _cmake(model, sources, uses_math).encode()
    document["files"] = {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(files)}
    files[PLAN_FILE] = (json.dumps(document, indent=1) + "\n").encode()
    return dict(sorted(files.items()))


def write_bundle(files: Mapping[str, bytes], directory: str | PathLike[str]) -> None:
    """Writes the files into the directory, replacing a bundle that is there.

    The files are written beside the directory first, so a failure leaves what was there before.

    Raises:
        CompileError: BW206 if the directory cannot be written, or holds something that is not a bundle.
    """
    directory = Path(directory).absolute()
    if directory.exists() and not directory.is_dir():
        raise _refused(directory, "is not a folder")
    if directory.is_dir() and any(directory.iterdir()) and not (directory / PLAN_FILE).is_file():
        raise _refused(directory, "is not empty and holds no bundle")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".bytewright-", dir=directory.parent) as temporary:
            fresh = Path(temporary) / "bundle"
            for path, content in files.items():
                target = fresh / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            _replace(fresh, directory, Path(temporary) / "old")
    except OSError as error:
        raise _refused(directory, f"cannot be written: {error.strerror}") from error


def _replace(fresh: Path, directory: Path, old: Path) -> None:
    if directory.exists():
        os.replace(directory, old)
        try:
            os.replace(fresh, directory)
        except OSError:
            os.replace(old, directory)
            raise
        shutil.rmtree(old)
    else:
        os.replace(fresh, directory)


def _refused(directory: Path, reason: str) -> CompileError:
    return CompileError(
        Diagnostic("BW206", f"'{directory}' {reason}", help="name a new or empty folder, or an older bundle")
    )


def _cmake(model: str, sources: list[str], uses_math: bool) -> str:
    flags = " ".join(BUILD_FLAGS[1:])
    libraries = f"target_link_libraries({model} PUBLIC m)\n" if uses_math else ""
    return (
        "cmake_minimum_required(VERSION 3.13)\n"
        f"project({model} C)\n"
        f"add_library({model} STATIC {' '.join(sources)})\n"
        f"target_include_directories({model} PUBLIC include)\n"
        f"set_target_properties({model} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)\n"
        "# Bytes of a pool are reused with other element types.\n"
        f"target_compile_options({model} PRIVATE {flags})\n"
        f"{libraries}"
    )
