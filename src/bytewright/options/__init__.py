"""What the user may ask of a compile: one value, from the command line or from Python, that stages read.

Each option is declared on its field, and nowhere else; those that change the target, in `target/options.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Annotated, TypedDict

from bytewright import ir
from bytewright.base.option import (
    Choice,
    Count,
    Declaration,
    File,
    Option,
    Text,
    Texts,
    chosen,
    declarations,
    words,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options.forms import (
    InputShape,
    KernelBinding,
    On,
    OpenAxis,
    Pin,
    RunBound,
    StatePair,
    StreamAxis,
    parse_bound_option,
    parse_input_shape_option,
    parse_kernel_option,
    parse_on_option,
    parse_open_option,
    parse_pin_option,
    parse_state_option,
    parse_stream_option,
)
from bytewright.target.options import Overrides

# Larger parameter pools are not written as numbers unless asked for: compilers take a hundred bytes for each of them.
MAX_TEXT_BYTES = 1 << 20


class Rows(Enum):
    """Where kernels run together row by row, so that the tensors between them are never whole.

    AUTO: Where it lowers the peak of what is alive.
    OFF: Nowhere.
    MAX: Wherever it saves memory.
    """

    AUTO = "auto"
    OFF = "off"
    MAX = "max"


class Optimize(Enum):
    """What kernels trade for each other, where they can.

    BALANCED: Packed weights of the model's own size.
    SPEED: Also what needs fewer instructions for more flash.
    SIZE: Weights and code as small as they can be.
    """

    BALANCED = "balanced"
    SPEED = "speed"
    SIZE = "size"


class KernelCode(Enum):
    """What stands in the C of kernels.

    AUTO: Instructions of the core, also as statements of assembler.
    INTRINSICS: Of them, those that compilers have functions for.
    PORTABLE: C99 alone.
    """

    AUTO = "auto"
    INTRINSICS = "intrinsics"
    PORTABLE = "portable"


class Weights(Enum):
    """What becomes of integer weights under float activations.

    STORED: They stay as the file has them, and layers are computed as the reference's hybrid kernels do it.
    EXPAND: They are widened to float32, and layers are computed in float32.
    """

    STORED = "stored"
    EXPAND = "expand"


class Package(Enum):
    """What the bundle is besides a CMake library: files for another build system stand beside it."""

    CMAKE = "cmake"
    MAKEFILE = "makefile"
    ZEPHYR = "zephyr"
    CMSIS_PACK = "cmsis-pack"
    ESP_IDF = "esp-idf"
    ARDUINO = "arduino"
    PLATFORMIO = "platformio"


class Embedding(Enum):
    """How the bytes of a parameter pool come into the program.

    As C numbers, which every compiler takes, or with the assembler's `.incbin`, which costs nothing.
    """

    AUTO = "auto"
    NUMBERS = "numbers"
    INCBIN = "incbin"

    def as_numbers(self, size_bytes: int) -> bool:
        """Whether a pool of a size becomes numbers; an empty one always does."""
        return self is Embedding.NUMBERS or size_bytes <= (MAX_TEXT_BYTES if self is Embedding.AUTO else 0)


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for.

    Attributes:
        overrides: The options that change the target.
    """

    overrides: Overrides = field(default_factory=Overrides)
    name: Annotated[
        str | None, Option(Text("NAME"), "C identifier of the model; else from the file's name.")
    ] = None
    pins: Annotated[
        tuple[Pin, ...],
        Option(
            Texts(parse_pin_option, "PATTERN=POOL[,POOL...|+OFFSET]"),
            "Put every buffer whose name matches into a pool: the first of several, or at an offset.",
            flag="--pin",
        ),
    ] = ()
    kernels: Annotated[
        tuple[KernelBinding, ...],
        Option(
            Texts(parse_kernel_option, "PATTERN=SYMBOL"),
            "Have every operator whose name or kind matches computed by a C function of the application.",
            flag="--kernel",
        ),
    ] = ()
    kernel_file: Annotated[
        Path | None, Option(File("FILE.toml"), "What the functions of --kernel are given.")
    ] = None
    on: Annotated[
        tuple[On, ...],
        Option(
            Texts(parse_on_option, "PATTERN=DEVICE[.POOL]"),
            "Run every operator whose name or kind matches on a device, with its results in a pool.",
        ),
    ] = ()
    io: Annotated[
        ir.Io,
        Option(
            Choice(ir.Io),
            "Where inputs and outputs are: the application brings them, or asks where they lie.",
        ),
    ] = ir.Io.CALLER
    rows: Annotated[
        Rows,
        Option(
            Choice(Rows),
            "Where layers run together row by row, so that the tensors between them are never whole: where it lowers "
            "the peak, nowhere, or wherever it saves memory.",
        ),
    ] = Rows.AUTO
    optimize: Annotated[
        Optimize,
        Option(
            Choice(Optimize),
            "What kernels trade for each other where they can: flash for speed, speed for flash, or neither.",
        ),
    ] = Optimize.BALANCED
    kernel_code: Annotated[
        KernelCode,
        Option(
            Choice(KernelCode),
            "What stands in the C of kernels: instructions of the core, also in assembler; only those that compilers "
            "have functions for; or plain C.",
            flag="--kernels",
        ),
    ] = KernelCode.AUTO
    signature: Annotated[
        tuple[str, ...],
        Option(
            Texts(str, "PATTERN"),
            "The signature to compile, where the file has several; of more than one that matches, each is an entry.",
        ),
    ] = ()
    state: Annotated[
        tuple[StatePair, ...],
        Option(
            Texts(parse_state_option, "INPUT=OUTPUT"),
            "Keep what an output gives, and give it to an input with the next run: the model has neither then. Their "
            "names, here and in other options, are those of the C, of the file's tensors or of its signature.",
        ),
    ] = ()
    stream: Annotated[
        tuple[StreamAxis, ...],
        Option(
            Texts(parse_stream_option, "[INPUT:]AXIS"),
            "Let each run take the frames along an axis that are new, and keep what it needs of those before.",
        ),
    ] = ()
    open: Annotated[
        tuple[OpenAxis, ...],
        Option(
            Texts(parse_open_option, "[INPUT:]AXIS=NAME:LO..HI"),
            "Let each run be given how many rows there are along an axis, of which each is computed by itself.",
        ),
    ] = ()
    bounds: Annotated[
        tuple[RunBound, ...],
        Option(
            Texts(parse_bound_option, "PATTERN=N"),
            "Let every loop whose name or kind matches take as many turns as its condition says, and every operator "
            "have as large a result as the data asks for, and N at most; also by a tensor that it makes in the file.",
            flag="--bound",
        ),
    ] = ()
    batch_max: Annotated[
        int | None, Option(Count(), "Let each run compute 1 to N samples; the plan is made for N.")
    ] = None
    input_shapes: Annotated[
        tuple[InputShape, ...],
        Option(
            Texts(parse_input_shape_option, "[INPUT=]1x224x224x3"),
            "Fix the extents of an input that the file leaves open, as an image network of any size does; one that is "
            "written '?' stays as it is there.",
            flag="--input-shape",
        ),
    ] = ()
    numerics: Annotated[
        Numerics | None,
        Option(Choice(Numerics), "The reference that the output equals bit for bit.  [default: litert-ref]"),
    ] = None
    weights: Annotated[
        Weights | None,
        Option(
            Choice(Weights),
            "What becomes of integer weights under float activations: they stay as they are stored, or are widened to "
            "float32, in which their layers are computed then.  [default: stored]",
        ),
    ] = None
    constants: Annotated[
        Path | None, Option(File("FILE.npz"), "The constants of a .bw text; else the file beside it.")
    ] = None
    solver: Annotated[str, Option(Text("NAME"), "The planner's algorithm.")] = "auto"
    embed: Annotated[
        Embedding,
        Option(
            Choice(Embedding),
            "How the bytes of parameter pools come into the program: as C numbers, or by the assembler's .incbin, "
            "which auto takes beyond 1 MiB.",
            is_of_c=True,
        ),
    ] = Embedding.AUTO
    package: Annotated[
        Package | None,
        Option(
            Choice(Package),
            "Add the files of a build system, and a README of this bundle.",
            is_of_c=True,
        ),
    ] = None
    self_test: Annotated[
        int | None,
        Option(
            Count(),
            "Add a function that runs N stored inputs and compares what comes out; made by running them here.",
            is_of_c=True,
        ),
    ] = None
    calling_form: Annotated[
        ir.Form,
        Option(
            Choice(ir.Form),
            "How the run calls kernels: with C arguments, or through packed forms that are generated beside them.",
        ),
    ] = ir.Form.PLAIN
    entry_form: Annotated[
        ir.Form,
        Option(
            Choice(ir.Form),
            "How the run itself is called: with C arguments, or also through a packed form, for a runtime's registry.",
        ),
    ] = ir.Form.PLAIN

    @property
    def embedding(self) -> Embedding:
        """How parameters come into the program, as far as kernels and package leave a choice."""
        if self.embed is Embedding.AUTO and self.kernel_code is not KernelCode.AUTO:
            return Embedding.NUMBERS  # the other way is assembler
        if self.embed is Embedding.AUTO and self.package is Package.ARDUINO:
            return Embedding.NUMBERS  # which knows no folder to include from
        return self.embed


NOTHING_ASKED = Options()


def options_text(options: Options) -> tuple[str, ...]:
    """The options as they are written, one each, those that are not as by default; of a path the file's name."""
    return (*words(options.overrides), *words(options))


def options_of_text(texts: Iterable[str], folder: Path) -> Options:
    """The options that were written as `options_text` does, without those that change the target.

    Args:
        texts: One option each.
        folder: Where the files are that options name.

    Raises:
        ValueError: A text is no option.
    """
    several: dict[str, list[str]] = {}
    for text in texts:
        flag, _, value = text.partition(" ")
        several.setdefault(flag, []).append(value)
    values: dict[str, object] = {}
    for declaration in declarations(Options):
        given = several.get(declaration.flag)
        if given is None:
            continue
        match declaration.option.kind:
            case Texts():
                values[declaration.name] = declaration.read(given)
            case Count():
                values[declaration.name] = declaration.read(int(given[-1]))
            case File():
                values[declaration.name] = folder / given[-1]
            case _:
                values[declaration.name] = declaration.read(given[-1])
    return options_of(values)


class Arguments(TypedDict, total=False):
    """The same as arguments of `bytewright.compile`, in the forms that these may have."""

    name: str | None
    workspace: str | Iterable[str]
    parameters: str | Iterable[str]
    resize: str | Iterable[str]
    provider: str | Iterable[str]
    pins: str | Iterable[str]
    kernels: str | Iterable[str]
    kernel_file: str | PathLike[str] | None
    on: str | Iterable[str]
    io: str
    rows: str
    optimize: str
    kernel_code: str
    signature: str | Iterable[str]
    state: str | Iterable[str]
    stream: str | Iterable[str]
    input_shapes: str | Iterable[str]
    open: str | Iterable[str]
    bounds: str | Iterable[str]
    batch_max: int | None
    constants: str | PathLike[str] | None
    numerics: str | None
    weights: str | None
    embed: str
    package: str | None
    self_test: int | None
    calling_form: str
    entry_form: str
    solver: str
    max_stack_size: int | str | None
    max_stack_alloca_size: int | str | None
    use_backend_alloc_workspace: bool | None


# Every option of a compile, in the order of the command line's help.
DECLARATIONS: tuple[Declaration, ...] = (*declarations(Overrides), *declarations(Options))


def options_of(values: Mapping[str, object]) -> Options:
    """The options with these values, each under its name."""
    return replace(chosen(Options, values), overrides=chosen(Overrides, values))


def read_arguments(arguments: Mapping[str, object]) -> Options:
    """The options that arguments of Python mean.

    Raises:
        TypeError: There is no such option.
        ValueError: An argument is malformed.
    """
    known = {declaration.name: declaration for declaration in DECLARATIONS}
    for name in arguments:
        if name not in known:
            raise TypeError(f"bytewright.compile() got an unexpected keyword argument {name!r}")
    return options_of({name: known[name].read(given) for name, given in arguments.items()})
