"""Signatures of one file as entries of one bundle: runs in any order equal those of LiteRT's signature runners."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from click.testing import CliRunner
from numpy.typing import NDArray

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from support.compilers import QUICK
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

Array = NDArray[Any]
WEIGHTS = np.random.default_rng(5).normal(size=(8, 8)).astype(np.float32)
BIAS = np.linspace(-1, 1, 8, dtype=np.float32)


class Draft(ModelBuilder):
    """A subgraph with a layer of weights that all signatures have, and with variables."""

    def variable(self, name: str) -> int:
        resource = self.tensor(f"{name}_handle", (), "resource")
        self.operator("VAR_HANDLE", [], [resource], shared_name=name)
        return resource

    def read(self, resource: int, name: str) -> int:
        value = self.tensor(name, (1, 8), "float32")
        self.operator("READ_VARIABLE", [resource], [value])
        return value

    def dense(self, x: int, name: str) -> int:
        weights, bias = self.constant(f"{name}_w", WEIGHTS), self.constant(f"{name}_b", BIAS)
        y = self.tensor(name, (1, 8), "float32")
        self.operator("FULLY_CONNECTED", [x, weights, bias], [y])
        return y

    def input(self, name: str) -> int:
        return self.tensor(name, (1, 8), "float32")


def push(key: str = "push") -> tuple[Draft, list[int], list[int]]:
    """What it is given, through the layer, is added to the sum; the sum so far comes out."""
    draft = Draft(subgraph_name=key)
    draft.operator("CALL_ONCE", [], [], init_subgraph_index=3)
    x, resource = draft.input("x"), draft.variable("sum")
    total = draft.tensor("total", (1, 8), "float32")
    draft.operator("ADD", [draft.dense(x, "hidden"), draft.read(resource, "before")], [total])
    draft.operator("ASSIGN_VARIABLE", [resource, total], [])
    draft.signature(key, {"x": x}, {"y": total})
    return draft, [x], [total]


def look() -> tuple[Draft, list[int], list[int]]:
    """The sum, through the layer and scaled by an input: it reads alone."""
    draft = Draft(subgraph_name="look")
    draft.operator("CALL_ONCE", [], [], init_subgraph_index=3)
    x, resource = draft.input("x"), draft.variable("sum")
    y = draft.tensor("y", (1, 8), "float32")
    draft.operator("MUL", [draft.dense(draft.read(resource, "now"), "hidden"), x], [y])
    draft.signature("look", {"x": x}, {"y": y})
    return draft, [x], [y]


def plain() -> tuple[Draft, list[int], list[int]]:
    """No variable: two layers and another tensor that is called `total`."""
    draft = Draft(subgraph_name="plain")
    x = draft.input("total")
    y = draft.dense(draft.dense(x, "hidden"), "y")
    draft.signature("plain", {"x": x}, {"y": y})
    return draft, [x], [y]


def once() -> tuple[Draft, list[int], list[int]]:
    draft = Draft(subgraph_name="once")
    start = draft.constant("start", np.arange(8, dtype=np.float32)[None])
    draft.operator("ASSIGN_VARIABLE", [draft.variable("sum"), start], [])
    return draft, [], []


def content() -> bytes:
    first, *others = ((draft.subgraph(given, made), draft) for draft, given, made in (push(), look(), plain(), once()))
    _, inputs, outputs = push()
    return first[1].build(inputs, outputs, *(part for part, _ in others))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("signatures") / "several.tflite"
    file.write_bytes(content())
    return file


class Runners:
    """LiteRT's, of one interpreter, so that its variables are one."""

    def __init__(self, file: Path) -> None:
        interpreter: Any = Interpreter(
            model_path=str(file),
            num_threads=1,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        self._of: Mapping[str, Any] = {
            key: interpreter.get_signature_runner(key) for key in interpreter.get_signature_list()
        }

    def run(self, key: str, x: Array) -> Array:
        return np.array(self._of[key](x=x)["y"])


def test_runs_in_any_order_equal_those_of_the_signature_runners(path: Path) -> None:
    model = bytewright.compile(path, signature="*")
    assert [entry.name for entry in model.plan.entries] == ["push", "look", "plain"]
    session, runners = model.session(), Runners(path)
    rng = np.random.default_rng(7)
    order = ["push", "look", "push", "push", "plain", "look", *rng.choice(["push", "look", "plain"], 20)]
    for key in order:
        x = rng.normal(size=(1, 8)).astype(np.float32)
        found, wanted = session.run(x, entry=key), runners.run(key, x)
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max(), key
    session.reset()
    x = rng.normal(size=(1, 8)).astype(np.float32)
    wanted = Runners(path).run("push", x)
    assert np.abs(session.run(x, entry="push") - wanted).max() <= 1e-5 * np.abs(wanted).max()
