"""MISRA C:2012, as far as cppcheck's addon sees: no finding that docs/misra.md has no reason for."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from support.shared_models import BOARD, KWS, bundle, target_with

PAGE = Path(__file__).resolve().parents[2] / "docs" / "misra.md"


def limits() -> dict[tuple[str, ...], int]:
    """The rules of each row of the page, and how many findings of them there may be."""
    rows = re.findall(r"^\| ([0-9., ]+) \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {tuple(rules.split(", ")): int(count) for rules, count in rows}


@pytest.fixture(scope="module")
def findings() -> Counter[str]:
    if shutil.which("cppcheck") is None:
        pytest.skip("cppcheck is not installed")
    folder = bundle(KWS, target_with(BOARD))
    sources = [f"src/{KWS}.c", f"src/{KWS}_kernels.c"]
    command = ["cppcheck", "--addon=misra", "--std=c99", "--enable=style", "--quiet", "-Iinclude", *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=200)
    return Counter(re.findall(r"\[misra-c2012-([0-9.]+)\]", done.stderr))


def test_findings_have_reasons_and_do_not_grow(findings: Counter[str]) -> None:
    assert findings, "the addon finds nothing at all, so it did not run"
    rows = limits()
    known = {rule for rules in rows for rule in rules}
    assert sorted(set(findings) - known) == []
    counts = {rules: sum(findings[rule] for rule in rules) for rules in rows}
    assert {rules: count for rules, count in counts.items() if count > rows[rules]} == {}


def test_conditions_are_truth_values(findings: Counter[str]) -> None:
    assert findings["14.4"] == 0
