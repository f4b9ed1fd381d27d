"""Convolutions of whole pixels on MVE: all output channels of one or two of them as one instruction."""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.isa.mve.assembly import Assembly, Registers
from bytewright.lower.isa.mve.dot_products import CHANNELS, Chunks, collect, num_blocks, write_dots
from bytewright.lower.isa.mve.lanes import FEATURE, LANES, VECTOR
from bytewright.lower.isa.mve.scaling import Kind, scaled, write_scaling
from bytewright.lower.isa.vector_unit import memory_parameter, register_parameter

I8, I32 = ir.DType.I8, ir.DType.I32
PIXELS = 2  # of a pair
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


def _convolve_text(
    num_pixels: int, chunks: Chunks, num_channels: int, kind: Kind, *, is_uniform: bool
) -> str:
    """The C text of `convolve`.

    The sums of two pixels take all even registers, so meanwhile the pointer to the scales and the loop's count wait in
    a vector, and so do those to the outputs if the chunks are a loop.
    """
    assembly = Assembly()
    line = assembly.line
    # Addresses of stores that narrow have to be low, and those of loads that widen, which leave none for stores.
    if chunks.is_narrow:
        inputs, weights = _operands(assembly, num_pixels, chunks, Registers.LOW)
        outputs = _outputs(assembly, num_pixels, chunks, Registers.GENERAL)
    else:
        outputs = _outputs(assembly, num_pixels, chunks, Registers.LOW)
        inputs, weights = _operands(assembly, num_pixels, chunks, Registers.GENERAL)
    scales = assembly.operand("scales", "const int32_t *", Registers.EVEN)
    limits = [assembly.operand(name, "int32_t", Registers.EVEN) for name in ("zero_point", "low", "high")]
    blocks, turns = num_blocks(num_channels), assembly.take("turns", Registers.LOOP)
    bounds = assembly.take_all("limit", 3, Registers.VECTOR)
    line(*(f"vdup.32 {vector}, {limit}" for vector, limit in zip(bounds, limits, strict=True)))
    assembly.free(*limits)
    uniform: tuple[str, str] | None = None
    if is_uniform:
        multiplier, shift = assembly.take_all("scale of all", 2, Registers.EVEN)
        line(f"ldrd {multiplier}, {shift}, [{scales}], #8")
        uniform = multiplier, shift
    if blocks > 1:
        line(f"movw {turns}, #{blocks}", "1:")
    with ExitStack() as stack:
        if num_pixels == PIXELS:
            parked = assembly.take("parked", Registers.VECTOR)
            stack.enter_context(assembly.parked((scales, turns), parked, (2, 0)))
            if chunks.is_loop:
                stack.enter_context(assembly.parked(outputs, parked, (3, 1)))
        vectors = collect(assembly, write_dots(assembly, chunks, inputs, weights))
    write_scaling(assembly, kind, vectors, scales, uniform)
    for name, limit in zip(("vqadd", "vmax", "vmin"), bounds, strict=True):
        line(*(f"{name}.s32 {each}, {each}, {limit}" for each in vectors))
    _write_stores(assembly, outputs, vectors, num_channels, chunks)
    return assembly.text()


def _outputs(assembly: Assembly, num_pixels: int, chunks: Chunks, kind: Registers) -> list[str]:
    return [assembly.operand(f"output{i}", chunks.pointer, kind) for i in range(num_pixels)]


def _operands(assembly: Assembly, num_pixels: int, chunks: Chunks, kind: Registers) -> tuple[list[str], str]:
    """Registers that point to the inputs and to the weights."""
    inputs = [assembly.operand(f"input{i}", f"const {chunks.pointer}", kind) for i in range(num_pixels)]
    return inputs, assembly.operand("weights", "const int8_t *", kind)


def _write_stores(
    assembly: Assembly, outputs: Sequence[str], vectors: Sequence[str], num_channels: int, chunks: Chunks
) -> None:
    """Stores the elements of a block, and goes on with the next one; of the last one, as many as there are channels."""
    line, size = assembly.line, chunks.element.size_bytes
    width = {1: "b", 2: "h"}[size]
    blocks, rest = num_blocks(num_channels), num_channels % CHANNELS
    value = assembly.take("address or byte", Registers.LOW)
    if rest and blocks > 1:
        line("cmp lr, #1", "beq 3f")
    if not rest or blocks > 1:
        for output, vector in zip(outputs, vectors, strict=True):
            if chunks.is_narrow:  # a high register cannot be the address
                line(
                    f"mov {value}, {output}",
                    f"vstr{width}.32 {vector}, [{value}]",
                    f"adds {output}, #{4 * size}",
                )
            else:
                line(f"vstrb.32 {vector}, [{output}], #4")
        line(*(["le lr, 1b"] if blocks > 1 else []))
    if rest and blocks > 1:
        line("3:")
    for output, vector in zip(outputs, vectors, strict=True):
        for lane in range(rest):
            line(f"vmov.32 {value}, {vector}[{lane}]", f"str{width} {value}, [{output}, #{lane * size}]")


def _sums_text(num_pixels: int, chunks: Chunks) -> str:
    """The C text of `sum_block`."""
    assembly = Assembly()
    kind = Registers.LOW if chunks.is_narrow else Registers.GENERAL
    inputs, weights = _operands(assembly, num_pixels, chunks, kind)
    bias = assembly.operand("bias", "const int32_t *")
    vectors = collect(assembly, write_dots(assembly, chunks, inputs, weights))
    initial = assembly.take("bias", Registers.VECTOR)
    assembly.line(
        f"vldrw.u32 {initial}, [{bias}]", *(f"vadd.i32 {each}, {each}, {initial}" for each in vectors)
    )
    targets = ["return "] if num_pixels == 1 else [f"*total{i}_at = " for i in range(num_pixels)]
    for target, vector in zip(targets, vectors, strict=True):
        assembly.result(target, VECTOR, vector)
    return assembly.text()
