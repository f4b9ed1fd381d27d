"""The C of a self-test: stored inputs, checksums of what must come out, and the function that compares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bytewright import ir
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.forms import form_of
from bytewright.codegen.writer import Writer
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import BOUND, Names, by_entry
from bytewright.record.plan import Plan
from bytewright.target.model import Role

_BASIS, _PRIME = 2166136261, 16777619
_BYTES_IN_A_LINE = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """One run, of several entries one of each in their order.

    Attributes:
        extents: What it is given of those that are open.
        inputs: Their bytes, in the model's order.
        checksums: Of the outputs.
        sizes: Their bytes.
        is_refused: Whether its inputs ask for more than there is room for, which the run is to say.
    """

    extents: Mapping[str, int]
    inputs: Sequence[bytes]
    checksums: Sequence[int]
    sizes: Sequence[int]
    is_refused: bool


def checksum(data: bytes) -> int:
    """FNV-1a of 32 bits, as the C computes it."""
    value = _BASIS
    for byte in data:
        value = (value ^ byte) * _PRIME & 0xFFFFFFFF
    return value


def self_test_header(plan: Plan, names: Names, num_samples: int) -> str:
    """The text of the header."""
    writer, guard = Writer(), names.guard(names.self_test_header)
    writer.title(f"A self-test of model '{plan.model}'.")
    writer.lines(f"#ifndef {guard}\n#define {guard}")
    writer.lines(f'#include "{names.included(names.header)}"')
    writer.lines('\n#ifdef __cplusplus\nextern "C" {\n#endif\n')
    lends = "" if plan.io_in_workspace else ", in outputs of the application"
    each = " of each entry, one after another," if plan.stated_entries else ""
    writer.comment(
        f"Compares the parameters with their checksum, runs {num_samples} stored inputs{each} with a context that is "
        f"set up{lends}, and compares what comes out. Returns OK; the error HASH for the parameters; the error of a "
        "run; or the number of the first run, from 1, whose outputs are not what this C gave where it was generated."
    )
    writer.line(f"{_head(plan, names)};")
    writer.lines("\n#ifdef __cplusplus\n}\n#endif\n\n#endif")
    return writer.text()


def self_test_source(
    plan: Plan, names: Names, samples: Sequence[Sample], contents: Mapping[str, bytes]
) -> str:
    """The text of the C file; `contents` are the bytes of the parameter pools, by name."""
    writer = Writer()
    writer.title(f"A self-test of model '{plan.model}'.")
    writer.lines(f'#include "{names.included(names.self_test_header)}"\n')
    if plan.io_in_workspace:
        writer.lines("#include <string.h>\n")
    alignment = max(plan.caller_alignment, 8)
    for tensor, arrays in zip(plan.inputs, zip(*(s.inputs for s in samples), strict=True), strict=True):
        head = f"static const uint8_t stored_{tensor.c_name}[{len(samples)}][{tensor.size_bytes}]"
        with writer.block(f"{names.aligned}({alignment}) {head} =", "};"):
            for data in arrays:
                _write_bytes(writer, data)
        writer.line()
    if plan.symbols:
        _write_table(
            writer, "int32_t", "extents", [[str(n) for n in sample.extents.values()] for sample in samples]
        )
    if plan.outputs:
        checksums = [[f"0x{value:08X}u" for value in sample.checksums] for sample in samples]
        _write_table(writer, "uint32_t", "expected", checksums)
    if plan.outputs and _varies(plan):
        sizes = [[f"{size}u" for size in sample.sizes] for sample in samples]
        _write_table(writer, "uint32_t", "expected_bytes", sizes)
    if plan.checked_sizes:
        expected = [[names.error(BOUND) if sample.is_refused else names.ok] for sample in samples]
        _write_table(writer, "int32_t", "expected_status", expected)
    function = Writer()
    _write_function(function, plan, names, len(samples), contents)
    if "checksum(" in function.text():
        _write_checksum(writer)
    writer.lines(function.text())
    return writer.text()


def _varies(plan: Plan) -> bool:
    """Whether outputs are not as large in each run."""
    return bool(plan.symbols or plan.sizes)


def _write_table(writer: Writer, element: str, name: str, rows: Sequence[Sequence[str]]) -> None:
    """A row for each sample."""
    with writer.block(f"static const {element} {name}[{len(rows)}][{len(rows[0])}] =", "};"):
        writer.lines(",\n".join(f"{{{', '.join(row)}}}" for row in rows))
    writer.line()


def _write_checksum(writer: Writer) -> None:
    with writer.block("static uint32_t checksum(const void *memory, size_t size_bytes)"):
        writer.lines(f"const uint8_t *const bytes = (const uint8_t *)memory;\nuint32_t value = {_BASIS}u;\n")
        with writer.block("for (size_t index = 0u; index < size_bytes; ++index)"):
            writer.line(f"value = (value ^ bytes[index]) * {_PRIME}u;")
        writer.line("return value;")
    writer.line()


def _head(plan: Plan, names: Names) -> str:
    """The head of the function, which is lent the outputs of each entry that has some."""
    lent = "".join(
        f", const {own.outputs_type} *{_outputs(alone)}"
        for alone, own in by_entry(plan, names)
        if "outputs" in alone.structures_of_run
    )
    return f"int32_t {names.self_test}({names.context_type} *context{lent})"


def _outputs(plan: Plan) -> str:
    """What the function calls the outputs of an entry: `outputs`, of several entries `push_outputs`."""
    return f"{plan.entries[0].name}_outputs" if plan.stated_entries else "outputs"


def _write_function(
    writer: Writer, plan: Plan, names: Names, num_samples: int, contents: Mapping[str, bytes]
) -> None:
    views = by_entry(plan, names)
    with writer.block(_head(plan, names)):
        for alone, _ in views:
            if "outputs" in alone.structures_of_run:
                writer.refuse(f"{_outputs(alone)} == NULL", names.error("NULL"))
        _write_parameter_checks(writer, plan, names, contents)
        with writer.block(f"for (int32_t sample = 0; sample < {num_samples}; ++sample)"):
            _write_sample(writer, plan, names, views)
        writer.line(f"return {names.ok};")


def _write_sample(writer: Writer, plan: Plan, names: Names, views: Sequence[tuple[Plan, Names]]) -> None:
    """Each entry once, from the state before the first run on, and what came out of it."""
    if plan.states:
        writer.line(f"int32_t status = {names.reset}(context);")
    elif plan.stated_entries:
        writer.line("int32_t status;")
    first, condition = 0, f"if (status == {names.ok})" if plan.states else ""
    for alone, own in views:
        if plan.states or plan.stated_entries:
            with writer.block(condition):
                _write_run(writer, plan, alone, own, "status =")
            condition = ""
        else:
            _write_run(writer, plan, alone, own, "int32_t status =")
        if alone.checked_sizes:
            writer.refuse("status != expected_status[sample][0]", "(status < 0) ? status : (sample + 1)")
        else:
            writer.refuse(f"status != {names.ok}", "status")
        for index, tensor in enumerate(alone.outputs, first):
            size_bytes = f"expected_bytes[sample][{index}]" if _varies(plan) else f"{tensor.size_bytes}u"
            computed = f"checksum({_output(alone, own, tensor)}, {size_bytes})"
            writer.refuse(f"{computed} != expected[sample][{index}]", "sample + 1")
        first += len(alone.outputs)


def _write_parameter_checks(writer: Writer, plan: Plan, names: Names, contents: Mapping[str, bytes]) -> None:
    """A wrong weight may change no output of a few inputs."""
    if plan.set_parameters:
        writer.line(f"const int32_t verified = {names.verify_parameters}(context);")
        writer.refuse(f"verified != {names.ok}", "verified")
    known = {pool.name for pool in plan.set_parameters}
    for pool in plan.used_pools(Role.PARAMETERS):
        if pool.name not in known:
            computed = f"checksum({names.array(pool)}, {names.size(pool)})"
            expected = f"0x{checksum(contents[pool.name][: pool.used_bytes]):08X}u"
            writer.refuse(f"{computed} != {expected}", names.error("HASH"))


def _write_run(writer: Writer, whole: Plan, plan: Plan, names: Names, assigned: str) -> None:
    """The run of an entry, as which `plan` sees the whole one."""
    extents = {symbol.name: f"extents[sample][{n}]" for n, symbol in enumerate(whole.symbols)}
    given = {"context": "context", "inputs": "&inputs", "outputs": _outputs(plan), **extents}
    if "inputs" in plan.structures_of_run:
        members = ", ".join(f".{t.c_name} = {_stored(t)}" for t in plan.inputs)
        writer.wrapped(f"const {names.inputs_type} inputs = {{{members}}};")
    for tensor in plan.inputs if plan.io_in_workspace else ():
        to = f"{names.address(ir.Border.INPUT, tensor)}(context)"
        writer.refuse(f"{to} == NULL", names.error("NOT_SET"))
        writer.wrapped(f"(void)memcpy({to}, stored_{tensor.c_name}[sample], {tensor.size_bytes}u);")
    begin, *others = form_of(plan).calls(plan, names, given, [_stored(tensor) for tensor in plan.inputs])
    if assigned.startswith("int32_t") and not others:
        assigned = f"const {assigned}"
    writer.line(f"{assigned} {begin};")
    for call in others:
        with writer.block(f"if (status == {names.ok})"):
            writer.wrapped(f"status = {call};")


def _stored(tensor: PlannedTensor) -> str:
    return f"(const {memory_type(tensor.dtype)} *)(const void *)stored_{tensor.c_name}[sample]"


def _output(plan: Plan, names: Names, tensor: PlannedTensor) -> str:
    if plan.io_in_workspace:
        return f"{names.address(ir.Border.OUTPUT, tensor)}(context)"
    return f"{_outputs(plan)}->{tensor.c_name}"


def _write_bytes(writer: Writer, data: bytes) -> None:
    writer.line("{")
    for first in range(0, len(data), _BYTES_IN_A_LINE):
        writer.line(f"    {', '.join(map(str, data[first : first + _BYTES_IN_A_LINE]))},")
    writer.line("},")
