from collections.abc import Callable
from typing import Any

def search(
    num_buffers: int,
    num_sections: int,
    num_orders: int,
    has_contracts: bool,
    base: int,
    capacity: int,
    node_budget: int,
    poll: Callable[[int], None] | None,
    arrays: tuple[Any, ...],
    /,
) -> tuple[int, bytes | None, int]: ...
def first_fit(
    num_buffers: int, num_pools: int, pairs: object | None, arrays: tuple[Any, ...], /
) -> tuple[object, bytes, bytes]: ...
