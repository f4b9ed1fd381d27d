"""Reach is through ports: one setting of a driver has to serve each base pointer of all jobs."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from bytewright.compiler.pipeline import Planned, plan_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check_devices import faults_of_devices
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options, parse_pin_option
from bytewright.record.base_pointers import STREAM, base_pointers
from bytewright.target.load import load_text
from support.ethos_u import ADD_ON_CPU, SEPARATE, SHARED, U55, needs_vela, vela
from support.shared_models import RESNET8, model_path

pytestmark = needs_vela
DDR = '\n[[workspace]]\nname = "ddr"\nmemory = "ddr"\nsize = "1MiB"\n'
SECOND = "m_ethos_u_2/scratch"


def planned(folder: Path, pin: str | None = None, port: str = "axi1") -> Planned:
    """ResNet8 with its additions on the CPU, on a board with a workspace in the DDR, which is behind a port."""
    text = (files("bytewright.target") / "builtin" / "corstone-300-u55.toml").read_text(encoding="utf-8")
    reach = '{ memory = "ddr", port = "axi1", coherent = false }'
    assert text.count(reach) == 1
    target = load_text(text.replace(reach, reach.replace("axi1", port)) + DDR, "t.toml")
    path = folder / "m.tflite"
    path.write_bytes(vela(model_path(RESNET8).read_bytes(), U55, SHARED, *ADD_ON_CPU, *SEPARATE))
    pins = () if pin is None else (parse_pin_option(pin),)
    return plan_model(path, target, Options(numerics=Numerics.TFLM, pins=pins, io=Io.WORKSPACE))


def test_a_region_behind_two_ports_is_refused_and_the_help_works(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="BW746") as caught:
        planned(tmp_path, f"{SECOND}=ddr")
    (found,) = caught.value.diagnostics
    assert found.message == (
        "device 'npu' reaches region 1 of its streams through one port, and the plan needs two: "
        f"'m_ethos_u_0/scratch' of step 0 in 'isram' behind 'axi0', '{SECOND}' of step 2 in 'ddr' behind 'axi1'"
    )
    assert found.help == f"put both into one memory: --pin '{SECOND}=isram'"
    assert planned(tmp_path, f"{SECOND}=isram").plan.buffers[SECOND].place.name == "isram"


def test_memories_behind_one_port_may_differ_from_job_to_job(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"{SECOND}=ddr", port="axi0").plan
    given = base_pointers(plan, plan.devices["npu"])
    assert {number: {(each.memory, each.port) for each in some} for number, some in given.items()} == {
        STREAM: {("flash", "axi1")},
        0: {("flash", "axi1")},
        1: {("isram", "axi0"), ("ddr", "axi0")},
        3: {("isram", "axi0")},
        4: {("isram", "axi0")},
    }


def test_the_check_of_a_bundle_finds_two_ports(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"{SECOND}=ddr", port="axi0").plan
    assert list(faults_of_devices(plan)) == []
    npu = plan.hardware.device("npu")
    reach = tuple(replace(each, port="axi1" if each.memory == "ddr" else each.port) for each in npu.reach)
    devices = tuple(replace(d, reach=reach) if d.name == "npu" else d for d in plan.hardware.devices)
    broken = replace(plan, hardware=replace(plan.hardware, devices=devices))
    (fault,) = faults_of_devices(broken)
    assert fault == (
        "device 'npu' reaches region 1 of its streams through one port, and 'm_ethos_u_0/scratch' is behind 'axi0', "
        f"'{SECOND}' behind 'axi1'"
    )
