"""Operators that run functions of the graph: calls, conditionals, and loops with carried values.

They name functions, so their types are those of the module that they stand in (`ir.ControlOperation`). Everything is a
value: a function reads its parameters and the module's constants, nothing else, and changes none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bytewright import ir
from bytewright.ops.checks import require, require_dtype

# A loop of the entry counts its turns in 32 bits.
MAX_ITERATIONS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Call(ir.ControlOperation):
    """The results of a function."""

    name: ClassVar[str] = "call"
    callee: str

    @property
    def callees(self) -> tuple[str, ...]:
        """The one."""
        return (self.callee,)

    def infer_from(
        self, callees: tuple[ir.Signature, ...], inputs: tuple[ir.TensorType, ...]
    ) -> tuple[ir.TensorType, ...]:
        """Those of the function."""
        (callee,) = callees
        _require_arguments(self.callee, callee, inputs)
        return callee.results

    def turns(self, inputs: tuple[ir.Array, ...]) -> ir.Turns:
        """Once."""
        return ir.Turns(self.callee, inputs, 1)


@dataclass(frozen=True, slots=True)
class CondIf(ir.ControlOperation):
    """The results of one of two functions: the first operand, a truth value, says of which; the others go to it."""

    name: ClassVar[str] = "cond_if"
    then_branch: str
    else_branch: str

    @property
    def callees(self) -> tuple[str, ...]:
        """Both arms."""
        return (self.then_branch, self.else_branch)

    def infer_from(
        self, callees: tuple[ir.Signature, ...], inputs: tuple[ir.TensorType, ...]
    ) -> tuple[ir.TensorType, ...]:
        """Those of both arms, which are the same."""
        then, otherwise = callees
        require(len(inputs) > 0, "the condition is missing")
        condition, *arguments = inputs
        require_dtype(condition, (ir.DType.BOOL,), "the condition")
        shape = ir.format_shape(condition.shape)
        require(
            all(extent == 1 for extent in condition.shape),
            f"the condition has shape [{shape}], not one element",
        )
        _require_arguments(self.then_branch, then, arguments)
        _require_arguments(self.else_branch, otherwise, arguments)
        _require_same(
            f"result {{}} of '{self.else_branch}'",
            otherwise.results,
            f"result {{}} of '{self.then_branch}'",
            then.results,
        )
        return then.results

    def turns(self, inputs: tuple[ir.Array, ...]) -> ir.Turns:
        """Once, of the arm that the condition names."""
        condition, *arguments = inputs
        return ir.Turns(self.then_branch if condition.item() else self.else_branch, tuple(arguments), 1)


@dataclass(frozen=True, slots=True)
class Loop(ir.ControlOperation):
    """A function run `num_iterations` times, each time on the results of the time before; on the operands at first.

    Of no time at all, the operands are the results.
    """

    name: ClassVar[str] = "loop"
    carries_values: ClassVar[bool] = True
    body: str
    num_iterations: ir.Extent

    @property
    def callees(self) -> tuple[str, ...]:
        """The body."""
        return (self.body,)

    def infer_from(
        self, callees: tuple[ir.Signature, ...], inputs: tuple[ir.TensorType, ...]
    ) -> tuple[ir.TensorType, ...]:
        """Those of the body, which takes what it gives."""
        (body,) = callees
        count = self.num_iterations
        require(
            0 <= ir.lower_bound(count) <= ir.upper_bound(count) <= MAX_ITERATIONS,
            f"{count} iterations are not possible, but 0 to {MAX_ITERATIONS}",
        )
        _require_arguments(self.body, body, inputs)
        _require_same(
            f"result {{}} of '{self.body}'", body.results, f"parameter {{}} of '{self.body}'", body.parameters
        )
        return body.results

    def turns(self, inputs: tuple[ir.Array, ...]) -> ir.Turns:
        """As often as it says; where a run says it, the most."""
        return ir.Turns(self.body, inputs, ir.upper_bound(self.num_iterations))


def _require_arguments(callee: str, signature: ir.Signature, inputs: Sequence[ir.TensorType]) -> None:
    _require_same("argument {}", inputs, f"parameter {{}} of '{callee}'", signature.parameters)


def _require_same(
    what: str, found: Sequence[ir.TensorType], other: str, wanted: Sequence[ir.TensorType]
) -> None:
    """As many, of the same shapes and element types; `what` and `other` name one of them by its number."""
    plural, other_plural = (text.replace(" {}", "s") for text in (what, other))
    require(len(found) == len(wanted), f"{len(found)} {plural}, but {len(wanted)} {other_plural}")
    for number, (first, second) in enumerate(zip(found, wanted, strict=True)):
        texts = [str(ir.TensorType(type_.shape, type_.dtype)) for type_ in (first, second)]
        require(
            texts[0] == texts[1],
            f"{what.format(number)} is {texts[0]}, {other.format(number)} is {texts[1]}",
        )


OPERATIONS = (Call, CondIf, Loop)
