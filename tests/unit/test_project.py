"""The project's own rules: who may import whom, what an import costs, and that the documents are complete."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from bytewright.diagnostics import CODES

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "bytewright"

# Who may import whom: a part imports itself and the layers before its own.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"diagnostics"}),
    frozenset({"base"}),
    frozenset({"elf", "show", "target"}),
    frozenset({"ethos_u", "ir"}),
    frozenset({"naming", "ops"}),
    frozenset({"options"}),
    frozenset({"graph"}),
    frozenset({"frontends", "place", "lower", "storage", "plan"}),
    frozenset({"record", "scopes"}),
    frozenset({"codegen"}),
    frozenset({"bundle"}),
    frozenset({"execute", "report"}),
    frozenset({"inspect"}),
    frozenset({"compiler"}),
    frozenset({"sweeps", "validate"}),
    frozenset({"model"}),
    frozenset({"cli"}),
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
# The one exception: storage states the planner's problem and reads its solution.
EXCEPTIONS = {("storage", "bytewright.plan.problem"), ("storage", "bytewright.plan.solution")}
# Packages that one part alone may know, so that another can be put in their place.
OWNERS = {
    "tflite": {"frontends"},
    "flatbuffers": {"frontends"},
    "click": {"cli"},
    "rich": {"cli", "show"},
    "elftools": {"elf"},
    "pycparser": {"inspect"},
    "devicetree": {"target"},
    "ethosu": {"ethos_u"},
    "PIL": {"validate"},
    "distributed": {"cli"},
    "serial": {"execute"},
}
RUN_TIME_PACKAGES = {"click", "devicetree", "elftools", "flatbuffers", "numpy", "pycparser", "rich", "tflite"}
NOT_LOADED_BY_IMPORT = RUN_TIME_PACKAGES - {"numpy"} | {
    "ai_edge_litert",
    "distributed",
    "ethosu",
    "hypothesis",
    "ortools",
    "PIL",
    "pandas",
    "scipy",
    "serial",
    "sklearn",
    "tflite_micro",
}


def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The folder or top-level module that a file of the package belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_module(dotted: str) -> bool:
    path = ROOT / "src" / Path(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file() or path.with_suffix(".pyi").is_file()


def imported_modules(source: str) -> Iterator[str]:
    """Every module that a text imports, at whatever depth; `from a import b` counts as a.b if that is a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            for alias in node.names:
                dotted = f"{module}.{alias.name}"
                yield dotted if module.startswith("bytewright") and is_module(dotted) else module


def forbidden_imports(part: str, modules: Iterator[str]) -> list[str]:
    """Which of these modules a part of the package may not import, with the reason."""
    faults: list[str] = []
    for module in modules:
        head, _, rest = module.partition(".")
        if head != "bytewright":
            owners = OWNERS.get(head)
            if owners is not None and part not in owners:
                faults.append(f"{part} imports {module}, which only {sorted(owners)} may know")
            elif head not in sys.stdlib_module_names | RUN_TIME_PACKAGES | set(OWNERS):
                faults.append(f"{part} imports {module}, which is no run-time dependency")
            continue
        other = rest.partition(".")[0]
        if other in {"", part, "__version__"} or part == "__init__":
            continue
        if RANK[other] >= RANK[part] and (part, module) not in EXCEPTIONS:
            faults.append(f"{part} imports {module}, which is not in a layer before its own")
    return faults


def test_each_part_of_the_package_has_a_layer() -> None:
    parts = {part_of(path) for path in python_files()} - {"__init__", "__main__"}
    assert parts - set(RANK) == set()


@pytest.mark.parametrize("part", sorted(RANK))
def test_imports_follow_the_layers(part: str) -> None:
    faults = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in python_files()
        if part_of(path) == part
        for fault in forbidden_imports(part, imported_modules(path.read_text(encoding="utf-8")))
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("ir", "from bytewright.ops import registry"),
        ("storage", "from bytewright.plan import solve"),
        ("storage", "from bytewright import codegen"),
        ("lower", "def late():\n    import bytewright.place"),
        ("bundle", "from bytewright.execute.host import HostModel"),
        ("compiler", "from bytewright.cli import main"),
        ("lower", "import tflite.Model"),
        ("codegen", "import click"),
        ("plan", "import ortools"),
    ],
)
def test_the_layer_rule_finds_what_it_forbids(part: str, source: str) -> None:
    assert len(forbidden_imports(part, imported_modules(source))) == 1


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("storage", "from bytewright.plan import problem as plan, solution"),
        ("lower", "from bytewright.ir.expr import Add"),
        ("cli", "import click, bytewright.compiler.pipeline"),
    ],
)
def test_the_layer_rule_allows_what_it_should(part: str, source: str) -> None:
    assert forbidden_imports(part, imported_modules(source)) == []


def test_contributing_says_the_order_of_the_layers() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (order,) = re.findall(r"^(    \S.*(?:\n    .*)*)", text.partition("Imports go one way")[2], re.MULTILINE)[
        :1
    ]
    assert tuple(frozenset(re.findall(r"\w+", layer)) for layer in order.split("<")) == LAYERS


def test_the_layout_names_every_part_of_the_package() -> None:
    text = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8").partition("Around the package")[0]
    named = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", text, re.MULTILINE)
    assert sorted(named) == sorted({*RANK})


def test_the_readme_leads_to_every_document() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    documents = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    assert set(re.findall(r"\]\((docs/[\w-]+\.md)\)", text)) == documents


def test_the_planner_knows_neither_graph_nor_c() -> None:
    modules = {
        module
        for path in (PACKAGE / "plan").rglob("*.py")
        for module in imported_modules(path.read_text(encoding="utf-8"))
        if module.startswith("bytewright")
    }
    outside = {module for module in modules if not module.startswith("bytewright.plan")}
    assert outside == {"bytewright.diagnostics"}


def test_the_validator_imports_only_what_it_judges() -> None:
    source = (PACKAGE / "plan" / "validate.py").read_text(encoding="utf-8")
    inside = {module for module in imported_modules(source) if module.startswith("bytewright")}
    assert inside <= {"bytewright.plan.problem", "bytewright.plan.solution"}
    names = {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bytewright")
        for alias in node.names
    }
    # Types, and what no offset reaches: a function of theirs would be an opinion that the solvers share.
    assert names <= {"LIMIT_BYTES", "Buffer", "Candidate", "Contract", "Placement", "Pool", "Problem"}
    assert not re.search(r"^\s*import bytewright", source, re.MULTILINE)


def modules_behind(module: str) -> set[str]:
    """Every module of the package that one imports, directly or by way of others."""
    found, pending = set[str](), [module]
    while pending:
        path = ROOT / "src" / Path(*pending.pop().split("."))
        source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")
        new = {name for name in imported_modules(source) if name.startswith("bytewright.")} - found
        found |= new
        pending += sorted(new)
    return found


# What goes through the loops of plan.json, and what made them and the distances.
JUDGES = (
    *(f"inspect.{name}" for name in ("check_overlaps", "check_rows", "check_row_code", "check_row_loops")),
    *(f"inspect.{name}" for name in ("check_plan", "check_flow", "check_jobs", "check_jumps", "check_parts")),
    *("inspect.read_entry", "inspect.check_state", "inspect.check_directives", "execute.watch_rows"),
)
# Of `inspect` one alone writes texts again with the compiler's writer, when those above have found nothing.
WRITES_AGAIN = "check_written"
MAKERS = re.compile(
    r"bytewright\.(compiler|storage|graph|lower|codegen|ir\.analyses\.(overlap|turns|spans|row_loops)|ir\.downwards)\b"
)


@pytest.mark.parametrize("judge", JUDGES)
def test_what_checks_rows_and_overlaps_shares_no_code_with_what_made_them(judge: str) -> None:
    assert {module for module in modules_behind(f"bytewright.{judge}") if MAKERS.match(module)} == set()


def test_one_part_of_check_alone_shares_the_writer() -> None:
    sharing = {
        path.stem
        for path in (PACKAGE / "inspect").glob("*.py")
        if any(name.startswith("bytewright.codegen") for name in imported_modules(path.read_text("utf-8")))
    }
    assert sharing == {WRITES_AGAIN}


def test_the_rule_of_judges_finds_what_made_the_loops() -> None:
    found = {module for module in modules_behind("bytewright.compiler.store") if MAKERS.match(module)}
    assert {"bytewright.storage.rows.schedule", "bytewright.ir.analyses.overlap"} <= found


def modules_loaded_by(statement: str) -> set[str]:
    program = f"import sys; {statement}; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def test_import_bytewright_loads_nothing_heavy() -> None:
    loaded = modules_loaded_by("import bytewright")
    assert "bytewright" in loaded
    assert loaded & NOT_LOADED_BY_IMPORT == set()


def test_the_command_line_loads_no_test_dependency() -> None:
    loaded = modules_loaded_by("import bytewright.cli.main")
    assert "click" in loaded
    assert loaded & (NOT_LOADED_BY_IMPORT - RUN_TIME_PACKAGES) == set()
    assert "numpy" not in loaded, "a command's modules are loaded with the command"


def documented_codes() -> dict[str, str]:
    """The sections of docs/errors.md: code to text."""
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    sections = re.split(r"^### (BW\d{3}): ", text, flags=re.MULTILINE)[1:]
    return dict(zip(sections[::2], sections[1::2], strict=True))


def test_every_error_code_is_documented_and_no_other() -> None:
    assert sorted(documented_codes()) == sorted(CODES)


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_document_says_what_a_code_means_and_what_to_do(code: str) -> None:
    heading, _, body = documented_codes()[code].partition("\n")
    assert heading == CODES[code]
    assert f"error[{code}]" in body, "an example"
    assert "**What to do.**" in body


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_error_code_is_provoked_by_a_test(code: str) -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    assert any(code in path.read_text(encoding="utf-8") for path in tests)


def project_files() -> list[Path]:
    """The files under version control; where there is no git, the package's and the documents."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, timeout=60)
    if done.returncode == 0:
        return [ROOT / name for name in done.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    return [
        path for folder in ("src", "docs", "tests") for path in (ROOT / folder).rglob("*") if path.is_file()
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    # Written so that this file does not match itself.
    machine_path = re.compile(rb"(?<![\w.])/(?:home/[a-z]|root/|work/|opt/[a-z]|tmp/[a-z])")
    faults = [
        f"{path.relative_to(ROOT)}:{number}: {line.decode(errors='replace').strip()}"
        for path in project_files()
        if path.suffix not in {".npz", ".tflite", ".so"} and path.resolve() != Path(__file__).resolve()
        for number, line in enumerate(path.read_bytes().splitlines(), start=1)
        if machine_path.search(line)
    ]
    assert faults == []


def files_of_one_name(paths: Iterable[Path]) -> list[list[str]]:
    """The groups of test files that pytest cannot tell apart: the tests' folders are no packages."""
    groups: dict[str, list[str]] = {}
    for path in sorted(paths):
        groups.setdefault(path.name, []).append(path.as_posix())
    return [group for group in groups.values() if len(group) > 1]


def test_no_two_test_files_have_one_name() -> None:
    tests = ROOT / "tests"
    assert files_of_one_name(path.relative_to(tests) for path in tests.rglob("test_*.py")) == []


def test_the_rule_of_names_finds_two_test_files_of_one_name() -> None:
    board, unit, other = Path("board/test_a.py"), Path("unit/test_a.py"), Path("unit/test_b.py")
    assert files_of_one_name([unit, other, board]) == [["board/test_a.py", "unit/test_a.py"]]


def locked_versions(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pins = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!]+)", line) for line in lines]
    assert all(pins), "each line is name==version"
    return {re.sub(r"[-_.]+", "-", pin[1]).lower(): pin[2] for pin in pins if pin}


def declared_packages(*extras: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    return {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ]", entry)[0]).lower() for entry in wanted}


def test_the_lock_files_pin_what_the_project_declares() -> None:
    demo, test = locked_versions("demo.txt"), locked_versions("test.txt")
    assert declared_packages() <= set(demo)
    assert declared_packages("test", "lint") <= set(test)
    assert demo.items() <= test.items()


def test_one_oldest_python_is_named_everywhere() -> None:
    """What is required, what the native core keeps to, and what its wheels are built with."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, builds = settings["project"], settings["tool"]["cibuildwheel"]
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    (minor,) = re.findall(r"^>=3\.(\d+)$", project["requires-python"])
    assert re.findall(r'"py_limited_api": "cp3(\d+)"', setup) == [minor]
    assert [int(digits, 16) for digits in re.findall(r"0x03([0-9A-F]{2})0000", setup)] == [int(minor)]
    assert builds["build"] == f"cp3{minor}-*"
    named = [entry.rpartition("Python :: 3.")[2] for entry in project["classifiers"] if ":: 3." in entry]
    assert named == [str(number) for number in range(int(minor), int(minor) + len(named))]


def test_make_help_lists_every_command() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    listed = re.findall(r"^  make ([a-z-]+) +\S", done.stdout, flags=re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE)) - {"setup-demo", "help"}
    assert set(listed) - {"help"} == commands


def test_ci_runs_the_command_that_the_readme_gives() -> None:
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert steps[-1] == "make test"
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
