"""`check --stack`: call graphs read, the worst path, and each way in which a stack is not what the plan says."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from click.testing import CliRunner

from bytewright import compile as compile_model_file
from bytewright.cli.main import bytewright
from bytewright.diagnostics import CompileError
from bytewright.inspect.stack.call_graph import find_cycle, reachable, read_call_graph, worst_path
from bytewright.inspect.stack.check_stack import IN_MEMORY, StackProof, check_stack
from bytewright.record.plan import Plan
from bytewright.target import load_target
from bytewright.target.isa.find import require_isa
from bytewright.target.model import ExternalStack
from support.digits_bundle import DIGITS, digits_plan, write_digits


def graph_text(frames: dict[str, int | str], calls: list[tuple[str, str]]) -> str:
    """A file in gcc's format: frames are bytes, bytes with a kind, or "" for what is only declared."""
    lines = ['graph: { title: "a.c"']
    for name, usage in frames.items():
        text = f"{usage} bytes (static)" if isinstance(usage, int) else usage
        own = f"\\n{text}" if text else ""
        shape = "" if text else " shape : ellipse"
        lines.append(f'node: {{ title: "{name}" label: "{name}\\na.c:1:1{own}"{shape} }}')
    lines += [f'edge: {{ sourcename: "{a}" targetname: "{b}" label: "a.c:2:2" }}' for a, b in calls]
    return "\n".join([*lines, "}"])


def test_files_are_joined_by_title_and_statics_stay_apart() -> None:
    first = graph_text({"run": 80, "kernel": ""}, [("run", "kernel"), ("run", "kernel")])
    second = graph_text(
        {"kernel": "48 bytes (dynamic,bounded)", "some/folder/a.c:helper": 8},
        [("kernel", "some/folder/a.c:helper")],
    )
    graph = read_call_graph([first, second])
    assert graph["run"].callees == ("kernel",)
    assert (graph["kernel"].stack_bytes, graph["kernel"].is_bounded) == (48, True)
    path = worst_path(graph, "run", {})
    assert (path.total_bytes, str(path)) == (136, "run 80 B -> kernel 48 B -> a.c:helper 8 B")


def test_a_line_that_is_no_call_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="no line of a call graph"):
        read_call_graph(["node: something"])
    with pytest.raises(ValueError, match="the stack of 'run' is not stated"):
        read_call_graph([graph_text({"run": "many bytes"}, [])])


def test_the_worst_path_is_the_deepest_not_the_longest() -> None:
    graph = read_call_graph(
        [
            graph_text(
                {"run": 10, "a": 10, "b": 10, "c": 10, "wide": 35, "memset": ""},
                [("run", "a"), ("a", "b"), ("b", "c"), ("run", "wide"), ("wide", "memset"), ("c", "memset")],
            )
        ]
    )
    assert [name for name, _ in worst_path(graph, "run", {"memset": 16}).steps] == ["run", "wide", "memset"]
    assert worst_path(graph, "run", {"memset": 16}).total_bytes == 61
    assert worst_path(graph, "c", {}).total_bytes == 10
    assert set(reachable(graph, ["wide"])) == {"wide", "memset"}


def test_a_cycle_is_found_with_its_path_and_a_diamond_is_none() -> None:
    frames: dict[str, int | str] = {"run": 1, "a": 1, "b": 1}
    diamond = read_call_graph([graph_text(frames, [("run", "a"), ("run", "b"), ("a", "b")])])
    assert find_cycle(diamond, ["run"]) is None
    looped = read_call_graph([graph_text(frames, [("run", "a"), ("a", "b"), ("b", "a")])])
    assert find_cycle(looped, ["run"]) == ("a", "b", "a")


# --- verdicts, with a compiler that says what the test wants


class Compiler:
    """Returns the same call graph for all flags, or another one without optimisation."""

    def __init__(self, optimised: str, in_memory: str | None = None) -> None:
        self.optimised, self.in_memory = optimised, in_memory
        self.flags: list[tuple[str, ...]] = []

    def __call__(self, flags: tuple[str, ...]) -> Mapping[str, str]:
        self.flags.append(flags)
        if flags == IN_MEMORY and self.in_memory is not None:
            return {"digits": self.in_memory}
        return {"digits": self.optimised}


def plan_with(planned: int, size: int, limit: int | None = None) -> Plan:
    plan = digits_plan()
    stack = replace(plan.stack["cpu"], planned_bytes=planned, size_bytes=size, limit_bytes=limit)
    return replace(plan, stack=MappingProxyType({"cpu": stack}))


def simple(run: int | str, kernel: int | str = 0, *calls: tuple[str, str]) -> str:
    frames: dict[str, int | str] = {"digits_run": run, "kernel": kernel}
    frames |= {callee: "" for _, callee in calls if callee not in frames}
    return graph_text(frames, [("digits_run", "kernel"), *calls])


def verdict(plan: Plan, compiler: Compiler) -> StackProof:
    return check_stack(plan, compiler)


def faults(plan: Plan, compiler: Compiler) -> str:
    with pytest.raises(CompileError) as caught:
        check_stack(plan, compiler)
    assert {d.code for d in caught.value.diagnostics} == {"BW403"}
    assert caught.value.exit_code == 4
    return str(caught.value)


def test_bounds_are_met_exactly() -> None:
    compiler = Compiler(simple(60, 40))
    proof = verdict(plan_with(planned=100, size=100, limit=100), compiler)
    assert (proof.stack.planned_bytes, proof.measured.total_bytes, proof.stack.size_bytes) == (100, 100, 100)
    assert proof.in_memory is None
    assert compiler.flags == [("-O2",)]


def test_one_byte_more_than_promised_is_found_with_its_path() -> None:
    text = faults(plan_with(planned=0, size=99), Compiler(simple(60, 40)))
    assert "needs 100 B of stack, DIGITS_STACK_SIZE is 99 B: 1 B too few" in text
    assert "digits_run 60 B -> kernel 40 B" in text


def test_a_size_over_the_limit_is_found() -> None:
    assert "the target admits 120 B" in faults(plan_with(0, 121, 120), Compiler(simple(60, 40)))


def test_arrays_in_registers_are_proved_without_optimisation() -> None:
    compiler = Compiler(simple(60, 40), simple(60, 80))
    proof = verdict(plan_with(planned=140, size=500), compiler)
    assert proof.in_memory is not None
    assert (proof.measured.total_bytes, proof.in_memory.total_bytes) == (100, 140)
    assert compiler.flags == [("-O2",), IN_MEMORY]
    text = faults(plan_with(planned=141, size=500), Compiler(simple(60, 40), simple(60, 80)))
    assert "counts 141 B of arrays on the stack" in text
    assert "140 B with every array in memory" in text


def test_a_setter_may_be_the_worst_root() -> None:
    text = graph_text({"digits_run": 10, "digits_set_workspaces": 300, "digits.c:private": 900}, [])
    proof = verdict(plan_with(0, 300), Compiler(text))
    assert proof.measured.steps == (("digits_set_workspaces", 300),)


def test_undeclared_functions_are_all_named_with_the_key() -> None:
    graph = simple(60, 40, ("kernel", "mystery"), ("kernel", "expf"), ("digits_run", "riddle"))
    text = faults(plan_with(0, 500), Compiler(graph))
    assert "'mystery', which 'kernel' calls, is not declared" in text
    assert "under [stack.external]: mystery = BYTES" in text
    assert "riddle = BYTES" in text
    assert "expf" not in text  # the board declares it


def test_a_declared_function_counts() -> None:
    plan = plan_with(0, 500)
    hardware = replace(plan.hardware, external_stacks=(ExternalStack("mystery", 77),))
    proof = verdict(replace(plan, hardware=hardware), Compiler(simple(60, 40, ("kernel", "mystery"))))
    assert proof.measured.steps == (("digits_run", 60), ("kernel", 40), ("mystery", 77))


def test_recursion_pointers_and_unbounded_frames_are_refused() -> None:
    recursive = simple(60, 40, ("kernel", "digits_run"))
    assert "digits_run -> kernel -> digits_run" in faults(plan_with(0, 500), Compiler(recursive))
    indirect = simple(60, 40, ("kernel", "__indirect_call"))
    assert "'kernel' calls through a pointer" in faults(plan_with(0, 500), Compiler(indirect))
    unbounded = simple(60, "40 bytes (dynamic)")
    assert "no bound for the stack of 'kernel'" in faults(plan_with(0, 500), Compiler(unbounded))


def test_a_compiler_without_call_graphs_is_a_tool_error() -> None:
    with pytest.raises(CompileError) as caught:
        check_stack(plan_with(0, 500), lambda _: {})
    assert caught.value.diagnostics[0].code == "BW502"


# --- the command


@pytest.mark.parametrize(
    "target",
    [
        "host",
        "mps3-an547",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("mps2-an386", "mps2-an500")),
    ],
)
@pytest.mark.parametrize("caller_parameters", [False, True])
@pytest.mark.run
def test_the_command_proves_the_stack_of_a_bundle(
    tmp_path: Path, target: str, caller_parameters: bool
) -> None:
    """With parameters of the application too: what sets them calls the C library."""
    bundle = write_digits(tmp_path / "digits", target, caller_parameters)
    plain = CliRunner().invoke(bytewright, ["check", str(bundle), "--stack"])
    assert plain.exit_code == 0, plain.output
    assert "stack of cpu:" in plain.output
    as_json = CliRunner().invoke(
        bytewright, ["check", str(bundle), "--stack", "--json", "--cflags", "-O3 -g"]
    )
    stack = json.loads(as_json.stdout)["stack"]
    assert stack["path"][0]["function"] == "digits_run"
    assert sum(step["stack_bytes"] for step in stack["path"]) == stack["measured_bytes"]
    assert 0 < stack["measured_bytes"] <= stack["size_bytes"]


@pytest.mark.run
def test_an_isa_that_names_no_core_is_refused(tmp_path: Path) -> None:
    target = load_target("generic-cortex-m")
    target = replace(target, devices=(replace(target.devices[0], isa=require_isa("rv32imac")),))
    bundle = compile_model_file(DIGITS, target=target).write(tmp_path / "digits")
    refused = CliRunner().invoke(bytewright, ["check", str(bundle), "--stack"])
    assert refused.exit_code == 1
    assert "'rv32imac' names none" in refused.output
