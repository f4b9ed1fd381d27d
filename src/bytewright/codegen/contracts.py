"""The prototypes in `<model>.h`, each below its contract: what it does, shares, refuses and returns."""

from __future__ import annotations

from bytewright import ir
from bytewright.codegen.arena import (
    write_arena_prototypes,
)
from bytewright.codegen.checks import set_workspaces_head
from bytewright.codegen.forms import form_of
from bytewright.codegen.ports import address_head, described
from bytewright.codegen.run_contracts import listed, returns
from bytewright.codegen.set_parameters import set_parameters_head, verify_parameters_head
from bytewright.codegen.state import reset_head, state_contract
from bytewright.codegen.writer import Writer
from bytewright.record.buffers import PlannedPool
from bytewright.record.names import (
    Names,
    by_entry,
)
from bytewright.record.plan import Plan


def write_functions(writer: Writer, plan: Plan, names: Names) -> None:
    """The prototypes of all functions of the model, in the order in which an application calls them."""
    if plan.caller_workspaces:
        writer.prototype(
            "Lends the workspaces to the context until the next call. Refuses memory that is NULL, too small,\n"
            "misaligned, overlapping, or outside of the target's memory; then the context is as it was."
            f"{' What survives runs has to be reset then.' if plan.states else ''}"
            f"{_never_shared(plan.caller_parameters, 'parameters')}\n"
            f"{returns(names, ('NULL', 'SIZE', 'ALIGN', 'RANGE', 'OVERLAP'))}",
            set_workspaces_head(names),
        )
    if plan.set_parameters:
        writer.prototype(_parameters_contract(plan, names), set_parameters_head(plan, names))
        writer.prototype(
            "Compares every byte of the parameters with its hash, where the model reads it.\n"
            f"{returns(names, ('NULL', 'NOT_SET', 'HASH'))}",
            verify_parameters_head(names),
        )
    if plan.states:
        writer.prototype(
            f"{state_contract(plan, names)}\n{returns(names, ('NULL', 'NOT_SET'))}", reset_head(names)
        )
    if plan.io_in_workspace:
        _write_address_prototypes(writer, plan, names)
    write_arena_prototypes(writer, plan, names)
    for alone, own in by_entry(plan, names):
        form_of(alone).write_prototypes(writer, alone, own)


def _never_shared(pools: tuple[PlannedPool, ...], what: str) -> str:
    """Memory that the context has already counts as overlapping; nothing if there is none."""
    return f"\nOverlapping is also what meets {what} that the context has." if pools else ""


def _parameters_contract(plan: Plan, names: Names) -> str:
    """What `<model>_set_parameters` does with each kind of pool."""
    lines: list[str] = []
    copied = plan.caller_copies
    lent = [pool for pool in plan.caller_parameters if not pool.is_copied]
    if lent:
        lines.append(f"Lends {listed(lent)} to the context until the next call.")
    if copied:
        lines.append(
            f"Copies {listed(copied)} to the memory that is lent for that until the next call; a blob that was copied "
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
            f"Copies {listed(plan.own_copies)} to an array of the generated code, which all contexts share:\n"
            "one call at a time, and none while a context runs."
        )
    errors = ["NULL"]
    if lent or copied:
        errors += [*(["SIZE"] if copied else []), "ALIGN", "RANGE", "OVERLAP", "HASH"]
    lines.append(returns(names, errors))
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
