"""The configurations of a sweep: every model with every target, every choice of options, and every size of pools.

Configurations that differ in sizes of pools and stacks alone make up a group, because all stages before storage are the
same for them. Each has a key, which is a digest of all that its result depends on.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, cast

from bytewright import __version__
from bytewright.base.input_file import read_input
from bytewright.diagnostics import compile_error
from bytewright.options import DECLARATIONS, Options, options_text, read_arguments
from bytewright.target.dump import dump
from bytewright.target.model import Target
from bytewright.target.registry import load_target
from bytewright.target.size import SizeError, format_size, parse_size

MOST_CONFIGURATIONS = 100_000
_TABLES = frozenset({"models", "targets", "options", "sizes", "measure"})
_RANGE = frozenset({"from", "to", "step"})


@dataclass(frozen=True, slots=True)
class Configuration:
    """One compile.

    Attributes:
        model: The file.
        target: Before the options.
        options: What is asked for.
        chosen: The options as they are written, for people.
        key: What its result is found by.
    """

    model: Path
    target: Target
    options: Options
    chosen: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """All configurations, in the order of the file.

    Attributes:
        measure: Whether each that fits is also run on its board in QEMU.
    """

    configurations: tuple[Configuration, ...]
    measure: bool = False


def read_sweep(path: Path) -> Sweep:
    """The sweep that a TOML file describes; paths in it begin at its folder.

    Raises:
        CompileError: BW606 if it cannot be read or is none, BW203 and such for targets.
    """
    try:
        document = tomllib.loads(read_input(path).decode("utf-8"))
    except OSError as error:
        raise _malformed(f"'{path}' cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _malformed(f"'{path}' cannot be read: {error}") from error
    unknown = sorted({*document} - _TABLES)
    if unknown:
        raise _malformed(f"'{path}' has '{unknown[0]}', which is none of {', '.join(sorted(_TABLES))}")
    folder = path.absolute().parent
    options = _table(document, "options")
    sizes = {f"resize {pool}": _sizes(pool, given) for pool, given in _table(document, "sizes").items()}
    targets = [_in_folder(folder, name) for name in _texts(document.get("targets", ["host"]), "targets")]
    models = [folder / name for name in _texts(document.get("models"), "models")]
    return sweep_of(models, targets, {**options, **sizes}, measure=document.get("measure") is True)


def sweep_of(
    models: Sequence[Path],
    targets: Sequence[str | Target],
    choices: Mapping[str, object],
    *,
    measure: bool = False,
) -> Sweep:
    """Every model with every target and every choice.

    Args:
        models: Files.
        targets: As `bytewright.compile` takes them.
        choices: By the name of an argument of `bytewright.compile`, the values to try; `resize POOL` for the sizes of
            one pool.
        measure: Whether each that fits is also run in QEMU.

    Raises:
        CompileError: BW606 for choices that are none, or too many of them; what loading targets raises.
    """
    known = {declaration.name for declaration in DECLARATIONS} - {"name"}
    for name in choices:
        if name.partition(" ")[0] not in known:
            raise _malformed(f"a sweep has no option '{name}'", note=f"options: {', '.join(sorted(known))}")
    axes = [[(name, value) for value in _values(name, given)] for name, given in choices.items()]
    num_configurations = len(models) * len(targets) * prod(map(len, axes))
    if not 0 < num_configurations <= MOST_CONFIGURATIONS:
        raise _malformed(
            f"the sweep has {num_configurations} configurations, and may have 1 to {MOST_CONFIGURATIONS}"
        )
    loaded = [target if isinstance(target, Target) else load_target(target) for target in targets]
    digests = {model: _digest_of(model) for model in models}
    asked = [_asked(values) for values in product(*axes)]
    found = [
        Configuration(model, target, options, options_text(options), _key(digest, target, options, measure))
        for model, digest in digests.items()
        for target in loaded
        for options in asked
    ]
    return Sweep(tuple({each.key: each for each in found}.values()), measure)


def _asked(values: Iterable[tuple[str, object]]) -> Options:
    """The options of one configuration.

    Raises:
        CompileError: BW606 for a value that an option may not have.
    """
    arguments: dict[str, Any] = {}
    for name, value in values:
        option, _, pool = name.partition(" ")
        if pool:
            arguments.setdefault(option, []).append(f"{pool}={value}")
        else:
            arguments[option] = value
    try:
        return read_arguments(arguments)
    except ValueError as error:
        raise _malformed(str(error)) from error


def _key(digest: str, target: Target, options: Options, measure: bool) -> str:
    described = json.dumps([__version__, digest, dump(target), options_text(options), measure])
    return hashlib.sha256(described.encode()).hexdigest()[:24]


def _digest_of(model: Path) -> str:
    """Of the bytes of a model, and of the constants that may lie beside it.

    Raises:
        CompileError: BW606 if it cannot be read.
    """
    beside = model.with_suffix(".npz")
    files = [model, beside] if beside.is_file() else [model]
    try:
        return hashlib.sha256(b"".join(map(read_input, files))).hexdigest()
    except OSError as error:
        raise _malformed(f"model '{model}' cannot be read: {error.strerror or error}") from error


def _values(name: str, given: object) -> Sequence[object]:
    if not isinstance(given, list | tuple) or not given:
        raise _malformed(f"the choices of '{name}' are {given!r}, not a list of one or more")
    return cast("Sequence[object]", given)


def _sizes(pool: str, given: object) -> list[str]:
    """Sizes of a pool: a list of them, or a range with both ends.

    Raises:
        CompileError: BW606.
    """
    if not isinstance(given, dict):
        return [str(size) for size in _values(pool, given)]
    limits = cast("dict[str, object]", given)
    if sorted(limits) != sorted(_RANGE):
        raise _malformed(f"the sizes of '{pool}' are neither a list nor a table of from, to and step")
    try:
        first, last, step = (parse_size(limits[name]) for name in ("from", "to", "step"))
    except SizeError as error:
        raise _malformed(f"the sizes of '{pool}': {error}") from error
    if (last - first) // step >= MOST_CONFIGURATIONS:
        raise _malformed(f"the sizes of '{pool}' are more than {MOST_CONFIGURATIONS}")
    return [format_size(size) for size in range(first, last + 1, step)]


def _table(document: Mapping[str, object], name: str) -> dict[str, object]:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise _malformed(f"'{name}' is {found!r}, not a table")
    return cast("dict[str, object]", found)


def _texts(given: object, name: str) -> Iterator[str]:
    for text in _values(name, given):
        if not isinstance(text, str):
            raise _malformed(f"a member of '{name}' is {text!r}, not a text")
        yield text


def _in_folder(folder: Path, name: str) -> str:
    """A target's file from the folder; a name stays one."""
    path = folder / name
    return str(path) if "/" in name or path.is_file() else name


def _malformed(message: str, note: str | None = None) -> Exception:
    return compile_error(
        "BW606", message, () if note is None else (note,), help="bytewright help BW606 has an example"
    )
