"""A compiled model as a Python value: its plan, its files, and the means to run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bytewright.bundle.write import write_bundle
from bytewright.codegen.interface import Embedding
from bytewright.execute.build import BuildOptions
from bytewright.execute.host import HostModel
from bytewright.execute.tools import build_folder
from bytewright.frozen_mapping import FrozenMapping
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.pipeline import Progress, compile_model
from bytewright.plan.solve import find_solver
from bytewright.plan_file import Plan, plan_of
from bytewright.storage.pin_buffers import parse_pin_option
from bytewright.target import (
    OptionSyntaxError,
    Overrides,
    Target,
    apply_overrides,
    load_target,
    parse_max_stack_alloca_size,
    parse_max_stack_size,
    parse_pool_option,
    parse_provider_option,
    parse_resize_option,
)

Array = np.ndarray[Any, Any]
_Option = TypeVar("_Option")
_Choice = TypeVar("_Choice", bound=Enum)


@dataclass(frozen=True, repr=False)
class CompiledModel:
    """What `bytewright.compile` returns. Nothing is on disk until `write`.

    Attributes:
        plan: Where every buffer lies, with the evidence.
        files: Path in the bundle -> content.
        sources: C files of the application, with functions that the model calls; for `run` alone.
    """

    plan: Plan
    files: Mapping[str, bytes]
    sources: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"CompiledModel({self.plan.model!r} for {self.plan.target}, {len(self.files)} files)"

    def __getstate__(self) -> dict[str, object]:
        """Without the compiled library, which a copy builds for itself when it runs."""
        return {"plan": self.plan, "files": self.files, "sources": self.sources}

    def with_sources(self, *sources: str | PathLike[str]) -> CompiledModel:
        """The same model, run with C files of the application that define what it calls."""
        return CompiledModel(self.plan, self.files, tuple(Path(source).absolute() for source in sources))

    def write(self, directory: str | PathLike[str], *, force: bool = False) -> Path:
        """Writes the bundle into a new or empty folder, or in place of an older bundle; returns the folder.

        Args:
            directory: Other files in it stay.
            force: Replaces files of the older bundle that were edited, too.

        Raises:
            CompileError: BW206; then the folder is as it was.
        """
        write_bundle(self.files, directory, force=force)
        return Path(directory)

    def run(self, *inputs: Array) -> Array | tuple[Array, ...]:
        """One inference on this machine, of the very C that `write` writes.

        Args:
            inputs: One array for each input of the model, of its shape and type; of a model with an open batch, of 1 to
                `batch_max` samples.

        Returns:
            The output, or a tuple of them if the model has several.

        Raises:
            CompileError: BW205 for inputs that do not match; BW501 or BW502 for the C compiler.
        """
        outputs = self._host_model.run(inputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @cached_property
    def _host_model(self) -> HostModel:
        """Built once. Its context is opened while the folder is there, because it reads parameter blobs."""
        with build_folder() as temporary:
            folder = self.write(temporary / "bundle")
            model = HostModel.build(folder, BuildOptions(sources=self.sources))
            model.prepare()
            return model


def compile_to_model(
    path: str | PathLike[str],
    *,
    target: str | PathLike[str] | Target,
    name: str | None,
    workspace: str | Iterable[str],
    parameters: str | Iterable[str],
    resize: str | Iterable[str],
    provider: str | Iterable[str],
    pins: str | Iterable[str],
    io: str,
    batch_max: int | None,
    constants: str | PathLike[str] | None,
    numerics: str | None,
    embed: str,
    solver: str,
    max_stack_size: int | str | None,
    max_stack_alloca_size: int | str | None,
    use_backend_alloc_workspace: bool | None,
    progress: Progress | None,
) -> CompiledModel:
    """What `bytewright.compile` does once it is called; see there."""
    overrides = Overrides(
        workspace=_options("workspace", workspace, parse_pool_option),
        parameters=_options("parameters", parameters, parse_pool_option),
        resize=_options("resize", resize, parse_resize_option),
        provider=_options("provider", provider, parse_provider_option),
        max_stack_size=_limit("max_stack_size", max_stack_size, parse_max_stack_size),
        max_stack_alloca_size=_limit(
            "max_stack_alloca_size", max_stack_alloca_size, parse_max_stack_alloca_size
        ),
        use_backend_alloc_workspace=_checked(
            "use_backend_alloc_workspace",
            use_backend_alloc_workspace,
            (bool, type(None)),
            "True, False or None",
        ),
    )
    model = Path(_checked("model", path, (str, PathLike), "a path"))
    named_target = _checked("target", target, (str, PathLike, Target), "a name, a path or a Target")
    options: dict[str, Any] = {
        "name": _checked("name", name, (str, type(None)), "a text or None"),
        "io": _choice("io", io, Io),
        "constants": None
        if constants is None
        else Path(_checked("constants", constants, (str, PathLike), "a path")),
        "numerics": None if numerics is None else _choice("numerics", numerics, Numerics),
        "pins": _options("pins", pins, parse_pin_option),
        "batch_max": _checked_batch(batch_max),
        "embedding": _choice("embed", embed, Embedding),
        "solver": _checked("solver", solver, (str,), "a text"),
    }
    find_solver(solver)  # before the model is read
    loaded = named_target if isinstance(named_target, Target) else load_target(named_target)
    compiled = compile_model(model, apply_overrides(loaded, overrides), **options, progress=progress)
    return CompiledModel(plan_of(compiled.document), FrozenMapping(compiled.files))


def _options(name: str, given: str | Iterable[str], parse: Callable[[str], _Option]) -> tuple[_Option, ...]:
    """The texts of an option that can be repeated, parsed; a text alone is a list of one."""
    if isinstance(given, str):
        return (parse(given),)
    texts = _checked(name, given, (Iterable,), "a list of texts")
    if isinstance(given, bytes | bytearray):
        raise ValueError(f"{name} is {given!r}, not a list of texts")
    return tuple(parse(_checked(f"a member of {name}", text, (str,), "a text")) for text in texts)


def _limit(name: str, given: object, parse: Callable[[str], _Option]) -> _Option | None:
    """A number of bytes, or a text that a size may have; a truth value is neither."""
    if given is None:
        return None
    if type(given) is not int and not isinstance(given, str):
        raise ValueError(f"{name} is {given!r}, not a number of bytes or a text")
    try:
        return parse(str(given))
    except OptionSyntaxError as error:
        raise OptionSyntaxError(f"{name}: {error}") from None


def _choice(name: str, given: object, kind: type[_Choice]) -> _Choice:
    for member in kind:
        if isinstance(given, str) and given == member.value:
            return member
    raise ValueError(f"{name} is {given!r}, not one of {', '.join(repr(member.value) for member in kind)}")


def _checked(name: str, given: _Option, kinds: tuple[type, ...], what: str) -> _Option:
    """The argument, where it is of a type that it may have."""
    if not isinstance(given, kinds):
        raise ValueError(f"{name} is {given!r}, not {what}")
    return given


def _checked_batch(batch_max: object) -> int | None:
    """The largest batch, where it is one; a truth value is not."""
    if batch_max is None or (type(batch_max) is int and batch_max >= 1):
        return batch_max
    raise ValueError(f"batch_max is {batch_max!r}, not a whole number of 1 or more")
