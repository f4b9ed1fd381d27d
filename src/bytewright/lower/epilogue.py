"""The epilogue of a kernel: the element-wise operators that it computes on each element before it is stored.

The expression for one element of the group's output expands the operators of the group, takes the anchor's
result from the template, and loads everything else.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load
from bytewright.ir.walk import expression_depth
from bytewright.lower.elements import ELEMENTS
from bytewright.lower.float_sum import SumOfTwo, sum_of_two
from bytewright.lower.group import Group
from bytewright.lower.kernel import KernelBuilder
from bytewright.lower.point import Coordinates, Point
from bytewright.lower.scalar import Scalar, computed_on, element

# Of an expression that goes on into the next operator; what is deeper gets a name. C99 grants 63 levels.
_MAX_DEPTH = 24


class Epilogue:
    """Expressions for the output of one group.

    Args:
        kernel: The kernel under construction.
        group: The operators.
        types: Types of all tensors of the graph.
        constants: The graph's constants by name.
    """

    def __init__(
        self,
        kernel: KernelBuilder,
        group: Group,
        types: Mapping[str, ir.TensorType],
        constants: Mapping[str, ir.Constant],
    ) -> None:
        self.kernel = kernel
        self.group = group
        self.types = types
        self.constants = constants
        self._producer = {node.outputs[0].name: node for node in group.elementwise}
        self._num_uses = Counter(name for node in group.elementwise for name in node.inputs)
        self._sums: dict[str, SumOfTwo | None] = {}
        self.output: ir.Buffer = kernel.output(group.output.name, types[group.output.name])

    @property
    def reads_tensors(self) -> bool:
        """Whether elements of tensors go into it beside the anchor's."""
        own = {node.outputs[0].name for node in self.group.nodes}
        operands = {name for node in self.group.elementwise for name in elementwise_operands(node)}
        return any(name not in own and name not in self.constants for name in operands)

    def store(self, coordinates: Coordinates, anchor: Scalar | None = None) -> None:
        """Stores the element of the output at these coordinates, where the anchor's element is `anchor`."""
        self.store_value(coordinates, self.value(coordinates, anchor))

    def store_value(self, coordinates: Coordinates, value: ir.Expr) -> None:
        """Stores what `value` gave for these coordinates."""
        self.kernel.body.store(self.output, coordinates, value)

    def store_each(self, places: Sequence[Coordinates], finished: Callable[[int], Scalar]) -> None:
        """Stores elements whose anchors `finished` gives by number.

        Where that reads other tensors, all are read before the first is stored: the output may lie over one of them,
        and compilers make no vectors of loads with stores in between that could change what is loaded.
        """
        body = self.kernel.body
        results: list[ir.Expr] = []
        for i, coordinates in enumerate(places):
            with body.numbered(i):
                anchor = finished(i)
                if self.reads_tensors:
                    results.append(body.let("result", self.value(coordinates, anchor)))
                else:
                    self.store(coordinates, anchor)
        for coordinates, result in zip(places, results, strict=False):
            self.store_value(coordinates, result)

    def value(self, coordinates: Coordinates, anchor: Scalar | None = None) -> ir.Expr:
        """The element of the output at these coordinates, where the anchor's element is `anchor`."""
        values: dict[str, Scalar] = {}
        if self.group.anchor is not None:
            if anchor is None:
                raise InternalError("the template gave no value for the anchor")
            values[self.group.anchor.outputs[0].name] = anchor
        self._compute(coordinates, values)
        return ir.cast(values[self.group.output.name].expr, self.output.dtype)

    def array(self, name: str) -> ir.Array:
        """The values of an operand that is a constant."""
        return self.constants[name].data.array

    def _compute(self, coordinates: Coordinates, values: dict[str, Scalar]) -> None:
        """One element of every tensor that the group reads or computes, operands first, in the order of their use."""
        pending = [self.group.output.name]
        while pending:
            name = pending[-1]
            node = self._producer.get(name)
            missing = [] if node is None else [o for o in self._operands(node) if o not in values]
            if name not in values and not missing:
                values[name] = self._value(name, coordinates, values)
            if missing:
                pending.append(missing[0])
            else:
                pending.pop()

    def _operands(self, node: ir.Node) -> tuple[str, ...]:
        """The operands of which an element is needed: those of a whole sum where a node ends one."""
        name = node.outputs[0].name
        if name not in self._sums:
            is_tried = self.kernel.style.float_rescale
            self._sums[name] = (
                sum_of_two(node, self._producer, self.types, self.constants) if is_tried else None
            )
        both = self._sums[name]
        return elementwise_operands(node) if both is None else both.operands

    def _value(self, name: str, coordinates: Coordinates, values: Mapping[str, Scalar]) -> Scalar:
        """One element of a tensor whose operands are computed."""
        type_ = self.types[name]
        own = _broadcast(coordinates, type_)
        node = self._producer.get(name)
        if node is not None:
            operands = tuple(values[operand] for operand in self._operands(node))
            if (both := self._sums[name]) is not None:
                return self._named(name, both.write(*operands))
            point = Point(self.kernel, node, own, operands, self._hint(node), self.constants)
            return self._named(name, ELEMENTS[type(node.operation)].write(point, node.operation))
        if name in self.constants:
            return self._constant(name, own)
        return element(load(self.kernel.input(name, type_), *own))

    def _hint(self, node: ir.Node) -> str:
        """What a rescaled value is to the operators of two operands around it."""
        name, producer = node.outputs[0].name, self._producer.get(node.inputs[0])
        for reader in self.group.elementwise:
            pair = elementwise_operands(reader)
            if len(pair) == 2 and name in pair:
                return "left" if name == pair[0] else "right"
        return "result" if producer and len(elementwise_operands(producer)) == 2 else "scaled"

    def _named(self, name: str, value: Scalar) -> Scalar:
        """The value under a name where it is used twice, so that the text does not double, or nests deeply."""
        if isinstance(value.expr, ir.Const | ir.Var):
            return value
        if self._num_uses[name] < 2 and expression_depth(value.expr) <= _MAX_DEPTH:
            return value
        return Scalar(self.kernel.body.let("element", value.expr), value.low, value.high)

    def _constant(self, name: str, coordinates: Coordinates) -> Scalar:
        array = self.array(name)
        dtype = self.types[name].dtype
        if array.size == 1:
            value: ir.Expr = ir.const(array.item(), computed_on(dtype))
        else:
            value = element(load(self.kernel.constant("operand", array, dtype), *coordinates)).expr
        return Scalar(value, int(array.min()), int(array.max())) if dtype.is_integer else Scalar(value)


def elementwise_operands(node: ir.Node) -> tuple[str, ...]:
    """The operands of which an element is needed; the others are read as a whole, when the kernel is written."""
    return node.inputs[: ELEMENTS[type(node.operation)].num_operands]


def _broadcast(coordinates: Coordinates, type_: ir.TensorType) -> Coordinates:
    """Coordinates of an operand: aligned to the right, zero along axes of one element."""
    rank = len(type_.shape)
    own = coordinates[len(coordinates) - rank :] if rank else ()
    return tuple(
        ir.const(0) if extent == 1 else index for index, extent in zip(own, type_.shape, strict=True)
    )
