"""What a host says to a board: a session begins with the hash of the plan, then the board asks and the host answers.

A request that comes damaged or not at all is asked for again; one that comes twice is answered as the first time.
"""

from __future__ import annotations

import secrets
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from bytewright.diagnostics import CompileError, compile_error
from bytewright.execute.description import Bundle
from bytewright.execute.serial.frames import REQUESTS, Frame, Kind
from bytewright.execute.serial.line import SerialLine

VERSION = 1
CONNECT_SECONDS = 5.0
_BEGIN_EVERY = 1.0
_FIRST_SILENCE = 1.0  # before a request is asked for again; twice as long each time
_MOST_DAMAGED = 16  # frames for one request
_HELLO = struct.Struct("<H32s")
_HELP = "bytewright serial DIR -o FOLDER writes the program that the board must run"


@dataclass(slots=True)
class Conversation:
    """A session with a board.

    Attributes:
        line: That it goes over.
        silence_seconds: How long the board may take for what it does between two requests.
        num_resent: Frames that were sent again because one was damaged or lost.
    """

    line: SerialLine
    silence_seconds: float
    num_resent: int = 0
    _session: int = field(default_factory=lambda: secrets.randbelow(1 << 16))
    _sequence: int = 0
    _last: Frame | None = None

    def begin(self, bundle: Bundle) -> None:
        """Begins a session with a board that runs the bundle.

        Raises:
            CompileError: BW506 where none answers; BW407 where it runs another plan.
        """
        end = time.monotonic() + min(CONNECT_SECONDS, self.silence_seconds)
        hello = None
        while hello is None:
            if time.monotonic() >= end:
                raise self._unanswered()
            self.line.send(Frame(Kind.BEGIN, self._session, 0))
            hello = self._hello(min(time.monotonic() + _BEGIN_EVERY, end))
        _require_plan(self.line, bundle, hello.content)
        self.answer()

    def _hello(self, end: float) -> Frame | None:
        """The board's answer to a begin, if it comes in time; what it sent before is left out."""
        while (left := end - time.monotonic()) > 0:
            _, frame = self.line.receive(left)
            if frame is not None and (frame.kind, frame.session) == (Kind.HELLO, self._session):
                return frame
        return None

    def answer(self, content: bytes = b"") -> None:
        """Answers the last request."""
        self._last = Frame(Kind.ANSWER, self._session, self._sequence, content)
        self._sequence = (self._sequence + 1) % (1 << 16)
        self.line.send(self._last)

    def requests(self) -> Iterator[Frame]:
        """The board's requests, each of which must be answered before the next; the last one is that to exit.

        Raises:
            CompileError: BW506 where it stops to ask; BW507 where frames are damaged again and again.
        """
        kind = Kind.HELLO
        while kind is not Kind.EXIT:
            request = self._request(kind)
            kind = request.kind
            yield request

    def _request(self, before: Kind) -> Frame:
        end = time.monotonic() + self.silence_seconds
        silence, num_damaged = _FIRST_SILENCE, 0
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise self._silent(before)
            came, frame = self.line.receive(min(left, silence))
            if frame is None:
                num_damaged += came
                silence *= 1 if came else 2
                self._again(Frame(Kind.AGAIN, self._session, self._sequence), num_damaged)
                self.num_resent += came
            elif frame.session == self._session and frame.kind in REQUESTS:
                if frame.sequence == self._sequence:
                    return frame
                if self._last is not None and frame.sequence == self._last.sequence:
                    num_damaged += 1
                    self._again(self._last, num_damaged)
                    self.num_resent += frame.kind is not Kind.HELLO  # of which one comes for each begin

    def _again(self, frame: Frame, num_damaged: int) -> None:
        if num_damaged > _MOST_DAMAGED:
            raise compile_error(
                "BW507",
                f"of the frames over '{self.line.port.address}', {num_damaged} in a row were damaged or lost",
                help="look at the baud rate, the cable, and what else writes to this port",
            )
        self.line.send(frame)

    def _unanswered(self) -> CompileError:
        port, num_bytes = self.line.port, self.line.num_bytes
        what = f"{num_bytes} B came, and none of them are such an answer" if num_bytes else "nothing came"
        seconds = min(CONNECT_SECONDS, self.silence_seconds)
        return compile_error(
            "BW506",
            f"no board answers on '{port.address}' at {port.baud} baud within {seconds:g} s: {what}",
            help=_HELP,
        )

    def _silent(self, before: Kind) -> CompileError:
        message = (
            f"the board on '{self.line.port.address}' stopped: nothing came for {self.silence_seconds:g} s"
        )
        return compile_error(
            "BW506",
            message,
            notes=(f"its last request was {before.name.lower()}, number {self._sequence - 1}",),
            help="reset the board; --timeout SECONDS gives it longer",
        )


def _require_plan(line: SerialLine, bundle: Bundle, content: bytes) -> None:
    """Refuses a board that runs another plan, or speaks another version."""
    version = int.from_bytes(content[:2], "little")
    if version != VERSION or len(content) != _HELLO.size:
        raise compile_error(
            "BW407",
            f"the program on the board speaks version {version} of the serial protocol, this Bytewright {VERSION}",
            help=_HELP,
        )
    own, found = bundle.plan.plan_hash, content[2:].hex()
    if found != own:
        raise compile_error(
            "BW407",
            f"the board on '{line.port.address}' runs plan {found[:12]}, the bundle of model '{bundle.plan.model}' has "
            f"plan {own[:12]}",
            notes=(f"board:  {found}", f"bundle: {own}"),
            help=_HELP,
        )
