"""What a program must keep to on its way in, beside the rules that hold between passes (`stages.py`).

Passes keep these by construction, so they are checked once: the entry hands buffers from kernel to kernel and touches
none itself, but for truth values that it branches on; its parameters are the model's inputs and outputs, constants are
constants, and loops that are unrolled have an end. Apart stands what the rules admit and no C text exists for yet.
"""

from collections.abc import Iterable, Iterator, Mapping

from bytewright import ir
from bytewright.ir.symbols import buffers_of, symbols_of
from bytewright.ir.verify.violation import HANDED_ON, NO_CODE, NOT_YET, Violation
from bytewright.ir.walk import (
    blocks,
    condition_buffer,
    definitions,
    loaded_buffers,
    statements_of,
    stored_buffers,
)
from bytewright.target.model import Role, Target

# Statements that one unrolled loop may become, those of the unrolled loops in it included.
MAX_UNROLLED = 1 << 14
_WIDE = frozenset({ir.DType.I64, ir.DType.F32, ir.DType.F64})
_IN_A_KERNEL = "do it in a kernel, and call that"
_READS = "the entry reads memory itself; it only calls kernels, and branches on a buffer of one truth value"
_SERIAL = "leave the word out: the steps of the entry run one after the other"


def program_violations(module: ir.Module, target: Target) -> tuple[Violation, ...]:
    """Every rule of programs that a module breaks which keeps to those between passes."""
    if not module.entries:
        return (Violation(None, module, "the module has no entry; a program has one at least"),)
    found = [*_of_module(module, target), *_of_several(module)]
    for alone in ir.entries_alone(module):
        found.extend(_of_entry(alone))
    for function in (*module.kernels, *module.entries):
        found.extend(_of_unrolled(function))
    return tuple(found)


def _of_several(module: ir.Module) -> Iterator[Violation]:
    """Several entries share a device, their states, and what is on the application's side."""
    if len(module.entries) < 2:
        return
    first, *others = module.entries
    states = ir.border_buffers(first, ir.Border.STATE)
    for entry in others:
        if entry.device != first.device:
            text = f"entry '{entry.name}' runs on '{entry.device}', entry '{first.name}' on '{first.device}'"
            yield Violation(entry, entry, text, f"on {first.device}")
        own = ir.border_buffers(entry, ir.Border.STATE)
        if [state.name for state in own] != [state.name for state in states]:
            text = f"entry '{entry.name}' allocates the states {_listed(own)}, entry '{first.name}' {_listed(states)}"
            yield Violation(
                entry, entry, text, "the same states in the same order, also those that it leaves alone"
            )
    kept, symbols = {state.name for state in states}, dict[str, ir.Symbol]()
    for entry in module.entries:
        for symbol in symbols_of(entry).values():
            known = symbols.setdefault(symbol.name, symbol)
            if known != symbol:
                text = f"extent '{symbol.name}' of entry '{entry.name}' is {symbol.lower} to {symbol.upper}, "
                text += f"of another entry {known.lower} to {known.upper}"
                yield Violation(entry, entry, text, f"the same bounds, or another name than {symbol.name}")
        for definition in definitions(entry):
            is_state = ir.border_of(definition) is ir.Border.STATE
            if definition.buffer.name in kept and not is_state:
                text = f"'{definition.buffer.name}' of entry '{entry.name}' has the name of a state"
                yield Violation(entry, definition, text, "rename one of them")
    if len({ir.allocates_border(entry) for entry in module.entries if _has_ports(entry)}) > 1:
        text = "some entries allocate their inputs and outputs, and others are given them"
        yield Violation(None, module, text, "let all of them do either")


def _has_ports(entry: ir.PrimFunc) -> bool:
    return any(ir.border_buffers(entry, side) for side in ir.SIDES)


def _listed(buffers: Iterable[ir.Buffer]) -> str:
    return ", ".join(f"'{buffer.name}'" for buffer in buffers) or "(none)"


def _of_entry(module: ir.Module) -> Iterator[Violation]:
    """What breaks a rule in the entry of a module of one."""
    entry, symbols = module.main, symbols_of(module.main)
    for parameter in entry.parameters:
        for text, help_text in _parameter_faults(parameter, symbols):
            yield Violation(entry, parameter, text, help_text)
    yield from _of_ports(module)
    constants = {constant.buffer.name for constant in module.constant_buffers}
    for statement in statements_of(entry):
        condition = condition_buffer(statement)
        if condition is not None and condition.name in constants:
            text = f"the entry branches on constant '{condition.name}', which is always the same"
            yield Violation(entry, statement, text, "leave out the side that is never taken")
        for text, help_text in _entry_statement_faults(statement):
            yield Violation(entry, statement, text, help_text)


def _of_module(module: ir.Module, target: Target) -> Iterator[Violation]:
    defined = {buffer.name for entry in module.entries for buffer in buffers_of(entry)}
    for constant in module.constant_buffers:
        name, scope = constant.buffer.name, constant.scope
        if name in defined:
            text = f"constant '{name}' has the name of a buffer of the entry"
            yield Violation(None, constant, text, "rename one of them")
        pool = target.find_pool(constant.storage.pool or "")
        is_elsewhere = scope is not None and (
            scope.rank is not ir.Rank.GLOBAL
            or scope in (ir.WORKSPACE, ir.STACK)
            or (pool is not None and pool.role is not Role.PARAMETERS)
        )
        if is_elsewhere:
            pools = [f"global.{pool.name}" for pool in target.parameter_pools]
            text = f"constant '{name}' has scope '{scope}', but constants lie in parameter pools"
            yield Violation(None, constant, text, f"one of the scopes {', '.join(['global', *pools])}")


def _parameter_faults(parameter: ir.Parameter, symbols: Mapping[str, ir.Symbol]) -> Iterator[tuple[str, str]]:
    """What is wrong with a parameter of the entry, and what to do."""
    match parameter:
        case ir.ScalarParameter(variable=variable):
            if variable.name not in symbols:
                text = f"scalar '{variable.name}' of the entry is the extent of none of its buffers"
                yield text, "pass what it stands for to the kernels as a number"
        case ir.BufferParameter(buffer=buffer, access=access, role=role):
            if role is not ir.ParameterRole.ACTIVATION:
                text = f"'{buffer.name}' of the entry is a {role.value}, not an input or output"
                yield text, "make it an activation, or allocate it in the entry"
            if access is ir.Access.READ_WRITE:
                text = f"'{buffer.name}' of the entry is read and written; an input is r, an output w"
                yield (
                    text,
                    'two parameters, one of them r and one w; what survives runs is allocated, with io = "state"',
                )
        case ir.ContextParameter(name=name):
            text = f"'{name}' of the entry is a context, but the entry has those of all devices"
            yield text, "leave it out, and pass context_of(DEVICE) to the kernels"


def _of_ports(module: ir.Module) -> Iterator[Violation]:
    """The border that is stated is what the entry has, in its order."""
    entry = module.main
    for border in ir.SIDES:
        ports, buffers = module.ports(border), ir.border_buffers(entry, border)
        if len(buffers) != len(ports):
            text = f"the module states {len(ports)} {border.value}s, its entry has {len(buffers)}"
            yield Violation(entry, entry, text)
            continue
        for port, buffer in zip(ports, buffers, strict=True):
            if (port.type.shape, port.type.dtype) != (buffer.shape, buffer.dtype):
                text = f"{border.value} '{port.name}' is {_described(port.type)}, '{buffer.name}' of the entry is "
                found = _described(ir.TensorType(buffer.shape, buffer.dtype))
                yield Violation(entry, entry, f"{text}{found}")


def _described(kind: ir.TensorType) -> str:
    return f"{ir.format_shape(kind.shape)}x{kind.dtype.value}".removeprefix("x")


def _entry_statement_faults(statement: ir.Statement) -> Iterator[tuple[str, str]]:
    """What the entry does that only a kernel may, and what to do instead."""
    stored = stored_buffers(statement)
    if stored or isinstance(statement, ir.View):
        does = "stores to" if stored else "makes a view of"
        yield f"the entry {does} memory itself; it only calls kernels", _IN_A_KERNEL
    match statement:
        case ir.For(kind=kind, variable=variable):
            if kind in (ir.LoopKind.PARALLEL, ir.LoopKind.VECTORISED):
                yield f"the loop over '{variable.name}' in the entry is {kind.value}", _SERIAL
        case ir.Allocate(buffer=buffer, scope=scope):
            if statement.storage.arena is not None:
                text = f"'{buffer.name}' has an arena already, and what is requested is still to be decided"
                yield text, "leave it out, or print the module after attach_candidates"
            if scope is not None and scope.rank is not ir.Rank.GLOBAL:
                text = f"'{buffer.name}' of the entry has scope '{scope}', but is passed to kernels"
                yield text, "the scope global.workspace, or allocate it in the kernel"
        case _:
            pass
    if loaded_buffers(statement) and not stored and not condition_buffer(statement):
        yield _READS, _IN_A_KERNEL


def _of_unrolled(function: ir.PrimFunc) -> Iterator[Violation]:
    """Unrolled loops become a number of statements that a compiler can bear."""
    for statement in statements_of(function):
        if isinstance(statement, ir.For) and statement.kind is ir.LoopKind.UNROLLED:
            num_statements = _num_unrolled(statement)
            if num_statements > MAX_UNROLLED:
                text = f"the loop over '{statement.variable.name}' unrolls to {num_statements} statements"
                yield Violation(
                    function, statement, f"{text}, more than {MAX_UNROLLED}", "a loop of kind serial"
                )
                return


def _num_unrolled(statement: ir.Statement) -> int:
    inside = [s for block in blocks(statement) for s in block.statements]
    own = 1 + sum(_num_unrolled(inner) for inner in inside)
    if not isinstance(statement, ir.For) or statement.kind is not ir.LoopKind.UNROLLED:
        return own
    if not isinstance(statement.begin, ir.Const) or not isinstance(statement.end, ir.Const):
        return own
    return own * max(0, int(statement.end.value) - int(statement.begin.value))


def _without_code(function: ir.PrimFunc, entry_device: str, target: Target) -> Iterator[Violation]:
    """What a function that is handed to another device asks for and no driver could be told."""
    name, device = function.name, target.device(function.device)
    if device.name == entry_device or function.job is ir.Job.STREAM:
        return
    if function.job is None and not device.runs_c:
        text = f"kernel '{name}' is for device '{device.name}', which runs no C"
        yield Violation(function, function, text, f"job(copy) or job(stream), or on {entry_device}", NO_CODE)
    if function.job is ir.Job.COPY and not device.copies:
        text = (
            f"kernel '{name}' is a copy, and the driver of device '{device.name}' takes command streams alone"
        )
        yield Violation(function, function, text, "a device that copies", NO_CODE)
    if not function.buffer_parameters:
        text = f"kernel '{name}' has no buffer, so nothing that device '{device.name}' does in it reaches the model"
        yield Violation(function, function, text, "leave it out, or give it a buffer", NO_CODE)
    for parameter in function.parameters:
        if isinstance(parameter, ir.ScalarParameter) and parameter.variable.dtype in _WIDE:
            kind = parameter.variable.dtype.value
            text = f"'{parameter.name}' of '{name}' is {kind}, but device '{device.name}' is handed numbers of i32"
            yield Violation(function, parameter, text, "pass it in a buffer", NO_CODE)


def missing_text(module: ir.Module, target: Target) -> tuple[Violation, ...]:
    """What a program may say and no C text exists for yet."""
    found: list[Violation] = []
    kernels = {kernel.name: kernel for kernel in module.kernels}
    device = module.entry_device
    for function in (*module.kernels, *module.entries):
        found.extend(_without_code(function, device, target))
        for statement in statements_of(function):
            if not isinstance(statement, ir.Call):
                continue
            callee = kernels.get(statement.callee)
            if function not in module.entries and callee is not None and callee.device != function.device:
                text = f"'{callee.name}' runs on device '{callee.device}', its caller on '{function.device}'"
                help_text = "call it from the entry, which alone hands work to other devices"
                found.append(Violation(function, statement, text, help_text, HANDED_ON))
            if statement.kind is ir.CallKind.PACKED:
                text = f"'{statement.callee}' is called by call_packed, but no registry is given to a run"
                help_text = f"call_{'cpacked' if function in module.entries else 'extern'}"
                found.append(Violation(function, statement, text, help_text, NOT_YET))
            elif statement.kind is ir.CallKind.CPACKED and function not in module.entries:
                text = (
                    f"'{statement.callee}' is called by call_cpacked in a kernel, which returns nothing and so cannot "
                    "pass on what a packed call returns"
                )
                found.append(Violation(function, statement, text, "call_extern", NOT_YET))
            elif statement.callee not in kernels:
                text = f"there is no kernel '{statement.callee}'"
                help_text = (
                    f"define it, or declare it: extern {statement.callee}(...) on {device} stack=BYTES"
                )
                found.append(Violation(function, statement, text, help_text, NOT_YET))
    return tuple(found)
