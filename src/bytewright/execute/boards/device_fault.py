"""What went wrong on the second core, in words: the device, the job with step and kernel, the address, what lies there.

The driver and the agent of the core report numbers (`jobs.h`, `second_core.h`), which are understood here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.diagnostics import CompileError, Diagnostic, InternalError
from bytewright.execute.boards.counts import AddressRange
from bytewright.execute.boards.fault import describe_address, fault_notes, fault_reasons, has_stray_address
from bytewright.execute.boards.second_core import SecondCore
from bytewright.execute.jobs import Failure, FailureRecord, described_job
from bytewright.execute.tools import CrashError
from bytewright.record.plan import Plan

_RINGS_BEFORE_JOBS = 2  # of the driver, to activate and to open


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a fault is described by: the plan, the device, and the image's arrays and memories by core 0's addresses."""

    plan: Plan
    board_name: str
    second: SecondCore
    arrays: Sequence[AddressRange]
    memories: Sequence[AddressRange]

    @property
    def device(self) -> str:
        """The device's name."""
        return self.second.device.name

    def job(self, number: int, kernel: int | None = None) -> str:
        """Which job it was, by its number in the run and that of its kernel."""
        return described_job(self.plan, self.plan.devices[self.device], number, kernel)

    def where(self, address: int) -> str:
        """What lies at an address of core 0."""
        return describe_address(address, self.arrays, self.memories)

    def place(self, address: int) -> str:
        """What lies at an address as the device has it."""
        seen = self.second.seen_by_core_0(address)
        if seen is None:
            there = self.second.seen_by_core_1(address)
            how = "does not reach" if there is None else f"sees at {there:#010x}"
            return f"{self.where(address)}, which device '{self.device}' {how}"
        return f"{self.where(seen[1])}, {seen[1]:#010x} for device '{self.plan.device.name}'; it was not lent this"


def device_error(
    surroundings: Surroundings, record: FailureRecord, facts: dict[str, int], function: str | None
) -> CompileError:
    """The error for a run that ended because of its second device.

    Args:
        surroundings: Where it happened.
        record: What failed.
        facts: What the harness reported of a fault.
        function: The function at the fault's address.
    """
    failure, device = Failure(record.kind), surroundings.device
    job = surroundings.job(record.job, record.code_word if record.has_code else None)
    run = f"of model '{surroundings.plan.model}' on {surroundings.board_name}"
    match failure:
        case Failure.FAULTED:
            return CrashError(_fault(surroundings, facts, function, f"{job} {run}"))
        case Failure.REFUSED:
            status = f"its dispatcher returned {record.status}"
            return CompileError(Diagnostic("BW731", f"device '{device}' refused {job} {run}", (status,)))
        case Failure.OUT_OF_TURN:
            message = f"device '{device}' was given {job} {run} before it had done the one before"
            return CompileError(Diagnostic("BW731", message))
        case Failure.UNREACHED | Failure.NOT_LENT:
            address = record.address
            is_unreached = failure is Failure.UNREACHED
            why = f"device '{device}' does not reach it" if is_unreached else "it was not opened"
            place = surroundings.where(address) if is_unreached else surroundings.place(address)
            note = f"span {record.span} at {address:#010x}: {place}"
            message = f"device '{device}' was not lent what it needs for {job} {run}: {why}"
            return CompileError(Diagnostic("BW732", message, (note,)))
        case Failure.TOO_MANY_REGIONS | Failure.TOO_MANY_SPANS:
            what = "regions of memory protection" if failure is Failure.TOO_MANY_REGIONS else "spans"
            message = f"device '{device}' needs {record.span} {what} for {job} {run}: too many"
            return CompileError(Diagnostic("BW732", message))
        case _:
            raise InternalError(f"the second core's driver does not know failure {failure.name}")


def hang_error(surroundings: Surroundings, ring: int, timeout_seconds: float) -> CompileError:
    """The error for a run that was stopped while the second core had not replied to a ring of the driver."""
    job = surroundings.job(max(ring - _RINGS_BEFORE_JOBS, 0))
    run = f"of model '{surroundings.plan.model}' on {surroundings.board_name}"
    message = f"device '{surroundings.device}' did not finish {job} {run} within {timeout_seconds:g} s"
    return CompileError(Diagnostic("BW733", message))


def _fault(
    surroundings: Surroundings, facts: dict[str, int], function: str | None, job_of_run: str
) -> Diagnostic:
    is_stray = has_stray_address(facts)
    place = surroundings.place(facts["fault_mmfar"]) if is_stray else ""
    stack_bytes = surroundings.second.stack_bytes
    notes = fault_notes(facts, function, stack_bytes, place)
    if is_stray:
        message = f"device '{surroundings.device}' touched what it was not lent in {job_of_run}"
        return Diagnostic("BW730", message, tuple(notes))
    reasons = ", ".join(fault_reasons(facts))
    return Diagnostic(
        "BW731", f"device '{surroundings.device}' faulted in {job_of_run}: {reasons}", tuple(notes)
    )
