"""Convolutions of whole pixels on MVE: all output channels of one or two of them as one instruction."""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.mve.assembly import VECTORS, Operand, Result, assembly, repeated
from bytewright.lower.isa.mve.dot_products import CHANNELS, SUMS, Chunks, collect_lines, dot_lines, num_blocks
from bytewright.lower.isa.mve.lanes import FEATURE, LANES, VECTOR
from bytewright.lower.isa.mve.scaling import Kind, scale_lines, scaled
from bytewright.lower.isa.vector_unit import memory_parameter, register_parameter

I8, I32 = ir.DType.I8, ir.DType.I32
PIXELS = 2  # of a pair
_CHANGED = (*VECTORS, *SUMS, "r3")
_SCALES = 3 * CHANNELS  # numbers of a block: bias, multiplier, shift


@cache
def convolve(
    num_pixels: int,
    depth: int,
    num_channels: int,
    kind: Kind,
    *,
    is_uniform: bool = False,
    element: ir.DType = I8,
) -> ir.Instruction:
    """Dot products of pixels with the weights of every channel, scaled to elements of the input's type.

    Operands: for each pixel its output, [num_channels]; for each its input, [depth]; weights as `packed_weights`,
    scales as `Scaling.packed` has them by blocks of four channels; zero point, low, high. Of one pixel, scales may be
    uniform: as `Scaling.packed_uniform` has them.
    """
    assert num_pixels == 1 or not is_uniform, "two pixels leave no register for the scales"
    blocks, chunks = num_blocks(num_channels), Chunks(depth, element)
    pixels = range(num_pixels)
    outputs = [memory_parameter(f"output{i}", num_channels, element, ir.Access.WRITE) for i in pixels]
    inputs = [memory_parameter(f"input{i}", depth, element) for i in pixels]
    weights = memory_parameter("weights", blocks * chunks.block_bytes, I8)
    scales = memory_parameter("scales", 2 + blocks * CHANNELS if is_uniform else blocks * _SCALES, I32)
    limits = [ir.ScalarParameter(ir.Var(name, I32)) for name in ("zero_point", "low", "high")]
    parameters = (*outputs, *inputs, weights, scales, *limits)
    name = f"mve_convolve_{num_pixels}x{depth}_to_{num_channels}_{kind.name.lower()}"
    name += chunks.suffix + ("_uniform" if is_uniform else "")
    meaning = _Meaning(name, chunks, weights.buffer)

    def store(lane: ir.Expr, block: ir.Expr, sums: Sequence[ir.Buffer]) -> None:
        places = [block * _SCALES + row * LANES + lane for row in (1, 2)]
        if is_uniform:
            places = [ir.const(0), ir.const(1)]
        multiplier, shift = (load(scales.buffer, place) for place in places)
        for output, total in zip(outputs, sums, strict=True):
            ends = [limit.variable for limit in limits]
            value = scaled(kind, load(total), multiplier, 0 - shift, ends, element)
            meaning.body.store(output.buffer, block * CHANNELS + lane, value)

    for first, count, channels in _runs(num_channels):
        with meaning.blocks(first, count) as block, meaning.lanes(channels) as lane:
            initial = block * CHANNELS + lane + 2 if is_uniform else block * _SCALES + lane
            sums = meaning.sums([each.buffer for each in inputs], block, lane, load(scales.buffer, initial))
            store(lane, block, sums)
    of_pixels = "a pixel" if num_pixels == 1 else f"{num_pixels} pixels"
    return ir.Instruction(
        name,
        parameters,
        meaning.body.finish(),
        _convolve_text(num_pixels, chunks, num_channels, kind, is_uniform=is_uniform),
        FEATURE,
        f"{num_channels} output channels of {of_pixels}: dot products of {depth} {chunks.noun}, four channels at "
        "a time, their bias, and scaling to the output.",
    )


@cache
def sum_block(num_pixels: int, depth: int, element: ir.DType = I8) -> ir.Instruction:
    """Finished sums of four channels of one or two pixels, of activations of a type.

    Operands: for each pixel a vector of sums; for each its input; weights of the block as `packed_weights`; bias.
    """
    chunks = Chunks(depth, element)
    totals = [register_parameter(f"total{i}", LANES, I32, VECTOR, ir.Access.WRITE) for i in range(num_pixels)]
    inputs = [memory_parameter(f"input{i}", depth, element) for i in range(num_pixels)]
    weights = memory_parameter("weights", chunks.block_bytes, I8)
    bias = memory_parameter("bias", CHANNELS, I32)
    name = f"mve_sums_{num_pixels}x{depth}{chunks.suffix}"
    meaning = _Meaning(name, chunks, weights.buffer)
    with meaning.lanes(CHANNELS) as lane:
        sums = meaning.sums([each.buffer for each in inputs], ir.const(0), lane, load(bias.buffer, lane))
        for total, value in zip(totals, sums, strict=True):
            meaning.body.store(total.buffer, lane, load(value))
    pixels = "a pixel" if num_pixels == 1 else f"{num_pixels} pixels"
    return ir.Instruction(
        name,
        (*totals, *inputs, weights, bias),
        meaning.body.finish(),
        _sums_text(num_pixels, chunks),
        FEATURE,
        f"Four output channels of {pixels}: dot products of {depth} {chunks.noun}, and their bias.",
    )


def _runs(num_channels: int) -> list[tuple[int, int, int]]:
    """Blocks of equal size: the first of them, how many, and channels of each."""
    whole, rest = divmod(num_channels, CHANNELS)
    runs = [(0, whole, CHANNELS), (whole, 1, rest)]
    return [(first, count, channels) for first, count, channels in runs if count and channels]


class _Meaning:
    """The statements of both instructions."""

    def __init__(self, name: str, chunks: Chunks, weights: ir.Buffer) -> None:
        self.name = name
        self.chunks = chunks
        self.weights = weights
        self.body = BodyBuilder()

    def blocks(self, first: int, count: int) -> AbstractContextManager[ir.Expr]:
        """A loop over blocks of channels."""
        return self._loop("block", first, first + count)

    def lanes(self, count: int) -> AbstractContextManager[ir.Expr]:
        """A loop over the channels of a block."""
        return self._loop("lane", 0, count)

    def sums(
        self, inputs: Sequence[ir.Buffer], block: ir.Expr, lane: ir.Expr, initial: ir.Expr
    ) -> list[ir.Buffer]:
        """The sum of one channel for each pixel."""
        chunks, body = self.chunks, self.body
        sums = [body.scalar(f"sum{i}", I32, initial) for i in range(len(inputs))]
        per_chunk = CHANNELS * chunks.width

        def add(chunk: ir.Expr, first: ir.Expr) -> None:
            with self._loop("k", 0, chunks.width) as k:
                place = block * chunks.block_bytes + chunk * per_chunk + lane * chunks.width + k
                for total, source in zip(sums, inputs, strict=True):
                    value, weight = load(source, first + k), load(self.weights, place)
                    body.add_to(total, (), ir.cast(value, I32) * ir.cast(weight, I32))

        with self._loop("chunk", 0, chunks.num_whole) as chunk:
            add(chunk, chunk * chunks.width)
        if chunks.is_ragged:
            add(ir.const(chunks.num_whole), ir.const(chunks.offsets[-1]))
        return sums

    @contextmanager
    def _loop(self, name: str, begin: int, end: int) -> Generator[ir.Expr, None, None]:
        if end - begin == 1:
            yield ir.const(begin)
        else:
            with self.body.for_(f"{self.name}.{name}", begin, end) as variable:
                yield variable


# What statements are given: outputs and narrow inputs are low registers, as instructions that narrow or widen need.
_OUTPUTS, _INPUTS, _WEIGHTS, _SCALES_AT, _COUNTER = ("r1", "r3"), ("r5", "r9"), "r11", "r8", "r3"
_MULTIPLIER, _SHIFT = "r10", "r12"  # of all channels: with one pixel they are no sums
_LOW_INPUTS, _LOW_WEIGHTS, _HIGH_OUTPUTS = ("r1", "r3"), "r5", ("r9", "r11")


def _convolve_text(
    num_pixels: int, chunks: Chunks, num_channels: int, kind: Kind, *, is_uniform: bool
) -> str:
    """The C text of `convolve`.

    q4 to q6 hold zero point and bounds. With two pixels all even registers are sums, so between blocks the pointer to
    the scales and the loop's count stay in q7, and so do those to the outputs if the chunks are a loop, which counts in
    the second of them.
    """
    is_narrow = chunks.widens
    outputs = (_HIGH_OUTPUTS if is_narrow else _OUTPUTS)[:num_pixels]
    inputs = (_LOW_INPUTS if is_narrow else _INPUTS)[:num_pixels]
    weights = _LOW_WEIGHTS if is_narrow else _WEIGHTS
    is_pair, keeps_outputs = num_pixels == PIXELS, num_pixels == PIXELS and chunks.is_loop
    blocks = num_blocks(num_channels)
    vectors = [f"q{i}" for i in range(num_pixels)]
    lines = ["vdup.32 q4, r0", "vdup.32 q5, r2", "vdup.32 q6, r4"]
    kept = f"q7[3], q7[1], {', '.join(outputs)}"
    lines += [f"vmov {kept}"] if keeps_outputs else []
    lines += [f"ldrd {_MULTIPLIER}, {_SHIFT}, [{_SCALES_AT}], #8"] if is_uniform else []
    lines += repeated(blocks, "1")
    lines += ["vmov q7[2], q7[0], r8, lr"] if is_pair else []
    counter = outputs[1] if is_pair else _COUNTER
    lines += dot_lines(chunks, list(inputs), weights, counter) + collect_lines(num_pixels)
    lines += ["vmov r8, lr, q7[2], q7[0]"] if is_pair else []
    lines += [f"vmov {', '.join(outputs)}, q7[3], q7[1]"] if keeps_outputs else []
    uniform = (_MULTIPLIER, _SHIFT) if is_uniform else None
    lines += scale_lines(kind, vectors, _SCALES_AT, "q2", "q3", uniform)
    lines += [f"vqadd.s32 {each}, {each}, q4" for each in vectors]
    lines += [f"vmax.s32 {each}, {each}, q5" for each in vectors]
    lines += [f"vmin.s32 {each}, {each}, q6" for each in vectors]
    back = [f"vmov {kept}"] if keeps_outputs else []
    size = chunks.element.size_bytes
    lines += _store_lines(outputs, num_channels, [*back, "le lr, 1b"], size, is_narrow=is_narrow)
    pointer = f"int{8 * size}_t *"
    operands = [Operand(f"output{i}", each, pointer) for i, each in enumerate(outputs)]
    operands += [Operand(f"input{i}", each, f"const {pointer}") for i, each in enumerate(inputs)]
    operands += [Operand("weights", weights, "const int8_t *"), Operand("scales", "r8", "const int32_t *")]
    limits = zip(("zero_point", "low", "high"), ("r0", "r2", "r4"), strict=True)
    operands += [Operand(name, register, "int32_t") for name, register in limits]
    return assembly(operands, lines, _CHANGED)


def _store_lines(
    outputs: Sequence[str], num_channels: int, again: list[str], size: int, *, is_narrow: bool
) -> list[str]:
    """Stores a block of elements of one or two bytes, and goes on with the next one; of the last one, what there is."""
    whole: list[str] = []
    letter = "b" if size == 1 else "h"
    for pixel, output in enumerate(outputs):
        if is_narrow:  # a high register cannot be the address
            whole += [
                f"mov r{2 * pixel}, {output}",
                f"vstr{letter}.32 q{pixel}, [r{2 * pixel}]",
                f"adds {output}, #{4 * size}",
            ]
        else:
            whole += [f"vstrb.32 q{pixel}, [{output}], #4"]
    blocks, rest = num_blocks(num_channels), num_channels % CHANNELS
    if not rest:
        return whole + (again if blocks > 1 else [])
    last = [
        line
        for pixel, output in enumerate(outputs)
        for lane in range(rest)
        for line in (f"vmov.32 r0, q{pixel}[{lane}]", f"str{letter} r0, [{output}, #{lane * size}]")
    ]
    return ["cmp lr, #1", "beq 3f", *whole, *again, "3:", *last] if blocks > 1 else last


def _sums_text(num_pixels: int, chunks: Chunks) -> str:
    """The C text of `sum_block`."""
    inputs = (_LOW_INPUTS if chunks.widens else _INPUTS)[:num_pixels]
    weights, bias, counter = (_LOW_WEIGHTS, "r9", "r11") if chunks.widens else (_WEIGHTS, "r1", "r3")
    lines = dot_lines(chunks, list(inputs), weights, counter) + collect_lines(num_pixels)
    lines += [f"vldrw.u32 q2, [{bias}]", *(f"vadd.i32 q{i}, q{i}, q2" for i in range(num_pixels))]
    pointer = f"const int{8 * chunks.element.size_bytes}_t *"
    operands = [Operand(f"input{i}", each, pointer) for i, each in enumerate(inputs)]
    operands += [Operand("weights", weights, "const int8_t *"), Operand("bias", bias, "const int32_t *")]
    targets = ["return "] if num_pixels == 1 else [f"*total{i}_at = " for i in range(num_pixels)]
    results = [Result(target, f"q{i}", VECTOR) for i, target in enumerate(targets)]
    return assembly(operands, lines, (*(f"q{i}" for i in range(4)), *SUMS, counter), results)
