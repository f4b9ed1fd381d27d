"""The prototypes in `<model>.h`, each below its contract: what it does, shares, refuses and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.codegen.arena import (
    write_arena_prototypes,
)
from bytewright.codegen.by_rows import begin_head, finish_head, image_of, push_rows_head
from bytewright.codegen.checks import set_workspaces_head
from bytewright.codegen.ports import address_head, run_head, strict_alignments
from bytewright.codegen.set_parameters import set_parameters_head, verify_parameters_head
from bytewright.codegen.state import failure_contract, reset_head, state_contract
from bytewright.codegen.writer import Writer
from bytewright.record.buffers import PlannedPool
from bytewright.record.entries import EntryForm, PlannedTensor
from bytewright.record.names import (
    Names,
    by_entry,
)
from bytewright.record.plan import Plan


def described(tensor: PlannedTensor) -> str:
    """`i8[1,49,10,1], scale 0.5847, zero point 83`."""
    text = f"{tensor.dtype.value}[{','.join(map(str, tensor.extents))}]"
    if tensor.scale is not None:
        text += f", scale {tensor.scale:.9g}, zero point {tensor.zero_point}"
    return text


def write_functions(writer: Writer, plan: Plan, names: Names) -> None:
    """The prototypes of all functions of the model, in the order in which an application calls them."""
    if plan.caller_workspaces:
        writer.prototype(
            "Lends the workspaces to the context until the next call. Refuses memory that is NULL, too small,\n"
            "misaligned, overlapping, or outside of the target's memory; then the context is as it was."
            f"{' What survives runs has to be reset then.' if plan.states else ''}"
            f"{_never_shared(plan.caller_parameters, 'parameters')}\n"
            f"{_returns(names, ('NULL', 'SIZE', 'ALIGN', 'RANGE', 'OVERLAP'))}",
            set_workspaces_head(names),
        )
    if plan.set_parameters:
        writer.prototype(_parameters_contract(plan, names), set_parameters_head(plan, names))
        writer.prototype(
            "Compares every byte of the parameters with its hash, where the model reads it.\n"
            f"{_returns(names, ('NULL', 'NOT_SET', 'HASH'))}",
            verify_parameters_head(names),
        )
    if plan.states:
        writer.prototype(
            f"{state_contract(plan, names)}\n{_returns(names, ('NULL', 'NOT_SET'))}", reset_head(names)
        )
    if plan.io_in_workspace:
        _write_address_prototypes(writer, plan, names)
    write_arena_prototypes(writer, plan, names)
    for alone, own in by_entry(plan, names):
        _PROTOTYPES[plan.form](writer, alone, own)


def _write_prototype_of_run(writer: Writer, plan: Plan, names: Names) -> None:
    """The function that runs an entry."""
    if plan.io_in_workspace:
        contract = (
            f"{_what_runs(plan)} on the inputs in the workspace, which it may overwrite: write them before each "
            "run.\nOutputs hold until the next run, or until inputs are written: the two may share bytes.\n"
        )
    else:
        what = (
            "Outputs and workspaces share no bytes with each other, with inputs, with parameters, or with what the "
            "arguments point to"
        )
        contract = f"{_what_runs(plan)}. {what}. Inputs are not changed.\n"
    writer.prototype(
        f"{contract}{_what_extents_mean(plan, names)}{_what_ends_loops(plan)}{_what_devices_do(plan)}"
        f"{failure_contract(plan)}"
        f"At most {names.stack_size} bytes of stack are used{_beside_hooks(plan)}.\n"
        f"{_what_is_shared(plan)}\n{_returns(names, _errors_of_a_run(plan))}",
        run_head(plan, names),
    )


def _write_prototypes_of_rows(writer: Writer, plan: Plan, names: Names) -> None:
    """The functions that stand for the run where the input comes row by row."""
    image = image_of(plan)
    own = _errors_of_a_run(plan)
    of_steps = [error for error in own if error in ("NO_MEMORY", "ORDER", "EXTERNAL")]
    of_devices = ["OVERLAP", "RANGE", "DEVICE"] if plan.devices else []
    of_rows = ["ALIGN"] if image.dtype.size_bytes > 1 else []
    of_outputs = ["ALIGN"] if any(tensor.dtype.size_bytes > 1 for tensor in plan.outputs) else []
    used = f"At most {names.stack_size} bytes of stack are used"
    stack = f"{used}."
    writer.prototype(
        "Begins an inference, whatever the one before came to. Outputs and workspaces share no bytes with each other, "
        "with parameters, with the context, or with what the argument points to; they belong to the inference until "
        f"it is finished.\n{stack}\n{_what_is_shared(plan)}\n"
        f"{_returns(names, [*_without(own, 'ALIGN', 'DEVICE', *of_steps), *of_outputs, *of_steps])}",
        begin_head(plan, names),
    )
    writer.prototype(
        f"Takes the next rows of input '{image.c_name}', {described(image)}, from the top: {image.row_bytes} bytes "
        f"each, {names.input_rows(image)} in all, in as many calls as the application likes. Computes what they let be "
        "computed; the rows need not be kept. They share no bytes with outputs, workspaces and context.\n"
        f"{stack} An error of the rows changes nothing: others may be pushed.\n"
        f"{_returns(names, ['NULL', 'NOT_BEGUN', 'ROWS', *of_rows, 'OVERLAP', 'RANGE', *of_steps])}",
        push_rows_head(plan, names),
    )
    writer.prototype(
        "Computes the rest, when all rows were pushed; the outputs are there afterwards.\n"
        f"{_what_drivers_are_apart_from(plan)}"
        f"{_what_devices_do(plan)}{failure_contract(plan)}{used}{_beside_hooks(plan)}.\n"
        f"{_returns(names, ['NULL', 'NOT_BEGUN', 'INCOMPLETE', *of_steps, *of_devices])}",
        finish_head(plan, names),
    )


_PROTOTYPES: Mapping[EntryForm, Callable[[Writer, Plan, Names], None]] = FrozenMapping(
    {EntryForm.RUN: _write_prototype_of_run, EntryForm.ROWS: _write_prototypes_of_rows}
)


def _without(errors: Sequence[str], *left_out: str) -> list[str]:
    return [error for error in errors if error not in left_out]


def _returns(names: Names, errors: Sequence[str]) -> str:
    """What a function returns, as the last line of its contract."""
    *others, last = errors
    text = f"{', '.join(others)} or {last}" if others else last
    return f"Returns {names.ok}, or the error {text}."


def _errors_of_a_run(plan: Plan) -> list[str]:
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
    }
    return [error for error, possible in is_possible.items() if possible]


def _what_runs(plan: Plan) -> str:
    samples = " and ".join(f"'{symbol.name}' samples" for symbol in plan.symbols if _is_batch(plan, symbol))
    of_samples = f" of {samples}" if samples else ""
    if plan.stated_entries:
        return f"Runs entry '{plan.entries[0].name}' once{of_samples.replace(' of ', ' on ', 1)}"
    return f"Runs one inference{of_samples}"


def _is_batch(plan: Plan, symbol: ir.Symbol) -> bool:
    """Whether an extent of the run counts samples: inputs and outputs hold them one after another."""
    return all(tensor.extents[:1] == (symbol.name,) for tensor in (*plan.inputs, *plan.outputs))


def _what_extents_mean(plan: Plan, names: Names) -> str:
    """The range of each extent that the run is given, and what of inputs and outputs it is about."""
    lines: list[str] = []
    for symbol in plan.symbols:
        line = f"'{symbol.name}' is {symbol.lower} to {names.bound(symbol.name)}"
        if _is_batch(plan, symbol):
            line += "; inputs and outputs hold so many samples, and need no bytes for more"
        lines.append(f"{line}.\n")
    return "".join(lines)


def _what_ends_loops(plan: Plan) -> str:
    """The most turns of loops whose conditions the run computes."""
    bounds = [option.removeprefix("--bound ") for option in plan.options if option.startswith("--bound ")]
    return (
        f"Loops end after so many turns, whatever their conditions say: {', '.join(bounds)}.\n"
        if bounds
        else ""
    )


def _what_devices_do(plan: Plan) -> str:
    """How a run treats the devices."""
    if not plan.devices:
        return ""
    return (
        "The devices are in use from its begin to its end: each is activated and opened before the first kernel, and "
        "closed and deactivated, in reverse, however the run ends.\n"
    )


def _what_drivers_are_apart_from(plan: Plan) -> str:
    """What the structure of the drivers may not lie in, where the run begins without it."""
    return (
        "What `devices` points to shares no bytes with outputs, workspaces and context.\n"
        if plan.devices
        else ""
    )


def _beside_hooks(plan: Plan) -> str:
    """Whose stack is not counted."""
    return ", beside what the hooks of the devices use" if plan.devices else ""


def _what_is_shared(plan: Plan) -> str:
    """What contexts of their own have in common nevertheless."""
    arrays = plan.own_workspaces
    if arrays:
        one = len(arrays) == 1
        are = "is an array" if one else "are arrays"
        return (
            f"Workspace{'' if one else 's'} {_listed(arrays)} {are} of the generated code: one run at a time."
        )
    if plan.own_copies:
        return "Contexts of their own may run in threads of their own, once all parameters are set."
    return "Nothing is global and mutable: contexts of their own may run in threads of their own."


def _listed(pools: Sequence[PlannedPool]) -> str:
    return " and ".join(f"'{pool.c_name}'" for pool in pools)


def _never_shared(pools: tuple[PlannedPool, ...], what: str) -> str:
    """Memory that the context has already counts as overlapping; nothing if there is none."""
    return f"\nOverlapping is also what meets {what} that the context has." if pools else ""


def _parameters_contract(plan: Plan, names: Names) -> str:
    """What `<model>_set_parameters` does with each kind of pool."""
    lines: list[str] = []
    copied = plan.caller_copies
    lent = [pool for pool in plan.caller_parameters if not pool.is_copied]
    if lent:
        lines.append(f"Lends {_listed(lent)} to the context until the next call.")
    if copied:
        lines.append(
            f"Copies {_listed(copied)} to the memory that is lent for that until the next call; a blob that was copied "
            "may go."
        )
    if lent or copied:
        small, nothing = (" too small,", " nothing was copied, and") if copied else ("", "")
        lines.append(
            f"Refuses memory that is NULL,{small} misaligned, overlapping, or outside of the target's memory, and a "
            f"blob whose header of 32 bytes is another one; then{nothing} the context is as it was."
            f"{_never_shared(plan.caller_workspaces, 'workspaces')}"
        )
    if plan.own_copies:
        lines.append(
            f"Copies {_listed(plan.own_copies)} to an array of the generated code, which all contexts share:\n"
            "one call at a time, and none while a context runs."
        )
    errors = ["NULL"]
    if lent or copied:
        errors += [*(["SIZE"] if copied else []), "ALIGN", "RANGE", "OVERLAP", "HASH"]
    lines.append(_returns(names, errors))
    return "\n".join(lines)


def _write_address_prototypes(writer: Writer, plan: Plan, names: Names) -> None:
    contracts = {
        ir.Border.INPUT: "The application writes it before each run, in any order with others.",
        ir.Border.OUTPUT: "The application reads it after a run and before it writes inputs.",
    }
    for border, contract in contracts.items():
        for tensor in plan.tensors(border):
            set_before = (
                f"NULL until {names.set_workspaces} has succeeded."
                if plan.pools[plan.buffers[tensor.buffer].place.name].is_caller
                else "NULL only for a context that is NULL."
            )
            where = f"Where {border.value} '{tensor.c_name}' lies: {described(tensor)}."
            returns = f"Returns its address; {set_before}"
            writer.prototype(f"{where}\n{contract}\n{returns}", address_head(names, border, tensor))
