"""What tests run: one PrimFunc, or a graph function by the references of its operators."""

from __future__ import annotations

from collections.abc import Mapping

from bytewright.ir.graph import Constant, Function
from bytewright.ir.module import Module
from bytewright.ir.prim import PrimFunc
from support.evaluate.evaluate import Argument, Array, Evaluator


def run_primfunc(
    function: PrimFunc, arguments: Mapping[str, Argument], module: Module | None = None
) -> dict[str, Array]:
    """Runs one PrimFunc; see `Evaluator.run`. `module` gives the functions and constants that it uses."""
    surrounding = module or Module(function.name)
    known = {f.name for f in (*surrounding.kernels, *surrounding.entries)}
    extra = () if function.name in known else (function,)
    return Evaluator(surrounding, extra).run(function.name, arguments)


def evaluate_function(
    function: Function, constants: tuple[Constant, ...], inputs: tuple[Array, ...]
) -> dict[str, Array]:
    """Runs the numpy references of all nodes; returns every value by name, intermediates included."""
    values: dict[str, Array] = {constant.name: constant.data.array for constant in constants}
    values.update((value.name, array) for value, array in zip(function.parameters, inputs, strict=True))
    for node in function.nodes:
        results = node.operation.evaluate(tuple(values[name] for name in node.inputs))
        for value, result in zip(node.outputs, results, strict=True):
            values[value.name] = result
    return values
