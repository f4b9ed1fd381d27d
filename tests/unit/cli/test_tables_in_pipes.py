"""Where a program reads the tables, every name is in one piece, however narrow a terminal would be."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import bytewright as package
from bytewright.cli.main import bytewright
from bytewright.frontends.registry import FRONTENDS
from bytewright.inspect.check import verified_plan
from bytewright.report.places import largest_first
from bytewright.report.report_view import NUM_LARGEST
from bytewright.target.registry import BUILTIN_TARGETS, load_target
from support.digits_bundle import DIGITS, write_digits

LONG = "a_model_whose_name_is_as_long_as_a_line_of_a_terminal_is_not"


def shown(*arguments: object) -> str:
    result = CliRunner(env={"COLUMNS": "60"}).invoke(bytewright, [str(argument) for argument in arguments])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example under a long name."""
    folder = tmp_path_factory.mktemp("long")
    return package.compile(DIGITS, target="mps3-an547", name=LONG).write(folder / "bundle")


def test_report_breaks_no_name(bundle: Path) -> None:
    text, plan = shown("report", bundle), verified_plan(bundle)
    names = [pool.name for pool in plan.pools.values()]
    names += [buffer.name for buffer in largest_first(plan)[:NUM_LARGEST]]
    names += [step.kernel.removeprefix(f"{plan.model}_") for step in plan.steps]
    names += [" + ".join(step.operators) for step in plan.steps]
    names += [" > ".join(stack.path) for stack in plan.stack.values()]
    assert LONG in " ".join(names)
    assert [name for name in names if name not in text] == []


def test_a_chart_keeps_to_a_line(bundle: Path) -> None:
    text = shown("report", bundle)
    chart = [line for line in text.splitlines() if set(line) & set("│┄█")]
    assert len(chart) > 2
    assert max(map(len, chart)) <= 80


def test_a_comparison_breaks_no_name(bundle: Path, tmp_path: Path) -> None:
    other = write_digits(tmp_path / "other", "host")
    text = shown("report", bundle, other)
    for plan in (verified_plan(bundle), verified_plan(other)):
        assert [name for name in plan.pools if plan.pools[name].used_bytes and name not in text] == []


def test_explain_breaks_no_name(bundle: Path) -> None:
    plan = verified_plan(bundle)
    step = plan.steps[0]
    name = step.writes[0]
    text = shown("explain", bundle, name)
    assert step.kernel in text
    assert name in text


def test_profile_breaks_no_name(bundle: Path) -> None:
    text, plan = shown("profile", bundle, "--repeat", "1"), verified_plan(bundle)
    kernels = [step.kernel.removeprefix(f"{plan.model}_") for step in plan.steps]
    assert [name for name in kernels if name not in text] == []


def test_ops_break_no_name_and_no_limit() -> None:
    text = shown("ops")
    for frontend in FRONTENDS.values():
        for operator in frontend.operators():
            for words in (operator.name, ", ".join(operator.types), operator.limits):
                assert words in text
        assert ", ".join(frontend.folded()) in text


def test_targets_break_no_description() -> None:
    text = shown("targets")
    for name in BUILTIN_TARGETS:
        assert name in text
        assert load_target(name).description in text


@pytest.mark.parametrize("words", [("ops",), ("ops", "--against", "tflm"), ("targets",)], ids=" ".join)
def test_lines_have_no_blanks_at_their_ends(words: tuple[str, ...]) -> None:
    assert [line for line in shown(*words).splitlines() if line != line.rstrip()] == []
