"""Targets made of targets: with pools in other roles, and without limits."""

from dataclasses import replace

from bytewright.target.model import Role, Target


def with_io_pools(target: Target) -> Target:
    """The target whose pools for inputs and outputs are workspace pools that hold nothing else, behind the others.

    So they are for a model whose inputs and outputs are planned; where the application brings those, nobody uses them.
    """
    lent = tuple(replace(pool, role=Role.WORKSPACE, is_for_io=True) for pool in target.pools_of(Role.IO))
    if not lent:
        return target
    others = tuple(pool for pool in target.pools if pool.role not in (Role.WORKSPACE, Role.IO))
    return replace(target, pools=(*target.workspace_pools, *lent, *others))


def without_limits(target: Target) -> Target:
    """The target whose pools and stacks have no limits but those of the devices."""
    devices = tuple(
        replace(d, contexts=tuple(replace(c, max_stack_size_bytes=None) for c in d.contexts))
        for d in target.devices
    )
    pools = tuple(replace(pool, size_bytes=None, takes_remainder=False) for pool in target.pools)
    return replace(target, devices=devices, pools=pools)
