"""Inputs and outputs by their names, in place of their order."""

from collections.abc import Sequence
from typing import TypeVar

from bytewright.diagnostics import compile_error

Given = TypeVar("Given")


def in_order(names: Sequence[str], given: Sequence[tuple[str | None, Given]], border: str) -> list[Given]:
    """What was given, in the model's order: as it stands where nothing is named, else by the names.

    Args:
        names: Of the model's inputs or outputs.
        given: Each with its name, or with None.
        border: "input" or "output".

    Raises:
        CompileError: BW205: some are named and some are not, or a name is unknown, missing or there twice.
    """
    found = {name: value for name, value in given if name is not None}
    if not found:
        return [value for _, value in given]
    stated = [name for name, _ in given]
    problem = None
    if None in stated:
        problem = f"some {border}s are given by name and some are not"
    elif unknown := [name for name in found if name not in names]:
        problem = f"there is no {border} '{unknown[0]}'"
    elif len(found) < len(stated):
        twice = next(name for name in found if stated.count(name) > 1)
        problem = f"{border} '{twice}' is given twice"
    elif missing := [name for name in names if name not in found]:
        problem = f"{border} '{missing[0]}' is not given"
    if problem is not None:
        listed = ", ".join(f"'{name}'" for name in names)
        raise compile_error("BW205", problem, notes=(f"the model's {border}s are {listed}",))
    return [found[name] for name in names]
