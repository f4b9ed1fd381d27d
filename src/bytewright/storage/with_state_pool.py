"""A pool for what survives runs, where the target has none of its own.

It is as large as the states are, in the memory of the first workspace pool that leaves room for it.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import compile_error
from bytewright.target.capacity import bytes_left, with_remainders
from bytewright.target.check import with_default_devices
from bytewright.target.model import DEFAULT_ALIGNMENT, DEFAULT_PROVIDER, Pool, Role, Target

_NAME = "kept"


def with_state_pool(module: ir.Module, target: Target) -> Target:
    """The target with a state pool, if the module needs one and the target has none.

    Raises:
        CompileError: BW301, no memory of a workspace has room for it.
    """
    buffers = ir.state_buffers(module)
    if not buffers or target.pools_of(Role.STATE):
        return target
    alignment = max(DEFAULT_ALIGNMENT, *(buffer.alignment for buffer in buffers))
    size_bytes = sum(-(-ir.size_bytes(buffer) // alignment) * alignment for buffer in buffers)
    taken = {*(pool.name for pool in target.pools), *(port.name for port in module.state)}
    name = unique_name(_NAME, taken)
    notes: list[str] = []
    for memory in dict.fromkeys(pool.memory for pool in target.workspace_pools):
        pool = Pool(
            name=name,
            memory=memory,
            role=Role.STATE,
            size_bytes=size_bytes,
            alignment=alignment,
            provider=DEFAULT_PROVIDER[Role.STATE],
        )
        wider = with_remainders(with_default_devices(replace(target, pools=(*target.pools, pool))))
        left = bytes_left(wider, wider.memory(memory))
        if left is None or left >= 0:
            return wider
        notes.append(f"{memory}  {-left} B too few beside stacks and pools")
    raise compile_error(
        "BW301",
        f"the model keeps {size_bytes} B between runs, for which no memory of a workspace has room",
        tuple(notes),
        f'give it a pool of its own in the target file: [[state]] name = "{name}" and a memory',
    )
