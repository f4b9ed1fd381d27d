"""A step of a sequence that exporters replace by cutting the sequence around it: DYNAMIC_UPDATE_SLICE again.

A recurrent layer that returns sequences writes one step a turn. TensorFlow 2.19 and older converters write that as what
is before step i, the new step, and what is behind it, joined: two SLICEs whose sizes the run alone knows, and a
CONCATENATION. The place from which all other axes are whole is [i, -1, ...], the size of the first part: a start below
zero means zero.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bytewright.frontends.tflite.model import ModelRecord, OperatorRecord

_INTEGERS = {"INT32": "<i4", "INT64": "<i8"}
_SAME_VALUE = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")


def with_updates(model: ModelRecord) -> ModelRecord:
    """A subgraph with a DYNAMIC_UPDATE_SLICE where a step of a sequence is replaced."""
    joins = [o for o in model.operators if o.kind == "CONCATENATION" and len(o.operands) == 3]
    if not joins:
        return model
    sequences = _Sequences(model, {index: o for o in model.operators for index in o.outputs})
    found = {join.index: update for join in joins if (update := sequences.update(join)) is not None}
    operators = tuple(found.get(operator.index, operator) for operator in model.operators)
    return replace(model, operators=_without_unread(model, operators)) if found else model


def _without_unread(model: ModelRecord, operators: tuple[OperatorRecord, ...]) -> tuple[OperatorRecord, ...]:
    """The operators but for slices that nothing reads any more: their sizes are not known."""
    read = {index for operator in operators for index in operator.operands} | set(model.outputs)
    return tuple(o for o in operators if o.kind != "SLICE" or not read.isdisjoint(o.outputs))


@dataclass(frozen=True, slots=True)
class _Sequences:
    """A subgraph, and by which operator each tensor is computed."""

    model: ModelRecord
    producers: dict[int, OperatorRecord]

    def update(self, join: OperatorRecord) -> OperatorRecord | None:
        """What a CONCATENATION of three parts is, if the outer ones are a sequence without the steps between."""
        before, steps, behind = join.operands
        first, last = self._operator(before, "SLICE", 3), self._operator(behind, "SLICE", 3)
        is_along_steps = join.options is None or (join.options.integer(0), join.options.integer(1, "b")) == (
            0,
            0,
        )
        if first is None or last is None or first.inputs[0] != last.inputs[0] or not is_along_steps:
            return None
        whole, new = (self.model.tensors[index].shape for index in (first.inputs[0], steps))
        if not new or len(whole) != len(new) or whole[1:] != new[1:]:
            return None
        begin, end = self._cut(first.inputs[2], whole, -1), self._cut(last.inputs[1], whole, 0)
        is_rest = self._is_all(last.inputs[2], whole, -1) and self._is_all(first.inputs[1], whole, 0)
        if begin is None or end is None or not is_rest or not self._is_sum(end, begin, new[0]):
            return None
        operands = (first.inputs[0], steps, first.inputs[2])
        return replace(join, kind="DYNAMIC_UPDATE_SLICE", inputs=operands, options_type=None, options=None)

    def _operator(self, tensor: int, kind: str, num_inputs: int) -> OperatorRecord | None:
        found = self.producers.get(tensor)
        return (
            found if found is not None and (found.kind, len(found.operands)) == (kind, num_inputs) else None
        )

    def _values(self, tensor: int) -> NDArray[np.int64] | None:
        """Integers that the file has."""
        record = self.model.tensors[tensor]
        if not record.has_values or record.element_type not in _INTEGERS:
            return None
        return np.frombuffer(self.model.buffers[record.buffer], _INTEGERS[record.element_type]).astype(
            np.int64
        )

    def _is_all(self, tensor: int, whole: tuple[int, ...], value: int) -> bool:
        """Whether it is constant, and takes every axis from its begin on, or to its end, behind the first one."""
        values = self._values(tensor)
        if values is None or len(values) != len(whole) or values[0] != value:
            return False
        return all(
            own in (value, extent if value else 0) for own, extent in zip(values[1:], whole[1:], strict=True)
        )

    def _cut(self, tensor: int, whole: tuple[int, ...], rest: int) -> int | None:
        """The tensor that says where the first axis is cut; for the others there must be `rest`."""
        made = self.producers.get(tensor)
        if made is None or made.kind not in ("CONCATENATION", "PACK") or not made.operands:
            return None
        place, *others = made.operands
        values = [self._values(index) for index in others]
        known = [value for each in values if each is not None for value in each.tolist()]
        if any(each is None for each in values) or known != [rest] * (len(whole) - 1):
            return None
        return self._number(place)

    def _number(self, tensor: int) -> int:
        """The tensor that one of a single element is made of."""
        made = self.producers.get(tensor)
        while made is not None and made.kind in _SAME_VALUE and made.operands:
            tensor = made.operands[0]
            made = self.producers.get(tensor)
        return tensor

    def _is_sum(self, total: int, first: int, step: int) -> bool:
        """Whether a number is the other one and a constant."""
        made = self._operator(total, "ADD", 2)
        if made is None or (made.options is not None and made.options.integer(0, "b")):
            return False
        for own, other in (made.operands, made.operands[::-1]):
            values = self._values(other)
            if self._number(own) == first and values is not None and values.tolist() == [step]:
                return True
        return False
