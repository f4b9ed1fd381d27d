"""What every template receives, and the loops that templates share."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder
from bytewright.lower.epilogue import Epilogue
from bytewright.lower.kernel import ROWS, KernelBuilder
from bytewright.target.isa.style import KernelStyle

# A position under the output: batch, row, column.
Pixel = tuple[ir.Expr, ir.Expr, ir.Expr]


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

    def output(self, number: int) -> ir.Buffer:
        """The parameter for a result of the anchor behind the first, which is the epilogue's."""
        value = self.anchor.outputs[number]
        return self.kernel.output(value.name, value.type)

    def input_as(self, operand: int, shape: tuple[ir.Extent, ...]) -> ir.Buffer:
        """The parameter for an operand of the anchor under another shape of as many elements."""
        return self.kernel.input(self.anchor.inputs[operand], replace(self.type(operand), shape=shape))

    def constant(self, operand: int) -> ir.Array:
        """The values of an operand that must be constant."""
        name = self.anchor.inputs[operand]
        if name not in self.epilogue.constants:
            raise InternalError(f"operand {operand} of '{self.anchor.operation.name}' is not constant")
        return self.epilogue.array(name)

    def constants(self) -> list[ir.TensorData]:
        """Those of the operands that are constant."""
        known = self.epilogue.constants
        return [known[name].data for name in self.anchor.inputs if name in known]


@contextmanager
def counted(body: BodyBuilder, name: str, count: ir.Extent) -> Generator[ir.Expr, None, None]:
    """A loop of `count` turns; no loop at all where there is one turn."""
    if count == 1:
        yield ir.const(0)
    else:
        with body.for_(name, 0, ir.extent_expr(count)) as variable:
            yield variable


def named(body: BodyBuilder, name: str, value: ir.Expr) -> ir.Expr:
    """The value under a name, unless it is a number or has one already."""
    return value if isinstance(value, ir.Const | ir.Var) else body.let(name, value)


@contextmanager
def nest(
    body: BodyBuilder, names: Sequence[str], counts: tuple[ir.Extent, ...]
) -> Generator[tuple[ir.Expr, ...], None, None]:
    """Nested loops, outermost first, each as `counted`."""
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(counted(body, name, count)) for name, count in zip(names, counts, strict=True)
        )


@contextmanager
def loops(
    kernel: KernelBuilder, shape: tuple[ir.Extent, ...], axes: Iterable[int], *, by_rows: bool = True
) -> Generator[dict[int, ir.Expr], None, None]:
    """Nested loops over some axes of a tensor, outermost first; yields the index of each.

    Where they go `by_rows`, the second of four axes counts rows of the output, of which the caller asks for some.
    """
    names = axis_names(len(shape))
    with ExitStack() as stack:
        yield {
            axis: stack.enter_context(
                kernel.rows(extent)
                if by_rows and (len(shape), axis) == (4, ROWS) and isinstance(extent := shape[axis], int)
                else counted(kernel.body, names[axis], shape[axis])
            )
            for axis in axes
        }


@contextmanager
def elements(
    kernel: KernelBuilder, shape: tuple[ir.Extent, ...]
) -> Generator[tuple[ir.Expr, ...], None, None]:
    """Nested loops over every element of a tensor, as `loops`; yields its indices."""
    with loops(kernel, shape, range(len(shape))) as indices:
        yield tuple(indices.values())


@contextmanager
def stretch(
    kernel: KernelBuilder, shape: tuple[ir.Extent, ...], axis: int, first: ir.Extent, count: ir.Extent
) -> Generator[ir.Expr, None, None]:
    """A loop over `count` indices of one axis from `first` on, as `loops`.

    Rows are those of the stretch that the caller asks for.
    """
    extent = shape[axis]
    if (
        (len(shape), axis) == (4, ROWS)
        and isinstance(extent, int)
        and isinstance(first, int)
        and isinstance(count, int)
    ):
        with kernel.rows(extent, first, first + count) as row:
            yield row
    else:
        with counted(kernel.body, axis_names(len(shape))[axis], count) as index:
            yield index + ir.extent_expr(first)


EACH_PIXEL = "for each pixel of the output"


@contextmanager
def pixels(template: Template) -> Generator[Pixel, None, None]:
    """Nested loops over batch, rows and columns of the anchor's result, [N, H, W, C]."""
    _, height, width, _ = template.result_type.shape
    if template.result_type.shape[:3] != (1, 1, 1):  # a note is for a loop, and there would be none
        template.body.note(EACH_PIXEL)
    with (
        counted(template.body, "n", template.result_type.shape[0]) as n,
        template.kernel.rows(ir.upper_bound(height)) as y,
        counted(template.body, "x", width) as x,
    ):
        yield n, y, x


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


def channel_blocks(
    body: BodyBuilder, num_channels: ir.Extent, block: int, note: Callable[[int, bool], str]
) -> Iterator[tuple[ir.Expr, int]]:
    """Writes loops over blocks of channels around what the caller writes for each: its first channel, and how many.

    What is not repeated has a block of its own all the same, since the caller may allocate in it.

    Args:
        body: The statements so far.
        num_channels: All channels; where runs have so many as they say, those behind full blocks come one by one.
        block: Channels of a full block.
        note: Says of blocks of so many channels, and whether there are several, what happens to them.
    """
    if not isinstance(num_channels, int):
        count = ir.extent_expr(num_channels)
        for size, first, end in ((block, ir.const(0), count // block), (1, count // block * block, count)):
            body.note(note(size, True))
            with body.for_("block", first, end) as index:
                yield index * size, size
        return
    for first, repeats, size in blocks(num_channels, block):
        body.note(note(size, repeats > 1))
        if repeats == 1:
            with body.block():
                yield ir.const(first), size
        else:
            with body.for_("block", 0, repeats) as index:
                yield index * size + first, size


def accumulated(num_channels: int, are_several: bool) -> str:
    """Says of blocks of output channels that they are accumulated."""
    what = "1 output channel" if num_channels == 1 else f"{num_channels} output channels"
    return f"{what} at a time: accumulate, then scale and store each" if are_several else f"accumulate {what}"


def reduced(num_channels: int, are_several: bool) -> str:
    """Says of blocks of channels that they are reduced."""
    what = "1 channel" if num_channels == 1 else f"{num_channels} channels"
    return (
        f"{what} at a time: reduce the window, then store"
        if are_several
        else f"{what}: reduce the window, then store"
    )
