"""The nodes that some values depend on."""

from collections.abc import Iterable

from bytewright import ir


def needed_nodes(nodes: Iterable[ir.Node], results: Iterable[str]) -> tuple[ir.Node, ...]:
    """Of nodes in order those that results depend on."""
    needed = set(results)
    kept: list[ir.Node] = []
    for node in reversed(tuple(nodes)):
        if any(value.name in needed for value in node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    return tuple(reversed(kept))
