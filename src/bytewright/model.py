"""A compiled model as a Python value: its plan, its files, and the means to run it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from bytewright.bundle.write import write_bundle
from bytewright.execute.host import HostModel
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.pipeline import Progress, compile_model
from bytewright.plan_file import Plan, plan_of
from bytewright.storage.pin_buffers import parse_pin_option
from bytewright.target import (
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


@dataclass(frozen=True, repr=False)
class CompiledModel:
    """What `bytewright.compile` returns. Nothing is on disk until `write`.

    Attributes:
        plan: Where every buffer lies, with the evidence.
        files: Path in the bundle -> content.
    """

    plan: Plan
    files: Mapping[str, bytes]

    def __repr__(self) -> str:
        return f"CompiledModel({self.plan.model!r} for {self.plan.target}, {len(self.files)} files)"

    def write(self, directory: str | PathLike[str]) -> Path:
        """Writes the bundle into a new or empty folder, or in place of an older bundle; returns the folder.

        Raises:
            CompileError: BW206; then the folder is as it was.
        """
        folder = Path(fspath(directory))
        write_bundle(dict(self.files), folder)
        return folder

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
        with tempfile.TemporaryDirectory(prefix="bytewright-") as name:
            folder = self.write(Path(name) / "bundle")
            model = HostModel.build(folder)
            model.prepare()
            return model


def compile_to_model(
    path: str | PathLike[str],
    *,
    target: str | Target,
    name: str | None,
    workspace: Iterable[str],
    parameters: Iterable[str],
    resize: Iterable[str],
    provider: Iterable[str],
    pins: Iterable[str],
    io: str,
    batch_max: int | None,
    numerics: str,
    max_stack_size: int | str | None,
    max_stack_alloca_size: int | str | None,
    use_backend_alloc_workspace: bool | None,
    progress: Progress | None,
) -> CompiledModel:
    """What `bytewright.compile` does once it is called; see there."""
    overrides = Overrides(
        workspace=tuple(parse_pool_option(text) for text in workspace),
        parameters=tuple(parse_pool_option(text) for text in parameters),
        resize=tuple(parse_resize_option(text) for text in resize),
        provider=tuple(parse_provider_option(text) for text in provider),
        max_stack_size=None if max_stack_size is None else parse_max_stack_size(str(max_stack_size)),
        max_stack_alloca_size=None
        if max_stack_alloca_size is None
        else parse_max_stack_alloca_size(str(max_stack_alloca_size)),
        use_backend_alloc_workspace=use_backend_alloc_workspace,
    )
    loaded = target if isinstance(target, Target) else load_target(target)
    compiled = compile_model(
        Path(fspath(path)),
        apply_overrides(loaded, overrides),
        name=name,
        io=Io(io),
        numerics=Numerics(numerics),
        pins=tuple(parse_pin_option(text) for text in pins),
        batch_max=_checked_batch(batch_max),
        progress=progress,
    )
    return CompiledModel(plan_of(compiled.document), MappingProxyType(compiled.files))


def _checked_batch(batch_max: object) -> int | None:
    """The largest batch, where it is one; a truth value is not."""
    if batch_max is None or (type(batch_max) is int and batch_max >= 1):
        return batch_max
    raise ValueError(f"batch_max is {batch_max!r}, not a whole number of 1 or more")
