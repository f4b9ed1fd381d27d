"""What `validate` says, whether all holds or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from bytewright.show.view import Fact, Facts, Field, Table, View, data, table_of
from bytewright.validate.agreement import Agreement
from bytewright.validate.layers import ComparedTensor
from bytewright.validate.validate import LayerVerdict, Validation


def validation_view(validation: Validation, *, with_layers: bool = False) -> View:
    """Agreement, answers and parameters; with a table of the layers if it is asked for."""
    title = f"{validation.plan.model} for {validation.plan.target}: {validation.verdict}"
    facts = Facts(tuple(_facts(validation)), indent=2, hanging=2)
    tables = [] if validation.layers is None else [_table(validation.layers, is_shown=with_layers)]
    return View(title, (facts, *tables))


def _facts(validation: Validation) -> Iterator[Fact]:
    plan, reference = validation.plan, validation.reference
    yield data({"model": plan.model, "target": plan.target, "on": str(validation.on)})
    yield data({"verified": not validation.diagnostics, "num_samples": reference.num_samples})
    yield from (Fact((remark,)) for remark in validation.samples.remarks)
    yield data({"remarks": validation.samples.remarks, "num_right": validation.num_right})
    if validation.num_right is not None:
        yield Fact((f"accuracy {_share(validation.num_right, len(validation.samples.batch))}",))
    yield Fact((_agreement(reference),))
    yield data({"reference": asdict(reference)})
    yield from (Fact((f"beside, no reference: {_agreement(other)}",)) for other in validation.others)
    yield data({"others": [asdict(other) for other in validation.others]})
    parameters = validation.parameters
    if parameters is not None:
        what = "compared with" if parameters.wrong else "are"
        count = f"{parameters.num_bytes} B of {parameters.num_buffers} constants"
        yield Fact((f"parameters: {count} {what} what the model's tensors become",))
    yield data({"parameters": None if parameters is None else asdict(parameters)})
    layers = validation.layers
    if layers is not None:
        exact = sum(not tensor.num_different for tensor in layers.tensors)
        count = f"{exact} of {len(layers.tensors)} tensors between the kernels are exact"
        yield Fact((f"{count} in sample {layers.sample}, of {layers.num_samples} samples compared",))


def _agreement(agreement: Agreement) -> str:
    text = f"{agreement.name}: {agreement.num_exact} of {agreement.num_samples} samples exact"
    if not agreement.is_exact:
        text += f", the others off by {agreement.worst:g} at most"
    if agreement.num_same_answers is not None:
        text += f"; same answer in {_share(agreement.num_same_answers, agreement.num_samples)}"
    if agreement.num_right is not None:
        text += f"; its own accuracy {_share(agreement.num_right, agreement.num_samples)}"
    return text


def _share(part: int, whole: int) -> str:
    """`99.1 % (991 of 1000)`, rounded down, so that 100 % is all."""
    tenths = 1000 * part // whole
    return f"{tenths // 10}.{tenths % 10} % ({part} of {whole})"


def _table(layers: LayerVerdict, *, is_shown: bool) -> Table:
    """Tensors of a sample, in the order of the steps."""

    def worst(tensor: ComparedTensor) -> str:
        return f"{tensor.worst:g}" if tensor.num_different else ""

    return table_of(
        f"Tensors of sample {layers.sample}" if is_shown else None,
        "layers",
        layers.tensors,
        Field("step", "step", lambda tensor: tensor.step, is_number=True),
        Field("operators", "operators", lambda tensor: tensor.operators),
        Field("elements", "num_elements", lambda tensor: tensor.own.size, is_number=True),
        Field("different", "num_different", lambda tensor: tensor.num_different, is_number=True),
        Field("off by", None, worst, is_number=True),
        Field(None, "worst", lambda tensor: tensor.worst),
        Field("tensor", "tensor", lambda tensor: tensor.name),
    )
