"""Admits programs: what between passes is a bug of a pass is, in what comes in, the mistake of who wrote it.

Every module of kernels and an entry passes here before storage is decided, read from text or built in Python, so that
nothing that can be written ends as a bug in Bytewright.
"""

from collections.abc import Callable, Sequence

from bytewright import ir
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.definitions import buffer_scopes, scopes_of_constants
from bytewright.ir.text.primfuncs import format_parameter, format_statement
from bytewright.ir.verify.stages import Stage, find_violations
from bytewright.ir.verify.verify_program import missing_text, program_violations
from bytewright.ir.verify.verify_rows import row_violations
from bytewright.ir.verify.violation import Violation, word_for
from bytewright.ir.verify.written import unwritten
from bytewright.target.model import Target

MOST_SHOWN = 20
# Where a node stands, in words that the user knows.
PlaceOf = Callable[[Violation], str]


def faults_of_program(module: ir.Module, target: Target) -> tuple[Violation, ...]:
    """What is wrong with a lowered module as a program: broken rules, or else what is read before it is written."""
    return find_violations(module, Stage.OPEN, target) or faults_of_rules(module, target)


def faults_of_rules(module: ir.Module, target: Target) -> tuple[Violation, ...]:
    """The same of one that keeps to the rules that hold between passes."""
    found = program_violations(module, target)
    for alone in () if found else ir.entries_alone(module):
        found += row_violations(alone) or unwritten(alone)
    return found


def admit(module: ir.Module, target: Target) -> None:
    """Lets a program through to storage and planning.

    Raises:
        CompileError: BW113 or BW115, all at once.
    """
    refuse(faults_of_program(module, target), lambda violation: place_in(module, violation))


def admit_to_codegen(module: ir.Module, target: Target) -> None:
    """Lets a program through that C text can be written for.

    Raises:
        CompileError: BW116, BW720 or BW721, all at once.
    """
    refuse(missing_text(module, target), lambda violation: place_in(module, violation))


def refuse(violations: Sequence[Violation], place_of: PlaceOf) -> None:
    """Raises what is wrong as diagnostics, if anything is; of very many, the first."""
    if not violations:
        return
    pairs = dict.fromkeys((place_of(v), v.code, v.text, v.help) for v in violations)
    diagnostics = [
        Diagnostic(code, text, help=help_text, where=place) for place, code, text, help_text in pairs
    ]
    more = len(diagnostics) - MOST_SHOWN
    if more > 0:
        last = diagnostics[MOST_SHOWN - 1]
        notes = (f"and {more} more mistakes",)
        diagnostics[MOST_SHOWN - 1 :] = [Diagnostic(last.code, last.message, notes, last.help, last.where)]
    raise CompileError(diagnostics)


def place_in(module: ir.Module, violation: Violation) -> str:
    """`module m, kernel 'm_halve', output[c] = input[c]`."""
    parts = [f"module '{module.name}'"]
    function, node = violation.function, violation.node
    if function is not None:
        parts.append(f"{word_for(module, function)} '{function.name}'")
    match node:
        case ir.BufferParameter() | ir.ScalarParameter() | ir.ContextParameter():
            parts.append(format_parameter(node))
        case ir.ConstantBuffer():
            parts.append(f"constant '{node.buffer.name}'")
        case ir.PrimFunc() | ir.Function() | ir.Module():
            pass
        case _:
            if isinstance(node, ir.Statement) and isinstance(function, ir.PrimFunc):
                scopes = buffer_scopes(function, scopes_of_constants(module))
                parts.append(format_statement(node, scopes).removesuffix(" {"))
    return ", ".join(parts)
