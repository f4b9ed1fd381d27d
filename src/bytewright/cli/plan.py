"""`bytewright plan`: the planner by itself, on a CSV file of buffers; or on a model, whose plan is shown."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from bytewright.base.input_file import require_regular
from bytewright.cli.formats import page_options
from bytewright.cli.model_options import ModelOptions, given_model_options, model_options
from bytewright.cli.option_types import PATH, echo_json, json_option, parsed_by
from bytewright.cli.plan_model import plan_model, write_plan
from bytewright.cli.progress import status_line
from bytewright.diagnostics import CompileError, compile_error
from bytewright.frontends.registry import FRONTENDS
from bytewright.plan.problem import Pool, Problem
from bytewright.plan.request import DEFAULT_NODE_BUDGET, Goal, Progress, Report
from bytewright.plan.solution import Solution
from bytewright.plan.solve import solve
from bytewright.plan.table import BufferTable, read_buffers, write_buffers
from bytewright.report.solution_view import solution_view
from bytewright.target.options import parse_capacity

POOL_NAME = "memory"


@click.command(short_help="Place the buffers of a CSV file or of a model.")
@click.argument("buffers", metavar="BUFFERS.csv|MODEL", type=PATH)
@click.option(
    "--capacity", callback=parsed_by(parse_capacity), metavar="SIZE", help="Stop at a plan of this size."
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="NODES",
    help=f"How many search nodes may be visited.  [default: {DEFAULT_NODE_BUDGET}]",
)
@click.option("-o", "output", type=PATH, metavar="OUT.csv", help="Write the offsets here.")
@model_options(of_c=False)
@json_option
@page_options
@click.pass_context
def plan(
    context: click.Context,
    buffers: Path,
    capacity: int | None,
    budget: int | None,
    output: Path | None,
    options: ModelOptions,
    as_json: bool,
) -> None:
    """Place the buffers of a CSV file in one memory, as low as possible, or those of a model in its target's pools.

    BUFFERS.csv has the columns id, lower, upper, size (lifetimes are half-open) and optionally alignment and offset (a
    fixed one). With --capacity the question is whether they fit; if they do not, the exit status is 3. A MODEL ends
    with .tflite or .bw; the options from --name on are those of compile.
    """
    if buffers.suffix in FRONTENDS:
        if capacity is not None:
            raise click.UsageError(
                "--capacity is for a CSV file; a model's pools have sizes: --resize POOL=SIZE"
            )
        if budget is not None:
            raise click.UsageError("--budget is for a CSV file")
        plan_model(buffers, options, output, as_json)
        return
    given = given_model_options(context, besides=("solver",))
    if given:
        raise click.UsageError(f"{given[0]} is for a model, whose file ends with {' or '.join(FRONTENDS)}")
    table = _read_table(buffers)
    problem = Problem(table.buffers, (Pool(POOL_NAME, capacity),))
    goal = Goal.MINIMISE if capacity is None else Goal.DECIDE
    with status_line("planning") as show:
        progress = None if show is None else _reporter(show)
        solution = solve(problem, options.compiling.solver, budget or DEFAULT_NODE_BUDGET, goal, progress)
    if not solution.has_plan:
        if as_json:
            echo_json(_as_json(solution, capacity))
        _refuse(solution)
    write_plan(
        output, partial(write_buffers, table, solution), partial(solution_view, problem, solution), [buffers]
    )
    if as_json:
        echo_json(_as_json(solution, capacity))
    else:
        click.echo(_as_text(solution, capacity))


def _refuse(solution: Solution) -> NoReturn:
    """Raises why there is no plan, with a capacity that works."""
    diagnostic, change = solution.diagnose(), solution.smallest_change
    if change is not None:
        diagnostic = replace(diagnostic, help=f"--capacity {change.fitting_bytes}")
    raise CompileError(diagnostic)


def _read_table(path: Path) -> BufferTable:
    try:
        require_regular(path)
    except OSError as error:
        raise compile_error("BW601", f"cannot read '{path}': {error.strerror}") from error
    return read_buffers(path)


def _reporter(show: Callable[[str], None]) -> Progress:
    """Shows how far the search is."""

    def report(standing: Report) -> None:
        best = "none yet" if standing.best_bytes is None else f"{standing.best_bytes} B"
        show(f"{standing.nodes} nodes, best {best}, lower bound {standing.lower_bound_bytes} B")

    return report


def _as_json(solution: Solution, capacity: int | None) -> dict[str, object]:
    answer: dict[str, object] = {
        "status": solution.status.value,
        "capacity_bytes": capacity,
        "solver": solution.statistics.solver,
        "nodes": solution.statistics.nodes,
    }
    if solution.has_plan:
        use = solution.pools[0]
        answer |= {
            "top_bytes": use.top_bytes,
            "lower_bound_bytes": use.lower_bound_bytes,
            "alignment": use.alignment,
            "offsets": {placement.buffer: placement.offset for placement in solution.placements},
        }
    else:
        change = solution.smallest_change
        answer |= {
            "infeasible_set": list(solution.infeasible_set),
            "irreducible": solution.irreducible,
            "needed_bytes": max((shortage.needed_bytes for shortage in solution.shortages), default=None),
            "fitting_bytes": None if change is None else change.fitting_bytes,
        }
    return answer


def _as_text(solution: Solution, capacity: int | None) -> str:
    use = solution.pools[0]
    bound = f"lower bound {use.lower_bound_bytes} B"
    if use.optimal:
        verdict = "optimal"
    elif capacity is not None:
        verdict = f"fits in {capacity} B, {bound}"
    else:
        gap = 100 * (use.top_bytes - use.lower_bound_bytes) / max(use.lower_bound_bytes, 1)
        verdict = f"{bound}, gap {gap:.2f} %"
    return f"{len(solution.placements)} buffers, {use.top_bytes} B: {verdict} ({solution.statistics.nodes} nodes)"
