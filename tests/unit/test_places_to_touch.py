"""How many files know a thing that is added often: what CONTRIBUTING.md counts, held as far as the sources show it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from bytewright.frontends.registry import FRONTENDS
from bytewright.frontends.tflite.advice import ADVICE
from bytewright.frontends.tflite.graph_builder import DTYPES
from bytewright.frontends.tflite.table import OPERATORS
from bytewright.ir.types import DType
from bytewright.lower.elements import ELEMENTS
from bytewright.lower.isa.registry import INSTRUCTION_SETS
from bytewright.lower.kernels.registry import TEMPLATES
from bytewright.ops.registry import OPERATIONS
from bytewright.options import DECLARATIONS
from bytewright.record.buffers import PlannedPool
from bytewright.show.formats import FORMATS
from bytewright.target.model import Pool

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "bytewright"
# Passes about certain operators: an operator that is added needs none of them.
REWRITES = {
    "frontends/tflite/blocks.py",
    "frontends/tflite/dilation.py",
    "frontends/tflite/hybrid.py",
    "frontends/tflite/islands.py",
    "frontends/tflite/numbered_windows.py",
    "frontends/tflite/reduce_window.py",
    "frontends/tflite/sized.py",
    "frontends/tflite/tiling.py",
    "lower/channels/known.py",
    "lower/channels/links.py",
    "lower/channels/narrow.py",
    "lower/channels/weighted.py",
    "graph/work.py",
    "lower/fold_constant_channels.py",
    "lower/turn.py",
    "graph/tie_states.py",
    "lower/float_sum.py",
    "lower/fold_pad.py",
    "graph/inline_calls.py",
    "graph/open/opening.py",
    "graph/open/rules.py",
    "graph/open_batch.py",
    "graph/stream/reading.py",
    "graph/stream/split.py",
    "graph/stream/stream.py",
    "place/flows.py",
    "place/on_options.py",
    "place/plan_devices.py",
}


@cache
def _index() -> tuple[dict[tuple[str, str], set[str]], dict[str, set[str]]]:
    """Which files know a name of a module, imported or as its attribute, and in which a text stands."""
    imports: dict[tuple[str, str], set[str]] = defaultdict(set)
    texts: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    imports[node.module or "", alias.name].add(file)
                    module = f"{node.module}.{alias.name}"
                    if (PACKAGE.parent / f"{module.replace('.', '/')}.py").is_file():
                        modules[alias.asname or alias.name] = module
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in modules
            ):
                imports[modules[node.value.id], node.attr].add(file)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts[node.value].add(file)
    return imports, texts


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_few_files_know_a_graph_operator(name: str) -> None:
    operation = OPERATIONS[name]
    own = operation.__module__.removeprefix("bytewright.").replace(".", "/") + ".py"
    # Nor do instruction sets need to know one: what they have no template for is written by the portable one.
    known = _index()[0][operation.__module__, operation.__name__] - REWRITES
    users = {file for file in known if not file.startswith("lower/isa/")}
    assert len({own, *users}) <= (4 if operation in ELEMENTS else 5), users
    outside = {file for file in users if not file.startswith(("lower/", "frontends/"))}
    assert not outside, "neither its record, nor lowering, nor a frontend"
    if operation in ELEMENTS:
        assert "lower/kernels/registry.py" not in users
    elif operation in TEMPLATES:
        assert "lower/elements.py" not in users
        assert "lower/kernels/registry.py" in users


@pytest.mark.parametrize("kind", sorted(OPERATORS))
def test_one_row_says_everything_of_a_tflite_operator(kind: str) -> None:
    """Other files name it where its arithmetic, or a message about it, is its own."""
    named = {file for file in _index()[1][kind] if not file.startswith("codegen/")}  # names of errors in C
    beside = {
        *("frontends/tflite/lstm.py", "frontends/tflite/options.py"),  # names of fused activations too
        "ops/arithmetic/multiplier.py",
        "frontends/tflite/reduce_window.py",  # what windows are reduced by
        "frontends/tflite/updates.py",  # what places are computed with
    }
    rows = {file for file in named if file.startswith("frontends/tflite/operators/")}
    assert len(rows) == 1
    assert len(named - beside) <= 3, named
    assert kind not in ADVICE, "advice is for operators that are not supported"


def test_nobody_but_the_registry_knows_a_frontend() -> None:
    """`open_batch` is a pass on graphs of all; `--print-after` writes the files that the text's frontend reads."""
    known = {"bytewright.frontends.registry", "bytewright.graph.open_batch"}
    users = {
        file
        for (module, _), files in _index()[0].items()
        if module.startswith("bytewright.frontends") and module not in known
        for file in files
    }
    assert {file for file in users if not file.startswith("frontends/")} == {"cli/print_after.py"}
    named = {file for suffix in FRONTENDS for file in _index()[1][suffix]}
    assert {file for file in named if not file.startswith("frontends/")} == set()


def test_folders_of_frontends_do_not_know_each_other() -> None:
    inside = PACKAGE / "frontends"
    folders = sorted(path.name for path in inside.iterdir() if (path / "__init__.py").is_file())
    assert "tflite" in folders
    for (module, _), files in _index()[0].items():
        parts = module.split(".")
        if parts[:2] == ["bytewright", "frontends"] and parts[2:3] and parts[2] in folders:
            allowed = (f"frontends/{parts[2]}/", "frontends/registry.py", "cli/print_after.py")
            assert all(file.startswith(allowed) for file in files), module


def test_the_command_line_and_python_name_no_option_of_a_compile() -> None:
    """They are made from the declarations."""
    names = ("max_stack_size", "max_stack_alloca_size", "use_backend_alloc_workspace", "embed")
    assert set(names) < {declaration.name for declaration in DECLARATIONS}
    files = [*(PACKAGE / "cli").glob("*.py"), PACKAGE / "__init__.py", PACKAGE / "model.py"]
    words = {file.name: set(re.findall(r"\w+", file.read_text(encoding="utf-8"))) for file in files}
    assert {name: sorted(found & {*names}) for name, found in words.items() if found & {*names}} == {}


def test_a_set_of_types_has_one_name() -> None:
    """Activations that are quantised, numbers that are not, what expressions compute in: a new type joins one."""
    sets = ("I8 I16", "I8 I16 F32", "I32 I64", "I16 I32 I64 F32 F64")
    spelled: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
                types = " ".join(each.attr if isinstance(each, ast.Attribute) else "?" for each in node.elts)
                spelled |= {path.relative_to(PACKAGE).as_posix()} if types in sets else set()
    assert spelled == {"ir/types.py", "ops/checks.py"}


def test_few_tables_go_by_element_type() -> None:
    """One that is added has a row in each, but where it is not passed to packed forms."""
    members = {f"ir.DType.{dtype.name}" for dtype in DType} | {repr(name) for name in DTYPES}
    tables: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            keys = (
                {ast.unparse(key) for key in node.keys if key} if isinstance(node, ast.Dict) else set[str]()
            )
            tables |= {path.relative_to(PACKAGE).as_posix()} if len(keys & members) > 4 else set()
    assert tables == {"codegen/expressions.py", "codegen/packed.py", "frontends/tflite/graph_builder.py"}


def test_one_file_knows_the_folder_of_an_instruction_set() -> None:
    folders = {path.parent.name for path in (PACKAGE / "lower" / "isa").glob("*/__init__.py")}
    assert folders >= {"mve", "dsp", "neon", "rvv", "x86"}
    for folder in folders:
        front = f"bytewright.lower.isa.{folder}"
        users = {f for (module, _), files in _index()[0].items() if module.startswith(front) for f in files}
        outside = {file for file in users if not file.startswith(f"lower/isa/{folder}/")}
        assert outside == {"lower/isa/registry.py"}, (folder, outside)


def test_a_set_on_the_shared_template_is_a_folder_of_at_most_300_lines() -> None:
    """RISC-V's is the newest: int8 and float32 convolutions, depthwise ones, fully connected layers, pools, lanes."""
    for folder in ("neon", "rvv"):
        files = (PACKAGE / "lower" / "isa" / folder).glob("*.py")
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        assert len(lines) <= 300, folder


def test_an_instruction_is_named_in_its_folder_alone() -> None:
    for each in INSTRUCTION_SETS:
        for instruction in each.instructions:
            files = _index()[1][instruction.name]
            assert all(file.startswith("lower/isa/") for file in files), (instruction.name, files)


def test_one_file_and_its_line_are_a_format_of_views() -> None:
    """A writer is known where formats are listed and nowhere else; text alone is printed by the command line."""
    writers = {path.stem for path in (PACKAGE / "show").glob("as_*.py")}
    assert {"as_html", "as_json", "as_text"} <= writers
    for writer in writers:
        module = f"bytewright.show.{writer}"
        users = {file for (name, _), files in _index()[0].items() if name == module for file in files}
        assert users == {"cli/formats.py" if writer == "as_text" else "show/formats.py"}, writer
    for form in FORMATS:
        if form.name != "json":  # which commands without views print, too
            assert [path for path in (PACKAGE / "cli").glob("*.py") if form.name in _words(path)] == []


def test_whoever_says_something_knows_no_format() -> None:
    """Those who make views know what views are, and no writer."""
    makers = _index()[0]["bytewright.show.view", "View"]
    assert makers >= {"report/report_view.py", "execute/profile/view.py", "inspect/check_view.py"}
    for maker in (file for file in makers if not file.startswith(("show/", "cli/"))):
        text = (PACKAGE / maker).read_text(encoding="utf-8")
        assert not re.search(r"^(from|import) (rich|json|click|html)\b", text, re.MULTILINE), maker


def test_a_field_of_a_pool_is_carried_by_few_files() -> None:
    """The class, its reader and writer for target files; the class of the plan, what makes it, and the report."""
    carried = {field.name for field in fields(Pool)} & {field.name for field in fields(PlannedPool)}
    assert carried >= {"name", "memory", "role", "provider", "load"}
    making = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bPlannedPool\(\n", path.read_text(encoding="utf-8"))
    }
    assert making == {"record/build_plan.py"}
    reading = {
        path.relative_to(PACKAGE).as_posix()
        for path in (PACKAGE / "target").rglob("*.py")
        if "Pool(\n" in path.read_text(encoding="utf-8")
    }
    assert reading == {
        "target/load.py",
        "target/options.py",
    }  # and of the command line, which names few fields


# What there is of an input that comes row by row alone, in names of the code and of the C.
_OF_ROWS = re.compile(
    r"\b(Io\.ROWS|entry_forms import ROWS|ByRows|takes_rows|take_rows|taken_rows|row_loops|"
    r"nest_of_rows|check_row_loops|push_rows|run_row|is_begun|HARNESS_ROWS)"
)


def test_few_files_know_that_an_input_comes_row_by_row() -> None:
    """A form of entries is two files, what it is and its C, and a line in each list; header, entry, checks ask it.

    The others are what this form alone has: loops over rows in the IR, who makes them, and who proves them.
    """
    form = {"naming/entry_forms.py", "codegen/by_rows.py"}
    lists = {"codegen/forms.py", "record/entries.py"}  # and `Io`, whose values the option has
    harness = {"execute/harness/adapter.c", "execute/harness/harness.h"}
    loops = {
        "ir/analyses/row_loops.py",
        "storage/rows/take_rows.py",
        "compiler/store.py",
        "compiler/run_passes.py",
    }
    proof = {"inspect/check_row_loops.py", "inspect/check_files.py", "inspect/check_flow.py"}
    where = {"place/plan_devices.py", "lower/calling_forms.py", "record/build_plan.py"}
    search = {"compiler/remedy/find_remedy.py", "compiler/remedy/saved.py"}
    known = {
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*"))
        if path.suffix in (".py", ".c", ".h") and _OF_ROWS.search(path.read_text(encoding="utf-8"))
    }
    assert known == form | lists | harness | loops | proof | where | search


def test_whoever_writes_an_entry_asks_its_form() -> None:
    forms = _index()[0]["bytewright.naming.entry_forms", "ROWS"]
    assert forms == {"codegen/forms.py", "record/entries.py"}
    own = {
        file
        for (module, _), files in _index()[0].items()
        if module == "bytewright.codegen.by_rows"
        for file in files
    }
    assert own == {"codegen/forms.py"}


def _words(path: Path) -> set[str]:
    return set(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def _named_kinds(pattern: ast.pattern, kinds: set[str]) -> set[str]:
    """The kinds of statements that a pattern names, as `For` or `ir.For`."""
    classes = [node.cls for node in ast.walk(pattern) if isinstance(node, ast.MatchClass)]
    return {ast.unparse(each).rpartition(".")[2] for each in classes} & kinds


def _is_open(match: ast.Match) -> bool:
    """Whether what no case names is taken by the last one, and not refused there."""
    last = match.cases[-1]
    takes_all = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
    return takes_all and "assert_never" not in ast.unparse(last)


def test_few_files_must_name_every_kind_of_statement() -> None:
    """Whoever reads bodies does so by the driver, or by what a statement is made of, and knows no list of kinds."""
    definition = ast.parse((PACKAGE / "ir" / "prim.py").read_text(encoding="utf-8"))
    (union,) = (
        node.value
        for node in definition.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "Statement"
    )
    kinds = {node.id for node in ast.walk(union) if isinstance(node, ast.Name)}
    assert kinds >= {"For", "Store", "Seq"}
    closed: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        is_reader = path.parent.name == "ir" or "import ir\n" in text or "bytewright.ir.prim" in text
        names_kinds = re.search(rf"case .*\b({'|'.join(sorted(kinds))})\(", text) is not None
        for node in ast.walk(ast.parse(text)) if is_reader and names_kinds else ():
            if isinstance(node, ast.Match) and not _is_open(node):
                named = set[str]().union(*(_named_kinds(case.pattern, kinds) for case in node.cases))
                closed |= {path.relative_to(PACKAGE).as_posix()} if len(named) > 1 else set()
    assert closed == {
        "codegen/statements.py",
        "ir/analyses/interpreter.py",
        "ir/prim.py",
        "ir/rewrite.py",
        "ir/text/primfuncs.py",
        "ir/verify/verify_prim.py",
    }
    # Besides the name that it has there, and the evaluator of tests.
    assert len({*closed, "ir/__init__.py", "tests/support/evaluate/source.py"}) <= 8
