"""Kinds of bundles whose plans differ most, each small: what a sweep over plan.json goes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.ir.border import Io
from bytewright.options import Options, Pin, Rows, StreamAxis, parse_open_option
from bytewright.target.registry import load_target
from support import two_devices
from support.device_bundles import DEVICE_BUNDLES
from support.digits_bundle import DIGITS
from support.entry_programs import WAKE
from support.loaded_parameters import several_copies
from support.parsing import parse_module
from support.row_bundle import compiled_by_rows
from support.streamed_nets import keyword_net
from tflite_writer import ModelBuilder

VELA = Path(__file__).parents[1] / "data" / "vela" / "5.2_ethos-u55-128_shared_sram.tflite"


@cache
def plain() -> Compiled:
    """The example on this machine, every tensor whole."""
    return compile_model(DIGITS, load_target("host"), Options(rows=Rows.OFF))


@cache
def pinned() -> Compiled:
    """The example on a board of several pools, with a buffer that has to be in one of them."""
    pins = (Pin("conv2d_0/out", "isram", offset=64),)
    return compile_model(DIGITS, load_target("mps3-an547"), Options(rows=Rows.OFF, pins=pins))


@cache
def own_io() -> Compiled:
    """The example with its input and output in the workspace."""
    return compile_model(DIGITS, load_target("mps2-an386"), Options(io=Io.WORKSPACE))


@cache
def second_device() -> Compiled:
    """The example with a layer on a second core."""
    return DEVICE_BUNDLES["second core"]()


@cache
def requesting() -> Compiled:
    """Packed calls, open extents, and scratch that is requested from an arena."""
    return DEVICE_BUNDLES["extents, packed"]()


@cache
def several_entries() -> Compiled:
    """Two entries over one state, with inputs and outputs in the workspace."""
    return compile_model(parse_module(WAKE, {}, {}), load_target("host"), Options(io=Io.WORKSPACE))


@cache
def streamed() -> Compiled:
    """A window of 19 frames, two of them with each run."""
    content = keyword_net(19, width=4, channels=4, blocks=1)
    return _of_file("net", content, Options(stream=(StreamAxis(1),)))


@cache
def open_extents() -> Compiled:
    """Every second of 1 to 21 rows."""
    builder = ModelBuilder()
    shapes = ((1, 12, 1, 6), (1, 6, 1, 6))
    given, kept = (builder.tensor(f"v{i}", shape, "int8", scale=0.5) for i, shape in enumerate(shapes))
    options = {"filter_height": 3, "filter_width": 1, "stride_h": 2, "stride_w": 1, "padding": "SAME"}
    builder.operator("MAX_POOL_2D", [given], [kept], **options)
    asked = Options(open=(parse_open_option("1=time:1..21"),))
    return _of_file("halves", builder.build([given], [kept]), asked)


@cache
def accelerated() -> Compiled:
    """Command streams of an Ethos-U."""
    return compile_model(VELA, load_target("corstone-300-u55"))


@cache
def pushed() -> Compiled:
    """The example with its input row by row."""
    return compile_model(DIGITS, load_target("mps3-an547"), Options(io=Io.ROWS))


@cache
def copied() -> Compiled:
    """The example with parameters that are copied to memory of the application."""
    return compile_model(DIGITS, several_copies())


def _of_file(name: str, content: bytes, options: Options) -> Compiled:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.tflite"
        path.write_bytes(content)
        return compile_model(path, load_target("host"), options)


BUNDLES: Mapping[str, Callable[[], Compiled]] = {
    "plain": plain,
    "pinned": pinned,
    "own io": own_io,
    "rows": compiled_by_rows,
    "second device": second_device,
    "requesting": requesting,
    "entries": several_entries,
    "stream": streamed,
    "open extents": open_extents,
    "accelerator": accelerated,
    "rows pushed": pushed,
    "copied parameters": copied,
    "packed": DEVICE_BUNDLES["functions, packed"],
    "three devices": lambda: two_devices.compiled(two_devices.PROGRAM, two_devices.TARGET),
}
