"""A program for three devices of this machine, by hand: a core that runs C, one that only copies, and the entry's.

The memories are arrays of the application. A core that runs C works on a copy of what it is lent, at other addresses,
so that whatever it is not lent, or is told by address alone, does not reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.ir.module import Module
from bytewright.options import NOTHING_ASKED, Options
from bytewright.target import Target, load_text
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module

TARGET = """
name = "bench"
default-device = "cpu"
[memory.ram]
size = "64KiB"
[memory.shared]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "shared", "flash"]
stack = "ram"
max-stack-size = "8KiB"
[device.core1]
isa = "host"
reach = ["shared", "flash"]
stack = "shared"
max-stack-size = "4KiB"
[device.dma]
isa = "dma"
reach = ["ram", "shared"]
[[workspace]]
name = "near"
memory = "ram"
size = "16KiB"
[[workspace]]
name = "shared"
memory = "shared"
size = "16KiB"
[[parameters]]
name = "flash"
memory = "flash"
"""

# x -> copied by the DMA -> filtered on core1 with a constant -> shifted on the CPU -> doubled on core1 -> copied.
PROGRAM = """
module pair

input %x : tensor<32xi16>
output %y : tensor<32xi16>

constant taps : buffer<4xi16> = data<4xi16> [1, -3, 3, -1]

kernel pair_fetch(source : buffer<32xi16, "global.near"> r, destination : buffer<32xi16, "global.shared"> w) on dma
    job(copy) {
  for i : i32 in 0 .. 32 {
    destination[i] = source[i]
  }
}

kernel pair_filter(
    x : buffer<32xi16> r, taps_of : buffer<4xi16> r parameter, y : buffer<32xi32> w, first : i32, wide : bool
) on core1 {
  allocate padded : buffer<35xi16>
  for i : i32 in 0 .. 3 {
    padded[i] = 0:i16
  }
  for k : i32 in 0 .. 32 {
    padded[k + 3] = x[k]
  }
  for row : i32 in 0 .. 32 {
    allocate sum : buffer<i32, "local">
    sum[] = first
    if wide {
      for tap : i32 in 0 .. 4 {
        sum[] = sum[] + i32(padded[row + tap]) * i32(taps_of[tap])
      }
    }
    y[row] = sum[]
  }
}

kernel pair_shift(x : buffer<32xi32> r, y : buffer<32xi32> w) on cpu {
  for i : i32 in 0 .. 32 {
    y[i] = double_round(x[i], 1431655765, 1)
  }
}

kernel pair_narrow(x : buffer<32xi32> r, y : buffer<32xi16> w) on core1 {
  for i : i32 in 0 .. 32 {
    y[i] = i16(min(max(double_round(x[i], 1431655765, 2), -30000), 30000))
  }
}

kernel pair_move(x : buffer<32xi16> r, y : buffer<32xi16> w) on cpu {
  for i : i32 in 0 .. 32 {
    y[i] = x[i]
  }
}

kernel pair_return(source : buffer<32xi16, "global.shared"> r, destination : buffer<32xi16, "global.near"> w) on dma
    job(copy) {
  for i : i32 in 0 .. 32 {
    destination[i] = source[i]
  }
}

entry main(x : buffer<32xi16> r, y : buffer<32xi16> w) on cpu {
  allocate near : buffer<32xi16, "global.near">
  allocate lent : buffer<32xi16, "global.shared">
  allocate filtered : buffer<32xi32>
  allocate shifted : buffer<32xi32>
  allocate narrow : buffer<32xi16, "global.shared">
  allocate back : buffer<32xi16, "global.near">
  call_extern pair_move(&x, &near)
  call_extern pair_fetch(&near, &lent)
  call_extern pair_filter(&lent, &taps, &filtered, 7, true)
  call_extern pair_shift(&filtered, &shifted)
  call_extern pair_narrow(&shifted, &narrow)
  call_extern pair_return(&narrow, &back)
  call_extern pair_move(&back, &y)
}
"""


# With a unit beside them that is driven by streams of commands, and runs no C.
STREAM_TARGET = TARGET.replace(
    "[device.dma]", '[device.npu]\nisa = "npu"\nreach = ["shared", "flash"]\n[device.dma]'
)


def stream_program(mode: int = 0) -> str:
    """The program whose last kernel is a stream for that unit, which begins with this byte."""
    narrow = PROGRAM[PROGRAM.index("kernel pair_narrow") : PROGRAM.index("kernel pair_move")]
    job = (
        "kernel pair_narrow(stream : buffer<4xu8> r parameter, x : buffer<32xi32> r, y : buffer<32xi16> w) on npu\n"
        "    job(stream) {\n}\n\n"
    )
    orders = f"constant orders : buffer<4xu8> = data<4xu8> [{mode}, 1, 2, 3]\n"
    return (
        PROGRAM.replace(narrow, job)
        .replace("constant taps :", f"{orders}constant taps :")
        .replace("pair_narrow(&shifted", "pair_narrow(&orders, &shifted")
    )


def bench(text: str = TARGET) -> Target:
    """The target of a text."""
    return load_text(text, "bench.toml")


def program(text: str = PROGRAM) -> Module:
    """The module of a text."""
    return parse_module(text, {}, {})


def compiled(text: str = PROGRAM, target: str = TARGET, options: Options = NOTHING_ASKED) -> Compiled:
    """The bundle of a program."""
    return compile_model(program(text), bench(target), options)


def bundle(folder: Path, text: str = PROGRAM, target: str = TARGET, options: Options = NOTHING_ASKED) -> Path:
    """The same, in a folder."""
    write_bundle(compiled(text, target, options).files, folder)
    return folder


def evaluated(
    text: str, inputs: Mapping[str, NDArray[np.generic]], **arguments: object
) -> dict[str, NDArray[np.generic]]:
    """What the program computes, by the meaning of the IR."""
    return Evaluator(program(text), **arguments).run("main", inputs)  # type: ignore[arg-type]


# Drivers as an application has them, with every call recorded. The core works on mirrors of what `open` lends, the DMA
# copies in `wait`. Each call that may fail is numbered; the one that `fail_at` names fails. What a driver must be able
# to rely on is asserted: order, nesting, spans within what was lent, no two launches in flight.
DRIVERS = r"""
#include <assert.h>
#include "@m@_core1.h"

enum { MOST = 8 };

typedef struct {
    char name;
    int is_active, is_open, in_flight;
    @m@_span memories[MOST];
    uint8_t *mirrors[MOST];
    uint32_t num_memories;
    @m@_span spans[MOST];
    const void *code;
    uint32_t code_bytes, num_spans, size_of_job;
} driver;

static char events[4096];
static size_t num_events;
static char held[64];            /* what was acquired and is not released yet, the last one at the end */
static size_t num_held;
static int num_calls, fail_at, refusals;

static void note(char what, char who)
{
    assert(num_events + 4 < sizeof events);
    events[num_events++] = what;
    events[num_events++] = who;
    events[num_events] = 0;
}

static int32_t fails(void)
{
    num_calls += 1;
    refusals += num_calls == fail_at;
    return num_calls == fail_at ? -7 : 0;
}

static void acquire(char what) { held[num_held++] = what; }

static void give_back(char what)
{
    assert(num_held > 0 && held[num_held - 1] == what);
    num_held -= 1;
}

static int32_t activate(void *self)
{
    driver *const me = self;
    assert(!me->is_active && !me->is_open);
    note('A', me->name);
    if (fails() != 0) {
        return -7;
    }
    me->is_active = 1;
    acquire(me->name);
    return 0;
}

static int32_t open_memories(void *self, const @m@_span *memories, uint32_t num)
{
    driver *const me = self;
    assert(me->is_active && !me->is_open && num > 0 && num <= MOST);
    note('O', me->name);
    if (fails() != 0) {
        return -7;
    }
    for (uint32_t i = 0; i < num; ++i) {
        assert(memories[i].size_bytes > 0 && (memories[i].access & ~3u) == 0 && memories[i].access != 0);
        me->memories[i] = memories[i];
        /* 64 bytes of alignment and exactly as many bytes: other addresses, and none beyond */
        me->mirrors[i] = block(64, memories[i].size_bytes);
    }
    me->num_memories = num;
    me->is_open = 1;
    acquire((char)(me->name - 32));
    return 0;
}

static uint32_t owner_of(const driver *me, const @m@_span *span)
{
    for (uint32_t i = 0; i < me->num_memories; ++i) {
        const uintptr_t begin = (uintptr_t)me->memories[i].base, at = (uintptr_t)span->base;
        if (at >= begin && at - begin + span->size_bytes <= me->memories[i].size_bytes) {
            assert((span->access & ~me->memories[i].access) == 0);
            return i;
        }
    }
    assert(0 && "a span outside of what was lent");
    return 0;
}

static int32_t launch(void *self, const @m@_job *job)
{
    driver *const me = self;
    assert(me->is_open && !me->in_flight && job->num_spans > 0 && job->num_spans <= MOST);
    note('L', me->name);
    if (fails() != 0) {
        return -7;
    }
    for (uint32_t i = 0; i < job->num_spans; ++i) {
        owner_of(me, &job->spans[i]);
        me->spans[i] = job->spans[i];
    }
    me->num_spans = job->num_spans;
    me->code = job->code;
    me->code_bytes = job->code_bytes;
    me->in_flight = 1;
    return 0;
}

static int32_t execute_core1(driver *me)
{
    @m@_span seen[MOST];
    int32_t status;

    for (uint32_t i = 0; i < me->num_memories; ++i) {
        memcpy(me->mirrors[i], me->memories[i].base, me->memories[i].size_bytes);
    }
    for (uint32_t i = 0; i < me->num_spans; ++i) {
        const uint32_t owner = owner_of(me, &me->spans[i]);
        seen[i] = me->spans[i];
        seen[i].base = me->mirrors[owner] + ((uint8_t *)me->spans[i].base - (uint8_t *)me->memories[owner].base);
    }
    status = @m@_core1_execute(me->code, me->code_bytes, seen, me->num_spans);
    for (uint32_t i = 0; i < me->num_spans; ++i) {
        if ((me->spans[i].access & @M@_SPAN_WRITE) != 0) {
            memcpy(me->spans[i].base, seen[i].base, seen[i].size_bytes);
        }
    }
    return status;
}

static int32_t wait_for_it(void *self)
{
    driver *const me = self;
    int32_t status = 0;

    assert(me->in_flight);
    note('W', me->name);
    me->in_flight = 0;
    if (fails() != 0) {
        return -7;
    }
    if (me->name == 'c') {
        status = execute_core1(me);
    } else {
        assert(me->code == NULL && me->code_bytes == 0 && me->num_spans == 2);
        assert(me->spans[0].size_bytes == me->spans[1].size_bytes);
        memcpy(me->spans[0].base, me->spans[1].base, me->spans[0].size_bytes);
    }
    return status;
}

static void close_memories(void *self)
{
    driver *const me = self;
    assert(me->is_open && !me->in_flight);
    note('C', me->name);
    for (uint32_t i = 0; i < me->num_memories; ++i) {
        free(me->mirrors[i]);
    }
    me->is_open = 0;
    give_back((char)(me->name - 32));
}

static void deactivate(void *self)
{
    driver *const me = self;
    assert(me->is_active && !me->is_open && !me->in_flight);
    note('D', me->name);
    me->is_active = 0;
    give_back(me->name);
}

static driver core1_driver = {.name = 'c'}, dma_driver = {.name = 'd'};

static @m@_device device_of(driver *self)
{
    const @m@_device device = {
        self, activate, open_memories, launch, wait_for_it, close_memories, deactivate};
    return device;
}

/* Begins to record anew; the call of this number is to fail, none if it is 0. */
static void restart(int call)
{
    num_events = num_held = 0;
    events[0] = 0;
    num_calls = refusals = 0;
    fail_at = call;
}
"""

# The rest of a program for `PROGRAM`: memory of exactly the sizes of the header, an input, and a run.
APPLICATION = r"""
static @m@_context context;
static @m@_workspaces workspaces;
static int16_t x[32], y[32];
static @m@_devices devices;

static void prepare(void)
{
    workspaces.near.base = block(@M@_NEAR_WORKSPACE_ALIGN, @M@_NEAR_WORKSPACE_SIZE);
    workspaces.near.size_bytes = @M@_NEAR_WORKSPACE_SIZE;
    workspaces.shared.base = block(@M@_SHARED_WORKSPACE_ALIGN, @M@_SHARED_WORKSPACE_SIZE);
    workspaces.shared.size_bytes = @M@_SHARED_WORKSPACE_SIZE;
    assert(@m@_set_workspaces(&context, &workspaces) == @M@_OK);
    devices.core1 = device_of(&core1_driver);
    devices.dma = device_of(&dma_driver);
    for (int i = 0; i < 32; ++i) {
        x[i] = (int16_t)(i * 997 - 9000);
    }
}

static void finish(void)
{
    free(workspaces.near.base);
    free(workspaces.shared.base);
}

static int32_t run(void)
{
    const @m@_inputs inputs = {x};
    const @m@_outputs outputs = {y};
    memset(y, 0, sizeof y);
    return @m@_run(&context, &inputs, &outputs, &devices);
}
"""

INPUT = (np.arange(32) * 997 - 9000).astype(np.int16)
