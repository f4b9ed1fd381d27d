"""`bytewright ops`: which operators models may use, and their limits."""

from dataclasses import asdict

import click
from rich import box
from rich.table import Table

from bytewright.cli.option_types import echo_json, json_option
from bytewright.show.console import standard_output


@click.command(short_help="List the operators that models may use.")
@json_option
def ops(as_json: bool) -> None:
    """List the TFLite operators that compile, with their types and limits."""
    from bytewright.frontends.registry import FRONTENDS

    operators = [operator for frontend in FRONTENDS.values() for operator in frontend.operators()]
    if as_json:
        echo_json([asdict(operator) for operator in operators])
        return
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("operator", no_wrap=True)
    table.add_column("types", no_wrap=True)
    table.add_column("limits")
    for operator in operators:
        table.add_row(operator.name, ", ".join(operator.types), operator.limits)
    console = standard_output()
    console.print(table)
    folded = ", ".join(name for frontend in FRONTENDS.values() for name in frontend.folded())
    console.print(f"Computed by the compiler where only shapes and constants come to them: {folded}.")
