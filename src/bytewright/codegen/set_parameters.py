"""`<model>_set_parameters` and `<model>_verify_parameters`: parameters that are lent, or copied to where they are read.

Every check comes before the first copy, so that a refusal leaves the memory and the context as they were.
"""

from __future__ import annotations

from bytewright.codegen.checks import (
    any_is_null,
    write_memory_checks,
    write_overlap_check,
    write_range_check,
    write_refusal,
)
from bytewright.codegen.interface import Interface, PoolInterface
from bytewright.codegen.overlaps import parameter_table
from bytewright.codegen.writer import Writer
from bytewright.record.parameter_bytes import blob_header
from bytewright.target.model import PARAMETER_HEADER_BYTES


def write_set_parameters(writer: Writer, interface: Interface) -> None:
    """The expected headers and both functions; nothing if the C needs neither."""
    pools = interface.set_parameters
    if not pools:
        return
    for pool in pools:
        header = ", ".join(str(byte) for byte in _expected_header(pool))
        begin = "Header of the blob for" if pool.is_caller else "What a blob would begin with for"
        writer.comment(f"{begin} '{pool.identifier}': magic, size, FNV-1a 64.")
        name = _header_name(interface, pool)
        writer.wrapped(f"static const uint8_t {name}[{PARAMETER_HEADER_BYTES}] = {{{header}}};")
        writer.line()
    with writer.block(set_parameters_head(interface)):
        arguments = ("context", "parameters") if interface.caller_parameters else ("context",)
        missing = any_is_null(arguments)
        write_refusal(writer, missing, f"{interface.prefix}_ERROR_NULL")
        for pool in interface.caller_parameters:
            _write_checks(writer, interface, pool)
        if interface.caller_parameters:
            write_overlap_check(writer, interface, parameter_table(interface))
        for pool in pools:
            _write_setting(writer, interface, pool)
        writer.line(f"return {interface.prefix}_OK;")
    writer.line()
    _write_verify(writer, interface)


def set_parameters_head(interface: Interface) -> str:
    """The head of the function, which takes the context alone if nothing comes from the application."""
    model = interface.model
    given = f", const {model}_parameters *parameters" if interface.caller_parameters else ""
    return f"int32_t {model}_set_parameters({model}_context *context{given})"


def _expected_header(pool: PoolInterface) -> bytes:
    return pool.content[: pool.header_bytes] if pool.header_bytes else blob_header((pool.content,))


def _header_name(interface: Interface, pool: PoolInterface) -> str:
    return f"{interface.model}_{pool.identifier}_header"


def _source(pool: PoolInterface) -> str:
    """The blob that the application passes."""
    return f"parameters->{pool.identifier}.from" if pool.is_copied else f"parameters->{pool.identifier}"


def _write_checks(writer: Writer, interface: Interface, pool: PoolInterface) -> None:
    """A blob that is lent must be aligned and in the pool's memory; one that is copied may be anywhere."""
    prefix, blob, header = interface.prefix, _source(pool), _header_name(interface, pool)
    write_refusal(writer, f"{blob} == NULL", f"{prefix}_ERROR_NULL")
    if pool.is_copied:
        write_memory_checks(writer, interface, pool, f"parameters->{pool.identifier}.to")
    else:
        misaligned = f"((uintptr_t){blob} % (uintptr_t){interface.macro(pool, 'ALIGN')}) != 0u"
        write_refusal(writer, misaligned, f"{prefix}_ERROR_ALIGN")
        write_range_check(writer, interface, pool, blob)
    differs = f"memcmp({blob}, {header}, sizeof {header}) != 0"
    write_refusal(writer, differs, f"{prefix}_ERROR_HASH")


def _write_setting(writer: Writer, interface: Interface, pool: PoolInterface) -> None:
    name, blob = pool.identifier, _source(pool)
    if not pool.is_copied:
        writer.line(f"context->{name} = (const uint8_t *){blob};")
        return
    if pool.is_caller:
        memory = f"parameters->{name}.to.base"
    else:
        memory, blob = interface.array_name(pool), interface.load_array_name(pool)
    writer.line(f"memcpy({memory}, {blob}, {interface.macro(pool, 'SIZE')});")
    writer.line(f"context->{name} = (const uint8_t *){memory};")


def _write_verify(writer: Writer, interface: Interface) -> None:
    model, prefix = interface.model, interface.prefix
    with writer.block(f"int32_t {model}_verify_parameters(const {model}_context *context)"):
        write_refusal(writer, "context == NULL", f"{prefix}_ERROR_NULL")
        for pool in interface.set_parameters:
            member, header = f"context->{pool.identifier}", _header_name(interface, pool)
            write_refusal(writer, f"{member} == NULL", f"{prefix}_ERROR_NOT_SET")
            with writer.block(""):
                writer.line("uint64_t digest = 0xCBF29CE484222325u;")
                with writer.block(
                    f"for (size_t i = {pool.header_bytes}; i < {interface.macro(pool, 'SIZE')}; ++i)"
                ):
                    writer.line(f"digest = (digest ^ {member}[i]) * 0x100000001B3u;")
                with writer.block("for (size_t i = 0; i < 8; ++i)"):
                    wrong = f"(uint8_t)(digest >> (8u * i)) != {header}[16 + i]"
                    write_refusal(writer, wrong, f"{prefix}_ERROR_HASH")
        writer.line(f"return {prefix}_OK;")
    writer.line()
