"""docs/ir.md names every class, field and enum member of the IR, no other, and its example parses."""

from __future__ import annotations

import dataclasses
import inspect
import re
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from bytewright.ir import data, expr, graph, module, prim, scope, storage, types, where
from bytewright.ir.text.modules import module_data, print_module
from bytewright.ir.verify.stages import RULES, Stage, verify
from bytewright.ops.registry import OPERATIONS
from support.evaluate.evaluate import Evaluator
from support.evaluate.evaluate_graph import evaluate_graph
from support.parsing import parse_module

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "ir.md").read_text()
CLASSES = {
    name: cls
    for source in (types, scope, where, data, graph, expr, storage, prim, module)
    for name, cls in inspect.getmembers(source, inspect.isclass)
    if cls.__module__ == source.__name__
} | {"Rank": scope.Rank}  # ranks are the target's, because devices have them
ROWS = {
    found[1]: found[2]
    for found in re.finditer(
        r"^\| `(\w+)` \| (.*?) \|(?= [^|]*|$)", PAGE.replace(r"\|\|", "OR"), re.MULTILINE
    )
}


@pytest.mark.parametrize(
    "name", sorted(name for name, cls in CLASSES.items() if dataclasses.is_dataclass(cls))
)
def test_every_dataclass_stands_on_the_page_with_its_fields(name: str):
    fields = [field.name for field in dataclasses.fields(CLASSES[name])]
    assert ROWS[name].split(", ") == fields


@pytest.mark.parametrize("name", sorted(name for name, cls in CLASSES.items() if issubclass(cls, Enum)))
def test_every_enum_stands_on_the_page_with_its_members(name: str):
    members = [str(member.value).replace("||", "OR") for member in CLASSES[name]]
    assert ROWS[name].split() == members


def test_the_page_names_nothing_that_does_not_exist():
    assert set(ROWS) <= set(CLASSES)


def test_every_key_of_storage_stands_on_the_page():
    full = storage.Storage(None, (), 0, 0, "", "", storage.Border.INPUT, ("",))
    keys = re.findall(r"^- `(\w+)`", PAGE.partition("`Storage`")[2].partition("`Const`")[0], re.MULTILINE)
    assert sorted(keys) == sorted(key for key, _ in storage.to_annotations(full))


def test_the_stages_are_those_of_the_verifier():
    rows = re.findall(r"^\| ([A-Z]+) \| (yes|no) \| (yes|no) \|", PAGE, re.MULTILINE)
    assert rows == [
        (stage.name, *("yes" if flag else "no" for flag in (RULES[stage].graph, RULES[stage].entries)))
        for stage in Stage
    ]


def example(module_name: str) -> str:
    """The example that is the module of this name."""
    found = re.search(rf"```ir\n(module {module_name}\n.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_a_graph_parses_verifies_and_runs():
    parsed = parse_module(example("steps"), {}, OPERATIONS)
    assert parse_module(print_module(parsed), module_data(parsed), OPERATIONS) == parsed
    verify(parsed, Stage.IMPORTED)
    x = np.array([1, 2, 3, -4], np.int32)
    for enabled, wanted in ((True, ((x * 2 + 1) * 2 + 1) * 2 + 1), (False, x + 6)):
        (last,) = evaluate_graph(parsed, (np.array([enabled]), x))
        assert np.array_equal(last, wanted)


def test_the_example_parses_verifies_and_runs():
    text = example("m")
    parsed = parse_module(text, {}, {})
    assert print_module(parsed) == text
    verify(parsed, Stage.PLANNED)
    values = np.array([-128, -5, -1, 0, 1, 6, 100, 127], np.int8)
    result = Evaluator(parsed).run("m_halve", {"input": values})["output"]
    assert np.array_equal(result, values >> 1)
