"""Every name of a bundle: its files, and of its C the functions, types, macros, enumerators, members and variables.

They are made here and nowhere else. Code generation writes them, the bundle has files of these names, and runs and
checks look for them. That no two are alike is looked at apart (`check_names.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial

from bytewright import ir
from bytewright.base.c_names import c_identifier
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.ir.analyses.hand_over import execute_function
from bytewright.ir.backend import backend_functions
from bytewright.ir.packed import PACKED_END
from bytewright.naming.entry_forms import RUN, EntryForm, EntryFunction
from bytewright.naming.symbols import (
    DEVICE_TYPES,
    ENTRY_FUNCTIONS,
    ENTRY_SYMBOLS,
    MODEL_FUNCTIONS,
    MODEL_TYPES,
    NAMES_OF_HAND_OVERS,
    OF_MEMORY,
    RUN_STEPS,
    RUN_TABLE,
    SELF_TEST,
    argument_type,
)
from bytewright.record.buffers import BufferRole, PlaceKind, PlannedBuffer, PlannedPool
from bytewright.record.devices import PlannedDevice
from bytewright.record.entries import PlannedTensor
from bytewright.record.plan import Plan

CMAKE_FILE = "CMakeLists.txt"
GLUE_FOLDER = "glue/"  # C that needs headers of others, so that it is no part of the library
# Variables of the run function that hold what it requested begin with this.
MAX_NAMED = 8  # workspaces that each step names; more have one name together
REQUEST = "request_"
# What no variable of the entry's file is called: these, and the arguments of its functions.
_OF_THE_FILE = frozenset({"context", "inputs", "outputs", "shared", "request_status", *OF_MEMORY})
# Of a model with state: whether that has its value before the first run, or one that came of it.
MEMBER_OF_STATE = "is_reset"
# What the run function has besides if it packs arguments.
_OF_PACKED_CALLS = ("packed_arguments", "packed_codes", "packed_status")
# What the header of packed forms says of an argument.
ARGUMENT_CODES = ("INT", "FLOAT", "POINTER", "NONE")
# The error of a run whose data asks for more than there is room for.
BOUND = "BOUND"
# What the header says of each input and output.
TENSOR_MACROS = ("SIZE", "ELEMENTS", "RANK", "SHAPE", "SCALE", "ZERO_POINT")
LINES_MACRO = (
    "LINES_SIZE"  # of one that has its cache lines to itself: bytes of its array, up to the end of a line
)
VERSION_PARTS = ("MAJOR", "MINOR", "PATCH")
_PLAIN_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*(/[a-z0-9]+(_[a-z0-9]+)*)*")


@dataclass(frozen=True, slots=True)
class _Formed:
    """A name that follows from the model's: its text, with `{model}`, or `{prefix}`, which is that in capitals."""

    text: str

    def __get__(self, names: Names, owner: type[Names]) -> str:
        return self.text.format(model=names.model, prefix=names.prefix)


@dataclass(frozen=True, slots=True)
class _OfPool:
    """A name of each pool: its text, with `{pool}` and `{role}` for the pool's, and all in capitals, too."""

    text: str

    def __get__(self, names: Names, owner: type[Names]) -> Callable[[PlannedPool], str]:
        return partial(self._formed, names)

    def _formed(self, names: Names, pool: PlannedPool) -> str:
        name, role = pool.c_name, pool.role
        capitals = {"POOL": name.upper(), "ROLE": role.name}
        return self.text.format(
            model=names.model, prefix=names.prefix, pool=name, role=role.value, **capitals
        )


class Names:
    """The names of one bundle; `kws` and `KWS` stand for the model below."""

    # Files, by their paths in the bundle
    header = _Formed("include/{model}.h")
    externals_header = _Formed("include/{model}_externals.h")
    entry_source = _Formed("src/{model}.c")
    kernels_header = _Formed("src/{model}_kernels.h")
    kernels_source = _Formed("src/{model}_kernels.c")
    parameters_source = _Formed("src/{model}_parameters.c")
    backend_source = _Formed("src/{model}_backend.c")
    self_test_header = _Formed("include/{model}_self_test.h")
    self_test_source = _Formed("src/{model}_self_test.c")
    packed_header = _Formed("include/{model}_packed.h")
    packed_source = _Formed("src/{model}_packed.c")
    ethos_u_header = _Formed(GLUE_FOLDER + "{model}_ethos_u.h")
    ethos_u_source = _Formed(GLUE_FOLDER + "{model}_ethos_u.c")
    sections_file = _Formed("{model}_sections.ld")
    # Functions, variables and types
    set_workspaces, set_parameters, verify_parameters, reset = (
        _Formed("{model}_" + name) for name in MODEL_FUNCTIONS[1:]
    )
    context_type, memory_type, workspaces_type, parameters_type, copy_type, arena_type = (
        _Formed("{model}_" + name) for name in MODEL_TYPES[2:]
    )
    span_type, job_type, device_type, devices_type = (_Formed("{model}_" + name) for name in DEVICE_TYPES)
    self_test = _Formed("{model}_" + SELF_TEST)
    ethos_u_state = _Formed("{model}_ethos_u")
    ethos_u_function = _Formed("{model}_ethos_u_device")
    sections_symbol = _Formed("{model}_sections_ld")
    # Macros and enumerators
    ethos_u_guard = _Formed("{prefix}_GLUE_ETHOS_U_H")  # a device may be called ethos_u
    span_read = _Formed("{prefix}_SPAN_READ")
    span_write = _Formed("{prefix}_SPAN_WRITE")
    span_obtain = _Formed("{prefix}_SPAN_OBTAIN")
    arena_front = _Formed("{prefix}_POOL_")  # what pools of arenas begin with
    stack_planned_bytes = _Formed("{prefix}_STACK_PLANNED_BYTES")
    stack_size = _Formed("{prefix}_STACK_SIZE")
    aligned = _Formed("{prefix}_ALIGNED")
    section = _Formed("{prefix}_SECTION")
    step = _Formed("{prefix}_STEP")
    step_workspaces = _Formed("{prefix}_STEP_WORKSPACES")
    check_range = _Formed("{prefix}_CHECK_RANGE")
    check_sections = _Formed("{prefix}_CHECK_SECTIONS")
    arena_depth = _Formed("{prefix}_ARENA_DEPTH")
    own_backend = _Formed("{prefix}_OWN_BACKEND")
    optimization = _Formed("{prefix}_OPTIMIZATION")  # of CMake
    ok = _Formed("{prefix}_OK")
    version = _Formed("{prefix}_BYTEWRIGHT_VERSION")

    # Pools: macros, arrays, an enumerator of those that devices obtain, and their arenas
    size = _OfPool("{prefix}_{POOL}_{ROLE}_SIZE")
    alignment = _OfPool("{prefix}_{POOL}_{ROLE}_ALIGN")
    section_of = _OfPool("{prefix}_{POOL}_{ROLE}_SECTION")  # as a text
    initializer = _OfPool("{prefix}_{POOL}_{ROLE}_INITIALIZER")  # the file with its bytes as C numbers
    array = _OfPool("{model}_{pool}_{role}")
    load_array = _OfPool("{model}_{pool}_{role}_load")  # from which generated parameters are copied
    expected_header = _OfPool("{model}_{pool}_header")  # the 32 bytes that a blob is compared with
    device_memory = _OfPool("{prefix}_MEMORY_{POOL}")  # in place of an address
    arena_pool = _OfPool("{prefix}_POOL_{POOL}")  # what the functions of the backend call it
    arena = _OfPool("{pool}_arena")  # in the context

    def __init__(
        self,
        model: str,
        extents: Iterable[str] = (),
        tensors: Iterable[tuple[ir.Border, str]] = (),
        devices: Mapping[str, str] = FrozenMapping({}),
        *,
        packs_arguments: bool = False,
        form: EntryForm = RUN,
    ) -> None:
        """The names of a bundle.

        Args:
            model: Its name in C,
            extents: what each run is given,
            tensors: inputs, outputs and states in C,
            devices: and those that take part besides the entry's, by name.
            packs_arguments: Whether the run function calls packed forms.
            form: How it is run.
        """
        self.model, self.prefix = model, model.upper()
        self.entry_prefix = self.prefix
        self._extents = frozenset(extents)
        self._devices = dict(devices)
        self._of_devices = _variables_of_devices(devices.values())
        of_packed = tuple(map(self._beside_extents, _OF_PACKED_CALLS))
        self.packed_arguments, self.packed_codes, self.packed_status = of_packed
        packed = frozenset(of_packed if packs_arguments else ())
        self._of_the_file = _OF_THE_FILE | packed | _variables_of(form)
        self._alike = _alike_in_capitals(tensors)
        self.run, self.inputs_type, self.outputs_type = (
            f"{model}_{name}" for name in (MODEL_FUNCTIONS[0], *MODEL_TYPES[:2])
        )
        self.allocate, self.release = backend_functions(model)
        self.has_devices = bool(devices)
        self.form = form
        self.functions = {function.name: f"{model}_{function.name}" for function in form.public}
        self.run_steps, self.run_table = RUN_STEPS, RUN_TABLE
        self.argument_type = argument_type(model)
        self.offset_front = f"{c_identifier(f'{model}_at')}_".upper()  # what offsets begin with

    def of_entry(self, entry: str) -> Names:
        """The names as one of several entries has them: those of what is its own instead of the run's."""
        names = copy(self)
        names.run, names.inputs_type, names.outputs_type = (
            form.format(model=self.model, entry=entry) for form in ENTRY_SYMBOLS
        )
        names.entry_prefix = f"{self.prefix}_{entry.upper()}"
        names.run_steps, names.run_table, *_ = (form.format(entry=entry) for form in ENTRY_FUNCTIONS)
        names.functions = {self.form.public[0].name: names.run}
        return names

    # Functions of the entry's form

    @property
    def begin(self) -> str:
        """`kws_run`, or `kws_begin`: the one that begins a run."""
        return next(iter(self.functions.values()))

    @property
    def end(self) -> str:
        """`kws_run`, or `kws_finish`: the one that ends a run, and takes devices into use."""
        return next(reversed(self.functions.values()))

    @property
    def run_packed(self) -> str:
        """`kws_run_packed`, of several entries `kws_push_packed`: the packed form of the run function."""
        return self.run + PACKED_END

    @property
    def steps(self) -> str:
        """The one that has the steps, or the last of them."""
        return self.run_steps if self.has_devices else self.end

    @property
    def step_functions(self) -> tuple[str, ...]:
        """Those that have steps, in the order of the file."""
        *before, _ = (function for function in self.form.functions if function.has_steps)
        return (*(self.functions.get(function.name, function.name) for function in before), self.steps)

    def find_function(self, name: str) -> EntryFunction | None:
        """The function of the form that is called so in C, if one is."""
        names = (self.functions.get(function.name, function.name) for function in self.form.functions)
        return next((f for f, own in zip(self.form.functions, names, strict=True) if own == name), None)

    def is_pushed(self, name: str) -> bool:
        """Whether a variable stands for a part of the input that the application pushes."""
        return self.form.pushed is not None and name == self.form.pushed

    def error(self, name: str) -> str:
        """`KWS_ERROR_SIZE`: the enumerator of an error."""
        return f"{self.prefix}_ERROR_{name}"

    def memory_base(self, memory: str, alias: int = 0) -> str:
        """`KWS_DTCM_BASE`, `KWS_DTCM_ALIAS_1`: the macro of where a memory of the target begins."""
        return f"{self.prefix}_{c_identifier(memory)}_{f'ALIAS_{alias}' if alias else 'BASE'}".upper()

    def argument_code(self, code: str) -> str:
        """`KWS_ARG_INT`: the enumerator of what an argument of a packed form is."""
        return f"{self.prefix}_ARG_{code}"

    def _beside_extents(self, name: str) -> str:
        """The name of a variable of the run function, which has an argument for each extent."""
        while name in self._extents:
            name += "_"
        return name

    @staticmethod
    def included(path: str) -> str:
        """What `#include` calls a header of the bundle: the name of the file."""
        return path.rpartition("/")[2]

    def guard(self, path: str) -> str:
        """`KWS_KERNELS_H`: the include guard of a header."""
        return self.included(path).replace(".", "_").upper()

    # Devices

    def device_header(self, device: PlannedDevice) -> str:
        """`include/kws_core1.h`: what a driver runs kernels of a device with."""
        return f"include/{self.model}_{device.c_name}.h"

    def device_source(self, device: PlannedDevice) -> str:
        """`src/kws_core1_kernels.c`: the kernels of a device."""
        return f"src/{self.model}_{device.c_name}_kernels.c"

    def execute(self, device: PlannedDevice) -> str:
        """`kws_core1_execute`: the function that runs a kernel on a device."""
        return execute_function(self.model, device.c_name)

    def call_type(self, device: PlannedDevice) -> str:
        """`kws_core1_call`: which kernel of a device is to run, and its scalars."""
        return f"{self.model}_{device.c_name}_call"

    def device_context_type(self, device: str) -> str:
        """`kws_npu_context`: what a driver keeps, as kernels are given it; the device is called as in the target."""
        return f"{self.model}_{self._devices[device]}_context"

    def device_context(self, device: str) -> str:
        """`npu_context`: the variable of the entry that holds it."""
        return f"{self._devices[device]}_context"

    # Pools

    def bytes_array(self, pool: PlannedPool) -> str:
        """The array that the bytes of a generated parameter pool begin in."""
        return self.load_array(pool) if pool.is_copied else self.array(pool)

    def embedded(self, pool: PlannedPool, *, as_numbers: bool) -> str:
        """`include/kws_flash_parameters.inc`: the file with its bytes as C numbers, or as they are."""
        return f"include/{self.array(pool)}.{'inc' if as_numbers else 'bin'}"

    @staticmethod
    def blob(pool: str) -> str:
        """`parameters/ext-flash.bin`: the file with the bytes of a parameter pool from the caller."""
        return f"parameters/{pool}.bin"

    def base(self, pool: PlannedPool) -> str:
        """The variable of the run function that holds a pool's base: its name, unless something else may have that.

        Functions and arrays of the C begin with the model's name, but for a few that the file has for itself. Where the
        device of the entry does not reach a pool there is no such variable: then no other one has the name either.
        """
        name = pool.c_name
        is_taken = name in self._of_the_file or name in self._extents or name in self._of_devices
        is_taken |= pool.obtained_by is not None
        is_taken |= name.startswith((REQUEST, "check_", f"{self.model}_")) or name.endswith(("_base", "_at"))
        return f"{name}_base" if is_taken else name

    def pool_address(self, pool: PlannedPool) -> str:
        """Where a pool begins, in the functions of the entry: what the context holds, or an array."""
        return f"context->{pool.c_name}" if pool.is_set else self.array(pool)

    def variables(self, plan: Plan) -> frozenset[str]:
        """What the run function names beside what it calls: arguments and variables."""
        return (
            self._of_the_file
            | self._of_devices
            | self._extents
            | {self.base(pool) for pool in plan.pools.values()}
        )

    # Arenas

    def arena_size(self, pool: PlannedPool) -> str:
        """`KWS_DTCM_ARENA_SIZE`: the bytes of the arena in a pool, of several entries `KWS_PUSH_DTCM_ARENA_SIZE`."""
        return f"{self.entry_prefix}_{pool.c_name.upper()}_ARENA_SIZE"

    # Inputs, outputs and buffers

    def tensor(self, border: ir.Border, tensor: PlannedTensor, what: str) -> str:
        """`KWS_INPUT_IMAGE_SIZE`: a macro about an input, output or state: SIZE, SHAPE, SCALE and so on.

        A name that is another's in capitals has digits of its hash.
        """
        name = tensor.c_name.upper()
        if (border, tensor.c_name) in self._alike:
            name = f"{name}{_mark(tensor.c_name)}".upper()
        return f"{self.prefix}_{border.name}_{name}_{what}"

    def bound(self, extent: str) -> str:
        """`KWS_BATCH_MAX`: the largest value of an extent that the application gives."""
        return f"{self.prefix}_{extent.upper()}_MAX"

    @property
    def runs_before(self) -> str:
        """`KWS_STREAM_RUNS_BEFORE`: the first runs of a stream, whose results do not count."""
        return f"{self.prefix}_STREAM_RUNS_BEFORE"

    def address(self, border: ir.Border, tensor: PlannedTensor) -> str:
        """`kws_input_x`: the function that returns the address of an input or output in the workspace."""
        return f"{self.address_front(border)}{tensor.c_name}"

    def address_front(self, border: ir.Border) -> str:
        """`kws_input_`: what the names of these functions begin with."""
        return f"{self.model}_{border.value}_"

    @staticmethod
    def member(border: ir.Border | BufferRole, c_name: str) -> str:
        """`inputs->x`: an input or output in the structures that a run is given."""
        return f"{border.value}s->{c_name}"

    def offset(self, pool: str, buffer: str) -> str:
        """`KWS_AT_DTCM_CONV2D_3__OUT`: the enumerator with the offset of a buffer in its pool."""
        return f"{self.offset_front}{c_identifier(f'_{pool}')[1:]}_{_part(buffer)}".upper()

    @staticmethod
    def request(buffer: str) -> str:
        """`request_y__scratch0`: the variable of the run function that holds what was requested for a buffer."""
        return REQUEST + _part(buffer)

    def argument(self, buffer: PlannedBuffer) -> str:
        """What a call of the entry names a buffer by."""
        match buffer.place.kind:
            case PlaceKind.CALLER if self.form.pushed is not None and buffer.role is BufferRole.INPUT:
                return self.form.pushed
            case PlaceKind.CALLER:
                return self.member(buffer.role, buffer.place.name)
            case PlaceKind.ARENA:
                return self.request(buffer.name)
            case _:
                return self.offset(buffer.place.name, buffer.name)


def names_of(plan: Plan) -> Names:
    """The names of the bundle of a plan."""
    tensors = ((border, tensor.c_name) for border in ir.Border for tensor in plan.tensors(border))
    devices = {device.name: device.c_name for device in plan.devices.values()}
    symbols = (symbol.name for symbol in plan.symbols)
    return Names(
        plan.model,
        symbols,
        tensors,
        devices,
        packs_arguments=plan.packs_arguments,
        form=plan.form,
    )


def _alike_in_capitals(tensors: Iterable[tuple[ir.Border, str]]) -> frozenset[tuple[ir.Border, str]]:
    """Tensors of one border whose macros would have one name."""
    known = [(border, name, name.upper()) for border, name in tensors]
    capitals = Counter((border, upper) for border, _, upper in known)
    return frozenset((border, name) for border, name, upper in known if capitals[border, upper] > 1)


def _variables_of_devices(devices: Collection[str]) -> frozenset[str]:
    """Variables of an entry that hands over to devices, which are called so in C."""
    own = (f"{device}_{what}" for device in devices for what in ("context", "memories"))
    return frozenset({*NAMES_OF_HAND_OVERS, *own}) if devices else frozenset()


def _variables_of(form: EntryForm) -> frozenset[str]:
    """What functions of a form call what they are given, compute and call, besides."""
    own = frozenset(function.name for function in form.functions if function.is_private)
    return own | form.variables | ({form.pushed} if form.pushed is not None else frozenset[str]())


def by_entry(plan: Plan, names: Names) -> tuple[tuple[Plan, Names], ...]:
    """The plan and the names once for each entry, as that one sees them."""
    if not plan.stated_entries:
        return ((plan, names),)
    return tuple((plan.alone(entry), names.of_entry(entry.name)) for entry in plan.entries)


def _part(buffer: str) -> str:
    """A buffer's name as a part of a C name, which no other buffer's is, in capitals either.

    A slash becomes two underscores. A name that could then be mistaken for another, because it has capitals,
    characters that C has not, or underscores next to each other or at an end, gets digits of its hash.
    """
    plain = c_identifier(buffer.replace("/", "__"))
    if _PLAIN_NAME.fullmatch(buffer):
        return plain
    return f"{plain}{_mark(buffer)}"


def _mark(name: str) -> str:
    """`_x1a2b3c4d`: digits of a name's hash, for one that could be mistaken for another without them."""
    return f"_x{hashlib.sha256(name.encode()).hexdigest()[:8]}"
