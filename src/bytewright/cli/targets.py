"""`bytewright targets`: which targets there are, and what one of them looks like once resolved."""

from __future__ import annotations

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from bytewright.target import (
    BUILTIN_TARGETS,
    Access,
    Memory,
    Role,
    Target,
    dump,
    dump_toml,
    format_size,
    load_target,
)


@click.command(short_help="List the targets, or print one.")
@click.argument("target", metavar="[NAME|FILE]", required=False)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, in the form of a target file, and nothing else."
)
def targets(target: str | None, as_json: bool) -> None:
    """List the built-in targets, or print one target with every default filled in.

    What is printed, as TOML or as JSON, is itself a target file.
    """
    if target is not None:
        loaded = load_target(target)
        click.echo(json.dumps(dump(loaded), indent=2) if as_json else dump_toml(loaded), nl=as_json)
        return
    builtin = [load_target(name) for name in BUILTIN_TARGETS]
    if as_json:
        click.echo(json.dumps([dump(entry) for entry in builtin], indent=2))
    else:
        Console().print(_overview(builtin))


def _overview(builtin: list[Target]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("target", "memories", "workspace", "parameters"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it is")
    for entry in builtin:
        table.add_row(
            entry.name,
            "\n".join(_describe_memory(memory) for memory in entry.memories),
            "\n".join(pool.name for pool in entry.pools_of(Role.WORKSPACE)),
            "\n".join(pool.name for pool in entry.pools_of(Role.PARAMETERS)),
            entry.description,
        )
    return table


def _describe_memory(memory: Memory) -> str:
    size = "no limit" if memory.size_bytes is None else format_size(memory.size_bytes)
    return f"{memory.name} {size}{' r' if memory.access is Access.READ_ONLY else ''}"
