"""What survives runs, in C: the function that resets it begins each state with the bytes that the plan has for it.

That states live throughout, in pools of their own, and that every step has them where the plan says, is checked with
all buffers.
"""

from collections.abc import Iterator

from pycparser import c_ast

from bytewright.inspect.c_nodes import call_of, spell
from bytewright.inspect.c_source import CSource, descend
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import Names
from bytewright.record.plan import Plan

_WRITING = ("memset", "memcpy")


def faults_of_states(plan: Plan) -> Iterator[str]:
    """What a state begins with is a byte or a constant of its size, and no input or output begins with anything."""
    for tensor in (*plan.inputs, *plan.outputs):
        if tensor.initial is not None:
            yield f"'{tensor.name}' is no state, and begins with something"
    for state in plan.states:
        initial = state.initial
        if initial is None or (initial.fill is None) == (initial.constant is None):
            yield f"state '{state.name}' does not say what it begins with, or says it twice"
        elif initial.fill is not None and initial.fill > 255:
            yield f"state '{state.name}' begins with {initial.fill} in each byte"
        elif initial.constant is not None:
            constant = plan.buffers.get(initial.constant)
            if constant is None or not constant.has_offset or constant.size_bytes != state.size_bytes:
                yield f"state '{state.name}' begins with '{initial.constant}', which is no constant of its size"


def differences_of_reset(plan: Plan, names: Names, path: str, source: CSource) -> Iterator[str]:
    """The function writes each state once, in order, and nothing else."""
    function = source.function(names.reset)
    if not plan.states:
        if function is not None:
            yield f"{path} has {names.reset}, and nothing survives runs"
        return
    calls = [] if function is None else [n for n in descend(function.body) if isinstance(n, c_ast.FuncCall)]
    written = [spell(node) for node in calls if call_of(node)[0] in _WRITING]
    expected = [_begin(plan, names, state) for state in plan.states]
    if written != expected or len(calls) != len(written):
        wrong = next((text for text in expected if text not in written), "what it does besides")
        yield f"{path}: {names.reset} does not begin states as the plan says: {wrong}"


def _begin(plan: Plan, names: Names, state: PlannedTensor) -> str:
    address, initial = _address(plan, names, state.buffer), state.initial
    if initial is None or initial.constant is None:
        return f"memset({address}, {0 if initial is None else initial.fill}, {state.size_bytes}u)"
    return f"memcpy({address}, {_address(plan, names, initial.constant)}, {state.size_bytes}u)"


def _address(plan: Plan, names: Names, name: str) -> str:
    buffer = plan.buffers.get(name)
    pool = None if buffer is None else plan.pools.get(buffer.place.name)
    if buffer is None or pool is None:
        return "?"  # which is refused already
    return f"{names.pool_address(pool)} + {names.argument(buffer)}"
