"""Each mistake that a target file can have, with the file, line and key that the error names."""

import json
from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.target import (
    UNLIMITED,
    Loader,
    MemoryAccess,
    Provider,
    Rank,
    Reach,
    Role,
    load_file,
    load_text,
)
from support.apply_help import with_target_lines

BOARD = """\
name = "board"
tags = ["micro"]
[memory.dtcm]
base = 0x20000000
aliases = [0x30000000]
size = "512KiB"
section = ".dtcm"
[memory.isram]
base = 0x21000000
size = "4MiB"
read-cost = 2
[memory.flash]
base = 0x28000000
size = "8MiB"
access = "r"
[memory.far]
size = "1MiB"
[device.cpu]
isa = "cortex-m55"
reach = ["dtcm", "isram", "flash"]
stack = "dtcm"
max-stack-size = "8KiB"
stack-reserve = "1KiB"
[device.npu]
isa = "ethos-u55"
reach = ["isram"]
[[workspace]]
name = "dtcm"
memory = "dtcm"
size = "64KiB"
[[workspace]]
name = "isram"
memory = "isram"
[[parameters]]
name = "flash"
memory = "flash"
"""

FAST = '[[parameters]]\nname = "fast"\nmemory = "dtcm"\nsize = "16KiB"\n'


def errors_of(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        load_text(text, "board.toml")
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"BW202"}
    return caught.value.diagnostics


def changed(old: str, new: str) -> str:
    assert BOARD.count(old) == 1, old
    return BOARD.replace(old, new)


def test_a_board_with_defaults_filled_in() -> None:
    target = load_text(BOARD, "board.toml")
    assert target.name == "board"
    assert "micro" in target.tags
    cpu = target.default_device
    (stack,) = cpu.contexts
    assert (cpu.name, cpu.isa.name, stack.memory) == ("cpu", "cortex-m55", "dtcm")
    assert cpu.reach == (Reach("dtcm"), Reach("isram"), Reach("flash"))
    assert (stack.max_stack_size_bytes, stack.stack_reserve_bytes, stack.available_stack_bytes) == (
        8192,
        1024,
        7168,
    )
    assert (cpu.max_stack_alloca_size_bytes, cpu.max_local_size_bytes) == (0, 128)
    assert cpu.ranks == (Rank.GLOBAL, Rank.LOCAL)
    assert not target.device("npu").runs_c
    assert target.memory("flash").access is MemoryAccess.READ_ONLY
    assert target.memory("isram").read_cost == 2
    dtcm, isram, flash = target.pools
    assert (dtcm.role, dtcm.size_bytes, dtcm.alignment, dtcm.provider) == (
        Role.WORKSPACE,
        65536,
        16,
        Provider.CALLER,
    )
    assert (isram.size_bytes, isram.takes_remainder, isram.devices) == (4 << 20, True, ("cpu", "npu"))
    assert (flash.role, flash.provider, flash.devices) == (Role.PARAMETERS, Provider.GENERATED, ("cpu",))


def test_an_omitted_size_is_what_stack_and_pools_leave() -> None:
    text = BOARD + '[[io]]\nname = "frames"\nmemory = "dtcm"\n'
    assert load_text(text, "x").pool("frames").size_bytes == (512 - 64 - 8) * 1024


def test_without_the_micro_tag_small_allocations_may_go_to_the_stack() -> None:
    assert load_text(changed('tags = ["micro"]', ""), "x").default_device.max_stack_alloca_size_bytes == 1024
    text = changed("max-stack-size", 'max-stack-alloca-size = "unlimited"\nmax-stack-size')
    assert load_text(text, "x").default_device.max_stack_alloca_size_bytes is UNLIMITED


def test_contexts_have_budgets_of_their_own() -> None:
    text = BOARD + (
        "[device.cpu.context.main]\n[device.cpu.context.worker]\n"
        'stack = "isram"\nmax-stack-size = "2KiB"\nstack-reserve = 0\n'
    )
    target = load_text(text, "x")
    main, worker = target.contexts
    assert (main.name, main.memory, main.available_stack_bytes) == ("cpu.main", "dtcm", 7168)
    assert (worker.name, worker.memory, worker.available_stack_bytes) == ("cpu.worker", "isram", 2048)
    assert target.pool("isram").size_bytes == (4 << 20) - 2048


def test_a_device_may_see_a_memory_elsewhere() -> None:
    text = changed('reach = ["isram"]', 'reach = [{ memory = "isram", base = 0x80000000 }]')
    target = load_text(text, "x")
    assert target.address_seen_by("npu", "isram") == 0x80000000
    assert target.address_seen_by("cpu", "isram") == 0x21000000
    assert target.address_seen_by("npu", "dtcm") is None


def test_what_is_said_of_a_device_among_others() -> None:
    reach = 'reach = [{ memory = "isram", port = "axi1", coherent = false }]\ncache-line = "32B"\n'
    text = changed(
        'reach = ["isram"]',
        reach + 'stack = "isram"\noperators = ["conv2d"]\ncost-per-mac = 3\ntouch-alignment = 16',
    )
    npu = load_text(text, "x").device("npu")
    assert npu.find_reach("isram") == Reach("isram", None, "axi1", is_coherent=False)
    assert npu.find_reach("dtcm") is None
    assert (npu.cache_line_bytes, npu.cost_per_mac, npu.touch_alignment) == (32, 3, 16)
    assert npu.takes("conv2d")
    assert not npu.takes("add")


def test_a_device_may_take_every_operator() -> None:
    text = changed('reach = ["isram"]', 'reach = ["isram"]\nstack = "isram"\noperators = ["all"]')
    assert load_text(text, "x").device("npu").takes("conv2d")
    assert not load_text(text, "x").device("cpu").takes("conv2d")


def test_two_pools_may_follow_a_memory_without_limit() -> None:
    text = changed('base = 0x21000000\nsize = "4MiB"', 'size = "unlimited"')
    text += '[[workspace]]\nname = "more"\nmemory = "isram"\n'
    assert [pool.size_bytes for pool in load_text(text, "x").pools_in("isram")] == [None, None]


@pytest.mark.parametrize("isa", ["ethos-u55-128", "dma"])
def test_a_default_device_that_runs_no_c_is_refused(isa: str) -> None:
    """With a stack it was taken for one that runs C: an internal error."""
    text = changed('tags = ["micro"]', 'tags = ["micro"]\ndefault-device = "npu"')
    text = text.replace('isa = "ethos-u55"', f'isa = "{isa}"\nstack = "isram"')
    with pytest.raises(CompileError, match="BW202") as error:
        load_text(text, "x")
    messages = [diagnostic.message for diagnostic in error.value.diagnostics]
    assert len(messages) == 2
    assert "so it runs no C and has no stack" in messages[1]
    assert messages[0] == "the default device 'npu' is not a device with a stack"


# (old text, new text, line, key, part of the message)
SINGLE_MISTAKES = [
    ('name = "board"\n', "\n", None, "", "the key 'name' is missing"),
    ('name = "board"', "name = 5", 1, "name", "must be a string, not an integer"),
    ('name = "board"', 'name = "a b"', 1, "name", "is not a target name"),
    ('name = "board"', 'name = "board"\ndescription = "a\\nb"', 2, "description", "not text on one line"),
    ('"micro"', '"micr0"', 2, "tags", "unknown tag 'micr0'"),
    ('tags = ["micro"]', 'tags = "micro"', 2, "tags", "must be an array, not a string"),
    ('tags = ["micro"]', 'default-device = "npu"', 2, "default-device", "not a device with a stack"),
    ('tags = ["micro"]', 'colour = "red"', 2, "colour", "unknown key 'colour'"),
    ('size = "512KiB"\n', "", 3, "memory.dtcm", "the key 'size' is missing"),
    ('size = "512KiB"', 'size = "0B"', 6, "memory.dtcm.size", "zero"),
    ('size = "512KiB"', "size = -4", 6, "memory.dtcm.size", "negative"),
    ('size = "512KiB"', 'size = "512kB"', 6, "memory.dtcm.size", "is not a size"),
    ('size = "512KiB"', 'size = "512KiB"\nsise = 1', 7, "memory.dtcm.sise", "unknown key 'sise'"),
    ('size = "512KiB"', 'size = "unlimited"', 6, "memory.dtcm.size", "has a base, so it needs a size"),
    ("base = 0x20000000", 'base = "here"', 4, "memory.dtcm.base", "must hold addresses"),
    ("base = 0x20000000", "base = -1", 4, "memory.dtcm.base", "is not an address"),
    ("base = 0x20000000\n", "", 4, "memory.dtcm.aliases", "has aliases, so it needs a base"),
    ("base = 0x20000000", "base = 0xFFFFFFFFFFFF0000", 6, "memory.dtcm.size", "behind the last 64-bit address"),
    ("aliases = [0x30000000]", "aliases = [0x20040000]", 5, "memory.dtcm.aliases", "'dtcm' with itself, by 262144 B"),
    ("base = 0x21000000", "base = 0x2007FFF0", 9, "memory.isram.base", "'dtcm' and 'isram', by 16 B"),
    ("base = 0x21000000", "base = 0x30000010", 9, "memory.isram.base", "'dtcm' and 'isram', by 524272 B"),
    ('".dtcm"', '".dt\\"cm"', 7, "memory.dtcm.section", "is not a linker section"),
    ("read-cost = 2", "read-cost = 0", 11, "memory.isram.read-cost", "smallest allowed is 1"),
    ("read-cost = 2", "read-cost = 1000001", 11, "memory.isram.read-cost", "largest allowed is 1000000"),
    ("read-cost = 2", "read-cost = 1.5", 11, "memory.isram.read-cost", "must be an integer, not a float"),
    ('access = "r"', 'access = "w"', 15, "memory.flash.access", "'access' cannot be 'w'"),
    ("[memory.far]", '[memory."far away"]', 16, "memory.far away", "is not a name"),
    ("[memory.far]\nsize = ", "[memory]\nfar = ", 17, "memory.far", "must be a table, not a string"),
    ('isa = "cortex-m55"\n', "", 18, "device.cpu", "the key 'isa' is missing"),
    ('reach = ["dtcm", "isram", "flash"]', "reach = []", 20, "device.cpu.reach", "reaches no memory"),
    ('["dtcm", "isram", "flash"]', '["dtcm", "isram", "flsh"]', 20, "device.cpu.reach", "'flsh', which does not exist"),
    ('["dtcm", "isram", "flash"]', '["dtcm", "dtcm", "isram", "flash"]', 20, "device.cpu.reach", "stands twice"),
    ('["dtcm", "isram", "flash"]', '["dtcm", "isram", "flash", 7]', 20, "device.cpu.reach", "not an integer"),
    ('isa = "ethos-u55"', 'isa = "ethos-u55-128"\nstack = "isram"', 26, "device.npu.stack", "so it runs no C"),
    ('isa = "ethos-u55"', 'isa = "dma"\nstack = "isram"', 26, "device.npu.stack", "an engine that only copies (dma)"),
    ('stack = "dtcm"', 'stack = "dtcn"', 21, "device.cpu.stack", "'dtcn', which does not exist"),
    ('stack = "dtcm"', 'stack = "flash"', 21, "device.cpu.stack", "read-only"),
    ('stack = "dtcm"', 'stack = "far"', 21, "device.cpu.stack", "which 'cpu' does not reach"),
    ('max-stack-size = "8KiB"', "max-stack-size = 0", 22, "device.cpu.max-stack-size", "zero"),
    ('max-stack-size = "8KiB"', "max-stack-size = 1024", 23, "device.cpu.stack-reserve", "leaves nothing"),
    ('isa = "ethos-u55"', 'isa = "ethos-u55"\nstack-reserve = 1', 26, "device.npu.stack-reserve", "but no stack"),
    ('isa = "ethos-u55"', 'isa = "ethos-u55"\nranks = ["global"]', 26, "device.npu.ranks", "rank 'local' is missing"),
    ('isa = "ethos-u55"', 'isa = "ethos-u55"\nranks = ["global", "local", "globl"]', 26,
     "device.npu.ranks", "unknown rank 'globl'"),
    ('isa = "ethos-u55"', 'isa = "ethos-u55"\nuse-backend-alloc-workspace = 1', 26,
     "device.npu.use-backend-alloc-workspace", "must be true or false, not an integer"),
    ("[device.npu]", "[device.CPU]", 24, "device.CPU", "devices 'cpu' and 'CPU' become the same name in C: CPU"),
    ('name = "dtcm"', 'name = "stack"', 28, "workspace[0].name", "another storage scope"),
    ('name = "dtcm"', 'name = "workspace"', 28, "workspace[0].name", "another storage scope"),
    ('name = "dtcm"', 'name = "int"', 28, "workspace[0].name", "reserved"),
    ('name = "dtcm"', 'name = "1st"', 28, "workspace[0].name", "is not a name"),
    ('name = "dtcm"', "", 27, "workspace[0]", "the key 'name' is missing"),
    ('name = "isram"', 'name = "dtcm"', 32, "workspace[1].name", "two pools called 'dtcm'"),
    ('name = "flash"', 'name = "Isram"', 35, "parameters[0].name", "become the same name in C: ISRAM"),
    ('memory = "dtcm"', 'memory = "dtmc"', 29, "workspace[0].memory", "'dtmc', which does not exist"),
    ('memory = "dtcm"', 'memory = "flash"', 29, "workspace[0].memory", "which is read-only"),
    ('memory = "dtcm"', 'memory = "far"', 29, "workspace[0].memory", "no device reaches memory 'far'"),
    ('size = "64KiB"', "size = 0", 30, "workspace[0].size", "zero"),
    ('size = "64KiB"', "size = -64", 30, "workspace[0].size", "negative"),
    ('size = "64KiB"', "size = 64\nalignment = 24", 31, "workspace[0].alignment", "power of two, not 24"),
    ('size = "64KiB"', "size = 64\nalignment = 0", 31, "workspace[0].alignment", "smallest allowed is 1"),
    ('size = "64KiB"', 'size = 64\nprovider = "me"', 31, "workspace[0].provider", "cannot be 'me'"),
    ('size = "64KiB"', "size = 64\ndevices = []", 31, "workspace[0].devices", "is for no device"),
    ('size = "64KiB"', 'size = 64\ndevices = ["gpu"]', 31, "workspace[0].devices", "'gpu', which does not exist"),
    ('size = "64KiB"', 'size = 64\ndevices = ["npu"]', 31, "workspace[0].devices", "does not reach memory 'dtcm'"),
    ('size = "64KiB"', 'size = 64\ndevices = ["cpu", "cpu"]', 31, "workspace[0].devices", "stands twice"),
    ('size = "64KiB"', "size = 64\nremainder = true", 30, "workspace[0].size", "says both"),
    ('size = "64KiB"', "remainder = false", 30, "workspace[0].remainder", "takes the remainder"),
    ('size = "64KiB"', 'size = "504KiB"\n[[io]]\nname = "s"\nmemory = "dtcm"', 33, "io[0].memory", "is nothing"),
    ('size = "64KiB"', 'size = "505KiB"', 6, "memory.dtcm.size", "take 525312 B: 1024 B too many"),
    ('memory = "flash"', 'memory = "isram"', 36, "parameters[0].memory", "only one pool can take what memory 'isram'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "key", "message"), SINGLE_MISTAKES)
def test_a_mistake_is_reported_alone_with_file_line_and_key(
    old: str, new: str, line: int | None, key: str, message: str
) -> None:
    text = BOARD.replace(old, new, 1)
    assert text != BOARD
    (diagnostic,) = errors_of(text)
    assert message in diagnostic.message
    place = "board.toml" if line is None else f"board.toml:{line}"
    assert diagnostic.where == (f"{place}, key {key}" if key else place)


# (what the NPU's reach becomes, line, key, part of the message)
DEVICE_MISTAKES = [
    ('["isram"]\ncache-line = 24', 27, "cache-line", "must be a power of two, not 24"),
    ('["isram"]\ncache-line = "8KiB"', 27, "cache-line", "largest allowed is 4096"),
    ('["isram"]\ntouch-alignment = 3', 27, "touch-alignment", "must be a power of two"),
    ('["isram"]\ntouch-alignment = 131072', 27, "touch-alignment", "largest allowed is 65536"),
    ('["isram"]\noperators = ["conv2d"]', 27, "operators", "has no stack, so it runs no C"),
    (
        '["isram"]\nstack = "isram"\noperators = ["CONV 2D"]',
        28,
        "operators",
        "is not the name of an operator",
    ),
    ('[{ memory = "isram", coherent = false }]', 26, "reach", "has no 'cache-line'"),
    ('[{ memory = "isram", coherent = 0 }]', 26, "reach.coherent", "must be true or false"),
]


@pytest.mark.parametrize(("reach", "line", "key", "message"), DEVICE_MISTAKES)
def test_a_mistake_of_a_device_among_others(reach: str, line: int, key: str, message: str) -> None:
    (diagnostic,) = errors_of(changed('reach = ["isram"]', f"reach = {reach}"))
    assert message in diagnostic.message
    assert diagnostic.where == f"board.toml:{line}, key device.npu.{key}"


# (added text, key, part of the message)
ADDED_MISTAKES = [
    (
        '[[state]]\nname = "s"\nmemory = "flash"\nsize = 16\n',
        "state[0].memory",
        "state pool 's' is in memory 'flash'",
    ),
    (
        '[[io]]\nname = "s"\nmemory = "flash"\nsize = 16\n',
        "io[0].memory",
        "io pool 's' is in memory 'flash'",
    ),
    ('[[io]]\nname = "s"\nmemory = "flash"\nsize = 16\n', "io[0].memory", "io pool 's' is in memory 'flash'"),
    ("[scope-tag.isram]\n", "workspace[1].name", "is a pool and a scope tag"),
    ("[scope-tag.stack]\n", "scope-tag.stack", "another storage scope"),
    ('[scope-tag.tex]\nlowered-by = "a b"\n', "scope-tag.tex.lowered-by", "is not the name of a pass"),
    ("[stack.external]\nexpf = -1\n", "stack.external.expf", "negative"),
    ('[stack.external]\n"a b" = 1\n', "stack.external.a b", "is not the name of a C function"),
    ("[stack]\nsize = 1\n", "stack.size", "unknown key 'size'"),
    ('[device.npu.context.a]\nmax-stack-size = "1KiB"\n', "device.npu.context.a", "has no stack"),
    ('[device.cpu.context.a]\nstack = "far"\n', "device.cpu.context.a.stack", "which 'cpu' does not reach"),
    ("[device.cpu.context.a]\nsize = 1\n", "device.cpu.context.a.size", "unknown key 'size'"),
    (
        '[[io]]\nname = "s"\nmemory = "dtcm"\nsize = 1\nload = "copy"\n',
        "io[0].load",
        "unknown key 'load'",
    ),
    (FAST + 'load = "later"\n', "parameters[1].load", "'load' cannot be 'later'"),
    (FAST + 'section = "a b"\n', "parameters[1].section", "is not a linker section"),
    (
        '[memory.second]\nsize = 64\nsection = ".dtcm"\n',
        "memory.second.section",
        "section '.dtcm' is that of memory 'dtcm' and of memory 'second': a linker puts it into one memory",
    ),
    (
        '[[parameters]]\nname = "f"\nmemory = "flash"\nsize = 1\nsection = ".dtcm"\n',
        "parameters[1].section",
        "section '.dtcm' is that of memory 'dtcm' and of pool 'f' in memory 'flash'",
    ),
    (
        FAST + 'section = ".own"\n[[parameters]]\nname = "f"\nmemory = "flash"\nsize = 1\nsection = ".own"\n',
        "parameters[2].section",
        "section '.own' is that of pool 'fast' in memory 'dtcm' and of pool 'f' in memory 'flash'",
    ),
    (
        '[[parameters]]\nname = "f"\nmemory = "flash"\nsize = 1\nload = "copy"\n',
        "parameters[1].load",
        "nothing can be loaded into pool 'f': its memory 'flash' is read-only",
    ),
    (FAST + 'load = "copy"\n', "parameters[1].load", "need a second memory: the key 'from' is missing"),
    (FAST + 'from = "flsh"\n', "parameters[1].from", "from memory 'flsh', which does not exist"),
    (FAST + 'from = "isram"\n', "parameters[1].from", "from memory 'isram', which is not read-only"),
    (FAST + 'from = "dtcm"\n', "parameters[1].from", "from memory 'dtcm', which is not read-only"),
    (
        '[[parameters]]\nname = "f"\nmemory = "flash"\nsize = 1\nfrom = "flash"\n',
        "parameters[1].from",
        "nothing can be loaded into pool 'f': its memory 'flash' is read-only",
    ),
    (
        '[[parameters]]\nname = "f"\nmemory = "flash"\nsize = 1\nload = "copy"\nprovider = "caller"\n',
        "parameters[1].load",
        "nothing can be loaded into pool 'f': its memory 'flash' is read-only",
    ),
    (
        '[memory.npus]\nsize = "unlimited"\n[device.other]\nisa = "npu"\nreach = ["npus", "flash"]\n'
        '[[parameters]]\nname = "f"\nmemory = "npus"\nsize = 1\nfrom = "flash"\nload = "copy"\n',
        "parameters[1].memory",
        "device 'cpu', which copies pool 'f', does not reach memory 'npus'",
    ),
    (
        '[memory.npus]\nsize = "1MiB"\naccess = "r"\n' + FAST + 'from = "npus"\nload = "copy"\n',
        "parameters[1].from",
        "device 'cpu', which copies pool 'fast', does not reach memory 'npus'",
    ),
    (
        '[memory.many]\nsize = "unlimited"\n[device.other]\nisa = "npu"\nreach = ["many"]\n'
        '[[parameters]]\nname = "f"\nmemory = "many"\nfrom = "flash"\n',
        "parameters[1].size",
        "pool 'f' has no limit, but memory 'flash', from which it is loaded, has 8MiB",
    ),
    (
        '[memory.rom]\nsize = "1KiB"\naccess = "r"\n' + FAST + 'from = "flash"\n'
        '[[parameters]]\nname = "f"\nmemory = "dtcm"\nsize = 1\nfrom = "rom"\n',
        "parameters[2].from",
        "pools 'fast' and 'f' are both in section '.dtcm', so they cannot be loaded from 'flash' and 'rom'",
    ),
]


@pytest.mark.parametrize(("added", "key", "message"), ADDED_MISTAKES)
def test_a_mistake_in_an_added_table(added: str, key: str, message: str) -> None:
    (diagnostic,) = errors_of(BOARD + added)
    assert message in diagnostic.message
    assert (diagnostic.where or "").endswith(f", key {key}")


@pytest.mark.parametrize(
    "keys", ['load = "copy"\n', 'from = "isram"\n', 'load = "copy"\nfrom = "isram"\n', 'from = "rom"\n']
)
def test_the_help_for_a_missing_or_wrong_source_works(keys: str) -> None:
    (diagnostic,) = errors_of(BOARD + FAST + keys)
    assert diagnostic.help == 'in the target file: [[parameters]] fast from = "flash"'
    mended = with_target_lines(BOARD + FAST + keys, f"help: {diagnostic.help}")
    assert load_text(mended, "x").pool("fast").load_memory == "flash"


@pytest.mark.parametrize("keys", ['load = "copy"\n', 'from = "isram"\n', 'load = "copy"\nfrom = "isram"\n'])
def test_the_help_where_no_memory_can_keep_the_bytes(keys: str) -> None:
    """Without the keys that it names, the target loads."""
    text = changed('access = "r"\n', "") + FAST
    (diagnostic,) = errors_of(text + keys)
    assert diagnostic.help in (
        "drop `from`",
        "drop `load` and `from`: the linker brings the bytes then",
    )
    dropped = [name for name in ("load", "from") if f"`{name}`" in diagnostic.help]
    kept = [line for line in keys.splitlines() if line.partition(" ")[0] not in dropped]
    assert load_text(text + "\n".join(kept), "x").pool("fast").load_memory is None


def test_bytes_that_are_loaded_take_room_where_they_come_from() -> None:
    target = load_text(BOARD + FAST + 'from = "flash"\n', "board.toml")
    fast = target.pool("fast")
    assert (fast.load, fast.load_memory, fast.is_copied) == (Loader.LINKER, "flash", False)
    assert target.pools_loaded_from("flash") == (fast,)
    assert target.pool("flash").size_bytes == (8 << 20) - (16 << 10)
    copied = load_text(BOARD + FAST.replace('size = "16KiB"\n', "") + 'load = "copy"\nfrom = "flash"\n', "x")
    left_bytes = (512 - 64 - 8) << 10
    assert (copied.pool("fast").is_copied, copied.pool("fast").size_bytes) == (True, left_bytes)
    assert copied.pool("flash").size_bytes == (8 << 20) - left_bytes


def test_a_memory_too_small_for_what_it_has_to_keep() -> None:
    text = BOARD.replace('"8MiB"', '"8KiB"')
    (diagnostic,) = errors_of(text + FAST + 'from = "flash"\n')
    assert diagnostic.message == (
        "memory 'flash' has 8192 B, but its pools and stacks take 16384 B: 8192 B too many"
    )
    assert diagnostic.notes == ("the bytes that parameters pool 'fast' is loaded from: 16384 B",)
    exact = FAST.replace("16KiB", "8KiB")
    (diagnostic,) = errors_of(text + exact + 'from = "flash"\n')
    assert diagnostic.message == "pool 'flash' takes what memory 'flash' has left, which is nothing"


def test_a_caller_may_bring_the_bytes_from_anywhere() -> None:
    target = load_text(BOARD + FAST + 'load = "copy"\nprovider = "caller"\n', "board.toml")
    assert target.pool("fast").is_copied
    assert target.pool("flash").size_bytes == 8 << 20


def test_a_pool_may_have_a_section_of_its_own() -> None:
    rom = '[memory.rom]\nsize = "1KiB"\naccess = "r"\n'
    second = '[[parameters]]\nname = "f"\nmemory = "dtcm"\nsize = 1\nfrom = "rom"\nsection = ".f"\n'
    target = load_text(BOARD + rom + FAST + 'from = "flash"\n' + second, "board.toml")
    assert [target.section_of(pool) for pool in target.parameter_pools] == [None, ".dtcm", ".f"]


def test_overlap_in_the_view_of_one_device() -> None:
    reach = 'reach = ["isram", { memory = "far", base = 0x213FFFFF }]'
    (diagnostic,) = errors_of(changed('reach = ["isram"]', reach))
    assert diagnostic.where == "board.toml:26, key device.npu.reach"
    assert (
        diagnostic.message == "address ranges overlap: 'isram' and 'far', by 1 B, as device 'npu' sees them"
    )
    assert diagnostic.notes == ("isram 0x21000000..0x213fffff", "far 0x213fffff..0x214ffffe")


def test_what_is_too_much_is_listed_with_its_bytes() -> None:
    (diagnostic,) = errors_of(changed('size = "64KiB"', 'size = "505KiB"'))
    assert diagnostic.notes == ("stack of 'cpu': 8192 B", "workspace pool 'dtcm': 517120 B")


def test_a_mistyped_name_gets_what_exists_and_what_was_meant() -> None:
    (diagnostic,) = errors_of(changed('memory = "dtcm"', 'memory = "dtmc"'))
    assert diagnostic.notes == ("memories: dtcm, isram, flash, far",)
    assert diagnostic.help == "did you mean 'dtcm'?"
    (diagnostic,) = errors_of(changed('size = "512KiB"', 'size = "512KiB"\nsecton = ".x"'))
    assert diagnostic.help == "did you mean 'section'?"
    assert "read-cost" in diagnostic.notes[0]


def test_no_device_with_a_stack() -> None:
    text = changed('stack = "dtcm"\nmax-stack-size = "8KiB"\nstack-reserve = "1KiB"\n', "")
    (diagnostic,) = errors_of(text)
    assert "no device has a stack" in diagnostic.message


def test_an_empty_file_misses_everything() -> None:
    messages = [diagnostic.message for diagnostic in errors_of("")]
    assert messages == [
        "the key 'name' is missing",
        "the key 'memory' is missing",
        "the key 'device' is missing",
        "no device has a stack, so none can run the entry function",
    ]


def test_all_mistakes_are_reported_together_in_the_order_of_lines() -> None:
    text = BOARD
    for old, new in [
        ('memory = "isram"\n', 'memory = "isrm"\n'),
        ('stack = "dtcm"', 'stack = "flash"'),
        ("base = 0x21000000", "base = 0x20000000"),
        ('tags = ["micro"]', "tags = []\nspeed = 3"),
    ]:
        text = text.replace(old, new)
    keys = [(diagnostic.where or "").split("key ")[1] for diagnostic in errors_of(text)]
    assert keys == ["speed", "memory.isram.base", "device.cpu.stack", "workspace[1].memory"]


def test_a_broken_memory_makes_no_correct_line_look_wrong() -> None:
    text = changed('size = "512KiB"', 'size = "512KB"')
    assert len(errors_of(text)) == 1


def test_json_of_the_same_structure_is_accepted_and_its_errors_have_lines() -> None:
    description = {
        "name": "j",
        "memory": {"ram": {"base": "0x20000000", "size": "64KiB"}},
        "device": {"cpu": {"isa": "cortex-m4", "reach": ["ram"], "stack": "ram"}},
        "workspace": [{"name": "ram", "memory": "ram"}],
    }
    target = load_text(json.dumps(description), "j.json")
    assert target.memory("ram").base == 0x20000000
    assert target.pool("ram").size_bytes == 65536
    (diagnostic,) = errors_of(json.dumps(description, indent=1).replace("64KiB", "64kB"))
    assert diagnostic.where == "board.toml:6, key memory.ram.size"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    for path, reason in [
        (tmp_path / "none.toml", "No such file"),
        (tmp_path, "directory"),
        (tmp_path / "latin.toml", "not UTF-8"),
    ]:
        with pytest.raises(CompileError) as caught:
            load_file(path)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "BW201"
        assert reason in diagnostic.message


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "board.toml").write_text(BOARD, encoding="utf-8-sig")
    assert load_file(tmp_path / "board.toml") == load_text(BOARD, "x")
