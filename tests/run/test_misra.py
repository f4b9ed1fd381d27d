"""MISRA C:2012, as far as cppcheck's addon sees: no finding that docs/misra.md has no reason for."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from support.device_bundles import device_files
from support.shared_models import BOARD, KWS, VWW, bundle, target_with
from support.tiers import THOROUGH

PAGE = Path(__file__).resolve().parents[2] / "docs" / "misra.md"


MODELS = (KWS, VWW)  # in the order of the page's columns
LOOKED_AT = MODELS if THOROUGH else (KWS,)  # cppcheck takes 12 s for the other one


def limits(model: str) -> dict[tuple[str, ...], int]:
    """The rules of each row of the page, and how many findings of them there may be."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([0-9., ]+) \| (\d+) \| (\d+) \|", text, re.MULTILINE)
    return {tuple(rules.split(", ")): int(counts[MODELS.index(model)]) for rules, *counts in rows}


@cache
def findings(model: str) -> Counter[str]:
    return findings_in(bundle(model, target_with(BOARD)), [f"src/{model}.c", f"src/{model}_kernels.c"])


def findings_in(folder: Path, sources: list[str]) -> Counter[str]:
    if shutil.which("cppcheck") is None:
        pytest.skip("cppcheck is not installed")
    command = ["cppcheck", "--addon=misra", "--std=c99", "--enable=style", "--quiet", "-Iinclude", *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=200)
    return Counter(re.findall(r"\[misra-c2012-([0-9.]+)\]", done.stderr))


@pytest.mark.slow
@pytest.mark.parametrize("model", LOOKED_AT)
def test_findings_have_reasons_and_do_not_grow(model: str) -> None:
    found = findings(model)
    assert found, "the addon finds nothing at all, so it did not run"
    rows = limits(model)
    assert rows
    known = {rule for rules in rows for rule in rules}
    assert sorted(set(found) - known) == []
    counts = {rules: sum(found[rule] for rule in rules) for rules in rows}
    assert {rules: count for rules, count in counts.items() if count > rows[rules]} == {}


@pytest.mark.slow
@pytest.mark.parametrize("model", LOOKED_AT)
def test_conditions_are_truth_values(model: str) -> None:
    assert findings(model)["14.4"] == 0


@pytest.mark.slow
def test_devices_and_packed_forms_have_findings_of_the_rules_on_the_page(tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    for number, name in enumerate(("functions, packed", "second core, packed")):
        files = device_files(name)
        write_bundle(files, tmp_path / str(number))
        found += findings_in(tmp_path / str(number), sorted(path for path in files if path.endswith(".c")))
    known = {rule for rules in limits(KWS) for rule in rules}
    further = re.findall(r"^\| ([0-9.]+) \| [a-z]", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(set(found) - known) == sorted(further)
