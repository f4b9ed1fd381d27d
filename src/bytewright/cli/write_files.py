"""Writes the files that a command was asked for: all of them, or none."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from bytewright.diagnostics import CompileError, Diagnostic


def write_files(files: list[tuple[Path, str]]) -> None:
    """Writes all files or none: each is complete beside its destination before the first is moved there."""
    ready: list[tuple[str, Path]] = []
    try:
        for path, text in files:
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", newline="", dir=path.parent, prefix=f".{path.name}.", delete=False
            ) as file:
                ready.append((file.name, path))
                file.write(text)
        for name, path in ready:
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
    except OSError as error:
        for name, _ in ready:
            with suppress(OSError):
                os.unlink(name)
        raise CompileError(
            Diagnostic("BW206", f"'{error.filename}' cannot be written: {error.strerror}")
        ) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
