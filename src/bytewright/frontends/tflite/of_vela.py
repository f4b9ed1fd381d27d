"""What Vela writes into a file beside the network: the memory of its operators, and where tensors lie in it.

An operator of Vela's has four operands before the network's own: the stream, the constants, the scratch, and the
scratch that is to be fast, which is the scratch again unless there are two.
"""

from dataclasses import replace

import numpy as np

from bytewright.frontends.tflite.flatbuffer import DamagedError, Table
from bytewright.frontends.tflite.model import OperatorRecord, StreamRecord

ETHOS_U = "CUSTOM 'ethos-u'"
NUM_OPERANDS = 4
_METADATA = "OfflineMemoryAllocation"
_HEADER_WORDS = 3


def block_offsets(root: Table, buffers: tuple[memoryview, ...], num_tensors: int) -> tuple[int, ...]:
    """Where each tensor lies in its block, after the metadata that Vela adds; -1 for constants."""
    for entry in root.tables(6):
        if entry.string(0) != _METADATA:
            continue
        index = entry.integer(1, "I")
        if index >= len(buffers) or len(buffers[index]) % 4:
            raise DamagedError(
                f"the metadata {_METADATA} is in buffer {index}, which is not there or no integers"
            )
        words = tuple(int(word) for word in np.frombuffer(buffers[index], "<i4"))
        offsets = words[_HEADER_WORDS:]
        if len(words) < _HEADER_WORDS or words[2] != len(offsets) or len(offsets) != num_tensors:
            raise DamagedError(
                f"the metadata {_METADATA} has {len(offsets)} offsets for {num_tensors} tensors"
            )
        return offsets
    raise DamagedError(f"operators of an Ethos-U need the metadata {_METADATA}, which is missing")


def with_stream(operator: OperatorRecord, offsets: tuple[int, ...]) -> OperatorRecord:
    """An operator with what is Vela's apart from what is the network's; others as they are."""
    if operator.kind != ETHOS_U:
        return operator
    memory, inputs = operator.inputs[:NUM_OPERANDS], operator.inputs[NUM_OPERANDS:]
    if len(memory) < NUM_OPERANDS or not all(0 <= index < len(offsets) for index in memory):
        raise DamagedError(
            f"operator {operator.label} has the operands {list(operator.inputs)}; four are Vela's own"
        )
    return replace(operator, inputs=inputs, stream=StreamRecord(*memory, offsets=offsets))
