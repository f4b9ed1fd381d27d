"""Elements that lie along the last axis, in lanes of vectors: what element-wise operators and pads store."""

from collections.abc import Callable, Sequence, Set
from functools import partial

from bytewright import ir
from bytewright.ir.builder import BodyBuilder
from bytewright.ir.walk import evaluated, walk_expression
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.vectorise import vectorise
from bytewright.lower.kernels.context import Template, counted
from bytewright.lower.kernels.data import element_by_element, lower_pad
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import Scalar
from bytewright.ops.data import Pad


def write_line(
    body: BodyBuilder, unit: VectorUnit, count: int, store: Callable[[ir.Expr], None]
) -> str | None:
    """Writes vectors of elements, then the rest; why there are none, if what was written is of no use.

    Args:
        body: Where they are written.
        unit: The vectors.
        count: How many elements there are.
        store: Writes the element of an index.
    """
    num_vectors, num_left = divmod(count, unit.lanes)
    lane = ir.Var(body.unique_name("lane"), ir.DType.I32)
    with counted(body, "vector", num_vectors) as vector:
        with body.captured() as statements:
            store(vector * unit.lanes + lane)
        if not _gains(unit, statements, lane):
            return "C compilers make vectors of narrower elements of it"
        if not vectorise(body, unit, lane, statements):
            return "there is no vector instruction for something in it"
    if num_left:
        with counted(body, "rest", num_left) as rest:
            store(num_vectors * unit.lanes + rest)
    return None


def write_elements(body: BodyBuilder, unit: VectorUnit, count: int, store: Callable[[ir.Expr], None]) -> None:
    """As `write_line`; one element after another where there are fewer than a vector has, or vectors are of no use."""
    with body.captured() as statements:
        is_written = count >= unit.lanes and write_line(body, unit, count, store) is None
    if is_written:
        for statement in statements:
            body.emit(statement)
    else:
        with counted(body, "element", count) as index:
            store(index)


def _gains(unit: VectorUnit, statements: Sequence[ir.Statement], lane: ir.Var) -> bool:
    """Whether in every lane a function may give another value, or one is looked up where the unit gathers."""
    named = {lane}
    for statement in statements:
        for each in evaluated(statement):
            if isinstance(each, ir.ScalarCall) and not named.isdisjoint(walk_expression(each)):
                return True
            if (
                isinstance(each, ir.Load)
                and each.buffer.dtype in unit.gathers
                and _is_computed(each, named, lane)
            ):
                return True
        if isinstance(statement, ir.Let) and not named.isdisjoint(walk_expression(statement.value)):
            named.add(statement.variable)
    return False


def _is_computed(element: ir.Load, named: Set[ir.Expr], lane: ir.Var) -> bool:
    """Whether the place of an element depends on another element of the lane."""
    places = [part for index in element.indices for part in walk_expression(index)]
    return any(isinstance(part, ir.Load) or (part in named and part != lane) for part in places)


def pad_template(name: str, unit: VectorUnit) -> IsaTemplate:
    """A pad whose elements become something else as they are moved, in lanes."""
    return IsaTemplate(f"{name}.pad", partial(_write_pad, unit), partial(_pad_declines, unit))


def _pad_declines(unit: VectorUnit, template: Template, operation: Pad) -> str | None:
    count = template.result_type.shape[-1] if template.result_type.shape else 1
    if not template.epilogue.group.elementwise:
        return "its elements are only moved"
    if not isinstance(count, int) or count < unit.lanes or operation.before[-1] or operation.after[-1]:
        return f"fewer than {unit.lanes} elements lie side by side, or are padded"
    return None


def _write_pad(unit: VectorUnit, template: Template, operation: Pad) -> None:
    def line(template: Template, outer: Coordinates, value: Callable[[ir.Expr], Scalar]) -> None:
        count = template.result_type.fixed_shape[-1]
        with template.body.captured() as statements:
            reason = write_line(
                template.body,
                unit,
                count,
                lambda index: template.epilogue.store((*outer, index), value(index)),
            )
        if reason is not None:
            element_by_element(template, outer, value)
            return
        for statement in statements:
            template.body.emit(statement)

    lower_pad(template, operation, line)
