"""Vela's decoder of the weight stream, in a process of its own.

The decoder ends the process that it runs in where a stream is damaged. So that this is an error of the stream, and not
the end of whoever asked, a process is begun for it with the first stream; it serves all later ones, and ends with the
process that began it. Streams and weights go through pipes: a length of eight bytes, then the bytes.
"""

import importlib
import os
import select
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from bytewright.diagnostics import CompileError, compile_error
from bytewright.ethos_u.faults import damaged

TIMEOUT_SECONDS = 60.0
_LENGTH = struct.Struct("<Q")
_WEIGHT = np.dtype("<i2")
_MOST_WEIGHTS = 1 << 28
Weights = npt.NDArray[np.int16]


def require_decoder() -> Callable[[bytearray], list[int]]:
    """The decoder, for a process that may end with it.

    Raises:
        CompileError: BW501 where the package is not installed.
    """
    try:
        module = importlib.import_module("ethosu.mlw_codec")
    except (ImportError, RuntimeError) as error:
        message = (
            f"the weights of an Ethos-U stream are decoded by ethos-u-vela, which cannot be loaded ({error})"
        )
        raise compile_error("BW501", message, help='install it: pip install "bytewright[ethos-u]"') from None
    return cast(Callable[[bytearray], list[int]], module.decode)


class _EndedError(Exception):
    """The process did not answer."""


class WeightDecoder:
    """The process; it is begun when it is needed, and again after one that ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def decode(self, stream: bytes, timeout_seconds: float = TIMEOUT_SECONDS) -> Weights:
        """The weights of a stream, in its order.

        Raises:
            CompileError: BW740 where it cannot be decoded; BW501 without the decoder.
        """
        require_decoder()
        with self._lock:
            process = self._begun()
            try:
                return _exchange(process, stream, time.monotonic() + timeout_seconds)
            except (_EndedError, OSError) as error:
                raise self._ended(process, stream, str(error)) from None

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bytewright.ethos_u.decoder"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
            weakref.finalize(self, _end, self._process)
        return self._process

    def _ended(self, process: subprocess.Popen[bytes], stream: bytes, why: str) -> CompileError:
        """What became of the process, which is forgotten."""
        if why:
            process.kill()
        ending = why or f"ended with status {process.wait()}"
        assert process.stderr is not None
        lines = process.stderr.read().decode("utf-8", "replace").splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no word")
        _end(process)
        self._process = None
        return damaged(
            f"a weight stream of {len(stream)} bytes cannot be decoded: Vela's decoder {ending} ({last})"
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closes what leads to the process, which then ends, and waits for that."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    process.wait()


def _exchange(process: subprocess.Popen[bytes], stream: bytes, end: float) -> Weights:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(_LENGTH.pack(len(stream)) + stream)
    except BrokenPipeError:
        raise _EndedError from None
    count = _LENGTH.unpack(_received(process.stdout.fileno(), _LENGTH.size, end))[0]
    if count > _MOST_WEIGHTS:
        raise _EndedError(f"found {count} weights")
    return np.frombuffer(_received(process.stdout.fileno(), count * _WEIGHT.itemsize, end), _WEIGHT)


def _received(pipe: int, size_bytes: int, end: float) -> bytes:
    parts: list[bytes] = []
    while size_bytes > 0:
        left = end - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            raise _EndedError("did not end in time")
        part = os.read(pipe, min(size_bytes, 1 << 20))
        if not part:
            raise _EndedError
        parts.append(part)
        size_bytes -= len(part)
    return b"".join(parts)


def _main() -> None:
    """Decodes streams until there are no more. What the decoder itself prints goes where its complaints go."""
    decode = require_decoder()
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    while True:
        length = sys.stdin.buffer.read(_LENGTH.size)
        if len(length) < _LENGTH.size:
            return
        weights = np.array(decode(bytearray(sys.stdin.buffer.read(_LENGTH.unpack(length)[0]))), _WEIGHT)
        reply = memoryview(_LENGTH.pack(weights.size) + weights.tobytes())
        while reply:
            reply = reply[replies.write(reply) or 0 :]


if __name__ == "__main__":
    _main()
