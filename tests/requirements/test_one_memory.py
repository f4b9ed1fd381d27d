"""Requirement U8: results, constants, workspace and stack of one memory never collide, from target to linked image."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bytewright.bundle.write import write_bundle
from bytewright.cli.main import bytewright as command_line
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.description import read_bundle
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.record.plan_file import plan_of
from bytewright.target import Target, load_text
from support.c_program import run_c
from support.reference import LiteRt
from support.shared_models import new_folder

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.tflite"
OK, OVERLAP, HASH = 0, -4, -6
HEADER_BYTES = 32

# Everything is in one memory: the stack, two workspaces, and two pools of constants that the application lends.
ONE = """
name = "one"
[memory.ram]
size = {memory}
[device.cpu]
isa = "host"
reach = ["ram"]
stack = "ram"
max-stack-size = {stack}
stack-reserve = 1024
stack-allowance-per-call = 1024
[[workspace]]
name = "fast"
memory = "ram"
size = {fast}
[[workspace]]
name = "slow"
memory = "ram"
size = {slow}
[[parameters]]
name = "first"
memory = "ram"
size = {first}
provider = "caller"
[[parameters]]
name = "second"
memory = "ram"
size = {second}
provider = "caller"
"""
# One workspace alone would do for all results: the first is so small that the plan needs both.
SIZES = {"stack": 4096, "fast": 128, "slow": 2048, "first": 2048, "second": 6144}
POOLS = ("fast", "slow", "first", "second")


def one(memory: int | None = None, **sizes: int) -> Target:
    """The target; its memory is as large as its parts together, unless it is said otherwise."""
    parts = SIZES | sizes
    total = sum(parts.values())
    return load_text(ONE.format(memory=total if memory is None else memory, **parts), "one.toml")


@cache
def compiled(io: Io = Io.CALLER) -> Compiled:
    return compile_model(DIGITS, one(), Options(io=io))


def used_bytes(document: dict[str, Any]) -> dict[str, int]:
    return {pool["name"]: pool["used_bytes"] for pool in document["pools"]}


# --- What the target promises


@pytest.mark.parametrize("part", SIZES)
def test_u8_pools_and_stacks_of_one_memory_are_added_up(part: str) -> None:
    """To the byte: the parts together are the memory, and one byte more of any of them is refused."""
    total = sum(SIZES.values())
    assert sum(pool.size_bytes or 0 for pool in one().pools) == total - SIZES["stack"]
    with pytest.raises(CompileError, match="BW202") as caught:
        one(total, **{part: SIZES[part] + 1})
    assert (
        f"memory 'ram' has {total} B, but its pools and stacks take {total + 1} B: 1 B too many"
        in caught.value.diagnostics[0].message
    )
    with pytest.raises(CompileError, match="16 B too many"):
        one(total - 16)


def test_u8_options_are_held_to_the_memory_too() -> None:
    arguments = ["compile", str(DIGITS), "-o", "unused", "--target"]
    path = new_folder() / "one.toml"
    path.write_text(ONE.format(memory=sum(SIZES.values()), **SIZES))
    for option, missing in (("--resize", "slow=2049"), ("--max-stack-size", "4097")):
        done = CliRunner().invoke(command_line, [*arguments, str(path), option, missing])
        assert done.exit_code == 1
        assert "1 B too many" in done.stderr


def test_u8_intervals_of_memories_with_addresses_are_disjoint() -> None:
    """Two memories are one if their addresses meet, through an alias too."""
    text = ONE.format(memory=16384, **SIZES).replace("[memory.ram]", "[memory.ram]\nbase = 0x1000")
    for base, alias, message in (
        (0x4FFF, 0x9000, "overlap"),
        (0x5000, 0x4FFF, "overlap"),
        (0x5000, 0x9000, None),
        (0x0, 0x9000, None),
        (0x1, 0x9000, "overlap"),
    ):
        other = f"\n[memory.other]\nbase = {base}\naliases = [{alias}]\nsize = 4096\n"
        if message is None:
            load_text(text + other, "one.toml")
            continue
        with pytest.raises(CompileError, match="BW202") as caught:
            load_text(text + other, "one.toml")
        assert message in str(caught.value)


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_u8_what_a_plan_uses_fits_the_memory_exactly(io: Io) -> None:
    """A memory of just the bytes that the plan and the stack use is enough; with one byte less nothing comes out."""
    document = compiled(io).document
    used = used_bytes(document)
    assert all(used[name] for name in POOLS)
    stack = document["stack"]["cpu"]["size_bytes"] + 1024
    parts = used | {"stack": stack}
    again = compile_model(DIGITS, one(**parts), Options(io=io)).document
    assert used_bytes(again) == used
    for name in ("slow", "second", "stack"):
        with pytest.raises(CompileError) as caught:
            compile_model(
                DIGITS, one(sum(parts.values()), **(parts | {name: parts[name] - 1})), Options(io=io)
            )
        assert caught.value.exit_code == 3


def test_u8_a_plan_that_promises_more_than_the_memory_does_not_verify() -> None:
    document = json.loads(compiled().files["plan.json"])
    assert plan_of(document).pools["slow"].capacity_bytes == SIZES["slow"]
    (pool,) = (p for p in document["target_description"]["workspace"] if p["name"] == "slow")
    pool["size"] = SIZES["slow"] + 1
    with pytest.raises(CompileError, match="1 B too many"):
        plan_of(document)


# --- What the application lends


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in the memory, and whether parameters are set before workspaces."""

    fast: int
    slow: int
    first: int
    second: int
    output: int
    parameters_first: bool


BLOCK_BYTES = 48 * 1024
OUTPUT_BYTES = 10


def layouts(used: dict[str, int], count: int) -> list[Layout]:
    """Pools packed in a random order, with gaps, and then one of them moved on to another, by a little or much.

    Half of them stay as they were packed, in which case they are fine.
    """
    generator = np.random.default_rng(20)
    found: list[Layout] = []
    for index in range(count):
        offsets: dict[str, int] = {}
        at = 16 * int(generator.integers(0, 8))
        for name in generator.permutation([*POOLS, "output"]):
            offsets[str(name)] = at
            size = used.get(str(name), OUTPUT_BYTES)
            at += -(-size // 16) * 16 + 16 * int(generator.choice([0, 0, 1, 40]))
        if index % 2:
            moved, onto = (str(name) for name in generator.choice([*POOLS, "output"], 2, replace=False))
            sizes = {name: used.get(name, OUTPUT_BYTES) for name in (moved, onto)}
            last = (offsets[onto] + sizes[onto] - 1) // 16 * 16
            before = offsets[onto] - -(-sizes[moved] // 16) * 16
            middle = 16 * int(generator.integers(max(0, before // 16 + 1), last // 16 + 1))
            offsets[moved] = max(0, int(generator.choice([before, before + 16, middle, last, last + 16])))
        found.append(Layout(**offsets, parameters_first=bool(generator.integers(2))))
    return found


def expected_of(layout: Layout, used: dict[str, int], io: Io) -> tuple[str, int]:
    """The call that refuses, and its code; by intervals alone."""

    def meet(one: str, other: str) -> bool:
        a, b = getattr(layout, one), getattr(layout, other)
        return a < b + used.get(other, OUTPUT_BYTES) and b < a + used.get(one, OUTPUT_BYTES)

    workspaces = [("fast", "slow")]
    parameters = [("first", "second")]
    across = [(w, p) for w in ("fast", "slow") for p in ("first", "second")]
    # The bytes of `second` were written over those of `first`: its header may be gone, which is found first.
    header_is_gone = (
        layout.second < layout.first + HEADER_BYTES and layout.first < layout.second + used["second"]
    )
    refusal = HASH if header_is_gone else OVERLAP
    if layout.parameters_first:
        stages = [("set parameters", parameters), ("set workspaces", [*workspaces, *across])]
    else:
        stages = [("set workspaces", workspaces), ("set parameters", [*parameters, *across])]
    for stage, pairs in stages:
        if stage == "set parameters" and header_is_gone:
            return stage, refusal
        if any(meet(*pair) for pair in pairs):
            return stage, OVERLAP
    if io is Io.CALLER and any(meet("output", name) for name in POOLS):
        return "run", OVERLAP
    return "run", OK


PROGRAM = """
typedef struct { size_t fast, slow, first, second, output; int parameters_first; } layout;
static const layout layouts[] = {
@layouts@
};
static const uint8_t first_bytes[] = {
#include @M@_FIRST_PARAMETERS_INITIALIZER
};
static const uint8_t second_bytes[] = {
#include @M@_SECOND_PARAMETERS_INITIALIZER
};
static const int8_t image[64] = {@image@};
static uint8_t *memory, *before;

/* Whether a byte outside of [first, first + size) and of the workspaces is not as it was. */
static int changed(const layout *at, int with_workspaces, size_t first, size_t size)
{
    for (size_t i = 0; i < @block@; ++i) {
        const int in_workspace = (i >= at->fast && i < at->fast + @M@_FAST_WORKSPACE_SIZE) ||
                                 (i >= at->slow && i < at->slow + @M@_SLOW_WORKSPACE_SIZE);
        if (memory[i] != before[i] && !(with_workspaces && in_workspace) && !(i >= first && i < first + size)) {
            return 1;
        }
    }
    return 0;
}

static void attempt(size_t index, const layout *at)
{
    @m@_context context = {0};
    const @m@_workspaces workspaces = {{memory + at->fast, @M@_FAST_WORKSPACE_SIZE},
                                       {memory + at->slow, @M@_SLOW_WORKSPACE_SIZE}};
    const @m@_parameters parameters = {memory + at->first, memory + at->second};
    const char *stage = "";
    int32_t code = 0;

    memset(memory, 0x5A, @block@);
    memcpy(memory + at->first, first_bytes, sizeof first_bytes);
    memcpy(memory + at->second, second_bytes, sizeof second_bytes);
    memcpy(before, memory, @block@);
    for (int turn = 0; turn < 2 && code == 0; ++turn) {
        const int is_parameters = turn == (at->parameters_first ? 0 : 1);
        stage = is_parameters ? "set parameters" : "set workspaces";
        code = is_parameters ? @m@_set_parameters(&context, &parameters) : @m@_set_workspaces(&context, &workspaces);
    }
    if (code != 0) {
        printf("%zu %s %d\\n", index, stage, changed(at, 0, 0, 0) ? 100 : (int)code);
        return;
    }
@run@
}

int main(void)
{
    memory = block(64, @block@);
    before = block(64, @block@);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; ++i) {
        attempt(i, &layouts[i]);
    }
    free(memory);
    free(before);
    return 0;
}
"""
RUN = {
    Io.CALLER: """
    const @m@_inputs inputs = {image};
    const @m@_outputs outputs = {(int8_t *)(memory + at->output)};
    code = @m@_run(&context, &inputs, &outputs);
    if (changed(at, code == 0, at->output, code == 0 ? 10 : 0) || @m@_verify_parameters(&context) != 0) {
        code = 200;
    }
    printf("%zu run %d\\n", index, (int)code);
    for (int i = 0; code == 0 && i < 10; ++i) {
        printf("%zu output %d %d\\n", index, i, outputs.probabilities[i]);
    }
""",
    Io.WORKSPACE: """
    memcpy(@m@_input_image(&context), image, sizeof image);
    code = @m@_run(&context);
    if (changed(at, 1, 0, 0) || @m@_verify_parameters(&context) != 0) {
        code = 200;
    }
    printf("%zu run %d\\n", index, (int)code);
    for (int i = 0; code == 0 && i < 10; ++i) {
        printf("%zu output %d %d\\n", index, i, @m@_output_probabilities(&context)[i]);
    }
""",
}
NUM_LAYOUTS = 240


@pytest.mark.run
@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_u8_what_the_application_lends_in_one_memory_never_collides(io: Io, tmp_path: Path) -> None:
    """Every layout that collides is refused when its second part is set, or at run for outputs; nothing was written.

    All others give the reference's output, and change no byte but those of workspaces and outputs.
    """
    folder = tmp_path / "bundle"
    write_bundle(compiled(io).files, folder)
    used = used_bytes(compiled(io).document)
    chosen = layouts(used, NUM_LAYOUTS)
    image = np.random.default_rng(3).integers(0, 17, (1, 8, 8, 1)).astype(np.int8)
    rows = ",\n".join(f"    {{{', '.join(str(int(value)) for value in astuple(each))}}}" for each in chosen)
    source = (
        PROGRAM.replace("@run@", RUN[io])
        .replace("@layouts@", rows)
        .replace("@image@", ", ".join(str(value) for value in image.ravel()))
        .replace("@block@", str(BLOCK_BYTES))
    )
    shown = run_c(folder, source, tmp_path / "program")
    (reference,) = LiteRt(DIGITS).run(image)
    outcomes: list[tuple[str, int]] = []
    for index, layout in enumerate(chosen):
        (outcome,) = (
            (found[1], code)
            for name, code in shown.items()
            if (found := re.fullmatch(rf"{index} (set \w+|run)", name))
        )
        assert outcome == expected_of(layout, used, io), layout
        outcomes.append(outcome)
        if outcome == ("run", OK):
            found = [shown[f"{index} output {position}"] for position in range(OUTPUT_BYTES)]
            assert found == [int(value) for value in reference.ravel()], layout
    # Each way to refuse, and none, did come.
    kinds = {("set workspaces", OVERLAP), ("set parameters", OVERLAP), ("set parameters", HASH), ("run", OK)}
    assert set(outcomes) == kinds | ({("run", OVERLAP)} if io is Io.CALLER else set())
    assert NUM_LAYOUTS / 3 < outcomes.count(("run", OK)) < NUM_LAYOUTS


# --- What the linker makes of it

ARM = shutil.which("arm-none-eabi-gcc")
RAM, RAM_BYTES = 0x20000000, 0x10000
LINKED = f"""
name = "linked"
[memory.ram]
base = {RAM:#x}
size = {RAM_BYTES}
[device.cpu]
isa = "cortex-m4"
reach = ["ram"]
stack = "ram"
max-stack-size = "4KiB"
[[workspace]]
name = "work"
memory = "ram"
size = "4KiB"
provider = "generated"
section = ".work"
[[parameters]]
name = "weights"
memory = "ram"
size = "12KiB"
section = ".weights"
[stack.external]
memcpy = 64
"""
APPLICATION = """
#include "digits.h"
__attribute__((section(".results"))) int8_t results[10];
__attribute__((section(".image"))) int8_t image[64];
int main(void)
{
    static digits_context context;
    const digits_inputs inputs = {image};
    const digits_outputs outputs = {results};
    return (int)digits_run(&context, &inputs, &outputs);
}
"""
SCRIPT = """
ENTRY(main)
SECTIONS
{
    .text 0x20008000 : { *(.text*) *(.rodata*) *(.ARM*) *(.data*) }
    .bss 0x2000c000 (NOLOAD) : { *(.bss*) *(COMMON) }
    .weights @weights@ : { *(.weights) }
    .work @work@ (NOLOAD) : { *(.work) }
    .results @results@ (NOLOAD) : { *(.results) }
    .image 0x2000e000 (NOLOAD) : { *(.image) }
    __StackLimit = @stack@;
    __StackTop = @stack@ + 0x1000;
}
"""
PLACES = {"work": RAM, "weights": RAM + 0x1000, "results": RAM + 0x4000, "stack": RAM + 0x5000}


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose arrays are generated, and its objects in `objects/`."""
    folder = tmp_path_factory.mktemp("linked")
    write_bundle(compile_model(DIGITS, load_text(LINKED, "linked.toml")).files, folder / "bundle")
    bundle = read_bundle(folder / "bundle")
    (folder / "main.c").write_text(APPLICATION)
    includes = [f"-I{path}" for path in bundle.include_directories]
    flags = ("-mcpu=cortex-m4", "-mthumb", "-std=c99", "-O1", "-ffp-contract=off", "-fno-strict-aliasing")
    (folder / "objects").mkdir()
    sources = [str(folder / "main.c"), *map(str, bundle.sources)]
    subprocess.run(
        ["arm-none-eabi-gcc", *flags, *includes, "-c", *sources],
        cwd=folder / "objects",
        check=True,
        timeout=120,
    )
    return folder


def check_linked(folder: Path, product: Path, **moved: int) -> Result:
    """Links the application with parts of it elsewhere, even where others are, and checks the image."""
    script = SCRIPT
    for name, address in (PLACES | moved).items():
        script = script.replace(f"@{name}@", hex(address))
    product.with_suffix(".ld").write_text(script)
    objects = sorted(str(path) for path in (folder / "objects").glob("*.o"))
    flags = ("-mcpu=cortex-m4", "-mthumb", "-nostartfiles", "--specs=nosys.specs")
    linker = ("-Wl,--no-check-sections", "-Wl,--no-warn-rwx-segments", "-T", str(product.with_suffix(".ld")))
    subprocess.run(
        ["arm-none-eabi-gcc", *flags, *linker, *objects, "-lm", "-o", str(product)], check=True, timeout=120
    )
    return CliRunner().invoke(command_line, ["check", str(folder / "bundle"), "--elf", str(product)])


@pytest.mark.board
@pytest.mark.skipif(ARM is None, reason="arm-none-eabi-gcc is not installed")
def test_u8_check_finds_arrays_that_the_linker_laid_over_each_other(objects: Path, tmp_path: Path) -> None:
    """Workspace over constants, results over either, the stack over the workspace; side by side is fine."""
    used = used_bytes(json.loads((objects / "bundle" / "plan.json").read_text()))
    work, weights = used["work"], used["weights"]
    assert work % 16 == 0
    at_work, at_weights = PLACES["work"], PLACES["weights"]
    end = at_weights + weights
    fine = [{}, {"work": at_weights - work}, {"results": at_work + work}, {"stack": end}]
    for index, moved in enumerate(fine):
        done = check_linked(objects, tmp_path / f"fine{index}.elf", **moved)
        assert done.exit_code == 0, done.stderr
        assert done.stdout.count("aligned, apart from all else") == 2
    wrong: list[tuple[dict[str, int], str]] = [
        ({"work": at_weights - work + 16}, "'digits_work_workspace' at {} shares 16 B with pool 'weights'"),
        ({"work": at_weights}, f"shares {min(work, weights)} B with pool 'weights'"),
        (
            {"work": (at_weights + weights - 1) // 16 * 16},
            f"shares {(weights - 1) % 16 + 1} B with pool 'weights'",
        ),
        ({"weights": at_work + work - 16}, "shares 16 B with pool 'work'"),
        ({"results": at_work + work - 4}, "shares 4 B with variable 'results'"),
        ({"results": at_weights - 8}, "shares 2 B with variable 'results'"),
        ({"stack": at_work + work - 4}, "shares 4 B with the stack (__StackLimit to __StackTop)"),
        ({"work": 0x20008000}, "with section '.text' at 0x20008000"),
        ({"weights": 0x20008000}, "with section '.text' at 0x20008000"),
    ]
    for index, (moved, message) in enumerate(wrong):
        done = check_linked(objects, tmp_path / f"wrong{index}.elf", **moved)
        first = moved.get("work", at_work)
        assert (done.exit_code, done.stdout) == (4, "")
        assert "error[BW405]" in done.stderr
        assert message.format(f"{first:#010x}..{first + work - 1:#010x}") in done.stderr
        assert "other bytes" not in done.stderr  # an array's bytes are those of its own section
