"""Bundles with devices and packed forms, one for each way in which their C differs from that of other bundles."""

from __future__ import annotations

from collections.abc import Mapping

from bytewright.compiler.pipeline import compile_model
from bytewright.ir.border import Io
from bytewright.ir.packed import Form
from bytewright.options import Options, parse_on_option
from bytewright.target import load_target
from support import packed_program
from support.digits_bundle import DIGITS
from support.flow_program import EXTENTS, FLOW, REQUESTING
from support.pair_program import BOARD
from support.two_devices import compiled

_PACKED = Form.PACKED
_ON = (parse_on_option("DEPTHWISE_CONV_2D=core1"),)
DEVICE_BUNDLES = {
    "flow": lambda: compiled(FLOW),
    "flow, packed": lambda: compiled(FLOW, options=Options(calling_form=_PACKED)),
    "flow, own inputs": lambda: compiled(FLOW, options=Options(io=Io.WORKSPACE)),
    "extents": lambda: compiled(EXTENTS, REQUESTING),
    "extents, packed": lambda: compiled(EXTENTS, REQUESTING, Options(calling_form=_PACKED)),
    "functions, packed": lambda: packed_program.compiled(calling_form=_PACKED, entry_form=_PACKED),
    "second core": lambda: compile_model(DIGITS, load_target(BOARD), Options(on=_ON)),
    "second core, packed": lambda: compile_model(
        DIGITS, load_target(BOARD), Options(on=_ON, batch_max=3, calling_form=_PACKED)
    ),
}


def device_files(name: str) -> Mapping[str, bytes]:
    """The files of one of them."""
    return DEVICE_BUNDLES[name]().files
