"""x86-64, by the levels of its psABI: what every such processor has, and those that have wide vectors."""

from dataclasses import replace

from bytewright.target.isa.isa import Emulator, Isa
from bytewright.target.isa.style import VECTOR

# The calling convention lends a leaf 128 B below the stack pointer, and gcc states frames without them.
_NO_RED_ZONE = ("-mno-red-zone",)
X86_64 = Isa(
    "x86-64",
    64,
    features=("sse2",),
    triple="x86_64-linux-gnu",
    flags=("-march=x86-64",),
    processor="x86_64",
    macro="__x86_64__",
    whole_frame_flags=_NO_RED_ZONE,
    emulator=Emulator("qemu-x86_64", "qemu64"),
)
# What the flags below let a compiler use, by the names that Linux has for it; `abm` is what others call LZCNT.
_V2 = ("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3")
_V3 = (*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave")
_V4_VNNI = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni")
X86_64_V3 = replace(
    X86_64,
    name="x86-64-v3",
    features=("sse2", "ssse3", "sse4.1", "avx", "avx2", "fma"),
    style=replace(VECTOR, float_rescale=True),
    stack_allowance_bytes=4096,  # clang spills up to 2.3 KB of vectors in one kernel's frame
    flags=("-march=x86-64-v3",),
    processor_flags=_V3,
    macro=None,
    emulator=Emulator("qemu-x86_64", "max"),
)
X86_64_V4_VNNI = replace(
    X86_64_V3,
    name="x86-64-v4-vnni",
    features=(*X86_64_V3.features, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"),
    flags=("-march=x86-64-v4", "-mavx512vnni"),
    processor_flags=_V4_VNNI,
    emulator=None,  # QEMU knows no AVX-512
)
X86 = (X86_64, X86_64_V3, X86_64_V4_VNNI)
