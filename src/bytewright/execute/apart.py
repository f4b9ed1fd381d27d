"""A bundle in which no two planned buffers share a byte: what any plan of it must compute.

The offsets of a bundle are enumerators of its C, and the sizes of its workspaces macros of its header, so both can be
others without a compile of the model. If the outputs differ from those of the plan, something overlaps that may not.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bytewright.execute.description import Bundle
from bytewright.record.plan import Plan

_ALIGNMENT = 64


def needs_comparison(plan: Plan) -> bool:
    """Whether buffers overlap while they coexist, and a build without that can be made: not for devices."""
    shares = any(plan.shared_bytes(pair.source, pair.output) for step in plan.steps for pair in step.overlaps)
    return shares and not plan.devices and not plan.device_workspaces


def spread(bundle: Bundle, folder: Path) -> Bundle:
    """A copy of a bundle in a folder, with every buffer of its workspaces at an offset of its own."""
    offsets, sizes = _offsets(bundle.plan)
    names = bundle.names
    numbers = {names.argument(bundle.plan.buffers[name]): offset for name, offset in offsets.items()}
    macros = {names.size(bundle.plan.pools[pool]): size for pool, size in sizes.items()}
    for path in bundle.files:
        content = (bundle.directory / path).read_bytes()
        if path.endswith((".c", ".h")):
            content = _changed(content.decode(), numbers, macros).encode()
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    for pool in bundle.plan.caller_parameters:
        blob = bundle.blob(pool)
        target = folder / blob.relative_to(bundle.directory)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(blob.read_bytes())
    return replace(bundle, directory=folder)


def _offsets(plan: Plan) -> tuple[dict[str, int], dict[str, int]]:
    """One buffer after the other, by name; and the bytes of each pool."""
    offsets: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for pool in plan.workspaces:
        top = 0
        for buffer in plan.buffers_in(pool.name):
            step = max(buffer.alignment, buffer.line_bytes, _ALIGNMENT)
            offsets[buffer.name] = top = -(-top // step) * step
            top += buffer.extent_bytes
        sizes[pool.name] = max(top, pool.used_bytes)
    return offsets, sizes


def _changed(text: str, numbers: Mapping[str, int], macros: Mapping[str, int]) -> str:
    text = re.sub(
        r"\b(\w+)( = | )(\d+)(?=,| )",
        lambda m: f"{m[1]}{m[2]}{numbers[m[1]]}" if m[1] in numbers else m[0],
        text,
    )
    return re.sub(
        r"(#define (\w+) )(\d+)", lambda m: f"{m[1]}{macros[m[2]]}" if m[2] in macros else m[0], text
    )
