"""Problems that nobody tuned for: what the default solver reaches on them, with a small budget."""

from __future__ import annotations

import pytest
from plan_families import FAMILIES, MODELS, network

from bytewright.plan import native
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve


@pytest.mark.skipif(not native.AVAILABLE, reason="installed without a C compiler")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_gap_is_small(family):
    solution = solve(FAMILIES[family](1), node_budget=30_000)
    use = solution.pools[0]
    assert (
        use.top_bytes
        <= {"cut": 1.15, "dense": 1.05, "aligned": 1.08}.get(family, 1.03) * use.lower_bound_bytes
    )


def test_real_networks_are_optimal_with_a_few_hundred_nodes():
    models = sorted(MODELS.glob("*.tflite"))
    if not models:
        pytest.skip("the shared models are not there")
    for path in models:
        solution = solve(network(path))
        assert solution.status is Status.OPTIMAL, path.name
        assert solution.statistics.nodes <= 300, path.name
        assert solve(network(path), "exact", native=False).statistics.nodes <= 300, path.name
