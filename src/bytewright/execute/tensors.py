"""Arrays at the border of a run: checks against the model's tensors, random inputs, and raw bytes."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from bytewright.diagnostics import Collector, Diagnostic, compile_error
from bytewright.record.entries import PlannedTensor
from bytewright.record.extents import extents_for
from bytewright.record.plan import Plan

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Inputs of one inference that fit the model.

    Attributes:
        arrays: Contiguous, in the model's order.
        extents: The value of every extent that the run is given, as the arrays' shapes have it.
        entry: The entry that runs, by its number; None for all of them in their order.
    """

    arrays: tuple[Array, ...]
    extents: Mapping[str, int]
    entry: int | None = None

    def outputs_of(self, plan: Plan) -> tuple[PlannedTensor, ...]:
        """The outputs that there are after it."""
        return plan.outputs if self.entry is None else plan.alone(plan.entries[self.entry]).outputs


_NPY_MAGIC = b"\x93NUMPY"


def array_from_npy(content: bytes) -> Array:
    """The array of a .npy file, in this machine's byte order.

    Raises:
        ValueError: It holds none, or only claims to, or Python's objects, which would be code.
    """
    if content.startswith(b"PK"):
        raise ValueError("it holds several arrays; give one .npy file for each input")
    if not content.startswith(_NPY_MAGIC):
        raise ValueError("it does not begin as one")
    try:
        return native(cast("Array", np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)))
    except MemoryError as error:
        raise ValueError(f"it claims more bytes than the {len(content)} that it has") from error
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError("it holds objects of Python, which are code and are not read") from error
        raise
    except Exception as error:  # what numpy trips over in a damaged header can be anything
        raise ValueError(f"it is damaged: {type(error).__name__}") from error


def native(array: Array) -> Array:
    """The same numbers in this machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def check_num_inputs(plan: Plan, num_given: int) -> None:
    """Refuses arrays that are not one for each input of the model.

    Raises:
        CompileError: BW205.
    """
    if num_given != len(plan.inputs):
        names = ", ".join(f"'{tensor.name}'" for tensor in plan.inputs)
        raise compile_error(
            "BW205",
            f"model '{plan.model}' has {len(plan.inputs)} inputs, {num_given} were given",
            notes=(f"in this order: {names}",),
        )


def number_of_entry(plan: Plan, name: str) -> int:
    """The number of an entry.

    Raises:
        CompileError: BW204, there is none of this name.
    """
    names = [entry.name for entry in plan.entries]
    if name not in names:
        listed = ", ".join(f"'{each}'" for each in names)
        message = f"model '{plan.model}' has no entry '{name}'; it has {listed}"
        raise compile_error("BW204", message, help=f"--entry {names[0]}")
    return names.index(name)


def seen_by(plan: Plan, entry: str | None) -> Plan:
    """The plan as an entry sees it; as it is for None, which is all of them.

    Raises:
        CompileError: BW204, there is none of this name.
    """
    return plan if entry is None else plan.alone(plan.entries[number_of_entry(plan, entry)])


def check_calls(
    plan: Plan, batch: Sequence[Sequence[ArrayLike]], entries: Sequence[str] | None = None
) -> list[Inputs]:
    """The inputs of each inference of a batch; `entries` has the entry of each, or else all run.

    Raises:
        CompileError: BW204 for another number of entries, or one that there is not; BW205 as of `check_inputs`.
    """
    if entries is None:
        return [check_inputs(plan, inputs) for inputs in batch]
    if len(entries) != len(batch):
        raise compile_error(
            "BW204", f"{len(batch)} inferences run, and {len(entries)} entries are named for them"
        )
    return [check_inputs(plan, inputs, entry) for inputs, entry in zip(batch, entries, strict=True)]


def _inputs_of_entry(plan: Plan, inputs: Sequence[ArrayLike], entry: str) -> Inputs:
    """The inputs of one entry, with zeros for those of the others."""
    number = number_of_entry(plan, entry)
    own = seen_by(plan, entry)
    found = check_inputs(own, inputs)
    given = dict(zip(own.inputs, found.arrays, strict=True))
    extents = {symbol.name: found.extents.get(symbol.name, symbol.upper) for symbol in plan.symbols}
    blank = (given.get(t, np.zeros(t.shape_for(extents), t.dtype.numpy)) for t in plan.inputs)
    return Inputs(tuple(blank), extents, number)


def check_inputs(plan: Plan, inputs: Sequence[ArrayLike], entry: str | None = None) -> Inputs:
    """The inputs, whatever numpy makes arrays of, as contiguous arrays, and the extents that they say.

    Args:
        plan: Of the model.
        inputs: Those of all its entries, or of the one that is named.
        entry: What runs; None for all.

    Raises:
        CompileError: BW204 for an entry that there is not; BW205 for a wrong number of arrays, or one diagnostic for
            each wrong shape or type.
    """
    if entry is not None:
        return _inputs_of_entry(plan, inputs, entry)
    check_num_inputs(plan, len(inputs))
    problems = Collector()
    arrays: list[Array] = []
    for tensor, given in zip(plan.inputs, inputs, strict=True):
        try:
            arrays.append(np.asarray(given))
        except ValueError:  # rows of different lengths
            problems.add(
                Diagnostic("BW205", f"input '{tensor.name}' {_wanted(plan, tensor)}, it is no array")
            )
    problems.stop_if_any()
    extents = _said_by(plan, arrays)
    for tensor, array in zip(plan.inputs, arrays, strict=True):
        if array.shape != tensor.shape_for(extents) or array.dtype != tensor.dtype.numpy:
            problems.add(
                Diagnostic(
                    "BW205",
                    f"input '{tensor.name}' {_wanted(plan, tensor)}, the array is {array.dtype}{list(array.shape)}",
                )
            )
    problems.stop_if_any()
    return Inputs(
        tuple(np.ascontiguousarray(array).reshape(array.shape) for array in arrays),
        extents,
    )


def _said_by(plan: Plan, arrays: Sequence[Array]) -> dict[str, int]:
    """The extents that the shapes of inputs say, the first that has one; the most of what none of them says."""
    bounds = {symbol.name: symbol for symbol in plan.symbols}
    extents = {symbol.name: symbol.upper for symbol in reversed(plan.symbols)}
    for tensor, array in reversed(list(zip(plan.inputs, arrays, strict=True))):
        for extent, found in zip(tensor.extents, array.shape, strict=False):
            bound = bounds.get(extent) if isinstance(extent, str) else None
            if bound is not None and bound.lower <= found <= bound.upper:
                extents[bound.name] = found
    return {symbol.name: extents[symbol.name] for symbol in plan.symbols}


def cut_batch(plan: Plan, inputs: Sequence[Array]) -> list[list[Array]]:
    """The inputs of single inferences, of arrays whose first axes count more samples than an inference takes.

    Whatever is no such array is an inference of its own, for `check_inputs` to judge.
    """
    tensors = (*plan.inputs, *plan.outputs)
    batches = {tensor.extents[:1] for tensor in tensors}
    counts = {array.shape[:1] for array in inputs}
    shapes = zip(plan.inputs, inputs, strict=False)
    if len(batches) > 1 or len(counts) > 1 or any(a.shape[1:] != t.shape[1:] for t, a in shapes):
        return [list(inputs)]
    (batch,), (count,) = batches or {()}, counts or {()}
    is_open = batch == tuple(symbol.name for symbol in plan.symbols)
    if len(count) != 1 or not (batch == (1,) or is_open):
        return [list(inputs)]
    most = plan.inputs[0].shape[0]
    return [[array[first : first + most] for array in inputs] for first in range(0, max(count[0], 1), most)]


def _wanted(plan: Plan, tensor: PlannedTensor) -> str:
    """`must be int8[1..4, 49, 10, 1]`, with the range of an extent that the run is given."""
    ranges = {symbol.name: f"{symbol.lower}..{symbol.upper}" for symbol in plan.symbols}
    extents = ", ".join(ranges.get(str(extent), str(extent)) for extent in tensor.extents)
    return f"must be {tensor.dtype.numpy}[{extents}]"


def random_inputs(plan: Plan, seed: int, entries: Sequence[str] | None = None) -> list[Array]:
    """Inputs from a seed, of the largest shape: integers over their full range, floats in [-1, 1).

    They are of the first of these entries, or of all.

    numpy keeps the stream of the legacy generator for ever, so a seed means the same bytes in any version.
    """
    generator = np.random.RandomState(seed)
    plan = seen_by(plan, entries[0] if entries else None)
    return [_random_array(generator, tensor) for tensor in plan.inputs]


def _random_array(generator: np.random.RandomState, tensor: PlannedTensor) -> Array:
    if tensor.dtype.numpy.kind == "f":
        return generator.uniform(-1.0, 1.0, tensor.shape).astype(tensor.dtype.numpy)
    if tensor.dtype.numpy.kind == "b":
        return generator.randint(0, 2, tensor.shape).astype(tensor.dtype.numpy)
    raw = generator.randint(0, 256, tensor.size_bytes, dtype=np.uint8)
    return raw.view(tensor.dtype.numpy).reshape(tensor.shape)


def pack(batch: Sequence[Inputs], repeat: int, *, keep_state: bool = False) -> bytes:
    """What the harness reads: the number of inferences, how often each runs, whether each goes on from where the last
    one ended, and of each its entry, extents and inputs.

    Numbers are i32.
    """
    pieces = [np.array([len(batch), repeat, keep_state], dtype="<i4").tobytes()]
    for inputs in batch:
        entry = -1 if inputs.entry is None else inputs.entry
        pieces.append(np.array([entry, *inputs.extents.values()], dtype="<i4").tobytes())
        pieces += [array.tobytes() for array in inputs.arrays]
    return b"".join(pieces)


def unpack_outputs(plan: Plan, data: bytes, batch: Sequence[Inputs]) -> tuple[tuple[Array, ...], ...]:
    """The outputs of all inferences from what a harness wrote; its length must have been checked."""
    results: list[tuple[Array, ...]] = []
    offset = 0
    for inputs in batch:
        arrays: list[Array] = []
        for tensor in plan.outputs:
            size_bytes = tensor.bytes_for(inputs.extents)
            arrays.append(output_array(tensor, data[offset : offset + size_bytes], inputs))
            offset += size_bytes
        own = inputs.outputs_of(plan)
        arrays = as_sized(plan.outputs, arrays, inputs)
        results.append(
            tuple(array for tensor, array in zip(plan.outputs, arrays, strict=True) if tensor in own)
        )
    return tuple(results)


def output_array(tensor: PlannedTensor, content: bytes | Array, inputs: Inputs) -> Array:
    """An output of an inference from its memory, which may be that of its largest shape: a copy."""
    shape = tensor.shape_for(inputs.extents)
    flat = np.frombuffer(content, dtype=tensor.dtype.numpy, count=math.prod(shape))
    return flat.reshape(shape).copy()


def as_sized(tensors: Sequence[PlannedTensor], outputs: Sequence[Array], inputs: Inputs) -> list[Array]:
    """The outputs of an inference, each as large as the run made it, as outputs say."""
    said = {t.name: int(array.item()) for t, array in zip(tensors, outputs, strict=True) if t.most}
    if not said:
        return list(outputs)
    values = {**inputs.extents, **said}

    def cut(tensor: PlannedTensor, array: Array) -> Array:
        shape = extents_for(tensor.sized, values)
        return array.reshape(-1)[: math.prod(shape)].reshape(shape)

    return [cut(t, array) if t.sized else array for t, array in zip(tensors, outputs, strict=True)]


def output_size_bytes(plan: Plan, batch: Sequence[Inputs]) -> int:
    """Bytes of all outputs of all inferences."""
    return sum(tensor.bytes_for(inputs.extents) for inputs in batch for tensor in plan.outputs)
