"""Pointers to what a kernel stores side by side: `output_block[3]` beside `output_block[2]`.

Compilers vectorise such a block only if they see that its elements lie beside each other, and in sums of variables they
may not: gcc compares addresses operand by operand, and clang does not know that a sum in 32 bits cannot overflow.
"""

from collections.abc import Collection
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.codegen.name_values import certain_loads, depends_on_memory
from bytewright.ir.rewrite import Element, Indices, Rewriting, rewrite_statement, with_blocks


def name_blocks(body: ir.Seq, taken: Collection[str]) -> ir.Seq:
    """The body with such pointers, which are views that are written; none of their names is taken."""
    used = set(taken)

    def named(sequence: ir.Seq) -> ir.Seq:
        return _with_pointers(
            ir.Seq(tuple(with_blocks(statement, named) for statement in sequence.statements)), used
        )

    return named(body)


def _with_pointers(sequence: ir.Seq, used: set[str]) -> ir.Seq:
    """For what the sequence stores itself, and reads at the same indices: each pointer before its first use."""
    distances: dict[Element, set[int]] = {}
    stored: set[Indices] = set()
    for statement in sequence.statements:
        for buffer, indices in _elements(statement):
            first, distance = _from_first(indices)
            distances.setdefault((buffer, first), set()).add(distance)
        if isinstance(statement, ir.Store) and not all(isinstance(i, ir.Const) for i in statement.indices):
            stored.add(_from_first(statement.indices)[0])
    # Of neighbours alone that begin at distance 0: a pointer to another element might point outside the buffer.
    wanted = {
        (buffer, first): len(found)
        for (buffer, first), found in distances.items()
        if first in stored and len(found) > 1 and found == set(range(len(found)))
    }
    blocks: dict[Element, ir.Buffer] = {}

    def element(buffer: ir.Buffer, indices: Indices) -> Element:
        first, distance = _from_first(indices)
        block = blocks.get((buffer, first))
        return (buffer, indices) if block is None else (block, (ir.const(distance),))

    statements: list[ir.Statement] = []
    for statement in sequence.statements:
        for buffer, indices in _elements(statement):
            key = buffer, _from_first(indices)[0]
            if key in wanted and key not in blocks:
                name = unique_name(f"{buffer.name}_block", used)
                blocks[key] = replace(buffer, name=name, shape=(wanted[key],), rows=None)
                statements.append(ir.View(blocks[key], ir.Region(*key)))
        if isinstance(statement, ir.Store | ir.Let):
            statements += rewrite_statement(statement, Rewriting(element=element))
        else:
            statements.append(statement)
    return ir.Seq(tuple(statements))


def _elements(statement: ir.Statement) -> list[Element]:
    """Elements of buffers of several axes that a statement reads and writes in any case, if it is no block or view.

    Of those at indices from memory nothing is said: another statement may have changed them before the next use.
    """
    if not isinstance(statement, ir.Store | ir.Let):
        return []
    found = [(load.buffer, load.indices) for load in certain_loads(statement.value)]
    if isinstance(statement, ir.Store):
        found.append((statement.buffer, statement.indices))
    return [
        (buffer, indices)
        for buffer, indices in found
        if len(indices) > 1 and _is_flat(buffer) and not any(map(depends_on_memory, indices))
    ]


def _from_first(indices: Indices) -> tuple[Indices, int]:
    """Indices with what varies along the last axis, and the constant distance from there."""
    match indices:
        case (*outer, ir.Binary(ir.BinaryOperator.ADD, last, ir.Const(value=int() as distance))):
            return (*outer, last), distance
        case (*outer, ir.Const(value=int() as distance, dtype=dtype)):
            return (*outer, ir.const(0, dtype)), distance
        case _:
            return indices, 0


def _is_flat(buffer: ir.Buffer) -> bool:
    """Whether elements along the last axis lie one after another: not the slots of a ring."""
    return buffer.rows is None or buffer.rows.axis < len(buffer.shape) - 1
