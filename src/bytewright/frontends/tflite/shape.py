"""Operators that move elements: PAD, RESHAPE, SLICE and their kin.

They copy raw values: where input and output have different quantisation, so do the references. Operands that
say where elements go must be constant, but for shapes; what the run cuts out is in `slices.py`.
"""

from collections.abc import Iterable
from math import prod

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.lookup import emit_table
from bytewright.frontends.tflite.options import fused_activation
from bytewright.frontends.tflite.sized import Number, demand_extent, is_size, numbers_operand, sizes_of
from bytewright.frontends.tflite.unsigned import UNSIGNED
from bytewright.ops.arithmetic import tables
from bytewright.ops.data import Concat, Pad, Slice


def convert_pad(at: Conversion) -> None:
    """PAD with real zero, PADV2 with a given value."""
    at.require_counts((3,) if at.operator.kind == "PADV2" else (2,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    widths = paddings_operand(at, source)
    at.require(min(widths, default=0) >= 0, f"paddings {list(widths)} are negative")
    value = _padding_value(at, source)
    at.define(emit_padded(at, at.value_of(source), widths[0::2], widths[1::2], value))


def emit_padded(
    at: Conversion, name: str, before: tuple[int, ...], after: tuple[int, ...], value: int | float
) -> str:
    """A value with elements around it; the value itself where there are none."""
    return at.emit(Pad(before, after, value), (name,), "padded") if any((*before, *after)) else name


def paddings_operand(at: Conversion, source: Operand) -> tuple[int, ...]:
    """The second operand: how many elements go before and after each axis, in turn."""
    widths = at.integers_operand(1, "paddings")
    rank, form = len(source.shape), at.operand(1, "paddings").shape
    at.require(form == (rank, 2), f"paddings of shape {list(form)} for {rank} axes")
    return widths


def _padding_value(at: Conversion, source: Operand) -> int | float:
    """What PAD fills with, real zero, and PADV2, its third operand, quantised as the output is."""
    if at.operator.kind == "PAD":
        return at.real_zero(source.dtype)
    operand, array = at.constant_operand(2, "padding value")
    at.require(array.size == 1, f"{array.size} padding values, one is needed")
    at.require(operand.dtype is source.dtype, f"the padding value is {operand.tensor.element_type}")
    if source.dtype is ir.DType.I8:
        same = at.affine(operand.tensor) == at.affine(at.output_tensor())
        at.require(same, "the padding value is quantised in another way than the output")
    value: int | float = array.reshape(-1)[0].item()
    return value


def convert_reshape(at: Conversion) -> None:
    """RESHAPE to the shape of its second operand, or of its options where that is missing, or no list."""
    at.require_counts((1, 2))
    source = at.operand(0, "input")
    if at.is_present(1) and at.operand(1, "shape").data is None:
        at.define_reshaped(source, _shape_of_run(at, prod(source.shape)))
        return
    if at.is_present(1) and (len(at.operand(1, "shape").shape) == 1 or not at.options.has(0)):
        shape, growth = at.extents_operand(1, "shape")
        if any(growth) and not any(at.extent_growth(0)):
            at.refuse_batch(f"the shape {list(shape)} depends on the batch, and the input does not")
    else:
        at.require(at.options.has(0), "there is no shape, neither as operand nor as option")
        shape = at.options.numbers(0, "<i4")
        growth = (0,) * len(shape)
    if at.graph.has_open_batch and any(at.extent_growth(0)):
        _require_samples_apart(at, shape, growth)
    if shape == (0,):
        shape = ()  # the form in which old converters wrote a scalar
    at.define_reshaped(source, _completed(at, shape, prod(source.shape)))


def _shape_of_run(at: Conversion, elements: int) -> tuple[int, ...]:
    """A shape of which the run computes numbers.

    One alone, which is no size of other operators, is what the others leave; runs in which it is another are refused.
    """
    numbers = numbers_operand(at, 1, "shape")
    unknown = [axis for axis, number in enumerate(numbers) if not number.is_known]
    if len(unknown) != 1 or Number(0, -1) in numbers:
        return _completed(at, sizes_of(at, numbers, "shape"), elements)
    (axis,) = unknown
    shape = tuple(-1 if own == axis else number.offset for own, number in enumerate(numbers))
    shape = _completed(at, shape, elements)
    if is_size(at, numbers[axis]) and sizes_of(at, numbers, "shape") == shape:
        return shape
    demand_extent(at, axis, shape[axis], -1)
    return shape


def _require_samples_apart(at: Conversion, shape: tuple[int, ...], growth: tuple[int, ...]) -> None:
    """Refuses a shape that has one sample in front, of whatever batch, and what is left of all of them behind it.

    In a file for one sample such a shape is that sample's; one for any batch means it as it stands.
    """
    if shape[:1] == (1,) and not growth[0] and -1 in shape:
        at.refuse_batch(f"the shape {list(shape)} makes one sample of all")


def _completed(at: Conversion, shape: tuple[int, ...], elements: int) -> tuple[int, ...]:
    """The shape with its -1 inferred.

    A model with an open batch may have been written for another batch than the one that is compiled: where the
    shape does not fit, its first extent gives way, to the compiled batch, 1, or to what fits.
    """
    at.require(min(shape, default=0) >= -1 and shape.count(-1) <= 1, f"the shape {list(shape)} is not valid")
    fitted = _fitted(shape, elements)
    if fitted is None and at.graph.has_open_batch and shape and shape[0] != -1:
        fitted = _fitted((1 if -1 in shape else -1, *shape[1:]), elements)
    if fitted is None:
        at.fail(f"{elements} elements cannot take the shape {list(shape)}")
    return fitted


def _fitted(shape: tuple[int, ...], elements: int) -> tuple[int, ...] | None:
    """The shape with its -1 inferred; None if it cannot hold the elements."""
    rest = prod(extent for extent in shape if extent != -1)
    if -1 not in shape:
        return shape if rest == elements else None
    if rest == 0 or elements % rest:
        return None
    return tuple(elements // rest if extent == -1 else extent for extent in shape)


def convert_squeeze(at: Conversion) -> None:
    """SQUEEZE of given axes, or of every axis of extent 1."""
    at.require_counts((1,))
    source = at.operand(0, "input")
    rank = len(source.shape)
    stated = at.options.numbers(0, "<i4")
    axes = at.axes(stated, rank) or tuple(axis for axis in range(rank) if source.shape[axis] == 1)
    at.require(all(source.shape[axis] == 1 for axis in axes), f"axes {list(axes)} are not all of extent 1")
    shape = tuple(extent for axis, extent in enumerate(source.shape) if axis not in axes)
    at.define_reshaped(source, shape)


def convert_expand_dims(at: Conversion) -> None:
    """EXPAND_DIMS: an axis of extent 1 at a constant position."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    position = one_integer(at, 1, "axis")
    rank = len(source.shape)
    at.require(-rank - 1 <= position <= rank, f"axis {position} for a tensor of rank {rank}")
    position = position % (rank + 1)
    shape = (*source.shape[:position], 1, *source.shape[position:])
    at.define_reshaped(source, shape)


def one_integer(at: Conversion, position: int, role: str) -> int:
    """A constant operand with one integer."""
    numbers = at.integers_operand(position, role)
    at.require(len(numbers) == 1, f"the {role} has {len(numbers)} values, one is needed")
    return numbers[0]


def require_same_quantization(at: Conversion, *operands: Operand) -> None:
    """Operands and results of one quantisation, as the references ask for."""
    if at.output_tensor().element_type not in ("INT8", "UINT8", "INT16"):
        return
    results = [at.output_tensor(position) for position in range(len(at.operator.outputs))]
    target = at.affine(results[0])
    for tensor in (*(operand.tensor for operand in operands), *results):
        at.require(
            at.affine(tensor) == target, f"'{tensor.name}' is quantised in another way than the result"
        )


def convert_concatenation(at: Conversion) -> None:
    """CONCATENATION of values of one quantisation; uint8 is scaled to it. Those without elements add nothing."""
    at.require_counts(range(1, len(at.operator.inputs) + 1))
    activation = fused_activation(at, 1)
    at.require(activation == "NONE", f"the fused activation {activation} is not supported")
    operands = [at.operand(position, "operand") for position in range(len(at.operator.inputs))]
    at.require_same_dtype(*operands)
    rank = len(operands[0].shape)
    axis = at.options.integer(0)
    at.require(-rank <= axis < rank, f"axis {axis} of tensors of rank {rank}")
    full = [operand for operand in operands if operand.type.num_elements] or operands[:1]
    is_scaled = at.output_tensor().element_type == UNSIGNED
    if not is_scaled:
        require_same_quantization(at, *full)
    axis %= rank
    beside = {(*each.shape[:axis], *each.shape[axis + 1 :]) for each in operands}
    at.require(
        len(beside) == 1, f"shapes {[list(each.shape) for each in operands]} differ beside axis {axis}"
    )
    names = [
        emit_table(at, operand, tables.joined)
        if is_scaled and at.affine(operand.tensor) != at.affine(at.output_tensor())
        else at.value_of(operand, f"operand_{position}")
        for position, operand in enumerate(full)
    ]
    at.define(emit_joined(at, axis, names, "joined"))


def emit_joined(at: Conversion, axis: int, names: list[str], role: str) -> str:
    """Values one after the other along an axis; the value itself where there is one."""
    return names[0] if len(names) == 1 else at.emit(Concat(axis), names, role)


def emit_slice(
    at: Conversion,
    name: str,
    start: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    whole_to: Iterable[tuple[int, int]] = (),
) -> str:
    """A slice; the value itself where all of it is taken in order, a constant without bytes where nothing is.

    Of a graph whose extents are to be opened, one that takes all has a use, if along an axis it is all of some
    extents alone: `whole_to` has the largest of them, and 0 where the file names elements by their numbers.
    """
    kept = tuple(whole_to) if at.graph.is_opened else ()
    is_whole = size == at.type_of(name).fixed_shape and not any(start) and all(step == 1 for step in stride)
    if is_whole and not kept:
        return name
    at.require(min(size, default=0) >= 0, f"the slice {list(size)} has a negative extent")
    if 0 in size:
        return at.empty(size, at.type_of(name).dtype, "sliced")
    return at.emit(Slice(start, size, stride, kept), (name,), "sliced")


def emit_part(at: Conversion, source: Operand, part: int) -> str:
    """The real (0) or the imaginary part (1) of each of complex numbers."""
    start = (*(0,) * len(source.shape), part)
    found = emit_slice(at, at.value_of(source), start, (*source.shape, 1), (1,) * len(start))
    return at.reshape(found, source.shape, "part")


def convert_split(at: Conversion) -> None:
    """SPLIT into equal parts along a constant axis."""
    count = at.options.integer(0)
    at.require_counts((2,), outputs=max(count, 1))
    axis = one_integer(at, 0, "axis")
    source = at.operand(1, "input")
    rank = len(source.shape)
    axis = at.axis(axis, rank)
    extent = source.shape[axis]
    at.require(extent % count == 0, f"an extent of {extent} is not divisible into {count} parts")
    size = (*source.shape[:axis], extent // count, *source.shape[axis + 1 :])
    name = at.value_of(source)
    for part in range(count):
        start = (*(0,) * axis, part * (extent // count), *(0,) * (rank - axis - 1))
        at.define(emit_slice(at, name, start, size, (1,) * rank), part)


def convert_transpose(at: Conversion) -> None:
    """TRANSPOSE by a constant permutation; a reshape where only axes of extent 1 move."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    permutation = at.integers_operand(1, "permutation")
    rank = len(source.shape)
    at.require(
        sorted(permutation) == list(range(rank)), f"{list(permutation)} is no permutation of {rank} axes"
    )
    name = at.value_of(source)
    moving = [axis for axis in permutation if source.shape[axis] != 1]
    if moving == sorted(moving) and not at.graph.bounds.has_single:
        at.define(at.reshape(name, tuple(source.shape[axis] for axis in permutation), "transposed"))
    else:
        at.define(at.transpose(name, permutation, "transposed"))


def emit_transposed(
    at: Conversion, name: str, split: tuple[int, ...], permutation: tuple[int, ...], result: tuple[int, ...]
) -> str:
    """A value seen as `split`, with its axes permuted, seen as `result`; a reshape where only extents of 1 move."""
    moving = [axis for axis in permutation if split[axis] != 1]
    if moving == sorted(moving):
        return at.reshape(name, result)
    seen = at.reshape(name, split, "split")
    return at.reshape(at.transpose(seen, permutation, "moved"), result)
