"""The networks of the table in docs/benchmarks.md: their files, how they are run, and what the references say of them.

Files of tests/data/networks were written by `tools/benchmark_networks.py`; the others are written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.detection_models import CODE
from support.model_files import DATA, ModelFile
from support.recurrent_models import Writer, schema
from support.reference import LiteRt, TfLiteMicro
from support.spotter import STEP, classifier, front_end, joined, sound
from support.streamed_nets import keyword_net
from support.wake_word import wake_word_net
from tflite_writer import ModelBuilder

Array = NDArray[Any]
FOLDER = DATA / "networks"
NUM_RUNS, NUM_KEPT = 4, 10
_NAMES = {number: name.lower() for name, number in vars(schema.TensorType).items() if name.isupper()}


@dataclass(frozen=True)
class Network:
    """A row of the table.

    Attributes:
        title: What the row says.
        build: The file's bytes.
        numerics: Which reference it is held against.
        num_runs: How many in a row; states go on from run to run.
        draw: Inputs of a run by its number; those of a file if it says nothing.
        optimize: The option.
    """

    title: str
    form: str
    build: Callable[[], bytes]
    numerics: str = "litert-ref"
    num_runs: int = NUM_RUNS
    draw: Callable[[int], list[Array]] | None = None
    optimize: str = "balanced"

    @cached_property
    def content(self) -> bytes:
        """The file's bytes."""
        return self.build()

    @cached_property
    def _model(self) -> Any:
        return schema.ModelT.InitFromPackedBuf(self.content, 0)

    @cached_property
    def states(self) -> dict[str, tuple[int, int]]:
        """Numbers of input and output of each state, by its name: `x_in` and `x_out` of the signature."""
        (graph,) = self._model.subgraphs
        (signature,) = self._model.signatureDefs or [schema.SignatureDefT()]
        numbers = {
            each.name.decode(): list(ports).index(each.tensorIndex)
            for maps, ports in ((signature.inputs, graph.inputs), (signature.outputs, graph.outputs))
            for each in maps or ()
        }
        stems = [name.removesuffix("_in") for name in numbers if name.endswith("_in")]
        return {stem: (numbers[f"{stem}_in"], numbers[f"{stem}_out"]) for stem in stems}

    @property
    def options(self) -> dict[str, Any]:
        """Of `bytewright.compile`."""
        states = [f"{stem}_in={stem}_out" for stem in self.states]
        return {"numerics": self.numerics, "state": states, "optimize": self.optimize}

    @cached_property
    def given(self) -> list[list[Array]]:
        """The inputs of each run that are no state."""
        draw = self.draw or _FileInputs(self.content).inputs
        fed = {before for before, _ in self.states.values()}
        return [
            [array for index, array in enumerate(draw(2 + run)) if index not in fed]
            for run in range(self.num_runs)
        ]

    @property
    def wanted(self) -> list[list[Array]]:
        """The outputs of each run that are no state, by the reference; a state begins with zeros."""
        return [outputs for _, outputs in self._steps]

    @property
    def all_inputs(self) -> list[list[Array]]:
        """Those of each run, states among them."""
        return [inputs for inputs, _ in self._steps]

    @cached_property
    def _steps(self) -> list[tuple[list[Array], list[Array]]]:
        reference = TfLiteMicro(self.content) if self.numerics == "tflm" else LiteRt(self.content)
        return list(self._run(reference.run))

    def _run(self, run: Callable[..., list[Array]]) -> Iterator[tuple[list[Array], list[Array]]]:
        """All inputs of each run, as the last one's states go into the next, and the outputs that are no state."""
        (graph,) = self._model.subgraphs
        states = {
            before: _State(graph.tensors[graph.inputs[before]], graph.tensors[graph.outputs[after]], after)
            for before, after in self.states.values()
        }
        values = {before: state.first for before, state in states.items()}
        kept = {state.after for state in states.values()}
        for own in self.given:
            rest = iter(own)
            inputs = [values[index] if index in values else next(rest) for index in range(len(graph.inputs))]
            outputs = run(*inputs)
            values = {before: state.passed(outputs[state.after]) for before, state in states.items()}
            yield inputs, [array for index, array in enumerate(outputs) if index not in kept]


class _FileInputs(ModelFile):
    """The random inputs of a model that is no file."""

    def __init__(self, content: bytes) -> None:
        self.__dict__["content"] = content


@dataclass(frozen=True)
class _State:
    """A state between two runs: tensors of the input and the output, and the number of the latter."""

    source: Any
    result: Any
    after: int

    @property
    def first(self) -> Array:
        """Zeros: the zero point of what is quantised."""
        dtype = _NAMES[self.source.type]
        return np.full(self.source.shape, self._affine(self.source).get("zero_point", 0), dtype)

    def passed(self, value: Array) -> Array:
        """The output as the input has it, by QUANTIZE of LiteRT."""
        affines = [self._affine(tensor) for tensor in (self.result, self.source)]
        if affines[0] == affines[1]:
            return np.array(value)
        builder = ModelBuilder()
        tensors = [
            builder.tensor(f"t{n}", value.shape, str(value.dtype), **own) for n, own in enumerate(affines)
        ]
        builder.operator("QUANTIZE", tensors[:1], tensors[1:])
        return LiteRt(builder.build(tensors[:1], tensors[1:])).run(np.array(value))[0]

    @staticmethod
    def _affine(tensor: Any) -> dict[str, Any]:
        if tensor.quantization is None or tensor.quantization.scale is None:
            return {}
        return {
            "scale": float(tensor.quantization.scale[0]),
            "zero_point": int(tensor.quantization.zeroPoint[0]),
        }


def yolo_with_detection() -> bytes:
    """The YOLO of `tools/benchmark_networks.py`, its boxes and scores made real, and what chooses ten of them."""
    writer = Writer()
    writer.model = schema.ModelT.InitFromPackedBuf((FOLDER / "yolo-int8.tflite").read_bytes(), 0)
    (writer.graph,) = writer.model.subgraphs
    writer.model.signatureDefs = []
    graph, ports = writer.graph, list[int]()
    for index in sorted(
        graph.outputs, key=lambda index: graph.tensors[index].shape[-1]
    ):  # of boxes 4, of scores 5
        ports.append(writer.tensor(tuple(graph.tensors[index].shape), "float32"))
        writer.operator("DEQUANTIZE", [index], [ports[-1]], ("DequantizeOptions", {}))
    anchors = _anchors()
    assert len(anchors) == graph.tensors[ports[0]].shape[1]
    ports.append(writer.tensor(anchors.shape, "float32", values=anchors))
    shapes = ((1, NUM_KEPT, 4), (1, NUM_KEPT), (1, NUM_KEPT), (1,))
    results = [writer.tensor(shape, "float32") for shape in shapes]
    writer.custom(
        CODE, ports, results, max_detections=NUM_KEPT, max_classes_per_detection=1, use_regular_nms=False,
        nms_score_threshold=0.3, nms_iou_threshold=0.5, num_classes=4, y_scale=10.0, x_scale=10.0, h_scale=5.0,
        w_scale=5.0,
    )  # fmt: skip
    return writer.build(list(graph.inputs), results)


def _anchors() -> Array:
    """Centre, height and width of three boxes at each cell of both scales."""
    found = [
        ((row + 0.5) / cells, (column + 0.5) / cells, height * size, width * size)
        for cells, size in ((6, 0.3), (3, 0.6))
        for row in range(cells)
        for column in range(cells)
        for height, width in ((1.0, 1.0), (1.0, 0.5), (0.5, 1.0))
    ]
    return np.array(found, np.float32)


def _written(name: str) -> Callable[[], bytes]:
    return (FOLDER / f"{name}.tflite").read_bytes


def _spoken(run: int) -> list[Array]:
    samples = sound(1.4, 1)
    return [samples[run * STEP : (run + 1) * STEP][None]]


def _frames(run: int) -> list[Array]:
    """Features that rise and fall over time, each band with its own loudness."""
    random = np.random.default_rng(run)
    bands, slow = random.normal(0, 60, 10), random.normal(0, 30, 98).cumsum()
    values = bands + slow[:, None] / 4 + random.normal(0, 20, (98, 10))
    return [np.clip(np.rint(values), -128, 127).astype(np.int8)[None, :, :, None]]


def _rows() -> Iterator[Network]:
    titles = {
        "mobilenet_v3": "MobileNetV3-Small 0.35, 96x96",
        "efficientnet_lite": "EfficientNet-Lite0 0.25, 96x96",
        "unet": "U-Net, 64x64",
        "dtln_first": "DTLN, first half",
        "dtln_second": "DTLN, second half",
        "keyword_transformer": "keyword transformer, 98x40",
        "gru_denoiser": "GRU denoiser (RNNoise)",
        "tcn": "TCN, 98x40",
    }
    for name, title in titles.items():
        for path in sorted(
            FOLDER.glob(f"{name}-*.tflite"),
            key=lambda path: "int8 int16 float32".index(path.stem.split("-")[1]),
        ):
            runs = 12 if name.startswith(("dtln", "gru")) else NUM_RUNS
            yield Network(title, path.stem.split("-")[1], _written(path.stem), num_runs=runs)
    yield Network("YOLO, 96x96, and its detections", "int8", yolo_with_detection, "tflm")
    yield Network("DS-CNN, 98 frames of 10", "int8", lambda: keyword_net(98), draw=_frames)
    yield Network(
        "micro_speech with its front end",
        "int8",
        lambda: joined(front_end(), classifier()),
        "tflm",
        60,
        _spoken,
    )
    wake_word = "wake word of four SVDF, 40 features"
    yield Network(wake_word, "int8", wake_word_net, num_runs=30)
    yield Network(f"{wake_word}, `--optimize size`", "int8", wake_word_net, num_runs=30, optimize="size")


NETWORKS = {f"{network.title}, {network.form}": network for network in _rows()}
