"""Random networks of images, compiled to C, equal LiteRT bit for bit under sanitizers: residuals, odd sizes and all.

BYTEWRIGHT_TESTS=thorough takes four times as many.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bytewright.ir.border import Io
from support.against_reference import assert_equals_reference
from support.many_models import SANITIZERS
from support.reference import LiteRt
from support.spatial_networks import SpatialNetwork, spatial_model, spatial_network
from support.tiers import TIMES, some

SANITIZED = ("-O0", *SANITIZERS)
FASTEST = ("-O3", "-march=native")


@pytest.mark.run
@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "count", "dtype", "target", "io", "flags"),
    [
        pytest.param(0, 20, "int8", "host", Io.CALLER, SANITIZED, id="caller"),
        pytest.param(10_000, 20, "int8", "host", Io.WORKSPACE, SANITIZED, id="workspace"),
        pytest.param(20_000, 20, "int8", "mps3-an547", Io.CALLER, SANITIZED, id="kernels-of-the-board"),
        pytest.param(30_000, 4, "int8", "host", Io.CALLER, FASTEST, id="fastest"),
        pytest.param(40_000, 20, "float32", "host", Io.CALLER, SANITIZED, id="float32"),
    ],
)
def test_networks(
    first: int, count: int, dtype: str, target: str, io: Io, flags: tuple[str, ...], tmp_path: Path
) -> None:
    models = [spatial_model(seed, dtype) for seed in some(range(first, first + count * TIMES), 2)]
    for begin in range(0, len(models), 20):  # in one program each
        part = models[begin : begin + 20]
        assert_equals_reference(part, tmp_path / str(begin), target=target, flags=flags, io=io, every=4)


NETWORKS = [spatial_network(seed) for seed in range(200)]


def test_the_generator_draws_what_it_promises() -> None:
    facts: Counter[str] = Counter()
    for network in NETWORKS:
        facts.update(features(network))
    rare = {name: count for name, count in facts.items() if count < 10}
    assert not rare
    assert len(facts) == 26, sorted(facts)
    lengths = [len(network.operators) for network in NETWORKS]
    assert min(lengths) == 3
    assert sum(length >= 12 for length in lengths) > 50
    rows = [network.shapes[0][1] for network in NETWORKS]
    assert (min(rows), max(rows)) == (5, 40)


def features(network: SpatialNetwork) -> set[str]:
    """What a network has of the things that passes by rows have to get right."""
    found = {"not square"} if network.shapes[0][1] != network.shapes[0][2] else set[str]()
    if network.shapes[0][1] % 2:
        found.add("odd")
    readers = Counter(source for operator in network.operators for source in set(operator.sources))
    readers.update(network.results)
    found |= {f"readers: {min(count, 3)}" for count in readers.values()}
    found |= {"two results"} if len(network.results) > 1 else set()
    for operator in network.operators:
        found.add(operator.kind)
        options = operator.options
        if "padding" in options:
            found.add(options["padding"])
            found |= {"stride"} if options.get("stride_h", 1) > 1 else set()
        if options.get("dilation_h_factor", 1) > 1:
            found.add("dilation")
        if operator.kind == "CONCATENATION":
            found.add(f"axis {options['axis']}")
    return found - {"HARD_SWISH", "RELU6", "LEAKY_RELU", "LOGISTIC"}


def test_values_stay_alive_to_the_end() -> None:
    """Where nearly everything is one value, a wrong row would not be seen."""
    num_alive = num_tensors = 0
    for seed in range(40):
        model = spatial_model(seed)
        reference = LiteRt(model.content, keep_all_tensors=True)
        reference.run(*model.inputs(2))
        for operator in spatial_network(seed).operators:
            values = reference.tensor(operator.result)
            num_alive += len(np.unique(values)) >= min(30, values.size // 4)
            num_tensors += 1
    assert num_alive / num_tensors > 0.9


def test_limits_are_parameters() -> None:
    for seed in range(30):
        network = spatial_network(seed, num_operators=(20, 30), extents=(7, 9))
        assert len(network.operators) >= 20
        assert all(7 <= extent <= 9 for extent in network.shapes[0][1:3])
    assert spatial_model(3).content == spatial_model(3).content != spatial_model(4).content
