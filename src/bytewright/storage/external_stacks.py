"""The stack of functions that the application brings: stated with the function, or by the target.

Nothing is assumed: a function whose stack nobody states would make the promised stack of the model a guess.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.diagnostics import Collector, Diagnostic
from bytewright.target.model import ExternalStack, Target


def with_external_stacks(module: ir.Module, target: Target) -> Target:
    """The target with the stack of each function of the application; the larger where both state one.

    Raises:
        CompileError: BW302 for functions whose stack is stated nowhere.
    """
    problems = Collector()
    stacks = {entry.symbol: entry.size_bytes for entry in target.external_stacks}
    for kernel in module.kernels:
        if kernel.external is None:
            continue
        stated = kernel.external.stack_bytes
        if stated is not None:
            stacks[kernel.symbol] = max(stated, stacks.get(kernel.symbol, 0))
        elif kernel.symbol not in stacks:
            problems.add(
                Diagnostic(
                    "BW302",
                    f"the stack of '{kernel.symbol}', which the application brings, is not stated",
                    help=f"in the program: extern {kernel.name}(...) on {kernel.device} stack=BYTES; or in the target "
                    f"file: [stack.external] {kernel.symbol} = BYTES",
                    where=str(kernel.where),
                )
            )
    problems.stop_if_any()
    known = tuple(ExternalStack(symbol, size_bytes) for symbol, size_bytes in stacks.items())
    return target if known == target.external_stacks else replace(target, external_stacks=known)
