"""Arm's Ethos-U: its configurations, and the word by which a payload names its own."""

from bytewright.target.isa.accelerator import Accelerator
from bytewright.target.isa.isa import Isa

ACCELERATORS: tuple[Accelerator, ...] = (
    Accelerator("ethos-u55-32", 0, 5, 16, ofm_depth=4, keeps_tables=False),
    Accelerator("ethos-u55-64", 0, 6, 16, keeps_tables=False),
    Accelerator("ethos-u55-128", 0, 7, 24),
    Accelerator("ethos-u55-256", 0, 8, 48),
    Accelerator("ethos-u65-256", 1, 8, 48),
    Accelerator("ethos-u65-512", 1, 9, 96, num_cores=2),
)
"""Those that a stream can be written for."""
PRODUCTS = ("Ethos-U55", "Ethos-U65", "Ethos-U85")
"""By the number in a payload."""
DECODED_PRODUCTS = " or ".join(dict.fromkeys(PRODUCTS[each.product] for each in ACCELERATORS))
_ADDRESS_BITS = (32, 64)

ETHOS_U = (
    *(Isa(each.name, _ADDRESS_BITS[each.product], accelerator=each) for each in ACCELERATORS),
    *(Isa(product.lower(), 32) for product in PRODUCTS),  # of no stated size: no stream is for them
)


def of_configuration(word: int) -> Accelerator | None:
    """The accelerator that a payload's configuration word names: its product, its shared buffer and its MACs."""
    product, shram_kib, log2_macs = word >> 28, word >> 8 & 0xFF, word & 0xF
    for each in ACCELERATORS:
        if (each.product, each.shram_kib, each.log2_macs) == (product, shram_kib, log2_macs):
            return each
    return None


def product_name(word: int) -> str:
    """The product that a configuration word names, for messages."""
    number = word >> 28
    return PRODUCTS[number] if number < len(PRODUCTS) else f"accelerator of product number {number}"
