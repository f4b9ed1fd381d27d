from pathlib import Path

from bytewright.execute.build import BoardTable, model_table
from bytewright.execute.description import read_bundle
from support.tiny_bundle import write_tiny_bundle


def test_the_table_lists_tensors_and_workspaces(tmp_path: Path) -> None:
    assert model_table(read_bundle(write_tiny_bundle(tmp_path)).plan) == (
        """\
#include "tiny.h"
#define HARNESS_IO_IN_WORKSPACE 0
#define HARNESS_IO_ALIGNMENT 16
#define HARNESS_IO_LINE_BYTES 1
#define HARNESS_PARANOID 0
#define HARNESS_STRUCTURES(ENTRY) ENTRY(inputs) ENTRY(outputs)
#define HARNESS_MEMBERS(ENTRY) ENTRY(input_buffers, 0, inputs.left) ENTRY(output_buffers, 0, outputs.sum)
#define HARNESS_PLANNED_INPUTS(ENTRY)
#define HARNESS_PLANNED_OUTPUTS(ENTRY)
#define HARNESS_NUM_ENTRIES 1
#define HARNESS_ENTRIES(ENTRY) ENTRY(0, tiny_run(session->context, &session->inputs, &session->outputs))
#define HARNESS_NUM_ARGUMENTS 3
#define HARNESS_ARGUMENTS(ENTRY) ENTRY(session->context) ENTRY(&session->inputs) ENTRY(&session->outputs)
#define HARNESS_CALL tiny_run(session->context, &session->inputs, &session->outputs)
#define HARNESS_NUM_INPUTS 1
#define HARNESS_INPUTS(ENTRY) ENTRY(0, left, 16)
#define HARNESS_NUM_OUTPUTS 1
#define HARNESS_OUTPUTS(ENTRY) ENTRY(0, sum, 16)
#define HARNESS_INPUT_SIZES(ENTRY) ENTRY(0, (size_t)16)
#define HARNESS_OUTPUT_SIZES(ENTRY) ENTRY(0, (size_t)16)
#define HARNESS_NUM_EXTENTS 0
#define HARNESS_NUM_WORKSPACES 1
#define HARNESS_WORKSPACES(ENTRY) ENTRY(0, dtcm, TINY_DTCM_WORKSPACE_SIZE, \
TINY_DTCM_WORKSPACE_ALIGN, ".bss.memory.dtcm.dtcm")
#define HARNESS_NUM_BLOBS 0
#define HARNESS_BLOBS(ENTRY)
#define HARNESS_NUM_COPIES 0
#define HARNESS_COPIES(ENTRY)
#define HARNESS_HAS_OWN_COPIES 0
#define HARNESS_MODEL(name) tiny_##name
#define HARNESS_NUM_DEVICES 0
#define HARNESS_HAS_STATES 0
"""
    )


def test_blobs_and_generated_workspaces(tmp_path: Path) -> None:
    lines = model_table(
        read_bundle(write_tiny_bundle(tmp_path, blob=True, generated_workspace=True)).plan
    ).splitlines()
    assert '#define HARNESS_BLOBS(ENTRY) ENTRY(0, flash, "blob_0.bin", 16, ".blob.memory.flash")' in lines
    assert "#define HARNESS_NUM_WORKSPACES 0" in lines
    assert "#define HARNESS_WORKSPACES(ENTRY)" in lines


def test_a_board_adds_its_stack_and_protection(tmp_path: Path) -> None:
    board = BoardTable(4096, ".bss.memory.dtcm.dtcm", 16)
    lines = model_table(read_bundle(write_tiny_bundle(tmp_path)).plan, board).splitlines()
    assert lines[-4:] == [
        "#define HARNESS_NUM_REGIONS 16",
        "#define HARNESS_STACK_BYTES 4096",
        '#define HARNESS_STACK_SECTION ".bss.memory.dtcm.dtcm"',
        '#define HARNESS_WRITABLE __attribute__((section(".bss.harness_writable")))',
    ]
