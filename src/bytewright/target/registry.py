"""The targets that come with Bytewright, and how a `--target` argument finds one.

A built-in target is a file of the same form as a user's. An argument that looks like a path (it has a
separator or a suffix of a target file) is a path and nothing else; any other is the name of a built-in
target, or else of a file that exists.
"""

from importlib.resources import files
from os import PathLike
from pathlib import Path

from bytewright.diagnostics import compile_error
from bytewright.target.load import load_file, load_text
from bytewright.target.mistake import closest, listing
from bytewright.target.model import Target

_FOLDER = files("bytewright.target") / "builtin"
_NAMES = sorted(e.name.removesuffix(".toml") for e in _FOLDER.iterdir() if e.name.endswith(".toml"))
# The one that is compiled for when nothing is said comes first.
BUILTIN_TARGETS: tuple[str, ...] = tuple(sorted(_NAMES, key=lambda name: name != "host"))

_FILE_SUFFIXES = (".toml", ".json")


def load_target(name_or_path: str | PathLike[str]) -> Target:
    """The built-in target of this name, or the target described in this file; a path object is always a file.

    Raises:
        CompileError: BW203 for a name that is neither, BW201 and BW202 as `load_file` does.
    """
    if not isinstance(name_or_path, str):
        return load_file(name_or_path)
    if name_or_path in BUILTIN_TARGETS:
        return load_text(
            (_FOLDER / f"{name_or_path}.toml").read_text(encoding="utf-8"), f"{name_or_path}.toml"
        )
    path = Path(name_or_path)
    if path.name != name_or_path or path.suffix in _FILE_SUFFIXES or path.is_file():
        return load_file(path)
    suggestion = closest(name_or_path, BUILTIN_TARGETS) or "a file is given by its path, such as ./board.toml"
    note = listing("built-in targets", BUILTIN_TARGETS)
    raise compile_error("BW203", f"there is no target {name_or_path!r}", (note,), suggestion)
