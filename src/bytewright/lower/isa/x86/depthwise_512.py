"""int8 depthwise_conv2d with AVX-512 VNNI: four taps of sixteen channels at a time.

A lane of `vpdpbusd` sums four bytes, so four taps of a channel have to lie beside each other: bytes of four taps are
interleaved in registers. That is done within each 16 bytes of a vector. So that lanes come out in the order of
channels, the copy of the rows under the window has its words transposed, 64 channels at a time. For size, the copy of
fewer channels has the bytes of as many vectors of sums as these take, which are spread as they are loaded.
"""

from functools import cache
from itertools import product

import numpy as np

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.lower.isa.operand_types import types_decline
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.vector_unit import memory_parameter, register_parameter
from bytewright.lower.isa.window_rows import ALIGNMENT, COPIES_ROWS, WindowRows
from bytewright.lower.isa.x86.dots import BYTE_DOTS
from bytewright.lower.isa.x86.dots import BYTES as BYTE_PRODUCTS
from bytewright.lower.isa.x86.lanes import unit_of
from bytewright.lower.isa.x86.simd import AVX512
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.convolution import Convolution, convolution_of
from bytewright.lower.kernels.layout import Layout
from bytewright.ops.convolution import DepthwiseConv2d
from bytewright.options import Optimize

I8, U8, I32 = ir.DType.I8, ir.DType.U8, ir.DType.I32
FEATURE, LANES = AVX512.feature, AVX512.lanes
BYTES = AVX512.bits // 8
TAPS = 4  # of a group
MOST_TAPS = 49
_WORDS = 4  # in 16 bytes, and 16 bytes in a vector


def _vectors(num: int) -> int:
    """Vectors of sums that so many channels take."""
    return -(-num // LANES)


@cache
def _spread(num: int, vectors: int = BYTES // LANES) -> ir.Instruction:
    """Copies channels so that the interleaved bytes of vector q are channels 16q and on: words transposed."""
    name = f"avx512_spread_bytes_{num}" + (f"_to_{vectors * LANES}" if vectors * LANES < BYTES else "")
    copy, elements = (
        memory_parameter("copy", vectors * LANES, U8, ir.Access.WRITE),
        memory_parameter("elements", num, I8),
    )
    body = BodyBuilder(("copy", "elements"))
    if num < vectors * LANES:
        with body.for_(f"{name}.rest", 0, vectors * LANES) as rest:
            body.store(copy.buffer, rest, ir.const(128, U8))
    with body.for_(f"{name}.i", 0, num) as i:
        vector, word, byte = i / LANES, i % LANES / _WORDS, i % _WORDS
        at = (word * vectors + vector) * _WORDS + byte
        body.store(copy.buffer, at, BYTE_PRODUCTS.held_value(load(elements.buffer, i)))
    mask = f"(__mmask64)UINT64_C(0x{(1 << num) - 1:x})"
    loaded = "_mm512_loadu_si512(elements)" if num == BYTES else f"_mm512_maskz_loadu_epi8({mask}, elements)"
    sources = [vector * _WORDS + word for word in range(_WORDS) for vector in range(vectors)]
    sources += [0] * (LANES - len(sources))
    text = f"""const __m512i words = _mm512_setr_epi32({", ".join(map(str, sources))});
const __m512i raised = _mm512_xor_si512({loaded}, _mm512_set1_epi8(-128));
const __m512i spread = _mm512_permutexvar_epi32(words, raised);
{_STORES[vectors]}"""
    comment = f"Copies {num} bytes, each plus 128, with their words transposed, {vectors} by 4."
    return ir.Instruction(name, (copy, elements), body.finish(), text, FEATURE, comment)


_NARROW_LOADS = {
    1: "_mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)elements))",
    2: "_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)elements))",
    3: "_mm512_maskz_loadu_epi32((__mmask16)0xfff, elements)",
}
_STORES = {
    1: "_mm_storeu_si128((__m128i *)(void *)copy, _mm512_castsi512_si128(spread));",
    2: "_mm256_storeu_si256((__m256i *)(void *)copy, _mm512_castsi512_si256(spread));",
    3: "_mm512_mask_storeu_epi32(copy, (__mmask16)0xfff, spread);",
    4: "_mm512_storeu_si512(copy, spread);",
}


def _load(vectors: int) -> ir.Instruction:
    """Loads what was copied for so many vectors of sums: in each 16 bytes of the register words of these."""
    name = f"avx512_load_spread_bytes_{vectors}"
    num = vectors * LANES
    values = register_parameter("values", *BYTE_PRODUCTS.activations, ir.Access.WRITE)
    elements = memory_parameter("elements", num, U8)
    body = BodyBuilder(("values", "elements"))
    if num < BYTES:
        with body.for_(f"{name}.lane", 0, BYTES) as lane:
            body.store(values.buffer, lane, ir.const(0, U8))
    with body.for_(f"{name}.word", 0, _WORDS) as word, body.for_(f"{name}.i", 0, vectors * _WORDS) as i:
        body.store(values.buffer, word * LANES + i, load(elements.buffer, word * vectors * _WORDS + i))
    text = "return _mm512_loadu_si512(elements);"
    if num < BYTES:
        mask = sum(((1 << vectors) - 1) << word * _WORDS for word in range(_WORDS))
        sources = [word * vectors + min(i, vectors - 1) for word in range(_WORDS) for i in range(_WORDS)]
        text = f"""const __m512i words = _mm512_setr_epi32({", ".join(map(str, sources))});
return _mm512_maskz_permutexvar_epi32((__mmask16)0x{mask:x}, words, {_NARROW_LOADS[vectors]});"""
    comment = f"{num} bytes, one after another, as 4 times {vectors * _WORDS} in front of each 16."
    return ir.Instruction(name, (values, elements), body.finish(), text, FEATURE, comment)


def _interleave(vector: int) -> ir.Instruction:
    name = f"avx512_interleave_{vector}"
    result = register_parameter("result", *BYTE_PRODUCTS.activations, ir.Access.WRITE)
    taps = [register_parameter(f"tap{i}", *BYTE_PRODUCTS.activations) for i in range(TAPS)]
    body = BodyBuilder(("result", *(tap.name for tap in taps)))
    with body.for_(f"{name}.part", 0, _WORDS) as part, body.for_(f"{name}.byte", 0, _WORDS) as byte:
        for i, tap in enumerate(taps):
            value = load(tap.buffer, part * LANES + byte + vector * _WORDS)
            body.store(result.buffer, (part * _WORDS + byte) * TAPS + i, value)
    half, quarter = ("lo", "hi")[vector // 2], ("lo", "hi")[vector % 2]
    text = f"""const __m512i front = _mm512_unpack{half}_epi8(tap0, tap1);
const __m512i back = _mm512_unpack{half}_epi8(tap2, tap3);
return _mm512_unpack{quarter}_epi16(front, back);"""
    comment = (
        f"Interleaves the bytes {vector * _WORDS} to {vector * _WORDS + 3} of each 16 bytes of four vectors."
    )
    return ir.Instruction(name, (result, *taps), body.finish(), text, FEATURE, comment)


LOADS = {vectors: _load(vectors) for vectors in range(1, BYTES // LANES + 1)}
INTERLEAVE = tuple(_interleave(vector) for vector in range(BYTES // LANES))
INSTRUCTIONS = (
    *LOADS.values(),
    *INTERLEAVE,
    *(_spread(num) for num in (1, 40, BYTES)),
    *(_spread(num, _vectors(num)) for num in (1, 16, 25, 48)),
)


def depthwise_declines(template: Template, operation: DepthwiseConv2d) -> str | None:
    """Why this is no convolution for the kernel below."""
    of_types = types_decline(template, {(I8, I8, I32)})
    if of_types is not None:
        return of_types
    *window, _, multiplier = template.constant(1).shape
    if multiplier != 1:
        return f"each channel of the input has {multiplier} of the result"
    if convolution_of(template, operation).window.columns.open_size is not None:
        return COPIES_ROWS
    return None if np.prod(window) <= MOST_TAPS else f"its window has more than {MOST_TAPS} taps"


def write_depthwise(template: Template, operation: DepthwiseConv2d) -> None:
    """Writes the kernel. x: [N, H, W, C]; weights: [KH, KW, C, 1]; bias: [C]; result: [N, OH, OW, C]."""
    _Kernel(convolution_of(template, operation)).write()


class _Kernel:
    """One convolution."""

    def __init__(self, convolution: Convolution) -> None:
        self.convolution = convolution
        self.template = convolution.template
        self.body = convolution.template.body
        self.channels = convolution.in_channels
        self.chunks = -(-self.channels // BYTES)
        self.taps = list(
            product(range(convolution.window.rows.kernel), range(convolution.window.columns.kernel))
        )
        self.groups = -(-len(self.taps) // TAPS)
        self.bias = convolution.bias(BYTE_DOTS.of.offset)
        packed = Layout(lanes=LANES, vectors=BYTES // LANES, group=TAPS).pack(convolution.weights)
        self.weights = self.template.kernel.constant("weights", packed, I8, ALIGNMENT)

    def write(self) -> None:
        """Writes the loops over rows, channels and pixels."""
        window, body = self.convolution.window, self.body
        whole, rest = divmod(self.channels, BYTES)
        with counted(body, "n", self.convolution.num) as n, self.template.kernel.rows(window.rows.out) as y:
            rows = self._rows(min(self.channels, BYTES)).allocate()
            body.note("up to 64 channels at a time, for each pixel: all taps, then scale and store")
            if whole:
                with counted(body, "block", whole) as chunk, body.block():
                    self._write_chunk((n, y), rows, chunk, BYTES)
            if rest:
                with body.block():
                    self._write_chunk((n, y), rows, ir.const(whole), rest)

    def _copied_vectors(self, num: int) -> int:
        """Of how many vectors of sums the copy has the bytes, for so many channels."""
        return _vectors(num) if self.template.kernel.optimize is Optimize.SIZE else BYTES // LANES

    def _rows(self, num: int) -> WindowRows:
        """Copies of the rows under a window, of up to 64 channels; the channels come in turn."""
        return WindowRows(self.convolution, BYTE_DOTS, self._copied_vectors(num) * LANES)

    def _write_chunk(self, row: tuple[ir.Expr, ir.Expr], rows: ir.Buffer, chunk: ir.Expr, num: int) -> None:
        """Up to 64 channels of a row of the output."""
        body, (n, y), layout, vectors = self.body, row, self._rows(num), self._copied_vectors(num)

        def copy(ky: ir.Expr, iy: ir.Expr) -> None:
            if layout.content:
                with counted(body, "column", layout.content) as column, body.block():
                    source = region(self.convolution.input, n, iy, column, chunk * BYTES)
                    target = region(rows, ky, (column + layout.before) * layout.pitch)
                    body.execute(_spread(num, vectors), target, source)

        layout.write(rows, y, copy)
        with counted(body, "x", self.convolution.window.columns.out) as x, body.block():
            self._write_pixel((*row, x), rows, chunk, num)

    def _write_pixel(
        self, pixel: tuple[ir.Expr, ir.Expr, ir.Expr], rows: ir.Buffer, chunk: ir.Expr, num: int
    ) -> None:
        """All taps of up to 64 channels of a pixel."""
        body, columns = self.body, self.convolution.window.columns
        vectors, copied = _vectors(num), self._copied_vectors(num)
        pitch = copied * LANES
        channel = named(body, "channel", chunk * BYTES)
        first = chunk * (self.groups * BYTES * TAPS)
        counts = [min(LANES, num - v * LANES) for v in range(vectors)]
        sums: list[ir.Buffer] = []
        for v, count in enumerate(counts):
            unit = unit_of(AVX512, count)
            total = unit.register(body, "sums")
            body.execute(unit.loads[I32], total, region(self.bias.values, channel + v * LANES))
            sums.append(total)
        start = named(body, "first", pixel[2] * (columns.stride * pitch))
        loaded: list[ir.Buffer] = []
        for ky, kx in self.taps:
            tap = body.register("tap", *BYTE_DOTS.of.activations)
            body.execute(LOADS[copied], tap, region(rows, ky, start + kx * columns.dilation * pitch))
            loaded.append(tap)
        loaded += [loaded[-1]] * (self.groups * TAPS - len(loaded))
        for group in range(self.groups):
            taps = loaded[group * TAPS : group * TAPS + TAPS]
            for v, total in enumerate(sums):
                quads = body.register("quads", *BYTE_DOTS.of.activations)
                body.execute(INTERLEAVE[v], quads, *taps)
                weights = body.register("weights", *BYTE_DOTS.of.filters)
                at = (group * vectors + v) * LANES * TAPS
                body.execute(BYTE_DOTS.load, weights, region(self.weights, first + at))
                body.execute(BYTE_DOTS.dot, total, quads, weights)
        for v, (count, total) in enumerate(zip(counts, sums, strict=True)):
            store_lanes(
                self.template, unit_of(AVX512, count), pixel, channel + v * LANES, total, self.bias.finished
            )
