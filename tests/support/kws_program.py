"""What programs that run kws share: the input, the run, the reference's output, and a target with two workspaces."""

from __future__ import annotations

from functools import cache

from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from bytewright.target.registry import load_target
from support.reference import LiteRt
from support.shared_models import HOST, KWS, model_path, ramp

OK, NULL, SIZE, ALIGN, OVERLAP, RANGE, HASH, NOT_SET = 0, -1, -2, -3, -4, -5, -6, -7
OUTPUT_BYTES = 12

RUN = """
/* The ramp of the published checksums. */
static int8_t input[490];
static int8_t output[12];

static inline int32_t run(@m@_context *context)
{
    const @m@_inputs inputs = {input};
    const @m@_outputs outputs = {output};

    for (int i = 0; i < 490; ++i) {
        input[i] = (int8_t)(((i * 37 + 11 * (i >> 5)) & 255) - 128);
    }
    return @m@_run(context, &inputs, &outputs);
}

static inline void show_output(void)
{
    for (int i = 0; i < 12; ++i) {
        printf("output %d %d\\n", i, output[i]);
    }
}
"""


@cache
def expected_output() -> list[int]:
    (output,) = LiteRt(model_path(KWS)).run(ramp((1, 49, 10, 1)))
    return [int(value) for value in output.ravel()]


def output_of(shown: dict[str, int]) -> list[int]:
    return [shown[f"output {index}"] for index in range(OUTPUT_BYTES)]


def two_workspaces() -> Target:
    """Two pools of the host's memory; kws needs both."""
    pools = (parse_pool_option("fast=8000@ram"), parse_pool_option("slow@ram"))
    return apply_overrides(load_target(HOST), Overrides(workspace=pools))
