"""What the Python interface hands out can be pickled and copied, and takes paths and options in every usual form."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import pytest

import bytewright
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import CODES, CompileError, Diagnostic
from bytewright.execute.run import run_batch, run_bundle
from bytewright.execute.tools import CrashError
from bytewright.inspect.check import check_bundle
from bytewright.plan.problem import Problem
from bytewright.plan.solution import Placement
from bytewright.plan.solve import SOLVERS, register_solver
from bytewright.plan.table import read_buffers
from bytewright.record.plan import Plan
from bytewright.record.plan_file import read_document, read_plan
from bytewright.target import dump_toml, load_file, load_target
from bytewright.target.importers import ImportOptions, import_target
from support.digits_bundle import DIGITS

COPIES: list[Callable[[object], object]] = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ),
]


@cache
def _refused() -> CompileError:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, resize=["ram=16"])
    return caught.value


@cache
def _compiled() -> bytewright.CompiledModel:
    return bytewright.compile(DIGITS, target="mps3-an547")


@pytest.mark.parametrize("copied", COPIES)
def test_errors_survive_copies(copied: Callable[[CompileError], CompileError]) -> None:
    both = CompileError(
        [Diagnostic(code, f"{code} happened", ("a note",), "help") for code in list(CODES)[:2]]
    )
    for error in (_refused(), both, CrashError(Diagnostic("BW502", "it crashed"))):
        again = copied(error)
        assert type(again) is type(error)
        assert again.diagnostics == error.diagnostics
        assert (str(again), again.exit_code) == (str(error), error.exit_code)


@pytest.mark.parametrize("copied", COPIES)
def test_plans_and_models_survive_copies(copied: Callable[[object], object]) -> None:
    model = _compiled()
    again = copied(model)
    assert isinstance(again, bytewright.CompiledModel)
    assert again == model
    assert repr(again) == repr(model)
    plan = copied(model.plan)
    assert isinstance(plan, Plan)
    assert plan == model.plan
    assert list(plan.pools) == list(model.plan.pools)
    with pytest.raises(TypeError):
        plan.pools["dtcm"] = plan.pools["flash"]  # type: ignore[index]


def _compile_with(limit: str) -> bytewright.CompiledModel:
    return bytewright.compile(DIGITS, target="mps3-an547", workspace=[f"dtcm={limit}"])


def test_a_pool_of_processes_hands_models_and_errors_back() -> None:
    with ProcessPoolExecutor(1) as pool:
        done = [pool.submit(_compile_with, limit) for limit in ("16", "64KiB")]
        error = done[0].exception(timeout=120)
        model = done[1].result(timeout=120)
    assert isinstance(error, CompileError)
    assert error.diagnostics[0].code == "BW301"
    assert model == _compile_with("64KiB")


def test_a_frozen_mapping_is_a_mapping_of_its_own() -> None:
    items = {"b": 1, "a": 2}
    frozen = FrozenMapping(items)
    items["c"] = 3
    assert dict(frozen) == {"b": 1, "a": 2}
    assert list(frozen) == ["b", "a"]
    assert frozen == {"a": 2, "b": 1}
    assert frozen != {"a": 2}
    assert repr(frozen) == "FrozenMapping({'b': 1, 'a': 2})"
    assert (len(frozen), frozen["a"], frozen.get("c")) == (2, 2, None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("workspace", "small=8KiB@dtcm"),
        ("parameters", "weights=100KiB@sram"),
        ("resize", "dtcm=32KiB"),
        ("provider", "dtcm=generated"),
        ("pins", "conv2d_0/out=isram"),
    ],
)
def test_one_text_is_a_list_of_one(name: str, text: str) -> None:
    one, many = (bytewright.compile(DIGITS, target="mps3-an547", **{name: value}) for value in (text, [text]))
    assert one == many
    assert one != bytewright.compile(DIGITS, target="mps3-an547")


@pytest.mark.parametrize("name", ["workspace", "parameters", "resize", "provider", "pins"])
@pytest.mark.parametrize(
    "value", [[5], [None], [b"dtcm=1KiB"], 5, b"dtcm=1KiB", [Path("dtcm=1KiB")], [["dtcm"]]]
)
def test_what_is_no_text_is_a_value_error_that_names_the_argument(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        bytewright.compile(DIGITS, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("target", 5),
        ("target", b"host"),
        ("name", 5),
        ("io", None),
        ("io", "both"),
        ("numerics", 5),
        ("max_stack_size", 1.5),
        ("max_stack_size", True),
        ("max_stack_alloca_size", -1),
        ("max_stack_alloca_size", [4]),
        ("use_backend_alloc_workspace", "yes"),
        ("use_backend_alloc_workspace", 2),
        ("batch_max", "2"),
        ("solver", 7),
        ("model", 5),
        ("model", b"digits.tflite"),
    ],
)
def test_other_malformed_arguments_are_value_errors_that_name_them(name: str, value: object) -> None:
    arguments: dict[str, object] = {"model": DIGITS, name: value}
    with pytest.raises(ValueError, match=name):
        bytewright.compile(arguments.pop("model"), **arguments)  # type: ignore[arg-type]


def test_the_bytes_of_a_model_are_not_said_again() -> None:
    with pytest.raises(ValueError, match="not a path") as caught:
        bytewright.compile(DIGITS.read_bytes())  # type: ignore[arg-type]
    assert len(str(caught.value)) < 80


def test_paths_may_be_texts_everywhere(tmp_path: Path) -> None:
    board = tmp_path / "board.toml"
    board.write_text(dump_toml(load_target("mps3-an547")))
    models = [bytewright.compile(str(DIGITS), target=target) for target in (str(board), board)]
    assert models[0] == models[1]
    folder = str(tmp_path / "out")
    assert str(models[0].write(folder)) == folder
    assert read_plan(folder) == models[0].plan
    assert read_document(folder)["model"] == "digits"
    assert check_bundle(folder).plan == models[0].plan
    assert load_file(str(board)) == load_target("mps3-an547")
    table = tmp_path / "buffers.csv"
    table.write_text("id,lower,upper,size\na,0,1,8\n")
    assert len(read_buffers(str(table)).buffers) == 1
    script = tmp_path / "app.ld"
    script.write_text("MEMORY { RAM (rw) : ORIGIN = 0x20000000, LENGTH = 64K }\n")
    imported = import_target(str(script), ImportOptions(include=(str(tmp_path),)))
    assert "[memory.ram]" in imported.text


@pytest.mark.run
def test_a_bundle_runs_from_a_text(tmp_path: Path) -> None:
    folder = str(bytewright.compile(DIGITS).write(tmp_path / "out"))
    result = run_bundle(folder, seed=1)
    assert result.outputs[0].shape == (1, 10)
    assert run_batch(folder, []).outputs == ()


def _pile(problem: Problem, node_budget: int) -> list[Placement]:
    """Every buffer above the one before it, whatever the lifetimes, in its first pool."""
    del node_budget
    tops = {pool.name: 0 for pool in problem.pools}
    places: list[Placement] = []
    for buffer in problem.buffers:
        pool = buffer.candidates[0].pool if buffer.candidates else problem.pools[0].name
        offset = buffer.fixed_offset if buffer.fixed_offset is not None else -(-tops[pool] // 64) * 64
        places.append(Placement(buffer.name, pool, offset))
        tops[pool] = max(tops[pool], offset + buffer.size_bytes)
    return places


def test_a_model_is_planned_by_the_solver_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bytewright.plan.solve.SOLVERS", dict(SOLVERS))
    register_solver("pile", _pile)
    best = bytewright.compile(DIGITS, target="mps3-an547").plan
    piled = bytewright.compile(DIGITS, target="mps3-an547", solver="pile").plan
    total = sum(-(-b.size_bytes // 64) * 64 for b in piled.buffers.values() if b.place.kind == "planned")
    assert total - 64 < piled.pools["dtcm"].used_bytes <= total
    assert piled.pools["dtcm"].used_bytes > best.pools["dtcm"].used_bytes
    assert piled.pools["dtcm"].lower_bound_bytes == best.pools["dtcm"].lower_bound_bytes
    for name in ("first_fit", "exact", "hill_climb"):
        plan = bytewright.compile(DIGITS, target="mps3-an547", solver=name).plan
        assert plan.pools["dtcm"].used_bytes >= best.pools["dtcm"].lower_bound_bytes


def test_an_unknown_solver_is_refused_with_the_known_ones_before_the_model_is_read(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(tmp_path / "missing.tflite", solver="exakt")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW604"
    assert "exact" in (diagnostic.help or "")


def _fails(problem: Problem, node_budget: int) -> list[Placement]:
    raise RuntimeError(f"{len(problem.buffers)} buffers are too many, {node_budget} nodes too few")


def _outside(problem: Problem, node_budget: int) -> list[Placement]:
    del node_budget
    return [Placement(buffer.name, problem.pools[0].name, 0) for buffer in problem.buffers]


def _far_away(problem: Problem, node_budget: int) -> list[Placement]:
    """No two at one place, each where no address is."""
    del node_budget
    return [Placement(b.name, "ram", (number + 1) << 70) for number, b in enumerate(problem.buffers)]


def _ends_the_program_later(problem: Problem, node_budget: int) -> Iterator[Placement]:
    del problem, node_budget
    yield sys.exit("when the first place is asked for")


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (_fails, "BW605"),
        (_outside, "BW401"),
        (lambda *_: 5, "BW605"),
        (lambda *_: [5], "BW605"),
        (lambda *_: [Placement("a", "ram", "0")], "BW605"),
        (lambda *_: [Placement("nobody", "ram", 0)], "BW401"),
        (lambda *_: None, "BW301"),
        (_far_away, "BW401"),
        (lambda *_: sys.exit(0), "BW605"),
        (_ends_the_program_later, "BW605"),
    ],
)
def test_what_a_users_solver_does_wrong_is_said(
    function: Callable[..., object], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bytewright.plan.solve.SOLVERS", dict(SOLVERS))
    register_solver("mine", function)  # type: ignore[arg-type]
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, solver="mine")
    assert caught.value.diagnostics[0].code == code


def test_who_stops_a_users_solver_stops_the_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> list[Placement]:
        raise KeyboardInterrupt

    monkeypatch.setattr("bytewright.plan.solve.SOLVERS", dict(SOLVERS))
    register_solver("mine", stopped)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        bytewright.compile(DIGITS, solver="mine")


class _EntryPoint:
    """What `importlib.metadata` gives for a function that an installed package names."""

    name = "packaged"
    value = "somewhere:pile"

    def load(self) -> object:
        return _pile


class _BrokenEntryPoint(_EntryPoint):
    name = "broken"

    def load(self) -> object:
        raise ImportError("no module named somewhere")


class _EndingEntryPoint(_EntryPoint):
    name = "ending"

    def load(self) -> object:
        sys.exit(0)


def test_an_installed_package_brings_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*, group: str) -> list[_EntryPoint]:
        assert group == "bytewright.solvers"
        return [_EntryPoint(), _BrokenEntryPoint(), _EndingEntryPoint()]

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    assert bytewright.compile(DIGITS, solver="packaged") != bytewright.compile(DIGITS)
    wrong = (
        ("broken", "BW605", "somewhere"),
        ("ending", "BW605", "SystemExit"),
        ("other", "BW604", "packaged"),
    )
    for name, code, said in wrong:
        with pytest.raises(CompileError) as caught:
            bytewright.compile(DIGITS, solver=name)
        assert caught.value.diagnostics[0].code == code
        assert said in str(caught.value)
