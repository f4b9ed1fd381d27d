"""`bytewright example`: a model to begin with, and samples of it."""

from pathlib import Path

import click

from bytewright.base.shipped import EXAMPLES, shipped
from bytewright.cli.option_types import PATH
from bytewright.cli.write_files import make_folder, write_files
from bytewright.diagnostics import compile_error


@click.command(short_help="Write an example's model and samples.")
@click.argument("name", type=click.Choice(list(EXAMPLES)))
@click.option(
    "-o", "--output", "directory", type=PATH, default=Path(), metavar="DIR", help="Where to.  [default: here]"
)
def example(name: str, directory: Path) -> None:
    """Write the files of an example: a quantised model, and samples with labels."""
    contents = [(directory / Path(path).name, shipped(path)) for path in EXAMPLES[name]]
    for path, content in contents:
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise compile_error("BW206", f"cannot write '{path}': there is another file of this name")
    make_folder(directory)
    write_files(contents)
    model, samples = (path for path, _ in contents)
    click.echo(f"{model}\n{samples}")
    click.echo(f"next: bytewright compile {model} -o {name}_c --target mps3-an547")
