"""A board behind a serial line as a program of this machine, and a line that may damage what it carries."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bytewright.execute.description import read_bundle
from bytewright.execute.serial.source import serial_files
from support.c_program import LANGUAGE, SANITIZED, WARNINGS, run_command

# What the line makes of bytes: whether they go to the board, how many went that way before, and they.
Damage = Callable[[bool, int, bytes], bytes]

_MAIN = """\
#define _POSIX_C_SOURCE 200112L
#include <unistd.h>
#include "@m@_serial.h"

static int get_byte(void)
{
    unsigned char byte;

    return read(0, &byte, 1) == 1 ? byte : -1;
}

static void put_byte(uint8_t byte)
{
    if (write(1, &byte, 1) != 1) {
        _exit(1);
    }
}

static int64_t cycles(void)
{
    return @cycles@;
}

int main(void)
{
    static const @m@_serial_line line = {get_byte, put_byte, cycles};

    @m@_serial(&line);
    return 0;
}
"""


def serial_program(
    bundle_folder: Path,
    folder: Path,
    *,
    cycles: str = "7",
    has_steps: bool = False,
    others: Sequence[Path] = (),
    main: str = _MAIN,
) -> Path:
    """A program of this machine that runs a bundle behind its standard input and output, with sanitizers."""
    bundle = read_bundle(bundle_folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in serial_files(bundle).items():
        (folder / name).write_text(text, encoding="utf-8")
    model = bundle.plan.model
    (folder / "main.c").write_text(main.replace("@m@", model).replace("@cycles@", cycles), encoding="utf-8")
    steps = ["-include", f"{model}_serial_steps.h"] if has_steps else []
    includes = [f"-I{path}" for path in (folder, *bundle.include_directories)]
    command = ["gcc", *LANGUAGE, *WARNINGS, "-Wno-clobbered", *SANITIZED, *includes, *steps]
    sources = [folder / "main.c", folder / f"{model}_serial.c", *bundle.sources, *others]
    run_command([*command, *sources, "-lm", "-o", "program"], folder)
    return folder / "program"


def unharmed(to_board: bool, before: int, data: bytes) -> bytes:
    """A line that is fine."""
    del to_board, before
    return data


class _Relay:
    """Carries bytes between one connection after the other and a process that stays."""

    def __init__(self, process: subprocess.Popen[bytes], damage: Damage) -> None:
        self._process, self._damage = process, damage
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connection: socket.socket | None = None
        self._num_bytes = {True: 0, False: 0}
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._to_board, self._from_board)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def address(self) -> str:
        return f"socket://127.0.0.1:{self._listener.getsockname()[1]}"

    def _carried(self, to_board: bool, data: bytes) -> bytes:
        before = self._num_bytes[to_board]
        self._num_bytes[to_board] += len(data)
        return self._damage(to_board, before, data)

    def _to_board(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            while True:
                self._connection, _ = self._listener.accept()
                with suppress(ConnectionError):
                    while data := self._connection.recv(4096):
                        self._process.stdin.write(self._carried(True, data))
                        self._process.stdin.flush()

    def _from_board(self) -> None:
        assert self._process.stdout is not None
        with suppress(OSError, ValueError):
            while data := self._process.stdout.read1(4096):  # type: ignore[attr-defined]
                if self._connection is not None:
                    with suppress(OSError):
                        self._connection.sendall(self._carried(False, data))
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        if self._connection is not None:
            self._connection.close()


@contextmanager
def behind_a_line(command: Sequence[str | Path], damage: Damage = unharmed) -> Generator[str, None, None]:
    """The address of a line with a program at its other end."""
    words = [str(word) for word in command]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    relay = _Relay(process, damage)
    try:
        yield relay.address
    finally:
        process.kill()
        process.wait()
        relay.close()
