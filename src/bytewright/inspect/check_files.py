"""Whether the files of a bundle are what its plan says: digests, sizes, offsets, calls, and parameter bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bytewright.bundle_folder import digest_of, foreign_entries, is_inside
from bytewright.codegen.interface import blob_path, offset_macro, request_name
from bytewright.input_file import read_input
from bytewright.inspect.read_c import (
    read_addresses,
    read_arenas,
    read_bytes,
    read_calls,
    read_hashes,
    read_macros,
    read_offsets,
    read_requests,
)
from bytewright.record.plan import BufferRole, PlaceKind, Plan, PlannedBuffer, PlannedPool
from bytewright.record.plan_file import PLAN_FILE, hash_document, hash_files
from bytewright.target.model import Role


def faults_of_files(directory: Path, document: Mapping[str, Any], plan: Plan) -> list[str]:
    """Every way in which the files differ from the plan, one sentence each."""
    return [
        *_faults_of_hash(document, plan),
        *_faults_of_list(directory, document, plan),
        *_faults_of_digests(directory, plan),
        *_faults_of_header(directory, plan),
        *_faults_of_source(directory, plan),
        *_faults_of_parameters(directory, plan),
    ]


def _faults_of_hash(document: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    actual = hash_document(document)
    if actual != plan.plan_hash:
        yield f"plan.json was changed: it states the hash {plan.plan_hash[:12]}, its content has {actual[:12]}"


def _faults_of_list(directory: Path, document: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    """The list of files is the one that was written, and the folder holds nothing else."""
    if document.get("files_hash") != hash_files(plan.plan_hash, plan.files):
        yield "plan.json was changed: its list of files is not the one that 'files_hash' is of"
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


def _read(directory: Path, path: str) -> str:
    """A text of the bundle; one that is missing is empty, because its digest has been refused already."""
    try:
        return read_input(directory / path).decode("utf-8", "replace")
    except OSError:
        return ""


def _faults_of_header(directory: Path, plan: Plan) -> Iterator[str]:
    """Hash and sizes of the header."""
    path = f"include/{plan.model}.h"
    header = _read(directory, path)
    if read_hashes(header) != [plan.plan_hash]:
        yield f"{path} does not belong to this plan: it states another hash, or none"
    prefix = plan.model.upper()
    expected: dict[str, int] = {}
    for pool in (pool for pool in plan.pools.values() if pool.used_bytes):
        stem = f"{prefix}_{pool.c_name.upper()}_{pool.role.upper()}"
        expected |= {f"{stem}_SIZE": pool.used_bytes, f"{stem}_ALIGN": pool.alignment}
    for arena in plan.buffers_of(BufferRole.ARENA):
        if arena.place.name in plan.pools:
            expected[_arena_macro(plan, arena)] = arena.size_bytes
    contexts = plan.hardware.default_device.contexts
    for stack in (plan.stack[c.name] for c in contexts[:1] if c.name in plan.stack):
        expected[f"{prefix}_STACK_PLANNED_BYTES"] = stack.planned_bytes
        expected[f"{prefix}_STACK_SIZE"] = stack.size_bytes
    yield from _differences(path, expected, read_macros(header))


def _faults_of_source(directory: Path, plan: Plan) -> Iterator[str]:
    """Hash, offsets and calls of the entry."""
    path = f"src/{plan.model}.c"
    source = _read(directory, path)
    placed = {
        _name_in_c(plan, buffer): buffer.place.offset or 0
        for buffer in plan.buffers.values()
        if buffer.has_offset
    }
    if read_hashes(source) != ([plan.plan_hash] if placed else []):
        yield f"{path} does not belong to this plan: it states another hash, or none"
    offsets = read_offsets(source, plan.model)
    yield from _differences(path, placed, offsets)
    yield from (
        f"{path} has the offset {name}, which the plan does not have"
        for name in offsets
        if name not in placed
    )
    yield from _differences_of_addresses(path, plan, source)
    yield from _differences_of_arenas(path, plan, source)
    yield from _differences_of_requests(path, plan, source)
    calls = read_calls(source, plan.model, plan.externals)
    if [call.kernel for call in calls] != [step.kernel for step in plan.steps]:
        yield f"{path} calls {len(calls)} kernels, not those of the plan's {len(plan.steps)} steps in order"
        return
    for call, step in zip(calls, plan.steps, strict=True):
        known = [plan.buffers[name] for name in step.touched if name in plan.buffers]
        known = [b for b in known if b.role is not BufferRole.ARENA]  # no argument: what it serves is
        touched = frozenset(_name_in_c(plan, buffer) for buffer in known)
        if call.names != touched:
            names = ", ".join(sorted(call.names ^ touched))
            yield f"{path}, step {step.index}: plan and call differ in {names}"


def _differences_of_addresses(path: str, plan: Plan, source: str) -> Iterator[str]:
    """The functions that return where inputs and outputs lie in the workspace."""
    actual = read_addresses(source, plan.model)
    for role, tensors in ((BufferRole.INPUT, plan.inputs), (BufferRole.OUTPUT, plan.outputs)):
        for tensor in tensors:
            buffer = plan.buffers.get(tensor.buffer)
            if buffer is None or buffer.place.kind is not PlaceKind.PLANNED:
                continue
            pool = plan.pools[buffer.place.name]
            base = f"context->{pool.c_name}" if pool.is_caller else f"{plan.model}_{pool.c_name}_workspace"
            function = f"{plan.model}_{role}_{tensor.c_name}"
            expected = (base, _name_in_c(plan, buffer))
            if actual.get(function) != expected:
                yield f"{path}: {function} does not return {expected[0]} + {expected[1]}"


def _differences_of_arenas(path: str, plan: Plan, source: str) -> Iterator[str]:
    """Where the arenas begin, and how large the run function says that they are."""
    arenas = {
        plan.pools[b.place.name].c_name: (_name_in_c(plan, b), _arena_macro(plan, b))
        for b in plan.buffers_of(BufferRole.ARENA)
        if b.place.name in plan.pools
    }
    set_arenas = read_arenas(source, plan.model)
    wrong = [pool for pool in {**arenas, **set_arenas} if arenas.get(pool) != set_arenas.get(pool)]
    if wrong:
        yield f"{path} does not set the arenas of the plan: {', '.join(wrong)}"


def _differences_of_requests(path: str, plan: Plan, source: str) -> Iterator[str]:
    """What the steps request at run time: each in order, from its pool, as large as planned, and all released."""
    expected: list[tuple[str, str, int | None, int | None]] = []
    for step in plan.steps:
        scratch = [plan.buffers[name] for name in step.scratch if name in plan.buffers]
        requests = [
            (request_name(b.name), plan.pools[b.place.name].c_name.upper(), b.size_bytes, b.alignment)
            for b in scratch
            if b.place.kind is PlaceKind.ARENA and b.place.name in plan.pools
        ]
        expected += [*requests, *((name, pool, None, None) for name, pool, _, _ in reversed(requests))]
    upper = {symbol.name: symbol.upper for symbol in plan.symbols}
    actual = [
        (text.name, text.pool, None if text.size is None else _most_bytes(text.size, upper), text.alignment)
        for text in read_requests(source, plan.model)
    ]
    if actual != expected:
        different = [item for item in (*expected, *actual) if (item in expected) != (item in actual)]
        names = ", ".join(sorted({name for name, *_ in different})) or "their order"
        yield f"{path} does not request and release what the plan says: {names}"


def _arena_macro(plan: Plan, arena: PlannedBuffer) -> str:
    return f"{plan.model.upper()}_{plan.pools[arena.place.name].c_name.upper()}_ARENA_SIZE"


def _most_bytes(size: str, upper: Mapping[str, int]) -> int | None:
    """The value of a product of extents and numbers, with every extent at its largest; None if it is none."""
    total = 1
    for factor in size.split(" * "):
        name = factor.removeprefix("(uint64_t)")
        if factor.isdecimal():
            total *= int(factor)
        elif name != factor and name in upper:
            total *= upper[name]
        else:
            return None
    return total


def _name_in_c(plan: Plan, buffer: PlannedBuffer) -> str:
    """How the entry names a buffer."""
    if buffer.place.kind is PlaceKind.CALLER:
        return f"{buffer.role}s->{buffer.place.name}"
    if buffer.place.kind is PlaceKind.ARENA:
        return request_name(buffer.name)
    return offset_macro(plan.model, buffer.place.name, buffer.name)


def _faults_of_parameters(directory: Path, plan: Plan) -> Iterator[str]:
    """The bytes of each parameter pool, as numbers in C, or as they are, and as a blob."""
    for pool in plan.pools_of(Role.PARAMETERS):
        stem = f"include/{plan.model}_{pool.c_name}_parameters"
        if f"{stem}.inc" in plan.files:
            yield from _faults_of_numbers(directory, f"{stem}.inc", pool)
        elif not pool.is_caller:
            yield from _faults_of_blob(directory, f"{stem}.bin", pool)
        if pool.is_caller:
            yield from _faults_of_blob(directory, blob_path(pool.name), pool)


def _faults_of_numbers(directory: Path, path: str, pool: PlannedPool) -> Iterator[str]:
    try:
        content = read_bytes(_read(directory, path))
    except ValueError:
        yield f"{path} does not hold numbers from 0 to 255"
        return
    yield from _faults_of_content(path, content, pool)


def _faults_of_blob(directory: Path, path: str, pool: PlannedPool) -> Iterator[str]:
    try:
        content = read_input(directory / path)
    except OSError:
        content = b""
    yield from _faults_of_content(path, content, pool)


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
