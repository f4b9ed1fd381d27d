"""Parameter pools: `<model>_parameters.c` and, for each pool, its bytes as an initialiser or a blob."""

from __future__ import annotations

from bytewright.codegen.interface import Interface, PoolInterface
from bytewright.codegen.writer import Writer

BYTES_PER_LINE = 16


def initialiser_name(interface: Interface, pool: PoolInterface) -> str:
    """File that holds the bytes of a pool as C numbers, for `#include` between braces."""
    return f"{interface.model}_{pool.identifier}_parameters.inc"


def initialiser_text(pool: PoolInterface) -> str:
    """The bytes of a pool as C numbers."""
    rows = [pool.content[i : i + BYTES_PER_LINE] for i in range(0, len(pool.content), BYTES_PER_LINE)]
    return "".join("".join(f"{byte}," for byte in row) + "\n" for row in rows)


def parameters_source(interface: Interface) -> str:
    """The arrays of the pools that the generated code provides."""
    writer = Writer()
    writer.comment(f"Parameters of model '{interface.model}': weights, biases, multipliers and tables.")
    writer.line(f'#include "{interface.model}.h"')
    generated = [pool for pool in interface.parameters if not pool.is_caller and pool.used_bytes]
    for pool in generated:
        writer.line()
        declare = load_array_declaration if pool.is_copied else array_declaration
        writer.lines(f"{declare(interface, pool)} = {{")
        writer.line(f'#include "{initialiser_name(interface, pool)}"')
        writer.line("};")
    return writer.text()


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
