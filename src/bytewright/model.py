"""A compiled model as a Python value: its plan, its files, and the means to run it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Unpack

import numpy as np

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.base.option import checked
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.compiler.run_passes import Progress
from bytewright.execute.build import BuildOptions
from bytewright.execute.by_name import in_order
from bytewright.execute.host import HostContext, HostModel
from bytewright.execute.machine import Machine, machine_of
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.profile.result import Profile
from bytewright.execute.profile.view import profile_view
from bytewright.execute.tensors import Array, cut_batch, seen_by
from bytewright.execute.tools import build_folder
from bytewright.options import Arguments, read_arguments
from bytewright.record.plan import Plan
from bytewright.report.report_view import report_view
from bytewright.show.notebook import Shown, show_as
from bytewright.target import Target, load_target
from bytewright.validate.references import Reference, Witness, reference_of
from bytewright.validate.samples import samples_of
from bytewright.validate.validate import Validation, model_of, reference_for, validate_bundle
from bytewright.validate.view import validation_view

Inputs = Array | Mapping[str, Array]
"""One input, or some by their names."""


@dataclass(frozen=True, repr=False)
class CompiledModel(Shown):
    """What `bytewright.compile` returns. Nothing is on disk until `write`.

    Attributes:
        plan: Where every buffer lies, with the evidence.
        files: Path in the bundle -> content.
        sources: C files of the application, with functions that the model calls; for what runs it alone.
        model_file: What it was compiled from; for `validate` alone.
    """

    plan: Plan
    files: Mapping[str, bytes]
    sources: tuple[Path, ...] = ()
    model_file: Path | None = None

    def __repr__(self) -> str:
        return f"CompiledModel({self.plan.model!r} for {self.plan.target}, {len(self.files)} files)"

    def __getstate__(self) -> dict[str, object]:
        """Without the compiled library, which a copy builds for itself when it runs."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_sources(self, *sources: str | PathLike[str]) -> CompiledModel:
        """The same model, run with C files of the application that define what it calls."""
        return replace(self, sources=tuple(Path(source).absolute() for source in sources))

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

    def run(self, /, *inputs: Inputs, **named: Array) -> Array | tuple[Array, ...]:
        """One inference on this machine, of the very C that `write` writes; of several entries each once, in order.

        Args:
            inputs: One array for each input of the model, of its shape and type. Where all inputs and outputs have a
                batch axis, arrays may have more samples along it, which run one after the other: so many as the batch
                has, 1 or `batch_max`.
            named: The same by the names of the inputs (`plan.inputs`), in place of their order; a mapping has them by
                their names as well.

        Returns:
            The output, or a tuple of them if the model has several; all samples along the first axis.

        Raises:
            CompileError: BW205 for inputs that do not match; BW501 or BW502 for the C compiler.
        """
        names = [tensor.name for tensor in self.plan.inputs]
        batch = cut_batch(self.plan, in_order(names, _by_names(*inputs, named), "input"))
        runs = [self._host_model.run(arrays) for arrays in batch]
        outputs = (
            runs[0] if len(runs) == 1 else [np.concatenate(arrays) for arrays in zip(*runs, strict=True)]
        )
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def profile(
        self, *inputs: Array, on: str | Machine = "host", repeat: int | None = None, seed: int | None = None
    ) -> Profile:
        """What each step of an inference costs: nanoseconds on this machine, instructions in QEMU, cycles on a board.

        Args:
            inputs: As of `run`; none for random ones.
            on: This machine; "qemu" for the board of the target; or "serial:PORT" for one that runs the bundle.
            repeat: How many inferences run (docs/profile.md).
            seed: Of random inputs.

        Raises:
            CompileError: BW204 without a board for the target; BW205 for inputs that do not match; BW501 or BW502 for a
                compiler or QEMU.
        """
        options = BuildOptions(sources=self.sources)
        machine = machine_of(on) if isinstance(on, str) else on
        with build_folder() as temporary:
            folder = self.write(temporary / "bundle")
            return profile_bundle(
                folder, list(inputs) or None, seed=seed, on=machine, repeat=repeat, options=options
            )

    def validate(
        self,
        *samples: Array,
        labels: Array | None = None,
        reference: str | Reference | None = None,
        also: Sequence[str] = (),
        with_layers: bool = False,
    ) -> Validation:
        """Compares the outputs of samples with those of the reference, and the parameters with the model's.

        Args:
            samples: One array for each input of the model, whose first axis counts samples; floats for an integer
                input are quantised by its scale.
            labels: The class of each sample.
            reference: `litert-ref` or `tflm`, or what has `run` and `name` as such a reference has; else the one that
                the model was compiled for.
            also: What is shown beside, such as `litert-default`.
            with_layers: Compares tensors between the kernels for every sample, and not only where outputs differ.

        Raises:
            CompileError: BW205 for samples and labels that do not match, or if the model's file is another one by now;
                BW501 where the reference's package is missing. What differs raises nothing; `require` does.
        """
        given = samples_of(self.plan, [np.asarray(array) for array in samples], labels)
        path = self.model_file
        content = None if path is None else model_of(self.plan, path)
        if not isinstance(reference, str) and reference is not None:
            chosen = reference
        elif content is None:
            raise ValueError("the model was not compiled from a file that is known: give a reference")
        else:
            witness = None if reference is None else Witness(reference)
            chosen = reference_for(self.plan, witness, content)
        others = [reference_of(Witness(name), content or b"", self.plan) for name in also]
        with build_folder() as temporary:
            return validate_bundle(
                self.write(temporary / "bundle"),
                given,
                reference=chosen,
                others=others,
                model=path,
                options=BuildOptions(sources=self.sources),
                with_layers=with_layers,
            )

    def session(self) -> Session:
        """A stream of runs on this machine, with state and workspaces of its own, as before the first run.

        Raises:
            CompileError: BW501 or BW502 for the C compiler.
        """
        with self._built() as model:
            return Session(self.plan, model, model.open(keep_state=True))

    @cached_property
    def _host_model(self) -> HostModel:
        """Built once. Its context is opened while the folder is there, because it reads parameter blobs."""
        with self._built() as model:
            model.prepare()
            return model

    @contextmanager
    def _built(self) -> Generator[HostModel, None, None]:
        """Built for this machine, as long as its folder is there."""
        with build_folder() as temporary:
            folder = self.write(temporary / "bundle")
            yield HostModel.build(folder, BuildOptions(sources=self.sources))


@dataclass(frozen=True, repr=False, eq=False)
class Session:
    """Runs of which each goes on from where the last one ended, whichever entries they are of."""

    plan: Plan
    _model: HostModel  # the library, which is there as long as this is
    _context: HostContext

    def run(self, /, *inputs: Inputs, entry: str | None = None, **named: Array) -> Array | tuple[Array, ...]:
        """One run: of an entry, or of the model; of several entries each once, in order.

        Args:
            inputs: One array for each input, of its shape and type; or a mapping from names of inputs to arrays.
            entry: Its name (`plan.entries`). An input that is called `entry` stands in a mapping.
            named: The inputs by their names, in place of their order.

        Returns:
            The output, or a tuple of them if there are none or several.

        Raises:
            CompileError: BW204 for an entry that there is not; BW205 for inputs that do not match.
            ValueError: `entry` is no name.
        """
        checked(
            "entry",
            entry,
            (str, NoneType),
            "a name; an input of that name stands in a mapping: {'entry': array}",
        )
        names = [tensor.name for tensor in seen_by(self.plan, entry).inputs]
        outputs, _ = self._context.run(in_order(names, _by_names(*inputs, named), "input"), entry)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def reset(self) -> None:
        """What survives runs is as before the first one."""
        self._context.reset()


def _by_names(*inputs: Inputs) -> list[tuple[str | None, Array]]:
    """Arrays with their names, as far as they have some."""
    given: list[tuple[str | None, Array]] = []
    for each in inputs:
        given += each.items() if isinstance(each, Mapping) else [(None, each)]
    return given


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
    return CompiledModel(compiled.plan, FrozenMapping(compiled.files), model_file=path.absolute())


show_as(CompiledModel, lambda model: report_view(model.plan))
show_as(Plan, report_view)
show_as(Profile, profile_view)
show_as(Validation, validation_view)
