"""`bytewright validate`: a bundle beside its reference, on samples of the user."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from bytewright.cli.formats import format_options, say
from bytewright.cli.option_types import PATH, NamedFile, named_file
from bytewright.cli.progress import counted
from bytewright.cli.what_runs import Built, build_options, bundle_of, on_option, timeout_option
from bytewright.cli.write_files import make_folder, write_files
from bytewright.diagnostics import compile_error

if TYPE_CHECKING:
    from bytewright.ops.arithmetic.numerics import Numerics
    from bytewright.record.plan import Plan
    from bytewright.validate.references import Reference
    from bytewright.validate.samples import Samples
    from bytewright.validate.validate import LayerVerdict

_REFERENCES = ("litert-ref", "tflm")


@click.command(short_help="Compare a bundle with its reference, on samples.")
@click.argument("source", metavar="DIR|MODEL", type=PATH)
@click.option(
    "--data",
    "data_files",
    type=named_file,
    multiple=True,
    required=True,
    metavar="[NAME=]X.npy|X.npz|FOLDER",
    help="Samples: the first axis counts them, or there is a file for each.",
)
@click.option(
    "--labels", metavar="NAME|Y.npy", help="The class of each sample: an array of the .npz file, or a file."
)
@click.option(
    "--model",
    "model_file",
    type=PATH,
    metavar="MODEL.tflite",
    help="Of DIR, a bundle: the file that it was compiled from.",
)
@click.option(
    "--reference",
    metavar="litert-ref|tflm|FILE.npy|FILE.npz",
    help="What outputs must equal.  [default: what the bundle is compiled for]",
)
@click.option(
    "--also",
    type=click.Choice(["litert-default", *_REFERENCES]),
    multiple=True,
    help="What is shown beside; it decides nothing.",
)
@click.option(
    "--layers", "with_layers", is_flag=True, help="Compare tensors between the kernels for every sample."
)
@click.option(
    "--tensors",
    type=PATH,
    metavar="DIR",
    help="Where to write these tensors of the first sample that differs, and the reference's.",
)
@click.option(
    "--samples", "num_samples", type=click.IntRange(min=1), metavar="N", help="The first N samples alone."
)
@on_option("This machine, the target's board in QEMU, or a board on a serial line.")
@timeout_option
@build_options
@format_options
def validate(
    data_files: tuple[NamedFile, ...],
    labels: str | None,
    model_file: Path | None,
    reference: str | None,
    also: tuple[str, ...],
    with_layers: bool,
    tensors: Path | None,
    num_samples: int | None,
    **asked: Unpack[Built],
) -> None:
    """Run samples through DIR, a bundle, or MODEL, and compare what comes out with the reference.

    Outputs must be equal bit for bit, and the parameters those of the model's file: a wrong weight may change no
    output. Where an output differs, the first tensor between the kernels that does is named. Samples are not resized
    or normalised; floats for an integer input are quantised by its scale. The exit status is 4 if anything differs.
    """
    from bytewright.execute.build import BuildOptions
    from bytewright.execute.tools import TIMEOUT_SECONDS
    from bytewright.validate.samples import read_samples
    from bytewright.validate.validate import validate_bundle
    from bytewright.validate.view import validation_view

    source, on = asked["source"], asked["on"]
    if (with_layers or tensors is not None) and on != "host":
        option = "--layers" if with_layers else "--tensors"
        raise click.UsageError(
            f"{option} looks between the kernels on this machine alone: leave out --on {on}"
        )
    if tensors is not None and tensors.exists() and not tensors.is_dir():
        raise compile_error("BW206", f"'{tensors}' is no folder")
    model = model_file if source.is_dir() else source

    def admit(plan: Plan) -> tuple[Samples, Reference, list[Reference]]:
        data = [(file.name, file.path) for file in data_files]
        is_paired = reference is not None and reference not in _REFERENCES
        samples = read_samples(plan, data, labels, num_samples, is_paired=is_paired)
        first, others = _references(plan, model, reference, also, samples.num_given)
        return samples, first, others

    with (
        bundle_of(asked, admit, _numerics(reference)) as (directory, (samples, first, others)),
        counted(f"validating {source.name}") as progress,
    ):
        found = validate_bundle(
            directory,
            samples,
            reference=first,
            others=others,
            model=model,
            on=on,
            options=BuildOptions(sources=asked["sources"], compiler=asked["compiler"]),
            with_layers=with_layers or tensors is not None,
            progress=progress,
            timeout_seconds=asked["timeout"] or TIMEOUT_SECONDS,
        )
    if tensors is not None and found.layers is not None:
        _write_tensors(tensors, found.layers)
    say(validation_view(found, with_layers=with_layers))
    found.require()


def _numerics(reference: str | None) -> Numerics | None:
    from bytewright.ops.arithmetic.numerics import Numerics

    return Numerics(reference) if reference in _REFERENCES else None


def _references(
    plan: Plan, model: Path | None, reference: str | None, also: Sequence[str], num_samples: int
) -> tuple[Reference, list[Reference]]:
    """What outputs must equal, and what is shown beside.

    Raises:
        CompileError: BW204 where the model's file is needed and not given, and all that they raise.
    """
    from bytewright.validate.references import StoredOutputs, Witness, reference_of
    from bytewright.validate.samples import read_outputs
    from bytewright.validate.validate import model_of, reference_for

    is_file = reference is not None and reference not in _REFERENCES
    content = None if model is None else model_of(plan, model)
    if content is None and (not is_file or also):
        names = ", ".join(plan.model_files)
        raise compile_error(
            "BW204",
            f"a bundle does not hold its model, which the reference runs: {names or plan.model}",
            help=f"--model {names or 'MODEL.tflite'}, or --reference FILE.npy with the outputs that are wanted",
        )
    first: Reference
    if is_file and reference is not None:
        first = StoredOutputs(reference, plan, read_outputs(plan, Path(reference)), num_samples)
    else:
        first = reference_for(plan, Witness(reference) if reference else None, content or b"")
    return first, [reference_of(Witness(name), content or b"", plan) for name in also]


def _write_tensors(folder: Path, layers: LayerVerdict) -> None:
    """Writes each tensor, by its step and name: the bundle's and the reference's, all of them or none.

    Raises:
        CompileError: BW206.
    """
    import numpy as np

    make_folder(folder)
    contents: list[tuple[Path, bytes]] = []
    for number, tensor in enumerate(layers.tensors):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", tensor.name)[-80:]
        for kind, array in (("own", tensor.own), ("reference", tensor.reference)):
            stream = io.BytesIO()
            np.save(stream, array)
            contents.append((folder / f"{number:03d}_{name}.{kind}.npy", stream.getvalue()))
    write_files(contents)
