"""What would make a compile succeed, as a value: options for the command line, or lines for the target file.

The text of a remedy is a complete list of options. Added to the command that failed, they work; where that command has
the same option for the same pool or pattern already, the new one takes its place, and a list of `--workspace` or
`--parameters` takes the place of the whole list.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from bytewright import ir
from bytewright.compiler.trial import Conditions
from bytewright.diagnostics import Change
from bytewright.options import DECLARATIONS, KernelCode, Optimize, Pin, Rows, StreamAxis
from bytewright.target.mistake import in_target_file, reach_line
from bytewright.target.model import Device, Pool, Reach, Role, Target
from bytewright.target.options import Overrides, apply_overrides

# Options that a remedy may change as a whole, from what changes little to what changes how the model is called.
CHOICES = ("rows", "optimize", "kernel_code", "io", "batch_max", "stream")
_FLAGS = {declaration.name: declaration.flag for declaration in DECLARATIONS}


@dataclass(frozen=True, slots=True)
class ReachEdit:
    """A device that reaches one more memory, and may use the pools there."""

    device: str
    memory: str

    def apply(self, target: Target) -> Target:
        """The target as the changed file would describe it."""
        devices = tuple(self._widened(d) if d.name == self.device else d for d in target.devices)
        pools = tuple(self._lent(pool) if pool.memory == self.memory else pool for pool in target.pools)
        return replace(target, devices=devices, pools=pools)

    def lines(self, target: Target) -> tuple[str, ...]:
        """`[device.npu] reach = ["shared", "rom"]`; pools that name their devices need a line each."""
        found = [reach_line(target.device(self.device), self.memory)]
        everybody = {d.name for d in target.devices_reaching(self.memory)}
        for pool in target.pools_in(self.memory):
            if set(pool.devices) != everybody:
                names = ", ".join(f'"{name}"' for name in self._lent(pool).devices)
                found.append(f"[[{pool.role.value}]] {pool.name} devices = [{names}]")
        return tuple(found)

    def _widened(self, device: Device) -> Device:
        return replace(device, reach=(*device.reach, Reach(self.memory)))

    def _lent(self, pool: Pool) -> Pool:
        return replace(pool, devices=tuple(dict.fromkeys((*pool.devices, self.device))))


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes that make the compile succeed.

    Attributes:
        overrides: Options that change the target.
        pins: Pins that take the place of those with the same pattern.
        rows: Where layers run row by row, if otherwise.
        io: Where inputs and outputs are, if elsewhere.
        optimize: What kernels trade, if otherwise.
        kernel_code: What stands in their C, if otherwise.
        batch_max: How many samples a run computes, if fewer.
        stream: The axis of frames, if each run is to take those that are new.
        edits: Lines of the target file.
        without: Pins that go.
        pools: That are added while their sizes are looked for; then they are in the lists of the overrides.
    """

    overrides: Overrides = field(default_factory=Overrides)
    pins: tuple[Pin, ...] = ()
    rows: Rows | None = None
    io: ir.Io | None = None
    optimize: Optimize | None = None
    kernel_code: KernelCode | None = None
    batch_max: int | None = None
    stream: tuple[StreamAxis, ...] | None = None
    edits: tuple[ReachEdit, ...] = ()
    without: tuple[Pin, ...] = ()
    pools: tuple[Pool, ...] = ()

    def apply(self, conditions: Conditions) -> Conditions:
        """The conditions with the remedy.

        Raises:
            CompileError: BW204 if the hardware does not have what the options ask for.
        """
        target = conditions.target
        for edit in self.edits:
            target = edit.apply(target)
        pools = sorted((*target.pools, *self.pools), key=lambda pool: tuple(Role).index(pool.role))
        target = apply_overrides(replace(target, pools=tuple(pools)), self.overrides)
        options, patterns = conditions.options, {pin.pattern for pin in self.pins}
        kept = (pin for pin in options.pins if pin.pattern not in patterns and pin not in self.without)
        return Conditions(target, replace(options, pins=(*kept, *self.pins), **self._chosen))

    @property
    def _chosen(self) -> dict[str, Any]:
        """The options that it changes as a whole."""
        found = ((name, getattr(self, name)) for name in CHOICES)
        return {name: value for name, value in found if value is not None}

    def parts(self, target: Target) -> frozenset[str]:
        """What it changes, without how far: of two changes the one whose parts the other one has too is smaller."""
        overrides = self.overrides
        lists = (*overrides.workspace, *overrides.parameters)
        known = {pool.name for pool in target.pools}
        return frozenset(
            (
                *(f"size of {resize.pool}" for resize in overrides.resize),
                *(f"pool {option.name}" for option in lists if option.name not in known),
                *(["stack"] if overrides.max_stack_size is not None else []),
                *self._chosen,
                *(f"pin {pin.pattern}" for pin in (*self.pins, *self.without)),
                *map(str, self.edits),
            )
        )

    def change(self, target: Target) -> Change:
        """What to change of the command, or else of the target file."""
        if self.edits:
            lines = tuple(line for edit in self.edits for line in edit.lines(target))
            return Change(in_target_file(*lines), target_lines=lines)
        words = tuple(self._words())
        gone = tuple(f"--pin {shlex.quote(str(pin))}" for pin in dict.fromkeys(self.without))
        options = " ".join(words)
        text = f"leave out {' '.join(gone)}{', and add ' if options else ''}{options}" if gone else options
        add, leave_out = (tuple(shlex.split(" ".join(each))) for each in (words, gone))
        return Change(text, add, leave_out)

    def _words(self) -> Iterator[str]:
        if self.overrides != Overrides():
            yield str(self.overrides)
        yield from (f"--pin {shlex.quote(str(pin))}" for pin in self.pins)
        for name, value in self._chosen.items():
            for given in value if isinstance(value, tuple) else (value,):
                text = given.value if isinstance(given, Enum) else given
                yield f"{_FLAGS[name]} {shlex.quote(str(text))}"


# What a change is of, from what changes least.
_LEVELS = ("size", "stack", "rows", "pool", "optimize", "kernel_code", "pin", "io", "batch_max", "stream")


def rank(remedy: Remedy, target: Target) -> int:
    """How much a change changes: the most of its parts."""
    kinds = [part.partition(" ")[0] for part in remedy.parts(target)]
    return max((_LEVELS.index(kind) if kind in _LEVELS else len(_LEVELS) for kind in kinds), default=0)


def role_of_pin(pin: Pin, target: Target) -> Role:
    """The role of the pool that a pin names; the workspace's, if there is no such pool."""
    pool = target.find_pool(pin.pool)
    return Role.WORKSPACE if pool is None else pool.role
