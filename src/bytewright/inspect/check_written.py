"""Whether files say, word for word, what follows from the plan: they are written again from it alone, and compared.

What a plan does not say, its steps, is in the functions of the entry that have them; of these the heads and the checks
of arguments follow from the plan, and the rest is read (`read_entry`). Comments, but for the shapes of inputs and
outputs, and layout are not compared. The writer is the compiler's own: what is found is what was changed since, and
not what it does wrong.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bytewright.bundle.write import R9, build_files
from bytewright.codegen.entry import PartsOfGraph
from bytewright.codegen.form import StepFunctions
from bytewright.codegen.forms import form_of
from bytewright.codegen.generate import paths_of_graph, texts_of_plan
from bytewright.codegen.header import HeaderOfGraph
from bytewright.codegen.kernels import write_scalar_function
from bytewright.codegen.packed import write_packed_entries
from bytewright.codegen.parameters import embedded_paths
from bytewright.codegen.writer import Writer
from bytewright.inspect.c_nodes import spell
from bytewright.inspect.c_source import CSource, Item, words_of
from bytewright.ir.scalar_functions import MATH_FUNCTIONS
from bytewright.naming.operator_functions import FUNCTIONS
from bytewright.options import Options, options_of_text
from bytewright.record.names import Names, by_entry
from bytewright.record.plan import Plan

_SHOWN_WORDS = 8
_SHAPE = re.compile(r"/\* \w+\[[^]]*\]")


def options_of_plan(plan: Plan) -> Options | None:
    """What the user asked for, as the plan has it; None if it says what is no option."""
    try:
        return options_of_text(plan.options, Path())
    except ValueError:
        return None


def differences_of_texts(
    plan: Plan, names: Names, files: Mapping[str, bytes], contents: Mapping[str, bytes]
) -> Iterator[str]:
    """Where the files say something else, one sentence each: of each file the first place.

    Args:
        plan: That verifies.
        names: Of the plan.
        files: All files of the bundle, by path.
        contents: The bytes of the parameter pools, by name.
    """
    options = options_of_plan(plan)
    if options is None:
        yield "plan.json has options that are none"
        return
    sources = {
        path: CSource(_text(files, path), path) for path in files if path.endswith((".c", ".h", ".ld"))
    }
    entry = sources.get(names.entry_source, CSource(""))
    parts, header = _PartsOfSource(entry), HeaderOfGraph(driven=_driven(plan, names, sources))
    texts = texts_of_plan(plan, names, contents, options.embedding, parts, header)
    paths = {*texts, *paths_of_graph(plan, names), *embedded_paths(plan, names, options.embedding)}
    if options.self_test is not None:
        paths |= {names.self_test_header, names.self_test_source}
    called = {word for source in sources.values() for word, _ in source.tokens}
    uses_math = not called.isdisjoint(function.name for function in MATH_FUNCTIONS)
    yield from _differences_of_build(plan, names, options, paths, files, uses_math=uses_math)
    for path in (names.kernels_source, *map(names.device_source, plan.devices.values())):
        if path in sources:
            yield from _differences_of_operators(path, sources[path])
    if names.kernels_header in sources and names.kernels_source in sources:
        yield from _differences_of_prototypes(sources[names.kernels_header], sources[names.kernels_source])
    if names.packed_source in sources:
        yield from _differences_of_packed_entries(plan, names, sources[names.packed_source])
    for path, text in texts.items():
        if path not in sources:
            continue  # which is said already
        expected, actual = CSource(text), sources[path].items
        if path == names.entry_source:
            frames = _frames(plan, names)
            yield from _differences_of_steps(frames, sources[path])
            actual = [item for item in actual if item.function not in frames]
        if path == names.header:
            yield from _differences_of_shapes(path, sources[path], expected)
        yield from _first_difference(path, _tokens(actual), _words(expected.items))


def _differences_of_shapes(path: str, source: CSource, expected: CSource) -> Iterator[str]:
    """What comments say of the elements of inputs and outputs, by which applications read them."""
    stated, planned = (Counter(filter(_SHAPE.match, each.comments)) for each in (source, expected))
    yield from (f"{path} has {text}, and the plan has not" for text in stated - planned)
    yield from (f"{path} does not have {text}, as the plan has it" for text in planned - stated)


def _frames(plan: Plan, names: Names) -> dict[str, tuple[Writer, Writer]]:
    """The functions of the entry's file that have the steps, in their order: how each begins, and ends."""
    found: dict[str, tuple[Writer, Writer]] = {}
    for view in by_entry(plan, names):
        found |= form_of(view[0]).frames(*view)
    return found


@dataclass(frozen=True, slots=True)
class _PartsOfSource(PartsOfGraph):
    """What does not follow from the plan, as a file has it; the functions with the steps are left out."""

    source: CSource

    @property
    def needs_math(self) -> bool:
        """Whether the file includes <math.h>: it may, also where it need not."""
        return any(words_of(line.text) == words_of("include <math.h>") for line in self.source.directives)

    def described(self, buffer: str) -> str:
        """Nothing: comments are not compared."""
        del buffer
        return ""

    def write_operators(self, writer: Writer) -> None:
        """Those functions that are there, as they are."""
        there = {item.function for item in self.source.items}
        for function in FUNCTIONS.values():
            if function.result is not None and function.name in there:
                write_scalar_function(writer, function, function.result)

    def step_functions(self, entry: int) -> StepFunctions:
        """Functions of which nothing is written."""
        del entry
        return _NoSteps()


class _NoSteps:
    """Functions that are compared apart."""

    def write_first(self, writer: Writer) -> None:
        """Nothing."""

    def write_last(self, writer: Writer) -> None:
        """Nothing."""


def _driven(plan: Plan, names: Names, sources: Mapping[str, CSource]) -> tuple[str, ...]:
    """The devices of whose contexts any file but the header knows."""
    words = {word for path, source in sources.items() if path != names.header for word, _ in source.tokens}
    return tuple(sorted(device for device in plan.devices if names.device_context_type(device) in words))


def _differences_of_build(
    plan: Plan,
    names: Names,
    options: Options,
    paths: Collection[str],
    files: Mapping[str, bytes],
    *,
    uses_math: bool,
) -> Iterator[str]:
    """The files are those of C, at their `paths`, and what builds them, which is as it is written.

    That the library of <math.h> is linked where the C names none of its functions is no matter.
    """
    takes_r9 = R9 in files.get(names.kernels_source, b"")
    c_files = {path: files.get(path, b"") for path in paths}
    least, with_math = (
        build_files(plan, c_files, options.package, takes_r9=takes_r9, uses_math=links)
        for links in (uses_math, True)
    )
    known = {*paths, *with_math}
    yield from (
        f"{path} is a file that bundles of this plan have not" for path in sorted(files.keys() - known)
    )
    yield from (f"{path} is not there" for path in sorted(known - files.keys()))
    for path in sorted(with_math.keys() & files.keys()):
        if files[path] not in (least[path], with_math[path]):
            lines, expected = (
                each[path].decode("utf-8", "replace").splitlines() for each in (files, with_math)
            )
            pairs = enumerate(zip(lines, expected, strict=False))
            number = next((number for number, (line, other) in pairs if line != other), len(lines))
            yield f"{path}:{number + 1} is not as the plan asks for"


def _differences_of_prototypes(header: CSource, source: CSource) -> Iterator[str]:
    """A header declares what its source defines for others, each once, in order; includes are looked at apart."""
    declared = [item for item in header.items if item.words[:1] != ["#"]]
    heads = [item.words[: item.words.index("{")] for item in source.items if item.function]
    expected = [word for head in heads if "static" not in head for word in (*head, ";")]
    yield from _first_difference(header.path, _tokens(declared), expected)


def _differences_of_operators(path: str, source: CSource) -> Iterator[str]:
    """Functions of scalars, which expressions call, that are otherwise than the one of that name."""
    for item in source.items:
        function = FUNCTIONS.get(item.function)
        if function is None or function.result is None:
            continue
        writer = Writer()
        write_scalar_function(writer, function, function.result)
        actual, expected = (text.function(item.function) for text in (source, CSource(writer.text())))
        if actual is None or expected is None or spell(actual) != spell(expected):
            yield f"{path}:{item.tokens[0][1]} has another '{function.name}' than the one that is generated"


def _differences_of_packed_entries(plan: Plan, names: Names, source: CSource) -> Iterator[str]:
    """The packed forms of the entries, which are there if the plan says so."""
    writer, forms = Writer(), {own.run_packed for _, own in by_entry(plan, names)}
    write_packed_entries(writer, plan, names)
    actual = [item for item in source.items if item.function in forms]
    yield from _first_difference(source.path, _tokens(actual), _words(CSource(writer.text()).items))


def _differences_of_steps(frames: Mapping[str, tuple[Writer, Writer]], source: CSource) -> Iterator[str]:
    """The functions with the steps: each is there once, with its head and its checks, in the order of calls."""
    functions = [item.function for item in source.items if item.function in frames]
    if functions != [*frames]:
        texts = [", ".join(each) or "none" for each in (functions, [*frames])]
        yield f"{source.path} has the steps in the functions {texts[0]}, not in {texts[1]}"
        return
    for item in source.items:
        if item.function in functions:
            front, end = (
                [word for word, _ in CSource(writer.text()).tokens] for writer in frames[item.function]
            )
            yield from _first_difference(source.path, item.tokens[: len(front)], front)
            yield from _first_difference(source.path, item.tokens[-len(end) :], end)


def _first_difference(path: str, actual: Sequence[tuple[str, int]], expected: Sequence[str]) -> Iterator[str]:
    words = [word for word, _ in actual]
    if words == expected:
        return
    pairs = zip(words, expected, strict=False)
    at = next(
        (position for position, (one, other) in enumerate(pairs) if one != other),
        min(len(words), len(expected)),
    )
    line = actual[min(at, len(actual) - 1)][1] if actual else 1
    texts = [" ".join(each[at : at + _SHOWN_WORDS]) or "nothing" for each in (words, expected)]
    yield f"{path}:{line} has '{texts[0]}' where the plan asks for '{texts[1]}'"


def _tokens(items: Sequence[Item]) -> list[tuple[str, int]]:
    return [token for item in items for token in item.tokens]


def _words(items: Sequence[Item]) -> list[str]:
    return [word for item in items for word in item.words]


def _text(files: Mapping[str, bytes], path: str) -> str:
    return files.get(path, b"").decode("utf-8", "replace")
