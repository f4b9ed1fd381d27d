"""Which frontend reads which model file: the one visible table.

A frontend is its folder and its row here. Rows are read by the pipeline and the command line; what a row names is
imported when it is used, so that nobody pays for the formats of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from bytewright import ir
from bytewright.base.c_names import model_name
from bytewright.diagnostics import CompileError, compile_error
from bytewright.ir.verify.stages import Stage
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import DECLARATIONS, Optimize, Options, Weights
from bytewright.options.names_of_file import named_as_in_c
from bytewright.target.model import Target

if TYPE_CHECKING:
    from bytewright.frontends.tflite.model import ModelRecord


@dataclass(frozen=True, slots=True)
class OtherSizes:
    """What one graph of a file is for other sizes.

    Attributes:
        samples: The graph as the file has it for other extents of axes that are to be open, or that the data decides,
            with these; none where it cannot be resized.
        counted: Extents that the data decides; what they are in each of the graphs, which has them at their largest, is
            among those by their names.
    """

    samples: tuple[tuple[Mapping[str, int], ir.Module], ...] = ()
    counted: tuple[ir.Counted, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file describes, and how far it is compiled already.

    Attributes:
        modules: A graph for each entry; of a program the one with all of its entries.
        stage: IMPORTED for a graph, LOWERED for kernels and an entry.
        pass_name: What the import is called among the passes.
        files: What it was read from.
        others: What each of them is for other sizes; none where nothing is of another.
        options: What was asked for, with names of C in place of the file's; None where that is what was given.
    """

    modules: tuple[ir.Module, ...]
    stage: Stage
    pass_name: str
    files: tuple[Path, ...]
    others: tuple[OtherSizes, ...] = ()
    options: Options | None = None

    @property
    def module(self) -> ir.Module:
        """Of a file of which one function is compiled."""
        (module,) = self.modules
        return module


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A signature of a file, as libraries that run the format know it.

    Attributes:
        subgraph: The number of the one that it is of.
        inputs, outputs: Its names of them, in the file's order.
    """

    key: str
    subgraph: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SupportedOperator:
    """One line of the table that `bytewright ops` prints.

    Attributes:
        name: The format's own.
        types: Element types of its activations.
        limits: What is not supported, or asked for, in words.
    """

    name: str
    types: tuple[str, ...]
    limits: str


@dataclass(frozen=True, slots=True)
class ComparedOperator:
    """An operator of another library beside Bytewright's.

    Attributes:
        types: Element types of data that the library runs it on.
        own_types: Those that Bytewright compiles, exact to the library.
        missing_types: Of the library's, those that Bytewright does not compile.
        wrong_types: Of the library's, those on which its results are wrong.
        is_compiled: Whether Bytewright compiles it for any type.
        is_folded: Whether it is computed where only shapes and constants come to it.
    """

    name: str
    types: tuple[str, ...]
    own_types: tuple[str, ...]
    missing_types: tuple[str, ...]
    wrong_types: tuple[str, ...]
    is_compiled: bool
    is_folded: bool


@dataclass(frozen=True, slots=True)
class Library:
    """Another library that runs models of a format, and its operators.

    Attributes:
        source: Where the list is from.
        date: When it was taken, as YYYY-MM-DD.
    """

    title: str
    source: str
    date: str
    operators: tuple[ComparedOperator, ...]


@dataclass(frozen=True, slots=True)
class Frontend:
    """One format of model files.

    Attributes:
        read: Takes the file, the target and what the user asked for.
        refused: The options that it does not take, each with the reason: what the file is.
        operators: The operators of the format that can be compiled.
        folded: Names of those that are computed where only shapes and constants come to them.
        libraries: Other libraries that run the format, by the name that `bytewright ops --against` takes.
    """

    read: Callable[[Path, Target, Options], Imported]
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    operators: Callable[[], tuple[SupportedOperator, ...]] = tuple
    folded: Callable[[], tuple[str, ...]] = tuple
    libraries: Mapping[str, Callable[[], Library]] = field(default_factory=dict[str, Callable[[], Library]])


def _read_text(path: Path, target: Target, options: Options) -> Imported:
    from bytewright.frontends.text import import_text

    constants = options.constants
    if constants is not None and not constants.exists():
        raise compile_error("BW204", f"there is no file '{constants}' with constants")
    return import_text(path, target, name=options.name, constants=constants)


def _read_tflite(path: Path, target: Target, options: Options) -> Imported:
    from bytewright.frontends.tflite.bounds import Bounds
    from bytewright.frontends.tflite.counted import read_counted
    from bytewright.frontends.tflite.importer import import_record
    from bytewright.frontends.tflite.input_shapes import with_input_shapes
    from bytewright.frontends.tflite.names import entry_names, names_in_file
    from bytewright.frontends.tflite.open_extents import read_samples
    from bytewright.frontends.tflite.reader import read_models
    from bytewright.frontends.tflite.vela import content_for

    # What an NPU computes equals tflm, so that is what is meant unless another is asked for.
    wanted = options.numerics in {None, Numerics.TFLM}
    content, has_streams, names = content_for(path, target, wanted=wanted, signatures=options.signature)
    numerics = options.numerics or (Numerics.TFLM if has_streams else Numerics.LITERT_REF)
    models = read_models(content, path.name, () if has_streams else options.signature)
    options = named_as_in_c(
        options,
        names_in_file(port for each in names for port in each.inputs),
        names_in_file(port for each in names for port in each.outputs),
    )
    models = with_input_shapes(models, names, options.input_shapes, options.open)
    noted: list[tuple[str, ...]] = []
    entries = entry_names(models)
    bounds = tuple(
        Bounds(
            {each.pattern: each.most for each in options.bounds},
            noted,
            prefix=f"{entry.rstrip('_')}_" if len(models) > 1 else "",
        )
        for entry in entries
    )
    if len(models) > 1:
        _require_one_graph(path, options)

    def read(model: ModelRecord, number: int = 0, *, is_opened: bool = bool(options.open)) -> ir.Module:
        return import_record(
            model,
            path.name,
            name=options.name,
            numerics=numerics,
            batch_max=options.batch_max,
            names=names[number],
            expands_weights=options.weights is Weights.EXPAND,
            bounds=bounds[number],
            keeps_weights=options.optimize is Optimize.SIZE and options.weights is not Weights.EXPAND,
            is_opened=is_opened,
            recomputed=_recomputed(target, options.optimize),
            entry=entries[number],
        )

    def graph(number: int, model: ModelRecord) -> tuple[ir.Module, OtherSizes]:
        """One graph, with all extents at their largest, and what it is for others."""
        own, samples = bounds[number], tuple[tuple[Mapping[str, int], ir.Module], ...]()
        try:
            if options.open:
                samples = read_samples(model, path.name, options.open, read)
            else:
                module = read(model, number)
                if not own.counted:
                    return module, OtherSizes()
        except CompileError:  # shapes that follow a size are not those of the file
            if not own.counted:
                raise
        if own.counted:
            if options.open and not samples:
                samples = read_samples(model, path.name, options.open, read)
            opened = partial(read, number=number, is_opened=True)
            samples = read_counted(model, options.open, samples, own, opened)
        return samples[0][1], OtherSizes(samples[1:], tuple(own.counted.values()))

    graphs = tuple(graph(number, model) for number, model in enumerate(models))
    bounds[0].require_matches(path.name)
    others = tuple(each for _, each in graphs)
    return Imported(
        tuple(module for module, _ in graphs), Stage.IMPORTED, "import_tflite", (path,), others, options
    )


def _recomputed(target: Target, optimize: Optimize) -> float:
    """What is computed again in every run so that less is kept between two, over what is computed anyway."""
    if optimize is Optimize.BALANCED:
        return target.default_device.isa.style.recomputed
    return inf if optimize is Optimize.SIZE else 0.0


def _require_one_graph(path: Path, options: Options) -> None:
    """Refuses options that are of one graph where several signatures are compiled.

    Raises:
        CompileError: BW204.
    """
    for declaration in DECLARATIONS:
        if declaration.name in _OF_ONE_GRAPH and getattr(options, declaration.name) not in (None, ()):
            message = (
                f"{declaration.flag} is of one graph, and several signatures of '{path.name}' are compiled"
            )
            raise compile_error(
                "BW204", message, help=f"leave out {declaration.flag}, or compile one signature"
            )


def _tflite_operators() -> tuple[SupportedOperator, ...]:
    from bytewright.frontends.tflite.table import SUPPORTED

    return SUPPORTED


def _tflite_folded() -> tuple[str, ...]:
    from bytewright.frontends.tflite.shape_arithmetic import FOLDED

    return tuple(FOLDED)


def _tflm() -> Library:
    from bytewright.frontends.tflite.against import tflm

    return tflm()


# Options that name parts of one graph, or make its extents open, which a program of several entries has none of.
_OF_ONE_GRAPH = frozenset({"kernels", "kernel_file", "on", "state", "stream", "open", "batch_max"})
_TEXT = Frontend(
    _read_text,
    {
        "numerics": "is IR text, whose arithmetic is written out: no reference can be chosen for it",
        "signature": "is IR text ('.bw'), which has entries, all of which are compiled, and no signatures",
        "weights": "is IR text ('.bw'), whose weights are of the types that it says",
        "input_shapes": "is IR text ('.bw'), whose inputs have the shapes that it says",
        "bounds": "is IR text ('.bw'), whose loops say how many turns they take",
    },
)
_TFLITE = Frontend(
    _read_tflite,
    {"constants": "is no IR text ('.bw'), and has its constants in itself"},
    _tflite_operators,
    _tflite_folded,
    {"tflm": _tflm},
)
FRONTENDS: dict[str, Frontend] = {".tflite": _TFLITE, ".bw": _TEXT}
"""By suffix. A file with another suffix is taken for TFLite, which has a mark in its bytes."""


LIBRARIES = {name: load for frontend in FRONTENDS.values() for name, load in frontend.libraries.items()}
"""Other libraries by name."""


def entries_of(content: bytes, file_name: str, signatures: tuple[str, ...]) -> tuple[FileEntry, ...]:
    """The signatures of a TFLite file whose names match, in the file's order."""
    from bytewright.frontends.tflite.reader import read_models

    found: list[FileEntry] = []
    for model in read_models(content, file_name, signatures):
        if model.signature is not None:
            inputs, outputs = dict(model.signature.inputs), dict(model.signature.outputs)
            names = tuple(inputs.get(index, "") for index in model.inputs)
            others = tuple(outputs.get(index, "") for index in model.outputs)
            found.append(FileEntry(model.signature.key, model.signature.subgraph, names, others))
    return tuple(found)


def import_model(path: Path, target: Target, options: Options) -> Imported:
    """What a model file describes.

    Raises:
        CompileError: BW101 to BW115, of the frontend; BW204, the name is none, or an option is not for this format.
    """
    if options.name is not None and options.name != model_name(options.name):
        message = (
            f"a model cannot be called '{options.name}': files, names and macros in C are called after it"
        )
        raise compile_error("BW204", message, help=f"--name {model_name(options.name)}")
    frontend = FRONTENDS.get(path.suffix, _TFLITE)
    for name, reason in frontend.refused.items():
        if getattr(options, name) not in (None, ()):
            flag = next(each.flag for each in DECLARATIONS if each.name == name)
            raise compile_error("BW204", f"'{path}' {reason}", help=f"leave out {flag}")
    imported = frontend.read(path, target, options)
    if imported.stage is Stage.OPEN and options.batch_max is not None:
        message = f"'{path}' is lowered already, so its batch cannot be opened"
        extent = f"batch[1..{options.batch_max}]"
        help_text = f"leave out --batch-max, and give the tensors of the text an extent such as {extent}"
        raise compile_error("BW111", message, help=help_text)
    return imported
