"""Files that come with the package: in its folder where it is installed, else in the tree that it runs from."""

from importlib.resources import files
from pathlib import Path

ERRORS = "docs/errors.md"
EXAMPLES: dict[str, tuple[str, ...]] = {
    "digits": ("examples/digits/digits.tflite", "examples/digits/heldout.npz"),
}
SHIPPED = (ERRORS, *(path for paths in EXAMPLES.values() for path in paths))  # setup.py has the same


def shipped(path: str) -> bytes:
    """The content of one of `SHIPPED`.

    Raises:
        OSError: It is neither there nor there.
    """
    installed = files("bytewright").joinpath("shipped", *path.split("/"))
    if installed.is_file():
        return installed.read_bytes()
    return (Path(__file__).resolve().parents[3] / path).read_bytes()
