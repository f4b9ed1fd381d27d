"""Options that are texts of a form: each as a value, which is written as that form is, and read from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.base.option import OptionSyntaxError, two_sides
from bytewright.diagnostics import CompileError, compile_error
from bytewright.target.mistake import closest
from bytewright.target.size import SizeError, parse_size


@dataclass(frozen=True, slots=True)
class Pin:
    """One pin: buffers whose name matches the shell pattern belong in the pool, or in the first that has room.

    Attributes:
        pool: The one that is preferred.
        others: Those that come after it.
        offset: Where in the pool the buffers are, in bytes; then there are no others.
    """

    pattern: str
    pool: str
    others: tuple[str, ...] = ()
    offset: int | None = None

    @property
    def pools(self) -> tuple[str, ...]:
        """All of them, the preferred one first."""
        return (self.pool, *self.others)

    def moved_to(self, pool: str) -> Pin:
        """The pattern pinned to another pool, anywhere in it."""
        return Pin(self.pattern, pool)

    def __str__(self) -> str:
        offset = "" if self.offset is None else f"+{self.offset}"
        return f"{self.pattern}={','.join(self.pools)}{offset}"


def parse_pin_option(text: str) -> Pin:
    """Reads `PATTERN=POOL`, `PATTERN=POOL,POOL` in order of preference, or `PATTERN=POOL+OFFSET`.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    pattern, place = two_sides(text, "PATTERN=POOL", at_last=True)
    names, plus, offset = place.partition("+")
    first, *others = names.split(",")
    pools = (first, *others)
    if not all(pools):
        raise OptionSyntaxError(f"'{text}' is not PATTERN=POOL")
    if len(set(pools)) < len(pools):
        raise OptionSyntaxError(f"'{text}' names a pool twice")
    if not plus:
        return Pin(pattern, first, tuple(others))
    if len(pools) > 1:
        raise OptionSyntaxError(f"'{text}': an offset is that in one pool, not in {len(pools)}")
    try:
        return Pin(pattern, first, offset=parse_size(offset, zero_allowed=True))
    except SizeError as error:
        raise OptionSyntaxError(f"'{text}': {error}") from None


@dataclass(frozen=True, slots=True)
class KernelBinding:
    """Operators whose name or kind matches the shell pattern are computed by a C function of the application."""

    pattern: str
    symbol: str

    def __str__(self) -> str:
        return f"{self.pattern}={self.symbol}"


def parse_kernel_option(text: str) -> KernelBinding:
    """Reads `PATTERN=SYMBOL`.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    return KernelBinding(*two_sides(text, "PATTERN=SYMBOL", at_last=True))


@dataclass(frozen=True, slots=True)
class On:
    """Operators whose name or kind matches the shell pattern run on a device.

    Attributes:
        pool: Where their results lie, if that is asked for.
    """

    pattern: str
    device: str
    pool: str | None = None

    def __str__(self) -> str:
        pool = "" if self.pool is None else f".{self.pool}"
        return f"{self.pattern}={self.device}{pool}"


def parse_on_option(text: str) -> On:
    """Reads `PATTERN=DEVICE` or `PATTERN=DEVICE.POOL`.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    pattern, place = two_sides(text, "PATTERN=DEVICE[.POOL]", at_last=True)
    device, dot, pool = place.partition(".")
    if not device or (dot and not pool):
        raise OptionSyntaxError(f"'{text}' is not PATTERN=DEVICE[.POOL]")
    return On(pattern, device, pool or None)


@dataclass(frozen=True, slots=True)
class StatePair:
    """An input and an output of the model: what a run gives is what the next one is given."""

    input: str
    output: str

    def __str__(self) -> str:
        return f"{self.input}={self.output}"


def parse_state_option(text: str) -> StatePair:
    """Reads `INPUT=OUTPUT`.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    return StatePair(*two_sides(text, "INPUT=OUTPUT"))


@dataclass(frozen=True, slots=True)
class StreamAxis:
    """An axis of an input that counts frames; of the only input, where none is named."""

    axis: int
    input: str | None = None

    def __str__(self) -> str:
        return str(self.axis) if self.input is None else f"{self.input}:{self.axis}"


def parse_stream_option(text: str) -> StreamAxis:
    """Reads `AXIS` or `INPUT:AXIS`.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    name, colon, number = text.rpartition(":")
    if not re.fullmatch("[0-9]{1,3}", number) or (colon and not name):
        raise OptionSyntaxError(f"'{text}' is not [INPUT:]AXIS")
    return StreamAxis(int(number), name or None)


OTHER_RANGE = "name a range that begins behind this extent, or ends before it"
"""What helps where one extent of the range of `--open` is in the way."""
ELSEWHERE = "let the model end before that operator, and compute the rest in the application"
"""What helps where an operator does not allow an extent that the data decides."""


@dataclass(frozen=True, slots=True)
class OpenAxis:
    """An axis of an input whose extent each run is given; of the only input, where none is named.

    Attributes:
        name: What the extent is called.
        lower, upper: The smallest, of 1 or more, and the largest, which the plan is made for.
    """

    axis: int
    name: str
    lower: int
    upper: int
    input: str | None = None

    def __str__(self) -> str:
        front = "" if self.input is None else f"{self.input}:"
        return f"{front}{self.axis}={self.name}:{self.lower}..{self.upper}"

    def input_among(self, names: Sequence[str]) -> str:
        """The input that is meant, of those of a model.

        Raises:
            CompileError: BW204, it is none of them, or could be several.
        """
        return _input_among(names, self.input, f"--open {self}", "--open INPUT:AXIS=NAME:LO..HI")


def parse_open_option(text: str) -> OpenAxis:
    """Reads `[INPUT:]AXIS=NAME:LO..HI`.

    Raises:
        OptionSyntaxError: It is not of that form, or the range has less than two extents.
    """
    found = re.fullmatch(r"(?:(.+):)?([0-9]{1,3})=(\w+):([0-9]{1,9})\.\.([0-9]{1,9})", text)
    if found is None:
        raise OptionSyntaxError(f"'{text}' is not [INPUT:]AXIS=NAME:LO..HI")
    axis, lower, upper = int(found[2]), int(found[4]), int(found[5])
    if not 1 <= lower < upper:
        raise OptionSyntaxError(f"'{text}': {lower}..{upper} is no range from 1 or more to a larger extent")
    return OpenAxis(axis, found[3], lower, upper, found[1])


@dataclass(frozen=True, slots=True)
class InputShape:
    """The shape of an input whose extents the file leaves open; of the only input, where none is named.

    Attributes:
        extents: One an axis; None where it stays as the file has it.
    """

    extents: tuple[int | None, ...]
    input: str | None = None

    def __str__(self) -> str:
        front = "" if self.input is None else f"{self.input}="
        return front + "x".join("?" if extent is None else str(extent) for extent in self.extents)

    def input_among(self, names: Sequence[str]) -> str:
        """The input that is meant, of those of a model.

        Raises:
            CompileError: BW204, it is none of them, or could be several.
        """
        return _input_among(names, self.input, f"--input-shape {self}", f"--input-shape {_SHAPE_FORM}")

    def refused(self, reason: str, extents: Sequence[int | None]) -> CompileError:
        """The error that it cannot be so, with a shape that can."""
        other = InputShape(tuple(extents), self.input)
        return compile_error("BW204", f"--input-shape {self}: {reason}", help=f"--input-shape '{other}'")


_SHAPE_FORM = "[INPUT=]EXTENTxEXTENT..., as 1x224x224x3"


def parse_input_shape_option(text: str) -> InputShape:
    """Reads `[INPUT=]1x224x224x3`, with `?` for an extent that stays as the file has it.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    extent = r"(?:[1-9][0-9]{0,8}|\?)"
    found = re.fullmatch(rf"(?:(.+)=)?({extent}(?:x{extent})*)", text)
    if found is None:
        raise OptionSyntaxError(f"'{text}' is not {_SHAPE_FORM}")
    return InputShape(tuple(None if each == "?" else int(each) for each in found[2].split("x")), found[1])


def _input_among(names: Sequence[str], wanted: str | None, option: str, form: str) -> str:
    if wanted in names or (wanted is None and len(names) == 1):
        return wanted or names[0]
    listed = ", ".join(f"'{name}'" for name in names)
    what = "says of no input that it is meant" if wanted is None else "is of no input"
    help_text = closest(wanted or "", names) or f"name one of them: {form}"
    raise compile_error("BW204", f"{option} {what}; the model has {listed}", help=help_text)


@dataclass(frozen=True, slots=True)
class RunBound:
    """Loops whose name or kind matches the shell pattern take so many turns at most; results are so large at most."""

    pattern: str
    most: int

    def __str__(self) -> str:
        return f"{self.pattern}={self.most}"


def parse_bound_option(text: str) -> RunBound:
    """Reads `PATTERN=N`.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    pattern, number = two_sides(text, "PATTERN=N", at_last=True)
    if not re.fullmatch("[1-9][0-9]{0,8}", number):
        raise OptionSyntaxError(f"'{text}': '{number}' is no number from 1 to 999999999")
    return RunBound(pattern, int(number))
