"""All C files of a bundle, by path."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bytewright import ir
from bytewright.codegen.arena import backend_source
from bytewright.codegen.check_places import check_places
from bytewright.codegen.dispatcher import device_header, device_source
from bytewright.codegen.entry import PartsOfGraph, StepsOfModule, entry_source
from bytewright.codegen.ethos_u_glue import ethos_u_devices, glue_header, glue_source
from bytewright.codegen.externals import externals_header
from bytewright.codegen.forms import as_given
from bytewright.codegen.header import HeaderOfGraph, header_text
from bytewright.codegen.kernels import kernels_header, kernels_source
from bytewright.codegen.packed import packed_header, packed_source
from bytewright.codegen.parameters import embedded_files, parameters_source
from bytewright.codegen.sections_ld import sections_text
from bytewright.options import Embedding
from bytewright.record.check_names import check_names
from bytewright.record.devices import DeviceKind
from bytewright.record.names import Names
from bytewright.record.placed_sections import placed_sections
from bytewright.record.plan import Plan


def generate_c(
    module: ir.Module,
    plan: Plan,
    names: Names,
    contents: Mapping[str, bytes],
    embedding: Embedding = Embedding.AUTO,
) -> dict[str, bytes]:
    """Path in the bundle -> content.

    Args:
        module: Planned.
        plan: Its plan.
        names: Of the plan.
        contents: The bytes of the parameter pools, by name,
        embedding: and how they come into the program.
    """
    check_names(plan, names)
    check_places(module, plan)
    steps = StepsOfModule(module, plan, names)
    module = as_given(module, plan)
    header = HeaderOfGraph.of(module)
    texts = texts_of_graph(module, plan, names) | texts_of_plan(
        plan, names, contents, embedding, steps, header
    )
    files = {path: text.encode() for path, text in texts.items()}
    return files | embedded_files(plan, names, contents, embedding)


def texts_of_plan(
    plan: Plan,
    names: Names,
    contents: Mapping[str, bytes],
    embedding: Embedding,
    steps: PartsOfGraph,
    header: HeaderOfGraph,
) -> dict[str, str]:
    """Path in the bundle -> the text of those files that follow from the plan, but for the parts that are given.

    Args:
        plan: What they are for.
        names: Of the plan.
        contents: The bytes of the parameter pools, by name,
        embedding: and how they come into the program.
        steps: What the entry's file has from the graph,
        header: and what the header has.
    """
    texts = {
        names.header: header_text(plan, names, embedding, header),
        names.entry_source: entry_source(plan, names, contents, steps),
        names.parameters_source: parameters_source(plan, names, embedding),
    }
    for device in plan.devices.values():
        if device.kind is DeviceKind.C:
            texts[names.device_header(device)] = device_header(plan, names, device)
    if ethos_u_devices(plan):
        texts[names.ethos_u_header] = glue_header(plan, names)
        texts[names.ethos_u_source] = glue_source(plan, names)
    if placed_sections(plan):
        texts[names.sections_file] = sections_text(plan, names)
    if plan.arenas:
        texts[names.backend_source] = backend_source(plan, names)
    return texts


def texts_of_graph(module: ir.Module, plan: Plan, names: Names) -> dict[str, str]:
    """Path in the bundle -> the text of the other files: kernels, and what calls them otherwise than the entry."""
    return {path: write(module) for path, write in _files_of_graph(plan, names)}


def paths_of_graph(plan: Plan, names: Names) -> frozenset[str]:
    """The paths of those other files."""
    return frozenset(path for path, _ in _files_of_graph(plan, names))


def _files_of_graph(plan: Plan, names: Names) -> Iterator[tuple[str, Callable[[ir.Module], str]]]:
    yield names.kernels_header, lambda module: kernels_header(module, names)
    yield names.kernels_source, lambda module: kernels_source(module, names)
    for device in plan.devices.values():
        if device.kind is DeviceKind.C:
            yield names.device_source(device), partial(device_source, names=names, device=device)
    if plan.externals:
        yield names.externals_header, lambda module: externals_header(module, names)
    if plan.has_packed_forms:
        yield names.packed_header, lambda module: packed_header(module, plan, names)
        yield names.packed_source, lambda module: packed_source(module, plan, names)
