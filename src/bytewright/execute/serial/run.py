"""Runs a batch of inferences on a board behind a serial line: the job is that of every harness (harness/main.c)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from bytewright.diagnostics import CompileError, compile_error
from bytewright.execute.description import Bundle
from bytewright.execute.machine import SerialPort
from bytewright.execute.model_error import model_error
from bytewright.execute.program import MEASURED_FILE, Ending, parse_report
from bytewright.execute.result import BatchResult, TimedRun
from bytewright.execute.serial.conversation import Conversation
from bytewright.execute.serial.frames import Frame, Kind
from bytewright.execute.serial.line import opened
from bytewright.execute.settings import Settings
from bytewright.execute.step_clock import STEPS_FILE, read_timed_runs
from bytewright.execute.tensors import Array, check_calls, output_size_bytes, pack, unpack_outputs

_NUMBER, _PIECE = struct.Struct("<i"), struct.Struct("<BH")
_INPUTS, _OUTPUTS, _REPORT = "inputs.bin", "outputs.bin", "report.txt"


def run_on_serial(
    bundle: Bundle, batch: Sequence[Sequence[Array]], port: SerialPort, settings: Settings
) -> BatchResult:
    """Runs all inferences of a batch on a board, in one job.

    Args:
        bundle: The one that the board's program was built with.
        batch: The inputs of each inference.
        port: Where the board is.
        settings: How they run; the limit is of the time between two frames, and nothing is built.

    Raises:
        CompileError: BW205 for wrong inputs, BW501 without pyserial, BW506 or BW507 for the line, BW407 for another
            plan; BW402 if the model returns an error.
    """
    checked = check_calls(bundle.plan, batch, settings.entries)
    files = _Files(pack(checked, settings.repeat, keep_state=settings.keep_state), settings.by_step)
    with opened(port, settings.timeout_seconds) as line:
        conversation = Conversation(line, settings.timeout_seconds)
        conversation.begin(bundle)
        status = _serve(conversation, files)
    facts = parse_report(bytes(files.written[_REPORT]).decode("utf-8", "replace"))
    if status == Ending.MODEL_FAILED and "status" in facts:
        raise model_error(bundle, facts["status"])
    data, measured = (bytes(files.written[name]) for name in (_OUTPUTS, MEASURED_FILE))
    sizes = output_size_bytes(bundle.plan, checked), 8 * len(batch) * settings.repeat
    if status != Ending.FINE or (len(data), len(measured)) != sizes:
        raise _not_kept(port, f"it ended with status {status} after {len(data)} B of outputs")
    cycles: list[int] = np.frombuffer(measured, "<i8").tolist()
    return BatchResult(
        unpack_outputs(bundle.plan, data, checked),
        port,
        bundle.plan.hardware.name,
        bundle.plan.workspace_bytes,
        cycles=tuple(cycles) if min(cycles, default=0) >= 0 else (),
        timed_runs=_timed_runs(port, bytes(files.written[STEPS_FILE])),
        num_resent_frames=conversation.num_resent,
    )


@dataclass(slots=True)
class _Files:
    """What the board reads and writes, in memory; a file's number is its place among the names."""

    inputs: bytes
    has_steps: bool
    position: int = 0
    names: tuple[str, ...] = (_INPUTS, _OUTPUTS, MEASURED_FILE, _REPORT, STEPS_FILE)
    written: dict[str, bytearray] = field(default_factory=dict[str, bytearray])

    def __post_init__(self) -> None:
        self.written = {name: bytearray() for name in self.names}

    def answer(self, request: Frame) -> bytes:
        """What a request is answered with.

        Raises:
            ValueError: It is none of the protocol's.
        """
        content = request.content
        if request.kind is Kind.OPEN:
            name = content[1:].decode("ascii")
            is_wanted = name != STEPS_FILE or self.has_steps
            return _NUMBER.pack(self.names.index(name) if is_wanted else -1)
        if request.kind is Kind.READ:
            _, num_bytes = struct.unpack("<iI", content)
            piece = self.inputs[self.position : self.position + num_bytes]
            self.position += len(piece)
            return piece
        if request.kind is Kind.WRITE:
            for file, piece in _pieces(content):
                self.written[self.names[file]] += piece
        return b""


def _pieces(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The pieces of files in a request to write."""
    position = 0
    while position < len(content):
        file, num_bytes = _PIECE.unpack_from(content, position)
        position += _PIECE.size + num_bytes
        if position > len(content):
            raise ValueError("a piece ends behind its frame")
        yield file, content[position - num_bytes : position]


def _serve(conversation: Conversation, files: _Files) -> int:
    """Answers a board until it exits; with what status."""
    status = 0
    for request in conversation.requests():
        try:
            content = files.answer(request)
            if request.kind is Kind.EXIT:
                (status,) = _NUMBER.unpack(request.content)
        except (ValueError, IndexError, struct.error) as error:
            what = f"its request {request.kind.name.lower()} has {len(request.content)} B that mean nothing"
            raise _not_kept(conversation.line.port, what) from error
        conversation.answer(content)
    return status


def _timed_runs(port: SerialPort, content: bytes) -> tuple[TimedRun, ...]:
    try:
        return read_timed_runs(content)
    except ValueError as error:
        raise _not_kept(port, str(error)) from error


def _not_kept(port: SerialPort, what: str) -> CompileError:
    message = f"the program on the board on '{port.address}' does not keep to the serial protocol: {what}"
    return compile_error("BW506", message, help="bytewright serial DIR -o FOLDER writes it anew")
