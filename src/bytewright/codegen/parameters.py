"""Parameter pools: `<model>_parameters.c` and, for each pool, its bytes as C numbers, or as they are."""

from __future__ import annotations

import numpy as np

from bytewright.codegen.interface import Interface, PoolInterface, blob_path
from bytewright.codegen.writer import Writer

BYTES_PER_LINE = 16
_LINES_AT_ONCE = 1 << 14
# For each byte its decimal digits and a comma, and zeros for what is left of four characters.
_NUMBERS = np.array([list(f"{byte},".encode().ljust(4, b"\0")) for byte in range(256)], np.uint8)


def embedded_name(interface: Interface, pool: PoolInterface) -> str:
    """File beside the header that holds the bytes of a pool.

    As C numbers, for `#include` between braces, or as they are.
    """
    return f"{interface.model}_{pool.identifier}_parameters.{'inc' if pool.as_numbers else 'bin'}"


def embedded_files(interface: Interface) -> dict[str, bytes]:
    """Path in the bundle -> content, for the bytes of all parameter pools."""
    files: dict[str, bytes] = {}
    for pool in interface.parameters:
        if pool.as_numbers:
            files[f"include/{embedded_name(interface, pool)}"] = c_numbers(pool.content)
        elif not pool.is_caller:
            files[f"include/{embedded_name(interface, pool)}"] = pool.content
        if pool.is_caller:
            files[blob_path(pool.pool.name)] = pool.content
    return files


def c_numbers(content: bytes) -> bytes:
    """Bytes as C numbers, each with a comma, some to a line."""
    step = BYTES_PER_LINE * _LINES_AT_ONCE
    return b"".join(_lines(content[begin : begin + step]) for begin in range(0, len(content), step))


def _lines(content: bytes) -> bytes:
    num_lines = -(-len(content) // BYTES_PER_LINE)
    text = np.zeros((num_lines, BYTES_PER_LINE + 1, 4), np.uint8)
    numbers = np.zeros((num_lines * BYTES_PER_LINE, 4), np.uint8)
    numbers[: len(content)] = _NUMBERS[np.frombuffer(content, np.uint8)]
    text[:, :BYTES_PER_LINE] = numbers.reshape(num_lines, BYTES_PER_LINE, 4)
    text[:, BYTES_PER_LINE, 0] = ord("\n")
    return text[text != 0].tobytes()


def parameters_source(interface: Interface) -> str:
    """The arrays of the pools that the generated code provides."""
    writer = Writer()
    writer.title(f"Parameters of model '{interface.model}': weights, biases, multipliers and tables.")
    writer.line(f'#include "{interface.model}.h"')
    for pool in interface.parameters:
        if pool.is_caller or not pool.used_bytes:
            continue
        writer.line()
        if pool.as_numbers:
            declare = load_array_declaration if pool.is_copied else array_declaration
            writer.lines(f"{declare(interface, pool)} = {{")
            writer.line(f'#include "{embedded_name(interface, pool)}"')
            writer.line("};")
        else:
            _write_incbin(writer, interface, pool)
    return writer.text()


def _write_incbin(writer: Writer, interface: Interface, pool: PoolInterface) -> None:
    """The array as the assembler includes it: as numbers, compilers would need a hundred times its size."""
    name = interface.load_array_name(pool) if pool.is_copied else interface.array_name(pool)
    section = (pool.load_section if pool.is_copied else pool.section) or f".rodata.{name}"
    file = embedded_name(interface, pool)
    writer.comment(
        f"{pool.used_bytes} bytes of {file}, which lies beside the header: the assembler looks for it where the "
        "compiler looks for headers. Compile this file without link-time optimisation."
    )
    writer.line("#if defined(__ELF__) && defined(__GNUC__)")
    lines = [
        f'.pushsection {section},\\"a\\",%progbits',
        f".balign {pool.alignment}",
        f".globl {name}",
        f".type {name}, %object",
        f".size {name}, {pool.used_bytes}",
        f"{name}:",
        f'.incbin \\"{file}\\"',
        ".popsection",
    ]
    writer.line("__asm__(")
    with writer.indented():
        for index, line in enumerate(lines):
            writer.line(f'"{line}\\n"{");" if index + 1 == len(lines) else ""}')
    writer.line("#else")
    writer.line('#error "this compiler includes no binary files: compile the model with --embed numbers"')
    writer.line("#endif")


def array_declaration(interface: Interface, pool: PoolInterface) -> str:
    """The definition of a pool's array, without initialiser."""
    name, is_constant = interface.array_name(pool), bool(pool.content) and not pool.is_copied
    return _declaration(interface, pool, name, pool.section, is_constant)


def load_array_declaration(interface: Interface, pool: PoolInterface) -> str:
    """The definition of the array from which a pool is copied, without initialiser."""
    return _declaration(interface, pool, interface.load_array_name(pool), pool.load_section, True)


def _declaration(
    interface: Interface, pool: PoolInterface, name: str, section: str | None, is_constant: bool
) -> str:
    attributes = f"{interface.prefix}_ALIGNED({interface.macro(pool, 'ALIGN')})"
    if section is not None:
        attributes += f' {interface.prefix}_SECTION("{section}")'
    constness = "const " if is_constant else ""
    return f"{attributes}\n{constness}uint8_t {name}[{interface.macro(pool, 'SIZE')}]"
