"""Whether the jobs that the entry hands to other devices are those of the plan: which kernel, on what, and how."""

from collections.abc import Iterator, Sequence

from pycparser import c_ast

from bytewright import ir
from bytewright.inspect.c_nodes import form_of, integer_of, most_bytes, spell
from bytewright.inspect.c_numbers import Numbers
from bytewright.inspect.c_source import CSource
from bytewright.inspect.read_entry import CallText, JobText, SpanText, read_place
from bytewright.ir.analyses.number_texts import scaled
from bytewright.record.buffers import BufferRole, PlaceKind, PlannedBuffer
from bytewright.record.entries import PlannedSpan, PlannedStep
from bytewright.record.names import Names
from bytewright.record.plan import Plan

_ELEMENT_BYTES = {
    **{f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float": 4,
    "double": 8,
}


def faults_of_jobs(plan: Plan) -> Iterator[str]:
    """Jobs of a plan that are not of what their steps touch, or run over its end."""
    for step in plan.steps:
        if step.device not in plan.devices:
            if step.spans:
                yield f"step {step.index} runs on '{step.device}' and has a job"
            continue
        known = [plan.buffers[name] for name in step.touched if name in plan.buffers]
        touched = {buffer.name: buffer for buffer in known if buffer.role is not BufferRole.ARENA}
        given = {span.buffer for span in step.spans}
        for name in [name for name in touched if name not in given]:
            yield f"step {step.index} touches '{name}', which its job is not given"
        for span in step.spans:
            buffer = touched.get(span.buffer)
            if buffer is not None and step.device not in buffer.devices:
                yield f"step {step.index} gives '{span.buffer}' to '{step.device}', which does not touch it"
            if buffer is None:
                yield f"the job of step {step.index} is given '{span.buffer}', which the step does not touch"
            elif not _is_inside(span, buffer):
                yield f"the job of step {step.index} runs over the end of '{span.buffer}'"
            elif span.buffer not in step.scratch:
                for may, names in ((ir.Access.READ, step.reads), (ir.Access.WRITE, step.writes)):
                    if may.value in span.access.value and span.buffer not in names:
                        yield f"the job of step {step.index} may access '{span.buffer}' as '{may.value}'"


def _is_inside(span: PlannedSpan, buffer: PlannedBuffer) -> bool:
    """Whether a span is a part of its buffer, as far as its numbers say; the kernels of a model are within theirs."""
    offset = span.offset if isinstance(span.offset, int) else 0
    return 0 <= offset <= buffer.size_bytes - (span.size_bytes or 0)


def differences_of_hand_overs(
    path: str, source: CSource, names: Names, calls: Sequence[CallText]
) -> Iterator[str]:
    """What the calls do not show: hand-overs that are none of them, and steps that are not run once."""
    if not names.has_devices:
        return
    num_jobs = sum(call.job is not None for call in calls)
    num_found = sum(source.num_named(word, names.step_functions) for word in ("hand_over", "launch", "wait"))
    if num_jobs != num_found:
        yield f"{path} hands over {num_found} jobs, {num_jobs} of them as they are generated"
    num_runs = source.words.count(names.steps) - 1  # the definition's
    if num_runs != 1:
        yield f"{path} runs the steps {num_runs} times, not once"


def differences_of_job(
    plan: Plan, names: Names, step: PlannedStep, job: JobText, known: Numbers
) -> Iterator[str]:
    """How a job differs from its step: device, kernel with its numbers, code, and each span.

    `known` says what names of numbers stand for.
    """
    device = plan.devices[step.device]
    if job.device != device.c_name:
        yield f"the job is handed to '{job.device}', not to '{device.c_name}'"
    kernels = [kernel for kernel in device.kernels if kernel.name == step.kernel]
    if not kernels:
        yield f"the plan's device '{device.name}' has no kernel '{step.kernel}'"
        return
    planned, given = list(step.spans), list(job.spans)
    stated = (spell(job.code), spell(job.code_bytes))
    match kernels[0].job:
        case None:
            if job.kernel not in [kernel.number for kernel in kernels]:
                yield f"the job is of kernel {job.kernel}, not of {kernels[0].number}, '{step.kernel}'"
            yield from _differences_of_scalars(step, job, known)
            code = (names.call_type(device), "&call", "(uint32_t)sizeof(call)")
        case ir.Job.COPY:
            code = (None, "NULL", "0u")
        case ir.Job.STREAM:
            code = (None, *stated)
            place = read_place(job.code, names)
            stream = None if place is None else SpanText(place, job.code_bytes, (names.span_read,))
            given.insert(0, stream)
    if (job.call_type, *stated) != code:
        yield f"the job's code is not that of a job of '{step.kernel}'"
    if job.num_spans != f"{len(job.spans)}u" or len(given) != len(planned):
        yield f"the job has {len(given)} spans and says {job.num_spans}, the plan has {len(planned)}"
        return
    for index, (text, span) in enumerate(zip(given, planned, strict=True)):
        if text is None:
            yield f"span {index} is not written as it is generated"
        else:
            for what in _differences_of_span(plan, names, text, span, known):
                yield f"span {index}, of '{span.buffer}': {what}"


def _differences_of_scalars(step: PlannedStep, job: JobText, known: Numbers) -> Iterator[str]:
    """The numbers of a job are its kernel's; those of kernels that are given more follow, and are 0."""
    given = [known.passed(text) for text in job.scalars]
    num_planned = len(step.scalars)
    padded = [*step.scalars, *[0] * (len(given) - num_planned)]
    if given != padded:
        written = [
            ", ".join("changing" if n is None else str(n) for n in numbers) for numbers in (given, padded)
        ]
        yield f"the job's numbers are {{{written[0]}}}, in the plan {{{written[1]}}}"


def _differences_of_span(
    plan: Plan, names: Names, text: SpanText, span: PlannedSpan, known: Numbers
) -> Iterator[str]:
    buffer = plan.buffers.get(span.buffer)
    if buffer is None:
        return  # the plan is refused for that
    address, memory = names.argument(buffer), None
    place = text.place
    element_bytes = 1 if place.element is None else _ELEMENT_BYTES.get(place.element, 0)
    pool = plan.pools.get(buffer.place.name) if buffer.has_offset else None
    if pool is not None and pool.obtained_by is not None:
        memory = names.device_memory(pool)
    elif pool is not None:
        address = f"{names.base(pool)} + {address}"
    elif buffer.place.kind is PlaceKind.CALLER and place.element is None and buffer.dtype is not None:
        element_bytes = buffer.dtype.size_bytes
    if text.memory != memory:
        yield f"it is in memory '{text.memory}', not in '{memory}'"
    if place.address != address:
        yield f"it begins at '{place.address}', not at '{address}'"
    offset = 0 if place.index is None else _offset_of(place.index, element_bytes, known)
    if offset != span.offset:
        yield f"it begins {_bytes(offset)} into it, in the plan {_bytes(span.offset)}"
    size_bytes = most_bytes(text.size, {symbol.name: symbol.upper for symbol in plan.symbols})
    if size_bytes != span.size_bytes:
        yield f"it has {_bytes(size_bytes)}, in the plan {_bytes(span.size_bytes)}"
    access = {
        ir.Access.READ: (names.span_read,),
        ir.Access.WRITE: (names.span_write,),
        ir.Access.READ_WRITE: (names.span_read, names.span_write),
    }[span.access]
    if text.access != access:
        yield f"its access is '{' | '.join(text.access)}', in the plan '{' | '.join(access)}'"


def _offset_of(index: c_ast.Node, element_bytes: int, known: Numbers) -> int | str | None:
    """How far into its buffer an element lies, in bytes; None if that is no number."""
    form = form_of(index, known.forms, known.others)
    if form is not None:
        return form.times(element_bytes).written
    if element_bytes == 1 and isinstance(index, c_ast.BinaryOp) and index.op == "*":  # of what has no address
        factor = integer_of(index.left)
        index, element_bytes = (index, 1) if factor is None else (index.right, factor)
    found = known.text(index)
    return None if found is None else scaled(found, element_bytes)


def _bytes(number: int | str | None) -> str:
    return "a number of bytes that changes" if number is None else f"{number} B"
