"""The entry of this stage: runs samples through a bundle and its reference, and compares all that can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from bytewright.base.input_file import read_input
from bytewright.diagnostics import CompileError, Diagnostic, compile_error
from bytewright.execute.build import BuildOptions, StepHarness
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.host import HostModel
from bytewright.execute.machine import Machine
from bytewright.execute.model_error import SizeError
from bytewright.execute.options import RunOptions
from bytewright.execute.run import run_batch
from bytewright.execute.step_tensors import StepTensors
from bytewright.execute.tensors import Array
from bytewright.execute.tools import TIMEOUT_SECONDS
from bytewright.record.plan import Plan
from bytewright.show.notebook import Shown
from bytewright.validate.agreement import Agreement, AgreementCount, answer_of
from bytewright.validate.layers import ComparedTensor, compare_tensors
from bytewright.validate.parameters import ParameterVerdict, check_parameters
from bytewright.validate.references import LiteRt, Reference, Witness, reference_of, signature_calls
from bytewright.validate.samples import Samples

_MOST_NOTES = 10
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class LayerVerdict:
    """Tensors of inferences beside the reference's.

    Attributes:
        num_samples: Samples whose tensors were compared.
        sample: The first of them with a tensor that differs; else the first.
        tensors: Of that sample, in the order of the steps.
    """

    num_samples: int
    sample: int
    tensors: tuple[ComparedTensor, ...]

    @property
    def first_different(self) -> ComparedTensor | None:
        """The first one that is not exact."""
        return next((tensor for tensor in self.tensors if tensor.num_different), None)


@dataclass(frozen=True, slots=True, eq=False)
class Validation(Shown):
    """What validating showed.

    Attributes:
        plan: Of the bundle.
        on: Where it ran.
        samples: What it was given.
        num_right: Samples for which its answer is the label; None without labels.
        reference: How it agrees with its reference.
        others: How it agrees with what is shown beside, which is no reference.
        parameters: Those of the bundle beside the model's; None where the model's file is not known.
        layers: Tensors between the kernels; None where they were not looked at.
    """

    plan: Plan
    on: Machine
    samples: Samples
    num_right: int | None
    reference: Agreement
    others: tuple[Agreement, ...]
    parameters: ParameterVerdict | None
    layers: LayerVerdict | None

    def __repr__(self) -> str:
        return f"Validation({self.plan.model!r} for {self.plan.target}: {self.verdict})"

    @property
    def verdict(self) -> str:
        """`exact, 100 samples on host`."""
        is_exact = "not exact" if self.diagnostics else "exact"
        return f"{is_exact}, {self.reference.num_samples} samples on {self.on}"

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What does not hold; none if the bundle is exact, and has the model's parameters."""
        faults = self._faults()
        return (_refusal(self.plan, faults),) if faults else ()

    def _faults(self) -> Sequence[str]:
        agreement, found = self.reference, list[str]()
        if not agreement.is_exact:
            wrong = agreement.num_samples - agreement.num_exact
            found.append(
                f"{wrong} of {agreement.num_samples} samples differ from {agreement.name}, the first is number "
                f"{agreement.first_different}, by {agreement.worst:g} at most"
            )
        layer = self.layers.first_different if self.layers is not None else None
        if layer is not None and self.layers is not None:
            operators = ", ".join(layer.operators)
            found.append(
                f"the first tensor that differs is '{layer.name}' of {operators} (step {layer.step}, sample "
                f"{self.layers.sample}): {layer.num_different} of {layer.own.size} elements, by {layer.worst:g} at most"
            )
        found += [wrong.text for wrong in self.parameters.wrong] if self.parameters is not None else []
        return found

    def require(self) -> None:
        """Refuses what does not hold.

        Raises:
            CompileError: BW406.
        """
        if self.diagnostics:
            raise CompileError(self.diagnostics)


def _refusal(plan: Plan, faults: Sequence[str]) -> Diagnostic:
    more = len(faults) - _MOST_NOTES
    notes = (*faults[:_MOST_NOTES], *([f"and {more} more"] if more > 0 else []))
    help_text = "compile the model again; bytewright check says whether files of the bundle were changed"
    return Diagnostic(
        "BW406", f"the bundle of model '{plan.model}' is not what its model is", notes, help_text
    )


def model_of(plan: Plan, model: str | PathLike[str]) -> bytes:
    """The bytes of the file that a bundle was compiled from.

    Raises:
        CompileError: BW205: it cannot be read, or is another file.
    """
    path = Path(model)
    try:
        content = read_input(path)
    except OSError as error:
        raise compile_error("BW205", f"cannot read model '{path}': {error.strerror or error}") from error
    digest = hashlib.sha256(content).hexdigest()
    if plan.model_files and digest not in plan.model_files.values():
        names = ", ".join(f"'{name}'" for name in plan.model_files)
        raise compile_error(
            "BW205",
            f"'{path}' is not the file that the bundle was compiled from, which was {names} and has another digest",
        )
    return content


def validate_bundle(
    directory: str | PathLike[str],
    samples: Samples,
    *,
    reference: Reference,
    others: Sequence[Reference] = (),
    model: Path | None = None,
    on: Machine = "host",
    options: BuildOptions | None = None,
    with_layers: bool = False,
    progress: Progress | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Validation:
    """Runs samples through a bundle and its reference.

    Args:
        directory: The bundle.
        samples: What to run.
        reference: What outputs must equal.
        others: What is shown beside.
        model: The file that the bundle was compiled from: its parameters are compared, and where an output differs, or
            `with_layers`, tensors between the kernels, if LiteRT's kernels are the reference and the bundle runs here.
        on: The host, the target's board in QEMU, or a board on a serial line.
        options: How to compile.
        with_layers: Compares tensors of every sample.
        progress: Told how many samples are done, of how many.
        timeout_seconds: Limit of a run elsewhere than on the host.

    Raises:
        CompileError: What reading, compiling and running do; BW205, BW402, BW501, BW502; BW204 for tensors that nobody
            has.
    """
    bundle = read_bundle(directory)
    content = None if model is None else model_of(bundle.plan, model)
    may_look_inside = content is not None and isinstance(reference, LiteRt) and on == "host"
    if with_layers and not may_look_inside:
        raise compile_error(
            "BW204",
            "tensors between the kernels are compared with those of LiteRT's reference kernels, here and with "
            f"the model's file; this is {reference.name}, on {on}",
            help="leave out --layers and --tensors, or compare with litert-ref",
        )
    parameters = None if model is None else check_parameters(bundle, model)
    try:
        outputs = _outputs(bundle, samples, on, options, progress, timeout_seconds)
    except CompileError as error:
        if parameters is not None and parameters.wrong:  # which may be why
            faults = [wrong.text for wrong in parameters.wrong]
            raise CompileError((_refusal(bundle.plan, faults), *error.diagnostics)) from error
        raise
    agreement, *beside = _agreements(samples, outputs, (reference, *others), progress)
    if not agreement.num_samples:
        message = f"{reference.name} has outputs of none of {len(samples.batch)} samples: no window of frames is full"
        raise compile_error("BW205", message, help="give samples of more frames")
    right = _num_right(samples.labels, outputs)
    layers, first = None, agreement.first_different
    if content is not None and may_look_inside and (with_layers or first is not None):
        numbers = _looked_into(bundle.plan, len(samples.batch), None if with_layers else first)
        layers = _layers(bundle, content, samples, numbers, options)
    return Validation(bundle.plan, on, samples, right, agreement, tuple(beside), parameters, layers)


def _agreements(
    samples: Samples,
    outputs: Sequence[Sequence[Array]],
    references: Sequence[Reference],
    progress: Progress | None,
) -> Iterator[Agreement]:
    """How far outputs agree with those of each reference, which run sample by sample."""
    counts = [AgreementCount(reference.name, samples.labels) for reference in references]
    for number, (inputs, own) in enumerate(zip(samples.batch, outputs, strict=True)):
        for count, reference in zip(counts, references, strict=True):
            count.add(number, own, reference.run(number, inputs))
        _tell(progress, len(samples.batch) + number, 2 * len(samples.batch))
    return (count.result() for count in counts)


def _num_right(labels: Array | None, outputs: Sequence[Sequence[Array]]) -> int | None:
    if labels is None:
        return None
    return sum(answer_of(own[0]) == int(labels[n]) for n, own in enumerate(outputs))


def _looked_into(plan: Plan, num_samples: int, first_different: int | None) -> range:
    """The samples whose tensors are compared: all, or up to the first that differs."""
    if first_different is None:
        return range(num_samples)
    # What a model remembers comes from the samples before.
    return range(0 if plan.states else first_different, first_different + 1)


def _outputs(
    bundle: Bundle,
    samples: Samples,
    on: Machine,
    options: BuildOptions | None,
    progress: Progress | None,
    timeout_seconds: float,
) -> Sequence[Sequence[Array]]:
    """The outputs of every sample: one after the other on the host, all in one job on a board."""
    if on != "host":
        how = RunOptions(on=on, options=options, keep_state=True, timeout_seconds=timeout_seconds)
        return [
            _of_model(bundle.plan, run) for run in run_batch(bundle.directory, samples.batch, **how).outputs
        ]
    model = HostModel.build(bundle.directory, options)
    context = model.open(keep_state=True)
    outputs: list[list[Array]] = []
    for number, inputs in enumerate(samples.batch):
        try:
            outputs.append(_of_model(bundle.plan, context.run(inputs)[0]))
        except SizeError as error:
            notes = (f"in sample {number}, of {len(samples.batch)}",)
            raise CompileError([replace(each, notes=notes) for each in error.diagnostics]) from error
        _tell(progress, number, 2 * len(samples.batch))
    return outputs


def _of_model(plan: Plan, outputs: Sequence[Array]) -> list[Array]:
    """The outputs that the model's file has: sizes are said besides."""
    return [array for tensor, array in zip(plan.outputs, outputs, strict=True) if not tensor.most]


def _tell(progress: Progress | None, number: int, total: int) -> None:
    if progress is not None:
        progress(number + 1, total)


def _layers(
    bundle: Bundle, content: bytes, samples: Samples, numbers: Sequence[int], options: BuildOptions | None
) -> LayerVerdict:
    """The tensors of these samples, up to the first with one that differs."""
    recorder = StepTensors(HostModel.build(bundle.directory, options, steps=StepHarness.HOOK))
    reference = LiteRt(content, Witness.LITERT_REF, signature_calls(content, bundle.plan), keeps_tensors=True)
    first: LayerVerdict | None = None
    for count, number in enumerate(numbers, 1):
        inputs = samples.batch[number]
        _, written = recorder.run(inputs)
        reference.run(number, inputs)
        found = LayerVerdict(count, number, compare_tensors(bundle.plan, written, reference.tensors()))
        if found.first_different is not None:
            return found
        first = LayerVerdict(
            count, first.sample if first else number, first.tensors if first else found.tensors
        )
    return first or LayerVerdict(0, 0, ())


def reference_for(plan: Plan, witness: Witness | None, content: bytes) -> Reference:
    """The reference that a bundle is compiled for, unless another is named.

    Raises:
        CompileError: BW204 where no kernels are a reference, also of widened weights; and as of `reference_of`.
    """
    known = {member.value: member for member in (Witness.LITERT_REF, Witness.TFLM)}
    chosen = witness or known.get(plan.numerics)
    if chosen is None:
        raise compile_error(
            "BW204",
            f"model '{plan.model}' is bit for bit '{plan.numerics}', of which there is no reference to run",
            help="--reference FILE.npy",
        )
    if witness is None and plan.widens_weights:
        raise compile_error(
            "BW204",
            f"model '{plan.model}' has integer weights widened to float32, and the reference computes with integers",
            help=f"--reference {chosen.value}, to see how far apart they are; or --reference FILE.npy",
        )
    return reference_of(chosen, content, plan)
