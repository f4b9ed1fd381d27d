"""From the bytes of a .tflite file to records, with every index and size checked against the file.

After `read_model`, each index refers to something that exists, shapes are small enough to compute with, the
values of each constant are exactly as many bytes as its shape needs, and every operand is defined before it is
used, by one operator, an input or a constant. What the operators mean is checked by their converters.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path

from bytewright import ir
from bytewright.diagnostics import compile_error
from bytewright.frontends.tflite.composites import with_composites
from bytewright.frontends.tflite.flatbuffer import DamagedError, File, Table
from bytewright.frontends.tflite.model import (
    CASE,
    COMPOSITE,
    CUSTOM,
    WITH_BODY,
    BlocksRecord,
    ModelRecord,
    OperatorRecord,
    QuantizationRecord,
    TensorRecord,
    schema_names,
)
from bytewright.frontends.tflite.of_vela import ETHOS_U, block_offsets, with_stream
from bytewright.frontends.tflite.other_formats import HEAD_BYTES, refuse_other_formats
from bytewright.frontends.tflite.signatures import SignatureRecord, chosen_signatures, read_signatures
from bytewright.frontends.tflite.sparse import dense_values
from bytewright.frontends.tflite.stored import STORED
from bytewright.frontends.tflite.updates import with_updates

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3
MAX_RANK = 8

_ELEMENT_BYTES = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 1),
    **dict.fromkeys(("BFLOAT16", "INT16", "UINT16"), 2),
    **dict.fromkeys(("FLOAT32", "INT32", "UINT32"), 4),
    **dict.fromkeys(("COMPLEX64", "FLOAT64", "INT64", "UINT64"), 8),
    "COMPLEX128": 16,
}
# The member of QuantizationDetails in schemas younger than the package that names the others.
_BLOCKS = 2
# Of values that are stored one by one, also where they are sparse.
_DENSE = {**_ELEMENT_BYTES, "FLOAT16": 2}


def load_file(path: Path) -> bytes:
    """The bytes of a model file.

    Raises:
        CompileError: BW101, the file cannot be read; BW102, it is a model of another format.
    """
    try:
        # Pipes and devices may have no end.
        if path.is_dir():
            refuse_other_formats(path, b"")
        if path.exists() and not path.is_file():
            raise compile_error("BW101", f"cannot read '{path}': it is not a file")
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            if head[4:8] != IDENTIFIER:
                refuse_other_formats(path, head)
            content = head + stream.read()
    except (OSError, ValueError) as error:
        reason = (error.strerror or type(error).__name__) if isinstance(error, OSError) else error
        raise compile_error("BW101", f"cannot read '{path}': {reason}") from error
    if not content:
        raise compile_error("BW101", f"'{path}' is empty")
    return content


def read_model(content: bytes, file_name: str, signature: str | None = None) -> ModelRecord:
    """The records of a file; `signature` is the name of the one to compile, where it has several.

    Raises:
        CompileError: As of `read_models`.
    """
    (model,) = read_models(content, file_name, () if signature is None else (signature,))
    return model


def read_models(content: bytes, file_name: str, signatures: tuple[str, ...]) -> tuple[ModelRecord, ...]:
    """The records of a file, once for each signature that is asked for.

    Args:
        content: The file.
        file_name: What diagnostics call it.
        signatures: Names, or shell patterns, of those to compile; none where it has one at most.

    Raises:
        CompileError: BW102, not a TFLite model; BW103, damaged; BW204, it has no such signature, or several.
    """
    if len(content) < 8 or content[4:8] != IDENTIFIER:
        found = repr(content[4:8]) if len(content) >= 8 else f"the end of a file of {len(content)} bytes"
        message = f"'{file_name}' is not a TFLite model: where {IDENTIFIER!r} should be there is {found}"
        raise compile_error("BW102", message, help="give a .tflite file as a converter writes it")
    try:
        file = File.of(content)
        num_subgraphs = len(file.root().tables(2))
        known = read_signatures(file.root(), num_subgraphs)
        return _read(file, chosen_signatures(known, signatures, file_name))
    except DamagedError as error:
        raise compile_error(
            "BW103",
            f"'{file_name}' is damaged: {error}",
            help="convert or copy the model again; files from Git LFS must be fetched, not just checked out",
        ) from error


def _read(file: File, signatures: tuple[SignatureRecord, ...]) -> tuple[ModelRecord, ...]:
    """The subgraphs of signatures, or the first one; any inconsistency is a `DamagedError`."""
    root = file.root()
    version = root.integer(0, "I")
    if version != SCHEMA_VERSION:
        raise DamagedError(f"schema version {version}, only {SCHEMA_VERSION} exists")
    codes = [_operator_kind(code) for code in root.tables(1)]
    subgraphs = root.tables(2)
    if not subgraphs:
        raise DamagedError("it has no subgraph")
    buffers = tuple(_buffer(table) for table in root.tables(4))
    read = partial(_subgraph, file, codes=codes, buffers=buffers)
    models: list[ModelRecord] = []
    owners: dict[int, str] = {}
    for signature in signatures or (None,):
        first = signature.subgraph if signature is not None else 0
        model = _with_called(read(subgraphs[first]), subgraphs, read, {first: None})
        owner = owners.setdefault(first, signature.key) if signature is not None else ""
        models.append(replace(model, num_subgraphs=len(subgraphs), signature=signature, owner=owner))
    once = dict.fromkeys(
        index for model in models for index in _run_by(model, len(subgraphs), ("CALL_ONCE",))
    )
    called_once = tuple(
        _with_called(read(subgraphs[index]), subgraphs, read, {index: None}) for index in once
    )
    return tuple(
        replace(model, called_once=called_once, beside=tuple(other for other in models if other is not model))
        for model in models
    )


def _run_by(model: ModelRecord, num_subgraphs: int, kinds: Sequence[str]) -> Iterator[int]:
    """The subgraphs that operators of some kinds run, by their numbers."""
    for operator in model.operators:
        for index in operator.subgraphs if operator.kind in kinds else ():
            if not 0 <= index < num_subgraphs:
                raise DamagedError(f"operator {operator.label} runs subgraph {index} of {num_subgraphs}")
            yield index


def _with_called(
    model: ModelRecord,
    subgraphs: Sequence[Table],
    read: Callable[[Table], ModelRecord],
    found: dict[int, ModelRecord | None],
) -> ModelRecord:
    """A subgraph with those that its loops and branches run, and so on; `found` has None for those around it.

    Those of composites stand in their places.
    """
    called: dict[int, ModelRecord] = {}
    for index in _run_by(model, len(subgraphs), ("IF", CASE, "WHILE", COMPOSITE)):
        if index not in found:
            found[index] = None
            found[index] = _with_called(read(subgraphs[index]), subgraphs, read, found)
        record = found[index]
        if record is None:
            raise DamagedError(f"subgraph {index} runs itself")
        called[index] = record
    bodies = {
        index: tuple(operator.kind for operator in read(subgraphs[index]).operators)
        for index in _run_by(model, len(subgraphs), WITH_BODY)
    }
    return with_composites(replace(model, called=called, bodies=bodies))


def _subgraph(
    file: File, subgraph: Table, *, codes: list[str], buffers: tuple[memoryview, ...]
) -> ModelRecord:
    inputs, outputs = subgraph.numbers(1, "<i4"), subgraph.numbers(2, "<i4")
    operators = tuple(_operator(i, table, codes) for i, table in enumerate(subgraph.tables(3)))
    defined = {*inputs, *(index for operator in operators for index in operator.outputs)}
    expanded = list(buffers)
    tensors = tuple(
        _tensor(i, table, expanded, is_defined=i in defined) for i, table in enumerate(subgraph.tables(0))
    )
    tensors = tuple(
        _with_blocks(tensor, table, tensors, expanded)
        for tensor, table in zip(tensors, subgraph.tables(0), strict=True)
    )
    if ETHOS_U in codes:
        offsets = block_offsets(file.root(), buffers, len(tensors))
        operators = tuple(with_stream(operator, offsets) for operator in operators)
    model = ModelRecord(file, 1, tensors, operators, inputs, outputs, tuple(expanded))
    _check_references(model)
    _check_definitions(model)
    return with_updates(model)


def _operator_kind(code: Table) -> str:
    """The name of what an operator code stands for.

    Old files have the code in the first field, 8 bits wide; new ones in the last; the greater one counts.
    """
    number = max(code.integer(0, "b"), code.integer(3, "i"))
    name = schema_names("BuiltinOperator").get(number, f"operator {number}")
    return f"{CUSTOM} '{code.string(1)}'" if name == CUSTOM else name


def _buffer(table: Table) -> memoryview:
    """A buffer's bytes, which in files beyond 2 GiB stand outside the flatbuffer at a stated offset.

    Where there are data as well, they count, empty ones too, as in LiteRT.
    """
    offset, size_bytes = table.integer(1, "Q"), table.integer(2, "Q")
    if offset > 1 and not table.has(0):
        return table.file.read(offset, size_bytes)
    return table.content(0)


def _tensor(index: int, table: Table, buffers: list[memoryview], *, is_defined: bool) -> TensorRecord:
    """One tensor, its shape and values checked against each other; a sparse one has dense values in a new buffer.

    One without elements that neither is an input nor comes of an operator is a constant: it has no bytes to show.
    """
    shape = table.numbers(0, "<i4")
    number = table.integer(1, "b")
    element_type = schema_names("TensorType").get(number, f"type {number}")
    buffer = table.integer(2, "I")
    name = table.string(3)
    place = f"tensor {index} ('{name}')"
    _check_shape(shape, place)
    is_variable = table.boolean(5)
    signature = table.numbers(7, "<i4")
    if len(signature) not in (0, len(shape)):
        raise DamagedError(f"{place} has {len(shape)} axes and a signature of {len(signature)}")
    if buffer >= max(len(buffers), 1):
        raise DamagedError(f"{place} refers to buffer {buffer} of {len(buffers)}")
    values = buffers[buffer] if buffers else memoryview(b"")
    sparsity = table.table(6)
    if sparsity is not None and element_type in _DENSE:
        values = memoryview(dense_values(sparsity, values, shape, _DENSE[element_type]))
        buffer, sparsity = len(buffers), None
        buffers.append(values)
    needed_bytes = None if sparsity else _needed_bytes(element_type, prod(shape))
    if values and needed_bytes not in (None, len(values)):
        raise DamagedError(f"{place} needs {needed_bytes} bytes of values, its buffer has {len(values)}")
    return TensorRecord(
        index=index,
        name=name,
        shape=shape,
        signature=signature,
        element_type=element_type,
        buffer=buffer,
        has_values=len(values) > 0 or (0 in shape and not is_defined and not is_variable),
        quantization=_quantization(table.table(4), place),
        is_variable=is_variable,
        is_sparse=sparsity is not None,
    )


def _needed_bytes(element_type: str, count: int) -> int | None:
    """Bytes of so many elements; None of a type whose elements are of no one size."""
    if element_type in STORED:
        return STORED[element_type].stored_bytes(count)
    return count * _ELEMENT_BYTES[element_type] if element_type in _ELEMENT_BYTES else None


def _check_shape(shape: tuple[int, ...], place: str) -> None:
    """Extents are countable and so is their product."""
    if len(shape) > MAX_RANK:
        raise DamagedError(f"{place} has {len(shape)} axes, at most {MAX_RANK} are possible")
    if any(extent < 0 for extent in shape):
        raise DamagedError(f"{place} has the negative extent {min(shape)}")
    if prod(shape) > ir.MAX_ELEMENTS:
        raise DamagedError(f"{place} has {prod(shape)} elements, more than {ir.MAX_ELEMENTS}")


def _quantization(table: Table | None, place: str) -> QuantizationRecord:
    """Scales and zero points, as many of the one as of the other."""
    if table is None:
        return QuantizationRecord()
    scales, zero_points = table.numbers(2, "<f4"), table.numbers(3, "<i8")
    if zero_points and len(zero_points) != len(scales):
        raise DamagedError(f"{place} has {len(scales)} scales and {len(zero_points)} zero points")
    return QuantizationRecord(scales, zero_points or (0,) * len(scales), table.integer(6, "i"))


def _with_blocks(
    tensor: TensorRecord, table: Table, tensors: Sequence[TensorRecord], buffers: Sequence[memoryview]
) -> TensorRecord:
    """A tensor with the scales of its blocks, which are another tensor, of float16."""
    quantization = table.table(4)
    if quantization is None or quantization.integer(4, "B") != _BLOCKS:
        return tensor
    details = quantization.table(5)
    index, size = (details.integer(0), details.integer(2)) if details is not None else (-1, 0)
    scales = tensors[index] if 0 <= index < len(tensors) else None
    if scales is None or scales.element_type != "FLOAT16" or not scales.has_values:
        raise DamagedError(f"the scales of the blocks of {tensor.label} are tensor {index}, which has none")
    values = STORED["FLOAT16"].widen(buffers[scales.buffer])
    blocks = BlocksRecord(size, values)
    return replace(tensor, quantization=replace(tensor.quantization, blocks=blocks))


def _operator(index: int, table: Table, codes: list[str]) -> OperatorRecord:
    """One operator; but for the name of a variable, its options are decoded by its converter."""
    code = table.integer(0, "I")
    if code >= len(codes):
        raise DamagedError(f"operator {index} has code {code} of {len(codes)}")
    # Younger options are in a union of their own.
    number, union, slot = table.integer(3, "B"), "BuiltinOptions", 4
    if not number:
        number, union, slot = table.integer(11, "B"), "BuiltinOptions2", 12
    options = table.table(slot) if number else None
    return OperatorRecord(
        index=index,
        kind=codes[code],
        inputs=table.numbers(1, "<i4"),
        outputs=table.numbers(2, "<i4"),
        options_type=schema_names(union).get(number) if options is not None else None,
        options=options,
        intermediates=table.numbers(8, "<i4"),
        custom_options=bytes(table.content(5)) if codes[code].startswith(CUSTOM) else b"",
        variable=_variable(options) if options is not None and codes[code] == "VAR_HANDLE" else "",
    )


def _variable(options: Table) -> str:
    """What the options of a VAR_HANDLE call it."""
    return "/".join(filter(None, (options.string(0), options.string(1))))


def _check_references(model: ModelRecord) -> None:
    """Every tensor index exists; only operands may be left out."""
    uses = [
        (f"operator {each.label} uses", (*each.operands, *each.outputs, *each.intermediates))
        for each in model.operators
    ]
    uses += [("an input of the model is", model.inputs), ("an output of the model is", model.outputs)]
    for what, indices in uses:
        for index in indices:
            if not 0 <= index < len(model.tensors):
                raise DamagedError(f"{what} tensor {index} of {len(model.tensors)}")


def _check_definitions(model: ModelRecord) -> None:
    """Each tensor is defined once, before its first use: so there are no cycles."""
    defined = {tensor.index for tensor in model.tensors if tensor.has_values}
    for index in model.inputs:
        if index in defined:
            kind = "twice" if model.inputs.count(index) > 1 else "and a constant"
            raise DamagedError(f"{model.tensors[index].label} is an input {kind}")
        defined.add(index)
    for operator in model.operators:
        for index in operator.operands:
            tensor = model.tensors[index]
            if index not in defined and not tensor.is_variable:
                raise DamagedError(f"operator {operator.label} uses {tensor.label} before it is computed")
        for index in operator.outputs:
            if index in defined:
                what = f"{model.tensors[index].label}, which has a value already"
                raise DamagedError(f"operator {operator.label} computes {what}")
            defined.add(index)
    for index in model.outputs:
        if index not in defined:
            raise DamagedError(f"output {model.tensors[index].label} is never computed")
