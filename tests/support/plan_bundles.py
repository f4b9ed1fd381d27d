"""Six kinds of bundles whose plans differ most, each small: what a sweep over plan.json goes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.ir.border import Io
from bytewright.options import Options, Pin, Rows
from bytewright.target.registry import load_target
from support.device_bundles import DEVICE_BUNDLES
from support.digits_bundle import DIGITS
from support.entry_programs import WAKE
from support.parsing import parse_module
from support.row_bundle import compiled_by_rows


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


BUNDLES: Mapping[str, Callable[[], Compiled]] = {
    "plain": plain,
    "pinned": pinned,
    "own io": own_io,
    "rows": compiled_by_rows,
    "second device": second_device,
    "requesting": requesting,
    "entries": several_entries,
}
