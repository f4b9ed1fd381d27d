import pytest

from bytewright.diagnostics import InternalError
from bytewright.target import (
    UNLIMITED,
    Device,
    ExecutionContext,
    Memory,
    Reach,
    load_target,
)


def test_addresses_of_a_memory_are_found_through_base_and_aliases() -> None:
    memory = Memory("m", 0x100, base=0x1000, aliases=(0x9000,))
    assert memory.address_ranges() == ((0x1000, 0x1100), (0x9000, 0x9100))
    assert memory.offset_of(0x1000) == memory.offset_of(0x9000) == 0
    assert memory.offset_of(0x10FF) == 0xFF
    assert memory.offset_of(0x1100) is None
    assert memory.offset_of(0xFFF) is None
    assert Memory("m", 0x100).offset_of(0) is None


def _cpu(limit: object, *, backend: bool = False, stack: bool = True) -> Device:
    assert limit is UNLIMITED or isinstance(limit, int)
    contexts = (ExecutionContext("cpu", "ram", 4096, 1024),) if stack else ()
    return Device("cpu", "host", (Reach("ram"),), contexts, limit, use_backend_alloc_workspace=backend)


@pytest.mark.parametrize(
    ("device", "size_bytes", "admitted"),
    [
        (_cpu(0), 0, True),
        (_cpu(0), 1, False),
        (_cpu(256), 256, True),
        (_cpu(256), 257, False),
        (_cpu(UNLIMITED), 1 << 40, True),
        (_cpu(UNLIMITED, backend=True), 1, False),
        (_cpu(UNLIMITED, stack=False), 1, False),
    ],
)
def test_a_limit_of_n_admits_n_bytes(device: Device, size_bytes: int, admitted: bool) -> None:
    assert device.admits_stack_allocation(size_bytes) is admitted


def test_the_reserve_is_subtracted() -> None:
    assert _cpu(0).contexts[0].available_stack_bytes == 3072
    assert ExecutionContext("cpu", "ram", None, 1024).available_stack_bytes is None


def test_lookups() -> None:
    target = load_target("mps3-an547")
    assert [pool.name for pool in target.workspace_pools] == ["dtcm", "isram"]
    assert [pool.name for pool in target.parameter_pools] == ["flash"]
    assert target.memory_of("flash") == target.memory("flash") == target.memory_of(target.pool("flash"))
    assert [device.name for device in target.devices_reaching("isram")] == ["cpu"]
    assert target.context("cpu").memory == "dtcm"
    assert target.address_seen_by("cpu", "dtcm") == 0x20000000
    assert target.find_pool("none") is None
    assert target.external_stack_bytes("none") is None
    with pytest.raises(InternalError, match="no pool 'none'"):
        target.pool("none")
