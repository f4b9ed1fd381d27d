"""What the entry hands over to other devices than its own: which kernels, whose contexts, and what that is called in C.

A device that is neither handed a kernel nor has its context passed takes no part in a run.
"""

from collections.abc import Mapping

from bytewright import ir
from bytewright.base.c_names import unique_names
from bytewright.ir.walk import calls
from bytewright.target.model import Target


def devices_of(module: ir.Module) -> tuple[str, ...]:
    """The devices besides the entry's that take part in a run, in the order in which the entry needs them."""
    kernels = {kernel.name: kernel for kernel in module.kernels}
    found: dict[str, None] = {}
    for entry in module.entries:
        for call in calls(entry):
            contexts = (a.device for a in call.arguments if isinstance(a, ir.ContextArgument))
            found.update(dict.fromkeys(contexts))
            if call.callee in kernels and kernels[call.callee].device != entry.device:
                found[kernels[call.callee].device] = None
    return tuple(found)


def c_names_of_devices(module: ir.Module) -> Mapping[str, str]:
    """What the devices of a module are called in C, by name; those that take part in a run do not depend on others."""
    others = (kernel.device for kernel in module.kernels)
    return unique_names(dict.fromkeys((*devices_of(module), *others)), ())


def execute_function(model: str, device: str) -> str:
    """`kws_core1_execute`: the function that a device, as it is called in C, runs a job with."""
    return f"{model}_{device}_execute"


def num_spans(module: ir.Module, target: Target) -> int:
    """How many spans the entry holds at once at most: all that devices are lent for a run, and those of one job."""
    devices = devices_of(module)
    ports = sum(len(ir.border_buffers(entry, border)) for entry in module.entries for border in ir.SIDES)
    lent = sum(len([p for p in target.pools if name in p.devices]) + ports for name in devices)
    kernels = [kernel for name in devices for kernel in handed_to(module, name)]
    return lent + max((len(kernel.buffer_parameters) for kernel in kernels), default=0)


def obtains_memory(module: ir.Module, target: Target) -> bool:
    """Whether devices of a run may be given memory that the entry's device does not reach, so that they obtain it."""
    reached = target.device(module.entry_device).reached_memories
    names = devices_of(module)
    hidden = (pool for pool in target.workspace_pools if pool.memory not in reached)
    return any(not pool.devices or set(pool.devices) & set(names) for pool in hidden)


def handed_to(module: ir.Module, device: str) -> tuple[ir.PrimFunc, ...]:
    """The kernels of a device that entries of another one call, in the module's order: their numbers are theirs."""
    called = {call.callee for entry in module.entries if entry.device != device for call in calls(entry)}
    return tuple(kernel for kernel in module.kernels if kernel.device == device and kernel.name in called)
