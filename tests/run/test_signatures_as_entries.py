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
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.record.plan import Plan
from support.compilers import QUICK
from support.part_models import Draft as Layers
from support.tied_signatures import MOST_TURNS, SIGNATURES, TIED, tied_calls
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
    first, inputs, outputs = push()
    return first.build(inputs, outputs, *map(_parts, (look(), plain(), once())))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("signatures") / "several.tflite"
    file.write_bytes(content())
    return file


class Runners:
    """LiteRT's, of one interpreter, so that its variables are one."""

    def __init__(self, file: Path, kernels: OpResolverType = OpResolverType.BUILTIN_REF) -> None:
        interpreter: Any = Interpreter(
            model_path=str(file), num_threads=1, experimental_op_resolver_type=kernels
        )
        self._of: Mapping[str, Any] = {
            key: interpreter.get_signature_runner(key) for key in interpreter.get_signature_list()
        }

    def run(self, key: str, x: Array) -> Array:
        return np.array(self.results(key, x=x)["y"])

    def results(self, key: str, **inputs: Array) -> Mapping[str, Array]:
        return self._of[key](**inputs)


@pytest.fixture(scope="module")
def bundle(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all signatures, with planned inputs and outputs."""
    folder = tmp_path_factory.mktemp("bundle") / "several"
    return bytewright.compile(path, signature="*", io="workspace").write(folder)


def invoke(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    return done.exit_code, done.output


def test_runs_in_any_order_equal_those_of_the_signature_runners(path: Path) -> None:
    model = bytewright.compile(path, signature="*")
    assert [entry.name for entry in model.plan.entries] == ["push", "look", "plain"]
    session, runners = model.session(), Runners(path)
    rng = np.random.default_rng(7)
    order = ["push", "look", "push", "push", "plain", "look", *rng.choice(["push", "look", "plain"], 20)]
    for key in order:
        x = rng.normal(size=(1, 8)).astype(np.float32)
        found, wanted = np.asarray(session.run(x, entry=key)), runners.run(key, x)
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max(), key
    session.reset()
    x = rng.normal(size=(1, 8)).astype(np.float32)
    wanted = Runners(path).run("push", x)
    assert np.abs(np.asarray(session.run(x, entry="push")) - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_weights_workspace_and_variables_are_there_once(path: Path) -> None:
    together = bytewright.compile(path, signature=["push", "plain"]).plan
    alone = [bytewright.compile(path, signature=key).plan for key in ("push", "plain")]
    assert [plan.parameter_bytes for plan in alone] == [
        320,
        288,
    ]  # the layer, and the first values of the sum
    assert together.parameter_bytes == 320
    assert together.workspace_bytes == max(plan.workspace_bytes for plan in alone)
    assert [state.name for state in together.states] == ["sum"]
    kernels = {step.kernel for step in together.steps if step.operators == ("2 (FULLY_CONNECTED)",)}
    assert (
        len(kernels | {step.kernel for step in together.steps if "FULLY_CONNECTED" in step.operators[0]}) == 1
    )


def test_the_bundle_is_checked_and_validated_against_the_signature_runners(path: Path, bundle: Path) -> None:
    assert check_bundle(bundle).num_steps == 7
    rng = np.random.default_rng(3)
    data = bundle.parent / "samples.npz"
    names = [tensor.name for tensor in bytewright.compile(path, signature="*").plan.inputs]
    assert names == ["x", "x_1", "x_2"]
    np.savez(data, **{name: rng.normal(size=(6, 1, 8)).astype(np.float32) for name in names})
    status, text = invoke("validate", bundle, "--data", data, "--model", path, "--layers")
    assert (status, "exact" in text) == (0, True), text
    status, text = invoke("validate", path, "--signature", "l*", "--data", f"x={data}", "--reference", "tflm")
    assert (status, "error[BW204]" in text) == (1, True), text


def test_a_signature_of_another_subgraph_is_validated_against_its_runner(path: Path, tmp_path: Path) -> None:
    data = tmp_path / "x.npy"
    np.save(data, np.random.default_rng(3).normal(size=(6, 1, 8)).astype(np.float32))
    status, text = invoke("validate", path, "--signature", "plain", "--data", data)
    assert (status, "exact" in text) == (0, True), text


@pytest.mark.parametrize(
    "option",
    ["--batch-max=3", "--state=x=y", "--stream=1", "--on=*=cpu", "--kernel=ADD=f"],
)
def test_options_of_one_graph_are_refused(path: Path, tmp_path: Path, option: str) -> None:
    status, text = invoke("compile", path, "-o", tmp_path / "out", "--signature", "*", option)
    flag = option.split("=", maxsplit=1)[0]
    assert (status, f"error[BW204]: {flag} is of one graph, and several signatures" in text) == (1, True), (
        text
    )
    assert f"help: leave out {flag}, or compile one signature" in text


def test_signatures_train_what_others_run(tmp_path: Path) -> None:
    """A file of TensorFlow's: weights and state are there once, and a loop of one signature has a bound."""
    model = bytewright.compile(TIED, signature="*", bounds=[f"WHILE={MOST_TURNS}"])
    assert [entry.name for entry in model.plan.entries] == list(SIGNATURES)
    assert [(state.name, state.size_bytes) for state in model.plan.states] == [
        ("hidden", 32),
        ("weights", 256),
    ]
    model.write(tmp_path / "tied")
    check_bundle(tmp_path / "tied")
    names, given, wanted = tied_calls(60)
    losses = [float(loss) for (loss,) in _results(names, wanted, "train")]
    assert min(losses) < 1 < max(losses)  # the branch is taken, and is not
    losses = [float(loss) for (loss,) in _results(names, wanted, "train")]
    assert min(losses) < 1 < max(losses)  # so the branch is taken, and is not
    assert max(int(turns) for turns, _ in _results(names, wanted, "settle")) in range(2, MOST_TURNS + 1)
    found = run_batch(tmp_path / "tied", given, keep_state=True, entries=names, options=QUICK).outputs
    for own, other in zip(found, wanted, strict=True):
        for value, expected in zip(own, other, strict=True):
            np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5 * float(np.abs(expected).max()))
    with pytest.raises(
        CompileError,
        match="--bound for_1=3 matches no loop, and no size that the data decides; there are 'while__3'",
    ):
        bytewright.compile(TIED, signature="*", bounds=["for_1=3", "WHILE=6"])


def _results(names: list[str], wanted: list[list[Array]], of: str) -> list[list[Array]]:
    return [arrays for name, arrays in zip(names, wanted, strict=True) if name == of]


def test_a_signature_whose_name_the_c_has_already_is_refused(tmp_path: Path) -> None:
    other, given, made = push("reset")
    first, inputs, outputs = plain()
    model = first.build(inputs, outputs, other.subgraph(given, made), *(2 * [_parts(once())]))
    file = tmp_path / "m.tflite"
    file.write_bytes(model)
    status, text = invoke("compile", file, "-o", tmp_path / "out", "--signature", "*")
    assert (status, "error[BW117]: an entry cannot be called 'reset'" in text) == (1, True), text
    assert invoke("compile", file, "-o", tmp_path / "out", "--signature", "reset")[0] == 0


def test_a_variable_of_two_shapes_is_refused(tmp_path: Path) -> None:
    """What one signature assigns is not what the other reads."""
    first, inputs, outputs = plain()
    wide = Draft(subgraph_name="wide")
    x = wide.tensor("x", (1, 4), "float32")
    wide.operator("ASSIGN_VARIABLE", [wide.variable("sum"), x], [])
    y = wide.tensor("y", (1, 4), "float32")
    wide.operator("RELU", [x], [y])
    wide.signature("wide", {"x": x}, {"y": y})
    other, given, made = push()
    parts = (other.subgraph(given, made), wide.subgraph([x], [y]), _parts(once()))
    file = tmp_path / "m.tflite"
    file.write_bytes(first.build(inputs, outputs, *parts))
    with pytest.raises(CompileError) as caught:
        bytewright.compile(file, signature=["push", "wide"])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW107"
    assert "variable 'sum'" in diagnostic.message


def test_one_signature_writes_what_another_reads(tmp_path: Path) -> None:
    """Neither does both, and nothing runs once; LiteRT has no value to read before the first assignment.

    `put` gives nothing, `get` is given nothing, and `version` neither reads an input nor a variable.
    """
    put, get, version = (Draft(subgraph_name=key) for key in ("put", "get", "version"))
    x = put.input("x")
    put.operator("ASSIGN_VARIABLE", [put.variable("kept"), put.dense(x, "hidden")], [])
    put.signature("put", {"x": x}, {})
    y = get.dense(get.read(get.variable("kept"), "now"), "y")
    get.signature("get", {}, {"y": y})
    number = version.constant("number", np.array([3, 1], np.int32))
    version.signature("version", {}, {"y": number})
    file = tmp_path / "m.tflite"
    file.write_bytes(put.build([x], [], get.subgraph([], [y]), version.subgraph([], [number])))
    model, runners = bytewright.compile(file, signature="*"), Runners(file)
    session = model.session()
    check_bundle(model.write(tmp_path / "bundle"))
    rng = np.random.default_rng(1)
    for key in ("put", "get", "get", "version", "put", "put", "get"):
        inputs = {"x": rng.normal(size=(1, 8)).astype(np.float32)} if key == "put" else {}
        found, wanted = session.run(*inputs.values(), entry=key), runners.results(key, **inputs)
        if key != "put":
            assert np.abs(np.asarray(found) - wanted["y"]).max() <= 1e-5 * np.abs(wanted["y"]).max(), key


def test_a_signature_that_does_nothing_is_refused(tmp_path: Path) -> None:
    """As TensorFlow's converter writes a function without results, whose assignments it leaves out."""
    first, inputs, outputs = plain()
    empty = Draft(subgraph_name="store")
    x = empty.input("x")
    empty.signature("store", {"x": x}, {})
    file = tmp_path / "m.tflite"
    file.write_bytes(first.build(inputs, outputs, empty.subgraph([x], [])))
    with pytest.raises(CompileError) as caught:
        bytewright.compile(file, signature="*")
    (diagnostic,) = caught.value.diagnostics
    notes = ("signature 'store' has no output, and assigns no variable",)
    assert (diagnostic.code, diagnostic.notes) == ("BW107", notes)


def test_what_survives_and_is_no_variable_is_each_subgraph_s_own(tmp_path: Path) -> None:
    def ring(key: str) -> tuple[Draft, list[int], list[int]]:
        draft = Draft(subgraph_name=key)
        x = draft.tensor("x", (1, 1, 1, 8), "int8", scale=0.5)
        y = draft.tensor("y", (1, 3, 1, 8), "int8", scale=0.5, is_variable=True)
        draft.custom_operator("CIRCULAR_BUFFER", [x], [y], cycles_max=1)
        draft.signature(key, {"x": x}, {"y": y})
        return draft, [x], [y]

    first, given, made = ring("left")
    file = tmp_path / "m.tflite"
    file.write_bytes(first.build(given, made, _parts(ring("right"))))
    model = bytewright.compile(file, signature="*")
    assert [state.name.split("_")[0] for state in model.plan.states] == ["left", "right"]
    session = model.session()
    ones = np.ones((1, 1, 1, 8), np.int8)
    assert np.sum(session.run(ones, entry="left")) == 8
    assert np.sum(session.run(2 * ones, entry="right")) == 16
    assert np.sum(session.run(ones, entry="left")) == 16


def test_channels_that_are_constant_go_from_every_signature(tmp_path: Path) -> None:
    def narrow(key: str, seed: int) -> tuple[Draft, list[int], list[int]]:
        rng = np.random.default_rng(seed)
        draft = Draft(subgraph_name=key)
        x = draft.tensor("x", (1, 6, 6, 4), "int8", scale=0.5)
        first = rng.integers(-127, 128, (8, 3, 3, 4), dtype=np.int8)
        first[2] = first[5] = 0
        for name, weights in (("h", first), ("y", rng.integers(-127, 128, (8, 3, 3, 8), dtype=np.int8))):
            w, y = (
                draft.constant(f"{name}_w", weights, scale=0.01),
                draft.tensor(name, (1, 6, 6, 8), "int8", scale=0.5),
            )
            bias = draft.tensor(f"{name}_b", (8,), "int32", data=np.arange(8, dtype=np.int32), scale=0.005)
            draft.operator("CONV_2D", [x, w, bias], [y])
            x = y
        draft.signature(key, {"x": 0}, {"y": x})
        return draft, [0], [x]

    first, given, made = narrow("left", 1)
    file = tmp_path / "m.tflite"
    file.write_bytes(first.build(given, made, _parts(narrow("right", 2))))
    model = bytewright.compile(file, signature="*")
    alone = [bytewright.compile(file, signature=key).plan for key in ("left", "right")]
    both = model.plan.narrowed
    assert both is not None
    assert both.macs == sum(plan.narrowed.macs for plan in alone if plan.narrowed) < both.macs_before
    assert constant_channels(model.plan) == [*constant_channels(alone[0]), *constant_channels(alone[1])] != []
    session, runners = model.session(), Runners(file)
    for key in ("left", "right"):
        x = np.random.default_rng(4).integers(-128, 128, (1, 6, 6, 4), dtype=np.int8)
        assert (np.asarray(session.run(x, entry=key)) == runners.run(key, x)).all()


def constant_channels(plan: Plan) -> list[tuple[int, ...]]:
    return [buffer.constant_channels for buffer in plan.buffers.values() if buffer.constant_channels]


def _parts(draft: tuple[Draft, list[int], list[int]]) -> Any:
    builder, given, made = draft
    return builder.subgraph(given, made)


@pytest.mark.parametrize("rows", ["auto", "off"])
def test_layers_of_each_signature_run_by_rows_or_write_parts_of_its_result(tmp_path: Path, rows: str) -> None:
    graphs: list[tuple[ModelBuilder, int, int]] = []
    for number, key in enumerate(("left", "right")):
        draft = Layers(number, ModelBuilder(subgraph_name=key))
        x = draft.input((1, 12, 12, 4))
        second = draft.conv(draft.conv(x, 4), 4)
        y = draft.concat(1, draft.conv(draft.conv(second, 4), 4), draft.conv(second, 4))
        draft.builder.signature(key, {"x": x}, {"y": y})
        graphs.append((draft.builder, x, y))
    (first, x, y), (other, *ports) = graphs
    file = tmp_path / "layers.tflite"
    file.write_bytes(first.build([x], [y], other.subgraph(ports[:1], ports[1:])))
    model = bytewright.compile(file, signature="*", rows=rows)
    model.write(tmp_path / "layers")
    check_bundle(tmp_path / "layers")
    entries = [model.plan.entry_of(segment.steps[0]) for segment in model.plan.segments]
    parts = [len(buffer.parts) for buffer in model.plan.buffers.values() if buffer.parts]
    assert (entries, parts) == (([0, 1], []) if rows == "auto" else ([], [2, 2]))
    runners, session = Runners(file, OpResolverType.BUILTIN_REF), model.session()
    image = np.random.default_rng(1).integers(-128, 128, (1, 12, 12, 4)).astype(np.int8)
    for key in ("right", "left", "right"):
        np.testing.assert_array_equal(session.run(image, entry=key), runners.run(key, image))
