"""What a function of C touches, in all turns of its loops: whether each access is inside of the array that it is to.

Loops are told turn by turn as far as a number of combinations allows, outer ones first, and else together
(`c_ranges.py`). What a variable that changes holds may be any number of its type, but that a count that only grows is
never less than where it begins. An access that may be outside is `open`, one that is so for certain is `outside`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pycparser import c_ast

from bytewright.inspect.c_nodes import OF_CONSTANTS, call_of, integer_of, spell, type_name
from bytewright.inspect.c_ranges import (
    BOUNDS,
    SIZES,
    Known,
    Numbers,
    Range,
    Scope,
    Truths,
    any_of,
    changed,
    exactly,
    within,
)
from bytewright.inspect.c_source import children, descend
from bytewright.naming.operator_functions import FUNCTIONS

_FAR = 2**40  # elements: beyond every array
# Functions that touch no memory, whose words are compared apart, and the macro around numbers of 64 bits.
_OF_NUMBERS = frozenset({OF_CONSTANTS, *(function.name for function in FUNCTIONS.values())})
_NEVER: Truths = np.bool_(False)
_ALWAYS: Truths = np.bool_(True)


class UnreadableError(Exception):
    """A form that is not read, as words of an instruction set, or a way past statements."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a pointer may point to.

    Attributes:
        name: Of the array,
        size_bytes: and all of it, which the extents of a run may decide.
        first: The byte of it.
        may: In which combinations of turns the pointer may point there,
        must: and in which it does.
    """

    name: str
    size_bytes: Range
    first: Range
    may: Truths = _ALWAYS
    must: Truths = _ALWAYS


Places = tuple[Place, ...]


@dataclass(slots=True)
class Frame:
    """One block of a function.

    Attributes:
        scope: What names of numbers stand for,
        places: and those of pointers and arrays.
        may: In which combinations of turns it may run,
        must: and in which it does.
        num_axes: Loops around that are told turn by turn,
        num_turns: and the combinations of their turns.
        most_runs: How often it runs, at most.
    """

    scope: Scope
    places: dict[str, Places] = field(default_factory=dict[str, Places])
    may: Truths = _ALWAYS
    must: Truths = _ALWAYS
    num_axes: int = 0
    num_turns: int = 1
    most_runs: int = 1

    def where(self, condition: c_ast.Node, holds: bool) -> "Frame":
        """The block where a condition holds, or does not."""
        may_hold, may_fail = self.scope.truth_of(condition)
        may, must_not = (may_hold, may_fail) if holds else (may_fail, may_hold)
        scope = self.scope.assumed(condition, holds)
        return replace(
            self, scope=scope, places=dict(self.places), may=self.may & may, must=self.must & ~must_not
        )

    def point(self, name: str, kind: str, places: Places) -> None:
        """A pointer or an array, to or of elements of a type."""
        self.places[name] = places
        self.scope.kinds[f"{name}[]"] = kind


@dataclass(slots=True)
class Reach:
    """What was found.

    Attributes:
        function: The functions of the file, by name.
        most_turns: So many combinations of turns are told apart.
        outside: Accesses that are outside in some turn, as sentences.
        open: Those of which it is not known that they are inside.
        counted: By how much counts that only grow do so, at most.
    """

    function: Callable[[str], c_ast.FuncDef | None]
    most_turns: int
    outside: dict[str, None] = field(default_factory=dict[str, None])
    open: dict[str, None] = field(default_factory=dict[str, None])
    counted: dict[str, int] = field(default_factory=dict[str, int])

    def call(
        self, function: c_ast.FuncDef, places: Sequence[Places], numbers: Sequence[Known], outer: Frame
    ) -> None:
        """A function that is given memory and numbers, each in the order of its parameters.

        Raises:
            UnreadableError: It has other parameters, or its body is not read.
        """
        given = function.decl.type.args
        frame = replace(outer, scope=Scope(self.function), places={})
        pointers, values = [*places], [*numbers]
        for parameter in [] if given is None else given.params:
            match parameter:
                case c_ast.Decl(name=str(name), type=c_ast.PtrDecl(type=c_ast.TypeDecl()) as kind) if (
                    pointers
                ):
                    frame.point(name, type_name(kind), pointers.pop(0))
                case c_ast.Decl(name=str(name), type=c_ast.TypeDecl() as kind) if values:
                    frame.scope.define(name, type_name(kind), values.pop(0))
                case _:
                    raise UnreadableError
        if pointers or values:
            raise UnreadableError
        _learn_changing(function.body, frame.scope)
        self.run(function.body, frame)

    # Statements

    def run(self, node: c_ast.Node | None, frame: Frame) -> None:
        """Goes through a statement, and those inside it."""
        match node:
            case None | c_ast.EmptyStatement():
                pass
            case c_ast.Compound(block_items=items):
                for item in items or ():
                    self.run(item, frame)
            case c_ast.Decl():
                self._declare(node, frame)
            case c_ast.Assignment(lvalue=target, rvalue=value):
                self._look(value, frame)
                self._look(target, frame)
                self._change(node, frame)
            case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--", expr=c_ast.ID()):
                self._change(node, frame)
            case c_ast.If(cond=condition, iftrue=then, iffalse=otherwise):
                self._look(condition, frame)
                arms = ((then, frame.where(condition, True)), (otherwise, frame.where(condition, False)))
                for arm, inner in arms:
                    if inner.may.any():
                        self.run(arm, inner)
                frame.scope.forget(node)
            case c_ast.For():
                frame.scope.forget(node)
                self._loop(node, frame)
            case c_ast.FuncCall():
                self._look(node, frame)
            case c_ast.Cast(to_type=to, expr=c_ast.ID()) if type_name(to) == "void":
                pass
            case _:
                raise UnreadableError

    def _change(self, node: c_ast.Node, frame: Frame) -> None:
        """A variable gets another value: one that only grows is never less than at first if its type has them all."""
        name = changed(node)
        found, kind = frame.scope.ranges.get(name), any_of(frame.scope.kinds.get(name, ""))
        least = frame.scope.changing.get(name)
        if found is not None and kind is not None and least is not None and (least.low > kind.low).any():
            most, by = int(kind.high), _growth(node)
            if (found.high + by > most).any():
                self.counted[name] = self.counted.get(name, int(least.low)) + by * frame.most_runs
            if self.counted.get(name, 0) > most:
                self.open[f"'{spell(node)}' may be less than before"] = None
        frame.scope.forget(node)

    def _declare(self, node: c_ast.Decl, frame: Frame) -> None:
        for value in node.init.exprs if isinstance(node.init, c_ast.InitList) else [node.init]:
            if value is not None:
                self._look(value, frame)
        match node.type:
            case c_ast.ArrayDecl(type=c_ast.TypeDecl() as element, dim=dim):
                count, size = integer_of(dim), SIZES.get(type_name(element))
                if count is None or size is None:
                    raise UnreadableError
                frame.point(node.name, type_name(element), (whole(node.name, exactly(count * size)),))
            case c_ast.PtrDecl(type=c_ast.TypeDecl()) if node.init is not None:
                frame.point(node.name, type_name(node.type), self._places(node.init, frame))
            case c_ast.TypeDecl() if type_name(node.type) in SIZES:
                self._define(node, frame.scope)
            case _:
                raise UnreadableError

    def _define(self, node: c_ast.Decl, scope: Scope) -> None:
        if node.name in scope.changing:
            return
        kind, value = type_name(node.type), node.init
        scope.define(node.name, kind, None if value is None else scope.range_of(value))
        names = set() if value is None else {n.name for n in descend(value) if isinstance(n, c_ast.ID)}
        if kind == "bool" and value is not None and names.isdisjoint(scope.changing):
            scope.truths[node.name] = value

    def _loop(self, node: c_ast.For, frame: Frame) -> None:
        inner = self.inside(node, frame)
        if inner.may.any():
            self.run(node.stmt, inner)

    def inside(self, node: c_ast.For, frame: Frame) -> Frame:
        """The block of a loop that counts: turn by turn, or all turns together.

        Raises:
            UnreadableError: It is no such loop, or from where to where it counts is not known.
        """
        variable, kind, begin, end, step, beyond = _counted(node)
        self._look(begin, frame)
        self._look(end, frame)
        first, last = within(frame.scope.range_of(begin), kind), frame.scope.range_of(end)
        if first is None or last is None or frame.scope.kind(end) not in ("int32_t", "int64_t"):
            raise UnreadableError
        # The least and the greatest number that it may count, and those that it counts in any case.
        low, high = (first.low, last.high - beyond) if step > 0 else (last.low + beyond, first.high)
        sure_low, sure_high = (first.high, last.low - beyond) if step > 0 else (last.high + beyond, first.low)
        may = frame.may & (low <= high)
        if not may.any():
            return replace(frame, may=_NEVER, must=_NEVER)
        low, high, may = np.broadcast_arrays(low, high, may)
        turns = range(int(low[may].min()), int(high[may].max()) + 1)
        _count_on(turns, step, kind)
        inner = replace(frame, scope=frame.scope.copy(), places=dict(frame.places), may=may, must=_NEVER)
        inner.most_runs, found = frame.most_runs * len(turns), Range(low, high)
        if frame.num_turns * len(turns) <= self.most_turns:
            numbers = np.array(turns, dtype=np.int64).reshape((-1, *(1,) * frame.num_axes))
            inner.num_axes, inner.num_turns = frame.num_axes + 1, frame.num_turns * len(turns)
            is_reached = _reached(numbers, first, step)
            inner.may = may & (numbers >= low) & (numbers <= high) & is_reached[0]
            inner.must = frame.must & (numbers >= sure_low) & (numbers <= sure_high) & is_reached[1]
            found = Range(numbers, numbers)
        inner.scope.define(variable, kind, found)
        return inner

    # Expressions

    def _look(self, node: c_ast.Node, frame: Frame) -> None:
        """All that an expression touches."""
        match node:
            case c_ast.ID() | c_ast.Constant():
                pass
            case c_ast.TernaryOp(cond=condition, iftrue=one, iffalse=other):
                self._look(condition, frame)
                for side, holds in ((one, True), (other, False)):
                    inner = frame.where(condition, holds)
                    if inner.may.any():
                        self._look(side, inner)
            case c_ast.BinaryOp(op="&&" | "||" as operator, left=left, right=right):
                self._look(left, frame)
                inner = frame.where(left, operator == "&&")
                if inner.may.any():
                    self._look(right, inner)
            case c_ast.UnaryOp(op="&", expr=c_ast.ArrayRef(subscript=index)):
                self._look(index, frame)
            case c_ast.ArrayRef(name=base, subscript=index):
                self._look(index, frame)
                self._touch(node, self._places(c_ast.UnaryOp("&", node), frame), _element(base, frame), frame)
            case c_ast.UnaryOp(op="*", expr=inner):
                self._look(inner, frame)
                self._touch(node, self._places(inner, frame), _element(inner, frame), frame)
            case c_ast.FuncCall():
                self._called(node, frame)
            case c_ast.Cast(expr=inner) | c_ast.UnaryOp(op="-" | "+" | "~" | "!", expr=inner):
                self._look(inner, frame)
            case c_ast.BinaryOp():
                for child in children(node):
                    self._look(child, frame)
            case _:
                raise UnreadableError

    def _called(self, node: c_ast.FuncCall, frame: Frame) -> None:
        """A call: of numbers alone, or of a function of the file that is given memory."""
        name, given = call_of(node)
        for argument in given:
            self._look(argument, frame)
        pointers = [argument for argument in given if _is_pointer(argument, frame)]
        if not pointers and name in _OF_NUMBERS:
            return
        function = self.function(name) if name else None
        if function is None:
            raise UnreadableError
        numbers = [frame.scope.range_of(argument) for argument in given if argument not in pointers]
        self.call(function, [self._places(pointer, frame) for pointer in pointers], numbers, frame)

    def _places(self, node: c_ast.Node, frame: Frame) -> Places:
        """What a pointer may point to."""
        match node:
            case c_ast.ID(name=name) if name in frame.places:
                return frame.places[name]
            case c_ast.Cast(to_type=to, expr=inner) if isinstance(to.type, c_ast.PtrDecl):
                return self._places(inner, frame)
            case c_ast.UnaryOp(op="&", expr=c_ast.ArrayRef(name=base, subscript=index)):
                return moved(self._places(base, frame), frame.scope.range_of(index), _element(base, frame))
            case c_ast.BinaryOp(op="+", left=base, right=index):
                return moved(self._places(base, frame), frame.scope.range_of(index), _element(base, frame))
            case c_ast.TernaryOp(cond=condition, iftrue=one, iffalse=other):
                sides = ((one, frame.where(condition, True)), (other, frame.where(condition, False)))
                return tuple(
                    replace(place, may=place.may & inner.may, must=place.must & inner.must)
                    for side, inner in sides
                    for place in self._places(side, inner)
                )
            case _:
                raise UnreadableError

    def _touch(self, node: c_ast.Node, places: Places, size_bytes: int, frame: Frame) -> None:
        """An element is read or written."""
        for place in places:
            low, high, size = place.first.low, place.first.high, place.size_bytes
            if not (frame.may & place.may & ((low < 0) | (high > size.low - size_bytes))).any():
                continue
            is_outside = frame.must & place.must & ((high < 0) | (low > size.high - size_bytes))
            found = self.outside if is_outside.any() else self.open
            found[f"'{spell(node)}' is not in the {size.high.max()} B of '{place.name}'"] = None


def whole(name: str, size_bytes: Known) -> Place:
    """An array, from its first byte on; nothing is in one whose size is not known."""
    zero = np.array(0, dtype=np.int64)
    return Place(name, size_bytes or Range(zero, zero + _FAR), Range(zero, zero))


def moved(places: Places, index: Known, size_bytes: int) -> Places:
    """Places so many elements further on; a number that is not known is any."""
    if index is None or max(abs(int(index.low.min())), abs(int(index.high.max()))) > _FAR:
        index = Range(np.array(-_FAR, dtype=np.int64), np.array(_FAR, dtype=np.int64))
    by = Range(index.low * size_bytes, index.high * size_bytes)
    return tuple(
        replace(place, first=Range(place.first.low + by.low, place.first.high + by.high)) for place in places
    )


def _is_pointer(node: c_ast.Node, frame: Frame) -> bool:
    match node:
        case c_ast.ID(name=name):
            return name in frame.places
        case c_ast.UnaryOp(op="&"):
            return True
        case c_ast.Cast(to_type=to):
            return isinstance(to.type, c_ast.PtrDecl)
        case c_ast.TernaryOp(iftrue=side) | c_ast.BinaryOp(left=side):
            return _is_pointer(side, frame)
        case _:
            return False


def _element(node: c_ast.Node, frame: Frame) -> int:
    """The bytes of what a pointer points to.

    Raises:
        UnreadableError: That is nothing of a known size.
    """
    match node:
        case c_ast.ID(name=name) if (size := SIZES.get(frame.scope.kinds.get(f"{name}[]", ""))) is not None:
            return size
        case c_ast.Cast(to_type=c_ast.Typename(type=c_ast.PtrDecl(type=c_ast.TypeDecl())) as to) if (
            type_name(to) in SIZES
        ):
            return SIZES[type_name(to)]
        case c_ast.UnaryOp(op="&", expr=c_ast.ArrayRef(name=base)) | c_ast.BinaryOp(left=base):
            return _element(base, frame)
        case c_ast.TernaryOp(iftrue=side):
            return _element(side, frame)
        case _:
            raise UnreadableError


def _reached(numbers: Numbers, first: Range, step: int) -> tuple[Truths, Truths]:
    """Which numbers a loop that counts by more than one may come to, and does."""
    if abs(step) == 1:
        return _ALWAYS, _ALWAYS
    if not (first.low == first.high).all():
        return _ALWAYS, _NEVER
    found = (numbers - first.low) % abs(step) == 0
    return found, found


def _count_on(turns: range, step: int, kind: str) -> None:
    """What a loop counts on to is a number of its variable's type.

    Raises:
        UnreadableError: It may not be, so that a turn may come after the last.
    """
    least, most = BOUNDS.get(kind, (-(2**63), 2**63 - 1))
    if turns[-1] + step > most or turns[0] + step < least:
        raise UnreadableError


def _counted(node: c_ast.For) -> tuple[str, str, c_ast.Node, c_ast.Node, int, int]:
    """Of a loop that counts: its variable, the type of that, where it begins and ends, and by what it counts.

    The last number is how far the last turn is from the end: none if that is a turn too.

    Raises:
        UnreadableError: It is none.
    """
    match node.init, node.cond:
        case (
            c_ast.DeclList(decls=[c_ast.Decl(name=variable, init=c_ast.Node() as begin, type=kind)]),
            c_ast.BinaryOp(op=operator, left=c_ast.ID(name=compared), right=end),
        ) if variable == compared and type_name(kind) in ("int32_t", "int64_t"):
            step = _step(node.next, variable)
        case _:
            raise UnreadableError
    if operator not in (("<", "<=") if step > 0 else (">", ">=")):
        raise UnreadableError
    if variable in map(changed, descend(node.stmt)):
        raise UnreadableError
    return variable, type_name(kind), begin, end, step, int("=" not in operator)


def _step(node: c_ast.Node | None, variable: str) -> int:
    match node:
        case c_ast.UnaryOp(op="++" | "p++", expr=c_ast.ID(name=name)) if name == variable:
            return 1
        case c_ast.UnaryOp(op="--" | "p--", expr=c_ast.ID(name=name)) if name == variable:
            return -1
        case c_ast.Assignment(op="+=" | "-=" as sign, lvalue=c_ast.ID(name=name), rvalue=by) if (
            name == variable
        ):
            found = integer_of(by)
            if found:
                return found if sign == "+=" else -found
        case _:
            pass
    raise UnreadableError


def _learn_changing(body: c_ast.Node, scope: Scope) -> None:
    """What variables that change may be at any time; that of a loop, which only counts, is not one of them."""
    declared = {n.name: n for n in descend(body) if isinstance(n, c_ast.Decl)}
    counting = {id(n.next) for n in descend(body) if isinstance(n, c_ast.For)}
    changes: dict[str, list[c_ast.Node]] = {}
    for node in descend(body):
        if changed(node) and id(node) not in counting:
            changes.setdefault(changed(node), []).append(node)
    for name, nodes in changes.items():
        declaration = declared.get(name)
        if declaration is None or not isinstance(declaration.type, c_ast.TypeDecl):
            raise UnreadableError
        kind = type_name(declaration.type)
        found, begin = any_of(kind), integer_of(declaration.init)
        if found is not None and begin is not None and begin <= found.high and all(map(_growth, nodes)):
            found = Range(np.maximum(found.low, begin), found.high)
        scope.changing[name] = scope.ranges[name] = found
        scope.kinds[name] = kind


def _growth(node: c_ast.Node) -> int:
    """By how much a node makes a variable more; 0 where it may do something else."""
    match node:
        case c_ast.UnaryOp(op="++" | "p++"):
            return 1
        case c_ast.Assignment(op="+=", rvalue=value):
            return integer_of(value) or 0
        case _:
            return 0
