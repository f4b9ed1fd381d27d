"""AVX-512: sums of four products of bytes in each of sixteen lanes (VNNI), and of one product of float32."""

from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.scalar_functions import FMA
from bytewright.lower.isa.vector_unit import lane_wise, memory_parameter, register_parameter
from bytewright.lower.isa.x86.dot_unit import DotUnit
from bytewright.lower.isa.x86.lanes_512 import FEATURE, LANES, VECTORS, unit_of

I8, U8, I32, F32 = ir.DType.I8, ir.DType.U8, ir.DType.I32, ir.DType.F32
READ, WRITE, READ_WRITE = ir.Access.READ, ir.Access.WRITE, ir.Access.READ_WRITE
GROUP = 4
BYTES = 64
INTEGERS = "__m512i"
FLOATS = "__m512"
# Not `_mm_loadu_si32`: gcc has none before version 11, and that of 11.1 puts the bytes elsewhere.
_LOAD_WORD = "int32_t word;\n__builtin_memcpy(&word, elements, 4);\n"


def bytes_of(name: str, dtype: ir.DType, access: ir.Access = READ) -> ir.BufferParameter:
    """64 bytes, signed or not."""
    return register_parameter(name, BYTES, dtype, INTEGERS, access)


def unsigned(value: ir.Expr) -> ir.Expr:
    """A signed byte plus 128."""
    return ir.cast(ir.cast(value, I32) + 128, U8)


def _broadcast(dtype: ir.DType, text: str, comment: str) -> ir.Instruction:
    name = f"avx512_broadcast_4_{dtype.value}"
    values, elements = bytes_of("values", U8, WRITE), memory_parameter("elements", GROUP, dtype)
    body = BodyBuilder(("values", "elements"))
    with body.for_(f"{name}.lane", 0, LANES) as lane, body.for_(f"{name}.byte", 0, GROUP) as byte:
        value = load(elements.buffer, byte)
        body.store(values.buffer, lane * GROUP + byte, unsigned(value) if dtype is I8 else value)
    return ir.Instruction(name, (values, elements), body.finish(), text, FEATURE, comment)


def _dot_bytes() -> ir.Instruction:
    name = "avx512_dot_bytes"
    sums = VECTORS.vector("sums", I32, READ_WRITE)
    activations, filters = bytes_of("activations", U8), bytes_of("filters", I8)
    body = BodyBuilder(("sums", "activations", "filters"))
    with body.for_(f"{name}.lane", 0, LANES) as lane, body.for_(f"{name}.byte", 0, GROUP) as byte:
        index = lane * GROUP + byte
        left, right = (ir.cast(load(p.buffer, index), I32) for p in (activations, filters))
        body.add_to(sums.buffer, lane, left * right)
    text = "return _mm512_dpbusd_epi32(sums, activations, filters);"
    comment = "Adds four products of unsigned and signed bytes to each sum."
    return ir.Instruction(name, (sums, activations, filters), body.finish(), text, FEATURE, comment)


@cache
def _copy_bytes(num: int) -> ir.Instruction:
    whole = num == BYTES
    mask = f"(__mmask64)UINT64_C(0x{(1 << num) - 1:x})"
    loaded = "_mm512_loadu_si512(elements)" if whole else f"_mm512_maskz_loadu_epi8({mask}, elements)"
    flipped = f"const __m512i raised = _mm512_xor_si512({loaded}, _mm512_set1_epi8(-128));\n"
    stored = (
        "_mm512_storeu_si512(copy, raised);" if whole else f"_mm512_mask_storeu_epi8(copy, {mask}, raised);"
    )
    return lane_wise(
        f"avx512_copy_bytes_{num}",
        num,
        (memory_parameter("copy", num, U8, WRITE), memory_parameter("elements", num, I8)),
        lambda given: unsigned(given[0]),
        flipped + stored,
        FEATURE,
        f"Copies {num} bytes, each plus 128.",
    )


FILL_BYTES = lane_wise(
    "avx512_fill_bytes",
    BYTES,
    (memory_parameter("copy", BYTES, U8, WRITE), ir.ScalarParameter(ir.Var("value", I32))),
    lambda given: ir.cast(given[0], U8),
    "_mm512_storeu_si512(copy, _mm512_set1_epi8((char)value));",
    FEATURE,
    "64 bytes of one value, of 0 to 255.",
)
LOAD_FILTERS = lane_wise(
    "avx512_load_bytes",
    BYTES,
    (bytes_of("values", I8, WRITE), memory_parameter("elements", BYTES, I8)),
    lambda given: given[0],
    "return _mm512_loadu_si512(elements);",
    FEATURE,
    "64 bytes that lie one after another.",
)
BYTE_DOTS = DotUnit(
    units=unit_of,
    lanes=LANES,
    element=I8,
    held=U8,
    offset=128,
    group=GROUP,
    max_vectors=4,
    max_sums=16,
    activations=(BYTES, U8, INTEGERS),
    broadcasts={
        I8: _broadcast(
            I8,
            f"{_LOAD_WORD}return _mm512_xor_si512(_mm512_set1_epi32(word), _mm512_set1_epi8(-128));",
            "Four bytes, each plus 128, again and again.",
        ),
        U8: _broadcast(
            U8,
            f"{_LOAD_WORD}return _mm512_set1_epi32(word);",
            "Four bytes again and again.",
        ),
    },
    filters=(BYTES, I8, INTEGERS),
    load=LOAD_FILTERS,
    dot=_dot_bytes(),
    chunk=BYTES,
    copies=_copy_bytes,
    fill=FILL_BYTES,
)


def _multiply_add() -> ir.Instruction:
    name = "avx512_multiply_add"
    sums = VECTORS.vector("sums", F32, READ_WRITE)
    activations, filters = VECTORS.vector("activations", F32), VECTORS.vector("filters", F32)
    body = BodyBuilder(("sums", "activations", "filters"))
    with body.for_(f"{name}.lane", 0, LANES) as lane:
        left, right, total = (load(p.buffer, lane) for p in (activations, filters, sums))
        body.store(sums.buffer, lane, FMA(left, right, total))
    text = "return _mm512_fmadd_ps(activations, filters, sums);"
    comment = "Adds a product to each sum, rounded once."
    return ir.Instruction(name, (sums, activations, filters), body.finish(), text, FEATURE, comment)


@cache
def _copy_floats(num: int) -> ir.Instruction:
    mask = f"(__mmask16)0x{(1 << num) - 1:x}u"
    text = (
        "_mm512_storeu_ps(copy, _mm512_loadu_ps(elements));"
        if num == LANES
        else f"_mm512_mask_storeu_ps(copy, {mask}, _mm512_maskz_loadu_ps({mask}, elements));"
    )
    parameters = (memory_parameter("copy", num, F32, WRITE), memory_parameter("elements", num, F32))
    return lane_wise(
        f"avx512_copy_f32_{num}",
        num,
        parameters,
        lambda given: given[0],
        text,
        FEATURE,
        f"Copies {num} floats.",
    )


def _broadcast_float() -> ir.Instruction:
    name = "avx512_broadcast_f32_at"
    values, elements = VECTORS.vector("values", F32, WRITE), memory_parameter("elements", 1, F32)
    body = BodyBuilder(("values", "elements"))
    with body.for_(f"{name}.lane", 0, LANES) as lane:
        body.store(values.buffer, lane, load(elements.buffer, 0))
    text = "return _mm512_set1_ps(elements[0]);"
    return ir.Instruction(name, (values, elements), body.finish(), text, FEATURE, "A float in every lane.")


FLOAT_DOTS = DotUnit(
    units=unit_of,
    lanes=LANES,
    element=F32,
    held=F32,
    offset=0,
    group=1,
    max_vectors=4,
    max_sums=16,
    activations=(LANES, F32, FLOATS),
    broadcasts={
        F32: _broadcast_float(),
    },
    filters=(LANES, F32, FLOATS),
    load=unit_of(LANES).loads[F32],
    dot=_multiply_add(),
    chunk=LANES,
    copies=_copy_floats,
    fill=lane_wise(
        "avx512_fill_f32",
        LANES,
        (memory_parameter("copy", LANES, F32, WRITE), ir.ScalarParameter(ir.Var("value", F32))),
        lambda given: given[0],
        "_mm512_storeu_ps(copy, _mm512_set1_ps(value));",
        FEATURE,
        "Sixteen floats of one value.",
    ),
)
