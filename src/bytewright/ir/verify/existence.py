"""Elements, rows and parts that a statement touches and that its buffers do not have.

Elements that are known one by one must be those of the buffer, and of others one at least; rows of rings by their
number, since their slots exist whatever the row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.verify.touched import Elements, Touch
from bytewright.ir.walk import expressions, regions, stores, walk_expression


def missing_element(elements: Elements, touch: Touch, *, is_certain: bool) -> str | None:
    """What is wrong if a touch, which is certain to happen or not, reaches an element that does not exist."""
    runs = elements.runs(touch)
    count = ir.num_elements(touch.buffer)
    if runs is None or not is_certain:
        known = elements.range_of(touch.index)
        may_not_happen = not is_certain and any(isinstance(n, ir.Var) for n in walk_expression(touch.index))
        if known is None or may_not_happen or (known[0] < count and known[1] >= 0):
            return None
        outside = known[0] if known[0] >= count else known[1]
    else:
        last = runs.last + (0 if touch.pattern.all() else int(np.flatnonzero(touch.pattern)[-1]))
        outside = last if last >= count else runs.first
        if 0 <= outside < count:
            return None
    return f"element {outside} of '{touch.buffer.name}' does not exist; it has {count}"


def missing_rows(elements: Elements, statement: ir.Statement) -> Iterator[str]:
    """What is wrong with the rows of rings that a statement always touches."""
    touched = [(store.buffer, store.indices) for store in stores(statement)]
    touched += [
        (load.buffer, load.indices)
        for expression in expressions(statement)
        for load, is_certain in elements.loads(expression)
        if is_certain
    ]
    if isinstance(statement, ir.View) and statement.condition is None:
        touched += [(region.buffer, region.indices) for region in regions(statement)]
    for buffer, indices in touched:
        if buffer.rows is None or not indices:
            continue
        form = elements.definitions.form(indices[buffer.rows.axis])
        known = None if form is None else form.range_in(elements.ranges)
        num_rows = ir.upper_bound(buffer.shape[buffer.rows.axis])
        if known is not None and not 0 <= known[0] <= known[1] < num_rows:
            row = known[0] if known[0] < 0 else known[1]
            yield f"row {row} of '{buffer.name}' does not exist; it has {num_rows}"


def passed_parts(elements: Elements, kernel: ir.PrimFunc, call: ir.Call) -> Iterator[Touch]:
    """The elements that a call passes parts of: all of the parameters, whatever the callee does with them."""
    for parameter, argument in buffer_arguments(kernel, call):
        if argument.indices:
            every = np.broadcast_to(np.True_, (ir.num_elements(parameter.buffer),))
            yield from elements.sources(elements.passed(argument, every))
