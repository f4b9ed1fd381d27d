"""The accelerators that a stream can be written for, and the word by which a payload names its own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One configuration of an NPU, by the name that Vela's `--accelerator-config` uses.

    Attributes:
        name: `ethos-u55-128`.
        product: 0 for Ethos-U55, 1 for Ethos-U65.
        log2_macs: Of the multiply-accumulates in a cycle, all cores together.
        shram_kib: The shared buffer of all cores.
        num_cores: Each makes every num_cores-th output channel.
        ofm_depth, ifm_depth: Channels that the unit takes at once; the weight stream is in their order.
        keeps_tables: Whether lookup tables outlive an operation that uses none; else its sums overwrite them.
    """

    name: str
    product: int
    log2_macs: int
    shram_kib: int
    num_cores: int = 1
    ofm_depth: int = 8
    ifm_depth: int = 8
    keeps_tables: bool = True

    @property
    def core_shram_bytes(self) -> int:
        """Bytes of one core's shared buffer, at the end of which the lookup tables are."""
        return self.shram_kib * 1024 // self.num_cores

    @property
    def macs(self) -> int:
        """Multiply-accumulates in a cycle."""
        return 1 << self.log2_macs


ACCELERATORS: tuple[Accelerator, ...] = (
    Accelerator("ethos-u55-32", 0, 5, 16, ofm_depth=4, keeps_tables=False),
    Accelerator("ethos-u55-64", 0, 6, 16, keeps_tables=False),
    Accelerator("ethos-u55-128", 0, 7, 24),
    Accelerator("ethos-u55-256", 0, 8, 48),
    Accelerator("ethos-u65-256", 1, 8, 48),
    Accelerator("ethos-u65-512", 1, 9, 96, num_cores=2),
)


def find_accelerator(name: str) -> Accelerator | None:
    """The accelerator of this name, if it is one of these."""
    return next((accelerator for accelerator in ACCELERATORS if accelerator.name == name), None)


def of_configuration(word: int) -> Accelerator | None:
    """The accelerator that a payload's configuration word names: its product, its shared buffer and its MACs."""
    product, shram_kib, log2_macs = word >> 28, word >> 8 & 0xFF, word & 0xF
    for accelerator in ACCELERATORS:
        if (accelerator.product, accelerator.shram_kib, accelerator.log2_macs) == (
            product,
            shram_kib,
            log2_macs,
        ):
            return accelerator
    return None
