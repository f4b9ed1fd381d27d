"""The application's arrays for the pools that it lends, as C."""

from collections.abc import Iterator

from bytewright.record.names import Names
from bytewright.record.placed_sections import placed_sections
from bytewright.record.plan import Plan


def caller_arrays(plan: Plan, names: Names, front: str = "") -> Iterator[str]:
    """Lines of C that declare workspaces, parameters, and the memory that parameters are copied to.

    Args:
        plan: Of the bundle,
        names: and its names.
        front: What each array's name begins with, before the pool's.
    """
    has_sections = bool(placed_sections(plan))
    for pool in plan.caller_workspaces:
        section = f"{names.section}({names.section_of(pool)}) " if pool.section and has_sections else ""
        array = f"static {names.aligned}({names.alignment(pool)}) {section}"
        yield f"{array}uint8_t {front}{pool.c_name}[{names.size(pool)}];"
    for pool in plan.caller_parameters:
        array = f"static {names.aligned}({names.alignment(pool)}) const uint8_t"
        yield f"{array} {front}{pool.c_name}[{names.size(pool)}] = {{"
        yield f"#include {names.initializer(pool)}"
        yield "};"
    for pool in plan.caller_copies:
        array = f"static {names.aligned}({names.alignment(pool)}) uint8_t"
        yield f"{array} {front}{pool.c_name}_copy[{names.size(pool)}];"
