"""What every template receives, and the loops that templates share."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder
from bytewright.lower.epilogue import Epilogue
from bytewright.lower.kernel import KernelBuilder
from bytewright.target.isa.style import KernelStyle


@dataclass(frozen=True, slots=True)
class Template:
    """The kernel under construction, its anchor, and what is known of the anchor's operands."""

    kernel: KernelBuilder
    epilogue: Epilogue
    anchor: ir.Node

    @property
    def body(self) -> BodyBuilder:
        """The statements so far."""
        return self.kernel.body

    @property
    def style(self) -> KernelStyle:
        """The device's style."""
        return self.kernel.style

    def type(self, operand: int) -> ir.TensorType:
        """Type of an operand of the anchor."""
        return self.epilogue.types[self.anchor.inputs[operand]]

    @property
    def result_type(self) -> ir.TensorType:
        """Type of the anchor's result."""
        return self.anchor.outputs[0].type

    def input(self, operand: int = 0) -> ir.Buffer:
        """The parameter for an operand of the anchor; a constant operand becomes a constant parameter."""
        name = self.anchor.inputs[operand]
        if name in self.epilogue.constants:
            return self.kernel.constant("operand", self.constant(operand), self.type(operand).dtype)
        return self.kernel.input(name, self.type(operand))

    def input_as(self, operand: int, shape: tuple[ir.Extent, ...]) -> ir.Buffer:
        """The parameter for an operand of the anchor under another shape of as many elements."""
        return self.kernel.input(self.anchor.inputs[operand], replace(self.type(operand), shape=shape))

    def constant(self, operand: int) -> ir.Array:
        """The values of an operand that must be constant."""
        name = self.anchor.inputs[operand]
        if name not in self.epilogue.constants:
            raise InternalError(f"operand {operand} of '{self.anchor.operation.name}' is not constant")
        return self.epilogue.array(name)


@contextmanager
def counted(body: BodyBuilder, name: str, count: ir.Extent) -> Generator[ir.Expr, None, None]:
    """A loop of `count` turns; no loop at all where there is one turn."""
    if count == 1:
        yield ir.const(0)
    else:
        with body.for_(name, 0, ir.extent_expr(count)) as variable:
            yield variable


@contextmanager
def repeated(body: BodyBuilder, name: str, count: ir.Extent) -> Generator[ir.Expr, None, None]:
    """As `counted`, with a block of its own in any case: for bodies that allocate."""
    if count == 1:
        with body.block():
            yield ir.const(0)
    else:
        with body.for_(name, 0, ir.extent_expr(count)) as variable:
            yield variable


def named(body: BodyBuilder, name: str, value: ir.Expr) -> ir.Expr:
    """The value under a name, unless it is a number or has one already."""
    return value if isinstance(value, ir.Const | ir.Var) else body.let(name, value)


@contextmanager
def nest(
    body: BodyBuilder, names: str, counts: tuple[ir.Extent, ...]
) -> Generator[tuple[ir.Expr, ...], None, None]:
    """Nested loops, outermost first; an axis of one element gets index 0 and no loop."""
    with ExitStack() as stack:
        yield tuple(
            ir.const(0) if count == 1 else stack.enter_context(body.for_(name, 0, ir.extent_expr(count)))
            for name, count in zip(names, counts, strict=True)
        )


def note_block(body: BodyBuilder, channels: int, repeats: int) -> None:
    """Says of the next loop that it takes some output channels at a time; of one block, what it is."""
    what = "1 output channel" if channels == 1 else f"{channels} output channels"
    body.note(
        f"{what} at a time: accumulate, then scale and store each" if repeats > 1 else f"accumulate {what}"
    )


def axis_names(rank: int) -> str:
    """Loop variables for a tensor of some rank: `n y x c` for four axes, the last ones for fewer."""
    return "nyxc"[-rank:] if 0 < rank <= 4 else "abdefgnyxc"[-rank:] if rank else ""


def blocks(count: int, block: int) -> Iterator[tuple[int, int, int]]:
    """Covers `count` items by runs of equal blocks: (first item, number of blocks, items a block)."""
    first = 0
    while first < count:
        size = min(block, count - first)
        while size & (size - 1):
            size &= size - 1
        repeats = (count - first) // size if size == block else 1
        yield first, repeats, size
        first += repeats * size
