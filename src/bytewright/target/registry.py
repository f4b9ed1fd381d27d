"""The targets that come with Bytewright, and how a `--target` argument finds one.

A built-in target is a file of the same form as a user's. An argument that looks like a path (it has a
separator or a suffix of a target file) is a path and nothing else; any other is the name of a built-in
target, or else of a file that exists.
"""

from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path

from bytewright.diagnostics import compile_error
from bytewright.target.isa.find import find_isa
from bytewright.target.isa.this_machine import Machine, this_machine
from bytewright.target.load import load_file, load_text
from bytewright.target.mistake import closest, listing
from bytewright.target.model import Target

_FOLDER = files("bytewright.target") / "builtin"
_NAMES = sorted(e.name.removesuffix(".toml") for e in _FOLDER.iterdir() if e.name.endswith(".toml"))
# The one that is compiled for when nothing is said comes first.
BUILTIN_TARGETS: tuple[str, ...] = tuple(sorted(_NAMES, key=lambda name: name != "host"))

NATIVE = "native"  # the name of whichever suits the machine at hand

_FILE_SUFFIXES = (".toml", ".json")


def load_target(name_or_path: str | PathLike[str]) -> Target:
    """The built-in target of this name, or the target described in this file; a path object is always a file.

    `native` is the target that suits the machine at hand best, under its own name.

    Raises:
        CompileError: BW203 for a name that is neither, BW201 and BW202 as `load_file` does.
    """
    if not isinstance(name_or_path, str):
        return load_file(name_or_path)
    if name_or_path == NATIVE:
        return native_target()
    if name_or_path in BUILTIN_TARGETS:
        return _builtin(name_or_path)
    path = Path(name_or_path)
    if path.name != name_or_path or path.suffix in _FILE_SUFFIXES or path.is_file():
        return load_file(path)
    suggestion = (
        _with_core(name_or_path)
        or closest(name_or_path, BUILTIN_TARGETS)
        or "a file is given by its path, such as ./board.toml"
    )
    note = listing("built-in targets", (*BUILTIN_TARGETS, NATIVE))
    raise compile_error("BW203", f"there is no target {name_or_path!r}", (note,), suggestion)


def _with_core(name: str) -> str | None:
    """What to give for the name of an instruction set, which is not that of a target; None if it is no such name."""
    isa = find_isa(name)
    if isa is None or isa.accelerator:
        return None
    found = [t for t in BUILTIN_TARGETS if isa in (device.isa for device in _builtin(t).devices)]
    others = f"`bytewright targets import board.ld --isa {isa.name} -o board.toml` makes a target of a linker script"
    return f"give {' or '.join(found)}, which has this core; {others}" if found else others


def native_target(machine: Machine | None = None) -> Target:
    """The built-in target for which a machine, the one at hand, has most of what kernels may use; else `host`."""
    machine = machine or this_machine()
    targets = [_builtin(name) for name in BUILTIN_TARGETS]
    suited = [
        target
        for target in targets
        if machine.executes(target.default_device.isa) and not machine.lacks(target.default_device.isa)
    ]
    return max((targets[0], *suited), key=lambda target: len(target.default_device.isa.features))


@cache
def _builtin(name: str) -> Target:
    return load_text((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")
