"""What all tests share: levels, golden texts, the shared models, and how hypothesis generates.

The level of a test is the folder it lies in (`unit`, `golden`, `run`, `board`, `browser`, CONTRIBUTING.md); the marks
`run`, `board` and `browser` follow from it, so that `-m "not board"` selects by what a machine has.
"""

from __future__ import annotations

import difflib
import gc
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from support import slow_tests, suite_cost, tiers

PROJECT_ROOT = Path(__file__).resolve().parent.parent
GOLDEN_FOLDER = PROJECT_ROOT / "tests" / "golden" / "expected"
MAX_GOLDEN_LINES = 60
_LEVELS_WITH_MARK = ("run", "board", "browser")

# The same examples on each run and machine. BYTEWRIGHT_TESTS=thorough looks further, at other examples each
# time: what it finds is to become a test with that very input.
hypothesis.settings.register_profile(
    "deterministic", derandomize=True, deadline=None, database=None, print_blob=True
)
hypothesis.settings.register_profile(
    "thorough", deadline=None, database=None, print_blob=True, max_examples=500
)
tiers.limit_waiting()
# Compiles make much that lasts and few cycles, beside nine thousand tests: to look for cycles less often is quicker.
gc.set_threshold(100_000)
hypothesis.settings.load_profile(os.environ.get("BYTEWRIGHT_TESTS", "deterministic"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the expected texts anew instead of comparing"
    )
    suite_cost.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    tiers.turn()  # before the workers begin, which inherit it
    config.pluginmanager.register(suite_cost.SuiteCost(config), "suite_cost")


def pytest_collection_finish() -> None:
    gc.freeze()  # modules and tests stay: nobody needs to look through them again


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks levels and slow tests; the files that take longest come first, so that the last ones to run are short."""
    slow = slow_tests.read()
    seconds_of = slow_tests.by_file(slow.items())
    for item in items:
        level = item.path.relative_to(PROJECT_ROOT / "tests").parts[0]
        if level in _LEVELS_WITH_MARK:
            item.add_marker(level)
        if item.nodeid in slow:
            item.add_marker("slow")
    items.sort(key=lambda item: -seconds_of.get(slow_tests.file_of(item.nodeid), 0.0))


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected texts are to be written instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def golden(update_golden: bool) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text must equal tests/golden/expected/<name>, which it may be at most 60 lines of.

    With --update-golden the file is written instead; what changed is then read in the diff of the commit.
    """

    def compare(name: str, text: str) -> None:
        path = GOLDEN_FOLDER / name
        actual = text.rstrip("\n") + "\n"
        num_lines = actual.count("\n")
        if num_lines > MAX_GOLDEN_LINES:
            pytest.fail(f"{name} has {num_lines} lines; a golden text has at most {MAX_GOLDEN_LINES}")
        if update_golden:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"there is no expected text {name}; write it with make update-golden:\n{actual}")
        expected = path.read_text(encoding="utf-8")
        if actual != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm=""
            )
            pytest.fail(f"{name} differs (make update-golden, if it should):\n" + "\n".join(lines))

    return compare


def _shared_folder(name: str) -> Path:
    folder = PROJECT_ROOT.parent / "shared" / name
    if not folder.is_dir():
        pytest.skip(f"the data that is not part of the project is missing: ../shared/{name}")
    return folder


@pytest.fixture(scope="session")
def shared_models() -> Path:
    """The folder of the MLPerf Tiny models beside the project; tests skip where it is missing."""
    return _shared_folder("models")


@pytest.fixture(scope="session")
def shared_planner() -> Path:
    """The folder of the public planning instances beside the project; tests skip where it is missing."""
    return _shared_folder("planner")
