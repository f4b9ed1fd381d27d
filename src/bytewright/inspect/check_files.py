"""Whether the files of a bundle are what its plan says: digests, sizes, offsets, calls, and parameter bytes."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from pycparser import c_ast
from pycparser.c_parser import ParseError

from bytewright import ir
from bytewright.base.input_file import read_input
from bytewright.bundle.folder import digest_of, foreign_entries, is_inside
from bytewright.inspect.c_nodes import most_bytes
from bytewright.inspect.c_source import CSource, descend, read_bytes, words_of
from bytewright.inspect.check_device_memory import differences_of_device_memory
from bytewright.inspect.check_directives import faults_of_directives
from bytewright.inspect.check_flow import differences_of_flow, numbers_of
from bytewright.inspect.check_helpers import differences_of_helpers
from bytewright.inspect.check_jobs import differences_of_hand_overs, differences_of_job
from bytewright.inspect.check_jumps import differences_of_jumps
from bytewright.inspect.check_lent import differences_of_lent
from bytewright.inspect.check_parts import differences_of_arguments, differences_of_marks
from bytewright.inspect.check_reach import KernelsRead, read_kernels
from bytewright.inspect.check_row_code import differences_of_rows
from bytewright.inspect.check_row_loops import differences_of_passes
from bytewright.inspect.check_sizes import differences_of_sizes
from bytewright.inspect.check_state import differences_of_reset
from bytewright.inspect.check_written import differences_of_texts, options_of_plan
from bytewright.inspect.read_entry import Entry, Place, read_entry, read_place
from bytewright.options import NOTHING_ASKED
from bytewright.record.buffers import BufferRole, PlaceKind, PlannedPool
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import CMAKE_FILE, TENSOR_MACROS, Names, by_entry, names_of
from bytewright.record.plan import Plan
from bytewright.record.plan_file import PLAN_FILE, hash_document, hash_files
from bytewright.target.model import Role

_NEGATIVE, _ZERO = re.compile(r"= - [1-9]\d* [,}]"), re.compile(r"= 0 [,}]")


def faults_of_files(
    directory: Path, document: Mapping[str, Any], plan: Plan, *, plan_verifies: bool
) -> list[str]:
    """Every way in which the files differ from the plan, one sentence each; texts are written for one that verifies."""
    names = names_of(plan)
    faults = [
        *_faults_of_hash(document, plan),
        *_faults_of_list(directory, document, plan),
        *_faults_of_digests(directory, plan),
        *_faults_of_header(directory, plan, names),
        *_faults_of_build(directory, plan),
        *_faults_of_source(directory, plan, names),
        *_faults_of_directives(directory, plan, names),
        *_faults_of_parameters(directory, plan, names),
    ]
    if faults or not plan_verifies:
        return faults
    return [*_differences_of_texts(directory, plan, names)]


def kernels_of(directory: Path, plan: Plan) -> KernelsRead:
    """What kernels touch of what calls give them, by a plan of which nothing else is wrong."""
    names = names_of(plan)
    return read_kernels(plan, names, _kernel_files(directory, plan, names))


def _differences_of_texts(directory: Path, plan: Plan, names: Names) -> Iterator[str]:
    """Whatever is not as it is written for the plan, of a bundle in which nothing else was found."""
    pools = plan.used_pools(Role.PARAMETERS)
    contents = {
        pool.name: content or b""
        for pool in pools
        for _, content in parameter_files(directory, plan, names, pool)
    }
    files = {path: _read(directory, path) for path in plan.files}
    yield from differences_of_texts(plan, names, files, contents)


def _faults_of_hash(document: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    actual = hash_document(document)
    if actual != plan.plan_hash:
        yield f"plan.json was changed: it states the hash {plan.plan_hash[:12]}, its content has {actual[:12]}"


def _faults_of_list(directory: Path, document: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    """The list of files is the one that was written, and the folder holds nothing else."""
    if document.get("files_hash") != hash_files(document):
        yield "plan.json was changed: its list of files, or where it comes from, is not what 'files_hash' is of"
    try:
        foreign = foreign_entries(directory, [*plan.files, PLAN_FILE])
    except OSError as error:
        yield f"the folder cannot be read: {error.strerror}"
        return
    yield from (f"{path} is not a file of this bundle" for path in foreign)


def _faults_of_digests(directory: Path, plan: Plan) -> Iterator[str]:
    """The files are those that were written."""
    for path, digest in plan.files.items():
        if not is_inside(path):
            yield f"{path} is not a path inside the bundle"
            continue
        try:
            actual = digest_of(directory / path)
        except OSError as error:
            yield f"{path} cannot be read: {error.strerror}"
            continue
        if actual is None:
            is_there = os.path.lexists(directory / path)
            yield f"{path} cannot be read: {'it is no regular file' if is_there else 'there is no such file'}"
        elif actual != digest:
            yield f"{path} was changed"


def _read(directory: Path, path: str) -> bytes:
    """The content of a file; one that is missing is empty, because its digest has been refused already."""
    try:
        return read_input(directory / path)
    except OSError:
        return b""


def _read_text(directory: Path, path: str) -> str:
    return _read(directory, path).decode("utf-8", "replace")


def _faults_of_header(directory: Path, plan: Plan, names: Names) -> Iterator[str]:
    """Hash and sizes of the header."""
    path = names.header
    header = _read_c(directory, path)
    if _hashes_in(header) != [plan.plan_hash]:
        yield f"{path} does not belong to this plan: it states another hash, or none"
    expected: dict[str, int] = {}
    for pool in (pool for pool in plan.pools.values() if pool.used_bytes):
        expected |= {names.size(pool): pool.used_bytes, names.alignment(pool): pool.alignment}
    for alone, own in by_entry(plan, names):
        expected |= {own.arena_size(pool): arena.size_bytes for arena, pool in alone.arenas}
    for stack in tuple(plan.stack.values())[:1]:  # that of the entry
        expected[names.stack_planned_bytes] = stack.planned_bytes
        expected[names.stack_size] = stack.size_bytes
    for border in ir.Border:
        for tensor in plan.tensors(border):
            expected[names.tensor(border, tensor, TENSOR_MACROS[0])] = tensor.size_bytes
            pieces = tensor.pieces.items()
            expected |= {names.tensor(border, tensor, what): value for what, value in pieces}
    yield from _differences(path, expected, _numbers(header.macros))
    yield from _faults_of_results(path, header, names)
    for border in ir.Border:
        for tensor in plan.tensors(border):
            for what, text in zip(TENSOR_MACROS[1:], _described(tensor), strict=True):
                name = names.tensor(border, tensor, what)
                stated = header.macros.get(name)
                if not _is_same(stated, text):
                    yield f"{path} states {name} {'not at all' if stated is None else stated}, the plan {text}"


def _faults_of_results(path: str, header: CSource, names: Names) -> Iterator[str]:
    """What functions return says that they did what they are for, or that they did not: 0, or less."""
    words = words_of(header.without_directives)
    for position, word in enumerate(words):
        stated = " ".join(words[position + 1 : position + 5])
        is_error = word.startswith(names.error(""))
        if (is_error and not _NEGATIVE.match(stated)) or (word == names.ok and not _ZERO.match(stated)):
            yield f"{path} states {word} {stated}"


def _described(tensor: PlannedTensor) -> tuple[str | None, ...]:
    """What the header says of an input or output: elements, rank, shape, scale and zero point; None for nothing."""
    extents = f"{{{', '.join(map(str, tensor.shape))}}}" if tensor.shape else None
    scale = None if tensor.scale is None else repr(tensor.scale)
    zero_point = None if tensor.scale is None else f"({tensor.zero_point})"
    return str(prod(tensor.shape)), str(len(tensor.shape)), extents, scale, zero_point


def _is_same(stated: str | None, planned: str | None) -> bool:
    """Whether two texts are the same, or numbers that floats of C are the same for."""
    if stated == planned or stated is None or planned is None:
        return stated == planned
    try:
        return words_of(stated) == words_of(planned) or np.float32(stated.rstrip("fF")) == np.float32(planned)
    except ValueError:
        return False


def _faults_of_directives(directory: Path, plan: Plan, names: Names) -> Iterator[str]:
    """What the preprocessor is told in any file of C."""
    files = {path: _read_c(directory, path) for path in plan.files if path.endswith((".c", ".h"))}
    try:
        yield from faults_of_directives(plan, names, files, options_of_plan(plan) or NOTHING_ASKED)
    except ParseError as error:
        yield f"the C cannot be followed: {error}"


def _faults_of_build(directory: Path, plan: Plan) -> Iterator[str]:
    """The flags that the C is exact with."""
    text, (standard, *flags) = _read_text(directory, CMAKE_FILE), plan.build.flags or ("",)
    if standard != "-std=c99" or f" PRIVATE {' '.join(flags)})" not in text:
        yield f"{CMAKE_FILE} does not have the flags of the plan: {' '.join(plan.build.flags)}"


def _faults_of_source(directory: Path, plan: Plan, names: Names) -> Iterator[str]:
    """Hash, offsets and calls of the entry."""
    try:
        yield from _differences_of_source(directory, plan, names)
    except (ParseError, RecursionError) as error:
        yield f"the C cannot be followed: {error}"


def _differences_of_source(directory: Path, plan: Plan, names: Names) -> Iterator[str]:
    path = names.entry_source
    source = _read_c(directory, path)
    placed = {names.argument(b): b.place.offset or 0 for b in plan.buffers.values() if b.has_offset}
    if _hashes_in(source) != ([plan.plan_hash] if placed else []):
        yield f"{path} does not belong to this plan: it states another hash, or none"
    numbers = source.enumerators | _numbers(source.macros)
    offsets = {name: value for name, value in numbers.items() if name.startswith(names.offset_front)}
    yield from _differences(path, placed, offsets)
    yield from (
        f"{path} has the offset {name}, which the plan does not have"
        for name in offsets
        if name not in placed
    )
    yield from _differences_of_addresses(path, plan, names, source)
    yield from differences_of_reset(plan, names, path, source)
    yield from differences_of_helpers(path, plan, names, source)
    of_devices = {names.device_source(device) for device in plan.devices.values()} | {names.ethos_u_source}
    others = [file for file in plan.files if file.endswith(".c") and file not in (path, *of_devices)]
    files = {file: _read_c(directory, file) for file in others if plan.device_workspaces}
    yield from differences_of_device_memory(plan, names, path, source, files)
    kernels_of = _kernel_files(directory, plan, names)
    yield from differences_of_sizes(plan, names, kernels_of)
    for (alone, own), end in zip(by_entry(plan, names), plan.ends, strict=True):
        yield from _differences_of_entry(alone, own, source, kernels_of, end)


def _kernel_files(directory: Path, plan: Plan, names: Names) -> dict[str, CSource]:
    """The files with kernels, by their paths; what is not listed is refused already, whatever it says."""
    paths = (names.kernels_source, *map(names.device_source, plan.devices.values()))
    texts = {path: _read_text(directory, path) for path in paths if path in plan.files}
    return {path: CSource(text, path) for path, text in texts.items() if text}


def _differences_of_entry(
    plan: Plan, names: Names, source: CSource, kernels_of: Mapping[str, CSource], end: int
) -> Iterator[str]:
    """What runs an entry: its steps, and what is around them; `end` is the number behind its last step."""
    path = names.entry_source
    yield from differences_of_jumps(path, plan, names, source)
    entry = read_entry(source, names, plan.externals, plan.entries[0].steps[0])
    yield from _differences_of_arenas(path, plan, names, entry)
    yield from _differences_of_requests(path, plan, names, entry)
    yield from differences_of_lent(path, plan, names, source)
    yield from differences_of_hand_overs(path, source, names, entry.calls)
    kernels = ["" if step.device in plan.devices else step.kernel for step in plan.steps]
    if [call.kernel for call in entry.calls] != kernels:
        yield f"{path} calls {len(entry.calls)} kernels, not those of the plan's {len(plan.steps)} steps in order"
        return
    yield from differences_of_marks(path, plan, names, end, entry.marks)
    yield from differences_of_passes(path, plan, names, source, entry.constants)
    known = numbers_of(entry, plan, names)
    yield from differences_of_flow(path, plan, names, entry, known)
    if any(step.rows is not None for step in plan.steps):
        yield from differences_of_rows(path, plan, names, entry.calls, kernels_of, known)
    for call, step in zip(entry.calls, plan.steps, strict=True):
        if call.job is not None:
            job = differences_of_job(plan, names, step, call.job, known)
            yield from (f"{path}, step {step.index}: {text}" for text in job)
            continue
        touched = [plan.buffers[name] for name in step.touched if name in plan.buffers]
        touched = [b for b in touched if b.role is not BufferRole.ARENA]  # no argument: what it serves is
        buffers = {names.argument(buffer): buffer for buffer in touched}
        wrong = differences_of_arguments(call, plan, names, step, buffers, known)
        yield from (f"{path}, step {step.index}: {text}" for text in wrong)


def _read_c(directory: Path, path: str) -> CSource:
    return CSource(_read_text(directory, path), path)


def _hashes_in(source: CSource) -> list[str]:
    """The plan hashes that comments state."""
    words = [word for comment in source.comments for word in comment.split() if word != "*"]
    return [word[:-1] for before, word in pairwise(words) if before == "Plan" and len(word) == 65]


def _numbers(macros: Mapping[str, str]) -> dict[str, int]:
    """Macros that are defined as numbers."""
    return {name: int(value) for name, value in macros.items() if value.isdecimal()}


def _differences_of_addresses(path: str, plan: Plan, names: Names, source: CSource) -> Iterator[str]:
    """The functions that return where inputs and outputs lie in the workspace."""
    for border in ir.SIDES:
        for tensor in plan.tensors(border):
            buffer = plan.buffers.get(tensor.buffer)
            if buffer is None or buffer.place.kind is not PlaceKind.PLANNED:
                continue
            pool = plan.pools[buffer.place.name]
            base = f"context->{pool.c_name}" if pool.is_caller else names.array(pool)
            name = names.address(border, tensor)
            function = source.function(name)
            nodes = [] if function is None else descend(function.body)
            returned = [read_place(node.expr, names) for node in nodes if isinstance(node, c_ast.Return)]
            places = [place for place in returned if place is not None]
            expected = Place(base, names.argument(buffer), None, None)
            if [replace(place, element=None) for place in places] != [expected]:
                yield f"{path}: {name} does not return {expected.address}"


def _differences_of_arenas(path: str, plan: Plan, names: Names, entry: Entry) -> Iterator[str]:
    """Where the arenas begin, and how large the run function says that they are."""
    arenas = {names.arena(pool): [names.argument(b), names.arena_size(pool)] for b, pool in plan.arenas}
    wrong = [arena for arena in {**arenas, **entry.arenas} if arenas.get(arena) != entry.arenas.get(arena)]
    if wrong:
        yield f"{path} does not set the arenas of the plan: {', '.join(wrong)}"


def _differences_of_requests(path: str, plan: Plan, names: Names, entry: Entry) -> Iterator[str]:
    """What the steps request at run time: each in order, from its pool, as large as planned, and all released."""
    expected: list[tuple[str, str, int | None, int | None]] = []
    for step in plan.steps:
        scratch = [plan.buffers[name] for name in step.scratch if name in plan.buffers]
        requests = [
            (names.argument(b), names.arena_pool(plan.pools[b.place.name]), b.size_bytes, b.alignment)
            for b in scratch
            if b.place.kind is PlaceKind.ARENA and b.place.name in plan.pools
        ]
        expected += [*requests, *((name, pool, None, None) for name, pool, _, _ in reversed(requests))]
    upper = {symbol.name: symbol.upper for symbol in plan.symbols}
    actual = [
        (text.name, text.pool, None if text.size is None else most_bytes(text.size, upper), text.alignment)
        for text in entry.requests
    ]
    if actual != expected:
        different = [item for item in (*expected, *actual) if (item in expected) != (item in actual)]
        which = ", ".join(sorted({name for name, *_ in different})) or "their order"
        yield f"{path} does not request and release what the plan says: {which}"


def _faults_of_parameters(directory: Path, plan: Plan, names: Names) -> Iterator[str]:
    """The bytes of each parameter pool, as numbers in C, or as they are, and as a blob."""
    for pool in plan.used_pools(Role.PARAMETERS):
        for path, content in parameter_files(directory, plan, names, pool):
            if content is None:
                yield f"{path} does not hold numbers from 0 to 255"
            else:
                yield from _faults_of_content(path, content, pool)


def parameter_files(
    directory: Path, plan: Plan, names: Names, pool: PlannedPool
) -> Iterator[tuple[str, bytes | None]]:
    """The files of a bundle that hold a parameter pool, and its bytes there; None where they are no bytes."""
    numbers, binary = (names.embedded(pool, as_numbers=is_text) for is_text in (True, False))
    if numbers in plan.files:
        try:
            yield numbers, read_bytes(_read_text(directory, numbers))
        except ValueError:
            yield numbers, None
    elif not pool.is_caller:
        yield binary, _read(directory, binary)
    if pool.is_caller:
        blob = names.blob(pool.name)
        yield blob, _read(directory, blob)


def _faults_of_content(path: str, content: bytes, pool: PlannedPool) -> Iterator[str]:
    if len(content) != pool.used_bytes:
        yield f"{path} has {len(content)} B, pool '{pool.name}' uses {pool.used_bytes} B"
    elif hashlib.sha256(content).hexdigest() != pool.sha256:
        yield f"{path} holds other bytes than the plan's pool '{pool.name}'"


def _differences(path: str, expected: dict[str, int], actual: dict[str, int]) -> Iterator[str]:
    for name, value in expected.items():
        if name not in actual:
            yield f"{path} does not state {name}"
        elif actual[name] != value:
            yield f"{path} states {name} {actual[name]}, the plan {value}"
