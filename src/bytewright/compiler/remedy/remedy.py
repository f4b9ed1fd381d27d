"""What would make a compile succeed, as a value: options for the command line, or lines for the target file.

The text of a remedy is a complete list of options. Added to the command that failed, they work; where that command has
the same option for the same pool or pattern already, the new one takes its place, and a list of `--workspace` or
`--parameters` takes the place of the whole list.
"""

import shlex
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.compiler.trial import Conditions
from bytewright.options import Pin, Rows
from bytewright.target.mistake import in_target_file, reach_line
from bytewright.target.model import Device, Pool, Reach, Role, Target
from bytewright.target.options import Overrides, apply_overrides


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
        edits: Lines of the target file.
        without: Pins that go.
        pools: That are added while their sizes are looked for; then they are in the lists of the overrides.
    """

    overrides: Overrides = field(default_factory=Overrides)
    pins: tuple[Pin, ...] = ()
    rows: Rows | None = None
    io: ir.Io | None = None
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
        options = replace(
            options, pins=(*kept, *self.pins), rows=self.rows or options.rows, io=self.io or options.io
        )
        return Conditions(target, options)

    def text(self, target: Target) -> str:
        """As a help line: options, or else what to write into the target file."""
        if self.edits:
            lines = [line for edit in self.edits for line in edit.lines(target)]
            return in_target_file(*lines)
        words = [str(self.overrides)] if self.overrides != Overrides() else []
        words += [f"--pin {shlex.quote(str(pin))}" for pin in self.pins]
        if self.rows is not None:
            words.append(f"--rows {self.rows.value}")
        if self.io is not None:
            words.append(f"--io {self.io.value}")
        options = " ".join(words)
        if not self.without:
            return options
        gone = " ".join(f"--pin {shlex.quote(str(pin))}" for pin in dict.fromkeys(self.without))
        return f"leave out {gone}, and add {options}" if options else f"leave out {gone}"


def role_of_pin(pin: Pin, target: Target) -> Role:
    """The role of the pool that a pin names; the workspace's, if there is no such pool."""
    pool = target.find_pool(pin.pool)
    return Role.WORKSPACE if pool is None else pool.role
