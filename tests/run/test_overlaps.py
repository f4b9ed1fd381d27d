"""What a bundle refuses to be given: memory over its own memory, or past the last address."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from bytewright.target.registry import load_target
from support.c_program import LANGUAGE, WARNINGS, run_c
from support.ir_program import read_module
from support.kws_program import OK, OVERLAP, RANGE
from support.shared_models import HOST, KWS, bundle, target_with
from support.tiers import THOROUGH

ATTEMPTS = """
static inline int32_t lend(@m@_context *context, void *base, size_t size_bytes)
{
    const @m@_workspaces workspaces = {{base, size_bytes}};

    return @m@_set_workspaces(context, &workspaces);
}

static inline int32_t attempt(const @m@_context *context, const void *in, void *out)
{
    @m@_context copy = *context;
    const @m@_inputs inputs = {in};
    const @m@_outputs outputs = {out};

    return @m@_run(&copy, &inputs, &outputs);
}
"""


def test_nothing_is_written_over_parameters_of_the_bundle(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};
    uint8_t *const arena = block(64, @M@_RAM_WORKSPACE_SIZE);
    int8_t *const memory = block(64, 1024);
    uintptr_t constants;
    const void *const array = @m@_rodata_parameters;
    void *parameters;

    memcpy(&constants, &array, sizeof constants);
    memcpy(&parameters, &constants, sizeof parameters);
    SHOW("arena over parameters", lend(&context, parameters, @M@_RAM_WORKSPACE_SIZE));
    SHOW("set", lend(&context, arena, @M@_RAM_WORKSPACE_SIZE));
    SHOW("output in parameters", attempt(&context, memory, parameters));
    SHOW("last byte", attempt(&context, memory, (uint8_t *)parameters + @M@_RODATA_PARAMETERS_SIZE - 1));
    SHOW("input in parameters", attempt(&context, parameters, memory));
    SHOW("apart", attempt(&context, memory, memory + 512));
    free(arena);
    free(memory);
    return 0;
}
"""
    assert run_c(bundle(KWS, load_target(HOST)), ATTEMPTS + source, tmp_path) == {
        "arena over parameters": OVERLAP,
        "set": OK,
        "output in parameters": OVERLAP,
        "last byte": OVERLAP,
        "input in parameters": OK,
        "apart": OK,
    }


def test_nothing_is_written_over_the_context_or_the_structures(tmp_path: Path) -> None:
    source = """
int main(void)
{
    enum { SIZE = @M@_RAM_WORKSPACE_SIZE };
    uint8_t *const memory = block(64, 2 * SIZE);
    @m@_context context = {0};
    @m@_context *const inside = (void *)(memory + SIZE - sizeof context);
    @m@_context *const after = (void *)(memory + SIZE);
    int8_t *const other = block(64, 1024);
    @m@_inputs *const inputs = (void *)(other + 512);
    @m@_outputs *const outputs = (void *)(other + 640);

    memset(memory, 0, 2 * SIZE);
    SHOW("over the context", lend(inside, memory, SIZE));
    SHOW("beside the context", lend(after, memory, SIZE));
    SHOW("set", lend(&context, memory, SIZE));
    *outputs = (@m@_outputs){other};
    *inputs = (@m@_inputs){other + 512 - 490};
    outputs->identity = (int8_t *)outputs;
    SHOW("over outputs", @m@_run(&context, inputs, outputs));
    outputs->identity = (int8_t *)inputs;
    SHOW("over inputs", @m@_run(&context, inputs, outputs));
    outputs->identity = (int8_t *)&context;
    SHOW("over the context at run", @m@_run(&context, inputs, outputs));
    outputs->identity = other;
    SHOW("apart", @m@_run(&context, inputs, outputs));
    free(memory);
    free(other);
    return 0;
}
"""
    shown = run_c(bundle(KWS, load_target(HOST)), ATTEMPTS + source, tmp_path)
    assert shown == {
        "over the context": OVERLAP,
        "beside the context": OK,
        "set": OK,
        "over outputs": OVERLAP,
        "over inputs": OVERLAP,
        "over the context at run": OVERLAP,
        "apart": OK,
    }


def test_the_address_space_has_an_end(tmp_path: Path) -> None:
    source = """
static void *at(uintptr_t address)
{
    void *pointer;

    memcpy(&pointer, &address, sizeof pointer);
    return pointer;
}

int main(void)
{
    enum { SIZE = @M@_RAM_WORKSPACE_SIZE };
    @m@_context context = {0};
    uint8_t *const arena = block(64, SIZE);
    int8_t *const memory = block(64, 1024);
    const uintptr_t last = UINTPTR_MAX - 63;

    SHOW("size that wraps", lend(&context, arena, SIZE_MAX));
    SHOW("base near the end", lend(&context, at(last), SIZE));
    SHOW("set", lend(&context, arena, SIZE));
    SHOW("output near the end", attempt(&context, memory, at(UINTPTR_MAX - 10)));
    SHOW("input near the end", attempt(&context, at(UINTPTR_MAX - 100), memory));
    free(arena);
    free(memory);
    return 0;
}
"""
    shown = run_c(bundle(KWS, load_target(HOST)), ATTEMPTS + source, tmp_path)
    assert shown == {
        "size that wraps": RANGE,
        "base near the end": RANGE,
        "set": OK,
        "output near the end": RANGE,
        "input near the end": RANGE,
    }


def test_arrays_of_the_bundle_that_change_are_nobodys(tmp_path: Path) -> None:
    """A generated workspace has external linkage, so an application could name it."""
    source = """
extern uint8_t @m@_ram_workspace[];

int main(void)
{
    @m@_context context = {0};
    int8_t *const memory = block(64, 1024);
    int8_t *const arena = (int8_t *)@m@_ram_workspace;

    SHOW("input inside", attempt(&context, arena, memory));
    SHOW("output inside", attempt(&context, memory, arena + @M@_RAM_WORKSPACE_SIZE - 1));
    SHOW("apart", attempt(&context, memory, memory + 512));
    free(memory);
    return 0;
}
"""
    text = ATTEMPTS[ATTEMPTS.index("static inline int32_t attempt") :]
    assert run_c(bundle(KWS, target_with(HOST, "ram=generated")), text + source, tmp_path) == {
        "input inside": OVERLAP,
        "output inside": OVERLAP,
        "apart": OK,
    }


def fan_out(count: int, in_pools: bool = False) -> str:
    """A kernel that writes one of `count` outputs, and an entry that calls it for each, by way of a pool for each."""
    ports = "".join(f"output %y{i} : tensor<8xi8>\n" for i in range(count))
    parameters = ",\n".join(f'    y{i} : buffer<8xi8, "global", align=1> w activation' for i in range(count))
    calls: list[str] = []
    for i in range(count):
        if in_pools:
            calls.append(f'  allocate t{i} : buffer<8xi8, "global.w{i}", align=1>')
            calls.append(f"  call_extern m_copy(&x, &t{i})")
        calls.append(f"  call_extern m_copy(&{f't{i}' if in_pools else 'x'}, &y{i})")
    body = "\n".join(calls)
    return f"""
module m
input %x : tensor<8xi8>
{ports}
kernel m_copy(
    source : buffer<8xi8, "global", align=1> r activation,
    result : buffer<8xi8, "global", align=1> w activation
) on cpu {{
  for i : i32 in 0 .. 8 {{
    result[i] = source[i]
  }}
}}
entry main(
    x : buffer<8xi8, "global", align=1> r activation,
{parameters}
) on cpu {{
{body}
}}
"""


def entry_bytes(count: int, in_pools: bool) -> int:
    """The size of the entry's C, for so many outputs; with as many workspaces, without the run."""
    workspace = tuple(parse_pool_option(f"w{i}=64@ram") for i in range(count))
    host = load_target(HOST)
    target = apply_overrides(host, Overrides(workspace=workspace)) if in_pools else host
    source = compile_model(read_module(fan_out(count, in_pools)), target).files["src/m.c"]
    return len(source.partition(b"int32_t m_run(")[0] if in_pools else source)


@pytest.mark.parametrize("in_pools", [False, True])
def test_the_entry_grows_with_ports_and_pools_and_not_with_their_square(in_pools: bool) -> None:
    small, middle, large = (entry_bytes(count, in_pools) for count in (10, 20, 40))
    assert large - middle < 2.1 * (middle - small)


def test_two_hundred_outputs_compile_in_a_blink_and_each_is_compared(tmp_path: Path) -> None:
    count, step = 200, 1 if THOROUGH else 8
    write_bundle(
        compile_model(read_module(fan_out(count)), load_target(HOST)).files, folder := tmp_path / "many"
    )
    command = ["gcc", *LANGUAGE, *WARNINGS, "-O2", "-Iinclude", "-c", "src/m.c", "-o", "m.o"]
    subprocess.run(command, cwd=folder, check=True, timeout=30)
    members = ", ".join(f"memory + {16 * (i + 1)}" for i in range(count))
    source = f"""
static int32_t attempt(int8_t *memory, size_t moved, long to)
{{
    m_context context = {{0}};
    const m_inputs inputs = {{memory}};
    int8_t *address[{count}] = {{{members}}};
    m_outputs outputs;

    address[moved] = memory + to;
    memcpy(&outputs, address, sizeof outputs);
    return m_run(&context, &inputs, &outputs);
}}

int main(void)
{{
    int8_t *const memory = block(16, {16 * (count + 2)});
    long refused = 0;
    long accepted = 0;

    for (size_t moved = 0; moved < {count}; moved += {step}) {{
        for (long other = 0; other <= {count}; ++other) {{
            if (other != (long)moved + 1) {{
                refused += attempt(memory, moved, 16 * other + 7) == M_ERROR_OVERLAP;
                accepted += attempt(memory, moved, 16 * other + 8) == M_OK;
            }}
        }}
    }}
    SHOW("refused", refused);
    SHOW("accepted", accepted);
    free(memory);
    return 0;
}}
"""
    shown = run_c(folder, source, tmp_path, ("-O2",))
    num_attempts = count // step * count
    assert shown == {"refused": num_attempts, "accepted": num_attempts}
