"""The tile of convolutions whose lanes are output channels: what an instruction set brings to their template."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.lower.isa.instruction_set import Operands
from bytewright.lower.isa.vector_unit import VectorUnit


@dataclass(frozen=True, slots=True)
class Copies:
    """How activations are copied, with zero points around them.

    Attributes:
        chunk: Activations at once.
        some: An instruction that copies so many, at most a chunk.
        fill: Sets a chunk of a copy to a value.
    """

    chunk: int
    some: Callable[[int], ir.Instruction]
    fill: ir.Instruction

    @property
    def instructions(self) -> tuple[ir.Instruction, ...]:
        """All of them, those that take a number of elements for some."""
        return (self.fill, *(self.some(num) for num in (1, self.chunk - 3, self.chunk)))


@dataclass(frozen=True, slots=True)
class Tile:
    """Sums of products, one a lane: each lane has its output channel, all have the same activations.

    Attributes:
        units: Vectors of which so many first lanes are loaded and stored.
        lanes: Output channels of a vector.
        element: Type of activations.
        weight: Type of weights.
        sums: Type of a sum.
        held: Type in which a copy of activations is held.
        offset: What is added to the activations: with 128 they are unsigned bytes.
        group: Products that are added into a lane at once: so many activations, one after another.
        max_vectors: Vectors of output channels that are accumulated together.
        max_sums: Vectors of sums, over all pixels of a tile.
        activations: The register for a group, in all lanes or once.
        broadcasts: Loads of a group of elements to it, by the type that they have in memory.
        filters: The register for weights.
        load: Of weights, `[lanes][group]`, or `[group][lanes]`.
        by_element: Whether they are the latter.
        dot: Adds products to sums: `dot(sums, activations, filters)`.
        operands: For which operands these instructions are defined, as `InstructionSet` has them.
        copies: How rows are copied where windows touch the padding. None of a group of 1 that is read as it lies: then
            each tap is read where it lies, or is a run of zero points, which takes no memory.
    """

    units: Callable[[int], VectorUnit]
    lanes: int
    element: ir.DType
    weight: ir.DType
    sums: ir.DType
    held: ir.DType
    offset: int
    group: int
    max_vectors: int
    max_sums: int
    activations: tuple[int, ir.DType, str]
    broadcasts: Mapping[ir.DType, ir.Instruction]
    filters: tuple[int, ir.DType, str]
    load: ir.Instruction
    by_element: bool
    dot: ir.Instruction
    operands: Mapping[tuple[str, str], Operands]
    copies: Copies | None

    @property
    def instructions(self) -> tuple[ir.Instruction, ...]:
        """All of them, those that take a number of elements for some."""
        copies = () if self.copies is None else self.copies.instructions
        units = [i for num in (1, max(1, self.lanes - 3), self.lanes) for i in self.units(num).instructions]
        own = (*self.broadcasts.values(), self.load, self.dot, *copies, *units)
        return tuple(dict.fromkeys(own))


def instructions_of(tiles: Iterable[Tile]) -> tuple[ir.Instruction, ...]:
    """Those of some tiles, each once."""
    return tuple(dict.fromkeys(each for tile in tiles for each in tile.instructions))


def operands_of(tiles: Iterable[Tile]) -> dict[tuple[str, str], Operands]:
    """For which operands they are defined."""
    return {key: bounds for tile in tiles for key, bounds in tile.operands.items()}
