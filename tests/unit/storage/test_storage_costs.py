"""Which buffers get the preferred pool: those that are touched most per byte, whatever the order of names."""

from __future__ import annotations

from pathlib import Path

from bytewright.compiler.pipeline import compile_model
from bytewright.ir.analyses.traffic import entry_traffic
from bytewright.target import Overrides, apply_overrides, load_target
from bytewright.target.options import parse_pool_option

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"


def test_the_constants_read_most_per_byte_get_the_preferred_pool() -> None:
    capacity = 2048
    overrides = Overrides(parameters=(parse_pool_option(f"itcm={capacity}"), parse_pool_option("flash")))
    compiled = compile_model(DIGITS, apply_overrides(load_target("mps3-an547"), overrides))
    module = compiled.module
    traffic = entry_traffic(module.main, {kernel.name: kernel for kernel in module.kernels})
    items = [
        (traffic[c.buffer.name].read_bytes, len(c.data.content), str(c.scope))
        for c in module.constant_buffers
        if c.buffer.name in traffic
    ]
    served = sum(read for read, _, scope in items if scope == "global.itcm")
    assert 0 < served < sum(read for read, _, _ in items)
    # Packing by reads per byte, with room for every gap that alignment could leave, is a bound from below.
    room = capacity - 16 * len(items)
    greedy = 0
    for read, size, _ in sorted(items, key=lambda item: -item[0] / item[1]):
        if size <= room:
            room -= size
            greedy += read
    assert greedy > 0
    assert served >= greedy


def test_the_order_of_preference_holds_where_all_fits() -> None:
    overrides = Overrides(parameters=(parse_pool_option("ddr=64KiB"), parse_pool_option("flash")))
    compiled = compile_model(DIGITS, apply_overrides(load_target("mps3-an547"), overrides))
    assert {str(c.scope) for c in compiled.module.constant_buffers} == {"global.ddr"}
