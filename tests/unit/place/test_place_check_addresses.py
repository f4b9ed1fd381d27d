"""Buffers that no address or no index of the generated C reaches are refused, at the very byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.diagnostics import CompileError
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate, Seq
from bytewright.ir.scope import GLOBAL
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType
from bytewright.scopes.check_addresses import LARGEST_INDEX, check_addresses
from bytewright.target.model import Target
from bytewright.target.registry import load_target
from support.hand_built import chain, reverse_kernel


def _of_width(bits: int) -> Target:
    host = load_target("host")
    return replace(host, devices=(replace(host.devices[0], address_bits=bits),))


def _with_scratch(num_elements: int, dtype: DType = DType.I8) -> Module:
    kernel = reverse_kernel("k", 8)
    wide = Allocate(Buffer("wide", (num_elements,), dtype, 16), Storage(GLOBAL))
    return chain("m", [replace(kernel, body=Seq((wide, *kernel.body.statements)))], 8)


@pytest.mark.parametrize(
    ("bits", "dtype", "largest", "said"),
    [
        (
            16,
            DType.I8,
            32767,
            "has 32768 B, but device 'cpu' has 16-bit addresses, so the largest array has 32767 B",
        ),
        (32, DType.I8, LARGEST_INDEX, "has 2147483648 B, but device 'cpu' has 32-bit addresses"),
        (32, DType.F32, (1 << 29) - 1, "has 2147483648 B, but device 'cpu' has 32-bit addresses"),
        (
            64,
            DType.I8,
            LARGEST_INDEX,
            "has 2147483648 elements, but an index in C counts no more than 2147483647",
        ),
        (
            64,
            DType.F32,
            LARGEST_INDEX,
            "has 2147483648 elements, but an index in C counts no more than 2147483647",
        ),
    ],
)
def test_the_limit_is_exact(bits: int, dtype: DType, largest: int, said: str) -> None:
    target = _of_width(bits)
    check_addresses(_with_scratch(largest, dtype), target)
    with pytest.raises(CompileError) as caught:
        check_addresses(_with_scratch(largest + 1, dtype), target)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW301"
    assert diagnostic.message == f"'wide' {said}" or diagnostic.message.startswith(f"'wide' {said},")


def test_every_buffer_that_is_too_large_is_named() -> None:
    size_bytes = 1 << 15
    with pytest.raises(CompileError) as caught:
        check_addresses(chain("m", [reverse_kernel("k", size_bytes)], size_bytes), _of_width(16))
    names = [diagnostic.message.partition(" ")[0] for diagnostic in caught.value.diagnostics]
    assert {"'source'", "'scratch0'", "'result'"} <= set(names)
    assert len(names) == 5  # the model's input and output too
