"""What the suite costs: processor time by file at the end of a run, and a limit for each test of the default tier.

The time of a test is that of its process and of all the processes that it waited for, in set-up, call and tear-down,
so what a fixture of a module takes counts for the first test that asks for it. Processor time, because the machine may
have other work.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator

import pytest

from support.slow_tests import by_file, update
from support.tiers import THOROUGH, TURN_VARIABLE, turn

MOST_SECONDS = 20.0
_NUM_SHOWN = 10
_PROPERTY = "processor_seconds"
_OPTION = "--most-seconds"
_UPDATE_OPTION = "--update-slow"


def add_option(parser: pytest.Parser) -> None:
    """The options for another limit, and for the list of slow tests."""
    limit = "processor time that a test of the default tier may take"
    parser.addoption(_OPTION, type=float, default=MOST_SECONDS, help=limit)
    parser.addoption(
        _UPDATE_OPTION, action="store_true", help="write the slow tests of this run to their list"
    )


def processor_seconds() -> float:
    """Of this process and of those that it waited for, so far."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class SuiteCost:
    """Measures each test where it runs, and sums up where the run is reported."""

    def __init__(self, config: pytest.Config) -> None:
        self._most_seconds = float("inf") if THOROUGH else float(config.getoption(_OPTION))
        self._began = self._spent = 0.0
        self._by_test: dict[str, float] = defaultdict(float)

    def pytest_runtest_logstart(self) -> None:
        self._began, self._spent = processor_seconds(), 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = processor_seconds()
        report.user_properties.append((_PROPERTY, now - self._began))
        self._spent += now - self._began
        self._began = now
        if report.when == "teardown" and report.passed and self._spent > self._most_seconds:
            report.outcome = "failed"
            report.longrepr = (
                f"{item.nodeid} took {self._spent:.1f} s of processor time; a test of the default tier may take "
                f"{self._most_seconds:g} s. Split it, or leave most of its cases to the thorough tier (support.tiers)."
            )
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A worker's properties are those of all phases so far; the last is this phase's.
        own = [value for name, value in report.user_properties if name == _PROPERTY]
        if own:
            self._by_test[report.nodeid] += float(str(own[-1]))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not hasattr(session.config, "workerinput"):
            part = "all cases" if THOROUGH else f"a part of each sweep, {TURN_VARIABLE}={turn()}"
            reporter.write_line(f"tests of the {'thorough' if THOROUGH else 'default'} tier: {part}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        costs = sorted(by_file(self._by_test.items()).items(), key=lambda entry: (-entry[1], entry[0]))
        if not costs:
            return
        total = sum(seconds for _, seconds in costs)
        terminalreporter.section(f"processor time: {total:.0f} s in {len(costs)} files; the slowest")
        for name, seconds in costs[:_NUM_SHOWN]:
            terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
        if terminalreporter.config.getoption(_UPDATE_OPTION):
            update(self._by_test)
