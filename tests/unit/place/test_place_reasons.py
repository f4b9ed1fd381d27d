"""What is said of why a value is where it is says no other device than its own."""

from __future__ import annotations

import re
from random import Random

import pytest

from bytewright.diagnostics import CompileError
from bytewright.ir import Io
from bytewright.place.plan_devices import plan_devices
from support.placed_graphs import values_of
from support.random_graphs import random_graph
from support.three_devices import annotated, three_devices


@pytest.mark.parametrize("seeds", [range(60)])
def test_a_reason_names_the_device_of_its_value(seeds: range) -> None:
    """A value of the application stayed with it, "on_device puts it on device 'npu'", and so did what shares memory."""
    num_reasons = 0
    for seed in seeds:
        random = Random(seed)
        module = annotated(random_graph(random).module, random, often=0.4, copies=True, scopes=True)
        try:
            placed = plan_devices(module, three_devices(wide=bool(seed % 2)), io=Io.CALLER)
        except CompileError:
            continue
        for value in (value for function in placed.functions for value in values_of(function)):
            for reason in (value.reason or "").split("; "):
                named = re.match(r"on_device puts .* on device '(\w+)'", reason)
                if named:
                    num_reasons += 1
                    assert named[1] == value.type.place.device, f"'{value.name}': {value.reason}"
    assert num_reasons > 200
