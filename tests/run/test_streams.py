"""Networks that keep something, from files: step after step they equal LiteRT, which keeps it too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as untyped_schema
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.model import CompiledModel
from support.compilers import QUICK
from support.model_files import DATA, EXPORTS, ZOO
from support.reference import LiteRt

pytestmark = pytest.mark.run

Array = NDArray[Any]
schema: Any = untyped_schema
STEPS = 50
OWN = DATA / "state"


@dataclass(frozen=True, slots=True)
class Stream:
    """A model.

    Attributes:
        path: Its file.
        fed: Which of its inputs are given which of its outputs, by their numbers.
        has_features: Whether it says little: a wake word's 0 or 1. Then what its last layer is given is compared.
        most_turns: Of loops whose turns the run alone knows.
    """

    path: Path
    fed: tuple[tuple[int, int], ...] = ()
    has_features: bool = False
    most_turns: int = 0

    @property
    def bounds(self) -> tuple[str, ...]:
        return (f"WHILE={self.most_turns}",) if self.most_turns else ()

    @property
    def name(self) -> str:
        return self.path.stem


KEPT = (
    *(Stream(OWN / f"{name}.tflite") for name in ("average", "lstm", "bidirectional_lstm")),
    # An LSTM of Keras that is stateful: variables, and a loop over time.
    *(Stream(EXPORTS / "keras" / f"legacy_lstmst_{form}.tflite") for form in ("float", "open")),
    *(Stream(ZOO / f"{name}.tflite", has_features=True) for name in ("mww_choo", "mww_hey_jarvis_v2")),
)
# Variables that IF and WHILE read and assign, as TensorFlow 2.19 writes `tf.cond` and `tf.while_loop`.
IN_CONTROL = (
    *(Stream(OWN / f"{name}.tflite") for name in ("mean_in_branch", "held_int8", "loop_in_branch", "swap")),
    Stream(OWN / "branch_in_open_loop.tflite", most_turns=12),
    Stream(OWN / "assigning_condition.tflite", most_turns=30),
)
TIED = (
    Stream(OWN / "average-ports.tflite", ((0, 0),)),
    Stream(EXPORTS / "litert_torch" / "grustep_float.tflite", ((1, 1),)),
    Stream(EXPORTS / "litert_torch" / "grustep_i8.tflite", ((1, 1),)),
    Stream(ZOO / "rnnoise.tflite", ((1, 3), (2, 2), (3, 0))),
)


def there(streams: Sequence[Stream]) -> list[Any]:
    """Those whose files are there; some lie beside the project."""
    missing = pytest.mark.skip(reason="the data that is not part of the project is missing: ../shared/models")
    return [pytest.param(s, id=s.name, marks=() if s.path.exists() else missing) for s in streams]


def with_features(path: Path, folder: Path) -> Path:
    """The file without its last fully connected layer and what follows: what that layer is given is the output."""
    model: Any = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes()))
    graph, kinds = model.subgraphs[0], [code.builtinCode for code in model.operatorCodes]
    layers = [kinds[operator.opcodeIndex] for operator in graph.operators]
    last = layers.index(schema.BuiltinOperator.FULLY_CONNECTED)
    graph.outputs = [graph.operators[last].inputs[0]]
    graph.operators = graph.operators[:last]
    model.signatureDefs = []
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    shorter = folder / path.name
    shorter.write_bytes(builder.Output())
    return shorter


def drawn(details: dict[str, Any], random: np.random.Generator) -> Array:
    if details["dtype"] is np.float32:
        return random.standard_normal(details["shape"]).astype(np.float32)
    return random.integers(-128, 128, details["shape"]).astype(details["dtype"])


def requantised(array: Array, source: tuple[float, int], target: tuple[float, int]) -> Array:
    """What an application makes of an output for an input."""
    if array.dtype == np.float32 or source == target:
        return array
    real = (array.astype(np.float64) - source[1]) * source[0] / target[0] + target[1]
    return np.clip(np.round(real), -128, 127).astype(np.int8)


def reference(stream: Stream, steps: int) -> tuple[list[list[Array]], list[list[Array]]]:
    """Inputs and outputs of so many steps, without those that are fed back."""
    model, random = LiteRt(stream.path), np.random.default_rng(11)
    fed = dict(stream.fed)
    state = {
        number: np.full(
            model.inputs[number]["shape"],
            model.inputs[number]["quantization"][1],
            model.inputs[number]["dtype"],
        )
        for number in fed
    }
    hidden = set(fed.values()) if len(fed) < len(model.outputs) else set[int]()
    given: list[list[Array]] = []
    wanted: list[list[Array]] = []
    for _ in range(steps):
        inputs = [state[n] if n in fed else drawn(d, random) for n, d in enumerate(model.inputs)]
        outputs = model.run(*inputs)
        for number, other in fed.items():
            scales = (model.outputs[other]["quantization"], model.inputs[number]["quantization"])
            state[number] = requantised(outputs[other], *scales).reshape(model.inputs[number]["shape"])
        given.append([array for number, array in enumerate(inputs) if number not in fed])
        wanted.append([array for number, array in enumerate(outputs) if number not in hidden])
    return given, wanted


def compiled(stream: Stream, **options: Any) -> CompiledModel:
    """The model with what is fed back as state."""
    plan = bytewright.compile(stream.path).plan if stream.fed else None
    pairs = [] if plan is None else [f"{plan.inputs[a].name}={plan.outputs[b].name}" for a, b in stream.fed]
    return bytewright.compile(stream.path, state=pairs, bounds=stream.bounds, **options)


def assert_equal(found: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]) -> None:
    for own, other in zip(found, wanted, strict=True):
        for value, expected in zip(own, other, strict=True):
            if value.dtype == np.float32:
                np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5 * float(np.abs(expected).max()))
            else:
                np.testing.assert_array_equal(value, expected, strict=True)


@pytest.mark.parametrize("stream", there((*KEPT, *IN_CONTROL, *TIED)))
def test_every_step_equals_the_reference(stream: Stream, tmp_path: Path) -> None:
    if stream.has_features:
        stream = replace(stream, path=with_features(stream.path, tmp_path))
    given, wanted = reference(stream, STEPS)
    assert len({b"".join(a.tobytes() for a in outputs) for outputs in wanted}) > STEPS // 2
    model = compiled(stream)
    assert model.plan.states
    model.write(tmp_path / "bundle")
    check_bundle(tmp_path / "bundle")
    assert_equal(run_batch(tmp_path / "bundle", given, keep_state=True, options=QUICK).outputs, wanted)
    first = run_batch(tmp_path / "bundle", [given[0]] * 3, options=QUICK)
    assert_equal(first.outputs, [wanted[0]] * 3)  # reset between


def test_both_forms_of_an_average_compute_the_same(tmp_path: Path) -> None:
    ports = compiled(TIED[0])
    assert (len(ports.plan.inputs), len(ports.plan.outputs), len(ports.plan.states)) == (1, 1, 1)
    given, wanted = reference(KEPT[0], 6)
    ports.write(tmp_path / "ports")
    assert_equal(run_batch(tmp_path / "ports", given, keep_state=True, options=QUICK).outputs, wanted)


def test_pairs_that_are_none_are_refused_together() -> None:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(OWN / "average-ports.tflite", state=["nothing=output_0", "average=nowhere"])
    messages = [diagnostic.message for diagnostic in caught.value.diagnostics]
    assert "the model has no input 'nothing'" in messages[0]
    assert "the model has no output 'nowhere'" in messages[1]


def test_a_batch_of_streams_is_refused() -> None:
    with pytest.raises(CompileError, match="of one stream"):
        bytewright.compile(OWN / "average.tflite", batch_max=4)


def test_a_program_keeps_its_own(tmp_path: Path) -> None:
    text = tmp_path / "m.bw"
    text.write_text(
        "module m\n\nentry main(x : buffer<4xi8> r activation, y : buffer<4xi8> w activation) on cpu {\n"
        "  call_extern m_copy(&x, &y)\n}\n".replace(
            "entry",
            "kernel m_copy(x : buffer<4xi8> r activation, y : buffer<4xi8> w activation) on cpu {\n"
            "  for i : i32 in 0 .. 4 {\n    y[i] = x[i]\n  }\n}\n\nentry",
        )
    )
    with pytest.raises(CompileError, match="is for graphs"):
        bytewright.compile(text, state="x=y")


def without(path: Path, folder: Path, *kinds: str) -> Path:
    """The file without the operators of some kinds in its first subgraph."""
    model: Any = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes()))
    numbers = {getattr(schema.BuiltinOperator, kind) for kind in kinds}
    graph, codes = model.subgraphs[0], [code.builtinCode for code in model.operatorCodes]
    graph.operators = [operator for operator in graph.operators if codes[operator.opcodeIndex] not in numbers]
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    changed = folder / path.name
    changed.write_bytes(builder.Output())
    return changed


def test_a_variable_that_nothing_assigns_is_refused(tmp_path: Path) -> None:
    path = without(OWN / "average.tflite", tmp_path, "ASSIGN_VARIABLE", "CALL_ONCE")
    with pytest.raises(CompileError) as caught:
        bytewright.compile(path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW107"
    assert diagnostic.message == "the model reads variables that nothing assigns"
    assert diagnostic.help is not None
    assert diagnostic.help.startswith("the values are not in the file: convert from_saved_model")


def test_a_variable_that_is_assigned_once_is_a_constant(tmp_path: Path) -> None:
    path = without(OWN / "average.tflite", tmp_path, "ASSIGN_VARIABLE")
    model = bytewright.compile(path)
    assert model.plan.states == ()
    model.write(tmp_path / "bundle")
    given, wanted = reference(Stream(path), 3)
    assert_equal(run_batch(tmp_path / "bundle", given, options=QUICK).outputs, wanted)


def test_a_variable_that_is_assigned_and_has_no_first_value_is_refused(tmp_path: Path) -> None:
    path = without(OWN / "average.tflite", tmp_path, "CALL_ONCE")
    with pytest.raises(CompileError, match="is read before anything is assigned"):
        bytewright.compile(path)
