"""The names that the generated C has of its own, whatever is stored where: no kernel is called as one of them."""

from collections.abc import Iterable

from bytewright import ir
from bytewright.ir.analyses.hand_over import execute_function
from bytewright.ir.backend import backend_functions
from bytewright.ir.packed import packed_entry_names
from bytewright.naming.entry_forms import FORMS

# What functions of the entry's file compare memories of, each in a table.
WORKSPACE_TABLE, PARAMETER_TABLE, RUN_TABLE = _TABLES = ("workspaces", "parameters", "tensors")
_TABLES_OF_FORMS = tuple(table for form in FORMS for table in form.tables)
# Functions and types that files of the C have for themselves: to check memory and to request it,
OF_MEMORY = (
    *("first_error", "find_arena", "memory_span", "wraps", "share_bytes", "lies_within", "first_address"),
    *(name for table in (*_TABLES, *_TABLES_OF_FORMS) for name in (f"check_{table}", f"{table}_at")),
)
# to hand work over, on both sides,
RUN_STEPS = "run_steps"
_OF_HAND_OVERS = (
    *(RUN_STEPS, "lend", "lend_in", "hand_over", "device_use", "begin_devices", "end_devices"),
    *("needed_span", "check_spans", "copy"),
)
# and to take packed arguments.
_OF_PACKED_FORMS = ("check_arguments",)
# What no variable of a file is called that hands work to other devices.
NAMES_OF_HAND_OVERS = frozenset({"devices", "spans", "call", "uses", "status", *_OF_HAND_OVERS})
DEVICE_TYPES = ("span", "job", "device", "devices")
MODEL_FUNCTIONS = ("run", "set_workspaces", "set_parameters", "verify_parameters", "reset")
SELF_TEST = "self_test"
_OF_FORMS = tuple(function for form in FORMS for function in form.functions)
_PUBLIC_OF_FORMS = tuple(function.name for function in _OF_FORMS if not function.is_private)
_PRIVATE_OF_FORMS = tuple(function.name for function in _OF_FORMS if function.is_private)
# The function of an entry, its structures, the function that has its steps where there are devices, and its table.
ENTRY_SYMBOLS = ("{model}_{entry}", "{model}_{entry}_inputs", "{model}_{entry}_outputs")
ENTRY_FUNCTIONS = ("{entry}_steps", "{entry}_tensors", "check_{entry}_tensors", "{entry}_tensors_at")
MODEL_TYPES = ("inputs", "outputs", "context", "memory", "workspaces", "parameters", "copy", "arena")
# What a pool's name stands before, in names that link.
OF_POOLS = ("_workspace", "_state", "_parameters", "_parameters_load", "_header")


def symbols_of_model(model: str, inputs: Iterable[str], outputs: Iterable[str]) -> set[str]:
    """What the C of a model declares of its own that links or is a type, whatever its pools are; see `OF_POOLS`.

    Inputs and outputs are called as in C.
    """
    names = {
        f"{model}_{name}" for name in (*MODEL_FUNCTIONS, SELF_TEST, *_PUBLIC_OF_FORMS, *MODEL_TYPES)
    } | set(backend_functions(model))
    return (
        names | {f"{model}_input_{name}" for name in inputs} | {f"{model}_output_{name}" for name in outputs}
    )


def symbols_of_entries(model: str, entries: Iterable[str]) -> set[str]:
    """What it declares of each entry, where there are several."""
    return {
        form.format(model=model, entry=entry)
        for entry in entries
        for form in (*ENTRY_SYMBOLS, *ENTRY_FUNCTIONS)
    }


def symbols_of_devices(model: str, devices: Iterable[str]) -> set[str]:
    """What it declares besides for other devices, if there are any; devices are called as in C."""
    taking_part = tuple(devices)
    own = {f"{model}_{device}_{name}" for device in taking_part for name in ("call", "context")}
    own |= {execute_function(model, device) for device in taking_part}
    return own and own | {f"{model}_{name}" for name in DEVICE_TYPES}


def symbols_of_files(*, has_devices: bool) -> set[str]:
    """What files of the C declare for themselves, whatever the model is called."""
    return {*OF_MEMORY, *_PRIVATE_OF_FORMS, *(_OF_HAND_OVERS if has_devices else ())}


def symbols_of_packed_forms(module: ir.Module) -> set[str]:
    """What the C of packed forms declares beside those of kernels."""
    return {*packed_entry_names(module), argument_type(module.name), *_OF_PACKED_FORMS}


def argument_type(model: str) -> str:
    """The type of one packed argument."""
    return f"{model}_argument"
