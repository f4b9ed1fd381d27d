"""What went wrong in a device's process, in words: device, job with kernel and step, and what lies at an address.

The driver (`host_devices.c`) reports numbers, which are understood here.
"""

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from bytewright import ir
from bytewright.diagnostics import CompileError
from bytewright.execute.description import Bundle
from bytewright.execute.job_error import FailedJob, job_error
from bytewright.execute.jobs import Failure, FailureRecord, described_job, step_of_job
from bytewright.execute.tools import ending_of
from bytewright.record.buffers import PlannedBuffer
from bytewright.record.devices import DeviceKind, Lent, PlannedDevice
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan

_NO_REGION = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What is known of a failure.

    Attributes:
        job: The first of a run is 1; 0 is before that.
        status: A signal, an exit status, or what the bundle's function returned.
        span: Of the job, the one that is not lent.
        kernel: The number of the kernel, of a device that runs C.
        is_raw: The address is what the model's own processor calls the place.
        region: Among the memories that were opened; None if the address is in none of them.
        offset: From the first byte of that.
        device: Its place among the devices.
        memory: The number of the devices' memory in which `address` is an offset; 0 for an address.
        reason: Of a refusal, where one is known.
        places: What lies where in the process of the model: a name, the address, the bytes.
    """

    failure: Failure
    job: int
    status: int
    span: int
    kernel: int | None
    is_write: bool
    is_raw: bool
    address: int
    region: int | None
    offset: int
    device: int
    memory: int
    reason: str
    timeout_seconds: float
    places: Sequence[tuple[str, int, int]]

    @staticmethod
    def of(
        record: FailureRecord, timeout_seconds: float, places: Sequence[tuple[str, int, int]]
    ) -> "DeviceFacts":
        """From what the driver keeps."""
        return DeviceFacts(
            Failure(record.kind),
            record.job,
            record.status,
            record.span,
            record.code_word if record.has_code else None,
            bool(record.is_write),
            bool(record.is_raw),
            record.address,
            None if record.region == _NO_REGION else record.region,
            record.offset,
            record.device,
            record.memory,
            record.reason.decode("utf-8", "replace"),
            timeout_seconds,
            places,
        )


def device_error(bundle: Bundle, facts: DeviceFacts) -> CompileError:
    """The error for a run that ended because of a device."""
    plan = bundle.plan
    device = tuple(plan.devices.values())[facts.device]
    kernel = facts.kernel if device.kind is DeviceKind.C else None
    is_signal_of_memory = facts.status in (0, signal.SIGSEGV, signal.SIGBUS)
    failed = FailedJob(
        device.name,
        f"{described_job(plan, device, facts.job, kernel)} of model '{plan.model}' on the host",
        tuple(_notes(bundle, device, facts, is_stray=is_signal_of_memory)),
        facts.failure is Failure.STRAYED or is_signal_of_memory,
        ""
        if is_signal_of_memory or facts.failure is not Failure.FAULTED
        else signal.Signals(facts.status).name,
        facts.timeout_seconds if facts.failure is Failure.HUNG else facts.span,
    )
    return job_error(facts.failure, failed)


def _notes(bundle: Bundle, device: PlannedDevice, facts: DeviceFacts, *, is_stray: bool) -> Sequence[str]:
    """What is known besides of a failure."""
    plan = bundle.plan
    match facts.failure:
        case Failure.FAULTED if not is_stray:
            return (f"at address {facts.address:#x}",)
        case Failure.FAULTED | Failure.STRAYED:
            return _stray(plan, device, facts)
        case Failure.REFUSED if device.kind is DeviceKind.STREAM:
            return (
                f"the model of '{device.isa}' cannot carry out the stream",
                *facts.reason.splitlines(),
            )
        case Failure.REFUSED:
            status = bundle.status_name(facts.status)
            return (f"what it runs jobs with returned {status}", *facts.reason.splitlines())
        case Failure.ENDED:
            return (f"its process ended with {ending_of(facts.status)}",)
        case Failure.NOT_STARTED:
            return (f"the system's error {facts.status}",)
        case Failure.NOT_LENT if facts.memory:
            pool = plan.device_workspaces[facts.memory - 1]
            return (f"span {facts.span} at byte {facts.address} of pool '{pool.name}'",)
        case Failure.NOT_LENT:
            return (f"span {facts.span} at {facts.address:#x}{_named_place(facts)}",)
        case _:
            return ()


def _stray(plan: Plan, device: PlannedDevice, facts: DeviceFacts) -> Sequence[str]:
    what = "it wrote" if facts.is_write else "it read or wrote"
    if facts.region is None:
        place = _named_place(facts) or ": nothing that the model has told it of"
        return (f"{what} address {facts.address:#x}{place}",)
    place = _place(plan, device, [*plan.lent_to(device.name)], facts)
    if not facts.is_raw:
        return (f"{what} {place}",)
    return (
        f"{what} address {facts.address:#x}, by which device '{plan.device.name}' knows {place}",
        f"device '{device.name}' has that memory at another address",
    )


def _place(plan: Plan, device: PlannedDevice, lent: list[Lent], facts: DeviceFacts) -> str:
    """`byte 12 of 'taps' in pool 'flash', which it may only read`."""
    region, offset = facts.region or 0, facts.offset
    if region >= len(lent):
        tensors = [t for border in ir.SIDES for t in plan.tensors_lent_to(device.name, border)]
        tensor = tensors[region - len(lent)]
        return _beside(f"'{tensor.name}'", offset, tensor.size_bytes) or f"byte {offset} of '{tensor.name}'"
    part = lent[region]
    where = f"what it is lent of pool '{part.pool}' (bytes {part.offset} to {part.offset + part.size_bytes})"
    outside = _beside(where, offset, part.size_bytes)
    if outside:
        return outside
    at = part.offset + offset
    step = step_of_job(plan, device, facts.job)
    buffers = [
        f"byte {at - (b.place.offset or 0)} of '{b.name}'"
        for b in plan.buffers_in(part.pool)
        if 0 <= at - (b.place.offset or 0) < b.size_bytes and _lives(b, step)
    ]
    rights = "of which it was given other bytes" if part.is_written else "which it may only read"
    return f"{' or '.join(buffers) or f'byte {at}'} in pool '{part.pool}', {rights}"


def _lives(buffer: PlannedBuffer, step: PlannedStep | None) -> bool:
    """Whether a buffer is alive in a step, as far as is known."""
    if step is None or buffer.live is None:
        return True
    return buffer.live[0] < step.ticks[1] and step.ticks[0] < buffer.live[1]


def _beside(where: str, offset: int, size_bytes: int) -> str:
    """Where an offset is outside; nothing if it is inside."""
    if offset < 0:
        return f"{-offset} B before the first byte of {where}"
    if offset >= size_bytes:
        return f"{offset - size_bytes + 1} B behind the last byte of {where}"
    return ""


def _named_place(facts: DeviceFacts) -> str:
    """`, byte 12 of workspace 'near'`: what the model's own process has at the address."""
    for name, address, size_bytes in facts.places:
        if address <= facts.address < address + size_bytes:
            return f", which is byte {facts.address - address} of {name} in the process of the model"
    return ""
