"""The MLPerf Tiny int8 models on an emulated Cortex-M55: exact, counted, within their stack, in their memories."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from bytewright.execute.boards.image import build_image
from bytewright.execute.boards.placement import place_on_board
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.result import BatchResult
from bytewright.execute.run import run_batch
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.target.model import Target
from bytewright.target.options import (
    Overrides,
    apply_overrides,
    parse_pool_option,
    parse_provider_option,
    parse_resize_option,
)
from bytewright.target.registry import load_target
from support.reference import LiteRt
from support.shared_models import (
    BOARD,
    INT8,
    KWS,
    TFLM_CHECKSUMS,
    WITH_SOFTMAX,
    bundle,
    compiled,
    fnv1a_32,
    model_content,
    ramp,
    random_inputs,
)
from support.tiers import THOROUGH

COUNT = 40 if THOROUGH else 10
SEED = 21
VARIANTS = [
    *(pytest.param(name, False, id=name) for name in INT8),
    *(pytest.param(name, True, id=f"{name}-logits") for name in INT8 if name in WITH_SOFTMAX),
]


def board_target(overrides: Overrides | None = None) -> Target:
    return apply_overrides(load_target(BOARD), overrides or Overrides())


@cache
def two_pools() -> Target:
    """kws needs 16000 B: half of it in DTCM, the rest in ISRAM."""
    return board_target(Overrides(resize=(parse_resize_option("dtcm=8KiB"),)))


def check_batch(name: str, logits: bool, result: BatchResult, count: int) -> None:
    reference = LiteRt(model_content(name, logits))
    batch = random_inputs(name, count, SEED)
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])


@pytest.mark.parametrize(("name", "logits"), VARIANTS)
def test_random_inputs_in_one_image(name: str, logits: bool) -> None:
    target = board_target()
    folder = bundle(name, target, logits=logits)
    batch = random_inputs(name, COUNT, SEED)
    result = run_batch(folder, batch, on="qemu")
    check_batch(name, logits, result, COUNT)

    again = run_batch(folder, batch[:2], on="qemu", repeat=2)
    assert again.instructions == (*(result.instructions[:1] * 2), *(result.instructions[1:2] * 2))

    planned, limit = stack_bytes(folder)
    assert result.stack_bytes is not None
    assert planned <= result.stack_bytes <= limit
    available = target.default_device.contexts[0].available_stack_bytes
    assert available is not None
    assert limit <= available


def stack_bytes(folder: Path) -> tuple[int, int]:
    """<M>_STACK_PLANNED_BYTES and <M>_STACK_SIZE of the header."""
    bundle_read = read_bundle(folder)
    header = (folder / "include" / f"{bundle_read.plan.model}.h").read_text()
    prefix = bundle_read.plan.model.upper()
    planned = re.search(rf"#define {prefix}_STACK_PLANNED_BYTES (\d+)", header)
    limit = re.search(rf"#define {prefix}_STACK_SIZE (\d+)", header)
    assert planned is not None
    assert limit is not None
    return int(planned[1]), int(limit[1])


@pytest.mark.parametrize("name", INT8)
def test_checksums_of_tflite_micro(name: str) -> None:
    shape = random_inputs(name, 1, seed=0)[0][0].shape
    folder = bundle(name, board_target(), Numerics.TFLM)
    result = run_batch(folder, [[ramp(shape)], [np.zeros(shape, np.int8)]], on="qemu")
    assert tuple(fnv1a_32(outputs[0].tobytes()) for outputs in result.outputs) == TFLM_CHECKSUMS[name]


def symbols_of(folder: Path, image: Path) -> dict[str, tuple[int, int]]:
    """Address and size of the arrays in the image of a bundle."""
    own = read_bundle(folder)
    build_image(own, place_on_board(own.plan), image, BuildOptions())
    with (image / "image.elf").open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert table is not None
        return {
            symbol.name: (symbol["st_value"], symbol["st_size"])
            for symbol in table.iter_symbols()
            if symbol["st_info"]["type"] == "STT_OBJECT"
        }


def is_inside(target: Target, memory: str, array: tuple[int, int]) -> bool:
    address, size_bytes = array
    return any(
        first <= address and address + size_bytes <= end
        for first, end in target.memory(memory).address_ranges()
    )


def test_arrays_lie_in_their_memories(tmp_path: Path) -> None:
    target = two_pools()
    arrays = symbols_of(bundle(KWS, target), tmp_path)
    pools = {pool["name"]: pool for pool in compiled(KWS, target).document["pools"]}
    assert 0 < pools["dtcm"]["used_bytes"] <= 8 << 10
    assert pools["isram"]["used_bytes"] > 0
    for index, memory in enumerate(("dtcm", "isram")):
        workspace = arrays[f"harness_workspace_{index}"]
        assert workspace[1] == pools[memory]["used_bytes"]
        assert is_inside(target, memory, workspace)
    parameters = arrays["kws_ref_model_flash_parameters"]
    assert parameters[1] == pools["flash"]["used_bytes"]
    assert is_inside(target, "flash", parameters)
    assert is_inside(target, "dtcm", arrays["harness_model_stack"])


def test_generated_arrays_lie_in_their_memories(tmp_path: Path) -> None:
    target = board_target(
        Overrides(
            workspace=(parse_pool_option("fast=8000@itcm"), parse_pool_option("wide@sram")),
            provider=(parse_provider_option("fast=generated"), parse_provider_option("wide=generated")),
        )
    )
    folder = bundle(KWS, target)
    arrays = symbols_of(folder, tmp_path)
    assert arrays["kws_ref_model_fast_workspace"][1] == 8000
    assert is_inside(target, "itcm", arrays["kws_ref_model_fast_workspace"])
    assert is_inside(target, "sram", arrays["kws_ref_model_wide_workspace"])
    check_batch(KWS, False, run_batch(folder, random_inputs(KWS, 3, SEED), on="qemu"), 3)


def test_parameters_in_a_blob(tmp_path: Path) -> None:
    target = board_target(Overrides(provider=(parse_provider_option("flash=caller"),)))
    folder = bundle(KWS, target)
    check_batch(KWS, False, run_batch(folder, random_inputs(KWS, 3, SEED), on="qemu"), 3)
    assert "kws_ref_model_flash_parameters" not in symbols_of(folder, tmp_path)


def test_nothing_is_written_but_workspaces_outputs_and_the_stack() -> None:
    result = run_batch(bundle(KWS, two_pools()), random_inputs(KWS, 1, SEED), on="qemu", measure_memory=True)
    check_batch(KWS, False, result, 1)
    traffic = {entry.name: entry for entry in result.traffic}
    written = {name for name, entry in traffic.items() if entry.stores}
    assert written == {"workspace dtcm", "workspace isram", "output identity", "stack"}
    used = {p["name"]: p["used_bytes"] for p in compiled(KWS, two_pools()).document["pools"]}
    for pool in ("dtcm", "isram"):
        entry = traffic[f"workspace {pool}"]
        assert entry.lowest_written is not None
        assert entry.highest_written is not None
        assert entry.highest_written - entry.lowest_written + 1 == used[pool]


RANGE_PROBE = """
#include "kws_ref_model.h"

int32_t kws_ref_model_run_planned(kws_ref_model_context *context, const kws_ref_model_inputs *inputs,
                                  const kws_ref_model_outputs *outputs);

static int8_t set(uintptr_t dtcm, uintptr_t isram)
{
    kws_ref_model_context context = {0};
    const kws_ref_model_workspaces workspaces = {
        .dtcm = {(void *)dtcm, KWS_REF_MODEL_DTCM_WORKSPACE_SIZE},
        .isram = {(void *)isram, KWS_REF_MODEL_ISRAM_WORKSPACE_SIZE}};
    return (int8_t)kws_ref_model_set_workspaces(&context, &workspaces);
}

int32_t kws_ref_model_run(kws_ref_model_context *context, const kws_ref_model_inputs *inputs,
                          const kws_ref_model_outputs *outputs)
{
    const int32_t status = kws_ref_model_run_planned(context, inputs, outputs);
    outputs->identity[0] = set(0x20000000u, 0x21000000u);
    outputs->identity[1] = set(0x30000000u, 0x31000000u);
    outputs->identity[2] = set(0x21000000u, 0x20000000u);
    outputs->identity[3] = set(0x20000000u, 0x20080000u);
    outputs->identity[4] = set(0x20080000u - KWS_REF_MODEL_DTCM_WORKSPACE_SIZE, 0x21000000u);
    outputs->identity[5] = set(0x20080010u - KWS_REF_MODEL_DTCM_WORKSPACE_SIZE, 0x21000000u);
    outputs->identity[6] = set(0x1FFFFFF0u, 0x21000000u);
    return status;
}
"""


def test_workspaces_in_the_wrong_memory_are_refused(tmp_path: Path) -> None:
    """Address checks are on in a 32-bit build: base and alias pass, swapped pools and edges do not."""
    folder = tmp_path / "bundle"
    shutil.copytree(bundle(KWS, two_pools()), folder)
    entry = folder / "src" / "kws_ref_model.c"
    text = entry.read_text().replace("kws_ref_model_run(", "kws_ref_model_run_planned(")
    entry.write_text(text + RANGE_PROBE)  # no other file of the folder is built
    result = run_batch(folder, random_inputs(KWS, 1, SEED), on="qemu")
    ok, out_of_range = 0, -5
    assert result.outputs[0][0].ravel()[:7].tolist() == [
        ok,
        ok,
        out_of_range,
        out_of_range,
        ok,
        out_of_range,
        out_of_range,
    ]
