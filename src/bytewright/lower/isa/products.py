"""The tile of convolutions whose lanes are output channels: what an instruction set brings to their template.

Sums of groups of products in lanes: records of the instructions, made of their C texts.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.scalar_functions import FMA
from bytewright.lower.isa.instruction_set import Operands
from bytewright.lower.isa.vector_unit import VectorUnit, lane_wise, memory_parameter, register_parameter
from bytewright.lower.isa.width import Width

READ, WRITE, READ_WRITE = ir.Access.READ, ir.Access.WRITE, ir.Access.READ_WRITE


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
        of: What is multiplied, and how.
        units: Vectors of which so many first lanes are loaded and stored.
        max_vectors: Vectors of output channels that are accumulated together.
        max_sums: Vectors of sums, over all pixels of a tile.
        broadcasts: Loads of a group of elements to it, by the type that they have in memory.
        load: Of weights, `[lanes][group]`, or `[group][lanes]` if they are `by_element`.
        dot: Adds products to sums: `dot(sums, activations, filters)`.
        copies: How rows are copied where windows touch the padding. None of a group of 1 that is read as it lies: then
            each tap is read where it lies, or is a run of zero points, which takes no memory.
    """

    of: "Products"
    units: Callable[[int], VectorUnit]
    max_vectors: int
    max_sums: int
    broadcasts: Mapping[ir.DType, ir.Instruction]
    load: ir.Instruction
    dot: ir.Instruction
    copies: Copies | None

    @property
    def lanes(self) -> int:
        """Output channels of a vector."""
        return self.of.width.lanes

    @property
    def instructions(self) -> tuple[ir.Instruction, ...]:
        """All of them, those that take a number of elements for some."""
        copies = () if self.copies is None else self.copies.instructions
        units = [i for num in (1, max(1, self.lanes - 3), self.lanes) for i in self.units(num).instructions]
        own = (*self.broadcasts.values(), self.load, self.dot, *copies, *units)
        return tuple(dict.fromkeys(own))


@dataclass(frozen=True, slots=True)
class Products:
    """Registers of activations and of weights, and how they are multiplied.

    Attributes:
        width: The vectors of sums.
        sums: Type of a sum.
        group: Products that are added to a sum at once.
        element: Type of activations in memory.
        weight: Type of weights in memory.
        held: Type of activations as they are multiplied, and of a copy of them.
        filter: Type of weights as they are multiplied.
        c_type: C type of a register with a group for each lane.
        noun: What names of instructions call the elements: `bytes`.
        offset: What is added to an activation as it becomes `held`.
        scalar: C type of a register with a group of activations once; empty if each lane has its own copy.
        by_element: Whether a register of weights has the first elements of all groups first, then the second ones.
    """

    width: Width
    sums: ir.DType
    group: int
    element: ir.DType
    weight: ir.DType
    held: ir.DType
    filter: ir.DType
    c_type: str
    noun: str
    offset: int = 0
    scalar: str = ""
    by_element: bool = False

    @property
    def activations(self) -> tuple[int, ir.DType, str]:
        """The register for a group of activations."""
        if self.scalar:
            return self.group, self.held, self.scalar
        return self.width.lanes * self.group, self.held, self.c_type

    @property
    def filters(self) -> tuple[int, ir.DType, str]:
        """The register for weights, a group for each lane."""
        return self.width.lanes * self.group, self.filter, self.c_type

    @property
    def operands(self) -> dict[tuple[str, str], Operands]:
        """What operands of its instructions are, as `InstructionSet` has them; weights that are widened stay small."""
        if not self.sums.is_integer:
            return {}
        low, high = self.element.bounds
        found: dict[tuple[str, str], Operands] = {
            (f"{self.width.prefix}_fill_{self.noun}", "value"): (low + self.offset, high + self.offset)
        }
        if self.filter is not self.weight:
            found[f"{self.width.prefix}_dot_{self.noun}", "filters"] = self.weight.bounds
        return found

    def tile(
        self,
        *,
        units: Callable[[int], VectorUnit],
        max_vectors: int,
        max_sums: int,
        broadcasts: Mapping[ir.DType, str | ir.Instruction],
        load: str | ir.Instruction,
        dot: str,
        copy: Callable[[int], str] | None = None,
        fill: str = "",
        chunk: int = 0,
    ) -> Tile:
        """The tile of these registers; each instruction is given by its C text.

        Args:
            units: Vectors of which so many first lanes are loaded and stored.
            max_vectors: Vectors of output channels that are accumulated together.
            max_sums: Vectors of sums, over all pixels of a tile.
            broadcasts: Of a group of `elements`, by their type.
            load: Of `elements` to a register of weights.
            dot: With `sums`, `activations` and `filters`.
            copy: Of so many `elements` to `copy`; None if rows are not copied.
            fill: Of a chunk of `copy` with `value`.
            chunk: Activations that are copied at once.
        """
        return Tile(
            self,
            units,
            max_vectors,
            max_sums,
            broadcasts={
                dtype: self.broadcast(dtype, text) if isinstance(text, str) else text
                for dtype, text in broadcasts.items()
            },
            load=self.load(load) if isinstance(load, str) else load,
            dot=self.dot(dot),
            copies=None if copy is None else self._copies(copy, fill, chunk),
        )

    def _copies(self, text: Callable[[int], str], fill: str, chunk: int) -> Copies:
        @cache
        def some(num: int) -> ir.Instruction:
            return self.copy(num, text(num))

        return Copies(chunk, some, self.fill(chunk, fill))

    def held_value(self, element: ir.Expr) -> ir.Expr:
        """What is held of an activation in memory."""
        if element.dtype is self.held:
            return element
        return ir.cast(ir.cast(element, self.sums) + self.offset if self.offset else element, self.held)

    def broadcast(self, dtype: ir.DType, text: str) -> ir.Instruction:
        """A group of activations in memory, in every lane or once."""
        size, *_ = self.activations
        name = f"{self.width.prefix}_broadcast_{self.group}_{dtype.value}"
        values = register_parameter("values", *self.activations, WRITE)
        elements = memory_parameter("elements", self.group, dtype)
        body = BodyBuilder(("values", "elements"))
        with self._groups(body, name, size // self.group) as (lane, k):
            body.store(values.buffer, lane * self.group + k, self.held_value(load(elements.buffer, k)))
        raised = f", each plus {self.offset}" if dtype is not self.held and self.offset else ""
        where = "once" if self.scalar else "in every lane"
        comment = f"{self._some(self.group)} of memory{raised}, {where}."
        return ir.Instruction(name, (values, elements), body.finish(), text, self.width.feature, comment)

    def dot(self, text: str) -> ir.Instruction:
        """Adds a group of products to each sum; one of floats is rounded with it, once."""
        name = f"{self.width.prefix}_dot_{self.noun}"
        sums = self.width.vector("sums", self.sums, READ_WRITE)
        activations = register_parameter("activations", *self.activations)
        filters = register_parameter("filters", *self.filters)
        body = BodyBuilder(("sums", "activations", "filters"))
        with self._groups(body, name, self.width.lanes) as (lane, k):
            in_groups = lane * self.group + k
            index = k * self.width.lanes + lane if self.by_element else in_groups
            left = ir.cast(load(activations.buffer, k if self.scalar else in_groups), self.sums)
            right, total = ir.cast(load(filters.buffer, index), self.sums), load(sums.buffer, lane)
            added = total + left * right if self.sums.is_integer else FMA(left, right, total)
            body.store(sums.buffer, lane, added)
        products = "a product" if self.group == 1 else f"{self.group} products"
        comment = (
            f"Adds {products} of {self.noun} to each sum{'' if self.sums.is_integer else ', rounded once'}."
        )
        parameters = (sums, activations, filters)
        return ir.Instruction(name, parameters, body.finish(), text, self.width.feature, comment)

    def load(self, text: str) -> ir.Instruction:
        """Weights that lie one after another."""
        size, dtype, _ = self.filters
        widened = "" if dtype is self.weight else f", as {dtype.value}"
        return lane_wise(
            f"{self.width.prefix}_load_{self.noun}",
            size,
            (
                register_parameter("values", *self.filters, WRITE),
                memory_parameter("elements", size, self.weight),
            ),
            lambda given: ir.cast(given[0], dtype),
            text,
            self.width.feature,
            f"{self._some(size)} that lie one after another{widened}.",
        )

    def copy(self, num: int, text: str) -> ir.Instruction:
        """So many activations to a copy of them."""
        held = "" if self.held is self.element else f", as {self.held.value}"
        raised = f", each plus {self.offset}" if self.offset else ""
        return lane_wise(
            f"{self.width.prefix}_copy_{self.noun}_{num}",
            num,
            (
                memory_parameter("copy", num, self.held, WRITE),
                memory_parameter("elements", num, self.element),
            ),
            lambda given: self.held_value(given[0]),
            text,
            self.width.feature,
            f"Copies {self._some(num)}{raised}{held}.",
        )

    def fill(self, num: int, text: str) -> ir.Instruction:
        """So many elements of a copy of one value."""
        value = ir.Var("value", self.sums)
        return lane_wise(
            f"{self.width.prefix}_fill_{self.noun}",
            num,
            (memory_parameter("copy", num, self.held, WRITE), ir.ScalarParameter(value)),
            lambda given: ir.cast(given[0], self.held),
            text,
            self.width.feature,
            f"{self._some(num)} of one value.",
        )

    def _some(self, num: int) -> str:
        return f"1 {self.noun.removesuffix('s')}" if num == 1 else f"{num} {self.noun}"

    @contextmanager
    def _groups(
        self, body: BodyBuilder, name: str, lanes: int
    ) -> Generator[tuple[ir.Expr, ir.Expr], None, None]:
        """Loops over lanes and the elements of a group."""
        with body.for_(f"{name}.lane", 0, lanes) as lane:
            if self.group == 1:
                yield lane, ir.const(0)
            else:
                with body.for_(f"{name}.k", 0, self.group) as k:
                    yield lane, k


def instructions_of(tiles: Iterable[Tile]) -> tuple[ir.Instruction, ...]:
    """Those of some tiles, each once."""
    return tuple(dict.fromkeys(each for tile in tiles for each in tile.instructions))


def operands_of(tiles: Iterable[Tile]) -> dict[tuple[str, str], Operands]:
    """For which operands they are defined."""
    return {key: bounds for tile in tiles for key, bounds in tile.of.operands.items()}
