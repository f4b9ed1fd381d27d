"""`bytewright help`: what an error means and what to do, or what a command takes."""

import re

import click

from bytewright.base.shipped import ERRORS, shipped
from bytewright.diagnostics import CODES, compile_error


def _topics(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """What a shell completes."""
    del parameter
    group = context.find_root().command
    commands = group.list_commands(context) if isinstance(group, click.Group) else []
    return [name for name in (*CODES, *commands) if name.lower().startswith(begun.lower())]


@click.command("help", short_help="Explain an error, or a command.")
@click.argument("topic", metavar="[BWxxx|COMMAND]", required=False, shell_complete=_topics)
@click.pass_context
def help_command(context: click.Context, topic: str | None) -> None:
    """Say what an error such as BW301 means and what to do, or show the help of a command."""
    parent = context.parent or context
    group = parent.command
    if topic is None:
        click.echo(parent.get_help())
    elif topic.upper() in CODES:
        click.echo(_section(topic.upper()))
    else:
        command = group.get_command(parent, topic) if isinstance(group, click.Group) else None
        if command is None:
            message = f"there is neither an error nor a command '{topic}'"
            raise compile_error(
                "BW204", message, help="bytewright help BW301; bytewright help lists commands"
            )
        with click.Context(command, info_name=topic, parent=parent) as own:
            click.echo(command.get_help(own))


def _section(code: str) -> str:
    """What docs/errors.md says of an error, headings and marks of Markdown as they are."""
    text = shipped(ERRORS).decode()
    found = re.search(rf"^### {code}: .*?(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    return f"{code}: {CODES[code]}" if found is None else found[0].removeprefix("### ").strip()
