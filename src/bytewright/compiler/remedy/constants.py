"""What is known before a module is stored: the bytes of its constants, which no option changes.

Storage neither adds constants nor takes any away, and each has bytes of its own. So memories with fewer bytes than all
constants together hold them under no pools, pins or sizes.
"""

from collections.abc import Callable, Iterable
from functools import partial

from bytewright import ir
from bytewright.compiler.trial import Attempt, Conditions, Trial
from bytewright.diagnostics import compile_error
from bytewright.options import Options
from bytewright.plan.problem import Buffer
from bytewright.scopes.check_scopes import undeclared_tags
from bytewright.storage.build_problem import planned_constants
from bytewright.target.model import Memory, Target


def constants_of(module: ir.Module, target: Target) -> tuple[Buffer, ...]:
    """The constants as the planner has them; none where a tag of the module is refused before anything is planned."""
    if undeclared_tags(module, target):
        return ()
    constants = planned_constants(module, target)
    return tuple(Buffer(each.buffer.name, len(each.data.content), ((0, 1),)) for each in constants)


def bytes_together(memories: Iterable[Memory]) -> int | None:
    """Bytes of memories; None if one of them has no limit."""
    sizes = [memory.size_bytes for memory in memories]
    limits = [size for size in sizes if size is not None]
    return sum(limits) if len(limits) == len(sizes) else None


def where_constants_fit(module: ir.Module, options: Options, attempt: Attempt) -> Attempt:
    """The attempt, which is spared where the memories of all parameter pools have fewer bytes than the constants.

    Those are of kernels as the options ask for; other kernels have others.
    """
    return partial(_attempt, module, options, attempt)


def _attempt(
    module: ir.Module, options: Options, attempt: Callable[[Conditions], Trial], conditions: Conditions
) -> Trial:
    target, asked = conditions.target, conditions.options
    if (asked.optimize, asked.kernel_code) != (options.optimize, options.kernel_code):
        return attempt(conditions)
    names = {pool.memory for pool in target.parameter_pools}
    room_bytes = bytes_together(target.memory(name) for name in sorted(names))
    needed_bytes = sum(constant.size_bytes for constant in constants_of(module, target))
    if room_bytes is not None and room_bytes < needed_bytes:
        raise compile_error("BW301", f"constants take {needed_bytes} B, their memories have {room_bytes} B")
    return attempt(conditions)
