"""Target files from what people already have: a GNU linker script or a Zephyr devicetree.

An importer finds memories and a processor (`board.py` says in which form); `compose.py` turns them into the text
of a target file whose comments state what was read and what was assumed. The text is loaded before it is given
out, so what a command writes is a target.
"""

from bytewright.target.importers.costs import Cost, parse_cost
from bytewright.target.importers.import_target import ImportedTarget, ImportOptions, import_target

__all__ = ["Cost", "ImportOptions", "ImportedTarget", "import_target", "parse_cost"]
