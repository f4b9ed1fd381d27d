"""Help that is `--rows auto` or `--io rows`: followed, the compile succeeds, and LiteRT agrees.

Sizes of the two models, in bytes of workspace on the small target, whose memories have not a byte that is not said:

| chain | `--io caller` | `--io workspace` | `--io rows` |
|---|---|---|---|
| `--rows off` | 1552 | 1584 | |
| `--rows auto` | 696 | 1464 | 840 |

The wide one has its peak where no layer takes rows, so that `auto` leaves its image's first tensor of 2304 bytes whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bytewright import ir
from bytewright.cli.main import bytewright
from bytewright.compiler import pipeline
from bytewright.compiler.trial import Conditions, Trial
from bytewright.options import Rows
from support.apply_help import NO_OPTION, help_lines, with_help
from support.random_models import RandomModel
from support.reference import LiteRt
from support.row_models import Layer, chain
from support.tiers import some
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.slow  # as a whole

TARGET = """\
name = "small"
tags = ["micro"]
[memory.ram]
size = {ram}
[memory.fast]
size = {fast}
[memory.rom]
size = "1MiB"
access = "r"
[device.cpu]
isa = "cortex-m3"
reach = ["ram", "fast", "rom"]
stack = "ram"
max-stack-size = {stack}
[[workspace]]
name = "fast"
memory = "fast"
[[parameters]]
name = "rom"
memory = "rom"
"""
RUN_STACK, PUSH_STACK = 566, 822  # what the chain needs, and with the function that takes rows above it
PLANNED = ("--io", "workspace")
SCALE = 1 / 32


def target(fast: int, ram: int = RUN_STACK, stack: int = RUN_STACK, more: str = "") -> str:
    return TARGET.format(fast=fast, ram=ram, stack=stack) + more


@cache
def spatial() -> RandomModel:
    """Three convolutions and a fully connected layer."""
    layers = (Layer(3, channels=8), Layer(3, channels=6, stride=2), Layer(3, channels=2))
    return chain((16, 12, 4), *layers, tail=True)


class Layers:
    """A model under construction, all int8 with one scale."""

    def __init__(self) -> None:
        self.builder, self.random = ModelBuilder(), np.random.default_rng(3)

    def tensor(self, name: str, *shape: int) -> int:
        return self.builder.tensor(name, shape, "int8", scale=SCALE, zero_point=0)

    def layer(
        self, kind: str, source: int, result: int, window: tuple[int, ...], **options: int | str
    ) -> None:
        scale = 1 / 64 / float(np.sqrt(np.prod(window[1:])))
        weights = self.random.integers(-127, 128, window, np.int8)
        bias = self.random.integers(-500, 500, window[0]).astype(np.int32)
        operands = (
            self.builder.constant("weights", weights, scale=scale),
            self.builder.constant("bias", bias, scale=scale * SCALE),
        )
        self.builder.operator(kind, [source, *operands], [result], **options)


@cache
def wide() -> RandomModel:
    """Two convolutions, and three vectors of 900 bytes that are alive at once."""
    layers = Layers()
    image = layers.tensor("image", 1, 24, 24, 2)
    first, second = layers.tensor("first", 1, 24, 24, 4), layers.tensor("second", 1, 6, 24, 1)
    layers.layer("CONV_2D", image, first, (4, 3, 3, 2), padding="SAME", stride_h=1, stride_w=1)
    layers.layer("CONV_2D", first, second, (1, 3, 3, 4), padding="SAME", stride_h=4, stride_w=1)
    flat = layers.tensor("flat", 1, 144)
    form = layers.builder.constant("form", np.array([1, 144], np.int32))
    layers.builder.operator("RESHAPE", [second, form], [flat], new_shape=[1, 144])
    vectors = [layers.tensor(f"vector_{i}", 1, 900) for i in range(3)]
    ends = [layers.tensor(f"end_{i}", 1, 8) for i in range(3)]
    for vector in vectors:
        layers.layer("FULLY_CONNECTED", flat, vector, (900, 144))
    for vector, end in zip(vectors, ends, strict=True):
        layers.layer("FULLY_CONNECTED", vector, end, (8, 900))
    half, result = layers.tensor("half", 1, 8), layers.tensor("result", 1, 8)
    layers.builder.operator("ADD", ends[:2], [half])
    layers.builder.operator("ADD", [half, ends[2]], [result])
    return RandomModel(layers.builder.build([image], [result]), "wide", ((1, 24, 24, 2),), "int8")


@cache
def vectors() -> RandomModel:
    """Fully connected layers alone."""
    layers = Layers()
    source = image = layers.tensor("image", 1, 200)
    for number in range(3):
        result = layers.tensor(f"layer_{number}", 1, 200)
        layers.layer("FULLY_CONNECTED", source, result, (200, 200))
        source = result
    return RandomModel(layers.builder.build([image], [source]), "vectors", ((1, 200),), "int8")


@cache
def whole_image() -> RandomModel:
    """A convolution, and a mean that reads the image too."""
    layers = Layers()
    image, first = layers.tensor("image", 1, 16, 12, 4), layers.tensor("first", 1, 16, 12, 8)
    layers.layer("CONV_2D", image, first, (8, 3, 3, 4), padding="SAME", stride_h=1, stride_w=1)
    second = layers.tensor("second", 1, 16, 12, 4)
    layers.layer("CONV_2D", first, second, (4, 3, 3, 8), padding="SAME", stride_h=1, stride_w=1)
    axes = layers.builder.constant("axes", np.array([1, 2], np.int32))
    means = [layers.tensor(f"mean_{i}", 1, 4) for i in range(2)]
    for source, mean in zip((image, second), means, strict=True):
        layers.builder.operator("MEAN", [source, axes], [mean], keep_dims=False)
    result = layers.tensor("result", 1, 4)
    layers.builder.operator("ADD", means, [result])
    return RandomModel(layers.builder.build([image], [result]), "whole image", ((1, 16, 12, 4),), "int8")


def compiled(folder: Path, model: RandomModel, file: str, options: Sequence[str]) -> Result:
    (folder / "board.toml").write_text(file, encoding="utf-8")
    (folder / "m.tflite").write_bytes(model.content)
    words = [
        "compile",
        folder / "m.tflite",
        "-o",
        folder / "out",
        "--target",
        folder / "board.toml",
        *options,
    ]
    return CliRunner().invoke(bytewright, [str(word) for word in words])


def refused(folder: Path, model: RandomModel, file: str, options: Sequence[str], status: int = 3) -> str:
    """The only help line."""
    result = compiled(folder, model, file, options)
    assert result.exit_code == status, result.stderr
    assert not (folder / "out").exists()
    (line,) = help_lines(result.stderr)
    return line


def assert_right(folder: Path, model: RandomModel) -> None:
    """What the bundle computes is what LiteRt does."""
    for seed in some(range(4)):
        (values,) = model.inputs(seed)
        np.save(folder / "x.npy", values)
        words = [
            "run",
            folder / "out",
            "--input",
            folder / "x.npy",
            "--output",
            folder / "y.npy",
            "--paranoid",
        ]
        result = CliRunner().invoke(bytewright, [str(word) for word in words])
        assert result.exit_code == 0, result.stderr
        np.testing.assert_array_equal(np.load(folder / "y.npy"), LiteRt(model.content).run(values)[0])


# What was asked for -> model, bytes of the memories `fast` and `ram` and of the stack, options, and the help.
HELPS: dict[str, tuple[RandomModel, tuple[int, int, int], tuple[str, ...], str]] = {
    "tensors whole": (spatial(), (696, RUN_STACK, RUN_STACK), ("--rows", "off"), "--rows auto"),
    "tensors whole, one byte too few for that": (
        spatial(),
        (1551, RUN_STACK, RUN_STACK),
        ("--rows", "off"),
        "--rows auto",
    ),
    "tensors whole, inputs and outputs planned": (
        spatial(),
        (1464, RUN_STACK, RUN_STACK),
        ("--rows", "off", *PLANNED),
        "--rows auto",
    ),
    "tensors whole in a pool that may grow": (
        spatial(),
        (1000, RUN_STACK, RUN_STACK),
        ("--rows", "off", "--workspace", "fast=500"),
        "--resize fast=696 --rows auto",
    ),
    "a tensor that is larger than each of two pools": (
        wide(),
        (900, 2508, 548),
        ("--rows", "off", "--workspace", "fast=900", "--workspace", "ram=1956"),
        "--rows auto",
    ),
    "an image that is planned": (spatial(), (840, PUSH_STACK, PUSH_STACK), PLANNED, "--io rows"),
    "an image that is planned, and a stack for no function above the run": (
        spatial(),
        (840, PUSH_STACK, RUN_STACK),
        PLANNED,
        f"--max-stack-size {PUSH_STACK} --io rows",
    ),
    "an image that is planned, tensors whole": (
        spatial(),
        (840, PUSH_STACK, PUSH_STACK),
        ("--rows", "off", *PLANNED),
        "--rows auto --io rows",
    ),
    "an image that is planned, and a pin": (
        spatial(),
        (840, PUSH_STACK, PUSH_STACK),
        (*PLANNED, "--pin", "image=fast"),
        "leave out --pin image=fast, and add --io rows",
    ),
}


@pytest.mark.parametrize("kind", HELPS)
def test_the_help_makes_the_compile_succeed(kind: str, tmp_path: Path) -> None:
    model, (fast, ram, stack), options, advice = HELPS[kind]
    assert refused(tmp_path, model, target(fast, ram, stack), options) == advice
    advised = with_help(options, f"help: {advice}")
    assert compiled(tmp_path, model, target(fast, ram, stack), advised).exit_code == 0
    assert_right(tmp_path, model)


@pytest.mark.parametrize("kind", some([kind for kind in HELPS if "one byte too few" not in kind], every=4))
def test_one_byte_less_is_too_little(kind: str, tmp_path: Path) -> None:
    """In `fast`, or in its pool of a size."""
    model, (fast, ram, stack), options, advice = HELPS[kind]
    advised = with_help(options, f"help: {advice}")
    if "--resize" in advised:
        advised[advised.index("--resize") + 1] = "fast=695"
    elif f"fast={fast}" in advised:
        advised[advised.index(f"fast={fast}")] = f"fast={fast - 1}"
    else:
        fast -= 1
    result = compiled(tmp_path, model, target(fast, ram, stack), advised)
    assert (result.exit_code, "error[BW301]" in result.stderr) == (3, True), result.stderr


# --- together with what else is tried


def test_one_more_pool_and_rows(tmp_path: Path) -> None:
    """Neither memory alone has room, whatever the layers do."""
    file = target(600, ram=RUN_STACK + 506)
    assert "--rows" not in refused(tmp_path, spatial(), file, ("--rows", "auto"))
    line = refused(tmp_path, spatial(), file, ("--rows", "off"))
    assert re.fullmatch(r"--workspace fast --workspace ram=\d+B --rows auto", line)
    assert compiled(tmp_path, spatial(), file, with_help(("--rows", "off"), f"help: {line}")).exit_code == 0
    assert_right(tmp_path, spatial())


@pytest.mark.parametrize("rows", list(Rows))
def test_pools_for_inputs_and_outputs(rows: Rows, tmp_path: Path) -> None:
    """They have no room for the image; by rows it is not in them, and they give up what the workspace needs."""
    frames = '[[io]]\nname = "frames"\nmemory = "fast"\nsize = 700\n'
    file = target(1400, PUSH_STACK, PUSH_STACK, frames)
    options = (*PLANNED, "--rows", rows.value)
    line = refused(tmp_path, spatial(), file, options)
    assert line == "--resize frames=560" + (" --rows auto" if rows is Rows.OFF else "") + " --io rows"
    result = compiled(tmp_path, spatial(), file, with_help(options, f"help: {line}"))
    assert result.exit_code == 0, result.stderr
    assert_right(tmp_path, spatial())


# --- where they do not help


@pytest.mark.parametrize("options", [(), ("--rows", "off"), PLANNED, ("--io", "rows"), ("--rows", "max")])
def test_a_model_that_fits_nowhere(options: tuple[str, ...], tmp_path: Path) -> None:
    line = refused(tmp_path, spatial(), target(400, PUSH_STACK, PUSH_STACK), options)
    assert line.startswith(NO_OPTION)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Conditions]:
    """Every condition that a module is stored under, in order."""
    found: list[Conditions] = []
    store = pipeline.store_smallest

    def recorded(module: ir.Module, run: pipeline.Runner, conditions: Conditions, **rest: Any) -> Trial:
        found.append(conditions)
        return store(module, run, conditions, **rest)

    monkeypatch.setattr(pipeline, "store_smallest", recorded)
    return found


@pytest.mark.parametrize("rows", list(Rows))
def test_no_other_rows_are_tried_of_layers_that_take_none(
    rows: Rows, tmp_path: Path, tried: list[Conditions]
) -> None:
    file = target(150, PUSH_STACK, PUSH_STACK)
    assert refused(tmp_path, vectors(), file, ("--rows", rows.value)).startswith(NO_OPTION)
    assert {conditions.options.rows for conditions in tried} == {rows}
    assert {conditions.options.io for conditions in tried} == {ir.Io.CALLER}  # nothing else needs less


def test_a_tensor_away_from_the_peak_is_a_ring_where_no_pool_has_room_for_it_whole(tmp_path: Path) -> None:
    pools = ("--workspace", "fast=900", "--workspace", "ram=1956")
    assert compiled(tmp_path, wide(), target(900, 2508, 548), pools).exit_code == 0
    assert_right(tmp_path, wide())


@pytest.mark.parametrize("rows", list(Rows))
def test_nothing_but_auto_is_tried_for_what_was_asked(
    rows: Rows, tmp_path: Path, tried: list[Conditions]
) -> None:
    """It fits wherever tensors that stay whole, or rows everywhere, do; without rows is how much they saved."""
    assert refused(tmp_path, spatial(), target(400), ("--rows", rows.value)).startswith(NO_OPTION)
    assert {conditions.options.rows for conditions in tried} == {rows, Rows.AUTO, Rows.OFF}


def test_nothing_is_tried_twice_or_beyond_what_works(tmp_path: Path, tried: list[Conditions]) -> None:
    assert refused(tmp_path, spatial(), target(696), ("--rows", "off")) == "--rows auto"
    assert len(set(tried[1:])) == len(tried) - 1
    assert len(tried) <= 6
    assert not [c for c in tried if c.options.io is not ir.Io.CALLER]


def test_an_image_that_a_layer_reads_as_a_whole_is_not_to_come_by_rows(
    tmp_path: Path, tried: list[Conditions]
) -> None:
    """BW210 in a trial is a no: what is left is an image that the application has."""
    file = target(1200, PUSH_STACK, PUSH_STACK)
    assert refused(tmp_path, whole_image(), file, PLANNED) == "--io caller"
    assert ir.Io.ROWS in {conditions.options.io for conditions in tried}
    assert refused(tmp_path, whole_image(), file, ("--io", "rows"), status=1) == "--io caller"  # BW210
    assert compiled(tmp_path, whole_image(), file, ("--io", "caller")).exit_code == 0
    assert_right(tmp_path, whole_image())


def test_rows_that_were_asked_for_and_do_not_fit(tmp_path: Path) -> None:
    """The application may have the image as a whole, which needs no byte of the workspace."""
    file = target(696, PUSH_STACK, PUSH_STACK)
    assert refused(tmp_path, spatial(), file, ("--io", "rows")) == "--io caller"
    assert compiled(tmp_path, spatial(), file, ("--io", "caller")).exit_code == 0


# --- inputs and outputs elsewhere are placed anew

ASKING = """\
module m

input %x : tensor<400xi8>
output %y : tensor<400xi8>

kernel m_copy(near : buffer<400xi8, "global.fast"> r, y : buffer<400xi8> w) on cpu {
  for i : i32 in 0 .. 400 { y[i] = near[i] }
}

entry main(x : buffer<400xi8> r, y : buffer<400xi8> w) on cpu {
  call_extern m_copy(&x, &y)
}
"""


@pytest.mark.parametrize("options", [(), PLANNED])
def test_an_input_that_a_kernel_wants_in_a_pool_needs_its_bytes_there(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    """Planned, it lies there; of the application's, a copy does. So `--io caller` saves nothing."""
    (tmp_path / "m.bw").write_text(ASKING, encoding="utf-8")
    for fast, status in ((400, 0), (399, 3)):
        # Planned, the output is in `fast` too, or beside the stack, where it has room
        (tmp_path / "board.toml").write_text(
            target(fast, ram=2000, more='[[workspace]]\nname = "ram"\nmemory = "ram"\n'), encoding="utf-8"
        )
        words = ["compile", tmp_path / "m.bw", "-o", tmp_path / "out", "--target", tmp_path / "board.toml"]
        result = CliRunner().invoke(bytewright, [str(word) for word in (*words, *options)])
        assert result.exit_code == status, result.stderr
    assert help_lines(result.stderr)[0].startswith(NO_OPTION)


def test_a_text_that_plans_its_inputs_keeps_them(tmp_path: Path) -> None:
    """What `place_io` printed says itself that they are planned, whatever the option."""
    (tmp_path / "m.tflite").write_bytes(spatial().content)
    text = tmp_path / "m.bw"
    words = ["compile", tmp_path / "m.tflite", *PLANNED, "--rows", "off", "--print-after", f"place_io={text}"]
    assert CliRunner().invoke(bytewright, [str(word) for word in words]).exit_code == 0
    (tmp_path / "board.toml").write_text(target(840, PUSH_STACK, PUSH_STACK), encoding="utf-8")
    for options in ((), PLANNED, ("--io", "rows")):
        words = ["compile", text, "-o", tmp_path / "out", "--target", tmp_path / "board.toml", *options]
        result = CliRunner().invoke(bytewright, [str(word) for word in words])
        assert result.exit_code == 3, result.stderr
        assert help_lines(result.stderr)[0].startswith(NO_OPTION)


# --- grids

LIMITS = (200, 696, 697, 840, 1000, 1464, 1552, 1584)
# What the chain needs at most in some form: one byte less is always tried, and has another remedy than the border.
BORDERS = {ir.Io.CALLER: (696, 1552), ir.Io.WORKSPACE: (1464, 1584), ir.Io.ROWS: (840,)}


@pytest.mark.parametrize(("rows", "io"), list(product(Rows, ir.Io)))
def test_any_limit(rows: Rows, io: ir.Io, tmp_path: Path) -> None:
    """Every refusal has help that works, or says that there is none where that is so."""
    options = ("--rows", rows.value, "--io", io.value)
    if (rows, io) == (Rows.OFF, ir.Io.ROWS):
        assert refused(tmp_path, spatial(), target(2000), options, status=1) == "--rows auto"
        return
    border = max(BORDERS[io]) if rows is Rows.OFF else min(BORDERS[io])
    own = [(border - 1, PUSH_STACK), (border, PUSH_STACK)]
    statuses: dict[int, int] = {}
    for fast, stack in dict.fromkeys((*own, *some(product(LIMITS, (RUN_STACK, PUSH_STACK)), every=8))):
        file = target(fast, PUSH_STACK, stack)
        result = compiled(tmp_path, spatial(), file, options)
        statuses.setdefault(fast, result.exit_code)
        if result.exit_code == 0:
            continue
        (line,) = help_lines(result.stderr)
        if line.startswith(NO_OPTION):
            assert fast < 696 - 256  # what there is beside the run's stack
            continue
        again = compiled(tmp_path, spatial(), file, with_help(options, result.stderr))
        assert again.exit_code == 0, f"{fast} {stack} {line}\n{again.stderr}"
    assert (statuses[border - 1], statuses[border]) == (3, 0)
