"""An operator that Vela made for an Ethos-U becomes a call of that NPU.

Nothing that the file says of the stream is believed: its accesses are decoded and lie within the tensors, what it
writes covers the outputs, and of the scratch, which all calls share, each call needs what it touches.
"""

from collections.abc import Sequence

import numpy as np

from bytewright import ir
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ethos_u.accesses import Flags, accesses, region_uses, written_bytes
from bytewright.ethos_u.decode import decode
from bytewright.ethos_u.execute import check_within
from bytewright.ethos_u.known import check_known
from bytewright.ethos_u.payload import Payload, as_cop1, parse_payload
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.model import StreamRecord, TensorRecord
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.ethos_u import CONSTANTS, FAST_SCRATCH, INPUTS, OUTPUTS, SCRATCH, EthosU

CUSTOM_OPTIONS = b"\x01\x04\x01"
BLOCK_ALIGNMENT = 16


def convert_ethos_u(conversion: Conversion) -> None:
    """Emits the call, after its stream has been decoded and proved."""
    stream = conversion.operator.stream
    assert stream is not None
    if conversion.numerics is not Numerics.TFLM:
        conversion.fail(
            f"the stream of an Ethos-U computes as tflm does, and numerics are {conversion.numerics.value}",
            code="BW745",
            help="--numerics tflm",
        )
    if conversion.operator.custom_options != CUSTOM_OPTIONS:
        found = conversion.operator.custom_options[:8].hex()
        conversion.fail(
            f"its options are the bytes '{found}', known are '{CUSTOM_OPTIONS.hex()}'", code="BW741"
        )
    try:
        payload = parse_payload(_content(conversion, stream.commands))
        operation = _operation(conversion, stream, payload)
    except CompileError as error:
        raise CompileError(_with_place(conversion, error)) from None
    commands = _constant(conversion, "commands", as_cop1(payload))
    constants = _shared_constants(conversion, stream.constants)
    count = len(conversion.operator.inputs)
    values = [conversion.value_of(conversion.operand(i, f"input {i}"), f"input_{i}") for i in range(count)]
    inputs = (commands, constants, *values)
    types = operation.infer(tuple(conversion.type_of(name) for name in inputs))
    results = tuple(ir.Value(f"{conversion.prefix}/result_{i}", type_) for i, type_ in enumerate(types))
    conversion.types.update((value.name, value.type) for value in results)
    conversion.nodes.append(ir.Node(operation, inputs, results, conversion.where()))
    for position, value in enumerate(results):
        conversion.define(value.name, position)


def _with_place(conversion: Conversion, error: CompileError) -> tuple[Diagnostic, ...]:
    where = str(conversion.where())
    return tuple(
        Diagnostic(each.code, each.message, each.notes, each.help, each.where or where)
        for each in error.diagnostics
    )


def _operation(conversion: Conversion, stream: StreamRecord, payload: Payload) -> EthosU:
    """The call with the sizes that are proved."""
    operations = decode(payload.code, payload.accelerator)
    check_known(operations, payload.accelerator)
    found = accesses(operations)
    tensors = conversion.graph.model.tensors
    inputs = [tensors[index] for index in conversion.operator.inputs]
    outputs = [tensors[index] for index in conversion.operator.outputs]
    uses = {use.region: use for use in region_uses(found)}
    separate = INPUTS in uses or OUTPUTS in uses
    sizes = {
        CONSTANTS: len(_content(conversion, stream.constants)),
        SCRATCH: _size_bytes(tensors[stream.scratch]),
        FAST_SCRATCH: 0
        if stream.fast_scratch == stream.scratch
        else _size_bytes(tensors[stream.fast_scratch]),
        INPUTS: _end(inputs, stream) if separate else 0,
        OUTPUTS: _end(outputs, stream) if separate else 0,
    }
    check_within(found, sizes)
    for region in (CONSTANTS, INPUTS):
        if region in uses and uses[region].writes:
            conversion.fail(f"the stream writes region {region}, which is only to be read", code="BW743")
    _check_places(conversion, [*inputs, *outputs], stream, None if separate else sizes[SCRATCH])
    block = OUTPUTS if separate else SCRATCH
    _check_outputs_are_written(conversion, outputs, stream, written_bytes(operations, block, sizes[block]))
    needed = {region: use.needed_bytes for region, use in uses.items()}
    if separate:
        needed |= {INPUTS: sizes[INPUTS], OUTPUTS: sizes[OUTPUTS]}
    else:
        needed[SCRATCH] = max(needed.get(SCRATCH, 0), _end([*inputs, *outputs], stream))
    return EthosU(
        payload.accelerator.name,
        tuple(needed.get(region, 0) for region in range(SCRATCH, OUTPUTS + 1)),
        tuple(stream.offsets[tensor.index] for tensor in inputs),
        tuple(stream.offsets[tensor.index] for tensor in outputs),
        tuple(tensor.shape for tensor in outputs),
    )


def _check_places(
    conversion: Conversion, tensors: Sequence[TensorRecord], stream: StreamRecord, limit: int | None
) -> None:
    """Inputs and outputs are int8 and lie at known places, within the scratch where that is their block."""
    for tensor in tensors:
        offset = stream.offsets[tensor.index]
        if tensor.element_type != "INT8":
            conversion.fail(f"'{tensor.name}' is {tensor.element_type}", code="BW105", tensor=tensor)
        if offset < 0 or offset % BLOCK_ALIGNMENT:
            conversion.fail(f"'{tensor.name}' lies at {offset} of its block", code="BW743", tensor=tensor)
        if limit is not None and offset + _size_bytes(tensor) > limit:
            end = offset + _size_bytes(tensor)
            conversion.fail(
                f"'{tensor.name}' ends at {end} of a scratch of {limit} bytes", code="BW743", tensor=tensor
            )


def _check_outputs_are_written(
    conversion: Conversion, outputs: Sequence[TensorRecord], stream: StreamRecord, written: Flags
) -> None:
    """The stream writes every byte of each output."""
    for tensor in outputs:
        first = stream.offsets[tensor.index]
        missing = np.flatnonzero(~written[first : first + _size_bytes(tensor)])
        if missing.size:
            conversion.fail(
                f"the stream never writes byte {first + int(missing[0])} of '{tensor.name}'",
                code="BW743",
                tensor=tensor,
            )


def _end(tensors: Sequence[TensorRecord], stream: StreamRecord) -> int:
    return max((stream.offsets[tensor.index] + _size_bytes(tensor) for tensor in tensors), default=0)


def _size_bytes(tensor: TensorRecord) -> int:
    """Bytes of a tensor whose elements are bytes."""
    size = 1
    for extent in tensor.shape:
        size *= max(extent, 0)
    return size


def _content(conversion: Conversion, index: int) -> bytes:
    """The bytes of a constant of bytes; none where it has no values."""
    tensor = conversion.graph.model.tensors[index]
    if tensor.element_type != "UINT8":
        conversion.fail(f"'{tensor.name}' is {tensor.element_type}, not UINT8", code="BW740", tensor=tensor)
    return bytes(conversion.graph.model.buffers[tensor.buffer]) if tensor.has_values else b""


def _constant(conversion: Conversion, role: str, content: bytes) -> str:
    name = f"{conversion.prefix}/{role}"
    data = ir.TensorData((len(content),), ir.DType.U8, content)
    conversion.constants[name] = data
    conversion.types[name] = data.type
    return name


def _shared_constants(conversion: Conversion, index: int) -> str:
    """The constants of the stream, which all calls of a file share; one byte where there are none."""
    graph = conversion.graph
    if index not in graph.values:
        content = _content(conversion, index) or b"\0"
        graph.name_constant(index, "ethos_u/constants", ir.TensorData((len(content),), ir.DType.U8, content))
    return graph.values[index]
