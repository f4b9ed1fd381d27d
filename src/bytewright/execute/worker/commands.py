"""The processes that are the devices of a bundle on the host: what is built for each, and how it is begun.

A device that runs C is a program of the bundle's kernels for it and nothing else of the bundle. One that only copies is
the same program without kernels. One that carries out command streams is a model in Python (`stream.py`).
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from bytewright.execute.build import (
    CHECKED_CODE_FLAGS,
    LANGUAGE_FLAGS,
    BuildOptions,
    application_sources,
    harness_source,
    include_flags,
)
from bytewright.execute.description import Bundle
from bytewright.execute.objects import build_from_sources
from bytewright.execute.tools import find_host_compiler, flags_on_this_machine
from bytewright.execute.worker.streams import require_stream_model
from bytewright.record.devices import DeviceKind, PlannedDevice

# The address sanitizer has uses of its own for the addresses that a device may not have.
_SANITIZER_FLAGS = ("-fsanitize=undefined", *CHECKED_CODE_FLAGS)


def build_workers(bundle: Bundle, folder: Path, options: BuildOptions) -> dict[str, tuple[str, ...]]:
    """The command of each device's process, by the device's name, with what it needs in the folder.

    Raises:
        CompileError: BW501 and BW502, of the compiler; BW731 where nothing is known that carries out its streams.
    """
    commands: dict[str, tuple[str, ...]] = {}
    for device in bundle.plan.devices.values():
        if device.kind is DeviceKind.STREAM:
            require_stream_model(device)
            commands[device.name] = stream_command(device)
        else:
            commands[device.name] = (str(_build(bundle, folder, device, options)),)
    return commands


def stream_command(device: PlannedDevice) -> tuple[str, ...]:
    """What a device that carries out command streams is begun with."""
    return (sys.executable, "-m", "bytewright.execute.worker.stream", device.isa)


def device_sources(bundle: Bundle) -> set[Path]:
    """The C files of devices, which the entry's device does not have."""
    return {bundle.directory / bundle.names.device_source(device) for device in bundle.plan.devices.values()}


def _build(bundle: Bundle, folder: Path, device: PlannedDevice, options: BuildOptions) -> Path:
    own = folder.resolve() / f"worker_{device.c_name}"
    own.mkdir()
    for name in (("harness", "jobs.h"), ("worker", "worker.h"), ("worker", "worker_main.c")):
        (own / name[-1]).write_text(harness_source(*name), encoding="utf-8")
    (own / "worker_device.h").write_text(_device_header(bundle, device), encoding="utf-8")
    sources: Sequence[Path] = ()
    applications: Sequence[Path] = ()
    if device.kind is DeviceKind.C:
        applications = application_sources(bundle, options) if options.sources else []
        sources = (bundle.directory / bundle.names.device_source(device),)
    compiler = find_host_compiler(options.compiler)
    command = [
        *compiler,
        *LANGUAGE_FLAGS,
        *flags_on_this_machine(bundle.plan.hardware.device(device.name).isa),
        *options.flags,
        *(_SANITIZER_FLAGS if options.sanitize else ()),
        *(f"-I{own}", *include_flags(bundle, folder)),
    ]
    sources = (*sources, own / "worker_main.c")
    build_from_sources(command, sources, own / "device", folder=folder, applications=applications)
    return own / "device"


def _device_header(bundle: Bundle, device: PlannedDevice) -> str:
    """What worker_main.c runs."""
    if device.kind is not DeviceKind.C:
        return "/* It only copies. */\n"
    names = bundle.names
    return (
        f'#include "{names.included(names.device_header(device))}"\n'
        f"#define WORKER_EXECUTE {names.execute(device)}\n"
        f"#define WORKER_SPAN {names.span_type}\n"
    )
