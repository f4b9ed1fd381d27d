"""`glue/<model>_ethos_u.h` and `.c`: a driver of Ethos-U devices by Arm's core driver, release 1.0.

They are no part of the model's library, as they need the core driver's header. Which port the core driver must use for
each base pointer follows from where the plan has what the streams are given.
"""

from bytewright.codegen.writer import Writer
from bytewright.record.base_pointers import CALLER, STREAM, base_pointers
from bytewright.record.devices import DeviceKind, PlannedDevice
from bytewright.record.names import Names
from bytewright.record.plan import Plan
from bytewright.target.isa.find import require_isa

_SETTINGS = {"axi0": "0 or 1", "axi1": "2 or 3"}
_SOURCE = """
enum { MOST_BASES = sizeof(((@state@ *)0)->bases) / sizeof(uint64_t) };

static int32_t reserve(void *self) {
    @state@ *const state = (@state@ *)self;

    state->reserved = ethosu_reserve_driver();
    return (state->reserved == NULL) ? -1 : 0;
}

/* The core driver keeps the arrays until the job is done, so they are in the state. */
static int32_t launch(void *self, const @job@ *job) {
    @state@ *const state = (@state@ *)self;

    if ((job->code == NULL) || (job->code_bytes > (uint32_t)INT32_MAX) || (job->num_spans > (uint32_t)MOST_BASES)) {
        return -1;
    }
    for (uint32_t index = 0u; index < job->num_spans; ++index) {
        state->bases[index] = @base@;
        state->sizes[index] = job->spans[index].size_bytes;
    }
    return (ethosu_invoke_async(state->reserved, job->code, (int)job->code_bytes, state->bases, state->sizes,
        (int)job->num_spans, NULL) == 0) ? 0 : -1;
}

static int32_t await_job(void *self) {
    @state@ *const state = (@state@ *)self;

    return (ethosu_wait(state->reserved, true) == 0) ? 0 : -1;
}

static void release(void *self) {
    @state@ *const state = (@state@ *)self;

    ethosu_release_driver(state->reserved);
    state->reserved = NULL;
}

@device@ @function@(@state@ *state) {
    const @device@ device = {state, reserve, NULL, launch, await_job, NULL, release};

    return device;
}
"""


def ethos_u_devices(plan: Plan) -> tuple[PlannedDevice, ...]:
    """The devices that the core driver drives."""
    devices = plan.devices.values()
    return tuple(d for d in devices if d.kind is DeviceKind.STREAM and require_isa(d.isa).accelerator)


def glue_header(plan: Plan, names: Names) -> str:
    """What the application includes, with how the core driver must be built."""
    writer = Writer()
    writer.title(f"A driver of the Ethos-U of model '{plan.model}', by Arm's core driver 1.0.")
    own = [names.included(names.header)]
    with writer.guarded(names.ethos_u_guard, ["stddef.h", "stdint.h"], own, is_for_cpp=True):
        for device in ethos_u_devices(plan):
            writer.comment("\n".join(_configuration(plan, device)))
        writer.line("struct ethosu_driver;")
        writer.line()
        writer.comment("What the driver keeps: one for each device. The application owns it.")
        members = ["struct ethosu_driver *reserved;", "uint64_t bases[8];", "size_t sizes[8];"]
        if pools := plan.device_workspaces:
            what = "where the memory of each number is, the first at 0: the application says so before a run"
            members.append(f"uint64_t memories[{len(pools)}]; /* {what} */")
        writer.structure(names.ethos_u_state, members)
        writer.prototype(
            "The hooks, for the member of the device: a run reserves an NPU of the core driver when it begins, and "
            "releases it when it ends. Jobs are streams alone: one that copies is refused.",
            f"{names.device_type} {names.ethos_u_function}({names.ethos_u_state} *state)",
        )
    return writer.text()


def glue_source(plan: Plan, names: Names) -> str:
    """The hooks."""
    writer = Writer()
    writer.title(f"A driver of the Ethos-U of model '{plan.model}', by Arm's core driver 1.0.")
    writer.line(f'#include "{names.included(names.ethos_u_header)}"')
    writer.line()
    writer.line("#include <stdbool.h>")
    writer.line()
    writer.line("#include <ethosu_driver.h>")
    base = "(uint64_t)(uintptr_t)job->spans[index].base"
    if plan.device_workspaces:
        there = "(state->memories[job->spans[index].memory - 1u] + job->spans[index].offset)"
        base = f"(job->spans[index].memory == 0u) ? {base} :\n            {there}"
    text = _SOURCE.replace("@state@", names.ethos_u_state).replace("@function@", names.ethos_u_function)
    text = text.replace("@base@", base)
    writer.lines(text.replace("@job@", names.job_type).replace("@device@", names.device_type))
    return writer.text()


def _configuration(plan: Plan, device: PlannedDevice) -> list[str]:
    """Which port each base pointer needs."""
    lines = [f"Device '{device.name}' ({device.isa}) needs of the core driver's configuration:"]
    for number, given in base_pointers(plan, device).items():
        macro = "NPU_QCONFIG" if number == STREAM else f"NPU_REGIONCFG_{number}"
        port = next((each.port for each in given if each.port is not None), None)
        setting = "any port" if port is None else f"{_SETTINGS.get(port, 'its number')} (port {port})"
        memories = {CALLER if each.memory is None else f"'{each.memory}'" for each in given}
        lines.append(f"- {macro}: {setting}, for {', '.join(sorted(memories))}")
    if any(not reach.is_coherent for reach in plan.hardware.device(device.name).reach):
        lines.append(
            "Its ethosu_flush_dcache and ethosu_invalidate_dcache must be those of the processor's cache."
        )
    if any(reach.base is not None for reach in plan.hardware.device(device.name).reach):
        lines.append("Its ethosu_address_remap must make what the NPU sees of the processor's addresses.")
    return lines
