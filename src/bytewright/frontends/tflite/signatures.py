"""The signatures of a file: what the one who converted the model called its inputs and outputs.

The converter calls tensors after its own inner works (`StatefulPartitionedCall_1:0`); a signature says which of them is
the user's 'alpha'. It may also say in which subgraph it is.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from bytewright.diagnostics import compile_error
from bytewright.frontends.tflite.flatbuffer import DamagedError, Table

NamesOfTensors = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class SignatureRecord:
    """One signature.

    Attributes:
        inputs, outputs: Index and name of each tensor, in the file's order.
    """

    key: str
    subgraph: int
    inputs: NamesOfTensors
    outputs: NamesOfTensors


def read_signatures(root: Table, num_subgraphs: int) -> tuple[SignatureRecord, ...]:
    """All of a file."""
    found = tuple(
        SignatureRecord(table.string(2), table.integer(4, "I"), _names(table, 0), _names(table, 1))
        for table in root.tables(7)
    )
    for signature in found:
        if signature.subgraph >= num_subgraphs:
            place = f"subgraph {signature.subgraph} of {num_subgraphs}"
            raise DamagedError(f"the signature '{signature.key}' is that of {place}")
    return found


def _names(table: Table, slot: int) -> NamesOfTensors:
    return tuple((each.integer(1, "I"), each.string(0)) for each in table.tables(slot))


def chosen_signatures(
    signatures: tuple[SignatureRecord, ...], wanted: tuple[str, ...], file_name: str
) -> tuple[SignatureRecord, ...]:
    """Those that are asked for, by their names or shell patterns of them, or the only one; in the file's order.

    Raises:
        CompileError: BW204, there is none of that name, or several and none is named.
    """
    keys = [signature.key for signature in signatures]
    listed = ", ".join(f"'{key}'" for key in keys)
    if not wanted:
        if len(signatures) > 1:
            message = f"'{file_name}' has {len(keys)} signatures: {listed}; say which of them to compile"
            notes = ("--signature '*' compiles all, each as an entry of one model",)
            raise compile_error("BW204", message, notes=notes, help=f"--signature {keys[0]}")
        return signatures
    chosen: set[str] = set()
    for name in wanted:
        found = {key for key in keys if key == name or (name not in keys and fnmatchcase(key, name))}
        if not found and not keys:
            message = f"'{file_name}' has no signature, so none is called '{name}'"
            raise compile_error("BW204", message, help="leave out --signature")
        if not found:
            message = f"'{file_name}' has no signature '{name}'; it has {listed}"
            raise compile_error("BW204", message, help=f"--signature {keys[0]}")
        chosen |= found
    return tuple(signature for signature in signatures if signature.key in chosen)
