"""A serial line that is open: frames go out, and come in whole or damaged."""

from __future__ import annotations

import importlib
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from bytewright.diagnostics import CompileError, compile_error
from bytewright.execute.machine import SerialPort
from bytewright.execute.serial.frames import Frame, decode, encode

_MOST_BYTES = 4096  # between two frames, before they count as one that is damaged


class SerialLine:
    """Frames over a port."""

    def __init__(self, port: SerialPort, stream: Any) -> None:
        self.port = port
        self.num_bytes = 0  # that came
        self._stream = stream
        self._pending = bytearray()

    def send(self, frame: Frame) -> None:
        """Puts a frame on the line.

        Raises:
            CompileError: BW506: the line is cut.
        """
        with _reported(self.port):
            self._stream.write(encode(frame))
            self._stream.flush()

    def receive(self, seconds: float) -> tuple[bool, Frame | None]:
        """Whether something came in this time, and the frame that it is if it is not damaged.

        Raises:
            CompileError: BW506: the line is cut.
        """
        end = time.monotonic() + seconds
        while True:
            stuffed, zero, rest = self._pending.partition(b"\0")
            if zero or len(stuffed) > _MOST_BYTES:
                self._pending = rest
                if stuffed:
                    return True, decode(bytes(stuffed))
                continue
            left = end - time.monotonic()
            if left <= 0:
                return False, None
            with _reported(self.port):
                self._stream.timeout = left
                came = self._stream.read(max(1, self._stream.in_waiting))
            self.num_bytes += len(came)
            self._pending += came


@contextmanager
def opened(port: SerialPort, write_seconds: float) -> Generator[SerialLine, None, None]:
    """The line of a port, closed again.

    Raises:
        CompileError: BW501 without pyserial; BW506 where the port cannot be opened.
    """
    serial = _pyserial()
    with _reported(port, "cannot be opened"):
        stream = serial.serial_for_url(port.address, baudrate=port.baud, write_timeout=write_seconds)
        stream.reset_input_buffer()
    try:
        yield SerialLine(port, stream)
    finally:
        stream.close()


def _pyserial() -> Any:
    try:
        return importlib.import_module("serial")
    except ImportError:
        message = "for boards on serial lines the package pyserial is needed, and it is not installed"
        raise compile_error("BW501", message, help='install it: pip install "bytewright[serial]"') from None


@contextmanager
def _reported(port: SerialPort, what: str = "was cut") -> Generator[None, None, None]:
    """Errors of the port as BW506; those of pyserial are OSErrors, but for a URL that it does not know."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _line_error(port, what, error) from error


def _line_error(port: SerialPort, what: str, error: OSError | ValueError) -> CompileError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return compile_error("BW506", f"the serial port '{port.address}' {what}: {reason}")
