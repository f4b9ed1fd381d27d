"""The machine at hand, and cores of which no more than the width of an address is known."""

from bytewright.target.isa.isa import Isa

# Portable on purpose: the same code and figures on every machine. With -O3 -march=native gcc keeps up to 1.5 KB of
# vectors in one kernel's frame, and runs have two levels.
HOST = Isa("host", 64, is_host=True, stack_allowance_bytes=1024)
_WIDTHS = {
    64: "npu",
    32: "arc-em arc-hs x86 xtensa-lx6 xtensa-lx7 hifi1 hifi3 hifi4 hifi5 hexagon ceva-bx1 ceva-bx2 dsp",
}
DMA = Isa("dma", 64, is_engine=True)
OTHERS = (HOST, DMA, *(Isa(name, bits) for bits, names in _WIDTHS.items() for name in names.split()))
