"""Whether a text describes a program that can be compiled: the rules of the verifier, as mistakes of the text.

Between passes a broken rule is a bug of a pass. Here it is the user's mistake, so it has a code, and line and column of
the function, parameter or statement that breaks the rule.
"""

from collections.abc import Iterable

from bytewright import ir
from bytewright.base.c_names import c_name, is_c_name, model_name
from bytewright.diagnostics import compile_error
from bytewright.ir.text.modules import ParsedModule
from bytewright.ir.verify.admit import faults_of_rules, refuse
from bytewright.ir.verify.stages import Stage, find_violations
from bytewright.ir.verify.violation import Violation
from bytewright.target.model import Target

# What a first function is called, by everybody.
_MAIN = "main"
_PLANNED = "before planning"
_TOO_FAR = "print the module after share_kernels, before it is planned"


def check_text(parsed: ParsedModule, target: Target, file_name: str) -> Stage:
    """The stage that the module of a text is at.

    Raises:
        CompileError: BW113, all mistakes at once.
    """
    module = parsed.module
    stage = Stage.IMPORTED if module.functions else Stage.OPEN
    violations = [Violation(None, node, text) for node, text in _faults_of_module(module)]
    if not violations:
        violations = find_violations(module, stage, target)
    if not violations:
        violations = [Violation(None, node, text) for node, text in _faults_of_ports(module)]
    if any(violation.text.endswith(_PLANNED) for violation in violations):
        message = "the text has offsets in pools already, and planning is still to come"
        raise compile_error("BW113", message, help=_TOO_FAR, where=file_name)
    refuse(violations, lambda violation: _place(parsed, violation.node, file_name))
    return stage


def check_program(parsed: ParsedModule, program: ir.Module, target: Target, file_name: str) -> None:
    """Refuses a text that keeps to the rules of the verifier, and yet is no program (`ir/verify/admit.py`).

    Args:
        parsed: The text.
        program: Its module, with all ports.
        target: What it is compiled for.
        file_name: Of the text.

    Raises:
        CompileError: BW113 or BW115, all mistakes at once.
    """
    violations = faults_of_rules(program, target)
    refuse(violations, lambda violation: _place(parsed, violation.node, file_name))


def _place(parsed: ParsedModule, node: object, file_name: str) -> str:
    place = parsed.place_of(node)
    return file_name if place is None else f"{file_name}:{place.line}:{place.column}"


def _faults_of_module(module: ir.Module) -> list[tuple[object, str]]:
    faults: list[tuple[object, str]] = []
    if module.name != model_name(module.name):
        meant = model_name(module.name)
        faults.append((module, f"the module's name '{module.name}' is not a C identifier, such as '{meant}'"))
    if module.functions and module.entries:
        faults.append(
            (module.entries[0], "a module that is compiled has a graph function or an entry, not both")
        )
    if any(function.name == _MAIN for function in module.functions[:-1]):
        last = module.functions[-1]
        text = f"the model begins at the last graph function, '{last.name}', and '{_MAIN}' stands before it"
        faults.append((last, text))
    if not module.functions and not module.entries:
        text = "the module has neither an entry nor a graph function, so there is nothing to compile"
        faults.append((module, text))
    return faults


def _faults_of_ports(module: ir.Module) -> list[tuple[object, str]]:
    """Ports that are stated must be what the entries or the graph have, in their order."""
    faults: list[tuple[object, str]] = []
    for alone in _alone(module) if module.inputs or module.outputs else ():
        first, what = (alone.main, "entry") if alone.entries else (alone.graph, "graph")
        for border in ir.SIDES:
            ports, values = alone.ports(border), _border(alone, border)
            if len(values) != len(ports):
                count = f"the module states {len(ports)} {border.value}s, its {what} has {len(values)}"
                faults.append((first, count))
                continue
            for port, (name, kind) in zip(ports, values, strict=True):
                if (port.type.shape, port.type.dtype) != (kind.shape, kind.dtype):
                    of_port = f"{border.value} '{port.name}' is {_described(port.type)}"
                    faults.append((port, f"{of_port}, '{name}' of the {what} is {_described(kind)}"))
    for port in (*module.inputs, *module.outputs, *module.state):
        if not is_c_name(port.name):
            meant = c_name(port.name, "port")
            faults.append((port, f"the port's name '{port.name}' is not a C identifier, such as '{meant}'"))
    return faults


def _alone(module: ir.Module) -> Iterable[ir.Module]:
    """The module once for each entry; a graph once."""
    return ir.entries_alone(module) if module.entries else (module,)


def _border(module: ir.Module, border: ir.Border) -> list[tuple[str, ir.TensorType | ir.Buffer]]:
    """What the entry or the graph is given, or gives: names and types."""
    if module.entries:
        return [(buffer.name, buffer) for buffer in ir.border_buffers(module.main, border)]
    graph, num_states = module.graph, len(module.state)
    if border is ir.Border.INPUT:
        own = graph.parameters[: len(graph.parameters) - num_states]
        return [(value.name, value.type) for value in own]
    types = ir.value_types(graph, module.constants)
    return [(name, types[name]) for name in graph.results[: len(graph.results) - num_states]]


def _described(stated: ir.TensorType | ir.Buffer) -> str:
    return f"{ir.format_shape(stated.shape)}x{stated.dtype.value}".removeprefix("x")
