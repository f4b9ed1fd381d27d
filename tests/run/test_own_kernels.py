"""Operators that functions of the application compute: outputs are the references', bit for bit, under sanitizers."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.record.plan_file import read_plan
from support.c_program import WARNINGS
from support.compilers import host_build
from support.reference import run_litert, run_tflm
from support.shared_models import KWS, model_path, without_softmax

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits.tflite"
PAGE = (ROOT / "docs" / "own-kernels.md").read_text(encoding="utf-8")
# The other half of CMSIS-NN's interface: one multiplier and shift for all channels, and a context that holds sums.
FULLY_CONNECTED = """\
[kernel.dsp_fully_connected_s8]
stack = 128
status = true
touched-by = ["cpu"]
let = { rows = "input.elements // weights.shape[3]" }
arguments = [
    { scalar = "rows", name = "batches" },
    { scalar = "weights.shape[3]", name = "depth" },
    { scalar = "weights.shape[0]", name = "channels" },
    { input = 0 },
    { constant = "weights", name = "kernel", align = 4 },
    { constant = "bias" },
    { scalar = "multiplier[0]", name = "multiplier" },
    { scalar = "shift[0]", name = "shift" },
    { scalar = "-input_zero_point", name = "input_offset" },
    { scalar = "output_zero_point", name = "output_offset" },
    { scalar = "output_minimum", name = "activation_min" },
    { scalar = "output_maximum", name = "activation_max" },
    { output = 0 },
]
scratch = [{ name = "sums", bytes = "4 * weights.shape[0]", type = "i32" }]
"""
FULLY_CONNECTED_C = """
int32_t dsp_fully_connected_s8(int32_t batches, int32_t depth, int32_t channels, const int8_t *input,
                               const int8_t *kernel, const int32_t *bias, int32_t multiplier, int32_t shift,
                               int32_t input_offset, int32_t output_offset, int32_t activation_min,
                               int32_t activation_max, int8_t *output, int32_t *sums)
{
    for (int32_t row = 0; row < batches; ++row) {
        for (int32_t c = 0; c < channels; ++c) {
            sums[c] = bias[c];
            for (int32_t k = 0; k < depth; ++k) {
                sums[c] += (input[row * depth + k] + input_offset) * kernel[c * depth + k];
            }
        }
        for (int32_t c = 0; c < channels; ++c) {
            int32_t sum = requantize(sums[c], multiplier, shift) + output_offset;
            sum = sum < activation_min ? activation_min : sum > activation_max ? activation_max : sum;
            output[row * channels + c] = (int8_t)sum;
        }
    }
    return input[0] == 99 ? -1 : 0;
}
"""


def page_file(name: str) -> str:
    """A file that the page shows."""
    found = re.search(
        rf"^```\w+\n(?:# |/\* ){re.escape(name)}.*?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1]


def bundle(
    folder: Path, model: Path, text: str, source: str, *kernels: str, **options: object
) -> tuple[Path, BuildOptions]:
    """A bundle, and how to build it with the functions under sanitizers."""
    (folder / "dsp.toml").write_text(text)
    compiled = bytewright.compile(model, kernels=kernels, kernel_file=folder / "dsp.toml", **options)  # type: ignore[arg-type]
    (folder / "dsp.c").write_text(source.replace("digits_externals", f"{compiled.plan.model}_externals"))
    written = compiled.write(folder / "out")
    return written, host_build(flags=WARNINGS, sanitize=True, sources=(folder / "dsp.c",))


def noise(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def test_one_function_of_the_application_serves_the_four_depthwise_layers_of_kws(tmp_path: Path):
    model = tmp_path / "kws.tflite"
    model.write_bytes(without_softmax(model_path(KWS).read_bytes()))  # random inputs saturate the softmax
    folder, options = bundle(
        tmp_path, model, page_file("dsp.toml"), page_file("dsp.c"), "DEPTHWISE_CONV_2D=dsp_depthwise_s8"
    )
    check = check_bundle(folder)
    assert check.num_steps > 4
    header = next((folder / "include").glob("*_externals.h")).read_text()
    assert header.count("int32_t dsp_depthwise_s8(") == 1
    for seed in range(3):
        x = noise(seed, (1, 49, 10, 1))
        (found,) = run_bundle(folder, [x], options=options).outputs
        assert np.array_equal(found, run_litert(model, [x])[0])
    watched = run_paranoid(folder, [x], options=BuildOptions(sources=options.sources))
    assert np.array_equal(watched.result.outputs[0], found)


def test_a_fully_connected_layer_is_exact_to_tflm_and_its_error_ends_the_run(tmp_path: Path):
    source = page_file("dsp.c").partition("int32_t dsp_depthwise")[0] + FULLY_CONNECTED_C
    folder, options = bundle(
        tmp_path, DIGITS, FULLY_CONNECTED, source, "FULLY_CONNECTED=dsp_fully_connected_s8", numerics="tflm"
    )
    for seed in range(3):
        x = noise(seed, (1, 8, 8, 1))
        (found,) = run_bundle(folder, [x], options=options).outputs
        assert np.array_equal(found, run_tflm(DIGITS, [x])[0])
    failing = (tmp_path / "dsp.c").read_text().replace("input[0] == 99 ? -1 : 0", "-1")
    (tmp_path / "dsp.c").write_text(failing)
    with pytest.raises(CompileError, match="DIGITS_ERROR_EXTERNAL"):
        run_bundle(folder, [x], options=options)


def test_with_real_scales_there_is_no_multiplier_to_pass(tmp_path: Path):
    """`litert-ref` multiplies by the scale in double precision: the function would not be exact, and is told so."""
    (tmp_path / "dsp.toml").write_text(FULLY_CONNECTED)
    with pytest.raises(CompileError, match=r"the operator has no 'multiplier'; it has .*scale"):
        bytewright.compile(
            DIGITS, kernels="FULLY_CONNECTED=dsp_fully_connected_s8", kernel_file=tmp_path / "dsp.toml"
        )


def test_an_open_batch_is_passed_and_its_scratch_is_for_the_largest(tmp_path: Path):
    text = (
        FULLY_CONNECTED.replace('let = { rows = "input.elements // weights.shape[3]" }\n', "")
        .replace('"rows", name', '"input.shape[0]", name')
        .replace('"4 * weights.shape[0]"', '"4 * weights.shape[0] * input.shape[0]"')
    )
    source = page_file("dsp.c").partition("int32_t dsp_depthwise")[0] + FULLY_CONNECTED_C
    folder, options = bundle(
        tmp_path, DIGITS, text, source, "FULLY_CONNECTED=dsp_fully_connected_s8", numerics="tflm", batch_max=3
    )
    sums = [b for b in read_plan(folder).buffers.values() if b.name.endswith("/sums")]
    assert [b.size_bytes for b in sums] == [3 * 10 * 4]
    for count in (1, 3):
        x = noise(count, (count, 8, 8, 1))
        (found,) = run_bundle(folder, [x], options=options).outputs
        expected = np.concatenate([run_tflm(DIGITS, [x[i : i + 1]])[0] for i in range(count)])
        assert np.array_equal(found, expected)
    closed = text.replace('{ scalar = "input.shape[0]", name = "batches" },', "")
    again = partial(bundle, tmp_path, DIGITS, closed, source, "FULLY_CONNECTED=dsp_fully_connected_s8")
    with pytest.raises(CompileError, match="the function is not given 'batch', which each run decides"):
        again(numerics="tflm", batch_max=3)


REGION = """\
[kernel.app_both]
takes = "region"
stack = 64
arguments = [
    { input = 0, name = "x" },
    { scalar = "-clamp[0].minimum", name = "low" },
    { scalar = "clamp[1].maximum", name = "high" },
    { output = 0, name = "y" },
]
"""
GRAPH = """\
module both
input %x : tensor<1x6xi8>
output %y : tensor<1x6xi8>
func main(%x : tensor<1x6xi8>) -> (%y) {
  %a : tensor<1x6xi8> = clamp(%x) {minimum=-20, maximum=127}
  %b : tensor<6xi8> = reshape(%a) {shape=(6)}
  %c : tensor<6xi8> = clamp(%b) {minimum=-128, maximum=30}
  %y : tensor<1x6xi8> = reshape(%c) {shape=(1, 6)}
}
"""


def test_a_region_of_a_graph_in_text_is_one_call_with_reshapes_inside(tmp_path: Path):
    source = (
        '#include "both_externals.h"\n\n'
        "void app_both(const int8_t *x, int32_t low, int32_t high, int8_t *y)\n{\n"
        "    for (int32_t i = 0; i < 6; ++i) {\n"
        "        y[i] = (int8_t)(x[i] < -low ? -low : x[i] > high ? high : x[i]);\n    }\n}\n"
    )
    (tmp_path / "both.bw").write_text(GRAPH.replace("shape=(6)", "shape=(6,)"))
    folder, options = bundle(tmp_path, tmp_path / "both.bw", REGION, source, "*=app_both")
    assert [step.kernel for step in read_plan(folder).steps] == ["app_both"]
    x = np.array([[-128, -21, -20, 30, 31, 127]], np.int8)
    (found,) = run_bundle(folder, [x], options=options).outputs
    assert np.array_equal(found, np.clip(x, -20, 30))


POOL = """\
[kernel.app_pool]
stack = 64
arguments = [
    { input = 0, name = "x" },
    { scalar = "input.shape[1]", name = "height" },
    { scalar = "output.shape[1]", name = "windows" },
    { output = 0, name = "y" },
]
"""
POOLED = """\
module pooled
input %x : tensor<1xtime[3..9]x1x2xi8>
output %y : tensor<1x(time[3..9]-1)/2x1x2xi8>
func main(%x : tensor<1xtime[3..9]x1x2xi8>) -> (%y) {
  %y : tensor<1x(time[3..9]-1)/2x1x2xi8> = max_pool2d(%x) {kernel=(3, 1), stride=(2, 1), padding=(0, 0, 0, 0)}
}
"""


def test_an_extent_that_follows_from_an_open_one_is_passed_as_what_it_is_in_each_run(tmp_path: Path):
    source = (
        '#include "pooled_externals.h"\n\n'
        "void app_pool(const int8_t *x, int32_t height, int32_t windows, int8_t *y)\n{\n"
        "    for (int32_t i = 0; i < 2 * windows; ++i) {\n"
        "        const int8_t *seen = &x[i / 2 * 4 + i % 2];\n"
        "        y[i] = height < 3 || seen[0] > seen[2] ? seen[0] : seen[2];\n"
        "        y[i] = y[i] > seen[4] ? y[i] : seen[4];\n    }\n}\n"
    )
    (tmp_path / "pooled.bw").write_text(POOLED)
    folder, options = bundle(tmp_path, tmp_path / "pooled.bw", POOL, source, "max_pool2d=app_pool")
    for height in (3, 6, 9):
        x = noise(height, (1, height, 1, 2))
        (found,) = run_bundle(folder, [x], options=options).outputs
        seen = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)[:, ::2]
        assert np.array_equal(found, seen.max(axis=-1))


@pytest.mark.parametrize(
    ("argument", "time", "message"),
    [
        ('"output.shape[1] + 1"', 9, "is known only at run time: it can be passed, not calculated with"),
        ('"output.shape[1]", type = "i16"', 70_000, "is 34999, which i16 does not hold"),
    ],
)
def test_an_extent_that_follows_is_not_calculated_with_and_fits(
    tmp_path: Path, argument: str, time: int, message: str
):
    (tmp_path / "pooled.bw").write_text(POOLED.replace("3..9", f"3..{time}"))
    text = POOL.replace('"output.shape[1]"', argument)
    with pytest.raises(CompileError, match=rf"'output.shape\[1\]' {message}"):
        bundle(tmp_path, tmp_path / "pooled.bw", text, "", "max_pool2d=app_pool")
