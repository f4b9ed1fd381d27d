"""How a job failed, by the protocol of jobs (harness/jobs.h), and what it is called: its number, and its step.

The step is known as far as it follows from the number.
"""

import ctypes
from enum import IntEnum
from pathlib import Path

from bytewright.record.devices import PlannedDevice
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan

REASON_BYTES = 512


class Failure(IntEnum):
    """`enum job_failure_kind`."""

    FINE = 0
    NOT_STARTED = 1
    UNREACHED = 2
    NOT_LENT = 3
    TOO_MANY_SPANS = 4
    TOO_MANY_REGIONS = 5
    FAULTED = 6
    STRAYED = 7
    REFUSED = 8
    HUNG = 9
    ENDED = 10
    OUT_OF_TURN = 11


class FailureRecord(ctypes.Structure):
    """`job_failure`, in the byte order of all machines here; its padding too is the same on all."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("job", ctypes.c_uint32),
        ("status", ctypes.c_int32),
        ("span", ctypes.c_uint32),
        ("has_code", ctypes.c_uint32),
        ("code_word", ctypes.c_uint32),
        ("is_write", ctypes.c_uint32),
        ("is_raw", ctypes.c_uint32),
        ("address", ctypes.c_uint64),
        ("region", ctypes.c_uint32),
        ("offset", ctypes.c_int64),
        ("device", ctypes.c_uint32),
        ("memory", ctypes.c_uint32),
        ("reason", ctypes.c_char * REASON_BYTES),
    )


def read_failure(folder: Path) -> FailureRecord | None:
    """What a program wrote of the device that ended its last run, if one did."""
    path = folder / "device_failure.bin"
    record = FailureRecord.from_buffer_copy(path.read_bytes()) if path.is_file() else None
    return record if record is not None and record.kind else None


def described_job(plan: Plan, device: PlannedDevice, number: int, kernel: int | None) -> str:
    """`job 3 (kernel 'kws_depthwise_conv2d_2', step 5)`, or what is done before the first.

    Args:
        plan: The plan.
        device: Whose job it is.
        number: The first of a run is 1; 0 is before that.
        kernel: The number of the kernel, where it is known.
    """
    if not number:
        return "what it is lent"
    name = {each.number: each.name for each in device.kernels}.get(-1 if kernel is None else kernel)
    step = step_of_job(plan, device, number)
    if step is not None and name in (None, step.kernel):
        return f"job {number} (kernel '{step.kernel}', step {step.index})"
    return f"job {number}" + (f" (kernel '{name}')" if name else "")


def step_of_job(plan: Plan, device: PlannedDevice, number: int) -> PlannedStep | None:
    """The step of a job; what comes again, may be left out, or is of one of several entries, has none of its number."""
    steps = [step for step in plan.steps if step.device == device.name]
    is_open = bool(plan.loops or plan.branches or plan.stated_entries)
    return steps[number - 1] if not is_open and 0 < number <= len(steps) else None
