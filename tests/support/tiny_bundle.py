"""A bundle written by hand: model `tiny` adds a constant to each of 16 int8 values, saturating.

It has the shape that the compiler gives a bundle: the target's workspace pools from the caller, of which all
but the first have no bytes, and one parameter pool that is generated or a blob. Tests of the stage `execute`
change its statements to see how a run ends.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bytewright.record.plan_file import SCHEMA
from bytewright.target.dump import dump
from bytewright.target.model import Target
from bytewright.target.registry import load_target

COUNT = 16
CONSTANTS = tuple(11 * index - 80 for index in range(COUNT))

ADD = """\
    tiny_copy(inputs->left, context->workspace, 16);
    tiny_add(context->workspace, TINY_CONSTANTS, outputs->sum, 16);
    return 0;
"""

HEADER = """\
#ifndef TINY_H
#define TINY_H
#include <stddef.h>
#include <stdint.h>

@workspace_macros@#define TINY_ERROR_NULL (-1)
#define TINY_ERROR_SIZE (-2)
#define TINY_ERROR_ALIGN (-3)
#define TINY_ERROR_NOT_SET (-7)
typedef struct {
    int8_t *workspace;
    const int8_t *constants;
} tiny_context;
typedef struct { const int8_t *left; } tiny_inputs;
typedef struct { int8_t *sum; } tiny_outputs;
typedef struct { void *base; size_t size_bytes; } tiny_memory;
@workspaces_header@@parameters_header@
int32_t tiny_run(tiny_context *context, const tiny_inputs *inputs, const tiny_outputs *outputs);
#endif
"""

MODEL = """\
#include "tiny.h"
#include "tiny_kernels.h"

@set_workspaces@@set_parameters@
int32_t tiny_run(tiny_context *context, const tiny_inputs *inputs, const tiny_outputs *outputs)
{
@use_generated_workspace@    if (context->workspace == NULL@constants_check@) {
        return TINY_ERROR_NOT_SET;
    }
@statements@}
"""

KERNELS_HEADER = """\
#include <stdint.h>
@constants@
void tiny_copy(const int8_t *from, int8_t *to, int32_t count);
void tiny_add(const int8_t *left, const int8_t *constants, int8_t *sum, int32_t count);
"""

KERNELS = """\
#include "tiny_kernels.h"

void tiny_copy(const int8_t *from, int8_t *to, int32_t count)
{
    for (int32_t index = 0; index < count; ++index) {
        to[index] = from[index];
    }
}

void tiny_add(const int8_t *left, const int8_t *constants, int8_t *sum, int32_t count)
{
    for (int32_t index = 0; index < count; ++index) {
        const int32_t value = left[index] + constants[index];
        sum[index] = (int8_t)(value > 127 ? 127 : value < -128 ? -128 : value);
    }
}
"""

SET_WORKSPACES = """\
int32_t tiny_set_workspaces(tiny_context *context, const tiny_workspaces *workspaces)
{
    if (workspaces->@pool@.size_bytes < TINY_@POOL@_WORKSPACE_SIZE) {
        return TINY_ERROR_SIZE;
    }
@null_checks@    if ((uintptr_t)workspaces->@pool@.base % TINY_@POOL@_WORKSPACE_ALIGN != 0) {
        return TINY_ERROR_ALIGN;
    }
    context->workspace = workspaces->@pool@.base;
    return 0;
}
"""

WORKSPACES_HEADER = """\
typedef struct { @workspace_members@} tiny_workspaces;
int32_t tiny_set_workspaces(tiny_context *context, const tiny_workspaces *workspaces);
"""

GENERATED_WORKSPACE = """\
static int8_t tiny_@pool@_workspace[16]@workspace_section@;
"""

SET_PARAMETERS = """
int32_t tiny_set_parameters(tiny_context *context, const tiny_parameters *parameters)
{
    if (parameters->@parameters@ == NULL) {
        return TINY_ERROR_NULL;
    }
    context->constants = (const int8_t *)parameters->@parameters@ + 32;
    return 0;
}
"""

PARAMETERS_HEADER = """\
typedef struct { const void *@parameters@; } tiny_parameters;
int32_t tiny_set_parameters(tiny_context *context, const tiny_parameters *parameters);"""


def expected_sum(left: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What `tiny` must return for an input."""
    wide = left.astype(np.int32) + np.array(CONSTANTS, np.int32)
    return np.clip(wide, -128, 127).astype(np.int8)


def write_tiny_bundle(
    directory: Path,
    *,
    target: str | Target = "mps3-an547",
    blob: bool = False,
    generated_workspace: bool = False,
    statements: str = ADD,
    kernels: str = "",
    workspace_bytes_in_plan: int = 16,
    left_out: Sequence[str] = (),
) -> Path:
    """Writes the bundle; `statements` are the body of `tiny_run`, `kernels` is appended to the kernels' file."""
    resolved = load_target(target) if isinstance(target, str) else target
    workspace, parameters = resolved.workspace_pools[0], resolved.parameter_pools[0]
    section = resolved.memory_of(parameters).section
    sizes = [(workspace.identifier, COUNT)]  # the C has nothing of pools without bytes
    fields = {
        "POOL": workspace.identifier.upper(),
        "pool": workspace.identifier,
        "workspace_macros": "".join(
            f"#define TINY_{name.upper()}_WORKSPACE_SIZE {size_bytes}\n"
            f"#define TINY_{name.upper()}_WORKSPACE_ALIGN 16\n"
            for name, size_bytes in sizes
        ),
        "workspace_members": "".join(f"tiny_memory {name}; " for name, _ in sizes),
        "null_checks": "".join(
            f"    if (workspaces->{name}.base == NULL) {{\n        return TINY_ERROR_NULL;\n    }}\n"
            for name, _ in sizes
        ),
        "workspaces_header": "" if generated_workspace else WORKSPACES_HEADER,
        "set_workspaces": GENERATED_WORKSPACE if generated_workspace else SET_WORKSPACES,
        "workspace_section": _attribute(resolved.memory_of(workspace).section),
        "use_generated_workspace": "    context->workspace = tiny_@pool@_workspace;\n"
        if generated_workspace
        else "",
        "constants_check": " || context->constants == NULL" if blob else "",
        "parameters_header": PARAMETERS_HEADER if blob else "",
        "set_parameters": SET_PARAMETERS if blob else "",
        "parameters": parameters.identifier,
        "statements": statements,
        "constants": "#define TINY_CONSTANTS (context->constants)"
        if blob
        else "extern const int8_t tiny_@parameters@_parameters[16];\n"
        "#define TINY_CONSTANTS tiny_@parameters@_parameters",
    }
    attribute = _attribute(section)
    values = ", ".join(str(value) for value in CONSTANTS)
    files = {
        "include/tiny.h": HEADER,
        "src/tiny.c": MODEL,
        "src/tiny_kernels.h": KERNELS_HEADER,
        "src/tiny_kernels.c": KERNELS + kernels,
        "src/tiny_parameters.c": '#include "tiny_kernels.h"\n'
        + ("" if blob else f"const int8_t tiny_@parameters@_parameters[16]{attribute} = {{{values}}};\n"),
        "plan.json": json.dumps(
            _plan(resolved, blob, generated_workspace, workspace_bytes_in_plan), indent=1
        ),
    }
    for name, text in files.items():
        if name in left_out:
            continue
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if path.suffix == ".json" else _fill(text, fields), encoding="utf-8")
    if blob:
        content = struct.pack("<8sQQQ", b"BWPARAM1", COUNT, 0, 0) + struct.pack("16b", *CONSTANTS)
        (directory / "parameters").mkdir()
        (directory / "parameters" / f"{parameters.name}.bin").write_bytes(content)
    return directory


def _attribute(section: str | None) -> str:
    return f' __attribute__((section("{section}")))' if section else ""


def _fill(text: str, fields: dict[str, str]) -> str:
    for _ in range(2):  # fields may hold fields
        for field, value in fields.items():
            text = text.replace(f"@{field}@", value)
    return text


def _plan(target: Target, blob: bool, generated_workspace: bool, workspace_bytes: int) -> dict[str, Any]:
    parameters = target.parameter_pools[0]
    tensor = {
        "buffer": "",
        "dtype": "i8",
        "shape": [1, COUNT],
        "extents": [1, COUNT],
        "size_bytes": COUNT,
        "scale": 0.5,
        "zero_point": 0,
    }
    parameters_file = [f"parameters/{parameters.name}.bin"] if blob else []
    files = [
        "include/tiny.h",
        "src/tiny.c",
        "src/tiny_kernels.c",
        "src/tiny_kernels.h",
        "src/tiny_parameters.c",
    ]
    return {
        "schema": SCHEMA,
        "model": "tiny",
        "files": dict.fromkeys([*files, *parameters_file], "0" * 64),
        "target": target.name,
        "numerics": "ir",
        "build": {"bytewright": "0", "flags": []},
        "io": "caller",
        "target_description": dump(target),
        "inputs": [{"name": "serving/left", "c_name": "left", **tensor}],
        "outputs": [{"name": "sum", "c_name": "sum", **tensor}],
        "symbols": [],
        "pools": [
            *(
                {
                    "name": workspace.name,
                    "c_name": workspace.identifier,
                    "memory": workspace.memory,
                    "role": "workspace",
                    "provider": "generated" if generated_workspace else "caller",
                    "capacity_bytes": workspace.size_bytes,
                    "used_bytes": 0 if index else workspace_bytes,
                    "lower_bound_bytes": 0,
                    "optimal": False,
                    "alignment": 16,
                    "section": target.memory_of(workspace).section,
                    "sha256": None,
                }
                for index, workspace in enumerate(target.workspace_pools)
            ),
            {
                "name": parameters.name,
                "c_name": parameters.identifier,
                "memory": parameters.memory,
                "role": "parameters",
                "provider": "caller" if blob else "generated",
                "capacity_bytes": parameters.size_bytes,
                "used_bytes": COUNT,
                "lower_bound_bytes": 0,
                "optimal": False,
                "alignment": 16,
                "section": target.memory_of(parameters).section,
                "sha256": "0" * 64,
            },
        ],
        "buffers": [],
        "stack": {},
        "steps": [],
        "loops": [],
        "plan_hash": "0" * 64,
    }
