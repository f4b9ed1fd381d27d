"""What files of the C have for themselves is called as nothing of the model is, whatever the model is called."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from bytewright import ir
from bytewright.base.c_names import model_name
from bytewright.compiler.pipeline import compile_model
from bytewright.ir.rewrite import rename_callees
from bytewright.naming.name_symbols import name_symbols
from bytewright.naming.operator_functions import FUNCTIONS
from bytewright.naming.symbols import (
    symbols_of_devices,
    symbols_of_files,
    symbols_of_model,
    symbols_of_packed_forms,
)
from bytewright.options import Options
from bytewright.target.registry import load_target
from support import arena_cases, two_devices
from support.digits_bundle import DIGITS

_RUN = ir.Module("m", entries=(ir.PrimFunc("main", (), ir.Seq(())),))
ALL = symbols_of_files(has_devices=True) | symbols_of_packed_forms(_RUN) - {"m_run_packed", "m_argument"}


def own_symbols(files: Mapping[str, bytes]) -> set[str]:
    """Functions and types that its C files have for themselves, but for those that begin with the model's name."""
    sources = [
        text.decode() for file, text in files.items() if file.startswith("src/") and file.endswith(".c")
    ]
    found = {name for text in sources for name in re.findall(r"^static [^=;]*?(\w+)\(", text, re.MULTILINE)}
    found |= {name for text in sources for name in re.findall(r"^\} (\w+);", text, re.MULTILINE)}
    return {name for name in found if not name.startswith(("pair_", "digits_", "pools_"))} - FUNCTIONS.keys()


def test_all_of_them_are_known() -> None:
    packed = Options(calling_form=ir.Form.PACKED)
    of_devices = own_symbols(two_devices.compiled().files)
    of_arena = own_symbols(arena_cases.compiled("pools").files)
    of_packed = own_symbols(compile_model(DIGITS, load_target("mps2-an521"), packed).files)
    assert {"run_steps", "needed_span", "check_tensors"} <= of_devices
    assert {"find_arena", "first_error"} <= of_arena
    assert {"check_arguments", "workspaces_at", "first_address"} <= of_packed
    assert of_devices | of_arena | of_packed <= ALL


@pytest.mark.parametrize("symbol", sorted({*ALL, "await_job"}))
def test_no_model_has_a_name_that_makes_it_one_of_its_own(symbol: str) -> None:
    fronts = [symbol[: match.start()] for match in re.finditer("_", symbol)]
    for model in fronts:
        own = symbols_of_model(model, (), ()) | symbols_of_devices(model, ["d"])
        own |= {f"{model}_run_packed", f"{model}_argument"}
        assert symbol not in own or model_name(model) != model


@pytest.mark.parametrize("symbol", ["share_bytes", "run_steps", "hand_over", "device_use", "tensors_at"])
def test_a_kernel_of_such_a_name_has_another_one(symbol: str) -> None:
    model = symbol.partition("_")[0]
    module = two_devices.program(two_devices.PROGRAM.replace("pair", model).replace(f"{model}_shift", symbol))
    assert symbol in [kernel.name for kernel in module.kernels]
    named = name_symbols(module)
    assert symbol not in [kernel.name for kernel in named.kernels]
    assert named.main == rename_callees(module.main, {symbol: f"{symbol}_1"})
