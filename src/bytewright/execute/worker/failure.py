"""What went wrong in a device's process, in words: device, job with kernel and step, and what lies at an address.

The driver (`host_devices.c`) reports numbers, which are understood here.
"""

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from bytewright import ir
from bytewright.diagnostics import CompileError, Diagnostic, InternalError
from bytewright.execute.description import Bundle
from bytewright.execute.jobs import Failure, FailureRecord, described_job, step_of_job
from bytewright.execute.tools import CrashError, ending_of
from bytewright.record.plan import DeviceKind, Lent, Plan, PlannedBuffer, PlannedDevice, PlannedStep

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
    job = f"{described_job(plan, device, facts.job, kernel)} of model '{plan.model}' on the host"
    who = f"device '{device.name}'"
    match facts.failure:
        case Failure.FAULTED if facts.status in (0, signal.SIGSEGV, signal.SIGBUS):
            return CrashError(_stray(plan, device, facts, f"{who} touched what it was not lent in {job}"))
        case Failure.STRAYED:
            return CrashError(_stray(plan, device, facts, f"{who} touched what it was not lent in {job}"))
        case Failure.FAULTED:
            name = signal.Signals(facts.status).name
            note = f"at address {facts.address:#x}"
            return CrashError(Diagnostic("BW731", f"{who} faulted in {job}: {name}", (note,)))
        case Failure.REFUSED:
            status = f"what it runs jobs with returned {bundle.status_name(facts.status)}"
            if device.kind is DeviceKind.STREAM:
                status = f"the model of '{device.isa}' cannot carry out the stream"
            notes = (status, *facts.reason.splitlines())
            return CompileError(Diagnostic("BW731", f"{who} refused {job}", notes))
        case Failure.ENDED:
            ending = f"its process ended with {ending_of(facts.status)}"
            return CrashError(Diagnostic("BW731", f"{who} failed in {job}", (ending,)))
        case Failure.NOT_STARTED:
            note = f"the system's error {facts.status}"
            return CompileError(
                Diagnostic("BW731", f"{who} could not be begun for model '{plan.model}'", (note,))
            )
        case Failure.OUT_OF_TURN:
            return CompileError(Diagnostic("BW731", f"{who} was given {job} out of turn"))
        case Failure.NOT_LENT:
            at = f"{facts.address:#x}{_named_place(facts)}"
            if facts.memory:
                at = f"byte {facts.address} of pool '{plan.device_workspaces[facts.memory - 1].name}'"
            note = f"span {facts.span} at {at}"
            message = f"{who} was not lent what it needs for {job}: it was not opened, or not for that"
            return CompileError(Diagnostic("BW732", message, (note,)))
        case Failure.HUNG:
            return CompileError(
                Diagnostic("BW733", f"{who} did not finish {job} within {facts.timeout_seconds:g} s")
            )
        case _:
            raise InternalError(f"the host's driver does not know failure {facts.failure.name}")


def _stray(plan: Plan, device: PlannedDevice, facts: DeviceFacts, message: str) -> Diagnostic:
    what = "it wrote" if facts.is_write else "it read or wrote"
    if facts.region is None:
        place = _named_place(facts) or ": nothing that the model has told it of"
        return Diagnostic("BW730", message, (f"{what} address {facts.address:#x}{place}",))
    lent = [*plan.lent_to(device.name)]
    place = _place(plan, device, lent, facts)
    if facts.is_raw:
        note = f"{what} address {facts.address:#x}, by which device '{plan.device.name}' knows {place}"
        return Diagnostic(
            "BW730", message, (note, f"device '{device.name}' has that memory at another address")
        )
    return Diagnostic("BW730", message, (f"{what} {place}",))


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
