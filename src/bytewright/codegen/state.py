"""What survives runs, in C: the function that makes all of it as it is before the first, and what the header says."""

from bytewright import ir
from bytewright.codegen.checks import any_is_null
from bytewright.codegen.writer import Writer
from bytewright.diagnostics import InternalError
from bytewright.record.buffers import PlaceKind, PlannedBuffer
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import BOUND, MEMBER_OF_STATE, Names
from bytewright.record.plan import Plan
from bytewright.target.model import Role


def reset_head(names: Names) -> str:
    """The head of the function."""
    return f"int32_t {names.reset}({names.context_type} *context)"


def write_reset(writer: Writer, plan: Plan, names: Names) -> None:
    """`<model>_reset`; nothing if nothing survives runs."""
    if not plan.states:
        return
    with writer.block(reset_head(names)):
        writer.refuse(any_is_null(["context"]), names.error("NULL"))
        for pool in (*plan.caller_workspaces, *plan.set_parameters):
            if pool.name in _touched_pools(plan):
                writer.refuse(f"context->{pool.c_name} == NULL", names.error("NOT_SET"))
        for state in plan.states:
            _write_begin(writer, plan, names, state)
        writer.line(f"context->{MEMBER_OF_STATE} = 1;")
        writer.line(f"return {names.ok};")
    writer.line()


def _write_begin(writer: Writer, plan: Plan, names: Names, state: PlannedTensor) -> None:
    """One state: a byte throughout, or a copy of its constant."""
    memory, initial = _address(plan, names, plan.buffers[state.buffer]), state.initial
    if initial is None:
        raise InternalError(f"state '{state.name}' does not say what it begins with")
    size = f"{state.size_bytes}u"
    if initial.constant is None:
        writer.line(f"memset({memory}, {initial.fill}, {size});")
    else:
        constant = _address(plan, names, plan.buffers[initial.constant])
        writer.line(f"memcpy({memory}, {constant}, {size});")


def _address(plan: Plan, names: Names, buffer: PlannedBuffer) -> str:
    """Where a buffer of a pool begins."""
    if buffer.place.kind not in (PlaceKind.PLANNED, PlaceKind.CONSTANT):
        raise InternalError(f"'{buffer.name}' has no place in a pool")
    pool = plan.pools[buffer.place.name]
    return f"{names.pool_address(pool)} + {names.argument(buffer)}"


def _touched_pools(plan: Plan) -> set[str]:
    buffers = [state.buffer for state in plan.states]
    buffers += [s.initial.constant for s in plan.states if s.initial is not None and s.initial.constant]
    return {plan.buffers[name].place.name for name in buffers}


def state_contract(plan: Plan, names: Names) -> str:
    """What the header says of the function, without what it returns."""
    listed = ", ".join(f"'{state.name}'" for state in plan.states)
    frames = "" if plan.stream is None else f"{_frames(plan.stream, names)}\n"
    pools = plan.used_pools(Role.STATE)
    places = " and ".join(
        f"the first {names.size(pool)} bytes of "
        + (f"the memory that '{pool.c_name}' was lent" if pool.is_caller else f"'{names.array(pool)}'")
        for pool in pools
    )
    shared = (
        "Contexts of their own share code and parameters, but not these bytes: one for each stream."
        if all(pool.is_caller for pool in pools)
        else "They are arrays of the generated code: there is one stream."
    )
    return (
        f"Makes what survives runs as it is before the first one: {listed}. Every run goes on from where the last one "
        "ended, so call this once workspaces and parameters are set, and before each new sequence.\n"
        f"{frames}All of it is {places}: a copy of them saves it between two runs, and copied back, after a reset, "
        f"restores it. {shared}"
    )


def _frames(stream: ir.Streamed, names: Names) -> str:
    """What runs of a stream are given, and what their results are."""
    text = f"Each run is given the next {stream.num_new} frames of the {stream.num_frames} that the model looks at."
    if stream.is_padded:
        text += " Before the first frame after a reset stands the model's own padding, and nowhere else."
    if stream.num_runs_before:
        text += (
            f" Results count from run {stream.num_runs_before + 1} after a reset on; those of the first "
            f"{names.runs_before} are of too few frames."
        )
    return text


def failure_contract(plan: Plan) -> str:
    """What a run that fails does to the state; nothing if there is none."""
    if not plan.states:
        return ""
    states = {state.buffer for state in plan.states}
    writing = [step.index for step in plan.steps if states & {*step.writes}]
    errors = ["DEVICE", "NO_MEMORY", "ORDER", "EXTERNAL", *([BOUND] if plan.checked_sizes else [])]
    if writing and (plan.checked_sizes or any(index >= writing[0] for index in _failing_steps(plan))):
        return (
            f"A run that an error of these ended may have changed the state: {', '.join(errors)}. Reset "
            "it, or restore it. Any other error leaves it as it was.\n"
        )
    return "A run that fails leaves the state as it was.\n"


def _failing_steps(plan: Plan) -> tuple[int, ...]:
    """The steps that may end a run: on other devices, with memory on request, or carried out by the application."""
    return tuple(
        step.index
        for step in plan.steps
        if step.device != plan.device.name
        or step.is_packed
        or step.kernel in plan.externals
        or any(plan.buffers[name].place.kind is PlaceKind.ARENA for name in step.touched)
    )
