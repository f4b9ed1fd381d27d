"""The functions that take an image row by row, used rightly and wrongly, by C programs under sanitizers."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import verified_plan
from bytewright.record.buffers import PlaceKind
from support.c_program import run_c
from support.digits_bundle import DIGITS
from support.kws_program import ALIGN, NOT_SET, NULL, OK, OVERLAP, RANGE
from support.reference import LiteRt
from support.shared_models import new_folder
from tflite_writer import ModelBuilder

NOT_BEGUN, ROWS, INCOMPLETE = -14, -15, -16
IMAGES = """
static inline void draw(int8_t *image, int seed)
{
    for (int i = 0; i < 64; ++i) {
        image[i] = (int8_t)((i * 7 + seed * 5 + (i >> 3) * seed) % 17);
    }
}
"""


@cache
def digits() -> Path:
    folder = new_folder() / "digits"
    bytewright.compile(DIGITS, target="host", io="rows").write(folder)
    return folder


def expected(seed: int) -> list[int]:
    i = np.arange(64)
    image = ((i * 7 + seed * 5 + (i >> 3) * seed) % 17).astype(np.int8).reshape(1, 8, 8, 1)
    (output,) = LiteRt(DIGITS).run(image)
    return [int(value) for value in output.ravel()]


def test_two_contexts_take_turns(tmp_path: Path) -> None:
    """Each has workspaces and outputs of its own, and the rows are in one buffer that is written again each time."""
    source = """
int main(void)
{
    @m@_context contexts[2];
    int8_t images[2][64];
    int8_t *outs[2];
    int8_t *const row = block(1, 8);
    int next[2] = {0, 0};

    for (int c = 0; c < 2; ++c) {
        memset(&contexts[c], 0, sizeof contexts[c]);
        const @m@_workspaces workspaces = {{block(64, @M@_RAM_WORKSPACE_SIZE), @M@_RAM_WORKSPACE_SIZE}};
        outs[c] = block(1, 10);
        const @m@_outputs outputs = {outs[c]};
        draw(images[c], c + 1);
        if (@m@_set_workspaces(&contexts[c], &workspaces) != 0 || @m@_begin(&contexts[c], &outputs) != 0) {
            return 1;
        }
    }
    for (int turn = 0; next[0] < 8 || next[1] < 8; ++turn) {
        const int c = next[1] == 8 || (next[0] < 8 && turn % 3 == 0) ? 0 : 1;
        memcpy(row, images[c] + 8 * next[c], 8);
        if (@m@_push_rows(&contexts[c], row, 1) != 0) {
            return 2;
        }
        ++next[c];
    }
    for (int c = 1; c >= 0; --c) {
        SHOW(c ? "finish 1" : "finish 0", @m@_finish(&contexts[c]));
    }
    for (int i = 0; i < 20; ++i) {
        printf("output %d %d\\n", i, outs[i / 10][i % 10]);
    }
    for (int c = 0; c < 2; ++c) {
        free(contexts[c].ram);
        free(outs[c]);
    }
    free(row);
    return 0;
}
"""
    shown = run_c(digits(), IMAGES + source, tmp_path)
    assert (shown["finish 0"], shown["finish 1"]) == (OK, OK)
    assert [shown[f"output {i}"] for i in range(20)] == [*expected(1), *expected(2)]


def test_misuse_has_errors_and_changes_nothing(tmp_path: Path) -> None:
    """Between rows that count stand calls that are refused; the result is what it is without them."""
    source = """
int main(void)
{
    enum { SIZE = @M@_RAM_WORKSPACE_SIZE };
    @m@_context context = {0};
    uint8_t *const ram = block(64, SIZE);
    int8_t *const image = block(1, 64);
    int8_t *const out = block(1, 10);
    const @m@_workspaces workspaces = {{ram, SIZE}};
    const @m@_outputs outputs = {out}, none = {NULL}, inside = {(int8_t *)ram + SIZE - 1};
    const @m@_outputs over = {(int8_t *)&context};
    const @m@_outputs wrapping = {(int8_t *)(UINTPTR_MAX - 4u)};

    draw(image, 3);
    SHOW("begin without workspaces", @m@_begin(&context, &outputs));
    SHOW("push without workspaces", @m@_push_rows(&context, image, 1));
    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("push before begin", @m@_push_rows(&context, image, 1));
    SHOW("finish before begin", @m@_finish(&context));
    SHOW("begin of NULL", @m@_begin(NULL, &outputs));
    SHOW("begin with NULL", @m@_begin(&context, NULL));
    SHOW("begin without an output", @m@_begin(&context, &none));
    SHOW("begin over the workspace", @m@_begin(&context, &inside));
    SHOW("begin over the context", @m@_begin(&context, &over));
    SHOW("begin past the end", @m@_begin(&context, &wrapping));
    SHOW("still not begun", @m@_push_rows(&context, image, 1));
    SHOW("begin", @m@_begin(&context, &outputs));
    SHOW("no rows", @m@_push_rows(&context, image, 0));
    SHOW("fewer than none", @m@_push_rows(&context, image, -1));
    SHOW("least", @m@_push_rows(&context, image, INT32_MIN));
    SHOW("nine", @m@_push_rows(&context, image, 9));
    SHOW("most", @m@_push_rows(&context, image, INT32_MAX));
    SHOW("two", @m@_push_rows(&context, image, 2));
    SHOW("seven more", @m@_push_rows(&context, image, 7));
    SHOW("finish too early", @m@_finish(&context));
    SHOW("rows of NULL", @m@_push_rows(&context, NULL, 1));
    SHOW("NULL of rows", @m@_push_rows(NULL, image, 1));
    SHOW("rows in the workspace", @m@_push_rows(&context, (int8_t *)ram, 1));
    SHOW("rows up to the workspace's end", @m@_push_rows(&context, (int8_t *)ram + SIZE - 1, 1));
    SHOW("rows in the output", @m@_push_rows(&context, out + 9, 1));
    SHOW("rows in the context", @m@_push_rows(&context, (int8_t *)&context, 1));
    SHOW("rows past the end", @m@_push_rows(&context, (int8_t *)(UINTPTR_MAX - 4u), 1));
    SHOW("five", @m@_push_rows(&context, image + 16, 5));
    SHOW("still too early", @m@_finish(&context));
    SHOW("the last", @m@_push_rows(&context, image + 56, 1));
    SHOW("one more", @m@_push_rows(&context, image, 1));
    SHOW("nothing more", @m@_push_rows(&context, image, 0));
    SHOW("finish", @m@_finish(&context));
    SHOW("finish again", @m@_finish(&context));
    SHOW("push after finish", @m@_push_rows(&context, image, 1));
    SHOW("finish of NULL", @m@_finish(NULL));
    for (int i = 0; i < 10; ++i) {
        printf("output %d %d\\n", i, out[i]);
    }
    SHOW("begin once more", @m@_begin(&context, &outputs));
    SHOW("three", @m@_push_rows(&context, image, 3));
    SHOW("begin in between", @m@_begin(&context, &outputs));
    SHOW("all", @m@_push_rows(&context, image, 8));
    memset(out, 0, 10);
    SHOW("finish that", @m@_finish(&context));
    for (int i = 0; i < 10; ++i) {
        printf("again %d %d\\n", i, out[i]);
    }
    SHOW("begin anew", @m@_begin(&context, &outputs));
    SHOW("set in between", @m@_set_workspaces(&context, &workspaces));
    SHOW("which ends it", @m@_push_rows(&context, image, 1));
    free(ram);
    free(image);
    free(out);
    return 0;
}
"""
    shown = run_c(digits(), IMAGES + source, tmp_path)
    assert [shown.pop(f"output {i}") for i in range(10)] == expected(3)
    assert [shown.pop(f"again {i}") for i in range(10)] == expected(3)
    refused = {
        "begin without workspaces": NOT_SET,
        "push without workspaces": NOT_BEGUN,
        "push before begin": NOT_BEGUN,
        "finish before begin": NOT_BEGUN,
        "begin of NULL": NULL,
        "begin with NULL": NULL,
        "begin without an output": NULL,
        "begin over the workspace": OVERLAP,
        "begin over the context": OVERLAP,
        "begin past the end": RANGE,
        "still not begun": NOT_BEGUN,
        "fewer than none": ROWS,
        "least": ROWS,
        "nine": ROWS,
        "most": ROWS,
        "seven more": ROWS,
        "finish too early": INCOMPLETE,
        "rows of NULL": NULL,
        "NULL of rows": NULL,
        "rows in the workspace": OVERLAP,
        "rows up to the workspace's end": OVERLAP,
        "rows in the output": OVERLAP,
        "rows in the context": OVERLAP,
        "rows past the end": RANGE,
        "still too early": INCOMPLETE,
        "one more": ROWS,
        "finish again": NOT_BEGUN,
        "push after finish": NOT_BEGUN,
        "finish of NULL": NULL,
        "which ends it": NOT_BEGUN,
    }
    assert shown == {name: refused.get(name, OK) for name in shown}
    assert refused.keys() <= shown.keys()


def test_rows_of_larger_elements_must_be_aligned(tmp_path: Path) -> None:
    builder = ModelBuilder()
    tensors = [builder.tensor(f"t{i}", (1, 6, 2, 1), "float32") for i in range(3)]
    window = {"filter_height": 2, "filter_width": 2, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
    for source, result in pairwise(tensors):
        builder.operator("MAX_POOL_2D", [source], [result], **window)
    (tmp_path / "pools.tflite").write_bytes(builder.build([tensors[0]], [tensors[-1]]))
    bytewright.compile(tmp_path / "pools.tflite", target="host", io="rows").write(tmp_path / "bundle")
    source = """
int main(void)
{
    @m@_context context = {0};
    uint8_t *const ram = block(64, @M@_RAM_WORKSPACE_SIZE);
    char *const rows = block(64, 56);
    float *const out = block(64, 48);
    const @m@_workspaces workspaces = {{ram, @M@_RAM_WORKSPACE_SIZE}};
    const @m@_outputs outputs = {out};
    const float image[12] = {1, 8, 3, 2, 5, 7, 9, 4, 0, 6, 2, 3};
    void *misplaced = rows + 1;

    SHOW("row", @M@_INPUT_T0_ROW_SIZE);
    SHOW("rows", @M@_INPUT_T0_ROWS);
    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("begin", @m@_begin(&context, &outputs));
    SHOW("misaligned", @m@_push_rows(&context, misplaced, 1));
    memcpy(rows + 4, image, 48);
    SHOW("aligned", @m@_push_rows(&context, (void *)(rows + 4), 6));
    SHOW("finish", @m@_finish(&context));
    for (int i = 0; i < 12; ++i) {
        printf("output %d %d\\n", i, (int)out[i]);
    }
    free(ram);
    free(rows);
    free(out);
    return 0;
}
"""
    shown = run_c(tmp_path / "bundle", source, tmp_path)
    outputs = [shown.pop(f"output {i}") for i in range(12)]
    assert shown == {
        "row": 8,
        "rows": 6,
        "set": OK,
        "begin": OK,
        "misaligned": ALIGN,
        "aligned": OK,
        "finish": OK,
    }
    image = np.array([1, 8, 3, 2, 5, 7, 9, 4, 0, 6, 2, 3]).reshape(6, 2)
    largest = [int(image[y : y + 3, x : x + 2].max()) for y in range(6) for x in range(2)]
    assert outputs == [int(image[y : y + 3, x:].max()) for y in range(6) for x in range(2)] == largest


@pytest.mark.parametrize("flags", [("-O0",), ("-O3",)], ids=str)
def test_held_out_digits(flags: tuple[str, ...]) -> None:
    """The harness pushes rows in numbers that follow from the image."""
    with np.load(DIGITS.parent / "heldout.npz") as stored:
        images = stored["images"][:60, np.newaxis]
    options = BuildOptions(flags=flags, sanitize=True)
    result = run_batch(digits(), [[image] for image in images], options=options)
    reference = LiteRt(DIGITS)
    np.testing.assert_array_equal(
        np.stack([outputs[0][0] for outputs in result.outputs]),
        np.stack([reference.run(image)[0][0] for image in images]),
    )


def test_paranoid_runs_hold() -> None:
    """Bytes are poisoned as rows die, between calls of the application too."""
    plan = read_bundle(digits()).plan
    assert plan.image is not None
    assert (plan.image.num_rows, plan.image.row_bytes) == (8, 8)
    assert run_paranoid(digits(), seed=5).num_steps == len(plan.steps)


def test_the_bundle_is_what_its_plan_says() -> None:
    plan = verified_plan(digits())
    assert plan.io == "rows"
    image = next(buffer for buffer in plan.buffers.values() if buffer.name == "image")
    assert image.place.kind is PlaceKind.CALLER
    source = digits() / "src" / "digits.c"
    text = source.read_text()
    assert "digits_run" not in text
    assert "inputs" not in text
