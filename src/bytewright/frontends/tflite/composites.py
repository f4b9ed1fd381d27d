"""Composites: operators that a subgraph spells out, which takes their place.

litert-torch writes normalisations of groups and rows so, for runtimes that know them by name; all others run the
subgraph. Its operators are numbered behind those of the file.
"""

from collections.abc import Sequence
from dataclasses import replace

from bytewright.frontends.tflite.flatbuffer import DamagedError
from bytewright.frontends.tflite.model import ABSENT, COMPOSITE, ModelRecord, OperatorRecord, TensorRecord

# Composites of composites can stand for more than any memory holds.
_MOST_OPERATORS = 1 << 16


def with_composites(model: ModelRecord) -> ModelRecord:
    """A subgraph with the operators that its composites stand for.

    One whose subgraph hands a result on, and computes nothing for it, stays, as one without an operand does.

    Raises:
        DamagedError: A subgraph has other inputs or outputs, or too many operators.
    """
    if not any(operator.kind == COMPOSITE for operator in model.operators):
        return model
    flat = _Flat(model)
    for operator in model.operators:
        flat.add(operator)
    called = {**model.called, **{k: v for each in flat.replaced for k, v in each.called.items()}}
    bodies = {**model.bodies, **{k: v for each in flat.replaced for k, v in each.bodies.items()}}
    return replace(
        model,
        tensors=tuple(flat.tensors),
        operators=tuple(flat.operators),
        buffers=tuple(flat.buffers),
        called=called,
        bodies=bodies,
    )


class _Flat:
    """A subgraph while operators are added to it."""

    def __init__(self, model: ModelRecord) -> None:
        self.model = model
        self.tensors, self.buffers = list(model.tensors), list(model.buffers)
        self.operators: list[OperatorRecord] = []
        self.replaced: list[ModelRecord] = []
        self.next_index = len(model.operators)

    def add(self, operator: OperatorRecord) -> None:
        """An operator, or those that it stands for."""
        record = self.model.called[operator.subgraphs[0]] if operator.kind == COMPOSITE else None
        if record is None or not _can_be_replaced(operator, record):
            self.operators.append(operator)
            return
        self.replaced.append(record)
        if len(self.operators) + len(record.operators) > _MOST_OPERATORS:
            raise DamagedError(f"composites stand for more than {_MOST_OPERATORS} operators")
        places = dict(zip(record.inputs, operator.inputs, strict=True))
        places |= dict(zip(record.outputs, operator.outputs, strict=True))
        for tensor in record.tensors:
            if tensor.index not in places:
                places[tensor.index] = self._take(tensor, record)
        for inner in record.operators:
            self.operators.append(_moved(inner, self.next_index, places))
            self.next_index += 1

    def _take(self, tensor: TensorRecord, record: ModelRecord) -> int:
        """The index of a tensor of another subgraph of the file, of which some buffers may be its own."""
        buffer, index = tensor.buffer, len(self.tensors)
        if buffer < len(self.model.buffers) and self.model.buffers[buffer] is record.buffers[buffer]:
            self.tensors.append(replace(tensor, index=index))
            return index
        self.buffers.append(record.buffers[buffer])
        self.tensors.append(replace(tensor, index=index, buffer=len(self.buffers) - 1))
        return index


def _can_be_replaced(operator: OperatorRecord, record: ModelRecord) -> bool:
    """Whether each tensor of the subgraph's border is one of the composite's."""
    counts = [(len(o.inputs), len(o.outputs)) for o in (operator, record)]
    if counts[0] != counts[1]:
        (given, results), (wanted, found) = counts
        raise DamagedError(
            f"operator {operator.label} has {given} inputs and {results} outputs, its subgraph {wanted} and {found}"
        )
    border = (*record.inputs, *record.outputs)
    computed = {index for inner in record.operators for index in inner.outputs}
    is_whole = ABSENT not in (*operator.inputs, *operator.outputs) and computed.issuperset(record.outputs)
    return is_whole and len(set(border)) == len(border)


def _moved(operator: OperatorRecord, index: int, places: dict[int, int]) -> OperatorRecord:
    """An operator on the tensors of another subgraph."""

    def of(indices: Sequence[int]) -> tuple[int, ...]:
        return tuple(ABSENT if each == ABSENT else places[each] for each in indices)

    return replace(
        operator,
        index=index,
        inputs=of(operator.inputs),
        outputs=of(operator.outputs),
        intermediates=of(operator.intermediates),
    )
