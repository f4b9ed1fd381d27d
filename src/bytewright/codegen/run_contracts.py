"""Sentences of the contracts of functions that run an entry: what it does, shares, refuses and returns."""

from collections.abc import Sequence

from bytewright import ir
from bytewright.codegen.ports import strict_alignments
from bytewright.record.buffers import PlannedPool
from bytewright.record.entries import MOST, PlannedTensor
from bytewright.record.extents import read_extents
from bytewright.record.names import BOUND, Names
from bytewright.record.plan import Plan


def returns(names: Names, errors: Sequence[str]) -> str:
    """What a function returns, as the last line of its contract."""
    *others, last = errors
    text = f"{', '.join(others)} or {last}" if others else last
    return f"Returns {names.ok}, or the error {text}."


def errors_of_a_run(plan: Plan) -> list[str]:
    """What a run may return, in the order of the header."""
    tensors = (*plan.inputs, *plan.outputs)
    is_aligned = bool(strict_alignments(plan)) or any(tensor.dtype.size_bytes > 1 for tensor in tensors)
    requests = bool(plan.arenas)
    is_possible = {
        "NULL": True,
        "NOT_SET": bool(plan.caller_workspaces or plan.set_parameters or plan.states),
        "ALIGN": is_aligned and not plan.io_in_workspace,
        "OVERLAP": not plan.io_in_workspace,
        "RANGE": not plan.io_in_workspace,
        "EXTENT": bool(plan.symbols),
        "NO_MEMORY": requests,
        "ORDER": requests,
        "EXTERNAL": bool(plan.externals),
        "DEVICE": bool(plan.devices),
        BOUND: bool(plan.checked_sizes),
    }
    return [error for error, possible in is_possible.items() if possible]


def what_runs(plan: Plan) -> str:
    """How many inferences of what."""
    samples = " and ".join(f"'{symbol.name}' samples" for symbol in plan.symbols if _is_batch(plan, symbol))
    of_samples = f" of {samples}" if samples else ""
    if plan.stated_entries:
        return f"Runs entry '{plan.entries[0].name}' once{of_samples.replace(' of ', ' on ', 1)}"
    return f"Runs one inference{of_samples}"


def _is_batch(plan: Plan, symbol: ir.Symbol) -> bool:
    """Whether an extent of the run counts samples, which are each computed as if alone: that of `--batch-max`."""
    is_asked = any(option.startswith("--batch-max ") for option in plan.options)
    return is_asked and _is_first_axis(plan, symbol)


def _is_first_axis(plan: Plan, symbol: ir.Symbol) -> bool:
    """Whether inputs and outputs, of which there are some, all have so many elements along their first axes."""
    tensors = (*plan.inputs, *plan.outputs)
    return bool(tensors) and all(tensor.extents[:1] == (symbol.name,) for tensor in tensors)


def what_extents_mean(plan: Plan, names: Names) -> str:
    """The range of each extent that the run is given, and what of inputs and outputs it is about."""
    lines: list[str] = []
    for symbol in plan.symbols:
        line = f"'{symbol.name}' is {symbol.lower} to {names.bound(symbol.name)}"
        if _is_first_axis(plan, symbol):
            held = (
                "hold so many samples"
                if _is_batch(plan, symbol)
                else "have so many elements along the first axis"
            )
            line += f"; inputs and outputs {held}, and need no bytes for more"
        lines.append(f"{line}.\n")
    return "".join(lines)


def what_sizes_mean(plan: Plan, names: Names) -> str:
    """Which outputs say how large others are, and what a run does that would make one too large."""
    lines: list[str] = []
    for tensor in (tensor for tensor in plan.outputs if tensor.most):
        shown = [f"'{other.c_name}'" for other in plan.outputs if tensor.size in _sizes_in(plan, other)]
        about = f"; the shape of {' and '.join(shown)} follows from it" if shown else ""
        most = names.tensor(ir.Border.OUTPUT, tensor, MOST)
        lines.append(f"'{tensor.c_name}' is 0 to {most}, as the data decides{about}.\n")
    if plan.checked_sizes:
        errors = f"Data that asks for more ends the run with {BOUND}: the size that is exceeded says how much, or less "
        lines.append(f"{errors}than 0 for what no size is; other outputs mean nothing.\n")
    return "".join(lines)


def _sizes_in(plan: Plan, tensor: PlannedTensor) -> tuple[ir.Symbol, ...]:
    """The extents that the data decides in the shape of an output."""
    read = read_extents(tensor.sized, (*plan.symbols, *plan.sizes))
    return ir.symbols_in(extent for extent in read if extent is not None)


def what_ends_loops(plan: Plan) -> str:
    """The most turns of loops whose conditions the run computes."""
    bounds = [option.removeprefix("--bound ") for option in plan.options if option.startswith("--bound ")]
    return (
        f"Loops end after so many turns, whatever their conditions say: {', '.join(bounds)}.\n"
        if bounds and plan.branches
        else ""
    )


def what_devices_do(plan: Plan) -> str:
    """How a run treats the devices."""
    if not plan.devices:
        return ""
    return (
        "The devices are in use from its begin to its end: each is activated and opened before the first kernel, and "
        "closed and deactivated, in reverse, however the run ends.\n"
    )


def what_drivers_are_apart_from(plan: Plan) -> str:
    """What the structure of the drivers may not lie in, where the run begins without it."""
    return (
        "What `devices` points to shares no bytes with outputs, workspaces and context.\n"
        if plan.devices
        else ""
    )


def beside_hooks(plan: Plan) -> str:
    """Whose stack is not counted."""
    return ", beside what the hooks of the devices use" if plan.devices else ""


def what_is_shared(plan: Plan) -> str:
    """What contexts of their own have in common nevertheless."""
    arrays = plan.own_workspaces
    if arrays:
        one = len(arrays) == 1
        are = "is an array" if one else "are arrays"
        return (
            f"Workspace{'' if one else 's'} {listed(arrays)} {are} of the generated code: one run at a time."
        )
    if plan.own_copies:
        return "Contexts of their own may run in threads of their own, once all parameters are set."
    return "Nothing is global and mutable: contexts of their own may run in threads of their own."


def listed(pools: Sequence[PlannedPool]) -> str:
    """`'dtcm' and 'sram'`."""
    return " and ".join(f"'{pool.c_name}'" for pool in pools)
