"""`bytewright targets`: which targets there are, what one of them looks like once resolved, and importing more."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich import box
from rich.table import Table

from bytewright.base.option import OptionSyntaxError
from bytewright.cli.option_types import PATH, completed_target, echo_json, parsed_by
from bytewright.cli.write_files import write_files
from bytewright.show.console import print_grid, standard_output
from bytewright.target import (
    BUILTIN_TARGETS,
    Memory,
    MemoryAccess,
    Role,
    Target,
    dump,
    dump_toml,
    load_target,
)
from bytewright.target.size import format_size

_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, in the form of a target file, and nothing else."
)


class _Targets(click.Group):
    """A group in which a first word that is not `import` is the name of a target, to be printed."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command `import`, or `show` with all words as they stand."""
        if args[0] == "import":
            return super().resolve_command(ctx, args)
        return "show", self.commands["show"], args

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The command, and names of targets."""
        return [*super().shell_complete(ctx, incomplete), *completed_target(ctx, self.params[0], incomplete)]


@click.group(
    cls=_Targets,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="List the targets, print one, or import one.",
    subcommand_metavar="[NAME|FILE | import FILE -o TOML]",
)
@_json_option
@click.pass_context
def targets(context: click.Context, as_json: bool) -> None:
    """List the built-in targets, or print one target with every default filled in.

    What is printed, as TOML or as JSON, is itself a target file.
    """
    if context.invoked_subcommand is None:
        _print_list(as_json)


@targets.command("show", hidden=True)
@click.argument("target", metavar="NAME|FILE", shell_complete=completed_target)
@_json_option
@click.pass_context
def _show(context: click.Context, target: str, as_json: bool) -> None:
    """Print one target."""
    asked_before = context.parent is not None and bool(context.parent.params.get("as_json"))
    loaded = load_target(target)
    if as_json or asked_before:
        echo_json(dump(loaded))
    else:
        click.echo(dump_toml(loaded), nl=False)


def _matching(pattern: str, what: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """An option's callback for texts of a pattern; the message calls them `what`."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise OptionSyntaxError(f"{text!r} is not {what}")
        return text

    return parsed_by(parse)


def _cost(text: str) -> Any:
    from bytewright.target.importers import parse_cost

    return parse_cost(text)


_isa_name = _matching(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "the name of an instruction set, such as cortex-m55")
_definition = _matching(r"[A-Za-z_.$][\w.$]*=[^\s=]+", "NAME=VALUE")


@targets.command("import", short_help="Make a target file from a linker script or a devicetree.")
@click.argument("file", type=PATH)
@click.option("-o", "output", type=PATH, metavar="TOML", help="Write the target here, not to the terminal.")
@click.option("--isa", callback=_isa_name, help="The processor, such as cortex-m7, if the file does not say.")
@click.option("--name", help="The target's name.  [default: as the file says, else its stem]")
@click.option("-I", "--include", multiple=True, type=PATH, metavar="DIR", help="Look up included files here.")
@click.option(
    "-D",
    "--define",
    multiple=True,
    callback=_definition,
    metavar="NAME=VALUE",
    help="A symbol that the build defines.",
)
@click.option(
    "--cost",
    "costs",
    multiple=True,
    callback=parsed_by(_cost),
    metavar="MEMORY=READ[/WRITE]",
    help="What a byte of a memory costs, relative to the others.  [default: 1]",
)
def _import(
    file: Path,
    output: Path | None,
    isa: str | None,
    name: str | None,
    include: tuple[Path, ...],
    define: tuple[str, ...],
    costs: tuple[Any, ...],
) -> None:
    """Make a target file from FILE: a GNU linker script or a Zephyr devicetree.

    The linker evaluates the script's MEMORY block. Comments in the target file say what was assumed.
    """
    from bytewright.target.importers import ImportOptions, import_target

    imported = import_target(file, ImportOptions(isa, name, include, define, costs))
    for remark in imported.remarks:
        click.echo(f"note: {remark}", err=True)
    if output is None:
        click.echo(imported.text, nl=False)
        return
    write_files([(output, imported.text)], [file])


def _print_list(as_json: bool) -> None:
    builtin = [load_target(name) for name in BUILTIN_TARGETS]
    if as_json:
        echo_json([dump(entry) for entry in builtin])
    else:
        print_grid(standard_output(), _overview(builtin))


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
    return f"{memory.name} {size}{' r' if memory.access is MemoryAccess.READ_ONLY else ''}"
