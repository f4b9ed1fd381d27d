"""plan.json: a plan as a file, and back. Nothing else reads or writes one."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import CompileError, compile_error
from bytewright.record.codec import decode, encode
from bytewright.record.plan import Plan
from bytewright.target import BUILTIN_TARGETS

PLAN_FILE = "plan.json"
# The number of the format: of the keys of plan.json, what they mean, and the words of C that follow from them. Who
# changes one of these changes it, so that a bundle from before is called old, and not forged (test_schema.py).
SCHEMA = 2
# What the plan's hash leaves out: itself, the digests of files that contain it, and where the plan comes from, which is
# another for the same program printed as text. `files_hash` covers these.
UNHASHED_KEYS = ("plan_hash", "files", "files_hash", "model_files", "options", "narrowed", "stream")
UNHASHED_KEYS_OF_BUFFERS = (
    "tensor",
    "scale",
    "zero_point",
    "shape_before",
    "kept_channels",
    "constant_channels",
    "parts",
)
UNHASHED_KEYS_OF_STEPS = ("work",)


def document_of(plan: Plan) -> dict[str, Any]:
    """What plan.json holds."""
    return {"schema": SCHEMA, **encode(plan)}


def with_hash(plan: Plan) -> Plan:
    """The plan with its own hash."""
    return replace(plan, plan_hash=hash_document(document_of(plan)))


def with_files(plan: Plan, files: Mapping[str, bytes]) -> Plan:
    """The plan with the digests of the other files of its bundle, and the hash of their list."""
    digests = {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(files)}
    plan = replace(plan, files=FrozenMapping(digests))
    return replace(plan, files_hash=hash_files(document_of(plan)))


def hash_document(document: Mapping[str, Any]) -> str:
    """The plan's hash: sha256 of the document without the keys that depend on it, and those of its origin."""
    content = _without(document, UNHASHED_KEYS)
    for key, unhashed in (("buffers", UNHASHED_KEYS_OF_BUFFERS), ("steps", UNHASHED_KEYS_OF_STEPS)):
        if isinstance(records := content.get(key), list):
            content[key] = [_without(record, unhashed) for record in cast("list[object]", records)]
    return _sha256(content)


def hash_files(document: Mapping[str, Any]) -> str:
    """The hash of the files and of everything else: sha256 of the document without this hash."""
    return _sha256(_without(document, ("files_hash",)))


def _without(value: Any, keys: tuple[str, ...]) -> Any:
    """An object without some keys; other values of JSON have none."""
    return {k: v for k, v in value.items() if k not in keys} if isinstance(value, Mapping) else value


def _sha256(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def parse_document(content: bytes) -> dict[str, Any]:
    """The JSON object that a plan.json holds, whatever is in it.

    Raises:
        ValueError: It holds none.
    """
    try:
        document = json.loads(content.decode("utf-8"))
        json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise ValueError(f"cannot be read ({error})") from error
    if not isinstance(document, dict):
        raise ValueError("is not an object")
    return cast("dict[str, Any]", document)


def read_document(directory: str | PathLike[str]) -> dict[str, Any]:
    """The JSON object in a bundle's plan.json.

    Raises:
        CompileError: BW207.
    """
    directory = Path(directory)
    path = directory / PLAN_FILE
    if not path.is_file():
        raise not_a_bundle(directory, f"it has no {PLAN_FILE}")
    try:
        return parse_document(path.read_bytes())
    except OSError as error:
        raise not_a_bundle(directory, f"{PLAN_FILE} cannot be read ({error})") from error
    except ValueError as error:
        raise not_a_bundle(directory, f"{PLAN_FILE} {error}") from error


def read_plan(directory: str | PathLike[str]) -> Plan:
    """The plan of a bundle.

    Raises:
        CompileError: BW207 if there is none or it cannot be understood, BW211 if another version wrote it.
    """
    return understand(read_document(directory), Path(directory))


def understand(document: dict[str, Any], directory: Path) -> Plan:
    """The typed plan of a document that was read from a directory.

    Raises:
        CompileError: BW211 if another version wrote it; BW207 if something is missing, of a wrong type, or twice.
    """
    schema = schema_of(document)
    if schema not in (None, SCHEMA):
        raise _of_another_version(document, directory)
    try:
        return plan_of(document)
    except ValueError as error:
        raise not_a_bundle(directory, f"{PLAN_FILE} cannot be understood: {error}") from error
    except CompileError as error:
        reason = f"{PLAN_FILE} describes no valid target: {error.diagnostics[0].message}"
        raise not_a_bundle(directory, reason) from error


def plan_of(document: dict[str, Any]) -> Plan:
    """The typed plan of a document.

    Raises:
        ValueError: Something is missing, of a wrong type, or twice.
        CompileError: BW202, for the target's description.
    """
    if "schema" not in document:
        raise ValueError(f"{PLAN_FILE} has no 'schema'")
    if schema_of(document) != SCHEMA:
        raise ValueError(f"it has schema {document['schema']!r}, this version reads schema {SCHEMA}")
    return decode(Plan, document, PLAN_FILE)


def schema_of(document: Mapping[str, Any]) -> int | None:
    """The number of a document's format; None if it has none that any version writes."""
    schema = document.get("schema")
    return schema if type(schema) is int and schema >= 1 else None


def _of_another_version(document: Mapping[str, Any], directory: Path) -> CompileError:
    """The error for a bundle in another format, of which nothing else can be said."""
    schema = document["schema"]
    age = "an older" if schema < SCHEMA else "a newer"
    return compile_error(
        "BW211",
        f"'{directory}' was written by {age} version of Bytewright: its {PLAN_FILE} has schema {schema}, and this "
        f"version reads schema {SCHEMA}",
        help=f"compile the model again, which replaces it: {_command_of(document, directory)}",
    )


def _command_of(document: Mapping[str, Any], directory: Path) -> str:
    """What a bundle was compiled with, as far as its plan.json says so; where files are is not in it."""
    files, options, target = (document.get(key) for key in ("model_files", "options", "target"))
    model = next(iter(cast("Mapping[str, object]", files)), None) if isinstance(files, Mapping) else None
    given = [
        option.partition(" ")
        for option in cast("list[object]", options if isinstance(options, list) else [])
        if isinstance(option, str)
    ]
    words = ["bytewright", "compile", "MODEL" if model is None else model, "-o", str(directory)]
    words += ["--target", target if isinstance(target, str) and target in BUILTIN_TARGETS else "TARGET.toml"]
    words += [word for flag, _, value in given for word in (flag, value) if word]
    return shlex.join(words)


def not_a_bundle(directory: Path, why: str) -> CompileError:
    """The error for a folder that is none."""
    return compile_error(
        "BW207",
        f"'{directory}' is not a Bytewright bundle: {why}",
        help="give the folder that 'bytewright compile MODEL -o DIR' wrote",
    )
