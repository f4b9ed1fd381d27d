"""Sweeps find what single compiles find, whoever carries them out and however often they are interrupted."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.diagnostics import CompileError
from bytewright.show.as_svg import svg_text
from bytewright.show.view import View
from bytewright.sweeps import evaluate as module
from bytewright.sweeps.pareto import pareto
from bytewright.sweeps.picture import points_of
from bytewright.sweeps.sweep import SweepResults
from support.digits_bundle import DIGITS
from support.tiers import THOROUGH

SIZES = ["1KiB", "2KiB", "3KiB", "64KiB"]
GRID: dict[str, Any] = {
    "target": ["mps3-an547", "host"],
    "rows": ["auto", "off"],
    "workspace": ["dtcm=1KiB", "dtcm=2KiB", "ram=1KiB", "ram=64KiB"],
}


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def alone() -> SweepResults:
    return bytewright.sweep(DIGITS, GRID)


def test_each_result_is_that_of_a_compile(alone: SweepResults) -> None:
    expected = []
    for target in GRID["target"]:
        for rows in GRID["rows"]:
            for workspace in GRID["workspace"]:
                try:
                    plan = bytewright.compile(DIGITS, target=target, rows=rows, workspace=workspace).plan
                    pools = {pool.name: pool.used_bytes for pool in plan.pools.values()}
                    expected.append((True, plan.ram_bytes, plan.workspace_bytes, pools))
                except CompileError as error:
                    expected.append((False, *[(each.code, each.message) for each in error.diagnostics]))
    found = [
        (True, each["ram_bytes"], each["workspace_bytes"], each["pools"])
        if each["fits"]
        else (False, *[(refusal["code"], refusal["message"]) for refusal in each["refusals"]])
        for each in alone.results
    ]
    assert found == expected
    assert {each["fits"] for each in alone.results} == {True, False}
    codes = {refusal["code"] for each in alone.results for refusal in each.get("refusals", ())}
    assert codes == {"BW204", "BW301"}


def test_the_model_is_read_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    read = module.read_and_lower
    calls: list[object] = []
    monkeypatch.setattr(module, "_last", None)
    monkeypatch.setattr(module, "read_and_lower", lambda *given: (calls.append(given), read(*given))[1])
    bytewright.sweep(
        DIGITS,
        {
            "target": ["mps3-an547"],
            "rows": ["auto", "off"],
            "resize dtcm": SIZES,
            "max_stack_size": ["4KiB", "8KiB"],
        },
    )
    assert len(calls) == 2


@pytest.mark.parametrize(
    "executor", [lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(2, get_context("spawn"))]
)
def test_results_do_not_depend_on_who_finds_them(
    executor: Callable[[], Executor], alone: SweepResults, tmp_path: Path
) -> None:
    with executor() as pool:
        assert bytewright.sweep(DIGITS, GRID, pool, record=tmp_path / "r.jsonl") == alone
    lines = (tmp_path / "r.jsonl").read_text("utf-8").splitlines()
    assert sorted(lines) == sorted(json.dumps(each) for each in alone.results)


class _EndsAfter(Executor):
    """Does some work here, and then fails as a pool does whose process was killed."""

    def __init__(self, num_pieces: int) -> None:
        self.left = num_pieces

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.left -= 1
        if self.left < 0:
            future.set_exception(ConnectionError("a worker is gone"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_sweep_goes_on_where_it_ended(
    alone: SweepResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "r.jsonl"
    with pytest.raises(ConnectionError):
        bytewright.sweep(DIGITS, GRID, _EndsAfter(2), record=record)
    first = record.read_bytes()
    num_found = first.count(b"\n")
    assert 0 < num_found < len(alone.results)
    record.write_bytes(first[:-20])  # and the last line was cut off
    evaluated: list[str] = []
    once = module._evaluate
    monkeypatch.setattr(
        module, "_evaluate", lambda each, measure: (evaluated.append(each.key), once(each, measure))[1]
    )
    assert bytewright.sweep(DIGITS, GRID, record=record) == alone
    assert len(evaluated) == len(set(evaluated)) == len(alone.results) - num_found + 1
    evaluated.clear()
    assert bytewright.sweep(DIGITS, GRID, record=record) == alone
    assert evaluated == []


def test_another_models_results_are_not_taken(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(DIGITS.read_bytes())
    one = bytewright.sweep(model, {"target": ["host"]}, record=tmp_path / "r.jsonl")
    changed = bytearray(DIGITS.read_bytes())
    changed[-1] ^= 1
    model.write_bytes(bytes(changed))
    other = bytewright.sweep(model, {"target": ["host"]}, record=tmp_path / "r.jsonl")
    assert one.results[0]["key"] != other.results[0]["key"]


def result(key: str, ram: int, rom: int, **more: object) -> dict[str, Any]:
    figures = {"ram_bytes": ram, "parameter_bytes": rom, "target": "t<", "options": []}
    return {"key": key, "model": "m", "fits": True, **figures, **more}


def test_pareto() -> None:
    results = [
        result("a", 10, 10),
        result("b", 5, 20),
        result("c", 5, 21),
        result("d", 10, 10),
        result("e", 20, 5),
        result("f", 99, 99, model="other"),
        {"key": "g", "model": "m", "fits": False},
    ]
    assert [each["key"] for each in pareto(results)] == ["a", "b", "e", "f"]
    assert [each["key"] for each in pareto(results, ["ram_bytes"])] == ["b", "f"]
    drawn = svg_text(View(None, (points_of(results),)))
    assert drawn.count("<circle") == 6
    assert drawn.count('<circle class="best"') == 4
    assert "for t&lt;" in drawn
    assert "for t<" not in drawn


@pytest.mark.parametrize("num_objectives", [1, 2, 3])
def test_of_many_results_those_stay_that_none_beats(num_objectives: int) -> None:
    objectives = ("ram_bytes", "parameter_bytes", "instructions")[:num_objectives]
    drawn = np.random.default_rng(num_objectives).integers(0, 30, (300, 3))
    results = [result(str(n), int(a), int(b), instructions=int(c)) for n, (a, b, c) in enumerate(drawn)]
    figures = drawn[:, :num_objectives]
    at_most = (figures[:, None] <= figures[None]).all(axis=2)
    is_less = (figures[:, None] < figures[None]).any(axis=2)
    is_repeated = np.tril(at_most & at_most.T, -1).any(axis=1)
    expected = np.flatnonzero(~((at_most & is_less).any(axis=0) | is_repeated))
    assert [int(each["key"]) for each in pareto(results, objectives)] == expected.tolist()


SWEEP = """
models = ["digits.tflite"]
targets = ["mps3-an547", "board.toml"]
[options]
rows = ["auto", "off"]
[sizes]
dtcm = { from = "1KiB", to = "3KiB", step = "1KiB" }
"""


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "digits.tflite").write_bytes(DIGITS.read_bytes())
    board = invoke("targets", "mps3-an547").stdout.replace('name = "mps3-an547"', 'name = "mine"', 1)
    (tmp_path / "board.toml").write_text(board, encoding="utf-8")
    (tmp_path / "s.toml").write_text(SWEEP, encoding="utf-8")
    done = invoke("sweep", tmp_path / "s.toml", "--json", "--svg", tmp_path / "s.svg")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert len(document["results"]) == 12
    assert {each["target"] for each in document["results"]} == {"mps3-an547", "mine"}
    assert document["results"][1]["options"] == ["--resize dtcm=2048"]
    assert (tmp_path / "s.svg").read_text("utf-8").count("<circle") == 12
    assert len((tmp_path / "s.jsonl").read_text("utf-8").splitlines()) == 12
    text = invoke("sweep", tmp_path / "s.toml").stdout
    assert "12 configurations: 12 fit, 0 do not" in text
    assert "what does not fit" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models = [", "cannot be read"),
        ('modles = ["digits.tflite"]', "has 'modles', which is none of"),
        ("targets = ['host']", "the choices of 'models' are None, not a list"),
        ('models = ["none.tflite"]', "none.tflite' cannot be read: No such file"),
        ('models = ["digits.tflite"]\n[options]\nrow = ["auto"]', "a sweep has no option 'row'"),
        (
            'models = ["digits.tflite"]\n[options]\nrows = "auto"',
            "the choices of 'rows' are 'auto', not a list",
        ),
        ('models = ["digits.tflite"]\n[options]\nrows = ["nowhere"]', "rows is 'nowhere', not one of"),
        (
            'models = ["digits.tflite"]\n[sizes]\nram = { from = 1, to = 9 }',
            "neither a list nor a table of from",
        ),
        (
            'models = ["digits.tflite"]\n[sizes]\nram = { from = 1, to = 999999, step = 1 }',
            "are more than 100000",
        ),
        (
            'models = ["digits.tflite"]\n[sizes]\nram = { from = 9, to = 1, step = 1 }',
            "are [], not a list of one or more",
        ),
    ],
)
def test_what_is_no_sweep_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "digits.tflite").write_bytes(DIGITS.read_bytes())
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    done = invoke("sweep", tmp_path / "s.toml")
    assert done.exit_code == 1
    assert done.stderr.startswith("error[BW606]")
    assert message in done.stderr
    assert not (tmp_path / "s.jsonl").exists()


def test_a_file_of_somebody_else_is_no_record(tmp_path: Path) -> None:
    for content in ("notes\n", "notes", '{"a": 1}\n'):
        (tmp_path / "notes").write_text(content, encoding="utf-8")
        with pytest.raises(CompileError) as caught:
            bytewright.sweep(DIGITS, {"target": ["host"]}, record=tmp_path / "notes")
        assert caught.value.diagnostics[0].code == "BW606"
        assert (tmp_path / "notes").read_text("utf-8") == content


def test_one_sweep_at_a_time_writes_a_record(tmp_path: Path) -> None:
    from bytewright.sweeps.record import Record

    with Record(tmp_path / "r.jsonl"), pytest.raises(CompileError) as caught:
        Record(tmp_path / "r.jsonl")
    assert caught.value.diagnostics[0].message.endswith("is being written by another sweep")


def _process(*arguments: str) -> subprocess.Popen[bytes]:
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]], **quiet
    )


@pytest.mark.parametrize("address", ["nowhere", "pigeon://nowhere:1", "127.0.0.1:1"])
def test_a_cluster_that_is_none(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    distributed = pytest.importorskip("distributed", reason="pip install 'bytewright[dask]'")
    client = distributed.Client
    monkeypatch.setattr(
        distributed, "Client", lambda *words, **named: client(*words, **{**named, "timeout": "1s"})
    )
    path = tmp_path / "sweep.toml"
    path.write_text(f'models = ["{DIGITS}"]\ntargets = ["host"]\n', encoding="utf-8")
    done = invoke("sweep", path, "--scheduler", address)
    assert (done.exit_code, f"there is no Dask scheduler at '{address}'" in done.stderr) == (5, True), (
        done.stderr
    )
    gc.collect()
    assert not [each for each in recwarn if "Unraisable" in each.category.__name__]


def test_a_worker_of_a_cluster_is_killed(alone: SweepResults, tmp_path: Path) -> None:
    """The scheduler gives the work of one that is gone to the other."""
    distributed = pytest.importorskip("distributed", reason="pip install 'bytewright[dask]'")
    address_file = tmp_path / "scheduler.json"
    options = ("--scheduler-file", str(address_file))
    scheduler = _process("scheduler", *options, "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    workers: list[subprocess.Popen[bytes]] = []
    try:
        deadline = time.monotonic() + 60
        while not address_file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        workers += [
            _process("worker", *options, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", name)
            for name in ("first", "second")
        ]
        with distributed.Client(scheduler_file=str(address_file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            kills = iter([workers[0].kill])

            class Killing(Executor):
                """Dask's, of which one worker is killed when the first work was handed over."""

                def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
                    future = client.get_executor().submit(fn, *args, **kwargs)
                    next(kills, lambda: None)()
                    return future

            assert bytewright.sweep(DIGITS, GRID, Killing(), record=tmp_path / "r.jsonl") == alone
            assert workers[0].wait(10) != 0
            assert len(client.scheduler_info()["workers"]) == 1
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.mark.skipif(not THOROUGH, reason="2,000 configurations: BYTEWRIGHT_TESTS=thorough")
def test_two_thousand_configurations(tmp_path: Path) -> None:
    sizes = [f"{size}" for size in range(512, 512 + 500 * 16, 16)]
    grid = {
        "target": ["mps3-an547"],
        "rows": ["auto", "off"],
        "io": ["caller", "workspace"],
        "resize dtcm": sizes,
    }
    begin = time.process_time()
    one = bytewright.sweep(DIGITS, grid, record=tmp_path / "one.jsonl")
    seconds = time.process_time() - begin
    print(f"{seconds / 2000 * 1000:.0f} ms of processor time for a configuration")
    assert len(one.results) == 2000
    record = tmp_path / "two.jsonl"
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        killer = threading.Thread(target=_kill_one, args=(pool, record))
        killer.start()
        with pytest.raises(BrokenProcessPool):
            bytewright.sweep(DIGITS, grid, pool, record=record)
        killer.join()
    found = len(record.read_text("utf-8").splitlines())
    assert 100 <= found < 2000
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert bytewright.sweep(DIGITS, grid, pool, record=record) == one
    lines = record.read_text("utf-8").splitlines()
    assert len(lines) == len(set(lines)) == 2000


def _kill_one(pool: ProcessPoolExecutor, record: Path) -> None:
    """Kills a worker once a hundred results are on the disk."""
    deadline = time.monotonic() + 1200
    while time.monotonic() < deadline:
        if record.exists() and record.read_bytes().count(b"\n") >= 100:
            next(iter(pool._processes.values())).kill()
            return
        time.sleep(0.05)
