"""Bundles of kws that read some parameters from memory that can be written, brought there in each possible way.

On the host, pool `fast` is in `ram` and loaded from `rom`; on the board it is in DTCM, a second one is in ISRAM, and
both are loaded from flash. The pool for the rest follows. Which parameters go where is pinned.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.ir.border import Io
from bytewright.options import Options, Pin
from bytewright.target.dump import dump
from bytewright.target.load import load_description
from bytewright.target.model import Target
from bytewright.target.registry import load_target
from support.shared_models import BOARD, HOST, KWS, model_path, new_folder

Loader = Literal["linker", "copy"]
Provider = Literal["generated", "caller"]

COMBINATIONS: tuple[tuple[Loader, Provider], ...] = (
    ("linker", "generated"),
    ("linker", "caller"),
    ("copy", "generated"),
    ("copy", "caller"),
)
POOL_BYTES = 10240
# Weights, bias, multiplier and shift of two of the pointwise convolutions; shifts have 32 bits in vectors of the board.
FAST_BYTES = 2 * (4096 + 256 + 256 + 64)
BOARD_FAST_BYTES = 2 * (4096 + 256 + 256 + 256)
BOARD_SECOND_BYTES = BOARD_FAST_BYTES // 2  # of a third convolution


def host_target(load: Loader, provider: Provider, rest: Provider = "generated") -> Target:
    """The host with pool `fast` for the parameters that are read most; `rest` provides those in `rodata`."""
    description: dict[str, Any] = dump(load_target(HOST))
    description["parameters"][0]["provider"] = rest
    return load_description(
        description | {"parameters": [_fast("ram", "rom", load, provider), *description["parameters"]]}
    )


def several_copies() -> Target:
    """The host with two pools that are copied to memory of the application, and one that it lends."""
    description: dict[str, Any] = dump(load_target(HOST))
    fast = _fast("ram", "rom", "copy", "caller")
    more = fast | {"name": "more"}
    rest = description["parameters"][0] | {"provider": "caller"}
    return load_description(description | {"parameters": [fast, more, rest]})


def board_target(load: Loader, provider: Provider) -> Target:
    """The mps3-an547 with pools `fast` in DTCM and `middle` in ISRAM."""
    description: dict[str, Any] = dump(load_target(BOARD))
    fast = _fast("dtcm", "flash", load, provider)
    middle = _fast("isram", "flash", load, provider) | {"name": "middle"}
    (flash,) = description["parameters"]
    flash = {key: value for key, value in flash.items() if key != "size"}
    isram = {key: value for key, value in description["workspace"][1].items() if key != "size"}
    workspaces = [description["workspace"][0], isram]
    return load_description(
        description | {"workspace": workspaces, "parameters": [fast, middle, flash]}, "board"
    )


def _fast(memory: str, kept_in: str, load: Loader, provider: Provider) -> dict[str, Any]:
    return {
        "name": "fast",
        "memory": memory,
        "size": POOL_BYTES,
        "alignment": 32,
        "provider": provider,
        "load": load,
        "from": kept_in,
    }


@cache
def loaded_bundle(target: Target, io: Io = Io.CALLER) -> Path:
    """The folder of kws for one of these targets."""
    fast, *others, rest = [pool.name for pool in target.parameter_pools]
    second = [*others, rest][0]
    pins = [Pin("conv2d_[24]/*", fast), Pin("conv2d_6/*", second)]
    pins += [Pin(pattern, rest) for pattern in ("conv2d_[08]/*", "depthwise*", "fully*", "softmax*")]
    folder = new_folder() / "bundle"
    write_bundle(compile_model(model_path(KWS), target, Options(pins=tuple(pins), io=io)).files, folder)
    return folder
