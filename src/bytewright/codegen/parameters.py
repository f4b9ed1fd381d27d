"""Parameter pools: `<model>_parameters.c` and, for each pool, its bytes as C numbers, or as they are."""

from collections.abc import Mapping

import numpy as np

from bytewright.codegen.writer import Writer
from bytewright.options import Embedding
from bytewright.record.buffers import PlannedPool
from bytewright.record.names import Names
from bytewright.record.plan import Plan
from bytewright.target.model import Role

BYTES_PER_LINE = 16
_LINES_AT_ONCE = 1 << 14
# For each byte its decimal digits and a comma, and zeros for what is left of four characters.
_NUMBERS = np.array([list(f"{byte},".encode().ljust(4, b"\0")) for byte in range(256)], np.uint8)


def embedded_files(
    plan: Plan, names: Names, contents: Mapping[str, bytes], embedding: Embedding
) -> dict[str, bytes]:
    """Path in the bundle -> content, for the bytes of all parameter pools."""
    return {
        path: c_numbers(contents[pool.name]) if as_numbers else contents[pool.name]
        for path, (pool, as_numbers) in embedded_paths(plan, names, embedding).items()
    }


def embedded_paths(plan: Plan, names: Names, embedding: Embedding) -> dict[str, tuple[PlannedPool, bool]]:
    """Path in the bundle -> the parameter pool whose bytes it has, and whether as C numbers."""
    paths: dict[str, tuple[PlannedPool, bool]] = {}
    for pool in plan.used_pools(Role.PARAMETERS):
        as_numbers = embedding.as_numbers(pool.used_bytes)
        if as_numbers or not pool.is_caller:
            paths[names.embedded(pool, as_numbers=as_numbers)] = (pool, as_numbers)
        if pool.is_caller:
            paths[names.blob(pool.name)] = (pool, False)
    return paths


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


def parameters_source(plan: Plan, names: Names, embedding: Embedding) -> str:
    """The arrays of the pools that the generated code provides."""
    writer = Writer()
    writer.title(f"Parameters of model '{plan.model}': weights, biases, multipliers and tables.")
    writer.line(f'#include "{names.included(names.header)}"')
    for pool in plan.own_parameters:
        as_numbers = embedding.as_numbers(pool.used_bytes)
        file = names.included(names.embedded(pool, as_numbers=as_numbers))
        section = _load_section(plan, pool) if pool.is_copied else pool.section
        writer.line()
        if as_numbers:
            writer.lines(
                f"{_declaration(names, pool, names.bytes_array(pool), section, is_constant=True)} = {{"
            )
            writer.line(f'#include "{file}"')
            writer.line("};")
        else:
            _write_incbin(writer, pool, names.bytes_array(pool), section, file)
    return writer.text()


def _load_section(plan: Plan, pool: PlannedPool) -> str | None:
    """The section of the array from which a pool is copied."""
    return None if pool.load_memory is None else plan.hardware.memory(pool.load_memory).section


def _write_incbin(writer: Writer, pool: PlannedPool, name: str, section: str | None, file: str) -> None:
    """The array as the assembler includes it: as numbers, compilers would need a hundred times its size."""
    writer.comment(
        f"{pool.used_bytes} bytes of {file}, which lies beside the header: the assembler looks for it where the "
        "compiler looks for headers. Compile this file without link-time optimisation."
    )
    writer.line("#if defined(__ELF__) && defined(__GNUC__)")
    lines = [
        f'.pushsection {section or f".rodata.{name}"},\\"a\\",%progbits',
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


def array_declaration(names: Names, pool: PlannedPool) -> str:
    """The definition of the array that a pool is in, of bytes that change."""
    return _declaration(names, pool, names.array(pool), pool.section, is_constant=False)


def _declaration(
    names: Names, pool: PlannedPool, array: str, section: str | None, *, is_constant: bool
) -> str:
    attributes = f"{names.aligned}({names.alignment(pool)})"
    if section is not None:
        attributes += f' {names.section}("{section}")'
    constness = "const " if is_constant else ""
    return f"{attributes}\n{constness}uint8_t {array}[{names.size(pool)}]"
