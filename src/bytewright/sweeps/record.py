"""The file with the results of a sweep: a line of JSON for each, appended and synced, so that a sweep can go on.

A line that was cut off by the end of a process or of a disk is taken away when the file is opened again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from bytewright.diagnostics import CompileError, compile_error
from bytewright.sweeps.evaluate import Result


class Record:
    """Results that were found, and a place for further ones; for one sweep at a time.

    Attributes:
        found: By key.
    """

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it.

        Raises:
            CompileError: BW206 if it cannot be written, or another sweep writes it; BW606 if it is no such file.
        """
        self._path = path
        self.found: dict[str, Result] = {}
        try:
            self._file: BinaryIO = path.open("a+b")
        except OSError as error:
            raise compile_error("BW206", f"cannot write '{path}': {error.strerror or error}") from error
        try:
            self._lock()
            self._read()
        except CompileError:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise compile_error("BW206", f"'{self._path}' is being written by another sweep") from error

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole, _, _cut_off = content.rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            result = _result_of(line)
            if result is None:
                raise compile_error("BW606", f"line {number} of '{self._path}' is no result of a sweep")
            self.found[result["key"]] = result
        if content and not whole and _result_of(content) is None and not content.startswith(b'{"key": '):
            raise compile_error("BW606", f"line 1 of '{self._path}' is no result of a sweep")
        self._file.truncate(len(whole) + 1 if whole else 0)

    def add(self, results: Iterable[Result]) -> None:
        """Appends results; when this returns they are on the disk.

        Raises:
            CompileError: BW206.
        """
        added = list(results)
        try:
            self._file.write(b"".join(json.dumps(result).encode() + b"\n" for result in added))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            message = f"cannot write '{self._path}': {error.strerror or error}"
            raise compile_error("BW206", message) from error
        self.found |= {result["key"]: result for result in added}

    def __enter__(self) -> Record:
        """The record itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file, and lets others write it."""
        self._file.close()


def _result_of(line: bytes) -> dict[str, Any] | None:
    try:
        result = json.loads(line)
    except ValueError:
        return None
    return result if isinstance(result, dict) and isinstance(result.get("key"), str) else None
