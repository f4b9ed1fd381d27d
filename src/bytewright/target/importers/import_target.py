"""One file in, the text of a target file out: chooses the importer and proves that the result loads."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bytewright.diagnostics import CompileError, InternalError
from bytewright.target.importers.compose import compose
from bytewright.target.importers.costs import Cost
from bytewright.target.importers.devicetree import read_devicetree
from bytewright.target.importers.linker_script import read_linker_script
from bytewright.target.isa.find import require_isa
from bytewright.target.load import load_text
from bytewright.target.model import Target
from bytewright.target.text_file import read_text

_DEVICETREE_SUFFIXES = (".dts", ".dtsi")
_LINKER_SCRIPT_SUFFIXES = (".ld", ".lds", ".x", ".cmd", ".lcf")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user says beside the file.

    Attributes:
        isa: The processor's instruction set; `None`: as the source says, else `cortex-m`.
        name: The target's name; `None`: as the source says, else the file's stem.
        include: Folders in which included files are looked up, besides the file's own.
        define: Symbols (`NAME=VALUE`) that a build would define: of the linker, or of the preprocessor.
        costs: What a byte of a memory costs; 1 where nothing is said.
    """

    isa: str | None = None
    name: str | None = None
    include: tuple[str | PathLike[str], ...] = ()
    define: tuple[str, ...] = ()
    costs: tuple[Cost, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedTarget:
    """What an import gives.

    Attributes:
        target: The target, as loaded from the text.
        text: The target file, TOML.
        remarks: What was left out or decided; they stand in the text too.
    """

    target: Target
    text: str
    remarks: tuple[str, ...]


def import_target(path: str | PathLike[str], options: ImportOptions | None = None) -> ImportedTarget:
    """Imports a GNU linker script or a Zephyr devicetree, told apart by suffix, else by `/dts-v1/`.

    Raises:
        CompileError: BW201 if a file cannot be read, BW204 for an ISA or a memory that nobody knows, BW202 for
            what is wrong in the file, with file and line; BW501 and BW502 for the linker and the preprocessor.
    """
    path, options = Path(path), options or ImportOptions()
    if options.isa is not None:
        require_isa(options.isa)
    text = read_text(path)
    include = (*(Path(folder) for folder in options.include), path.parent)
    if _is_devicetree(path, text):
        board = read_devicetree(path, text, include, options.define)
    else:
        board = read_linker_script(path, text, include, options.define)
    composed, remarks = compose(board, str(path), options.isa, options.name, options.costs)
    try:
        target = load_text(composed, f"<import of {path}>")
    except CompileError as error:
        raise InternalError(f"the imported target does not load: {error}") from error
    return ImportedTarget(target, composed, remarks)


def _is_devicetree(path: Path, text: str) -> bool:
    suffix = path.suffix.lower()
    if suffix in _LINKER_SCRIPT_SUFFIXES:
        return False
    return suffix in _DEVICETREE_SUFFIXES or "/dts-v1/" in text
