"""The C that a board behind a serial line runs a bundle with: harness, port and table in one file."""

import re
from collections.abc import Iterator

from bytewright.bundle.caller_memory import caller_arrays
from bytewright.codegen.writer import OWNERSHIP
from bytewright.diagnostics import compile_error
from bytewright.execute.build import harness_source, model_table
from bytewright.execute.description import Bundle
from bytewright.record.buffers import PlannedPool
from bytewright.record.names import Names
from bytewright.record.plan import Plan

_PARTS = (
    ("harness", "harness.h"),
    ("harness", "port.h"),
    ("harness", "adapter.c"),
    ("harness", "main.c"),
    ("serial", "port_serial.c"),
)
_INCLUDE = re.compile(r'^#include "(?:harness|harness_model|port|serial)\.h"\n', re.MULTILINE)
_FRONT = "pool_"  # of the arrays that are lent


def serial_files(bundle: Bundle) -> dict[str, str]:
    """Name -> text of the header, the C file, and what puts a clock between the kernels.

    Raises:
        CompileError: BW204 for work of another device than the entry's.
    """
    plan, names, model = bundle.plan, bundle.names, bundle.plan.model
    if plan.devices:
        raise compile_error(
            "BW204",
            f"model '{model}' has work for {', '.join(plan.devices)}, whose driver no serial line reaches",
            help="bytewright run DIR --on qemu has such devices",
        )
    head = (
        f"/* Model '{model}' behind a serial line. Plan {plan.plan_hash}.\n"
        f" * {OWNERSHIP} */\n"
    )  # fmt: skip
    table = [model_table(plan), "#define HARNESS_MAIN harness_main"]
    before, *behind = (_INCLUDE.sub("", harness_source(*part)) for part in _PARTS)
    parts = [*table, before, *_memory(plan, names), *behind]
    header = harness_source("serial", "serial.h")
    return {
        f"{model}_serial.h": head + _named(header, names),
        f"{model}_serial.c": f'{head}#include "{model}_serial.h"\n\n' + _named("\n".join(parts), names),
        f"{model}_serial_steps.h": head + _steps_header(names),
    }


def _named(text: str, names: Names) -> str:
    """The text with the model's name in place of the harness's, and of its port's: an image may have several models."""
    text = re.sub(r"\bharness_serial\b", f"{names.model}_serial", text)
    text = re.sub(r"\bharness_serial_", f"{names.model}_serial_", text)
    text = re.sub(r"\b(harness|port)_(?!model\.h)(?=\w)", rf"{names.model}_\1_", text)
    return text.replace("HARNESS_SERIAL_H", f"{names.prefix}_SERIAL_H")


def _memory(plan: Plan, names: Names) -> Iterator[str]:
    """The hash of the plan, and the memory that the program lends."""
    digits = ", ".join(f"0x{byte:02X}u" for byte in bytes.fromhex(plan.plan_hash))
    yield f"static const uint8_t harness_plan_hash[32] = {{{digits}}};"
    yield from caller_arrays(plan, names, _FRONT)
    yield _pointers("void *const", "lent_workspaces", plan.caller_workspaces)
    yield _pointers("const void *const", "lent_blobs", plan.caller_parameters)
    yield _pointers("void *const", "lent_copies", plan.caller_copies, "_copy")
    tensors = (*plan.inputs, *plan.outputs)
    for number, tensor in enumerate(tensors):
        size = f"HARNESS_WHOLE_LINES({max(tensor.size_bytes, 1)})"
        yield f"static {names.aligned}(HARNESS_IO_ALIGNMENT) uint8_t buffer_{number}[{size}];"
    yield f"static void *const buffers[] = {{{''.join(f'buffer_{n}, ' for n in range(len(tensors)))}NULL}};"


def _pointers(kind: str, name: str, pools: tuple[PlannedPool, ...], end: str = "") -> str:
    return f"static {kind} {name}[] = {{{''.join(f'{_FRONT}{pool.c_name}{end}, ' for pool in pools)}NULL}};"


def _steps_header(names: Names) -> str:
    """What the entry's file is compiled with (`-include`), so that each step is measured."""
    guard = f"{names.prefix}_SERIAL_STEPS_H"
    return (
        f"#ifndef {guard}\n#define {guard}\n"
        f"void {names.model}_serial_step(unsigned int step);\n"
        f"#define {names.step}(step, ...) {names.model}_serial_step(step)\n"
        "#endif\n"
    )
