"""Networks of functions of elements, choices and reductions, for several instruction sets, equal the references."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.target.isa.find import require_isa
from bytewright.target.isa.this_machine import this_machine
from support.against_reference import assert_equals_reference
from support.many_models import SANITIZERS
from support.random_mixtures import random_mixture, random_reduction_of
from support.random_models import RandomModel
from support.tiers import THOROUGH

SCALE = 20 if THOROUGH else 1
REDUCTIONS = ("REDUCE_MAX", "REDUCE_MIN", "SUM")


def models(dtype: str, first: int, count: int = 3, *, is_tflm: bool = False) -> list[RandomModel]:
    numbers = range(first, first + count * SCALE)
    return [
        *(random_mixture(number, dtype, is_tflm=is_tflm) for number in numbers),
        *(random_reduction_of(REDUCTIONS[number % 3], number, dtype) for number in numbers),
    ]


@pytest.mark.parametrize("target", ["host", "mps3-an547", "mps2-an386"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_portable_c(target: str, dtype: str, tmp_path: Path) -> None:
    first = 100 * ("host", "mps3-an547", "mps2-an386").index(target)
    flags = ("-O1", *SANITIZERS) if (target, dtype) == ("host", "int8") else ("-O1",)
    assert_equals_reference(models(dtype, first), tmp_path, target=target, flags=flags)


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_kernels_of_tflm(target: str, tmp_path: Path) -> None:
    some = models("int8", 300, is_tflm=True)
    assert_equals_reference(some, tmp_path, target=target, numerics=Numerics.TFLM)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4-vnni"])
def test_lanes_of_this_machine(target: str, dtype: str, tmp_path: Path) -> None:
    isa = require_isa(target)
    if not this_machine().executes(isa) or this_machine().lacks(isa):
        pytest.skip(f"this machine does not have what {target} needs")
    assert_equals_reference(models(dtype, 400, count=2), tmp_path, target=target, flags=("-O2", *isa.flags))
