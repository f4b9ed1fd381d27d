"""Lets the input come row by row: a step at the front copies rows of it to a tensor that everything else reads.

The tensor is one that a segment keeps as a ring, so that the image is whole nowhere, and the copy is a step like any
other: clock, planner and evaluator need not know that somebody else waits between its rows. What is asked of the
segment is that the copy runs as often as anything in it, first in the innermost loop; the code between two copies is
then what one row of the image lets happen.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import CompileError, compile_error
from bytewright.ir.analyses.rows import ROW_BEGIN, ROW_END
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.symbols import scalar_symbols
from bytewright.ir.walk import calls, definitions, named_buffers, regions
from bytewright.options import Options, Rows
from bytewright.storage.rows.steps import RowProgram, read_rows

CODE = "BW210"


def take_rows(module: ir.Module, options: Options) -> ir.Module:
    """Returns the module whose only input is read by a step that copies rows of it, and by nothing else.

    Raises:
        CompileError: BW210 if the model or the other options do not let rows be handed over one after another.
    """
    reason = next(_reasons(module), None)
    if reason is not None:
        raise refusal(module, reason)
    if options.rows is Rows.OFF:
        raise refusal(
            module, "with --rows off every layer needs all rows of its input at once", "--rows auto"
        )
    if options.entry_form is ir.Form.PACKED:
        raise refusal(
            module, "with --entry-form packed a run is one call, which has all rows", "--entry-form plain"
        )
    return _with_take(module)


def refusal(module: ir.Module, reason: str, help_text: str = "--io caller") -> CompileError:
    """The error that the input cannot come row by row."""
    return compile_error(
        CODE, f"model '{module.name}' cannot be given its input row by row: {reason}", help=help_text
    )


def without_segment(module: ir.Module) -> CompileError:
    """The same, where no segment of a module with that step takes the rows."""
    taken, front = taken_rows(module), calls(module.main)
    readers = [n for n, call in enumerate(front) if taken in _given(call)]
    reason = next(_reasons_of_devices(module, front[: max(readers) + 1]), None)
    return refusal(module, reason or "no layers at its front keep fewer rows than all")


def _reasons_of_devices(module: ir.Module, among: Iterable[ir.Call]) -> Iterator[str]:
    """Calls of other devices that would stand before the last row is there."""
    kernels, own = {kernel.name: kernel for kernel in module.kernels}, module.main.device
    for call in among:
        kernel = kernels.get(call.callee)
        if kernel is not None and kernel.device != own:
            yield (
                f"{_named(call)} runs on device '{kernel.device}' before the last row is read, and the devices beside "
                f"'{own}' are in use after that"
            )


def _given(call: ir.Call) -> list[str]:
    return [region.buffer.name for region in regions(call)]


def taken_rows(module: ir.Module) -> str:
    """The name of the tensor that `take_rows` made."""
    first = calls(module.main)[0]
    return next(a.buffer.name for a in reversed(first.arguments) if isinstance(a, ir.Region))


def _reasons(module: ir.Module) -> Iterator[str]:
    """Why the model itself does not let it."""
    inputs = ir.border_buffers(module.main, ir.Border.INPUT)
    if len(inputs) != 1:
        yield f"it has {len(inputs)} inputs, of which rows would have to come in turn"
        return
    symbols = [symbol.name for _, symbol in scalar_symbols(module.main) if symbol is not None]
    if symbols:
        yield f"a run is given '{symbols[0]}', and rows are given of one image whose extents are fixed"
    readers = [call for call in calls(module.main) if inputs[0].name in _given(call)]
    yield from _reasons_of_devices(module, readers)
    yield from _reasons_of_readers(module, read_rows(module), inputs[0].name)


def _reasons_of_readers(module: ir.Module, program: RowProgram, name: str) -> Iterator[str]:
    readers = [step for step in program.steps.values() if name in step.reads]
    num_uses = sum(buffer.name == name for buffer in named_buffers(module.main.body))
    if not num_uses:
        yield "nothing reads it"
    if num_uses != len(readers):
        by_rows = {step.number for step in readers}
        for number, call in enumerate(calls(module.main)):
            if name in _given(call) and number not in by_rows:
                yield f"{_named(call)} reads it otherwise than by a window of rows that moves downwards"
        yield "it is read otherwise than by a window of rows that moves downwards"
    if len({step.axes[name] for step in readers}) > 1:
        yield "its readers do not agree about what its rows are"


def _named(call: ir.Call) -> str:
    return f"step '{' + '.join(call.operators) or call.callee}'"


def _with_take(module: ir.Module) -> ir.Module:
    entry = module.main
    parameter = next(p for p in entry.buffer_parameters if ir.border_of(p) is ir.Border.INPUT)
    image = parameter.buffer
    reader = next(step for step in read_rows(module).steps.values() if image.name in step.reads)
    axis = reader.axes[image.name]
    taken = {definition.buffer.name for definition in definitions(entry)}
    taken |= {constant.buffer.name for constant in module.constant_buffers}
    tensor = replace(image, name=unique_name(f"{image.name}/rows", taken), alignment=image.dtype.size_bytes)
    body = rewrite_sequence(entry.body, Rewriting(buffer=lambda b: tensor if b.name == image.name else b))
    names = {function.name for function in (*module.kernels, *module.entries)}
    kernel = _copy(unique_name(f"{module.name}_take", names), image, axis, entry.device)
    scope = ir.join_scopes(ir.WORKSPACE, parameter.scope)
    reason = f"take_rows: {scope}, because the input comes row by row"
    allocation = ir.Allocate(tensor, ir.UNDECIDED.narrowed(reason, scope=scope))
    num_rows = ir.upper_bound(image.shape[axis])
    call = ir.Call(
        kernel.name,
        (ir.Region(image), ir.Region(tensor), ir.const(0), ir.const(num_rows)),
        ir.CallKind.EXTERN,
    )
    changed = replace(entry, body=ir.Seq((allocation, call, *body.statements)))
    return replace(module, kernels=(kernel, *module.kernels), entries=(changed,))


def _copy(name: str, image: ir.Buffer, axis: int, device: str) -> ir.PrimFunc:
    """The kernel `name(image, rows, row_begin, row_end)`."""
    source, destination = (
        replace(image, name=role, alignment=image.dtype.size_bytes) for role in ("image", "rows")
    )
    begin, end = (ir.Var(row, ir.DType.I32) for row in (ROW_BEGIN, ROW_END))
    indices = tuple(ir.Var("y" if i == axis else f"i{i}", ir.DType.I32) for i in range(len(image.shape)))
    at = tuple(ir.const(0) if i < axis else index for i, index in enumerate(indices))
    body: ir.Statement = ir.Store(destination, at, ir.Load(source, at))
    for i in reversed(range(axis + 1, len(image.shape))):
        body = ir.For(indices[i], ir.const(0), ir.const(ir.upper_bound(image.shape[i])), ir.Seq((body,)))
    body = ir.For(indices[axis], begin, end, ir.Seq((body,)))
    return ir.PrimFunc(
        name,
        (
            ir.BufferParameter(source, ir.Access.READ),
            ir.BufferParameter(destination, ir.Access.WRITE),
            *(ir.ScalarParameter(variable) for variable in (begin, end)),
        ),
        ir.Seq((body,)),
        device=device,
    )
