"""The planner against CP-SAT: `make bench-plan`, or `python benchmarks/plan.py --help`.

Prints the hard instances (decided at their capacity, then minimised), the same minimised by CP-SAT, and
families of generated problems. Seconds are CPU seconds of this process, and beside them the same in units of
the calibration loop below, which allows comparison between machines: multiply by the loop's time on another.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "plan"))

from plan_families import FAMILIES, MODELS, network  # noqa: E402
from plan_reference import minimise_with_rectangles  # noqa: E402

from bytewright.plan.problem import Pool, Problem  # noqa: E402
from bytewright.plan.request import DEFAULT_NODE_BUDGET, Goal  # noqa: E402
from bytewright.plan.solution import Solution  # noqa: E402
from bytewright.plan.solve import solve  # noqa: E402
from bytewright.plan.table import read_buffers  # noqa: E402

INSTANCES = ROOT.parent / "shared" / "planner"
CAPACITY = 1048576
# What a machine does in one unit: so many steps of a linear congruential generator in plain Python.
CALIBRATION_STEPS = 5_000_000


def calibrate() -> float:
    """CPU seconds of the calibration loop: the least of three runs."""
    times = []
    for _ in range(3):
        begin, state = time.process_time(), 1
        for _ in range(CALIBRATION_STEPS):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        times.append(time.process_time() - begin)
    return min(times)


def timed(function: Callable[[], Solution]) -> tuple[Solution, float]:
    begin = time.process_time()
    solution = function()
    return solution, time.process_time() - begin


def bench_instances(letters: str, budget: int, cp_sat_seconds: float, unit: float) -> None:
    print(f"{'':3}{'decide at 1048576':>28}{'minimise':>46}{'CP-SAT, 1 worker':>26}")
    print(
        f"{'':3}{'nodes':>12}{'s':>8}{'units':>8}{'top':>12}{'bound':>10}{'nodes':>11}{'s':>8}{'top':>16}{'s':>8}"
    )
    total = 0.0
    for letter in letters:
        path = INSTANCES / f"{letter}.{CAPACITY}.csv"
        buffers = read_buffers(path).buffers
        bounded, free = Problem(buffers, (Pool("p", CAPACITY),)), Problem(buffers, (Pool("p"),))
        decided, seconds = timed(lambda p=bounded: solve(p, goal=Goal.DECIDE))
        total += seconds
        best, best_seconds = timed(lambda p=free: solve(p, node_budget=budget))
        fits = f"{decided.statistics.nodes:>12}{seconds:>8.2f}{seconds / unit:>8.2f}"
        use = best.pools[0]
        least = (
            f"{use.top_bytes:>12}{use.lower_bound_bytes:>10}{best.statistics.nodes:>11}{best_seconds:>8.2f}"
        )
        reference = ""
        if cp_sat_seconds:
            begin = time.process_time()
            top, proved = minimise_with_rectangles(free, cp_sat_seconds)
            text = "none" if top is None else f"{top}{'' if proved else ', open'}"
            reference = f"{text:>16}{time.process_time() - begin:>8.2f}"
        print(f"{letter:3}{fits if decided.has_plan else 'not solved':>28}{least}{reference}", flush=True)
    print(f"sum{'':12}{total:>8.2f}{total / unit:>8.2f}")


def bench_families(num_seeds: int, budget: int) -> None:
    print(
        f"\n{'family':>10}{'buffers':>9}{'proved':>9}{'mean gap %':>12}{'worst %':>9}{'nodes':>11}{'s each':>9}"
    )
    for name, generate in FAMILIES.items():
        gaps, nodes, seconds, proved = [], 0, 0.0, 0
        for seed in range(1, num_seeds + 1):
            problem = generate(seed)
            solution, used = timed(lambda p=problem: solve(p, node_budget=budget))
            use = solution.pools[0]
            gaps.append(100 * (use.top_bytes / use.lower_bound_bytes - 1))
            proved += use.optimal
            nodes += solution.statistics.nodes
            seconds += used
        print(
            f"{name:>10}{len(problem.buffers):>9}{proved:>6}/{num_seeds}{sum(gaps) / num_seeds:>12.3f}"
            f"{max(gaps):>9.3f}{nodes // num_seeds:>11}{seconds / num_seeds:>9.2f}",
            flush=True,
        )


def bench_networks() -> None:
    print(f"\n{'network':>28}{'buffers':>9}{'top':>10}{'bound':>10}{'nodes':>8}")
    for path in sorted(MODELS.glob("*.tflite")):
        problem = network(path)
        solution = solve(problem, "exact")
        use = solution.pools[0]
        print(
            f"{path.stem:>28}{len(problem.buffers):>9}{use.top_bytes:>10}{use.lower_bound_bytes:>10}"
            f"{solution.statistics.nodes:>8}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="The planner's benchmark.")
    parser.add_argument("--instances", default="ABCDEFGHIJK", help="letters of the hard instances")
    parser.add_argument("--budget", type=int, default=DEFAULT_NODE_BUDGET, help="nodes to minimise one")
    parser.add_argument(
        "--cp-sat-seconds", type=float, default=10.0, help="limit for CP-SAT; 0 leaves it out"
    )
    parser.add_argument("--seeds", type=int, default=5, help="problems of each family")
    parser.add_argument("--family-budget", type=int, default=300_000, help="nodes for one of them")
    options = parser.parse_args()
    unit = calibrate()
    print(f"calibration loop ({CALIBRATION_STEPS} steps): {unit:.3f} s, one unit\n")
    if INSTANCES.exists():
        bench_instances(options.instances, options.budget, options.cp_sat_seconds, unit)
    if options.seeds:
        bench_families(options.seeds, options.family_budget)
    bench_networks()


if __name__ == "__main__":
    main()
