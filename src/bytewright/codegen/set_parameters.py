"""`<model>_set_parameters` and `<model>_verify_parameters`: parameters that are lent, or copied to where they are read.

Every check comes before the first copy, so that a refusal leaves the memory and the context as they were.
"""

from collections.abc import Mapping

from bytewright.codegen.checks import (
    any_is_null,
    write_memory_checks,
    write_overlap_check,
    write_range_check,
)
from bytewright.codegen.overlaps import parameter_table
from bytewright.codegen.writer import Writer
from bytewright.record.buffers import PlannedPool
from bytewright.record.names import Names
from bytewright.record.parameter_bytes import blob_header
from bytewright.record.plan import Plan
from bytewright.target.model import PARAMETER_HEADER_BYTES


def write_set_parameters(writer: Writer, plan: Plan, names: Names, contents: Mapping[str, bytes]) -> None:
    """The expected headers and both functions; nothing if the C needs neither."""
    pools = plan.set_parameters
    if not pools:
        return
    for pool in pools:
        header = ", ".join(str(byte) for byte in _expected_header(pool, contents[pool.name]))
        begin = "Header of the blob for" if pool.is_caller else "What a blob would begin with for"
        writer.comment(f"{begin} '{pool.c_name}': magic, size, FNV-1a 64.")
        name = names.expected_header(pool)
        writer.wrapped(f"static const uint8_t {name}[{PARAMETER_HEADER_BYTES}] = {{{header}}};")
        writer.line()
    with writer.block(set_parameters_head(plan, names)):
        arguments = ("context", "parameters") if plan.caller_parameters else ("context",)
        missing = any_is_null(arguments)
        writer.refuse(missing, names.error("NULL"))
        for pool in plan.caller_parameters:
            _write_checks(writer, plan, names, pool)
        if plan.caller_parameters:
            write_overlap_check(writer, names, parameter_table(plan, names))
        for pool in pools:
            _write_setting(writer, names, pool)
        writer.line(f"return {names.ok};")
    writer.line()
    _write_verify(writer, plan, names)


def set_parameters_head(plan: Plan, names: Names) -> str:
    """The head of the function, which takes the context alone if nothing comes from the application."""
    given = f", const {names.parameters_type} *parameters" if plan.caller_parameters else ""
    return f"int32_t {names.set_parameters}({names.context_type} *context{given})"


def verify_parameters_head(names: Names) -> str:
    """The head of the function."""
    return f"int32_t {names.verify_parameters}(const {names.context_type} *context)"


def _expected_header(pool: PlannedPool, content: bytes) -> bytes:
    return content[: pool.header_bytes] if pool.header_bytes else blob_header((content,))


def _source(pool: PlannedPool) -> str:
    """The blob that the application passes."""
    return f"parameters->{pool.c_name}.from" if pool.is_copied else f"parameters->{pool.c_name}"


def _write_checks(writer: Writer, plan: Plan, names: Names, pool: PlannedPool) -> None:
    """A blob that is lent must be aligned and in the pool's memory; one that is copied may be anywhere."""
    blob, header = _source(pool), names.expected_header(pool)
    writer.refuse(f"{blob} == NULL", names.error("NULL"))
    if pool.is_copied:
        write_memory_checks(writer, plan, names, pool, f"parameters->{pool.c_name}.to")
    else:
        misaligned = f"((uintptr_t){blob} % (uintptr_t){names.alignment(pool)}) != 0u"
        writer.refuse(misaligned, names.error("ALIGN"))
        write_range_check(writer, plan, names, pool, blob)
    differs = f"memcmp({blob}, {header}, sizeof {header}) != 0"
    writer.refuse(differs, names.error("HASH"))


def _write_setting(writer: Writer, names: Names, pool: PlannedPool) -> None:
    name, blob = pool.c_name, _source(pool)
    if not pool.is_copied:
        writer.line(f"context->{name} = (const uint8_t *){blob};")
        return
    if pool.is_caller:
        memory = f"parameters->{name}.to.base"
    else:
        memory, blob = names.array(pool), names.load_array(pool)
    writer.line(f"memcpy({memory}, {blob}, {names.size(pool)});")
    writer.line(f"context->{name} = (const uint8_t *){memory};")


def _write_verify(writer: Writer, plan: Plan, names: Names) -> None:
    with writer.block(verify_parameters_head(names)):
        writer.refuse("context == NULL", names.error("NULL"))
        for pool in plan.set_parameters:
            member, header = f"context->{pool.c_name}", names.expected_header(pool)
            writer.refuse(f"{member} == NULL", names.error("NOT_SET"))
            with writer.block(""):
                writer.line("uint64_t digest = 0xCBF29CE484222325u;")
                with writer.block(f"for (size_t i = {pool.header_bytes}; i < {names.size(pool)}; ++i)"):
                    writer.line(f"digest = (digest ^ {member}[i]) * 0x100000001B3u;")
                with writer.block("for (size_t i = 0; i < 8; ++i)"):
                    wrong = f"(uint8_t)(digest >> (8u * i)) != {header}[16 + i]"
                    writer.refuse(wrong, names.error("HASH"))
        writer.line(f"return {names.ok};")
    writer.line()
