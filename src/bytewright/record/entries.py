"""Steps, ports and entries of a plan, as frozen values: what runs in which order, and what a run is given."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.base.signed import Signed
from bytewright.ir.analyses.row_replay import Rows
from bytewright.naming.entry_forms import ROWS, RUN, EntryForm
from bytewright.record.extents import extents_for


@dataclass(frozen=True, slots=True)
class PlannedSpan:
    """A part of a buffer that a job is given.

    Attributes:
        buffer: Whose part it is.
        offset: Where it begins in the buffer, in bytes: a number, or how it changes, such as `128*turn + 4`
            (`NumberTexts`).
        size_bytes: With every extent that a run is given at its largest; None if a turn decides.
        access: What the device may do with it.
    """

    buffer: str
    offset: int | str
    size_bytes: int | None
    access: ir.Access


@dataclass(frozen=True, slots=True)
class PlannedOverlap:
    """An input that dies in a step, and an output that may lie over it because the kernel is done with what it writes.

    Attributes:
        source: The buffer that is read.
        output: The buffer that is written. It begins so far below the other one, or above it, or further:
        below_bytes: as the kernel asks, run as the step runs it,
        above_bytes: the same.
    """

    source: str
    output: str
    below_bytes: int
    above_bytes: int

    @property
    def text(self) -> str:
        """What its kernel asks for, for people."""
        return f"contract: at least {self.below_bytes} B below it, or {self.above_bytes} B above"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One call of the entry.

    Attributes:
        ticks: Half-open interval on the clock: reading, the body, writing.
        operators: Those of the model that became this call.
        reads: Buffers that it reads.
        writes: Buffers that it writes.
        scratch: Buffers that it works in.
        alive: For each of them the ticks, half-open, in which the call needs its bytes: from the first use to the last.
        is_packed: Whether it calls the packed form of the kernel,
        num_packed_arguments: and with how many arguments.
        spans: What the job consists of, of a call that is handed over, in the job's order; a command stream is first.
        scalars: The numbers that the kernel is given, in order, each as the offset of a span, and contexts of devices;
            none of a call that is not handed over where `rows` has them.
        arguments: The buffers that the kernel is given, in order, of a call that is not handed over,
        starts: and the element of each from which on it is, as the numbers; empty if each is 0.
        overlaps: The pairs of its buffers that may share bytes while they coexist.
        runs_down: Whether its kernel runs from the last row and pixel to the first.
        rows: Which rows it makes, of a call that makes some of a tensor's.
        template: What of an instruction set made its kernel; empty if a portable template did.
        remarks: What else is to say of how that was made, for people.
        work: What a call computes; None where nobody knows, as of a program that somebody wrote.
    """

    index: int
    ticks: tuple[int, int]
    kernel: str
    device: str
    operators: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    scratch: tuple[str, ...]
    alive: Mapping[str, tuple[int, int]]
    is_packed: bool = field(default=False, metadata={"omit_empty": True})
    num_packed_arguments: int = field(default=0, metadata={"omit_empty": True})
    spans: tuple[PlannedSpan, ...] = field(default=(), metadata={"omit_empty": True})
    scalars: tuple[int | str, ...] = field(default=(), metadata={"omit_empty": True})
    arguments: tuple[str, ...] = field(default=(), metadata={"omit_empty": True})
    starts: tuple[int | str, ...] = field(default=(), metadata={"omit_empty": True})
    overlaps: tuple[PlannedOverlap, ...] = field(default=(), metadata={"omit_empty": True})
    runs_down: bool = field(default=False, metadata={"omit_empty": True})
    rows: Rows | None = field(default=None, metadata={"omit_empty": True})
    template: str = field(default="", metadata={"omit_empty": True})
    remarks: tuple[str, ...] = field(default=(), metadata={"omit_empty": True})
    work: ir.Work | None = field(default=None, metadata={"omit_empty": True})

    @property
    def touched(self) -> tuple[str, ...]:
        """All buffers of the call, each once."""
        return tuple(dict.fromkeys((*self.reads, *self.writes, *self.scratch)))


@dataclass(frozen=True, slots=True)
class Initial:
    """The bytes of a state before the first run.

    Attributes:
        fill: What each of them is; None where they are not all the same.
        constant: The buffer in a parameter pool that has them, then.
    """

    fill: int | None = None
    constant: str | None = None


MOST = "MOST"
"""What the macro ends with that has the most which an output may say."""


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """An input, output or state of the model; scale and zero point are None for float tensors.

    Attributes:
        buffer: Its buffer. One that the caller provides and no step touches is not among the plan's buffers.
        shape: With every extent that a run is given at its largest; size_bytes is that of this shape.
        extents: The same with the names of such extents, and what follows from one as `(time-2)/2`.
        num_rows: Rows of it that the application hands over one after another; 0 where it has all of it at once.
        initial: What a state is before the first run.
        sized: The shape of an output in a run of which the data decides extents, as `extents` has it, by the names of
            outputs that say them; empty where it decides none. Elements behind those of that shape mean nothing.
        most: The most that an output may say which says such an extent; 0 for one that says none.
        is_checked: Whether it may say more, of data that asks for that: then the run is refused.
    """

    name: str
    c_name: str
    buffer: str
    dtype: ir.DType
    shape: tuple[int, ...]
    extents: tuple[int | str, ...]
    size_bytes: int
    scale: float | None
    zero_point: Signed | None
    num_rows: int = field(default=0, metadata={"omit_empty": True})
    initial: Initial | None = field(default=None, metadata={"omit_empty": True})
    sized: tuple[int | str, ...] = field(default=(), metadata={"omit_empty": True})
    most: int = field(default=0, metadata={"omit_empty": True})
    is_checked: bool = field(default=False, metadata={"omit_empty": True})

    @property
    def row_bytes(self) -> int:
        """The bytes of one of these rows."""
        return self.size_bytes // self.num_rows

    @property
    def form(self) -> EntryForm:
        """The form of an entry that is given it."""
        return ROWS if self.num_rows else RUN

    @property
    def pieces(self) -> Mapping[str, int]:
        """What it says or comes in, by what the macros of the header end with: such rows, and the bytes of each."""
        rows = {"ROWS": self.num_rows, "ROW_SIZE": self.row_bytes} if self.num_rows else {}
        return rows | ({MOST: self.most} if self.most else {})

    @property
    def pieces_text(self) -> str:
        """`49 rows of 40 B`; empty for what comes at once."""
        return f"{self.num_rows} rows of {self.row_bytes} B" if self.num_rows else ""

    @property
    def given_bytes(self) -> int:
        """What the application has of it at one time."""
        return self.row_bytes if self.num_rows else self.size_bytes

    @property
    def size(self) -> ir.Symbol | None:
        """The extent that it says."""
        return ir.Symbol(self.name, 0, self.most) if self.most else None

    def shape_for(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """The shape in a run that is given these values of extents."""
        return extents_for(self.extents, values)

    def bytes_for(self, values: Mapping[str, int]) -> int:
        """The bytes of that shape."""
        return math.prod(self.shape_for(values)) * self.dtype.size_bytes


# What the entry of a model is called in C that has one alone.
ONE_ENTRY = "run"


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """What the application runs: some of the steps, with inputs and outputs of its own.

    Attributes:
        name: Its name in C.
        inputs: The names of its inputs,
        outputs: and of its outputs.
        steps: Its steps, half-open.
        ticks: Its ticks, half-open: what is its own lives in these alone.
        extents: The names of those that its runs are given.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[int, int]
    ticks: tuple[int, int]
    extents: tuple[str, ...] = field(default=(), metadata={"omit_empty": True})


@dataclass(frozen=True, slots=True)
class NarrowedWork:
    """What the model's convolutions take, of what they took before channels were removed.

    Attributes:
        macs: Multiply-accumulates, each convolution counted once; of one sample where the batch is open.
        weight_bytes: Of weights.
    """

    macs: int
    macs_before: int
    weight_bytes: int
    weight_bytes_before: int

    @property
    def text(self) -> str:
        """How much was removed, of how much."""
        macs, weights = self.macs_before - self.macs, self.weight_bytes_before - self.weight_bytes
        sums = f"{macs} of {self.macs_before} multiply-accumulates ({_share(macs, self.macs_before)})"
        share = _share(weights, self.weight_bytes_before)
        return f"{sums} and {weights} of {self.weight_bytes_before} B of weights ({share}) removed"


def _share(part: int, whole: int) -> str:
    """In tenths of a percent, rounded down."""
    tenths = 1000 * part // whole if whole else 0
    return f"{tenths // 10}.{tenths % 10} %"
