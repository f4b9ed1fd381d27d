"""Paranoid runs: what is dead is poisoned, what a step may not write is watched, and corrupted plans are caught.

A plan whose offsets overlap is caught three times over, each time by one guard alone: the validator that stands
behind every planner, `check` on a bundle whose hashes were all made anew, and a run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bytewright.bundle.write import write_bundle
from bytewright.cli.main import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.paranoid import GUARD_BYTES, run_paranoid
from bytewright.execute.watch import watch_plan
from bytewright.inspect.check import check_bundle
from bytewright.options import Options, Rows
from bytewright.plan.problem import Buffer, Candidate, Contract, Pool, Problem
from bytewright.plan.solution import Placement
from bytewright.plan.validate import validate
from bytewright.record.plan import Plan
from bytewright.record.plan_file import read_plan
from bytewright.target.registry import load_target
from support import shared_models as models
from support.compilers import UNOPTIMISED
from support.corrupt_plan import alive_at_once, move_buffer, overlapping_pair

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without rings, so that tensors are whole, and bytes between them free; test_paranoid_rows.py has rings."""
    return digits_in(tmp_path_factory.mktemp("digits") / "bundle", Rows.OFF)


def digits_in(folder: Path, rows: Rows) -> Path:
    write_bundle(compile_model(DIGITS, load_target("host"), Options(rows=rows)).files, folder)
    return folder


def violation(folder: Path) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        run_paranoid(folder, options=UNOPTIMISED)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW404"
    assert diagnostic.exit_code == 4
    return diagnostic


def edit_source(source: Path, folder: Path, old: str, new: str) -> Path:
    """A copy of a bundle with a change in `<model>.c` that the plan does not know of."""
    plan = read_plan(source)
    first = next(b for b in plan.buffers.values() if b.place.kind == "planned")
    assert first.place.offset is not None
    move_buffer(source, folder, first.name, first.place.offset)  # where it is
    path = folder / "src" / f"{plan.model}.c"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", [*models.INT8, *models.FLOAT])
def test_every_model_keeps_to_its_plan(name: str) -> None:
    folder = models.bundle(name, models.target_with(models.HOST))
    ((array,),) = models.random_inputs(name, 1, 7)
    run = run_paranoid(folder, [array], options=UNOPTIMISED)
    plan = read_plan(folder)
    assert run.num_steps == len(plan.steps) > 5
    assert run.watched_bytes == sum(
        pool.used_bytes + 2 * GUARD_BYTES["host"]
        for pool in plan.pools.values()
        if pool.role == "workspace" and pool.used_bytes
    )
    assert run.result.outputs[0].any()


@pytest.mark.parametrize("rows", list(Rows))
def test_the_digits_example_keeps_to_its_plan(rows: Rows, tmp_path: Path) -> None:
    folder = digits_in(tmp_path / "bundle", rows)
    assert run_paranoid(folder, seed=3, options=UNOPTIMISED).num_steps == len(read_plan(folder).steps)


def test_the_command(digits: Path) -> None:
    done = CliRunner().invoke(bytewright, ["run", str(digits), "--paranoid"])
    assert done.exit_code == 0
    assert re.search(
        r"^paranoid: \d+ steps, \d+ B of workspace and guards watched", done.stdout, re.MULTILINE
    )
    plain = CliRunner().invoke(bytewright, ["run", str(digits), "--json"])
    paranoid = CliRunner().invoke(bytewright, ["run", str(digits), "--paranoid", "--json"])
    assert json.loads(paranoid.stdout)["outputs"] == json.loads(plain.stdout)["outputs"]


def test_inputs_and_outputs_in_the_workspace(tmp_path: Path) -> None:
    """An input is alive before the first step and an output after the last: neither is poisoned."""
    from bytewright.ir.border import Io

    write_bundle(
        compile_model(DIGITS, load_target("host"), Options(io=Io.WORKSPACE)).files, tmp_path / "bundle"
    )
    run = run_paranoid(tmp_path / "bundle", seed=3, options=UNOPTIMISED)
    assert run.result.outputs[0].any()


def test_a_workspace_of_the_bundle_itself(tmp_path: Path) -> None:
    target = models.target_with(models.HOST, "ram=generated")
    write_bundle(compile_model(DIGITS, target).files, tmp_path / "bundle")
    assert (
        run_paranoid(tmp_path / "bundle", options=UNOPTIMISED).watched_bytes
        == read_plan(tmp_path / "bundle").workspace_bytes
    )


def placements_of(plan: Plan) -> tuple[Problem, list[Placement]]:
    """The workspace problem and its solution, from the plan's numbers."""
    placed = [b for b in plan.buffers.values() if b.place.kind == "planned"]
    buffers = [
        Buffer(
            b.name,
            b.size_bytes,
            (b.live or (0, 0),),
            b.alignment,
            candidates=tuple(Candidate(name) for name in b.candidates),
        )
        for b in placed
    ]
    pools = [Pool(p.name, p.capacity_bytes) for p in plan.pools.values() if p.role == "workspace"]
    contracts = [
        Contract(pair.source, pair.output, pair.below_bytes, pair.above_bytes)
        for step in plan.steps
        for pair in step.overlaps
    ]
    problem = Problem(tuple(buffers), tuple(pools), tuple(contracts))
    return problem, [Placement(b.name, b.place.name, b.place.offset or 0) for b in placed]


def test_overlap_is_caught_by_the_validator(digits: Path) -> None:
    plan = read_plan(digits)
    first, second = overlapping_pair(plan)
    problem, placements = placements_of(plan)
    assert not validate(problem, placements)
    moved = [
        Placement(p.buffer, p.pool, first.place.offset or 0) if p.buffer == second.name else p
        for p in placements
    ]
    violations = [str(violation) for violation in validate(problem, moved)]
    assert any(first.name in text and second.name in text for text in violations)


def test_overlap_is_caught_by_check(digits: Path, tmp_path: Path) -> None:
    """All hashes are right: nothing but the offsets is wrong."""
    plan = read_plan(digits)
    first, second = overlapping_pair(plan)
    still = move_buffer(digits, tmp_path / "same", second.name, second.place.offset or 0, consistent=True)
    check_bundle(still)
    moved = move_buffer(digits, tmp_path / "moved", second.name, first.place.offset or 0, consistent=True)
    with pytest.raises(CompileError) as caught:
        check_bundle(moved)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW401"
    assert any(first.name in note and second.name in note for note in diagnostic.notes)


def test_overlap_is_caught_by_a_paranoid_run(digits: Path, tmp_path: Path) -> None:
    plan = read_plan(digits)
    first, second = overlapping_pair(plan)
    moved = move_buffer(digits, tmp_path / "moved", second.name, first.place.offset or 0, consistent=True)
    done = CliRunner().invoke(bytewright, ["run", str(moved), "--paranoid"])
    assert done.exit_code == 4
    assert done.stdout == ""
    diagnostic = violation(moved)
    size = min(first.size_bytes, second.size_bytes)
    at = first.place.offset or 0
    for note in diagnostic.notes:
        found = re.fullmatch(
            r"step (\d+) \((\w+)\) changed ram\+(\d+)\.\.(\d+) \((\d+) B\), where '(.*)' lies", note
        )
        assert found is not None
        step, kernel, begin, last, _, buffer = found.groups()
        assert plan.steps[int(step)].kernel == kernel
        assert buffer in (first.name, second.name)
        assert buffer not in plan.steps[int(step)].writes
        assert at <= int(begin) <= int(last) < at + size
    assert diagnostic.notes


def test_other_overlaps_of_two_tensors_are_caught(digits: Path, tmp_path: Path) -> None:
    plan = read_plan(digits)
    tensors = [b for b in plan.buffers.values() if b.place.kind == "planned" and b.role == "tensor"]
    agreed = {
        frozenset((pair.source, pair.output))
        for step in plan.steps
        for pair in step.overlaps
        if min(pair.below_bytes, pair.above_bytes) <= 0
    }
    assert agreed  # those may begin at one byte
    pairs = [
        (a, b)
        for a in tensors
        for b in tensors
        if a is not b and alive_at_once(a, b) and frozenset((a.name, b.name)) not in agreed
    ]
    assert len(pairs) > 4
    for index, (first, second) in enumerate(pairs[1:5]):
        offset = first.place.offset or 0
        violation(move_buffer(digits, tmp_path / str(index), second.name, offset))


def test_c_that_differs_from_its_plan_is_caught(digits: Path, tmp_path: Path) -> None:
    """The plan is right, the C writes elsewhere: into bytes that the plan calls dead, or past the pool."""
    plan = read_plan(digits)
    first, second = overlapping_pair(plan)
    moved = move_buffer(digits, tmp_path / "live", second.name, first.place.offset or 0, in_plan=False)
    assert any(f"where '{first.name}' lies" in note for note in violation(moved).notes)
    end = plan.pools["ram"].used_bytes
    outside = move_buffer(digits, tmp_path / "outside", second.name, end, in_plan=False)
    assert any(f"past pool 'ram' of {end} B" in note for note in violation(outside).notes)


def test_a_write_before_the_pool_is_caught(digits: Path, tmp_path: Path) -> None:
    changed = edit_source(
        digits, tmp_path / "bundle", "    DIGITS_STEP(1, ram);", "    ram[-3] ^= 1;\n    DIGITS_STEP(1, ram);"
    )
    assert "changed 3 B before pool 'ram' and on" in violation(changed).notes[0]


def test_a_write_into_a_dead_byte_is_caught(digits: Path, tmp_path: Path) -> None:
    """What lies there is free: no output changes, and still it is seen."""
    watch = watch_plan(read_plan(digits), 64)
    used = read_plan(digits).pools["ram"].used_bytes
    free = next(r for r in watch.still if r.buffer is None and r.step == 0 and 0 <= r.first < used)
    statement = f"    ram[{free.first}] = (uint8_t)(ram[{free.first}] + 1);\n"
    changed = edit_source(
        digits, tmp_path / "bundle", "    DIGITS_STEP(1, ram);", f"{statement}    DIGITS_STEP(1, ram);"
    )
    assert (
        f"changed ram+{free.first}..{free.first} (1 B), which the plan calls dead"
        in violation(changed).notes[0]
    )


def test_a_read_of_a_dead_byte_is_caught(digits: Path, tmp_path: Path) -> None:
    """Reading leaves no trace in memory: the outputs give it away."""
    plan = read_plan(digits)
    port = plan.outputs[0].c_name
    watch = watch_plan(plan, 64)
    number = len(plan.steps)
    free = next(r for r in watch.dead if r.step == number)
    step = f"    DIGITS_STEP({number}, ram);"
    changed = edit_source(
        digits, tmp_path / "bundle", step, f"{step}\n    outputs->{port}[0] = (int8_t)ram[{free.first}];"
    )
    (note,) = violation(changed).notes
    assert note.startswith("output '")
    assert "depends on bytes that the plan calls dead: 1 of its" in note


def test_a_workspace_of_the_bundle_itself_has_guards_too(tmp_path: Path) -> None:
    target = models.target_with(models.HOST, "ram=generated")
    write_bundle(compile_model(DIGITS, target).files, tmp_path / "bundle")
    changed = edit_source(
        tmp_path / "bundle",
        tmp_path / "changed",
        "    DIGITS_STEP(1, ram);",
        "    ram[DIGITS_RAM_WORKSPACE_SIZE] = 1;\n    DIGITS_STEP(1, ram);",
    )
    assert any("runtime error" in note or "AddressSanitizer" in note for note in violation(changed).notes)


def test_a_lifetime_that_ends_too_early_is_caught(digits: Path, tmp_path: Path) -> None:
    """The plan calls a tensor dead before it is read."""
    plan = read_plan(digits)
    tensor = next(
        b
        for b in plan.buffers.values()
        if b.place.kind == "planned" and b.live and b.first_step != b.last_step
    )
    same = move_buffer(digits, tmp_path / "bundle", tensor.name, tensor.place.offset or 0)
    document = json.loads((same / "plan.json").read_text(encoding="utf-8"))
    (entry,) = (entry for entry in document["buffers"] if entry["name"] == tensor.name)
    assert tensor.first_step is not None
    entry["live"][1] = plan.steps[tensor.first_step].ticks[1]
    (same / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    inputs = [np.arange(np.prod(t.shape)).reshape(t.shape).astype(np.int8) for t in plan.inputs]
    with pytest.raises(CompileError, match="depends on bytes that the plan calls dead"):
        run_paranoid(same, inputs, options=UNOPTIMISED)


def test_tables_say_what_lives(digits: Path) -> None:
    """Before a step, what is not poisoned is exactly what is alive then."""
    plan = read_plan(digits)
    watch = watch_plan(plan, 64)
    used = plan.pools["ram"].used_bytes
    for step in plan.steps:
        alive = np.zeros(used, bool)
        for buffer in plan.buffers.values():
            if (
                buffer.place.kind == "planned"
                and buffer.live
                and buffer.live[0] < step.ticks[0] < buffer.live[1]
            ):
                alive[buffer.place.offset or 0 :][: buffer.size_bytes] = True
        poisoned = np.zeros(used, bool)
        for entry in watch.dead:
            if entry.step == step.index:
                poisoned[entry.first : entry.end] = True
        assert (poisoned == ~alive).all()
    assert any(entry.step == len(plan.steps) and entry.end == used for entry in watch.dead)
