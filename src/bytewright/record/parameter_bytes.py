"""The bytes of the parameter pools, as the planner arranged them."""

from collections.abc import Mapping, Sequence

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import InternalError
from bytewright.plan.solution import Solution
from bytewright.record.fnv1a import OFFSET_BASIS, fnv1a_64
from bytewright.target.model import PARAMETER_HEADER_BYTES, Pool, Provider, Target

MAGIC = b"BYTEWRT1"


def parameter_bytes(module: ir.Module, target: Target, parameters: Solution) -> Mapping[str, bytes]:
    """The bytes of each parameter pool by its name, with the header that a pool from the application begins with.

    They are gathered once: a pool may be as large as all the rest together.
    """
    use_of = parameters.use_of
    return FrozenMapping(
        {pool.name: _content(module, pool, use_of[pool.name].top_bytes) for pool in target.parameter_pools}
    )


def _content(module: ir.Module, pool: Pool, used_bytes: int) -> bytes:
    placed = [
        (constant.storage.offset, constant.data.content)
        for constant in module.constant_buffers
        if constant.storage.pool == pool.name and constant.storage.offset is not None
    ]
    has_header = pool.provider is Provider.CALLER
    top = PARAMETER_HEADER_BYTES if has_header else 0
    pieces: list[bytes] = []
    for offset, content in sorted(placed, key=lambda item: item[0]):
        if offset < top:
            raise InternalError(f"constants of pool '{pool.name}' overlap at {offset}")
        pieces += [bytes(offset - top), content]
        top = offset + len(content)
    pieces.append(bytes(used_bytes - top))
    return b"".join([blob_header(pieces), *pieces] if has_header else pieces)


def blob_header(body: Sequence[bytes]) -> bytes:
    """32 bytes before a blob: magic, size of the body, FNV-1a 64 of the body, zeros; little-endian.

    Args:
        body: The body's bytes in pieces.
    """
    digest, size_bytes = OFFSET_BASIS, 0
    for piece in body:
        digest, size_bytes = fnv1a_64(piece, digest), size_bytes + len(piece)
    return MAGIC + size_bytes.to_bytes(8, "little") + digest.to_bytes(8, "little") + bytes(8)
