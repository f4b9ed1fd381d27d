"""How deep functions nest, which has a limit: passes follow blocks and expressions by recursion, and nothing else.

What grows with a model, its graph, its entry and its chains of calls, is walked without recursion, whatever its length.
"""

from functools import lru_cache

from bytewright import ir
from bytewright.ir.remember import remembered
from bytewright.ir.walk import blocks, expression_depth, expressions

# Levels of blocks and of operations inside each other. No compiler of C has to take as many.
MAX_DEPTH = 160


@remembered
def depth_of(function: ir.PrimFunc) -> int:
    """The most blocks and operations of a function that lie inside each other."""
    return _depth(function.body)


@lru_cache(maxsize=1 << 12)
def _depth_of_meaning(instruction: ir.Instruction) -> int:
    return _depth(instruction.body)


def _depth(body: ir.Seq) -> int:
    deepest = 0
    pending: list[tuple[ir.Statement, int]] = [(body, 0)]
    while pending:
        statement, depth = pending.pop()
        own = 0
        for expression in expressions(statement):
            own = max(own, expression_depth(expression))
        if isinstance(statement, ir.InstructionCall):
            deepest = max(deepest, depth + own + _depth_of_meaning(statement.instruction))
            continue
        deepest = max(deepest, depth + own)
        inner = statement.statements if isinstance(statement, ir.Seq) else blocks(statement)
        pending.extend([(child, depth + isinstance(child, ir.Seq)) for child in inner])
    return deepest
