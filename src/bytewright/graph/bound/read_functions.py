"""The file of `--kernel-file`: one table a C function, `[kernel.SYMBOL]`, with its arguments in the order of C."""

from dataclasses import replace
from pathlib import Path

from bytewright import ir
from bytewright.base.c_names import is_c_name
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.graph.bound import function as bound
from bytewright.graph.bound.formula import Formula, FormulaError, parse_formula
from bytewright.ir.types import EXPRESSION_TYPES
from bytewright.target.mistake import Mistake
from bytewright.target.reader import TomlTable
from bytewright.target.source import Source, parse_source, refuse_vast_integers
from bytewright.target.text_file import read_text

INVALID = "BW760"
_KINDS = ("input", "output", "constant", "values", "scalar")
_MOST_ALIGNMENT = 1 << 16


def read_functions(path: Path) -> dict[str, bound.ApplicationFunction]:
    """The functions that a file describes, by their names in C.

    Raises:
        CompileError: BW760, with every mistake and its line.
    """
    try:
        source = parse_source(read_text(path), str(path))
        refuse_vast_integers(source)
    except CompileError as error:
        raise CompileError(_recoded(diagnostic) for diagnostic in error.diagnostics) from None
    problems: list[Mistake] = []
    top = TomlTable(source.values, (), problems)
    top.require("kernel")
    tables = top.named_tables("kernel")
    functions = {symbol: _function(symbol, table, source) for symbol, table in tables.items()}
    top.finish()
    if problems:
        problems.sort(key=lambda problem: source.line_of(problem.path) or 0)
        raise CompileError(problem.to_diagnostic(INVALID, source.where(problem.path)) for problem in problems)
    return functions


def _recoded(diagnostic: Diagnostic) -> Diagnostic:
    """A refusal of the readers of target files, as one of this file."""
    return replace(diagnostic, code=INVALID)


def _function(symbol: str, table: TomlTable, source: Source) -> bound.ApplicationFunction:
    if not is_c_name(symbol):
        table.fail(None, f"a C function cannot be called {symbol!r}")
    table.require("arguments")
    device = table.name("device") or None
    touched_by = table.texts("touched-by") if table.has("touched-by") else None
    arguments = [_argument(inner, touched_by) for inner in table.listed_tables("arguments")]
    scratch = [_scratch(inner, touched_by) for inner in table.listed_tables("scratch")]
    known = tuple(argument for argument in arguments if argument is not None)
    _check_names(table, known, tuple(scratch))
    _check_tensors(table, known)
    lets = table.subtable("let")
    function = bound.ApplicationFunction(
        symbol,
        source.where(table.path),
        known,
        tuple(scratch),
        takes_region=_takes_region(table),
        lets=tuple((name, _formula(lets, name)) for name in lets.keys),
        requires=tuple(_formulas(table, "requires")),
        device=device,
        stack_bytes=table.size("stack", 0, zero_allowed=True) if table.has("stack") else None,
        returns_status=table.boolean("status", False),
    )
    table.finish()
    return function


def _takes_region(table: TomlTable) -> bool:
    takes = table.text("takes", "operator", None, "a text")
    if takes not in ("operator", "region"):
        table.fail("takes", f"'takes' is {takes!r}, which is neither 'operator' nor 'region'")
    return takes == "region"


def _check_names(
    table: TomlTable, arguments: tuple[bound.FunctionArgument, ...], scratch: tuple[bound.Scratch, ...]
) -> None:
    """Parameters of C have names, and each has its own."""
    names = [item.name for item in (*arguments, *scratch)]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            table.fail("arguments", f"{names.count(name)} arguments are called {name!r}")
        elif not is_c_name(name):
            table.fail(
                "arguments", f"a parameter of a C function cannot be called {name!r}: give it a 'name'"
            )


def _check_tensors(table: TomlTable, arguments: tuple[bound.FunctionArgument, ...]) -> None:
    """The result is given once, and no input twice."""
    outputs = sum(isinstance(argument, bound.OutputArgument) for argument in arguments)
    if outputs != 1:
        table.fail("arguments", f"{outputs} arguments are the output, and an operator has one")
    positions = [argument.position for argument in arguments if isinstance(argument, bound.InputArgument)]
    for position in dict.fromkeys(positions):
        if positions.count(position) > 1:
            table.fail("arguments", f"{positions.count(position)} arguments are input {position}")


def _argument(table: TomlTable, touched_by: tuple[str, ...] | None) -> bound.FunctionArgument | None:
    kinds = [kind for kind in _KINDS if table.has(kind)]
    if len(kinds) != 1:
        found = " and ".join(f"'{kind}'" for kind in kinds) or "none of them"
        table.fail(None, f"an argument has one of {', '.join(_KINDS)}; this one has {found}")
        return None
    argument = _argument_of(kinds[0], table, touched_by)
    table.finish()
    return argument


def _argument_of(kind: str, table: TomlTable, touched_by: tuple[str, ...] | None) -> bound.FunctionArgument:
    match kind:
        case "input":
            position = table.integer("input", 0, 0, 255)
            return bound.InputArgument(_name(table, "input"), position, _memory(table, touched_by))
        case "output":
            table.integer("output", 0, 0, 0)
            return bound.OutputArgument(_name(table, "output"), _memory(table, touched_by))
        case "constant":
            constant = _formula(table, "constant")
            name = _name(table, constant.text.rpartition(".")[2])
            dtype = _dtype(table, ir.DType.I32, tuple(ir.DType)) if table.has("type") else None
            axes, per_channel = _axes(table), table.boolean("per-channel", False)
            return bound.ConstantArgument(
                name, constant, axes, per_channel, dtype, _memory(table, touched_by)
            )
        case "values":
            values, dtype = tuple(_formulas(table, "values")), _dtype(table, ir.DType.I32, tuple(ir.DType))
            if not values:
                table.fail("values", "'values' has no numbers")
            return bound.ValuesArgument(_name(table, "values"), values, dtype, _memory(table, touched_by))
        case _:
            value = _formula(table, "scalar")
            return bound.ScalarArgument(
                _name(table, value.text), value, _dtype(table, ir.DType.I32, EXPRESSION_TYPES)
            )


def _scratch(table: TomlTable, touched_by: tuple[str, ...] | None) -> bound.Scratch:
    table.require("name", "bytes")
    name, size_bytes = _name(table, ""), _formula(table, "bytes")
    scratch = bound.Scratch(
        name, size_bytes, _dtype(table, ir.DType.I8, tuple(ir.DType)), _memory(table, touched_by)
    )
    table.finish()
    return scratch


def _name(table: TomlTable, default: str) -> str:
    return table.text("name", default, None, "a name")


def _dtype(table: TomlTable, default: ir.DType, allowed: tuple[ir.DType, ...]) -> ir.DType:
    if not table.has("type"):
        return default
    text = table.text("type", default.value, None, "a type")
    found = next((dtype for dtype in allowed if dtype.value == text), None)
    if found is None:
        table.fail("type", f"{text!r} is no type here; types are {', '.join(d.value for d in allowed)}")
    return found or default


def _axes(table: TomlTable) -> tuple[int, ...]:
    axes = [axis for axis in table.array("axes") if type(axis) is int]
    if sorted(axes) != list(range(len(table.array("axes")))):
        table.fail("axes", "'axes' is no order of axes: it has each of 0, 1, ... once")
        return ()
    return tuple(axes)


def _memory(table: TomlTable, touched_by: tuple[str, ...] | None) -> bound.Memory:
    alignment = table.integer("align", 1, 1, _MOST_ALIGNMENT)
    if alignment & (alignment - 1):
        table.fail("align", f"'align' is {alignment}, which is no power of two")
        alignment = 1
    scope = None
    if table.has("scope"):
        try:
            scope = ir.parse_scope(table.text("scope", "global", None, "a scope"))
        except ValueError as error:
            table.fail("scope", str(error))
        if scope is not None and (ir.is_local(scope) or scope == ir.STACK):
            table.fail("scope", f"'{scope}' cannot be passed to a function of the application")
    own = table.texts("touched-by") if table.has("touched-by") else touched_by
    return bound.Memory(alignment, scope, own)


def _formulas(table: TomlTable, key: str) -> list[Formula]:
    found: list[Formula] = []
    for value in table.array(key):
        if type(value) is int or isinstance(value, str):
            found.append(_parsed(table, key, str(value)))
        else:
            table.fail(key, f"{key!r} holds formulas: strings and integers")
    return found


def _formula(table: TomlTable, key: str) -> Formula:
    return _parsed(table, key, table.formula(key) or "0")


def _parsed(table: TomlTable, key: str, text: str) -> Formula:
    try:
        return parse_formula(text)
    except FormulaError as error:
        table.fail(key, str(error))
        return Formula("0")
