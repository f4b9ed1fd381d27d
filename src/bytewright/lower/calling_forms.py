"""Which forms of calls go together: the table of docs/c-interface.md as data, and what is refused by it."""

from collections.abc import Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import Collector, Diagnostic, compile_error
from bytewright.ir.analyses.hand_over import devices_of
from bytewright.ir.definitions import buffer_scopes, scopes_of_constants
from bytewright.ir.packed import packed_calls
from bytewright.ir.text.primfuncs import format_statement
from bytewright.options import Options


@dataclass(frozen=True, slots=True)
class Combination:
    """Options of which each has a meaning alone.

    Attributes:
        calling_form: How the entry calls kernels.
        entry_form: How the entry itself is called.
        several_devices: Whether another device than the entry's takes part too: it is handed kernels, or driven by one.
    """

    calling_form: ir.Form
    entry_form: ir.Form
    several_devices: bool


# Every combination, with the code of the refusal, or None where C is written for it.
COMBINATIONS: Mapping[Combination, str | None] = FrozenMapping(
    {
        Combination(ir.Form.PLAIN, ir.Form.PLAIN, False): None,
        Combination(ir.Form.PACKED, ir.Form.PLAIN, False): None,
        Combination(ir.Form.PLAIN, ir.Form.PACKED, False): None,
        Combination(ir.Form.PACKED, ir.Form.PACKED, False): None,
        Combination(ir.Form.PLAIN, ir.Form.PLAIN, True): None,
        Combination(ir.Form.PACKED, ir.Form.PLAIN, True): None,
        Combination(ir.Form.PLAIN, ir.Form.PACKED, True): "BW728",
        Combination(ir.Form.PACKED, ir.Form.PACKED, True): "BW728",
    }
)


def require_forms(module: ir.Module, options: Options) -> None:
    """Refuses forms that do not go together; the module is lowered.

    Raises:
        CompileError: BW204 for options that several entries do not go with, BW728 for a combination of options that
            the table refuses, BW729 for calls in IR by hand that pack arguments for a kernel of another device.
    """
    _require_own_device(module)
    _require_one_entry(module, options)
    own = module.entry_device
    others = devices_of(module)
    code = COMBINATIONS[Combination(options.calling_form, options.entry_form, bool(others))]
    if code is not None:
        devices = ", ".join(f"'{device}'" for device in others)
        raise compile_error(
            code,
            f"--entry-form {options.entry_form} and other devices than '{own}', which runs the model, do not go "
            f"together: {devices}",
            notes=("a packed run is given inputs, outputs and context, and no drivers of devices",),
            help="--entry-form plain",
        )


def _require_one_entry(module: ir.Module, options: Options) -> None:
    """Refuses what would have no meaning where entries share a context."""
    asked = {
        "--io rows": (
            options.io is ir.Io.ROWS,
            "between two rows an image lies in the workspace, where a run of another entry would write",
        ),
    }
    for option, (is_asked, reason) in asked.items():
        if is_asked and len(module.entries) > 1:
            names = ", ".join(f"'{entry.name}'" for entry in module.entries)
            count = len(module.entries)
            message = f"{option} is for a model of one entry; module '{module.name}' has {count}: {names}"
            raise compile_error("BW204", message, notes=(reason,), help=f"leave out {option}")


def _require_own_device(module: ir.Module) -> None:
    problems = Collector()
    calls = ((entry, call) for entry in module.entries for call in packed_calls(entry))
    constants = scopes_of_constants(module)
    for entry, call in calls:
        kernel = module.kernel(call.callee)
        if kernel is not None and (kernel.device != entry.device or kernel.job is not None):
            scopes = buffer_scopes(entry, constants)
            problems.add(
                Diagnostic(
                    "BW729",
                    f"call_cpacked and device '{kernel.device}' do not go together: '{kernel.name}' runs there, and "
                    f"the entry on '{entry.device}' hands over a job, which is not packed",
                    help="call_extern",
                    where=f"module '{module.name}', entry '{entry.name}', {format_statement(call, scopes)}",
                )
            )
    problems.stop_if_any()
