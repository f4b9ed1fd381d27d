"""One entry as its functions are written: what they are of, and the variables before the steps that they name."""

from collections.abc import Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.codegen.arena import write_arena_resets
from bytewright.codegen.describe_rows import describe_segments
from bytewright.codegen.hand_over import contexts_passed
from bytewright.codegen.packed import write_argument_arrays
from bytewright.codegen.writer import Writer
from bytewright.record.buffers import PlannedPool
from bytewright.record.names import Names, by_entry
from bytewright.record.plan import Plan
from bytewright.target.model import Role


@dataclass(frozen=True, slots=True)
class EntryCode:
    """An entry.

    Attributes:
        module: With the entry alone.
        plan: As the entry sees it.
        names: The same.
        end: The number of the macro behind the last step.
        segments: The comment above each loop over rows, by its first step.
    """

    module: ir.Module
    plan: Plan
    names: Names
    end: int
    segments: Mapping[int, str]

    @property
    def watched(self) -> list[str]:
        """The workspaces that the macro between the steps is given."""
        return watched_workspaces(self.plan, self.names)

    def write_arguments(self, writer: Writer) -> None:
        """The variables that calls of steps are given: packed arguments, and what drivers keep."""
        write_argument_arrays(writer, self.module, self.plan, self.names)
        for name in contexts_passed(self.module):
            member = f"devices->{self.plan.devices[name].c_name}.self"
            kind = self.names.device_context_type(name)
            writer.line(f"const {kind} {self.names.device_context(name)} = {{{member}}};")


def entries_in_code(module: ir.Module, plan: Plan, names: Names) -> tuple[EntryCode, ...]:
    """Each entry of a planned module; behind its last step the macro has a number of its own."""
    segments = describe_segments(plan)
    views = zip(ir.entries_alone(module), by_entry(plan, names), plan.ends, strict=True)
    return tuple(EntryCode(alone, *view, end, segments) for alone, view, end in views)


def used_pools(plan: Plan, role: Role) -> tuple[PlannedPool, ...]:
    """The pools of a role that hold a buffer, and have an address; a blob may be a header alone."""
    pools = plan.workspaces if role is Role.WORKSPACE else plan.used_pools(role)  # state is among the first
    return tuple(pool for pool in pools if plan.buffers_in(pool.name))


def watched_workspaces(plan: Plan, names: Names) -> list[str]:
    """What the macro between the steps is given."""
    return [names.base(pool) for pool in used_pools(plan, Role.WORKSPACE)]


def write_bases(writer: Writer, plan: Plan, names: Names) -> None:
    """The variables with the addresses of pools."""
    workspaces, parameters = (used_pools(plan, role) for role in (Role.WORKSPACE, Role.PARAMETERS))
    touched = _touched_pools(plan)  # what states begin with no step reads
    for pool in (*workspaces, *(pool for pool in parameters if pool.name in touched)):
        constness = "const " if pool in parameters else ""
        source = names.pool_address(pool)
        writer.line(f"{constness}uint8_t *const {names.base(pool)} = {source};")


def _touched_pools(plan: Plan) -> set[str]:
    """The names of the pools that steps touch."""
    return {plan.buffers[name].place.name for step in plan.steps for name in step.touched}


def write_variables_of_plan(writer: Writer, plan: Plan, names: Names) -> None:
    """What a run function has before its steps and follows from the plan: addresses of pools, and the arenas' begin."""
    write_bases(writer, plan, names)
    touched = _touched_pools(plan)
    for pool in used_pools(plan, Role.WORKSPACE):
        if pool.name not in touched:  # an input that no step reads, say; the macro may have no text
            writer.line(f"(void){names.base(pool)};")
    write_arena_resets(writer, plan, names)
