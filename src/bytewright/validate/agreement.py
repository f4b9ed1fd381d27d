"""How outputs agree over many samples: bit for bit, in steps, in the answer, and with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bytewright.execute.tensors import Array

FLOAT_TOLERANCE = 1e-5  # of the largest number of the reference's output (docs/numerics.md)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How outputs of the bundle and of another agree.

    Attributes:
        name: Of the other.
        num_samples: Those that the other has outputs of.
        num_exact: Samples whose outputs are all equal; floats up to the tolerance.
        first_different: The first sample that is not.
        worst: The largest difference of two elements: steps of integers, or a difference of floats.
        num_same_answers: Samples with the same largest element of the first output; None if that has one element.
        num_right: Samples for which the other's answer is the label; None without labels.
    """

    name: str
    num_samples: int
    num_exact: int
    first_different: int | None
    worst: float
    num_same_answers: int | None
    num_right: int | None

    @property
    def is_exact(self) -> bool:
        """Whether every sample is."""
        return self.num_exact == self.num_samples


class AgreementCount:
    """Counts an agreement, sample by sample."""

    def __init__(self, name: str, labels: Array | None) -> None:
        self._name, self._labels = name, labels
        self._num_samples = self._num_exact = self._num_same = self._num_right = 0
        self._first: int | None = None
        self._worst = 0.0
        self._has_answers = True

    def add(self, number: int, own: Sequence[Array], others: Sequence[Array] | None) -> None:
        """The outputs of a sample; the other may have none."""
        if others is None:
            return
        self._num_samples += 1
        if all(is_equal(array, other) for array, other in zip(own, others, strict=True)):
            self._num_exact += 1
        elif self._first is None:
            self._first = number
        for array, other in zip(own, others, strict=True):
            self._worst = max(self._worst, distance(array, other))
        answer = answer_of(others[0])
        self._has_answers = self._has_answers and answer is not None
        self._num_same += answer == answer_of(own[0])
        if self._labels is not None:
            self._num_right += answer == int(self._labels[number])

    def result(self) -> Agreement:
        """What was counted."""
        return Agreement(
            self._name,
            self._num_samples,
            self._num_exact,
            self._first,
            self._worst,
            self._num_same if self._has_answers else None,
            None if self._labels is None else self._num_right,
        )


def answer_of(output: Array) -> int | None:
    """The class that an output says, the first one with the largest number; None of one element or several rows."""
    return int(output.argmax()) if output.size > 1 and output.size == output.shape[-1] else None


def is_equal(own: Array, other: Array) -> bool:
    """Whether arrays are equal, of any shape, in their order.

    Integers are bit for bit, floats up to the tolerance, which is of the largest finite one; what is not finite is the
    same in both.
    """
    if own.size != other.size or own.dtype != other.dtype:
        return False
    if own.dtype.kind != "f":
        return bool((own.reshape(-1) == other.reshape(-1)).all())
    is_finite = np.isfinite(other.reshape(-1))
    limit = FLOAT_TOLERANCE * float(np.abs(other.reshape(-1)[is_finite]).max(initial=0.0))
    return distance(own, other) <= limit


def distance(own: Array, other: Array) -> float:
    """The largest difference of two elements; infinite where arrays cannot be compared, or one has a NaN alone."""
    if own.size != other.size or own.dtype != other.dtype:
        return float("inf")
    first, second = own.reshape(-1), other.reshape(-1)
    same = first == second
    if own.dtype.kind == "f":
        same |= np.isnan(first) & np.isnan(second)
    if same.all():
        return 0.0
    worst = np.abs(first[~same].astype(np.float64) - second[~same].astype(np.float64)).max()
    return float("inf") if np.isnan(worst) else float(worst)
