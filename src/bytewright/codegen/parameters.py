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
        writer.lines(f"{array_declaration(interface, pool)} = {{")
        writer.line(f'#include "{initialiser_name(interface, pool)}"')
        writer.line("};")
    return writer.text()


def array_declaration(interface: Interface, pool: PoolInterface) -> str:
    """The definition of a pool's array, without initialiser."""
    constness = "const " if pool.content else ""
    attributes = f"{interface.prefix}_ALIGNED({interface.macro(pool, 'ALIGN')})"
    if pool.section is not None:
        attributes += f' {interface.prefix}_SECTION("{pool.section}")'
    return f"{attributes}\n{constness}uint8_t {interface.array_name(pool)}[{interface.macro(pool, 'SIZE')}]"
