"""The machine at hand, x86, and cores of which no more than the width of an address is known."""

from bytewright.target.isa.isa import Isa

# Portable on purpose: the same code and figures on every machine. With -O3 -march=native gcc keeps up to 1.5 KB of
# vectors in one kernel's frame, and runs have two levels.
HOST = Isa("host", 64, is_host=True, stack_allowance_bytes=1024)
X86_64 = Isa(
    "x86-64",
    64,
    features=("sse2",),
    macro="__x86_64__",
    # The calling convention lends a leaf 128 B below the stack pointer, and gcc states frames without them.
    whole_frame_flags=("-mno-red-zone",),
)
_WIDTHS = {
    64: "npu dma",
    32: "arc-em arc-hs x86 xtensa-lx6 xtensa-lx7 hifi1 hifi3 hifi4 hifi5 hexagon ceva-bx1 ceva-bx2 dsp",
}
OTHERS = (HOST, X86_64, *(Isa(name, bits) for bits, names in _WIDTHS.items() for name in names.split()))
