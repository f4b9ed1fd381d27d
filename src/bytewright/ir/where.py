"""Where a node comes from: model, operator, tensor. Every node carries it and every diagnostic shows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the source model.

    Attributes:
        model: The model file's name, without folders, so that output does not depend on where it lies.
        operator: "3 (CONV_2D)", the operator's index and kind in the file, if the node comes from one.
        tensor: The tensor's name in the file, if that says more.
    """

    model: str
    operator: str | None = None
    tensor: str | None = None

    def __str__(self) -> str:
        parts = [self.model]
        if self.operator is not None:
            parts.append(f"operator {self.operator}")
        if self.tensor is not None:
            parts.append(f"tensor '{self.tensor}'")
        return ", ".join(parts)


NOWHERE = Where("built by hand")
