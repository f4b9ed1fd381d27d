"""The record of an accelerator that is driven by command streams."""

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
