"""Every place of plan.json, changed and with all hashes made anew: `check` notices it, with a code, never a traceback.

What it does not notice is listed, each with the sentence of docs/cli.md that says so. A default run takes a sample of
each kind of bundle that differs by the day, `BYTEWRIGHT_TESTS=thorough` every change of every place.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pycparser import c_ast

from bytewright.bundle.write import write_bundle
from bytewright.diagnostics import CompileError
from bytewright.inspect.c_source import CSource
from bytewright.inspect.check import check_bundle
from bytewright.record.plan import Plan
from bytewright.record.plan_file import plan_of
from support.plan_bundles import BUNDLES
from support.plan_mutations import Mutation, mutations, write_consistently
from support.tiers import THOROUGH

ROOT = Path(__file__).parents[3]
SAMPLE = 240 if THOROUGH else 30
TODAY = datetime.now(tz=UTC).timetuple().tm_yday
# What docs/cli.md says is taken as it stands: each sentence stands there.
PEOPLE = "what is for people"
ORIGIN = "where it comes from: files, options, version and numerics"
TARGET = "the target as it was described"
UNCALLED = "functions of the application that no step calls"
KERNEL = "what only the bodies of kernels say"
CHANGED = "whether it also reads what it changes"
SHAPE = "another shape of as many bytes of what is no input or output"
ALIGNMENT = "an alignment that the offset keeps"
CANDIDATE = "another pool as a candidate"
BOUND = "another lower bound below the top"
ORDER = "the order of lists whose order means nothing"
NAMES = "names of numbers that nothing depends on"
SEGMENTS = "that a loop over rows was the compiler's idea (`segments`)"
STACK = "figures of the stack, which `--stack` compares with the compiler's, and arrays on it"
# Patterns of places that say what nothing else in the bundle says, and why that is so.
TRUSTED = {
    r"model_files.*": ORIGIN,
    r"options.*": ORIGIN,
    r"build\.bytewright": ORIGIN,
    r"numerics": ORIGIN,
    r"narrowed.*": PEOPLE,
    r"externals.*": UNCALLED,
    r"target_description.*": TARGET,
    r"stream\.(macs|macs_before|num_frames|num_left_out|is_padded|output_axes.*)": PEOPLE,
    r"plain_workspace_bytes": PEOPLE,
    r"segments\[\]\.(alive|plain_alive)_bytes": PEOPLE,
    r"buffers": ORDER,
    r"buffers\[\]": STACK,
    r"segments(\[\](\.rings)?)?": SEGMENTS,
    r"buffers\[\]\.(tensor|reason|scale|zero_point|shape_before.*|constant_channels.*|parts.*)": PEOPLE,
    r"buffers\[\]\.name": STACK,
    r"buffers\[\]\.scope": PEOPLE,
    r"buffers\[\]\.dtype": STACK,
    r"buffers\[\]\.shape.*": SHAPE,
    r"buffers\[\]\.alignment": ALIGNMENT,
    r"buffers\[\]\.devices": ORDER,
    r"buffers\[\]\.candidates.*": CANDIDATE,
    r"buffers\[\]\.size_bytes": STACK,
    r"buffers\[\]\.place.*": STACK,
    r"pools\[\]\.(lower_bound_bytes|optimal)": BOUND,
    r"stack\..*": STACK,
    r"steps\[\]\.(operators.*|template|remarks.*|work.*)": PEOPLE,
    r"steps\[\]\.(reads|writes|scratch)": ORDER,
    r"steps\[\]\.alive\..*": KERNEL,
    r"steps\[\]\.overlaps.*": KERNEL,
    r"steps\[\]\.runs_down": KERNEL,
    r"steps\[\]\.rows\.windows.*": KERNEL,
    r"loops": ORDER,
    r"loops\[\]\.(variable|inside.*)": NAMES,
    r"devices": ORDER,
}
# Of a state that a kernel reads as well as changes: where it is, and in what order it is touched, is the same for both.
TRUSTED_WITH_STATE = {r"steps\[\]\.reads\[\]": CHANGED}
WITH_STATE = ("entries", "stream")


@pytest.fixture
def functions_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of plan.json changes no function: each is read once, which is most of what a check costs."""
    known: dict[tuple[str, str], c_ast.FuncDef | None] = {}
    read = CSource.function

    def function(source: CSource, name: str) -> c_ast.FuncDef | None:
        key = (name, " ".join(source.words))
        if key not in known:
            known[key] = read(source, name)
        return known[key]

    monkeypatch.setattr(CSource, "function", function)


def reason_for(mutation: Mutation, kind: str) -> str | None:
    trusted = TRUSTED | TRUSTED_WITH_STATE if kind in WITH_STATE else TRUSTED
    return next((why for at, why in trusted.items() if re.fullmatch(at, mutation.pattern)), None)


def test_the_document_says_what_is_taken_as_it_stands() -> None:
    text = " ".join((ROOT / "docs" / "cli.md").read_text(encoding="utf-8").split())
    assert [why for why in {*TRUSTED.values(), *TRUSTED_WITH_STATE.values()} if why not in text] == []


def understood(document: dict[str, Any]) -> Plan | None:
    """The plan of a document, if it is one."""
    try:
        return plan_of(document)
    except (ValueError, CompileError):
        return None


@pytest.mark.parametrize("kind", BUNDLES)
@pytest.mark.usefixtures("functions_read_once")
def test_what_is_changed_is_noticed(tmp_path: Path, kind: str) -> None:
    files = dict(BUNDLES[kind]().files)
    document = json.loads(files["plan.json"])
    found = list(mutations(document))
    found = random.Random(TODAY).sample(found, min(SAMPLE, len(found)))
    write_bundle(files, tmp_path / "b")
    check_bundle(tmp_path / "b")
    plan, unnoticed = plan_of(document), list[str]()
    for mutation in found:
        changed = mutation.applied(document)
        if understood(changed) == plan:
            continue  # what is left out is what it was: nothing has changed
        write_consistently(tmp_path / "b", files, changed)
        codes = codes_of(tmp_path / "b")
        if not codes and reason_for(mutation, kind) is not None:
            continue
        expected = {"BW207"} | ({"BW211"} if mutation.pattern == "schema" else {"BW401", "BW402"})
        if not codes or not codes <= expected:
            unnoticed.append(f"{mutation}: {codes}")
    assert unnoticed == []


def codes_of(folder: Path) -> set[str]:
    """What `check` has against a bundle."""
    try:
        check_bundle(folder)
    except CompileError as error:
        return {diagnostic.code for diagnostic in error.diagnostics}
    return set()


Change = Callable[[dict[str, Any]], None]


def buffer(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(b for b in document["buffers"] if b["name"] == name)


def step(document: dict[str, Any], member: str) -> dict[str, Any]:
    return next(s for s in document["steps"] if s.get(member))


def shrunk(document: dict[str, Any]) -> None:
    """A tensor of no bytes under another one."""
    inner = buffer(document, "conv2d_0/out")
    inner["size_bytes"] = 0
    inner["place"]["offset"] = 0


FORGED: dict[str, tuple[str, Change, str]] = {
    "a tensor without bytes": ("plain", shrunk, "'conv2d_0/out' has 0 B, its "),
    "a ring of fewer bytes": (
        "rows",
        lambda d: buffer(d, "depthwise_conv2d_1/out").update(size_bytes=100),
        "ring 'depthwise_conv2d_1/out' of 3 rows of 56 B has 100 B",
    ),
    "an alignment of nothing": (
        "pinned",
        lambda d: buffer(d, "conv2d_0/out").update(alignment=0),
        "'conv2d_0/out' is aligned to 0, which is no power of two",
    ),
    "a loop that ends before it begins": (
        "rows",
        lambda d: d["loops"][0].update(steps=[1, 0]),
        "a loop has the steps 1 to 0, which do not exist",
    ),
    "an input of fewer bytes": (
        "plain",
        lambda d: d["inputs"][0].update(size_bytes=1),
        "input 'image' of 1 B is buffer 'image', which is",
    ),
    "an overlap over nothing": (
        "plain",
        lambda d: step(d, "overlaps")["overlaps"][0].update(source="nobody"),
        "names 'nobody', which is no buffer of the plan",
    ),
    "an overlap of nothing": (
        "plain",
        lambda d: step(d, "overlaps")["overlaps"][0].update(output="nobody"),
        "names 'nobody', which is no buffer of the plan",
    ),
    "a pool of another name": (
        "plain",
        lambda d: d["pools"][0].update(name="rams"),
        "is in pool 'ram', which the plan does not have",
    ),
    "a pool less": (
        "plain",
        lambda d: d["pools"].pop(0),
        "is in pool 'ram', which the plan does not have",
    ),
    "an input that is planned": (
        "plain",
        lambda d: d["buffers"][0]["place"].update(kind="planned"),
        "'image' is in pool 'image', which the plan does not have",
    ),
    "a loop of steps that are not there": (
        "rows",
        lambda d: d["loops"][0].update(steps=[0, 64]),
        "a loop has the steps 0 to 64, which do not exist",
    ),
    "a lifetime that is longer than needed": (
        "plain",
        lambda d: buffer(d, "conv2d_0/out").update(live=[0, 20]),
        "'conv2d_0/out' lives from 0 to 20, and is needed otherwise",
    ),
    "a device that touches nothing": (
        "pinned",
        lambda d: buffer(d, "conv2d_0/out").update(devices=[]),
        "touches 'conv2d_0/out', which does not say so",
    ),
    "another scale": (
        "plain",
        lambda d: d["inputs"][0].update(scale=0.75),
        "states DIGITS_INPUT_IMAGE_SCALE",
    ),
    "a branch in a loop that says it is in none": (
        "requesting",
        lambda d: d["conditions"][0].update(loop=None),
        "is in the loop of steps 2 to 8, its condition in no loop",
    ),
    "a tensor of two entries": (
        "entries",
        lambda d: buffer(d, "push/t").update(live=[0, 20]),
        "'push/t' lives from 0 to 20, which no entry has for itself",
    ),
    "an input that another entry has written over": (
        "entries",
        lambda d: d["entries"][1].update(inputs=["frame"]) or d["entries"][0].update(inputs=[]),
        "step 0 reads 'frame', which no step before it has written",
    ),
    "a step of the other entry": (
        "entries",
        lambda d: d["entries"][0].update(steps=[0, 1]) or d["entries"][1].update(steps=[1, 5]),
        "has the ticks",
    ),
    "a step of no entry": (
        "entries",
        lambda d: d["entries"][1].update(steps=[2, 4]),
        "1 steps are of no entry",
    ),
    "an entry of another name": (
        "entries",
        lambda d: d["entries"][1].update(name="judge"),
        "src/wake.c calls 0 kernels, not those of the plan's 3 steps in order",
    ),
    "an entry alone": (
        "entries",
        lambda d: d["entries"].pop(),
        "the plan states one entry, 'push', which is 'run' then and not stated",
    ),
    "no entries": (
        "entries",
        lambda d: d.pop("entries"),
        "src/wake.c calls 0 kernels, not those of the plan's 5 steps in order",
    ),
    "a state that a kernel writes against the plan": (
        "entries",
        lambda d: d["steps"][1].update(writes=["pushed"]),
        "'ring' is passed to be written, against the plan",
    ),
    "a state that a kernel is said to write": (
        "entries",
        lambda d: d["steps"][2]["writes"].append("ring"),
        "'ring' is not passed to be written, against the plan",
    ),
    "a tensor that is said not to be read": (
        "entries",
        lambda d: d["steps"][4].update(reads=[], scratch=["pushed"]),
        "'pushed' is passed to be read, and by the plan it is not",
    ),
    "what a state begins with in another step": (
        "entries",
        lambda d: buffer(d, "ring/initial").update(first_step=1, last_step=1),
        "'ring/initial' is said to be used in steps 1 to 1, and none uses it: that is 0 to 0",
    ),
    "an array of another type": (
        "entries",
        lambda d: buffer(d, "classify/t").update(dtype="f32"),
        "'classify/t' of float32 is passed as 'int32_t'",
    ),
    "no stack": (
        "entries",
        lambda d: d.update(stack={}),
        "the plan has the stacks none, and its code runs on cpu",
    ),
    "a stack less": (
        "second device",
        lambda d: d["stack"].pop("core1"),
        "the plan has the stacks cpu, and its code runs on cpu, core1",
    ),
    "a stream of more frames than a window": (
        "stream",
        lambda d: d["stream"].update(num_new=19),
        "a run is said to take 19 of 19 frames",
    ),
    "a stream whose frames are elsewhere": (
        "stream",
        lambda d: d["stream"]["input_axes"].update(t1=2),
        "'t1' has 4 rows along axis 2, a run takes 2 frames",
    ),
    "a stream of no input": (
        "stream",
        lambda d: d["stream"].update(input_axes={}),
        "the model is said to run frame by frame, and no input has frames",
    ),
    "a stream with padding of half a run": (
        "stream",
        lambda d: d["stream"].update(is_padded=True),
        "the window is said to be padded, and its 19 frames are no runs of 2",
    ),
    "a stream that leaves out what nothing pads": (
        "stream",
        lambda d: d["stream"].update(num_left_out=1),
        "1 frames are said to be left out, at most 0 can be",
    ),
    "a stream of more runs than frames": (
        "stream",
        lambda d: d["stream"].update(num_runs_before=10),
        "10 runs are said to come before 19 frames, 2 at a time",
    ),
    "a stream that costs more than the window": (
        "stream",
        lambda d: d["stream"].update(macs=d["stream"]["macs_before"]),
        "multiply-accumulates",
    ),
    "a pool less that nobody uses": (
        "open extents",
        lambda d: d["pools"].pop(),
        "the plan has the pools",
    ),
    "an input under another name": (
        "plain",
        lambda d: d["inputs"][0].update(name="picture"),
        "input 'picture' is called 'image' in C",
    ),
    "another scale of an input's buffer": (
        "plain",
        lambda d: buffer(d, "image").update(scale=0.5),
        "input 'image' and its buffer 'image' have other scales or zero points",
    ),
    "a scope of what is in no pool": (
        "plain",
        lambda d: buffer(d, "image").update(scope="global.ram"),
        "'image' is no buffer of a pool, and its scope is 'global.ram'",
    ),
    "an overlap that keeps apart what is apart": (
        "plain",
        lambda d: step(d, "overlaps")["overlaps"][0].update(below_bytes=1 << 20),
        "where they are apart",
    ),
    "no packed form of the run": (
        "packed",
        lambda d: d.pop("has_packed_entry"),
        "where the plan asks for 'nothing'",
    ),
    "a call with plain arguments": (
        "packed",
        lambda d: d["steps"][0].pop("is_packed") and d["steps"][0].pop("num_packed_arguments"),
        "arguments in arrays, by the plan 0",
    ),
    "a row less of a border that a kernel makes": (
        "plain",
        lambda d: step(d, "scalars")["scalars"].__setitem__(1, 7),
        "it is given the number '8', by the plan '7'",
    ),
    "a number less": (
        "packed",
        lambda d: step(d, "scalars")["scalars"].pop(),
        "it is given 2 numbers, by the plan 1",
    ),
    "other flags": (
        "plain",
        lambda d: d["build"]["flags"].pop(),
        "CMakeLists.txt does not have the flags of the plan",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_plans_are_refused(tmp_path: Path, name: str) -> None:
    kind, change, sentence = FORGED[name]
    files = dict(BUNDLES[kind]().files)
    document = json.loads(files["plan.json"])
    change(document)
    write_bundle(files, tmp_path / "b")
    write_consistently(tmp_path / "b", files, document)
    with pytest.raises(CompileError) as caught:
        check_bundle(tmp_path / "b")
    notes = [note for d in caught.value.diagnostics for note in d.notes]
    assert any(sentence in note for note in notes), notes
