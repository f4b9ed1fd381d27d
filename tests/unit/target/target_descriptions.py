"""Random valid target descriptions."""

from hypothesis import strategies as st

_NAMES = ["dtcm", "isram", "s-1", "s_2", "far", "Mixed"]
_COSTS = st.integers(1, 9)
_SMALL = st.one_of(st.integers(1, 5000), st.sampled_from(["1KiB", "3 KiB", "77B"]))
_SMALL_OR_ZERO = st.one_of(st.just(0), _SMALL)


@st.composite
def _memory(draw: st.DrawFn, slot: int) -> dict[str, object]:
    memory: dict[str, object] = {
        "size": draw(st.sampled_from([1 << 20, "2MiB", (1 << 20) + 13, "unlimited"]))
    }
    if memory["size"] != "unlimited" and draw(st.booleans()):
        memory["base"] = (slot << 28) + draw(st.sampled_from([0, 4096]))
        if draw(st.booleans()):
            memory["aliases"] = [(slot << 28) + 0x800_0000]
    if draw(st.booleans()):
        memory["section"] = f".section{slot}"
    memory["read-cost"] = draw(_COSTS)
    memory["write-cost"] = draw(_COSTS)
    return memory


@st.composite
def _device(draw: st.DrawFn, memories: list[str], writable: str) -> dict[str, object]:
    device: dict[str, object] = {"isa": draw(st.sampled_from(["host", "cortex-m55"]))}
    others = draw(st.permutations([name for name in memories if name != writable]))
    device["reach"] = [writable, *others[: draw(st.integers(0, len(others)))]]
    device["stack"] = writable
    device.update(
        draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "operators": st.sampled_from([[], ["all"], ["conv2d", "add"]]),
                    "cost-per-mac": _COSTS,
                    "cache-line": st.sampled_from([0, 1, 32, 4096]),
                    "touch-alignment": st.sampled_from([1, 16, 65536]),
                },
            )
        )
    )
    if device.get("cache-line"):
        device["reach"] = [{"memory": writable, "port": "axi0", "coherent": False}, *others[:1]]
    if draw(st.booleans()):
        device["max-stack-size"] = draw(st.integers(5001, 9000))
    device["stack-reserve"] = draw(_SMALL_OR_ZERO)
    device["max-stack-alloca-size"] = draw(st.one_of(_SMALL_OR_ZERO, st.just("unlimited")))
    device["max-local-size"] = draw(_SMALL_OR_ZERO)
    device["use-backend-alloc-workspace"] = draw(st.booleans())
    device["ranks"] = ["global", "local", *draw(st.sampled_from([[], ["shared"], ["warp", "shared"]]))]
    names = draw(st.lists(st.sampled_from(["thread0", "thread1"]), unique=True))
    if names:
        device["context"] = {name: {"stack-reserve": draw(_SMALL_OR_ZERO)} for name in names}
    return device


@st.composite
def descriptions(draw: st.DrawFn) -> dict[str, object]:
    """A description that loads: every device reaches the first memory, which is writable and holds stacks."""
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4, unique=True))
    memories = {name: draw(_memory(slot)) for slot, name in enumerate(names)}
    for name in names[1:]:
        memories[name]["access"] = draw(st.sampled_from(["r", "rw"]))
    devices = {
        name: draw(_device(names, names[0])) for name in draw(st.sampled_from([["cpu"], ["dsp", "cpu"]]))
    }
    description: dict[str, object] = {
        "name": draw(st.sampled_from(["t", "board-1.2"])),
        "description": draw(st.sampled_from(["", 'a "b" \\ é 🙂'])),
        "tags": draw(st.sampled_from([[], ["micro"]])),
        "default-device": "cpu",
        "memory": memories,
        "device": devices,
        "scope-tag": draw(st.sampled_from([{}, {"texture": {}}, {"npu": {"lowered-by": "lower_npu"}}])),
        "stack": {
            "external": draw(st.dictionaries(st.sampled_from(["expf", "base", "size"]), _SMALL_OR_ZERO))
        },
    }
    remainder_is_free = dict.fromkeys(names, True)
    for role in ("workspace", "parameters", "io"):
        pools: list[dict[str, object]] = []
        for index in range(draw(st.integers(0, 2))):
            memory = draw(st.sampled_from(names)) if role == "parameters" else names[0]
            reached = any(memory in reach_of(device) for device in devices.values())
            if not reached:
                continue
            pool: dict[str, object] = {"name": f"{role}-{index}", "memory": memory}
            if draw(st.booleans()) or not remainder_is_free[memory]:
                pool["size"] = draw(_SMALL)
            else:
                remainder_is_free[memory] = False
            pool["alignment"] = draw(st.sampled_from([1, 16, 4096]))
            pool["provider"] = draw(st.sampled_from(["caller", "generated"]))
            if draw(st.booleans()):
                pool["section"] = f".{role}{index}"
            if role == "parameters":
                draw(_load(pool, memories, reach_of(devices["cpu"])))
            pools.append(pool)
        if pools:
            description[role] = pools
    return description


@st.composite
def _load(
    draw: st.DrawFn, pool: dict[str, object], memories: dict[str, dict[str, object]], reached: list[object]
) -> None:
    """Lets the bytes of a pool be brought to it, where that is possible. A remainder may be too large to be kept."""
    memory = pool["memory"]
    sources = [n for n in memories if memories[n].get("access") == "r" and n in reached]
    if memories[str(memory)].get("access") == "r" or memory not in reached or "section" not in pool:
        return
    if sources and "size" in pool and draw(st.booleans()):
        pool["from"] = draw(st.sampled_from(sources))
    if "from" in pool or pool["provider"] == "caller":
        pool["load"] = draw(st.sampled_from(["linker", "copy"]))


def reach_of(device: dict[str, object]) -> list[object]:
    reach = device["reach"]
    assert isinstance(reach, list)
    return [entry["memory"] if isinstance(entry, dict) else entry for entry in reach]
