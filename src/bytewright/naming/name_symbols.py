"""Gives kernels and ports the names that they have in C: what links begins with the model's name, and nothing clashes.

Names of a model from a file are like that already. Those of IR by hand may be anything: a kernel called `int` becomes
`<model>_int`. Buffers keep their names, which pins and reports use; so do the extents that a run is given.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import c_name, is_c_name, model_name, unique_c_name, unique_name
from bytewright.diagnostics import compile_error
from bytewright.ir.analyses.hand_over import c_names_of_devices, devices_of
from bytewright.ir.externals import externals, own_kernels
from bytewright.ir.packed import PACKED_END, packed_calls, packed_entry_names, packed_stem
from bytewright.ir.rewrite import rename_callees
from bytewright.ir.symbols import symbols_of
from bytewright.ir.walk import calls
from bytewright.naming.operator_functions import FUNCTIONS
from bytewright.naming.symbols import (
    NAMES_OF_HAND_OVERS,
    OF_POOLS,
    symbols_of_devices,
    symbols_of_entries,
    symbols_of_files,
    symbols_of_model,
    symbols_of_packed_forms,
)

# Names of the functions that an extent is an argument of.
_OF_ARGUMENTS = frozenset(
    ("context", "inputs", "outputs", "index", "first", "second", "memory", "begin", "end", "shared")
)


def name_symbols(module: ir.Module, entry_form: ir.Form = ir.Form.PLAIN) -> ir.Module:
    """The module with the names of C.

    Args:
        module: Lowered.
        entry_form: Whether the run function has a packed form too, which has names of its own.

    Raises:
        CompileError: BW117, the model or an extent cannot be called so.
    """
    _check_model(module, entry_form)
    named = replace(
        module,
        inputs=_with_members(module.inputs, ir.Border.INPUT),
        outputs=_with_members(module.outputs, ir.Border.OUTPUT),
        state=_with_members(module.state, ir.Border.STATE),
    )
    packed = _of_packed_forms(named, entry_form)
    _check_externals(named, packed)
    renamed = {old: new for old, new in _kernel_names(named, packed).items() if old != new}
    return _with_kernels(named, renamed) if renamed else named


def taken_names(module: ir.Module, entry_form: ir.Form = ir.Form.PLAIN) -> set[str]:
    """Names that a kernel may not have which a later pass adds to a module with the names of C."""
    packed = _of_packed_forms(module, entry_form)
    own = {kernel.symbol for kernel in module.kernels}
    if packed:  # the packed form of the new kernel would be called as one of these
        packed |= {name.removesuffix(PACKED_END) for name in packed | own}
    return own | packed | _symbols(module)


def _check_model(module: ir.Module, entry_form: ir.Form) -> None:
    if module.name != model_name(module.name):
        message = (
            f"a model cannot be called '{module.name}': files, names and macros in C are called after it"
        )
        raise compile_error("BW117", message, help=f"module {model_name(module.name)}")
    _check_entries(module, entry_form)
    taken = _OF_ARGUMENTS | NAMES_OF_HAND_OVERS
    for name in (name for entry in module.entries for name in symbols_of(entry)):
        if not is_c_name(name) or name in (taken if devices_of(module) else _OF_ARGUMENTS):
            message = f"an extent cannot be called '{name}': the run function has an argument of its name"
            raise compile_error("BW117", message, help=f"call it {c_name(name, 'extent')}_extent")


def _check_entries(module: ir.Module, entry_form: ir.Form) -> None:
    """Several entries have functions of their names, and packed forms of these."""
    if len(module.entries) == 1:
        return
    ports = ([port.name for port in border] for border in (module.inputs, module.outputs))
    c_names = c_names_of_devices(module)
    devices = [c_names[device] for device in devices_of(module)]
    taken = symbols_of_model(module.name, *ports) | symbols_of_devices(module.name, devices)
    taken |= symbols_of_files(has_devices=bool(devices))
    for entry, packed in zip(module.entries, packed_entry_names(module), strict=True):
        own = symbols_of_entries(module.name, [entry.name])
        own |= {packed} if entry_form is ir.Form.PACKED else set[str]()
        if not is_c_name(entry.name) or own & taken:
            what = "the C has names made of that" if is_c_name(entry.name) else "it is no name in C"
            message = f"an entry cannot be called '{entry.name}': {what}"
            help_text = (
                f"call it {c_name(entry.name, 'entry')}_entry; a signature of a file can be compiled alone"
            )
            raise compile_error("BW117", message, help=help_text)
        taken |= own


def _of_packed_forms(module: ir.Module, entry_form: ir.Form) -> set[str]:
    """Names that packed forms take, where there are any; those of the module's own kernels follow from theirs."""
    calls_packed = {call.callee for entry in module.entries for call in packed_calls(entry)}
    if not calls_packed and entry_form is ir.Form.PLAIN:
        return set()
    called = [kernel for kernel in externals(module) if kernel.name in calls_packed]
    stems = {packed_stem(module.name, kernel) for kernel in called}
    return symbols_of_packed_forms(module) | stems | {f"{stem}{PACKED_END}" for stem in stems}


def _check_externals(module: ir.Module, packed: set[str]) -> None:
    """The application's functions are called as they are."""
    taken = _symbols(module) | packed
    for function in externals(module):
        name = function.symbol
        if not is_c_name(name) or name in taken:
            what = "the model has one" if name in taken else "C has another meaning for that name"
            message = f"a function of the application cannot be called '{name}': {what}"
            where = str(function.where)
            raise compile_error("BW117", message, help=f"call it app_{name.removeprefix('_')}", where=where)


def _with_members(ports: tuple[ir.Port, ...], border: ir.Border) -> tuple[ir.Port, ...]:
    """Inputs, outputs or states, called as members of a structure can be; one whose name is taken gets a number."""
    taken: set[str] = set()
    found: list[ir.Port] = []
    for position, port in enumerate(ports):
        wanted = port.name if is_c_name(port.name) else c_name(port.name, f"{border.value}_{position}")
        name = unique_name(wanted, taken)
        stated = port.stated if name == wanted else port.name
        found.append(replace(port, name=name, stated=stated))
    return tuple(found)


def _kernel_names(module: ir.Module, packed: set[str]) -> dict[str, str]:
    """The C function of each kernel; functions that are called and not defined keep their names."""
    front = f"{module.name}_"
    ends = (*OF_POOLS, PACKED_END) if packed else OF_POOLS
    wanted: dict[str, str] = {}
    for name in (kernel.name for kernel in own_kernels(module)):
        is_own = name.startswith(front) and is_c_name(name) and not name.endswith(ends)
        wanted[name] = name if is_own else front + c_name(name.removeprefix(front), "kernel")
        if wanted[name].endswith(ends):
            wanted[name] += "_kernel"
    callees = {call.callee for function in (*module.kernels, *module.entries) for call in calls(function)}
    symbols = {function.symbol for function in externals(module)}
    taken = (callees - wanted.keys()) | symbols | _symbols(module) | packed
    if packed:  # a function of the application may be called as the packed form of a kernel would be
        taken |= {symbol.removesuffix(PACKED_END) for symbol in symbols}
    # Those that stay as they are come first, so that no other takes their names.
    in_turn = sorted(wanted, key=lambda name: name != wanted[name] or name in taken)
    return {name: unique_c_name(wanted[name], taken) for name in in_turn}


def _symbols(module: ir.Module) -> set[str]:
    """What the generated C declares of its own that links, is a type, or is called in expressions."""
    ports = ([port.name for port in border] for border in (module.inputs, module.outputs))
    c_names = c_names_of_devices(module)
    devices = [c_names[device] for device in devices_of(module)]
    entries = [entry.name for entry in module.entries] if len(module.entries) > 1 else []
    own = symbols_of_model(module.name, *ports) | symbols_of_devices(module.name, devices)
    own |= symbols_of_entries(module.name, entries)
    return own | symbols_of_files(has_devices=bool(devices)) | set(FUNCTIONS)


def _with_kernels(module: ir.Module, names: dict[str, str]) -> ir.Module:
    def renamed(function: ir.PrimFunc) -> ir.PrimFunc:
        return replace(rename_callees(function, names), name=names.get(function.name, function.name))

    kernels, entries = (tuple(map(renamed, functions)) for functions in (module.kernels, module.entries))
    return replace(module, kernels=kernels, entries=entries)
