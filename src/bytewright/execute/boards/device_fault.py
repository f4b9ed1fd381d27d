"""What went wrong on the second core, in words: the device, the job with step and kernel, the address, what lies there.

The driver and the agent of the core report numbers (`jobs.h`, `second_core.h`), which are understood here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.diagnostics import CompileError
from bytewright.execute.boards.counts import AddressRange
from bytewright.execute.boards.fault import describe_address, fault_notes, fault_reasons, has_stray_address
from bytewright.execute.boards.second_core import SecondCore
from bytewright.execute.job_error import FailedJob, job_error
from bytewright.execute.jobs import Failure, FailureRecord, described_job
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

    def run(self, job: str) -> str:
        """A job, and of what it is one."""
        return f"{job} of model '{self.plan.model}' on {self.board_name}"

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
    failure = Failure(record.kind)
    is_stray = failure is Failure.FAULTED and has_stray_address(facts)
    failed = FailedJob(
        surroundings.device,
        surroundings.run(surroundings.job(record.job, record.code_word if record.has_code else None)),
        tuple(_notes(surroundings, record, facts, function)),
        is_stray,
        ", ".join(fault_reasons(facts)),
        record.span,
    )
    return job_error(failure, failed)


def hang_error(surroundings: Surroundings, ring: int, timeout_seconds: float) -> CompileError:
    """The error for a run that was stopped while the second core had not replied to a ring of the driver."""
    job = surroundings.run(surroundings.job(max(ring - _RINGS_BEFORE_JOBS, 0)))
    return job_error(Failure.HUNG, FailedJob(surroundings.device, job, number=timeout_seconds))


def _notes(
    surroundings: Surroundings, record: FailureRecord, facts: dict[str, int], function: str | None
) -> list[str]:
    """What is known besides of a failure."""
    match Failure(record.kind):
        case Failure.FAULTED:
            place = surroundings.place(facts["fault_mmfar"]) if has_stray_address(facts) else ""
            return fault_notes(facts, function, surroundings.second.stack_bytes, place)
        case Failure.REFUSED:
            return [f"its dispatcher returned {record.status}"]
        case Failure.UNREACHED:
            return [f"span {record.span} at {record.address:#010x}: {surroundings.where(record.address)}"]
        case Failure.NOT_LENT:
            return [f"span {record.span} at {record.address:#010x}: {surroundings.place(record.address)}"]
        case _:
            return []
