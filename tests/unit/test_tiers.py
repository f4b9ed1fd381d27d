"""The suite's own machinery: what a default run takes of a sweep, and that a costly test fails it."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, product
from math import prod
from pathlib import Path

import pytest

from support import tiers
from support.slow_tests import by_file, read, update
from support.tiers import LIMIT_VARIABLE, TURN_VARIABLE, covering, some

TESTS = Path(__file__).resolve().parent.parent
CONFTEST = """
from support import suite_cost
def pytest_addoption(parser):
    suite_cost.add_option(parser)
def pytest_configure(config):
    config.pluginmanager.register(suite_cost.SuiteCost(config), "suite_cost")
"""
COSTLY = """
import subprocess, sys, time
BUSY = "import time\\nwhile time.process_time() < 0.5: pass"
def test_of_its_own():
    exec(BUSY.replace("0.5", f"{time.process_time() + 0.5}"))
def test_of_a_child():
    subprocess.run([sys.executable, "-c", BUSY], check=True)
def test_that_waits():
    time.sleep(0.6)
def test_that_fails():
    assert False
"""


@pytest.fixture
def default_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "THOROUGH", False)


@pytest.mark.parametrize(("count", "every"), [(1, 4), (3, 4), (4, 4), (10, 4), (57, 8), (7, 1)])
@pytest.mark.usefixtures("default_tier")
def test_each_case_runs_once_in_so_many_turns(
    monkeypatch: pytest.MonkeyPatch, count: int, every: int
) -> None:
    met: list[int] = []
    for turn in range(100, 100 + min(count, every)):
        monkeypatch.setenv(TURN_VARIABLE, str(turn))
        chosen = some(range(count), every)
        assert chosen
        assert chosen == some(range(count), every)
        met += chosen
    assert sorted(met) == list(range(count))


@pytest.mark.usefixtures("default_tier")
def test_what_is_pinned_always_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(4):
        monkeypatch.setenv(TURN_VARIABLE, str(turn))
        assert {2, 3} <= set(some(range(8), every=4, always=[2, 3]))
    assert some([]) == []


def test_the_thorough_tier_takes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "THOROUGH", True)
    assert some(range(100), every=4) == list(range(100))


@pytest.mark.usefixtures("default_tier")
@pytest.mark.parametrize("sizes", [(2, 2, 2, 4), (3, 2), (5,), (3, 4, 2)])
def test_a_covering_array_has_each_pair(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]) -> None:
    parameters = [[f"{number}.{value}" for value in range(size)] for number, size in enumerate(sizes)]
    met: set[tuple[str, ...]] = set()
    for turn in range(40):
        monkeypatch.setenv(TURN_VARIABLE, str(turn))
        cells = covering(*parameters)
        met |= set(cells)
        for one, other in combinations(range(len(sizes)), 2):
            pairs = {(cell[one], cell[other]) for cell in cells}
            assert pairs == set(product(parameters[one], parameters[other]))
        if sizes == (2, 2, 2, 4):
            assert len(cells) <= 9
    assert len(met) > 0.9 * prod(sizes)


def run_suite(folder: Path, tier: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_costly.py").write_text(COSTLY)
    environment = {**os.environ, "BYTEWRIGHT_TESTS": tier, "PYTHONPATH": str(TESTS), TURN_VARIABLE: "7"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "2" if tier == "deterministic" else "0",
        "-q",
        "--most-seconds",
        "0.3",
        "--rootdir",
        str(folder),
    ]
    done = subprocess.run(
        [*command, str(folder)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout


def test_a_test_that_takes_too_long_fails_the_run(tmp_path: Path) -> None:
    said = run_suite(tmp_path, "deterministic")
    assert "1 failed, 3 passed, 2 errors" in said
    assert "test_of_its_own took 0." in said
    assert "test_of_a_child took 0." in said
    assert "test_that_waits took" not in said
    assert "a test of the default tier may take 0.3 s" in said
    assert f"{TURN_VARIABLE}=7" in said
    assert "s  test_costly.py" in said


def test_the_thorough_tier_has_no_limit(tmp_path: Path) -> None:
    said = run_suite(tmp_path, "thorough")
    assert "took" not in said
    assert "1 failed, 3 passed" in said


HANGING = """
import subprocess, sys, threading
def test_that_waits_for_a_process():
    subprocess.run([sys.executable, "-c", "import time; time.sleep(100)"], check=True)
def test_that_never_ends():
    while True: pass
def test_that_waits_for_a_thread():
    threading.Event().wait()
def test_that_comes_after():
    pass
"""


def test_a_test_that_hangs_is_ended_with_a_traceback(tmp_path: Path) -> None:
    """Each alone: the others of its worker still run."""
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-n", "1", "-q", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {**os.environ, LIMIT_VARIABLE: "2"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 1
    assert "3 failed, 1 passed" in done.stdout
    for line in ("import time; time.sleep(100)", "while True: pass", "threading.Event().wait()"):
        assert line in done.stdout
    assert "Timeout (>2.0s)" in done.stdout


def test_every_test_of_this_suite_has_such_a_limit(request: pytest.FixtureRequest) -> None:
    assert request.config.pluginmanager.hasplugin("timeout")
    assert 0 < float(os.environ[LIMIT_VARIABLE]) <= 3000


def test_the_list_of_slow_tests_keeps_what_was_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "slow.txt"
    update({"a.py::one": 1.5, "a.py::two": 7.0, "b.py::three": 2.0, "b.py::four": 0.4}, path)
    assert read(path) == {"a.py::one": 1.5, "a.py::two": 7.0, "b.py::three": 2.0}
    update({"tests/unit/a.py::quick": 0.2, "tests/unit/a.py::not": 0.4, "tests/run/a.py::quick": 0.4}, path)
    assert [name for name in read(path) if name.startswith("tests/")] == ["tests/unit/a.py::not"]
    update({"a.py::one": 0.2, "a.py::five": 3.0, "tests/unit/a.py::not": 0.1}, path)
    assert read(path) == {"a.py::five": 3.0, "b.py::three": 2.0}
    assert by_file(read(path).items()) == {"a.py": 3.0, "b.py": 2.0}
