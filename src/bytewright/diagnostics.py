"""Diagnostics: every way in which Bytewright refuses an input, as data.

This module is the bottom of the import order: everything may raise `CompileError`, and only the command
line prints it. A diagnostic carries a stable code, one sentence with the numbers, notes, and a help line
that works when followed. All errors that one stage can find are collected before it stops.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice


class ExitCode(IntEnum):
    """Exit status of the command line, by kind of failure."""

    OK = 0
    BAD_INPUT = 1
    USAGE = 2
    DOES_NOT_FIT = 3
    NOT_VERIFIED = 4
    TOOL_FAILED = 5
    INTERNAL = 70


# Code -> what it means, in one line. `docs/errors.md` explains each, and a test holds the two together.
CODES: dict[str, str] = {
    # 1xx: the model file
    "BW101": "the model file cannot be read",
    "BW102": "the file is not a TFLite model",
    "BW103": "the model file is damaged",
    "BW104": "the model uses operators that are not supported",
    "BW105": "a tensor's type is not supported",
    "BW106": "a tensor's shape is dynamic in a way that is not supported",
    "BW107": "an operator's parameters are invalid or not supported",
    "BW108": "the reference has no kernels for the model's integer weights with float activations",
    "BW109": "two names become the same C identifier",
    "BW110": "the arithmetic of an operator cannot be proved free of overflow",
    "BW111": "the batch of the model cannot be opened",
    "BW112": "the text of a module is not IR",
    "BW113": "the module describes no valid program",
    "BW114": "compiling the model would cost more than files of its size may",
    "BW115": "memory is read before anything wrote it",
    "BW116": "the program asks for what cannot be compiled yet",
    "BW117": "a name of the program cannot be used in C",
    "BW118": "the model becomes too large when functions are put in their places",
    "BW119": "conditionals and loops lie too deep inside each other",
    "BW120": "the model cannot run frame by frame",
    "BW121": "an axis of the model cannot be opened",
    # 2xx: targets and options
    "BW200": "the command line is not valid",
    "BW201": "the target file cannot be read",
    "BW202": "the target file is not valid",
    "BW203": "there is no target of this name",
    "BW204": "an option names something that does not exist or cannot be",
    "BW205": "an input or output array is missing or does not match the model",
    "BW206": "the output folder or file cannot be written",
    "BW207": "the folder is not a Bytewright bundle",
    "BW208": "the linked image cannot be read",
    "BW209": "a storage scope names what the target does not have",
    "BW210": "the input cannot come row by row",
    "BW211": "the bundle was written by another version of Bytewright",
    # 3xx: what does not fit
    "BW301": "a buffer, a pool or the whole problem does not fit",
    "BW302": "the planned stack is larger than its limit",
    "BW303": "a kernel would have more parameters than C promises",
    # 4xx: what does not verify
    "BW401": "the plan does not verify",
    "BW402": "the bundle is not what its plan says",
    "BW403": "the stack of the generated code is not what the plan says, or cannot be bounded",
    "BW404": "a paranoid run did not keep to the plan",
    "BW405": "the linked image is not what the plan says",
    "BW406": "the bundle does not compute what its reference does, or holds other parameters than its model",
    "BW407": "the board runs another plan than the bundle's",
    # 5xx: tools
    "BW501": "a tool that is needed is missing",
    "BW502": "a tool failed",
    "BW503": "a pass of a plug-in is missing",
    "BW504": "a pass of a plug-in failed",
    "BW505": "this machine cannot run the code",
    "BW506": "a board on a serial line cannot be reached, or stops to answer",
    "BW507": "a serial line damages what it carries",
    # 6xx: planning problems given as numbers
    "BW601": "the buffers file cannot be read",
    "BW602": "the buffers file is not valid",
    "BW603": "the planning problem is not valid",
    "BW604": "there is no solver of this name",
    "BW605": "a solver of a user failed",
    "BW606": "the sweep is not valid",
    # 701 to 719: places of values
    "BW701": "a value is to be at two places at once",
    "BW702": "a place that is asked for cannot hold the value",
    "BW703": "no device can copy a value to where it is needed",
    "BW704": "an operator is on a device that cannot run it",
    "BW705": "kernels ask for places of one memory that no copy can give it",
    # 7xx: devices beside the entry's; 720: what they are handed in C
    "BW720": "a kernel hands work to another device",
    "BW721": "a kernel cannot be handed to its device",
    "BW728": "a packed entry is asked for, and several devices",
    "BW729": "a packed call is asked for, and another device",
    # 73x: runs of other devices than the entry's
    "BW730": "a device touched what it was not lent",
    "BW731": "a device failed at a job",
    "BW732": "a device was not lent what it needs",
    "BW733": "a device did not finish a job",
    # 74x: streams of an Ethos-U
    "BW740": "the payload of an Ethos-U operator is damaged",
    "BW741": "an action in the payload of an Ethos-U operator is not known",
    "BW742": "a command stream of an Ethos-U uses what is not supported",
    "BW743": "a command stream of an Ethos-U reaches beyond its tensors",
    "BW744": "a command stream is for another NPU than the target has",
    "BW745": "a command stream of an Ethos-U has other numerics than were asked for",
    "BW746": "a base pointer of an Ethos-U would need two ports",
    # 76x: operators that functions of the application compute
    "BW760": "the description of functions of the application is not valid",
    "BW761": "an operator is to be computed by a function, and one of the two does not exist",
    "BW762": "operators cannot be computed by a function of the application as they are bound",
    "BW763": "a function of the application does not take an operator",
}

# By what the code's number begins with; all others are bad input.
_EXIT_OF_GROUP = {
    "200": ExitCode.USAGE,
    "3": ExitCode.DOES_NOT_FIT,
    "4": ExitCode.NOT_VERIFIED,
    "5": ExitCode.TOOL_FAILED,
    "73": ExitCode.NOT_VERIFIED,
}


# Converters join the names of all that a tensor was fused from; this is left of each end of such a name.
_END = 32
_LONG_NAME = re.compile(r"'(?=[^'\s]{80})([^'\s;]*;[^'\s]*)'")


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was tried with success.

    Attributes:
        text: As a help line.
        add: Options that the command gets, as words; those of lists take the place of the whole list.
        leave_out: Options that go.
        target_lines: Lines of the target file, each with the table that it is in.
    """

    text: str
    add: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    target_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One refusal.

    Attributes:
        code: A key of `CODES`.
        message: One sentence, with names and numbers, without a final full stop.
        notes: Further lines, one fact each.
        help: What to do; when it is a list of options it is complete and works as it stands.
        where: The place in the model or file ("kws.tflite, operator 3 (CONV_2D)", "board.toml:12"), if any.
    """

    code: str
    message: str
    notes: tuple[str, ...] = ()
    help: str | None = None
    where: str | None = None
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise InternalError(f"diagnostic code {self.code!r} is not in the table")

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that this diagnostic asks for."""
        number = self.code.removeprefix("BW")
        found = (code for front, code in _EXIT_OF_GROUP.items() if number.startswith(front))
        return next(found, ExitCode.BAD_INPUT)

    def render(self) -> str:
        """The diagnostic as plain text, several lines; of long names, which converters write, only the ends."""
        lines = [f"error[{self.code}]: {_for_people(self.message)}"]
        if self.where:
            lines.append(f"  --> {_for_people(self.where)}")
        lines.extend(f"  {_for_people(note)}" for note in self.notes)
        if self.help:
            lines.append(f"help: {self.help}")
        lines.extend(f"  or: {change.text}" for change in self.changes[1:])
        return "\n".join(lines)


def _for_people(text: str) -> str:
    """A text with the two ends of each quoted name that is too long to read."""
    return _LONG_NAME.sub(lambda name: f"'{name[1][:_END]}...{name[1][-_END:]}'", text)


def first_of(diagnostics: Iterable[Diagnostic], limit: int = 20) -> list[Diagnostic]:
    """The first few of perhaps a million diagnostics, and at the end one that says how many more there are."""
    rest = iter(diagnostics)
    first = list(islice(rest, limit))
    for num_more, last in deque(enumerate(rest, 1), maxlen=1):
        first.append(Diagnostic(last.code, f"and {num_more} more of this kind: {num_more + limit} in all"))
    return first


class CompileError(Exception):
    """The input is wrong or does not fit; carries one diagnostic or more."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        if not self.diagnostics:
            raise InternalError("a CompileError needs at least one diagnostic")
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[CompileError], tuple[tuple[Diagnostic, ...]]]:
        """From its diagnostics, so that another process gets them too."""
        return type(self), (self.diagnostics,)

    @property
    def exit_code(self) -> ExitCode:
        """The exit status of the first diagnostic."""
        return self.diagnostics[0].exit_code


def compile_error(
    code: str,
    message: str,
    notes: tuple[str, ...] = (),
    help: str | None = None,  # noqa: A002
    where: str | None = None,
) -> CompileError:
    """The error of one diagnostic; see `Diagnostic`."""
    return CompileError(Diagnostic(code, message, notes, help, where))


class InternalError(Exception):
    """A bug in Bytewright: an invariant that its own code was to keep does not hold."""


@dataclass(slots=True)
class Collector:
    """Gathers the diagnostics of one stage, so that the user sees all of them at once."""

    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def add(self, diagnostic: Diagnostic) -> None:
        """Remembers one diagnostic."""
        self.diagnostics.append(diagnostic)

    @contextmanager
    def catch(self) -> Generator[None, None, None]:
        """Turns a `CompileError` raised inside the block into remembered diagnostics."""
        try:
            yield
        except CompileError as error:
            self.diagnostics.extend(error.diagnostics)

    def stop_if_any(self) -> None:
        """Raises everything gathered so far, if there is anything."""
        if self.diagnostics:
            raise CompileError(self.diagnostics)
