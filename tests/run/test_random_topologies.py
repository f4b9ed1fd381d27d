"""Graphs on machines whose memories are joined at random, by cores and by devices that only copy.

Whether there is a way is decided by a search over memories of the test's own; what is computed, by LiteRT.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model, plan_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import On, Options, parse_on_option
from bytewright.record.plan import Plan
from bytewright.target import load_text
from support.reference import LiteRt
from support.tiers import THOROUGH

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "FULLY_CONNECTED", "SOFTMAX")


@dataclass(frozen=True)
class Machine:
    """Devices and the memories that each reaches, but for flash, which cores reach; the CPU comes first."""

    cores: dict[str, tuple[str, ...]]
    movers: dict[str, tuple[str, ...]]

    @property
    def memories(self) -> list[str]:
        return sorted({name for reach in (self.cores | self.movers).values() for name in reach})

    def toml(self) -> str:
        lines = ['name = "joined"', 'default-device = "cpu"']
        for name in self.memories:
            lines += [
                f"[memory.{name}]",
                'size = "64KiB"',
                "[[workspace]]",
                f'name = "{name}"',
                f'memory = "{name}"',
            ]
        lines += ["[memory.flash]", 'size = "1MiB"', 'access = "r"', "[[parameters]]", 'name = "flash"']
        lines += ['memory = "flash"']
        for name, reach in self.cores.items():
            lines += [
                f"[device.{name}]",
                'isa = "host"',
                f"reach = {[*reach, 'flash']}",
                f'stack = "{reach[0]}"',
            ]
            lines += ['max-stack-size = "8KiB"']
        for name, reach in self.movers.items():
            lines += [f"[device.{name}]", 'isa = "dma"', f"reach = {[*reach, 'flash']}"]
        return "\n".join(lines).replace("'", '"') + "\n"

    def joined(self) -> set[str]:
        """The memories that a value of the CPU's can get to."""
        found, before = set(self.cores["cpu"]), set[str]()
        while found != before:
            before = set(found)
            for reach in (self.cores | self.movers).values():
                if found & set(reach):
                    found |= set(reach)
        return found


def drawn(seed: int) -> tuple[Machine, tuple[On, ...], Io]:
    random = Random(seed)
    memories = [f"m{number}" for number in range(random.randint(2, 5))]
    cores = {"cpu": tuple(memories[: random.randint(1, 2)])}
    for number in range(1, random.randint(2, 3)):
        cores[f"core{number}"] = tuple(random.sample(memories, random.randint(1, 2)))
    movers = {
        f"dma{number}": tuple(random.sample(memories, 2))
        for number in range(random.randint(1, len(memories)))
    }
    on = tuple(parse_on_option(f"{kind}={random.choice(list(cores))}") for kind in KINDS)
    return Machine(cores, movers), on, random.choice((Io.CALLER, Io.WORKSPACE))


def planned_or_refused(machine: Machine, on: tuple[On, ...], io: Io) -> Plan | set[str]:
    """The plan, or codes."""
    try:
        return plan_model(DIGITS, load_text(machine.toml(), "joined.toml"), Options(on=on, io=io)).plan
    except CompileError as error:
        return {each.code for each in error.diagnostics}


@pytest.mark.parametrize("seed", range(60) if THOROUGH else (3, 12, 17, 24, 35))
def test_a_graph_compiles_where_there_is_a_way_and_nowhere_else(seed: int) -> None:
    machine, on, io = drawn(seed)
    is_possible = all(machine.joined() & set(machine.cores[option.device]) for option in on)
    found = planned_or_refused(machine, on, io)
    if isinstance(found, set):
        assert (is_possible, found) == (False, {"BW703"})
        return
    assert is_possible
    assert {step.device for step in found.steps} >= {option.device for option in on}


@pytest.mark.parametrize("seed", [1, 27])
def test_what_crosses_such_machines_is_right(seed: int, tmp_path: Path) -> None:
    machine, on, io = drawn(seed)
    compiled = compile_model(DIGITS, load_text(machine.toml(), "joined.toml"), Options(on=on, io=io))
    write_bundle(compiled.files, tmp_path / "b")
    check_bundle(tmp_path / "b")
    x = np.random.default_rng(seed).integers(-128, 128, (1, 8, 8, 1), dtype=np.int8)
    (wanted,) = LiteRt(DIGITS).run(x)
    assert np.array_equal(run_bundle(tmp_path / "b", [x]).outputs[0], wanted)
    assert np.array_equal(run_paranoid(tmp_path / "b", [x]).result.outputs[0], wanted)
