"""C identifiers of the model's inputs and outputs: as its signature calls them, or after their tensors."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bytewright import ir
from bytewright.base.c_names import c_name, is_c_name, unique_name
from bytewright.frontends.tflite.model import ModelRecord


@dataclass(frozen=True, slots=True)
class PortName:
    """What an input or output is called.

    Attributes:
        name: The member of the generated structure.
        stated: What the model calls it, where another has that name in C.
        in_file: What the file calls it: as its tensor, and as the signature does.
    """

    name: str
    stated: str | None
    in_file: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BorderNames:
    """The names of all inputs and outputs, in the file's order."""

    inputs: tuple[PortName, ...]
    outputs: tuple[PortName, ...]


def border_names(model: ModelRecord) -> BorderNames:
    """Names as users know them."""
    signature = model.signature
    return BorderNames(
        _port_names(model, model.inputs, signature.inputs if signature else (), ir.Border.INPUT),
        _port_names(model, model.outputs, signature.outputs if signature else (), ir.Border.OUTPUT),
    )


def entry_names(models: Sequence[ModelRecord]) -> tuple[str, ...]:
    """What the functions of the models are called: `main`, or of several signatures as these are."""
    if len(models) == 1:
        return ("main",)
    taken: set[str] = set()
    keys = [model.signature.key if model.signature is not None else "" for model in models]
    return tuple(unique_name(c_name(key, f"entry_{number}"), taken) for number, key in enumerate(keys))


def _port_names(
    model: ModelRecord, indices: tuple[int, ...], signed: tuple[tuple[int, str], ...], border: ir.Border
) -> tuple[PortName, ...]:
    """A name for each; one that is taken gets a number.

    Of a tensor that the signature names twice the names are given in turn. One that it does not name is called after
    the tensor, in small letters: converters write names of classes there.
    """
    left = list(signed)
    taken: set[str] = set()
    stated_before: Counter[str] = Counter()  # each of them took a number, or the name itself
    found: list[PortName] = []
    for position, index in enumerate(indices):
        entry = next((each for each in left if each[0] == index), None)
        if entry is not None:
            left.remove(entry)
        stated = entry[1] if entry is not None else model.tensors[index].name
        wanted = stated if entry is not None else stated.lower()
        wanted = wanted if is_c_name(wanted) else c_name(wanted, f"{border.value}_{position}")
        name = unique_name(wanted, taken, max(1, stated_before[wanted]))
        stated_before[wanted] += 1
        in_file = (stated, model.tensors[index].name)
        found.append(PortName(name, None if name == wanted else stated, in_file))
    return tuple(found)


def names_in_file(ports: Iterable[PortName]) -> dict[str, tuple[str, ...]]:
    """What the file calls inputs, or outputs, of one signature or several, by their names in C."""
    found: dict[str, tuple[str, ...]] = {}
    for port in ports:
        found[port.name] = (*found.get(port.name, ()), *port.in_file)
    return found
