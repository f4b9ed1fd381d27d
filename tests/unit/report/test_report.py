"""Reports as functions of a plan: live bytes, the chart, tables, JSON, explanations."""

import dataclasses
import io
import json
from itertools import pairwise
from typing import Any

import pytest
from rich.console import Console

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.ir.border import Io
from bytewright.ir.types import Symbol
from bytewright.record.buffers import BufferRole, Place, PlaceKind, PlannedBuffer, PlannedPool
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Build, Plan
from bytewright.record.plan_file import plan_of
from bytewright.report.compare import Side, compare
from bytewright.report.explain import explain
from bytewright.report.find_named import find_named
from bytewright.report.lanes import lanes
from bytewright.report.memory import PoolHistory, step_ranges, use_over_time
from bytewright.report.report_view import pool_chart, report_view
from bytewright.show.as_text import print_view
from bytewright.show.bars import bars
from bytewright.show.tracks import track_lines
from bytewright.show.view import Chart, Lanes
from bytewright.target.model import Loader, Provider, Role
from support.digits_bundle import DIGITS, digits_document, digits_plan
from support.views import explanation_document, explanation_lines, report_document


def pool(
    name: str, used: int, capacity: int | None, role: Role = Role.WORKSPACE, bound: int | None = None
) -> PlannedPool:
    bound = used if bound is None else bound
    return PlannedPool(
        name, name, name, role, Provider.CALLER, capacity, used, bound, bound == used, 16, None, None
    )


def tensor(
    name: str,
    size: int,
    live: tuple[int, int],
    place: Place,
    candidates: tuple[str, ...] = ("dtcm", "isram"),
) -> PlannedBuffer:
    steps = (live[0] // 3, (live[1] - 1) // 3)
    return PlannedBuffer(
        name,
        BufferRole.TENSOR,
        size,
        16,
        place,
        live,
        *steps,
        f"global.{place.name}",
        candidates,
        (),
        "because",
    )


def step(index: int, reads: tuple[str, ...], writes: tuple[str, ...], device: str = "cpu") -> PlannedStep:
    tick = 3 * index
    alive = dict.fromkeys(reads, (tick, tick + 2)) | dict.fromkeys(writes, (tick + 1, tick + 3))
    return PlannedStep(
        index, (tick, tick + 3), f"m_k{index}", device, (f"{index} (ADD)",), reads, writes, (), alive
    )


def plan(**changes: Any) -> Plan:
    """Four steps in a chain, `a` to `c`; `b` had to go to the slower memory."""
    buffers = (
        tensor("a", 100, (1, 5), Place(PlaceKind.PLANNED, "dtcm", 0)),
        tensor("b", 200, (4, 8), Place(PlaceKind.PLANNED, "isram", 0)),
        tensor("c", 50, (7, 11), Place(PlaceKind.PLANNED, "dtcm", 64)),
    )
    whole = Plan(
        model="m",
        target="mps3-an547",
        numerics="litert-ref",
        io=Io.CALLER,
        build=Build("0", ()),
        plan_hash="0" * 64,
        inputs=(),
        outputs=(),
        symbols=(),
        pools={p.name: p for p in (pool("dtcm", 114, 256), pool("isram", 200, 4096, bound=150))},
        buffers={buffer.name: buffer for buffer in buffers},
        stack={},
        steps=(step(0, (), ("a",)), step(1, ("a",), ("b",)), step(2, ("b",), ("c",)), step(3, ("c",), ())),
        loops=(),
        hardware=digits_plan().hardware,
        files={},
    )
    return dataclasses.replace(whole, **changes)


def use(live_bytes: tuple[int, ...], capacity: int | None = None, by_rows: tuple[int, ...] = ()) -> Chart:
    peak = max(live_bytes)
    peaks = tuple(index for index, live in enumerate(live_bytes) if live == peak)
    return pool_chart(PoolHistory(pool("ram", peak, capacity), live_bytes, peak, peaks, by_rows), plan())


def test_live_bytes_are_the_most_in_each_step() -> None:
    whole = plan()
    dtcm = use_over_time(whole, whole.pools["dtcm"])
    assert dtcm.live_bytes == (100, 100, 50, 50)
    assert (dtcm.peak_bytes, dtcm.peak_steps) == (100, (0, 1))
    assert use_over_time(whole, whole.pools["isram"]).live_bytes == (0, 200, 200, 0)


def test_a_tick_inside_a_step_counts() -> None:
    # Both live only at the middle tick of step 1, so neither end of the step shows the peak.
    both = {
        "x": tensor("x", 10, (4, 5), Place(PlaceKind.PLANNED, "dtcm", 0)),
        "y": tensor("y", 20, (4, 5), Place(PlaceKind.PLANNED, "dtcm", 16)),
    }
    whole = plan(buffers=both)
    assert use_over_time(whole, whole.pools["dtcm"]).live_bytes == (0, 30, 0, 0)


def test_ranges_of_steps() -> None:
    assert step_ranges((0, 2, 3, 4, 9)) == "0, 2..4, 9"
    assert step_ranges(()) == ""


def two_devices(*devices: str) -> Plan:
    """The chain on these devices, step by step; a step is a copy if its device ends with an asterisk."""
    steps = [
        dataclasses.replace(
            old,
            device=device.rstrip("*"),
            operators=("device_copy",) if device.endswith("*") else old.operators,
        )
        for old, device in zip(plan().steps, devices, strict=True)
    ]
    return plan(steps=tuple(steps))


def lanes_of(whole: Plan) -> Lanes | None:
    return next((part for part in report_view(whole).sections if isinstance(part, Lanes)), None)


def test_one_device_needs_no_lanes() -> None:
    assert lanes(plan()) == ()
    assert lanes_of(plan()) is None
    assert "Devices" not in text_of(plan())


def test_lanes_say_who_runs_when_and_what_is_copied() -> None:
    whole = two_devices("cpu", "npu*", "npu", "cpu")
    cpu, npu = lanes(whole)
    assert (cpu.device, cpu.steps, cpu.copies) == ("cpu", (0, 3), ())
    assert (npu.device, npu.steps, npu.copies) == ("npu", (1, 2), (1,))
    # a (100 B) and b (200 B) are read, b and c (50 B) written; the copy moves a to a part of b.
    assert (npu.read_bytes, npu.written_bytes, npu.copied_bytes) == (300, 250, 100)
    assert (cpu.read_bytes, cpu.written_bytes, cpu.copied_bytes) == (50, 100, 0)
    drawn = lanes_of(whole)
    assert drawn is not None
    assert track_lines(drawn, ascii_only=True) == ["step 0", "cpu  #  #", "npu   c#", "     # runs, c copies"]
    assert track_lines(drawn)[1:3] == ["cpu  █  █", "npu   ▒█"]
    assert report_document(whole)["lanes"][1]["steps"] == [1, 2]
    text = text_of(whole)
    assert "Devices" in text
    assert [line.split()[:2] for line in text.splitlines()[-5:-1]] == [
        ["0", "cpu"],
        ["1", "npu"],
        ["2", "npu"],
        ["3", "cpu"],
    ]


def test_many_steps_share_columns_of_the_lanes() -> None:
    many = tuple(
        dataclasses.replace(step(index, (), ()), device="npu" if index >= 90 else "cpu")
        for index in range(100)
    )
    tracks = lanes_of(plan(steps=many))
    assert tracks is not None
    drawn = track_lines(tracks, width=15, ascii_only=True)
    # ten columns of ten steps
    assert drawn == ["step 0    50", "cpu  #########", "npu           #"]


def test_the_chart_is_drawn_to_scale() -> None:
    assert bars(use((16, 8, 0, 2)), width=20, ascii_only=True) == [
        "ram: 16 B alive at the peak (step 0), 16 B used, no limit",
        "  16 |###",
        "     |###",
        "     |###",
        "     |###",
        "     |######",
        "     |######",
        "     |######",
        "     |######   ###",
        "   0 +------------",
        "step  0  1  2  3",
        "peak  ^^^",
    ]


def test_bars_have_eighths_where_the_output_knows_them() -> None:
    rows = bars(use((64, 33, 1)), width=16)
    assert rows[4:6] == ["     │███▁▁▁", "     │██████"]  # 33 of 64 is four rows and an eighth
    assert rows[8] == "     │██████▁▁▁"  # one byte of 64 shows


def test_a_near_capacity_is_on_the_same_scale_and_a_far_one_is_not() -> None:
    near = bars(use((8, 16), capacity=16), width=30)
    assert near[1].split() == ["16", "┄" * 13]
    assert "⋮" not in "".join(near)
    far = bars(use((8, 16), capacity=1000), width=30)
    assert far[1].startswith(" 1000 ┄")
    assert far[2].strip() == "⋮"


def test_many_steps_share_columns_and_the_peak_survives() -> None:
    live = tuple(1000 if index == 77 else 10 for index in range(200))
    rows = bars(use(live), width=60, ascii_only=True)
    assert all(len(row) <= 60 for row in rows[1:])
    assert rows[0].startswith("ram: 1000 B alive at the peak (step 77)")
    assert rows[1].count("#") == 1
    assert rows[-1].count("^") == 1
    assert rows[-1].index("^") == rows[1].index("#")


def test_steps_that_run_row_by_row_are_marked() -> None:
    rows = bars(use((4, 8, 8, 2), by_rows=(1, 2)), width=20, ascii_only=True)
    assert rows[-2].index("^") == rows[-1].index("=")
    assert rows[-1].split() == ["rows", rows[-2].split()[1].replace("^", "=")]


def test_bytes_that_two_buffers_share_count_once() -> None:
    """b is written over the end of a, 40 B of it, while both live; c comes when a is dead."""
    buffers = (
        tensor("a", 100, (0, 6), Place(PlaceKind.PLANNED, "dtcm", 0)),
        tensor("b", 80, (3, 9), Place(PlaceKind.PLANNED, "dtcm", 60)),
        tensor("c", 60, (6, 9), Place(PlaceKind.PLANNED, "dtcm", 0)),
    )
    whole = plan(buffers={buffer.name: buffer for buffer in buffers})
    history = use_over_time(whole, whole.pools["dtcm"])
    assert history.live_bytes[:3] == (100, 140, 140)


def test_step_numbers_do_not_touch() -> None:
    rows = bars(use(tuple(range(1, 31))), width=40, ascii_only=True)
    numbers = [int(word) for word in rows[-2].split()[1:]]
    assert numbers[0] == 0
    assert all(a < b < 30 for a, b in pairwise(numbers))


def text_of(whole: Plan, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_view(report_view(whole), Console(file=stream, width=100, highlight=False))
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


def test_the_report_shows_use_bound_and_gap() -> None:
    lines = text_of(plan()).splitlines()
    (dtcm,) = [line.split() for line in lines if line.startswith("  dtcm ") and "workspace" in line]
    assert dtcm == ["dtcm", "workspace", "caller", "114", "256", "114", "optimal"]
    (isram,) = [line for line in lines if line.startswith("  isram ") and "workspace" in line]
    assert "at most 50 B too many" in isram
    order = [line.split()[0] for line in lines if line.split()[:1] in (["a"], ["b"], ["c"])]
    assert order == ["b", "a", "c"]


def test_the_report_says_what_a_run_is_given_and_where_parameters_come_from() -> None:
    assert "each run" not in text_of(plan())
    pools = dict(plan().pools)
    for name, load, memory in (
        ("a", Loader.COPY, "rom"),
        ("b", Loader.LINKER, "rom"),
        ("c", Loader.COPY, None),
    ):
        pools[name] = dataclasses.replace(pool(name, 8, 8, Role.PARAMETERS), load=load, load_memory=memory)
    pools["d"] = dataclasses.replace(pools["a"], name="d", used_bytes=0)
    whole = plan(symbols=(Symbol("batch", 1, 4),), pools=pools)
    line = (
        "each run takes batch 1 to 4; parameters a are copied from 'rom'; parameters b are loaded from 'rom'; "
        "parameters c are copied from the application's memory"
    )
    assert line in text_of(whole).splitlines()
    document = report_document(whole)
    assert document["symbols"] == [{"name": "batch", "lower": 1, "upper": 4}]
    loads = {entry["name"]: (entry["load"], entry["load_memory"]) for entry in document["pools"][2:]}
    assert loads["b"] == ("linker", "rom")
    assert loads["c"] == ("copy", None)


def test_an_explanation_says_where_a_parameter_comes_from() -> None:
    whole = digits_plan()
    flash = dataclasses.replace(whole.pools["flash"], load=Loader.COPY, load_memory="rom")
    copied = dataclasses.replace(whole, pools={**whole.pools, "flash": flash})
    name = next(b.name for b in whole.buffers.values() if b.place.kind == "constant")
    before, after = (explanation_lines(p, name)[2] for p in (whole, copied))
    assert after == f"{before}, copied from 'rom'"


def test_the_report_needs_only_ascii_where_there_is_no_more() -> None:
    assert "#" in text_of(plan(), "ascii")


def test_the_report_of_a_model_without_workspace() -> None:
    text = text_of(plan(buffers={}, pools={"dtcm": pool("dtcm", 0, None)}))
    assert "unused" in text
    assert "alive at the peak" not in text


def test_the_document_has_the_same_figures() -> None:
    document = report_document(plan())
    assert json.loads(json.dumps(document)) == document
    assert document["ram_bytes"] == 314
    assert document["pools"][1]["gap_bytes"] == 50
    assert document["pools"][0]["live_bytes"] == [100, 100, 50, 50]
    assert [b["name"] for b in document["buffers"]] == ["b", "a", "c"]


def test_ram_is_workspace_and_the_promised_stack() -> None:
    whole = digits_plan()
    document = digits_document()
    stack = document["stack"]["cpu"]["size_bytes"]
    workspace = sum(p["used_bytes"] for p in document["pools"] if p["role"] == "workspace")
    assert stack > 0
    assert (whole.ram_bytes, whole.workspace_bytes) == (workspace + stack, workspace)
    assert (whole.stack_bytes, whole.ram_parameter_bytes) == (stack, 0)


def test_parameters_in_memory_that_can_be_written_are_ram() -> None:
    """However they come there: linked into it, loaded from flash, or copied."""
    plain = bytewright.compile(DIGITS, target="mps3-an547").plan
    moved = bytewright.compile(DIGITS, target="mps3-an547", parameters="weights=100KiB@isram").plan
    assert moved.ram_parameter_bytes == moved.parameter_bytes > 0
    assert moved.ram_bytes == plain.ram_bytes + moved.parameter_bytes
    split = bytewright.compile(
        DIGITS,
        target="mps3-an547",
        parameters=["weights=1KiB@isram", "flash@flash"],
        provider="weights=caller",
    ).plan
    assert split.ram_parameter_bytes == split.pools["weights"].used_bytes > 0
    assert split.pools["flash"].used_bytes > 0
    assert split.ram_bytes == plain.ram_bytes + split.pools["weights"].used_bytes
    (ram,) = [total for total in compare(Side(plain), Side(moved)).totals if total.name == "RAM"]
    assert (ram.old_bytes, ram.new_bytes) == (plain.ram_bytes, moved.ram_bytes)
    assert f"RAM {moved.ram_bytes} B" in text_of(moved)
    assert f"parameters in RAM {moved.parameter_bytes} B" in text_of(moved)
    assert report_document(moved)["ram_bytes"] == moved.ram_bytes


def elsewhere(whole: Plan, name: str) -> dict[str, str]:
    return dict(explain(whole, whole.buffers[name]).elsewhere)


def test_an_explanation_names_users_and_neighbours() -> None:
    whole = plan(
        buffers={
            "a": tensor("a", 100, (1, 5), Place(PlaceKind.PLANNED, "dtcm", 0)),
            "b": tensor("b", 50, (4, 8), Place(PlaceKind.PLANNED, "dtcm", 112)),
            "c": tensor("c", 50, (7, 11), Place(PlaceKind.PLANNED, "dtcm", 0)),
        }
    )
    explanation = explain(whole, whole.buffers["b"])
    assert [(u.step.index, u.how) for u in explanation.uses] == [(1, "writes"), (2, "reads")]
    assert [other.name for other in explanation.neighbours] == ["a", "c"]
    text = "\n".join(explanation_lines(whole, "b"))
    assert "dtcm+112, bytes 112 to 162 of workspace dtcm, from the caller" in text
    assert "step 1  m_k1 writes it: 1 (ADD)" in text
    assert elsewhere(whole, "b")["lower in dtcm"] == (
        "taken while it lives: 'a' (dtcm+0, 100 B), 'c' (dtcm+0, 50 B)"
    )
    assert elsewhere(whole, "b")["isram"].startswith("possible, but dtcm comes before it")
    assert "lower in dtcm" not in elsewhere(whole, "a")


def test_a_lower_place_that_is_free_is_admitted() -> None:
    assert elsewhere(plan(), "c")["lower in dtcm"].startswith("it would fit at dtcm+0 as well")


def test_a_preferred_pool_that_is_full_is_explained_in_bytes() -> None:
    reason = elsewhere(plan(), "b")["dtcm"]
    assert reason == (
        "preferred, but 100 B are alive there in step 1: 300 B together, 44 B more than its capacity"
    )


def test_a_pool_that_is_too_small_or_no_candidate_is_explained() -> None:
    small = plan(pools={p.name: p for p in (pool("dtcm", 114, 150), pool("isram", 200, 4096))})
    assert elsewhere(small, "b")["dtcm"] == "too small: 150 B"
    buffers = {"b": tensor("b", 200, (4, 8), Place(PlaceKind.PLANNED, "isram", 0), candidates=("isram",))}
    whole = plan(buffers=buffers)
    assert elsewhere(whole, "b")["dtcm"].startswith("not a candidate: the scope")
    steps = (*whole.steps[:1], step(1, (), ("b",), device="npu"), *whole.steps[2:])
    assert elsewhere(plan(buffers=buffers, steps=steps), "b")["dtcm"] == (
        "device 'npu', which touches it, may not use this pool"
    )


def test_every_buffer_of_a_model_can_be_explained() -> None:
    whole = digits_plan()
    for name, buffer in whole.buffers.items():
        assert explain(whole, buffer).uses, name
        text = "\n".join(explanation_lines(whole, name))
        assert text.startswith(f"{name}\n  what     {buffer.role}, {buffer.size_bytes} B")
        document = explanation_document(whole, name)
        assert json.loads(json.dumps(document))["name"] == name


def test_places_that_are_no_pool_are_explained() -> None:
    whole = digits_plan()
    (patch,) = [b.name for b in whole.buffers.values() if b.place.kind == "stack"][:1]
    assert "private to one call" in elsewhere(whole, patch)["any pool"]
    assert "memory of the application" in elsewhere(whole, "image")["any pool"]


def test_an_unknown_buffer_is_refused_with_suggestions() -> None:
    for name, text in (
        ("conv2d_0/oot", "did you mean 'conv2d_0/out'"),
        ("weights", "/weights'"),
        ("zzz", "lists all buffers"),
    ):
        with pytest.raises(CompileError) as caught:
            find_named(digits_plan(), name)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "BW204"
        assert text in (diagnostic.help or "")


def test_a_plan_cannot_be_changed() -> None:
    whole = plan_of(digits_document())
    with pytest.raises(TypeError):
        whole.pools["dtcm"] = whole.pools["isram"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        whole.pools["dtcm"].used_bytes = 1  # type: ignore[misc]
