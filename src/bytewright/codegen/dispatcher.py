"""`<model>_<device>.h` and `<model>_<device>_kernels.c`: the kernels of a device that runs C, behind one function.

The kernels are known to no other file. A driver hands the bytes of a job to the function on the device that they are
for, where it looks at all that it is given before a kernel touches any of it.
"""

from bytewright import ir
from bytewright.codegen.expressions import C_TYPES, c_num_bytes, memory_type
from bytewright.codegen.kernels import ABOUT_KERNELS, write_kernels
from bytewright.codegen.writer import Writer
from bytewright.ir.analyses.hand_over import handed_to
from bytewright.ir.externals import externals
from bytewright.ir.symbols import symbols_of
from bytewright.record.devices import PlannedDevice
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def num_scalars(kernel: ir.PrimFunc) -> int:
    """How many numbers a kernel is given."""
    return sum(isinstance(parameter, ir.ScalarParameter) for parameter in kernel.parameters)


def device_header(plan: Plan, names: Names, device: PlannedDevice) -> str:
    """What a driver, and the code on the device, include."""
    writer = Writer()
    writer.title(
        f"Kernels of model '{plan.model}' for device '{device.name}' ({device.isa}), for its driver."
    )
    own = [names.included(names.header)]
    with writer.guarded(names.guard(names.device_header(device)), ["stdint.h"], own, is_for_cpp=True):
        writer.comment("The code of a job for this device: which kernel, and the numbers that it is given.")
        handed = (step for step in plan.steps if step.device == device.name)
        most = max((len(step.scalars) for step in handed), default=0)
        scalars = (f"int32_t scalars[{most}];",) if most else ()
        writer.structure(names.call_type(device), ("uint32_t kernel;", *scalars))
        writer.prototype(
            f"Runs a job on device '{device.name}', by which it is called: `code` is {names.call_type(device)}, and "
            "`spans` are those of the job, with the addresses that this device sees. A job of the copying kind has a "
            "code of NULL.\n"
            "It looks at the number, the sizes, the alignment and the access of all spans before a kernel touches any, "
            "but not at whose memory they are.\n"
            f"Returns {names.ok}, or the error NULL, SIZE, ALIGN, EXTENT, EXTERNAL, or DEVICE for a kernel that is not "
            "there and for memory that may not be accessed so. Then nothing was touched, unless it is EXTERNAL.",
            f"int32_t {names.execute(device)}({', '.join(_execute_parameters(names))})",
        )
    return writer.text()


def _execute_parameters(names: Names) -> list[str]:
    spans = (f"const {names.span_type} *spans", "uint32_t num_spans")
    return ["const void *code", "uint32_t code_bytes", *spans]


def device_source(module: ir.Module, names: Names, device: PlannedDevice) -> str:
    """The kernels, and the function that runs them."""
    writer = Writer()
    writer.title(f"Kernels of model '{module.name}' for device '{device.name}'. {ABOUT_KERNELS}")
    writer.line(f'#include "{names.included(names.device_header(device))}"')
    if any(function.device == device.name for function in externals(module)):
        writer.line(f'#include "{names.included(names.externals_header)}"')
    write_kernels(writer, module, names, device.name, ("string.h",), "static ")
    writer.line()
    kernels = handed_to(module, device.name)
    if any(kernel.job is None for kernel in kernels):
        _write_check(writer, names)
    if any(kernel.job is ir.Job.COPY for kernel in kernels):
        _write_copy(writer, names)
    _write_execute(writer, module, names, device)
    return writer.text()


def _write_check(writer: Writer, names: Names) -> None:
    writer.comment("What a kernel needs of a memory that it is given.")
    writer.structure("needed_span", ("uint32_t size_bytes;", "uint32_t alignment;", "uint32_t access;"))
    writer.comment("Whether the spans of a job are those that its kernel needs.")
    arguments = [
        f"const {names.span_type} *spans",
        *("uint32_t num_spans", "const needed_span *needed", "uint32_t num_needed"),
    ]
    with writer.block_of("static int32_t check_spans", arguments):
        writer.refuse("num_spans != num_needed", names.error("SIZE"))
        with writer.block("for (uint32_t index = 0u; index < num_needed; ++index)"):
            span, needed = "spans[index]", "needed[index]"
            writer.refuse(f"{span}.base == NULL", names.error("NULL"))
            writer.refuse(f"{span}.size_bytes < {needed}.size_bytes", names.error("SIZE"))
            misaligned = f"((uintptr_t){span}.base % (uintptr_t){needed}.alignment) != 0u"
            writer.refuse(misaligned, names.error("ALIGN"))
            writer.refuse(f"({span}.access & {needed}.access) != {needed}.access", names.error("DEVICE"))
        writer.line(f"return {names.ok};")
    writer.line()


def _write_copy(writer: Writer, names: Names) -> None:
    writer.comment("Copies the second span to the first.")
    with writer.block(f"static int32_t copy(const {names.span_type} *spans, uint32_t num_spans)"):
        writer.refuse("num_spans != 2u", names.error("SIZE"))
        writer.refuse("(spans[0].base == NULL) || (spans[1].base == NULL)", names.error("NULL"))
        writer.refuse("spans[0].size_bytes != spans[1].size_bytes", names.error("SIZE"))
        allowed = f"(spans[0].access & {names.span_write}) == 0u"
        writer.refuse(f"({allowed}) || ((spans[1].access & {names.span_read}) == 0u)", names.error("DEVICE"))
        writer.line("(void)memcpy(spans[0].base, spans[1].base, spans[1].size_bytes);")
        writer.line(f"return {names.ok};")
    writer.line()


def _write_execute(writer: Writer, module: ir.Module, names: Names, device: PlannedDevice) -> None:
    kernels = list(enumerate(handed_to(module, device.name)))
    compiled = [(number, kernel) for number, kernel in kernels if kernel.job is None]
    with writer.block_of(f"int32_t {names.execute(device)}", _execute_parameters(names)):
        if not compiled:
            writer.refuse("(code != NULL) || (code_bytes != 0u)", names.error("DEVICE"))
            writer.line(f"return (spans == NULL) ? {names.error('NULL')} : copy(spans, num_spans);")
            writer.line("}")
            return
        writer.line(f"{names.call_type(device)} call;")
        writer.line("int32_t status;")
        writer.line()
        writer.refuse("spans == NULL", names.error("NULL"))
        copies = len(compiled) < len(kernels)
        writer.refuse("code == NULL", "copy(spans, num_spans)" if copies else names.error("NULL"))
        writer.refuse("code_bytes != sizeof call", names.error("SIZE"))
        writer.line("(void)memcpy(&call, code, sizeof call);")
        with writer.block("switch (call.kernel)"):
            for number, kernel in compiled:
                with writer.block(f"case {number}u:"):
                    _write_case(writer, names, kernel)
                    writer.line("break;")
            writer.line("default:")
            with writer.indented():
                writer.line(f"status = {names.error('DEVICE')};")
                writer.line("break;")
        writer.line("return status;")


def _write_case(writer: Writer, names: Names, kernel: ir.PrimFunc) -> None:
    """What is looked at for one kernel, and its call."""
    values = _values(kernel)
    for name, symbol in symbols_of(kernel).items():
        value = values[name]
        writer.refuse(f"({value} < {symbol.lower}) || ({value} > {symbol.upper})", names.error("EXTENT"))
    needed = [_needed(names, parameter, values) for parameter in kernel.buffer_parameters]
    is_constant = all(ir.has_constant_size(parameter.buffer) for parameter in kernel.buffer_parameters)
    writer.array(f"{'static ' if is_constant else ''}const needed_span needed", needed)
    writer.line(f"status = check_spans(spans, num_spans, needed, {len(needed)}u);")
    with writer.block(f"if (status == {names.ok})"):
        arguments = _arguments(kernel, values)
        if kernel.external is not None and kernel.external.returns_status:
            outcome = f" == 0 ? {names.ok} : {names.error('EXTERNAL')};"
            writer.listed(f"status = {kernel.symbol}", arguments, outcome)
        else:
            writer.listed(kernel.symbol, arguments, ";")


def _values(kernel: ir.PrimFunc) -> dict[str, str]:
    """The C text of each scalar that a kernel is given, by name."""
    scalars = [p for p in kernel.parameters if isinstance(p, ir.ScalarParameter)]
    values: dict[str, str] = {}
    for index, parameter in enumerate(scalars):
        value, dtype = f"call.scalars[{index}]", parameter.variable.dtype
        if dtype is ir.DType.BOOL:
            value = f"({value} != 0)"
        elif dtype is not ir.DType.I32:
            value = f"({C_TYPES[dtype]}){value}"
        values[parameter.name] = value
    return values


def _needed(names: Names, parameter: ir.BufferParameter, values: dict[str, str]) -> str:
    buffer = parameter.buffer
    extents = (ir.extent_text(extent, values.__getitem__) for extent in ir.storage_shape(buffer))
    num_bytes = c_num_bytes(extents, buffer.dtype, "uint32_t")
    return f"{{{num_bytes}u, {buffer.alignment}u, {access_text(names, parameter.access)}}}"


def access_text(names: Names, access: ir.Access) -> str:
    """What a device may do with a memory, as C text."""
    texts = {
        ir.Access.READ: names.span_read,
        ir.Access.WRITE: names.span_write,
        ir.Access.READ_WRITE: f"{names.span_read} | {names.span_write}",
    }
    return texts[access]


def _arguments(kernel: ir.PrimFunc, values: dict[str, str]) -> list[str]:
    arguments: list[str] = []
    num_buffers = 0
    for parameter in kernel.parameters:
        if isinstance(parameter, ir.BufferParameter):
            constness = "const " if parameter.access is ir.Access.READ else ""
            pointer = f"{constness}{memory_type(parameter.buffer.dtype)} *"
            arguments.append(f"({pointer})spans[{num_buffers}].base")
            num_buffers += 1
        elif isinstance(parameter, ir.ScalarParameter):
            arguments.append(values[parameter.name])
    return arguments
