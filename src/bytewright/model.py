"""A compiled model as a Python value: its plan, its files, and the means to run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Unpack

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.base.option import checked
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.compiler.run_passes import Progress
from bytewright.execute.build import BuildOptions
from bytewright.execute.by_name import in_order
from bytewright.execute.host import HostModel
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.profile.result import Profile
from bytewright.execute.result import Machine
from bytewright.execute.tensors import Array
from bytewright.execute.tools import build_folder
from bytewright.options import Arguments, read_arguments
from bytewright.record.plan import Plan
from bytewright.target import Target, load_target


@dataclass(frozen=True, repr=False)
class CompiledModel:
    """What `bytewright.compile` returns. Nothing is on disk until `write`.

    Attributes:
        plan: Where every buffer lies, with the evidence.
        files: Path in the bundle -> content.
        sources: C files of the application, with functions that the model calls; for `run` and `profile` alone.
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

    def run(self, *inputs: Array, **named: Array) -> Array | tuple[Array, ...]:
        """One inference on this machine, of the very C that `write` writes.

        Args:
            inputs: One array for each input of the model, of its shape and type; of a model with an open batch, of 1 to
                `batch_max` samples.
            named: The same by the names of the inputs (`plan.inputs`), in place of their order.

        Returns:
            The output, or a tuple of them if the model has several.

        Raises:
            CompileError: BW205 for inputs that do not match; BW501 or BW502 for the C compiler.
        """
        names = [tensor.name for tensor in self.plan.inputs]
        given: list[tuple[str | None, Array]] = [(None, array) for array in inputs]
        outputs = self._host_model.run(in_order(names, [*given, *named.items()], "input"))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def profile(
        self, *inputs: Array, on: Machine = "host", repeat: int | None = None, seed: int | None = None
    ) -> Profile:
        """What each step of an inference costs: nanoseconds on this machine, or instructions on an emulated board.

        Args:
            inputs: As of `run`; none for random ones.
            on: This machine, or "qemu" for the board of the target.
            repeat: How many inferences run (docs/profile.md).
            seed: Of random inputs.

        Raises:
            CompileError: BW204 without a board for the target; BW205 for inputs that do not match; BW501 or BW502 for a
                compiler or QEMU.
        """
        options = BuildOptions(sources=self.sources)
        with build_folder() as temporary:
            folder = self.write(temporary / "bundle")
            return profile_bundle(
                folder, list(inputs) or None, seed=seed, on=on, repeat=repeat, options=options
            )

    @cached_property
    def _host_model(self) -> HostModel:
        """Built once. Its context is opened while the folder is there, because it reads parameter blobs."""
        with build_folder() as temporary:
            folder = self.write(temporary / "bundle")
            model = HostModel.build(folder, BuildOptions(sources=self.sources))
            model.prepare()
            return model


def compile(  # noqa: A001
    model: str | PathLike[str],
    *,
    target: str | PathLike[str] | Target = "host",
    progress: Progress | None = None,
    **options: Unpack[Arguments],
) -> CompiledModel:
    """Compiles a model.

    Args:
        model: A .tflite file, or a .bw file of IR text.
        target: A built-in target, a target file, or a `bytewright.target.Target`.
        progress: Told the name of each stage as it begins.
        **options: Those of the command line, under the same names and with the same forms (docs/python.md); one that
            can be repeated takes a list, or one text.

    Raises:
        bytewright.diagnostics.CompileError: The model or an option is wrong, or it does not fit.
        ValueError: An argument is malformed.
    """
    path = Path(checked("model", model, (str, PathLike), "a path"))
    checked("target", target, (str, PathLike, Target), "a name, a path or a Target")
    asked = read_arguments(options)
    loaded = target if isinstance(target, Target) else load_target(target)
    compiled = compile_model(path, loaded, asked, progress=progress)
    return CompiledModel(compiled.plan, FrozenMapping(compiled.files))
