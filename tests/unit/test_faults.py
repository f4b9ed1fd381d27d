"""The faults of `make faults` can still be made: each text stands in its file, once, and its tests exist."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from faults import FAULTS, PACKAGE, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_made(fault: Fault, tmp_path: Path) -> None:
    path = tmp_path / fault.file
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(PACKAGE / fault.file, path)
    fault.apply(tmp_path)
    changed = path.read_text(encoding="utf-8")
    assert changed != (PACKAGE / fault.file).read_text(encoding="utf-8")
    ast.parse(changed)  # a fault of meaning, and no error of syntax that everything would find
    assert fault.tests
    for test in fault.tests:
        assert (ROOT / test.partition("::")[0]).exists(), test


def test_a_text_that_is_gone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"0 times in m\.py"):
        Fault("a fault", "m.py", "y = 1", "y = 2", ("tests/unit",)).apply(tmp_path)


def test_there_are_as_many_as_the_documents_say() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 20
