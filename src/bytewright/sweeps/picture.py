"""A sweep as a picture: RAM across, and upwards parameters, or instructions where they are measured."""

from __future__ import annotations

from collections.abc import Sequence

from bytewright.show.view import Point, Points
from bytewright.sweeps.evaluate import Result
from bytewright.sweeps.pareto import pareto


def points_of(results: Sequence[Result]) -> Points:
    """A point for each configuration that fits; those of a model that nothing beats are filled, and joined."""
    fitting = [result for result in results if result["fits"]]
    has_cost = any(result.get("instructions") is not None for result in fitting)
    across, up = "ram_bytes", "instructions" if has_cost else "parameter_bytes"
    best = {result["key"] for result in pareto(results, (across, up))}
    unit = "instructions" if has_cost else "B of parameters"
    return Points(
        "All that fit; filled are those that nothing beats",
        "B of RAM",
        unit,
        tuple(
            Point(
                f"{result['model']} for {result['target']} {' '.join(result['options'])}: "
                f"{result[across]} B of RAM, {result.get(up) or 0} {unit}",
                result[across],
                result.get(up) or 0,
                result["model"],
                result["key"] in best,
            )
            for result in fitting
        ),
    )
