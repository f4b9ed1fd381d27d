"""`bytewright serial`: the program that a board runs a bundle with for `--on serial:PORT`."""

from pathlib import Path

import click

from bytewright.cli.option_types import PATH
from bytewright.cli.write_files import make_folder, write_files


@click.command(short_help="Write what a board runs a bundle with, for --on serial:PORT.")
@click.argument("directory", type=PATH, metavar="DIR")
@click.option(
    "-o", "--output", "folder", type=PATH, required=True, metavar="FOLDER", help="Where to write the C."
)
def serial(directory: Path, folder: Path) -> None:
    """Write the C that a board runs DIR, a bundle, with: `run`, `profile` and `validate` talk to it.

    The application brings three functions: to get a byte of a serial line, to put one, and to read a counter of cycles.
    """
    from bytewright.execute.description import read_bundle
    from bytewright.execute.serial.source import serial_files

    bundle = read_bundle(directory)
    contents = [(folder / name, text) for name, text in serial_files(bundle).items()]
    make_folder(folder)
    write_files(contents, [directory / path for path in bundle.files])
    click.echo("\n".join(str(path) for path, _ in contents))
    model = bundle.plan.model
    click.echo(
        f"next: call {model}_serial from the application; then bytewright run {directory} --on serial:PORT"
    )
