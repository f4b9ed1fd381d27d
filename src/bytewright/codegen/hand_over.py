"""The entry's part in work on other devices: taking them into use, jobs, and leaving them on every way out.

A run takes all devices into use, carries out its steps, of which some are jobs, and ends their use in reverse. What is
done by hand for each device and step is data: which memories it is lent, and what a job consists of.

A pool that the entry's device does not reach has no address here: spans name it by its number, and the offset in it.
"""

from collections.abc import Sequence

from bytewright import ir
from bytewright.codegen.dispatcher import access_text
from bytewright.codegen.expressions import c_num_bytes
from bytewright.codegen.writer import Writer
from bytewright.ir.walk import calls
from bytewright.record.buffers import PlannedPool
from bytewright.record.devices import DeviceKind, Lent, PlannedDevice
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def write_hand_over_helpers(writer: Writer, plan: Plan, names: Names) -> None:
    """The functions that know the hooks, one for each idea."""
    if _lends_addresses(plan):
        _write_lend(writer, plan, names)
    if plan.device_workspaces:
        _write_lend_in(writer, names)
    writer.comment("A device, and the memories that it may reach while it is in use.")
    members = (
        *(f"const {names.device_type} *device;", f"const {names.span_type} *memories;"),
        "uint32_t num_memories;",
    )
    writer.structure("device_use", members)
    _write_end(writer)
    _write_begin(writer, names)
    if any(device.kernels for device in plan.devices.values()):
        _write_hand_over(writer, names)


def _lends_addresses(plan: Plan) -> bool:
    """Whether any span has an address: a device that computes in memory of its own alone is lent none."""
    numbers = {pool.name for pool in plan.device_workspaces}
    spans = (plan.buffers[span.buffer] for step in plan.steps for span in step.spans)
    return not numbers or any(not (b.has_offset and b.place.name in numbers) for b in spans)


def _write_lend(writer: Writer, plan: Plan, names: Names) -> None:
    writer.comment("Memory for a device. What it may do is said beside the address, not by its type.")
    head = f"static {names.span_type} lend(const void *base, uint32_t size_bytes, uint32_t access)"
    with writer.block(head):
        place = ", 0u, 0u" if plan.device_workspaces else ""
        writer.line(f"const {names.span_type} span = {{(void *)(uintptr_t)base, size_bytes, access{place}}};")
        writer.line()
        writer.line("return span;")
    writer.line()


def _write_lend_in(writer: Writer, names: Names) -> None:
    writer.comment("Memory that devices have among themselves: it has no address here.")
    arguments = ["uint32_t memory", "uint32_t offset", "uint32_t size_bytes", "uint32_t access"]
    with writer.block_of(f"static {names.span_type} lend_in", arguments):
        writer.line(f"const {names.span_type} span = {{NULL, size_bytes, access, memory, offset}};")
        writer.line()
        writer.line("return span;")
    writer.line()


def _write_end(writer: Writer) -> None:
    writer.comment(
        "Ends the use of devices in reverse: closes the first so many, then deactivates the first so many."
    )
    with writer.block(
        "static void end_devices(const device_use *uses, uint32_t num_open, uint32_t num_active)"
    ):
        for count, hook in (("num_open", "close"), ("num_active", "deactivate")):
            with (
                writer.block(f"for (uint32_t left = {count}; left > 0u; --left)"),
                writer.block(f"if (uses[left - 1u].device->{hook} != NULL)"),
            ):
                writer.line(f"uses[left - 1u].device->{hook}(uses[left - 1u].device->self);")
    writer.line()


def _write_begin(writer: Writer, names: Names) -> None:
    writer.comment("Takes devices into use, all or none: activates each, then opens each.")
    with writer.block("static int32_t begin_devices(const device_use *uses, uint32_t num_devices)"):
        for line in ("uint32_t num_active = 0u;", "uint32_t num_open = 0u;", "bool is_fine = true;", ""):
            writer.line(line)
        for count, hook, arguments in (
            ("num_active", "activate", "device->self"),
            ("num_open", "open", "device->self, uses[num_open].memories, uses[num_open].num_memories"),
        ):
            with writer.block(f"while (is_fine && ({count} < num_devices))"):
                writer.line(f"const {names.device_type} *const device = uses[{count}].device;")
                writer.line()
                call = f"device->{hook}({arguments})"
                if hook == "open":
                    writer.line(f"is_fine = (device->{hook} == NULL) ||")
                    writer.line(f"    ({call} == 0);")
                else:
                    writer.line(f"is_fine = (device->{hook} == NULL) || ({call} == 0);")
                writer.line(f"{count} += is_fine ? 1u : 0u;")
        with writer.block("if (!is_fine)"):
            writer.line("end_devices(uses, num_open, num_active);")
            writer.line(f"return {names.error('DEVICE')};")
        writer.line(f"return {names.ok};")
    writer.line()


def _write_hand_over(writer: Writer, names: Names) -> None:
    writer.comment(
        "Hands a job over and waits until the device is done with it: nothing is in flight afterwards."
    )
    arguments = [
        *(f"const {names.device_type} *device", "const void *code", "uint32_t code_bytes"),
        *(f"const {names.span_type} *spans", "uint32_t num_spans"),
    ]
    with writer.block_of("static int32_t hand_over", arguments):
        writer.line(f"const {names.job_type} job = {{code, code_bytes, num_spans, spans}};")
        writer.line()
        writer.refuse("device->launch(device->self, &job) != 0", names.error("DEVICE"))
        writer.line(f"return (device->wait(device->self) == 0) ? {names.ok} : {names.error('DEVICE')};")
    writer.line()


def write_hook_checks(writer: Writer, plan: Plan, names: Names) -> None:
    """Refuses drivers that lack a hook that will be called."""
    for device in plan.devices.values():
        if device.kernels:
            member = f"devices->{device.c_name}"
            writer.refuse(f"({member}.launch == NULL) || ({member}.wait == NULL)", names.error("NULL"))


def write_run_on_devices(writer: Writer, plan: Plan, names: Names) -> None:
    """The end of the run function: the use of all devices, around the steps."""
    devices = tuple(plan.devices.values())
    writer.line()
    memories = {device.name: _memories(plan, names, device) for device in devices}
    for device in devices:
        if memories[device.name]:
            writer.comment(f"All that device '{device.name}' may reach during the run.")
            writer.array(f"const {names.span_type} {device.c_name}_memories", memories[device.name])
    uses: list[str] = []
    for device in devices:
        lent = memories[device.name]
        array = f"{device.c_name}_memories" if lent else "NULL"
        uses.append(f"{{&devices->{device.c_name}, {array}, {len(lent)}u}}")
    writer.array("const device_use uses", uses)
    writer.line(f"int32_t status = begin_devices(uses, {len(devices)}u);")
    writer.line()
    with writer.block(f"if (status == {names.ok})"):
        writer.line(f"status = {names.run_steps}({', '.join(plan.run_arguments)});")
        writer.line(f"end_devices(uses, {len(devices)}u, {len(devices)}u);")
    writer.line("return status;")


def _memories(plan: Plan, names: Names, device: PlannedDevice) -> list[str]:
    """What a device is lent for a run: parts of pools, then what the caller brings of inputs and outputs."""
    spans: list[str] = []
    for lent in plan.lent_to(device.name):
        pool = plan.pools[lent.pool]
        if pool.obtained_by is not None:
            spans.append(_lent_in(names, pool, lent))
            continue
        base = names.pool_address(pool)
        access = ir.Access.READ_WRITE if lent.is_written else ir.Access.READ
        address = f"{base} + {lent.offset}" if lent.offset else base
        spans.append(span_text(names, address, str(lent.size_bytes), access))
    for border in ir.SIDES:
        for tensor in plan.tensors_lent_to(device.name, border):
            num_bytes = c_num_bytes(tensor.extents, tensor.dtype, "uint32_t")
            access = ir.Access.READ if border is ir.Border.INPUT else ir.Access.READ_WRITE
            spans.append(span_text(names, names.member(border, tensor.c_name), num_bytes, access))
    return spans


def _lent_in(names: Names, pool: PlannedPool, lent: Lent) -> str:
    """What a device is lent of a pool that devices obtain; all of it, for the one that obtains it."""
    access = access_text(names, ir.Access.READ_WRITE)
    if lent.is_obtained:
        access = f"{access} | {names.span_obtain}"
    return f"lend_in({names.device_memory(pool)}, {lent.offset}u, {lent.size_bytes}u, {access})"


def device_span_text(names: Names, pool: PlannedPool, offset: str, num_bytes: str, access: ir.Access) -> str:
    """One span in a pool that devices obtain; `num_bytes` ends with a number."""
    return f"lend_in({names.device_memory(pool)}, {offset}, {num_bytes}u, {access_text(names, access)})"


def span_text(names: Names, address: str, num_bytes: str, access: ir.Access) -> str:
    """One span; `num_bytes` ends with a number."""
    return f"lend({address}, {num_bytes}u, {access_text(names, access)})"


def contexts_passed(module: ir.Module) -> tuple[str, ...]:
    """The devices whose contexts the entries pass to kernels."""
    arguments = (a for entry in module.entries for call in calls(entry) for a in call.arguments)
    return tuple(dict.fromkeys(a.device for a in arguments if isinstance(a, ir.ContextArgument)))


def write_device_types(writer: Writer, plan: Plan, names: Names, driven: Sequence[str]) -> None:
    """The types of the header: what a driver is, with the contract of each hook.

    Args:
        writer: Of the header.
        plan: What it is for.
        names: Of the plan.
        driven: The devices that functions of the application drive themselves.
    """
    if not plan.devices:
        return
    _write_span_type(writer, plan, names)
    writer.comment(
        "What a device is to do, in memory of the model that stays as it is until `wait` returns. The code of a device "
        "that runs C lies in the program's own memory, which the device need not reach: it is meant for the driver, to "
        "hand its bytes on. With a code of NULL the device copies the second span to the first, of equal size. Spans "
        "may share bytes: a kernel may write its result where it has read an input to the end."
    )
    members = (
        *("const void *code;", "uint32_t code_bytes;", "uint32_t num_spans;"),
        f"const {names.span_type} *spans;",
    )
    writer.structure(names.job_type, members)
    writer.comment(
        "A driver, which the application owns, with all that it keeps. Hooks return 0 or an error, any other value, "
        "which ends the run. For each run, in this order: activate, open, (launch, wait)..., close, deactivate, and "
        "each step for all devices before the next one. Whatever fails, nothing stays in flight, what was opened is "
        "closed, and what was activated is deactivated, in reverse order; what failed itself is not. All hooks but "
        "launch and wait may be NULL. Between launch and wait the device touches the spans of the job, and reads its "
        "code; at any other time it touches no memory of the model. `open` names the memory that spans of this run "
        "will lie in: a driver may map or protect it, but nothing is to be read there yet."
    )
    hooks = (
        "void *self; /* the driver's own: the first argument of each hook */",
        "int32_t (*activate)(void *self); /* power, clocks, a lock */",
        f"int32_t (*open)(void *self, const {names.span_type} *memories, uint32_t num_memories);",
        f"int32_t (*launch)(void *self, const {names.job_type} *job); /* 0: accepted, and running until wait */",
        "int32_t (*wait)(void *self); /* for the oldest launch; then it is done, whatever is returned */",
        "void (*close)(void *self); /* what open lent is given back */",
        "void (*deactivate)(void *self);",
    )
    writer.structure(names.device_type, hooks)
    for name in driven:
        writer.comment(f"What the driver of device '{name}' keeps, for functions that drive it themselves.")
        writer.structure(names.device_context_type(name), ("void *self;",))
    writer.comment("The devices of the application, one for each that the model uses.")
    members = [f"{names.device_type} {d.c_name}; /* {_described(names, d)} */" for d in plan.devices.values()]
    writer.structure(names.devices_type, members)


def _write_span_type(writer: Writer, plan: Plan, names: Names) -> None:
    pools = plan.device_workspaces
    accesses = [f"{names.span_read} = 1", f"{names.span_write} = 2"]
    if pools:
        accesses.append(f"{names.span_obtain} = 4 /* of a memory of `open`: see below */")
    writer.comment("What a device may do with a memory.")
    writer.enumeration(accesses)
    writer.line()
    if pools:
        _write_device_memories(writer, pools, plan, names)
    writer.comment(
        "Some memory that a device may touch, and how: a sum of the values above. The address is that of the "
        "processor that runs the model; a driver translates it to what its device sees. Of memory that may be written, "
        "a job may write a part; what it does not write keeps its value."
        + (
            " Where `memory` is not 0, the bytes are in that memory, from `offset` on, and `base` is NULL."
            if pools
            else ""
        )
    )
    of_devices = ("uint32_t memory;", "uint32_t offset;") if pools else ()
    members = ("void *base;", "uint32_t size_bytes;", "uint32_t access;", *of_devices)
    writer.structure(names.span_type, members)


def _write_device_memories(writer: Writer, pools: tuple[PlannedPool, ...], plan: Plan, names: Names) -> None:
    sizes = ", ".join(f"{names.size(pool)} and {names.alignment(pool)}" for pool in pools)
    writer.comment(
        f"Memories that '{plan.device.name}', which runs the model, does not reach: drivers have them, at whatever "
        "address their devices see. Each holds as many bytes, aligned so, as is said above: "
        f"{sizes}. The device whose `open` is given one with {names.span_obtain} obtains it there, all of its bytes, "
        "and releases it in `close`; those that are opened later and closed before may be given parts of it. What it "
        "holds is kept from `open` to `close`; at first that is anything. Without an `open` the memory is simply there."
    )
    writer.enumeration(
        [
            f"{names.device_memory(pool)} = {number} /* pool '{pool.name}', in memory '{pool.memory}' */"
            for number, pool in enumerate(pools, start=1)
        ]
    )
    writer.line()


def _described(names: Names, device: PlannedDevice) -> str:
    what = {
        DeviceKind.C: f"runs kernels: {names.execute(device)}",
        DeviceKind.STREAM: "runs command streams",
        DeviceKind.COPY: "copies",
        DeviceKind.CONTEXT: "driven by functions of the application: launch and wait may be NULL",
    }
    return f"'{device.name}', {device.isa}, {what[device.kind]}"
