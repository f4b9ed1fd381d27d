"""`check --report`: a page for a safety file, and the records of deviations in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.inspect.deviations import DEVIATIONS
from bytewright.record.plan_file import read_plan
from bytewright.show.as_markdown import markdown_text
from bytewright.show.view import Facts, Field, View, data, table_of
from support.digits_bundle import DIGITS, change_file
from support.entry_programs import DUO
from support.streamed_nets import keyword_net

PAGE = Path(__file__).resolve().parents[3] / "docs" / "misra.md"


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, ["check", *map(str, arguments)])


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bytewright.compile(DIGITS, target="mps3-an547").write(tmp_path_factory.mktemp("digits") / "digits")


def test_the_page_has_what_was_looked_at_and_what_was_not(digits: Path, tmp_path: Path) -> None:
    assert check(digits, "--report", tmp_path / "page.json").exit_code == 0
    page = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    plan = read_plan(digits)
    assert (page["plan_hash"], page["files_hash"]) == (plan.plan_hash, plan.files_hash)
    assert page["model_files"] == dict(plan.model_files)
    assert {item["path"]: item["sha256"] for item in page["files"]} == dict(plan.files)
    verdicts = [claim["verdict"] for claim in page["claims"]]
    assert verdicts == ["proved"] * 6 + ["not asked for: --stack", "not asked for: --elf"]
    (stack,) = page["stacks"]
    assert (stack["size_bytes"], stack["measured_bytes"]) == (plan.stack["cpu"].size_bytes, None)
    assert any("time" in text for text in page["not_proved"])


def test_the_page_says_how_runs_depend_on_each_other(tmp_path: Path) -> None:
    """Entries, devices and state; a window that comes frame by frame."""
    (tmp_path / "duo.bw").write_text(DUO, encoding="utf-8")
    bytewright.compile(tmp_path / "duo.bw", target="mps2-an521").write(tmp_path / "duo")
    assert check(tmp_path / "duo", "--report", tmp_path / "page.md").exit_code == 0
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "device: cpu (cortex-m33+nodsp), core1 (cortex-m33)" in text
    assert "one runs at a time: put (x, y; steps 0..2), get (z, w; steps 3..5)" in text
    assert "kept between runs: s; reset before each new sequence" in text
    (tmp_path / "net.tflite").write_bytes(keyword_net(49))
    bytewright.compile(tmp_path / "net.tflite", stream="1").write(tmp_path / "net")
    assert check(tmp_path / "net", "--report", tmp_path / "page.json").exit_code == 0
    page = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert page["stream"]["num_frames"] == 49
    assert "t1_kept" in {state["name"] for state in page["states"]}


def test_a_bundle_that_does_not_verify_has_no_page(digits: Path, tmp_path: Path) -> None:
    changed = bytewright.compile(DIGITS, target="host").write(tmp_path / "changed")
    change_file(changed, "include/digits.h", "WORKSPACE_ALIGN 16", "WORKSPACE_ALIGN 1")
    assert check(changed, "--report", tmp_path / "page.md").exit_code == 4
    assert not (tmp_path / "page.md").exists()
    assert check(digits, "--report", tmp_path / "page.txt").exit_code == 2
    assert check(digits, "--report", tmp_path / "missing" / "page.md").exit_code == 1
    assert check(digits, "--report", digits / "plan.json").exit_code == 1


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_the_page_is_for_people(suffix: str, digits: Path, tmp_path: Path) -> None:
    path = tmp_path / f"page{suffix}"
    assert check(digits, "--report", path).exit_code == 0
    text = path.read_text(encoding="utf-8")
    for wanted in ("What is proved", "What is not proved", "Rule 8.14", read_plan(digits).plan_hash):
        assert wanted in text


def test_records_of_assembler_are_for_bundles_that_have_it(digits: Path, tmp_path: Path) -> None:
    portable = bytewright.compile(DIGITS, target="mps3-an547", kernel_code="portable")
    portable.write(tmp_path / "portable")
    found: dict[str, set[str]] = {}
    for directory in (digits, tmp_path / "portable"):
        check(directory, "--report", tmp_path / "page.json")
        page = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
        found[directory.name] = {each["identifier"] for each in page["deviations"]}
    assert found["digits"] == {each.identifier for each in DEVIATIONS}
    assert found["digits"] - found["portable"] == {"BW-D4.2", "BW-D4.3", "BW-12.3"}


def test_the_document_has_the_records() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (BW-\S+) \| (.*) \| (.*) \| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert rows == [
        (d.identifier, d.guideline, d.category, d.scope, d.reason, d.evidence) for d in DEVIATIONS
    ]


def test_every_rule_with_findings_has_a_record() -> None:
    text = PAGE.read_text(encoding="utf-8")
    begin = text.index("## Deviation records")
    rules = re.findall(r"^\| ([0-9., ]+) \| [a-z0-9]", text[:begin], re.MULTILINE)
    recorded = " ".join(each.guideline for each in DEVIATIONS)
    missing = [
        rule
        for row in rules
        for rule in row.split(", ")
        if not re.search(rf"\b{re.escape(rule)}\b", recorded)
    ]
    assert rules
    assert missing == []


def test_markdown_takes_nothing_that_it_is_given_for_markup() -> None:
    name = "</script><img onerror=alert(1)> | *bold* [link](x) `code`\n# head"
    table = table_of(name, "t", [name], Field(name, "name", lambda each: each))
    text = markdown_text(View(name, (table, Facts((data({"name": name}),)))))
    assert "\n# head" not in text
    assert not re.search(r"(?<!\\)[<>`*\[\]]", text.replace("|---|", "").replace("**", ""))
    (row,) = [line for line in text.splitlines() if line.startswith("| ") and "img" in line][-1:]
    assert len(re.findall(r"(?<!\\)\|", row)) == 2
