"""`bytewright ops`: which operators models may use, and their limits; beside another library's."""

from dataclasses import asdict

import click
from rich import box
from rich.table import Table

from bytewright.cli.option_types import echo_json, json_option
from bytewright.frontends.registry import LIBRARIES, ComparedOperator, Library
from bytewright.show.console import print_grid, standard_output


@click.command(short_help="List the operators that models may use.")
@click.option(
    "--against",
    type=click.Choice(sorted(LIBRARIES)),
    help="List another library's operators, and which are missing.",
)
@json_option
def ops(against: str | None, as_json: bool) -> None:
    """List the TFLite operators that compile, with their types and limits."""
    from bytewright.frontends.registry import FRONTENDS

    if against is not None:
        library = LIBRARIES[against]()
        echo_json(asdict(library)) if as_json else _show_library(library)
        return
    operators = [operator for frontend in FRONTENDS.values() for operator in frontend.operators()]
    if as_json:
        echo_json([asdict(operator) for operator in operators])
        return
    table = _table("types", "limits")
    for operator in operators:
        table.add_row(operator.name, ", ".join(operator.types), operator.limits)
    console = standard_output()
    print_grid(console, table)
    folded = ", ".join(name for frontend in FRONTENDS.values() for name in frontend.folded())
    console.print(f"Computed by the compiler where only shapes and constants come to them: {folded}.")


def _table(types: str, last: str) -> Table:
    """A table with a row for each operator."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("operator", no_wrap=True)
    table.add_column(types, no_wrap=True)
    table.add_column(last)
    return table


def _show_library(library: Library) -> None:
    table = _table(f"types of {library.title}", "not compiled")
    for operator in library.operators:
        table.add_row(operator.name, ", ".join(operator.types) or "-", _lacking(operator))
    console = standard_output()
    print_grid(console, table)
    operators = library.operators
    num_known = sum(operator.is_compiled or operator.is_folded for operator in operators)
    num_whole = sum(not operator.missing_types and operator.is_compiled for operator in operators)
    console.print(
        f"{len(operators)} operators, {num_known} of them known, {num_whole} for all of their types. "
        f"From {library.source}, {library.date}."
    )


def _lacking(operator: ComparedOperator) -> str:
    """What Bytewright does not compile of an operator, in words."""
    if operator.is_compiled:
        wrong = [f"{each}, which it computes wrongly" for each in operator.wrong_types]
        return ", ".join((*operator.missing_types, *wrong))
    return "but where shapes and constants alone come to it" if operator.is_folded else "the operator"
