from dataclasses import replace

import pytest

from bytewright.base.option import OptionSyntaxError
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.target import (
    UNLIMITED,
    Loader,
    Overrides,
    PoolOption,
    Provider,
    ProviderOption,
    ResizeOption,
    Role,
    Target,
    apply_overrides,
    dump,
    load_description,
    load_target,
    load_text,
)
from bytewright.target.options import (
    parse_max_stack_alloca_size,
    parse_max_stack_size,
    parse_pool_option,
    parse_provider_option,
    parse_resize_option,
)

BOARD = load_target("mps3-an547")
TUNED = load_text(
    """
name = "tuned"
[memory.tcm]
size = "128KiB"
[memory.ram]
size = "1MiB"
[device.cpu]
isa = "cortex-m7"
reach = ["tcm", "ram"]
stack = "tcm"
max-stack-size = "4KiB"
stack-reserve = 512
[device.npu]
isa = "npu"
reach = ["ram"]
[[workspace]]
name = "fast"
memory = "tcm"
size = "16KiB"
alignment = 64
provider = "generated"
[[workspace]]
name = "shared"
memory = "ram"
devices = ["npu"]
[[parameters]]
name = "weights"
memory = "tcm"
""",
    "tuned.toml",
)


def options(
    workspace: str = "", parameters: str = "", resize: str = "", provider: str = "", stack: int | None = None
) -> Overrides:
    return Overrides(
        workspace=tuple(map(parse_pool_option, workspace.split())),
        parameters=tuple(map(parse_pool_option, parameters.split())),
        resize=tuple(map(parse_resize_option, resize.split())),
        provider=tuple(map(parse_provider_option, provider.split())),
        max_stack_size=stack,
    )


def sizes(target: Target) -> dict[str, int | None]:
    return {pool.name: pool.size_bytes for pool in target.pools}


def errors_of(target: Target, overrides: Overrides) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        apply_overrides(target, overrides)
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"BW204"}
    return caught.value.diagnostics


def test_parsing() -> None:
    assert parse_pool_option("dtcm") == PoolOption("dtcm")
    assert parse_pool_option("dtcm=32KiB") == PoolOption("dtcm", 32768)
    assert parse_pool_option("a-1=5@isram") == PoolOption("a-1", 5, "isram")
    assert parse_pool_option("a@isram") == PoolOption("a", None, "isram")
    assert parse_resize_option("dtcm=70912") == ResizeOption("dtcm", 70912)
    assert parse_provider_option("dtcm=generated") == ProviderOption("dtcm", Provider.GENERATED)
    assert parse_max_stack_size("4KiB") == 4096
    assert parse_max_stack_size("unlimited") is UNLIMITED
    assert parse_max_stack_alloca_size("0") == 0
    assert parse_max_stack_alloca_size("unlimited") is UNLIMITED


def test_pool_options_print_as_they_are_written() -> None:
    for text in ("dtcm", "dtcm=32KiB", "a=5B@isram", "a@isram"):
        assert str(parse_pool_option(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=5",
        "a=",
        "a@",
        "a=5@",
        "@m",
        "a=5=6",
        "a@m@n",
        "a@m=5",
        "1a=5",
        "a b",
        "a=-5",
        "a=0",
        "a=5kB",
        "a=x",
    ],
)
def test_malformed_pool_options(text: str) -> None:
    with pytest.raises(OptionSyntaxError):
        parse_pool_option(text)


@pytest.mark.parametrize("text", ["", "a", "a=", "=5", "a=0", "a=-1", "a=5=5", "a b=5"])
def test_malformed_resize_options(text: str) -> None:
    with pytest.raises(OptionSyntaxError):
        parse_resize_option(text)


@pytest.mark.parametrize("text", ["", "a", "a=", "a=me", "=caller", "a=Caller"])
def test_malformed_provider_options(text: str) -> None:
    with pytest.raises(OptionSyntaxError):
        parse_provider_option(text)


def test_malformed_stack_options() -> None:
    for text in ("", "0", "-1", "much", "4kB"):
        with pytest.raises(OptionSyntaxError):
            parse_max_stack_size(text)
    for text in ("", "-1", "much", "Unlimited"):
        with pytest.raises(OptionSyntaxError):
            parse_max_stack_alloca_size(text)


def test_no_options_change_nothing() -> None:
    assert apply_overrides(BOARD, Overrides()) == BOARD


def test_workspace_pools_are_replaced_in_order() -> None:
    changed = apply_overrides(BOARD, options("isram=64KiB dtcm=32KiB"))
    assert [(pool.name, pool.size_bytes) for pool in changed.workspace_pools] == [
        ("isram", 65536),
        ("dtcm", 32768),
    ]
    assert changed.parameter_pools == BOARD.parameter_pools


def test_without_a_size_a_pool_takes_what_is_left() -> None:
    changed = apply_overrides(BOARD, options("dtcm extra=4KiB@dtcm"))
    assert sizes(changed) == {"dtcm": (512 - 8 - 4) * 1024, "extra": 4096, "flash": 8 << 20}


def test_a_pool_goes_to_the_memory_of_its_name_or_of_the_pool_it_replaces() -> None:
    changed = apply_overrides(TUNED, options("ram=1KiB fast=2KiB"))
    assert [(pool.name, pool.memory) for pool in changed.workspace_pools] == [("ram", "ram"), ("fast", "tcm")]


def test_a_replaced_pool_keeps_alignment_provider_and_devices_in_the_same_memory() -> None:
    fast, shared = apply_overrides(TUNED, options("fast=2KiB shared=1KiB")).workspace_pools
    assert (fast.alignment, fast.provider, shared.devices) == (64, Provider.GENERATED, ("npu",))
    moved, weights = apply_overrides(TUNED, options("fast=2KiB@ram", "constants@tcm")).pools
    assert (moved.alignment, moved.provider, moved.devices) == (16, Provider.CALLER, ("cpu", "npu"))
    assert (weights.role, weights.provider) == (Role.PARAMETERS, Provider.GENERATED)


def test_resize_changes_one_pool_and_the_remainder_follows() -> None:
    assert sizes(TUNED)["weights"] == (128 - 16 - 4) * 1024
    changed = apply_overrides(TUNED, options(resize="fast=20KiB shared=3000"))
    assert sizes(changed) == {"fast": 20480, "shared": 3000, "weights": (128 - 20 - 4) * 1024}
    assert not changed.pool("shared").takes_remainder


def test_resize_applies_to_the_pools_that_options_made() -> None:
    assert sizes(apply_overrides(TUNED, options("ram=1KiB", resize="ram=2KiB")))["ram"] == 2048


def test_provider_changes_one_pool() -> None:
    changed = apply_overrides(BOARD, options(provider="dtcm=generated flash=caller"))
    assert [pool.provider for pool in changed.pools] == [Provider.GENERATED, Provider.CALLER, Provider.CALLER]
    assert sizes(changed) == sizes(BOARD)


def test_stack_limits_apply_to_devices_that_run_c() -> None:
    overrides = Overrides(
        max_stack_size=2048, max_stack_alloca_size=UNLIMITED, use_backend_alloc_workspace=True
    )
    changed = apply_overrides(TUNED, overrides)
    cpu = changed.device("cpu")
    assert (cpu.contexts[0].max_stack_size_bytes, cpu.contexts[0].available_stack_bytes) == (2048, 1536)
    assert cpu.max_stack_alloca_size_bytes is UNLIMITED
    assert cpu.use_backend_alloc_workspace
    assert changed.device("npu") == TUNED.device("npu")
    assert sizes(changed)["weights"] == (128 - 16 - 2) * 1024
    unlimited = apply_overrides(TUNED, Overrides(max_stack_size=UNLIMITED)).device("cpu")
    assert unlimited.contexts[0].max_stack_size_bytes is None


def test_a_changed_target_still_survives_a_dump() -> None:
    changed = apply_overrides(TUNED, options("ram=1KiB fast", resize="weights=1KiB"))
    assert load_description(dump(changed)) == changed


def test_an_unknown_memory_lists_the_memories() -> None:
    (diagnostic,) = errors_of(BOARD, options("dctm=32KiB"))
    assert diagnostic.message == "there is no memory 'dctm' for pool 'dctm'"
    assert diagnostic.notes == ("memories: itcm, sram, dtcm, isram, flash, ddr",)
    assert diagnostic.help == "--workspace dtcm=32KiB"
    assert diagnostic.where == "--workspace dctm=32KiB"
    (diagnostic,) = errors_of(BOARD, options(parameters="w=1KiB@nowhere"))
    assert diagnostic.where == "--parameters w=1KiB@nowhere"
    assert diagnostic.help == "--parameters w=1KiB@flash"
    (diagnostic,) = errors_of(BOARD, options("dtcm w=1KiB@isramm"))
    assert diagnostic.help == "--workspace dtcm --workspace w=1KiB@isram"


def test_an_unknown_pool_lists_the_pools() -> None:
    resize, provider = errors_of(BOARD, options(resize="itcm=1KiB", provider="flsh=caller"))
    assert resize.message == "there is no pool 'itcm'"
    assert resize.notes == provider.notes == ("pools: dtcm, isram, flash",)
    assert resize.where == "--resize itcm=1KiB"
    assert provider.help == "--provider flash=caller"
    assert resize.help == "--resize dtcm=1KiB"
    (of_states,) = errors_of(BOARD, options(resize="kept=1KiB"))
    assert '[[state]] name = "kept", with a memory and a size' in (of_states.help or "")


def test_an_option_given_twice_for_a_pool() -> None:
    first, second = errors_of(BOARD, options(resize="dtcm=1 dtcm=2", provider="dtcm=caller dtcm=caller"))
    assert first.message == "--resize is given twice for pool 'dtcm'"
    assert second.message == "--provider is given twice for pool 'dtcm'"
    (third,) = errors_of(BOARD, options("dtcm=1KiB dtcm=2KiB"))
    assert third.message == "there are two pools called 'dtcm'; pool names are unique in a target"


@pytest.mark.parametrize(
    ("overrides", "message", "where"),
    [
        (options("w=1KiB@flash"), "which is read-only", "--workspace w=1KiB@flash"),
        (options("dtcm=512KiB"), "8192 B too many", "--workspace dtcm=512KiB"),
        (options(resize="dtcm=512KiB"), "8192 B too many", "--resize dtcm=512KiB"),
        (options(stack=512 << 10), "65536 B too many", "--max-stack-size 512KiB"),
        (
            options("dtcm=505KiB", stack=8 << 10),
            "1024 B too many",
            "--workspace dtcm=505KiB --max-stack-size 8KiB",
        ),
        (options(stack=1024), "leaves nothing", "--max-stack-size 1KiB"),
        (options("a@isram b@isram"), "only one pool can take", "--workspace b@isram"),
        (options("stack=1KiB@dtcm"), "another storage scope", "--workspace stack=1KiB@dtcm"),
        (
            options("flash=1KiB@dtcm"),
            "two pools called 'flash'",
            "target 'mps3-an547' with the options given",
        ),
    ],
)
def test_the_checks_of_a_file_run_again(overrides: Overrides, message: str, where: str) -> None:
    (diagnostic,) = errors_of(BOARD, overrides)
    assert message in diagnostic.message
    assert (diagnostic.where or "").startswith(where)


FAST = {"name": "fast", "memory": "dtcm", "size": "16KiB", "load": "copy", "from": "flash"}


def test_parameters_in_memory_that_can_be_written() -> None:
    """The linker's by default; one that takes the place of a copied pool in the same memory is copied too."""
    plain = apply_overrides(BOARD, options(parameters="fast=16KiB@dtcm flash")).pool("fast")
    assert (plain.load, plain.load_memory) == (Loader.LINKER, None)
    copied = load_description(dump(BOARD) | {"parameters": [FAST, {"name": "flash", "memory": "flash"}]})
    changed = apply_overrides(copied, options(parameters="fast=8KiB@dtcm flash"))
    assert (changed.pool("fast").load, changed.pool("fast").load_memory) == (Loader.COPY, "flash")
    assert sizes(changed)["flash"] == (8 << 20) - (8 << 10)
    moved = apply_overrides(copied, options(parameters="fast=8KiB@sram flash"))
    assert (moved.pool("fast").memory, moved.pool("fast").load) == ("sram", Loader.COPY)
    assert (moved.pool("fast").load_memory, sizes(moved)["flash"]) == ("flash", (8 << 20) - (8 << 10))
    in_place = apply_overrides(copied, options(parameters="fast=8KiB@flash"))
    assert (in_place.pool("fast").load, in_place.pool("fast").load_memory) == (Loader.LINKER, None)


@pytest.mark.parametrize("load", ["linker", "copy"])
@pytest.mark.parametrize("provider", ["generated", "caller"])
def test_a_loaded_pool_that_moves_is_loaded_in_the_same_way(load: str, provider: str) -> None:
    """Its section stays behind, which is that of the other memory, and so do the devices that reach that."""
    fast = FAST | {"load": load, "provider": provider, "section": ".own", "alignment": 32, "devices": ["cpu"]}
    target = load_description(dump(BOARD) | {"parameters": [fast, {"name": "flash", "memory": "flash"}]})
    before = target.pool("fast")
    moved = apply_overrides(target, options(parameters="fast=16KiB@isram flash")).pool("fast")
    assert moved == replace(before, memory="isram", section=None)


def test_a_copied_pool_needs_to_know_where_its_bytes_are() -> None:
    fast = {key: value for key, value in FAST.items() if key != "from"} | {"provider": "caller"}
    target = load_description(dump(BOARD) | {"parameters": [fast]})
    (diagnostic,) = errors_of(target, options(provider="fast=generated"))
    assert "the key 'from' is missing" in diagnostic.message
    assert diagnostic.where == "--provider fast=generated"


def test_what_is_kept_for_other_pools_counts() -> None:
    target = load_description(dump(BOARD) | {"parameters": [FAST, {"name": "flash", "memory": "flash"}]})
    (diagnostic,) = errors_of(target, options(resize="flash=8MiB"))
    assert "16384 B too many" in diagnostic.message
    assert diagnostic.where == "--resize flash=8MiB"
    (diagnostic,) = errors_of(target, options(parameters="fast=32KiB@dtcm flash=8MiB"))
    assert "32768 B too many" in diagnostic.message
    assert diagnostic.where == "--parameters fast=32KiB@dtcm --parameters flash=8MiB"


def test_a_pool_out_of_reach() -> None:
    text = dump(TUNED)
    memory = text["memory"]
    assert isinstance(memory, dict)
    memory["far"] = {"size": "1KiB"}
    (diagnostic,) = errors_of(load_description(text), options("far"))
    assert diagnostic.message == "no device reaches memory 'far', so none can use pool 'far'"
    assert diagnostic.notes == ("'cpu' reaches: tcm, ram", "'npu' reaches: ram")
