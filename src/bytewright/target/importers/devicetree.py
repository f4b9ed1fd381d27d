"""The memories and the processor of a Zephyr devicetree.

The tree is parsed by the package `devicetree`, Zephyr's own; without Zephyr's bindings, because all that is needed
are conventions of a few properties: `/chosen` says which memories hold data and program, `compatible` which
nodes are memories at all, `reg` and `ranges` where they are. Nodes that are not enabled are not there.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bytewright.diagnostics import CompileError
from bytewright.target.addresses import END_OF_ADDRESSES
from bytewright.target.importers.board import FoundBoard, FoundMemory, memory_name, refusal
from bytewright.target.importers.limits import LimitError, run_limited
from bytewright.target.importers.preprocess import preprocess
from bytewright.target.importers.source_map import SourceMap
from bytewright.target.isa.find import devicetree_isa
from bytewright.target.isa.risc_v import DEVICETREE_PROPERTY as RISC_V_PROPERTY
from bytewright.target.model import MemoryAccess

if TYPE_CHECKING:
    from devicetree.dtlib import DT, Node, Property

_Value = TypeVar("_Value")

_CELL_BYTES = 4
_DEFAULT_ADDRESS_CELLS, _DEFAULT_SIZE_CELLS = 2, 1  # the specification's, where the parent says nothing
_DATA, _PROGRAM = "zephyr,sram", "zephyr,flash"
# Properties of /chosen that name memories -> the section that Zephyr's linker script has for variables there.
# Data and program need none: what has no section of its own goes there.
_CHOSEN: dict[str, str | None] = {
    _DATA: None,
    _PROGRAM: None,
    "zephyr,dtcm": ".dtcm_noinit",
    "zephyr,itcm": ".itcm",
    "zephyr,ccm": ".ccm_noinit",
    "zephyr,ocm": ".ocm_noinit",
}
_MEMORY_REGION = "zephyr,memory-region"
_WRITABLE = ("mmio-sram", _MEMORY_REGION, "arm,dtcm", "arm,itcm")
_READ_ONLY = ("soc-nv-flash",)


def read_devicetree(path: Path, text: str, include: Sequence[Path], define: Sequence[str]) -> FoundBoard:
    """The memories of a tree, in its order, and its first processor.

    Args:
        path: A .dts file: a board's, which needs Zephyr's folders in `include`, or a build's `zephyr.dts`.
        text: Its content.
        include: Folders in which included files are looked up.
        define: `NAME=VALUE`, macros for the C preprocessor.

    Raises:
        CompileError: BW202 with file and line; BW501 without the package or a preprocessor.
    """
    text = preprocess(path, text, include, define)
    try:
        return run_limited(lambda: _read_tree(path, text, include))
    except LimitError as error:
        raise refusal(f"the tree cannot be evaluated: {error}", str(path)) from None


def _read_tree(path: Path, text: str, include: Sequence[Path]) -> FoundBoard:
    try:
        source = SourceMap(path, text, include)
        return _Tree(_parse(path, text, include, source), source, path).board()
    except RecursionError:
        message = "the tree is nested too deeply, or includes itself"
        raise refusal(message, str(path)) from None


def _parse(path: Path, text: str, include: Sequence[Path], source: SourceMap) -> DT:
    from devicetree.dtlib import DT, DTError

    with tempfile.TemporaryDirectory(prefix="bytewright-import-") as folder:
        copy = Path(folder) / "board.dts"
        copy.write_text(text, encoding="utf-8")
        try:
            return DT(str(copy), [str(path.parent), *map(str, include)])
        except DTError as error:
            raise _refused(str(error).replace(str(copy), str(path)), source) from None
        except (RecursionError, MemoryError):
            raise
        except Exception as error:  # the parser trips over some mistakes, such as the number 09
            raise refusal(f"the tree cannot be parsed: {type(error).__name__}: {error}", str(path)) from None


def _refused(message: str, source: SourceMap) -> CompileError:
    """The parser's message, with its line, or else that of the node or label which it names."""
    placed = re.fullmatch(r"(.+?):(\d+) \(column (\d+)\): (?:parse error: )?(.*)", message, re.DOTALL)
    if placed:
        return refusal(f"{placed[4]} (column {placed[3]})".replace("\n", " "), f"{placed[1]}:{placed[2]}")
    label = re.search(r"[Ll]abel '(\w+)'", message)
    node = re.match(r"(/[^:]*): ", message)
    if label:
        is_reference = "undefined" in message
        where = source.first(rf"&{label[1]}\b" if is_reference else rf"\b{label[1]}:")
    else:
        where = source.place([node[1]]) if node else source.file
    return refusal(message.replace("\n", " "), where)


class _Tree:
    def __init__(self, tree: DT, source: SourceMap, path: Path) -> None:
        self._tree = tree
        self._source = source
        self._path = path
        self._remarks: list[str] = []

    def board(self) -> FoundBoard:
        """All that a target needs."""
        chosen = self._chosen_memories()
        memories: list[FoundMemory] = []
        taken: set[str] = set()
        for node in self._tree.node_iter():
            access = self._access(node, chosen)
            if access is None:
                continue
            if not _is_enabled(node):
                self._remarks.append(f"{node.path} is left out: its status is not okay")
                continue
            memories.extend(self._memories(node, access, chosen, taken))
        if not memories:
            raise refusal(
                "the tree describes no memory that is enabled",
                self._source.file,
                f"memories are nodes with device_type 'memory' or compatible {', '.join(_WRITABLE + _READ_ONLY)}, "
                f"and those that /chosen names with {', '.join(_CHOSEN)}",
            )
        compatible = self._texts(self._tree.root, "compatible")
        name = compatible[0].partition(",")[2] or compatible[0] if compatible else self._path.stem
        description = next(iter(self._texts(self._tree.root, "model")), "")
        stack = next((m.name for m in memories if m.is_preferred and m.is_writable), None)
        return FoundBoard(
            name,
            description,
            self._isa(),
            tuple(memories),
            None if stack is None else (stack, f"/chosen: {_DATA}"),
            tuple(self._remarks),
        )

    def _place(self, node: Node, name: str | None = None) -> str:
        """File and line; the source may have written the path from any label on the way down."""
        names: list[str] = []
        around: Node | None = node
        while around is not None:
            below = node.path.removeprefix(around.path)
            names += [f"&{label}{below}" for label in around.labels]
            around = around.parent
        return self._source.place([*names, node.path], name)

    def _property(self, node: Node | None, name: str, read: Callable[[Property], _Value]) -> _Value | None:
        """What a property of a node holds; None if it is absent."""
        from devicetree.dtlib import DTError

        if node is None or name not in node.props:
            return None
        try:
            return read(node.props[name])
        except DTError as error:
            raise refusal(str(error), self._place(node, name)) from None

    def _texts(self, node: Node, name: str) -> list[str]:
        return self._property(node, name, lambda found: found.to_strings()) or []

    def _number(self, node: Node, name: str, default: int) -> int:
        number = self._property(node, name, lambda found: found.to_num())
        return default if number is None else number

    def _chosen_node(self, name: str) -> Node | None:
        """The node that a property of /chosen names, by reference or by path."""
        return self._property(self._tree.root.nodes.get("chosen"), name, lambda found: found.to_path())

    def _chosen_memories(self) -> dict[str, str]:
        """The path of each node that /chosen names as a memory, with the property that does."""
        chosen: dict[str, str] = {}
        for name in _CHOSEN:
            node = self._chosen_node(name)
            if node is not None:
                chosen.setdefault(node.path, name)
                if not _is_enabled(node):
                    place = self._place(self._tree.get_node("/chosen"), name)
                    raise refusal(f"{name} is {node.path}, whose status is not okay", place)
        return chosen

    def _access(self, node: Node, chosen: dict[str, str]) -> MemoryAccess | None:
        """What may be done with the memory that a node describes; `None` if it describes none."""
        compatible = self._texts(node, "compatible")
        if chosen.get(node.path) == _PROGRAM or any(entry in _READ_ONLY for entry in compatible):
            return MemoryAccess.READ_ONLY
        is_memory = node.path in chosen or any(entry in _WRITABLE for entry in compatible)
        if is_memory or self._texts(node, "device_type") == ["memory"]:
            return MemoryAccess.READ_WRITE
        return None

    def _memories(
        self, node: Node, access: MemoryAccess, chosen: dict[str, str], taken: set[str]
    ) -> Iterator[FoundMemory]:
        """The memories of a node, one for each pair of address and size."""
        choice = chosen.get(node.path)
        region = next(iter(self._texts(node, _MEMORY_REGION)), "")
        foreign_name = region or (node.labels[0] if node.labels else node.name.partition("@")[0])
        called = node.path if choice is None else f"{node.path}, {choice}"
        for whole in self._ranges_of(node):
            if whole[1] == 0:
                self._remarks.append(f"{node.path} is left out: its size is 0")
                continue
            name = memory_name(foreign_name, taken)
            is_program = choice == _PROGRAM
            base, size_bytes, origin = (
                self._image_part(node, *whole, called) if is_program else (*whole, called)
            )
            yield FoundMemory(
                name=name,
                base=base,
                size_bytes=size_bytes,
                access=access,
                section=_section(name, region, choice, access),
                origin=origin,
                where=self._place(node, "reg"),
                is_preferred=choice in (_DATA, _PROGRAM),
            )

    def _ranges_of(self, node: Node) -> list[tuple[int, int]]:
        """Address and size of each part of `reg`, as the processor sees them."""
        if "reg" not in node.props or node.parent is None:
            raise refusal(f"memory {node.path} has no 'reg', so its place is not known", self._place(node))
        address_cells = self._number(node.parent, "#address-cells", _DEFAULT_ADDRESS_CELLS)
        size_cells = self._number(node.parent, "#size-cells", _DEFAULT_SIZE_CELLS)
        if address_cells < 1 or size_cells < 1:
            message = f"memory {node.path} has no size: #size-cells of its parent is {size_cells}"
            raise refusal(message, self._place(node, "reg"))
        ranges: list[tuple[int, int]] = []
        for address, size_bytes in self._rows(node, "reg", (address_cells, size_cells)):
            base = self._translated(address, node)
            if base + size_bytes > END_OF_ADDRESSES:
                message = f"memory {node.path} at {base:#x} would end behind the last 64-bit address"
                raise refusal(message, self._place(node, "reg"))
            ranges.append((base, size_bytes))
        return ranges

    def _rows(self, node: Node, name: str, cells: tuple[int, ...]) -> list[list[int]]:
        """A property's value as rows of numbers of so many cells each."""
        value = node.props[name].value
        row_bytes = _CELL_BYTES * sum(cells)
        if not value or not row_bytes or len(value) % row_bytes:
            message = f"{name!r} of {node.path} has {len(value)} B, not a multiple of {row_bytes} B"
            note = (
                f"{' + '.join(map(str, cells))} cells of {_CELL_BYTES} B, by #address-cells and #size-cells"
            )
            raise refusal(message, self._place(node, name), note)
        cell_bytes = io.BytesIO(value)
        return [
            [int.from_bytes(cell_bytes.read(_CELL_BYTES * width), "big") for width in cells]
            for _ in range(len(value) // row_bytes)
        ]

    def _translated(self, address: int, node: Node) -> int:
        """An address on a node's bus as the root sees it; without `ranges` it counts as it stands."""
        bus = node.parent
        if bus is None or bus.parent is None or "ranges" not in bus.props:
            return address
        if not bus.props["ranges"].value:  # the same addresses on both sides
            return self._translated(address, bus)
        cells = (
            self._number(bus, "#address-cells", _DEFAULT_ADDRESS_CELLS),
            self._number(bus.parent, "#address-cells", _DEFAULT_ADDRESS_CELLS),
            self._number(bus, "#size-cells", _DEFAULT_SIZE_CELLS),
        )
        for child_base, parent_base, size_bytes in self._rows(bus, "ranges", cells):
            if child_base <= address < child_base + size_bytes:
                return self._translated(parent_base + address - child_base, bus)
        return address

    def _image_part(self, flash: Node, base: int, size_bytes: int, origin: str) -> tuple[int, int, str]:
        """Address, size and origin of the part of a flash that is the program's: its partition, where one is chosen.

        What else is in the flash, such as the boot loader and the other image, is not the program's to fill.
        """
        name = "zephyr,code-partition"
        partition = self._chosen_node(name)
        if partition is None or "reg" not in partition.props:
            return base, size_bytes, origin
        first, partition_bytes = self._ranges_of(partition)[0]
        first += 0 if _is_translated(partition, flash) else base
        if first < base or first + partition_bytes > base + size_bytes or partition_bytes == 0:
            self._remarks.append(f"{partition.path} is not used: it is no part of {flash.path}")
            return base, size_bytes, origin
        return first, partition_bytes, f"{origin}; {name} is {partition.path}"

    def _isa(self) -> str | None:
        """The instruction set of the first enabled processor."""
        cpus = self._tree.root.nodes.get("cpus")
        nodes = [] if cpus is None else [node for node in cpus.nodes.values() if _is_processor(node)]
        nodes = [node for node in nodes if _is_enabled(node)]
        if not nodes:
            return None
        self._remarks.extend(
            f"{node.path} is left out: only the first processor becomes a device" for node in nodes[1:]
        )
        compatible = self._texts(nodes[0], "compatible")
        isa = devicetree_isa(compatible, self._texts(nodes[0], RISC_V_PROPERTY))
        if isa is not None:
            return isa
        self._remarks.append(
            f"{nodes[0].path} is of no known kind: {', '.join(compatible) or 'it has no compatible'}"
        )
        return None


def _is_enabled(node: Node) -> bool:
    """Whether a node and all nodes around it are in use."""
    status = node.props.get("status")
    if status is not None and status.value.rstrip(b"\0") not in (b"okay", b"ok"):
        return False
    return node.parent is None or _is_enabled(node.parent)


def _is_translated(partition: Node, flash: Node) -> bool:
    """Whether a partition's address is the processor's; without `ranges` on the way it counts from its flash."""
    above = partition.parent
    while above is not None:
        if "ranges" not in above.props:
            return False
        if above is flash:
            return True
        above = above.parent
    return True


def _is_processor(node: Node) -> bool:
    device_type = node.props.get("device_type")
    return re.match(r"cpu(@|$)", node.name) is not None or (
        device_type is not None and device_type.value.rstrip(b"\0") == b"cpu"
    )


def _section(name: str, region: str, choice: str | None, access: MemoryAccess) -> str | None:
    """The section in Zephyr's linker script; a memory region's is called as the region is."""
    section = re.sub(r"[^A-Za-z0-9_]", "_", region)
    if section and not section[0].isdigit():
        return section
    if choice is not None:
        return _CHOSEN[choice]
    return f".{name}" if access is MemoryAccess.READ_WRITE else None
