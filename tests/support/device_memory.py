"""A program for a core that computes in a memory of its own, which the CPU does not reach, with drivers that obtain it.

The parts that are as in `two_devices.py` come from there; what differs is replaced, and each piece must be found once.
"""

from __future__ import annotations

from support import two_devices
from support.two_devices import PROGRAM

LOCAL = '[memory.local]\nsize = "32KiB"\n[memory.flash]'


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """The text with each first part, which is in it once, in the place of the second."""
    for before, after in pairs:
        assert text.count(before) == 1, (before, text.count(before))
        text = text.replace(before, after)
    return text


# The core and the DMA reach `local`; what the core reads and writes is copied there and back.
TARGET = replaced(
    two_devices.TARGET,
    ("[memory.flash]", LOCAL),
    (
        'reach = ["shared", "flash"]\nstack = "shared"',
        'reach = ["local", "flash"]\nstack = "local"',
    ),
    ('reach = ["ram", "shared"]', 'reach = ["ram", "shared", "local"]'),
    ("[[parameters]]", '[[workspace]]\nname = "local"\nmemory = "local"\nsize = "8KiB"\n[[parameters]]'),
)
# The core reaches nothing else at all, and the DMA the parameters.
ALONE = replaced(
    TARGET,
    ('reach = ["local", "flash"]', 'reach = ["local"]'),
    ('reach = ["ram", "shared", "local"]', 'reach = ["ram", "shared", "local", "flash"]'),
)

_COPY = """
kernel pair_{name}(source : buffer<32x{dtype}, "global.{of}"> r, destination : buffer<32x{dtype}, "global.{to}"> w)
    on dma job(copy) {{
  for i : i32 in 0 .. 32 {{
    destination[i] = source[i]
  }}
}}
"""
_FILTERED, _SHIFTED = (
    _COPY.format(name=name, dtype="i32", of=of, to=to)
    for name, of, to in (("filtered", "local", "near"), ("shifted", "near", "local"))
)
# As `two_devices.PROGRAM`, with a copy at each end of what the core does.
PRIVATE = replaced(
    PROGRAM.replace("global.shared", "global.local"),
    ("kernel pair_filter(", f"{_FILTERED}{_SHIFTED}\nkernel pair_filter("),
    (
        "  allocate filtered : buffer<32xi32>\n  allocate shifted : buffer<32xi32>\n",
        '  allocate filtered : buffer<32xi32, "global.local">\n'
        '  allocate filtered_near : buffer<32xi32, "global.near">\n'
        '  allocate shifted_near : buffer<32xi32, "global.near">\n'
        '  allocate shifted : buffer<32xi32, "global.local">\n',
    ),
    (
        "  call_extern pair_shift(&filtered, &shifted)\n",
        "  call_extern pair_filtered(&filtered, &filtered_near)\n"
        "  call_extern pair_shift(&filtered_near, &shifted_near)\n"
        "  call_extern pair_shifted(&shifted_near, &shifted)\n",
    ),
)

_TYPE = "} driver;\n"
_HEAP = """} driver;

/* What the devices' memories are, as their drivers see them. Each is of exactly the size that is obtained. */
static uint8_t *heap[2];
"""
_OPEN = "        me->mirrors[i] = block(64, memories[i].size_bytes);\n    }\n"
_OBTAIN = """        me->mirrors[i] = memories[i].memory == 0 ? block(64, memories[i].size_bytes) : NULL;
    }
    for (uint32_t i = 0; i < num; ++i) {
        assert((memories[i].memory == 0) == (memories[i].base != NULL) && memories[i].memory < 2);
        if ((memories[i].access & @M@_SPAN_OBTAIN) != 0) {
            assert(heap[memories[i].memory] == NULL && memories[i].offset == 0);
            note('M', me->name);
            if (fails() != 0) {
                for (uint32_t j = 0; j < num; ++j) {
                    free(me->mirrors[j]);
                }
                return -7;
            }
            heap[memories[i].memory] = block(@M@_LOCAL_WORKSPACE_ALIGN, memories[i].size_bytes);
            acquire('M');
        } else {
            assert(memories[i].memory == 0 || heap[memories[i].memory] != NULL);
        }
    }
"""
_OWNER = """        const uintptr_t begin = (uintptr_t)me->memories[i].base, at = (uintptr_t)span->base;
        if (at >="""
_OWNER_OF_MEMORY = """        const uintptr_t first = (uintptr_t)me->memories[i].base, from = (uintptr_t)span->base;
        const uintptr_t begin = span->memory == 0 ? first : me->memories[i].offset;
        const uintptr_t at = span->memory == 0 ? from : span->offset;
        if (span->memory == me->memories[i].memory && at >="""
_SEEN = "        seen[i].base = me->mirrors[owner] + "
_CLOSE = """    me->is_open = 0;
    give_back((char)(me->name - 32));
"""
_RELEASE = """    for (uint32_t i = 0; i < me->num_memories; ++i) {
        if ((me->memories[i].access & @M@_SPAN_OBTAIN) != 0) {
            note('F', me->name);
            free(heap[me->memories[i].memory]);
            heap[me->memories[i].memory] = NULL;
            inner = 1;
        }
    }
    me->is_open = 0;
    give_back((char)(me->name - 32));
    if (inner) {
        give_back('M');
    }
"""
# Which obtain what they are told to, each of which may fail, and copy or compute there.
DRIVERS = replaced(
    two_devices.DRIVERS,
    (_TYPE, _HEAP),
    ("(memories[i].access & ~3u) == 0", "(memories[i].access & ~7u) == 0"),
    (_OPEN, _OBTAIN),
    (_OWNER, _OWNER_OF_MEMORY),
    (
        "        memcpy(me->mirrors[i], me->memories[i].base, me->memories[i].size_bytes);\n",
        "        if (me->memories[i].memory == 0) {\n"
        "            memcpy(me->mirrors[i], me->memories[i].base, me->memories[i].size_bytes);\n        }\n",
    ),
    (
        _SEEN,
        "        if (seen[i].memory != 0) {\n"
        "            seen[i].base = heap[seen[i].memory] + seen[i].offset;\n"
        f"            continue;\n        }}\n{_SEEN}",
    ),
    (
        "        if ((me->spans[i].access & @M@_SPAN_WRITE) != 0) {\n",
        "        if ((me->spans[i].access & @M@_SPAN_WRITE) != 0 && me->spans[i].memory == 0) {\n",
    ),
    (
        "        memcpy(me->spans[0].base, me->spans[1].base, me->spans[0].size_bytes);\n",
        "        memcpy(place_of(&me->spans[0]), place_of(&me->spans[1]), me->spans[0].size_bytes);\n",
    ),
    (
        "static int32_t wait_for_it(void *self)\n",
        "static void *place_of(const @m@_span *span)\n{\n"
        "    return span->memory == 0 ? span->base : heap[span->memory] + span->offset;\n}\n\n"
        "static int32_t wait_for_it(void *self)\n",
    ),
    ("    note('C', me->name);\n", "    int inner = 0;\n    note('C', me->name);\n"),
    (_CLOSE, _RELEASE),
)
# The application has nothing for `local`.
APPLICATION = replaced(
    two_devices.APPLICATION,
    (
        "    workspaces.shared.base = block(@M@_SHARED_WORKSPACE_ALIGN, @M@_SHARED_WORKSPACE_SIZE);\n"
        "    workspaces.shared.size_bytes = @M@_SHARED_WORKSPACE_SIZE;\n",
        "",
    ),
    ("    free(workspaces.shared.base);\n", ""),
)
