"""Ends parameter pools with a whole cache line, where a device touches them that does not see their memory coherently.

What lies behind the pool is the application's, and may be written at any time. The problem has left room for it: it
knows of such a pool only the lines that it has whole.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.ir.analyses.lines import parameter_lines
from bytewright.plan.solution import PoolUse, Solution
from bytewright.target.model import Target


def end_with_lines(module: ir.Module, target: Target, parameters: Solution) -> Solution:
    """The solution with the tops that such pools have, and what the first byte of these is aligned to."""
    pool_of = {placement.buffer: placement.pool for placement in parameters.placements}
    lines = parameter_lines(module, target, pool_of)
    if not lines:
        return parameters
    pools = tuple(_ended(use, lines.get(use.pool, 1)) for use in parameters.pools)
    return replace(parameters, pools=pools)


def _ended(use: PoolUse, line_bytes: int) -> PoolUse:
    top, bound = (-(-n // line_bytes) * line_bytes for n in (use.top_bytes, use.lower_bound_bytes))
    return replace(use, top_bytes=top, lower_bound_bytes=bound, alignment=max(use.alignment, line_bytes))
