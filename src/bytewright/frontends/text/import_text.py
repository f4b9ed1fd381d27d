"""From a .bw file to a module: the text is parsed, given its constants, and verified, with the place of each mistake.

What the text leaves open is filled in: the ports of a module that states none are those of its entry, and functions,
calls and operators that come from no model get the line of the text as their place.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bytewright import ir
from bytewright.base.c_names import c_name, unique_name
from bytewright.base.input_file import read_input
from bytewright.diagnostics import compile_error
from bytewright.frontends.registry import Imported
from bytewright.frontends.text.check_text import check_program, check_text
from bytewright.frontends.text.constants_file import SUFFIX as CONSTANTS_SUFFIX
from bytewright.frontends.text.constants_file import read_constants
from bytewright.ir.rewrite import folded, with_blocks
from bytewright.ir.text.modules import ParsedModule, parse_text
from bytewright.ir.text.reader import Constants, ParseError
from bytewright.ir.verify.stages import Stage
from bytewright.ir.where import NOWHERE, Where
from bytewright.ops.registry import OPERATIONS
from bytewright.target.model import Target

SUFFIX = ".bw"
# The constants of all texts of a folder that have no file of their own.
SHARED_CONSTANTS = "constants.npz"


def import_text(
    path: Path, target: Target, *, name: str | None = None, constants: Path | None = None
) -> Imported:
    """The module of a .bw file.

    Args:
        path: The text.
        target: What it is compiled for: scopes and devices must exist there.
        name: A C identifier; the one that the text states if None.
        constants: The .npz file with its constants; the one beside the text if None.

    Raises:
        CompileError: BW101, BW112, BW113 or BW115.
    """
    text = _read(path)
    file = _constants_file(path, constants)
    known = Constants() if file is None else read_constants(file)
    try:
        parsed = parse_text(text, known, OPERATIONS)
    except ParseError as error:
        place = f"{path.name}:{error.position.line}:{error.position.column}"
        raise compile_error(
            "BW112", error.reason, help=error.help or _help(error, path, constants), where=place
        ) from error
    stage = check_text(parsed, target, path.name)
    if stage is Stage.OPEN:
        check_program(parsed, _with_ports(parsed.module), target, path.name)
    module = _with_ports(_with_places(parsed, path.name))
    if name is not None:
        module = replace(module, name=name)
    return Imported((module,), stage, "import_text", (path,) if file is None else (path, file))


def _read(path: Path) -> str:
    try:
        content = read_input(path)
    except OSError as error:
        raise compile_error("BW101", f"cannot read '{path}': {error.strerror or error}") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise compile_error(
            "BW112", f"byte {error.start} is no text in UTF-8", where=f"{path.name}:{line}"
        ) from error


def _constants_file(path: Path, constants: Path | None) -> Path | None:
    beside = (path.with_suffix(CONSTANTS_SUFFIX), path.with_name(SHARED_CONSTANTS))
    return constants or next((found for found in beside if found.exists()), None)


def _help(error: ParseError, path: Path, constants: Path | None) -> str | None:
    """Where constants that the text names are looked for."""
    if "was given" not in error.reason:
        return None
    beside = path.with_suffix(CONSTANTS_SUFFIX)
    if constants is None and not beside.exists():
        return (
            f"put its arrays into '{beside.name}' beside the text, or name a file with --constants FILE.npz"
        )
    return f"'{constants or beside}' has no such array"


def _with_places(parsed: ParsedModule, file_name: str) -> ir.Module:
    """The module with a line of the text as the place of everything that states none."""

    def where(node: ir.Function | ir.PrimFunc | object, stated: Where) -> Where:
        place = parsed.place_of(node)
        return stated if stated != NOWHERE or place is None else Where(f"{file_name}:{place.line}")

    def located(sequence: ir.Seq) -> ir.Seq:
        return ir.Seq(
            tuple(
                replace(statement, where=where(statement, statement.where))
                if isinstance(statement, ir.Call)
                else with_blocks(statement, located)
                for statement in sequence.statements
            )
        )

    def function(primfunc: ir.PrimFunc) -> ir.PrimFunc:
        body = folded(located(primfunc.body))
        return replace(primfunc, body=body, where=where(primfunc, primfunc.where))

    module = parsed.module
    graphs = (
        replace(graph, nodes=tuple(replace(node, where=where(node, node.where)) for node in graph.nodes))
        for graph in module.functions
    )
    return replace(
        module,
        functions=tuple(graphs),
        kernels=tuple(map(function, module.kernels)),
        entries=tuple(map(function, module.entries)),
    )


def _with_ports(module: ir.Module) -> ir.Module:
    """The module with the ports of its entry, or of its graph function, if it states none."""
    if module.inputs or module.outputs:
        return module
    if module.entries:
        inputs, outputs = (_ports_of_entries(module.entries, side) for side in ir.SIDES)
        state = module.state or _ports_of_entries(module.entries[:1], ir.Border.STATE)
        return replace(module, inputs=inputs, outputs=outputs, state=state)
    graph, num_states = module.graph, len(module.state)
    values = {value.name: value for node in graph.nodes for value in node.outputs}
    values.update((value.name, value) for value in graph.parameters)
    for constant in module.constants:
        values[constant.name] = ir.Value(constant.name, constant.data.type)
    return replace(
        module,
        inputs=_ports_of_values(graph.parameters[: len(graph.parameters) - num_states]),
        outputs=_ports_of_values(values[name] for name in graph.results[: len(graph.results) - num_states]),
    )


def _ports_of_values(values: Iterable[ir.Value]) -> tuple[ir.Port, ...]:
    """Ports called as values are, each otherwise than the others: one value may be several results."""
    taken: set[str] = set()
    return tuple(
        ir.Port(unique_name(c_name(value.name, "value"), taken), value.type, value.quantization)
        for value in values
    )


def _ports_of_entries(entries: Iterable[ir.PrimFunc], border: ir.Border) -> tuple[ir.Port, ...]:
    """The ports of entries, of each in its order; those of several may be called alike."""
    buffers = [buffer for entry in entries for buffer in ir.border_buffers(entry, border)]
    return tuple(
        ir.Port(c_name(buffer.name, f"{border.value}_{index}"), ir.TensorType(buffer.shape, buffer.dtype))
        for index, buffer in enumerate(buffers)
    )
