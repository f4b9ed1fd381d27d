"""The shipped example as tests of commands, reports and checks use it, and a model with two inputs and outputs."""

from __future__ import annotations

import copy
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.options import Options, Rows
from bytewright.record.plan import Plan
from bytewright.record.plan_file import hash_document, hash_files, plan_of
from bytewright.target import Overrides, ProviderOption, apply_overrides, load_target
from bytewright.target.model import Provider
from tflite_writer import ModelBuilder

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"


@cache
def _compiled(target: str, caller_parameters: bool) -> tuple[dict[str, bytes], dict[str, Any]]:
    loaded = load_target(target)
    if caller_parameters:
        options = tuple(ProviderOption(pool.name, Provider.CALLER) for pool in loaded.parameter_pools)
        loaded = apply_overrides(loaded, Overrides(provider=options))
    compiled = compile_model(DIGITS, loaded, Options(rows=Rows.OFF))  # a step is a step
    return compiled.files, compiled.document


def digits_document(target: str = "mps3-an547", caller_parameters: bool = False) -> dict[str, Any]:
    """plan.json of the example; a copy, free to be changed."""
    return copy.deepcopy(_compiled(target, caller_parameters)[1])


def digits_plan(target: str = "mps3-an547") -> Plan:
    """The plan of the example."""
    return plan_of(digits_document(target))


def write_digits(directory: Path, target: str = "mps3-an547", caller_parameters: bool = False) -> Path:
    """The example's bundle, in a folder; returns the folder."""
    write_bundle(_compiled(target, caller_parameters)[0], directory)
    return directory


def write_document(directory: Path, document: dict[str, Any], rehash: bool = True) -> None:
    """Puts a changed plan.json into a bundle, with the hashes that its new content and its list of files have."""
    if rehash:
        document["plan_hash"] = hash_document(document)
    if isinstance(document.get("files"), dict):
        document["files_hash"] = hash_files(document)
    (directory / "plan.json").write_text(json.dumps(document), encoding="utf-8")


def change_file(directory: Path, path: str, old: str, new: str) -> None:
    """Changes a text of a bundle, and its digest with it, so that only what it says can give it away."""
    text = (directory / path).read_text(encoding="utf-8")
    assert old in text
    (directory / path).write_text(text.replace(old, new, 1), encoding="utf-8")
    document = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
    document["files"][path] = hashlib.sha256((directory / path).read_bytes()).hexdigest()
    write_document(directory, document, rehash=False)


def two_by_two() -> bytes:
    """A model that adds and subtracts `left` and `right`, [1, 4] floats, into `total` and `difference`."""
    builder = ModelBuilder()
    left, right, total, difference = (
        builder.tensor(name, [1, 4], "float32") for name in ("left", "right", "total", "difference")
    )
    builder.operator("ADD", [left, right], [total], activation="NONE")
    builder.operator("SUB", [left, right], [difference], activation="NONE")
    return builder.build(inputs=[left, right], outputs=[total, difference])


def unsupported() -> bytes:
    """A model with two operators that no compiler of ours knows."""
    builder = ModelBuilder()
    x, y, z = (builder.tensor(name, [1, 4], "float32") for name in ("x", "y", "z"))
    builder.custom_operator("Mystery", [x], [y])
    builder.custom_operator("Riddle", [y], [z])
    return builder.build(inputs=[x], outputs=[z])


def float_rows(*rows: list[float]) -> list[np.ndarray[Any, Any]]:
    """Inputs for `two_by_two`."""
    return [np.array([row], dtype=np.float32) for row in rows]
