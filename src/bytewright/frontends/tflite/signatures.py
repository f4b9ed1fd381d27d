"""The signatures of a file: what the one who converted the model called its inputs and outputs.

The converter calls tensors after its own inner works (`StatefulPartitionedCall_1:0`); a signature says which of them is
the user's 'alpha'. It may also say in which subgraph it is.
"""

from dataclasses import dataclass

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


def chosen_signature(
    signatures: tuple[SignatureRecord, ...], wanted: str | None, file_name: str
) -> SignatureRecord | None:
    """The one that is asked for, or the only one; None where the file has none.

    Raises:
        CompileError: BW204, there is none of that name, or several and none is named.
    """
    keys = [signature.key for signature in signatures]
    listed = ", ".join(f"'{key}'" for key in keys)
    if wanted is None:
        if len(signatures) > 1:
            message = f"'{file_name}' has {len(keys)} signatures: {listed}; one of them is compiled"
            raise compile_error("BW204", message, help=f"--signature {keys[0]}")
        return signatures[0] if signatures else None
    if wanted in keys:
        return signatures[keys.index(wanted)]
    if not keys:
        message = f"'{file_name}' has no signature, so none is called '{wanted}'"
        raise compile_error("BW204", message, help="leave out --signature")
    message = f"'{file_name}' has no signature '{wanted}'; it has {listed}"
    raise compile_error("BW204", message, help=f"--signature {keys[0]}")
