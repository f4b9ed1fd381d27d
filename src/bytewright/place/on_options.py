"""The user's `--on PATTERN=DEVICE[.POOL]`: which operators they mean, and that what they name exists.

An operator of the model's file is put somewhere as a whole, whatever graph operators it became. Of several options for
one operator the more specific says where it goes: its exact name, then a pattern of names, then its kind, then a
pattern of everything. The others add what that leaves open; those that contradict it say nothing of this operator.
"""

from collections.abc import Iterator
from enum import IntEnum
from fnmatch import fnmatchcase

from bytewright import ir
from bytewright.diagnostics import Collector, CompileError, compile_error
from bytewright.ops.placement import DeviceCopy, OnDevice
from bytewright.options import On
from bytewright.place.check_devices import able_devices, can_run, why_not
from bytewright.place.flows import Asked, operator_key
from bytewright.target.mistake import closest_names
from bytewright.target.model import Role, Target


def asked_by_options(module: ir.Module, target: Target, on: tuple[On, ...]) -> dict[int, Asked]:
    """What is asked of nodes, by their identity; of several options for one operator, what they say together.

    Raises:
        CompileError: BW204 for a device or pool that does not exist, a pattern that matches nothing, a device that
            cannot run what is put on it, and options that contradict each other; all at once.
    """
    if not on:
        return {}
    operators: dict[object, list[ir.Node]] = {}
    for function in module.functions:
        for node in function.nodes:
            if not isinstance(node.operation, OnDevice | DeviceCopy) and node.outputs:
                operators.setdefault(operator_key(node), []).append(node)
    collector = Collector()
    found = list(operators.values())
    sound: list[On] = []
    for option in on:
        with collector.catch():
            _check(option, target)
            if not any(_specificity(option.pattern, nodes) for nodes in found):
                raise _nothing_matches(option, found)
            sound.append(option)
    decided: dict[On, list[list[ir.Node]]] = {option: [] for option in sound}
    asked: dict[int, Asked] = {}
    for nodes in found:
        with collector.catch():
            for option in _options_for(nodes, sound):
                decided[option].append(nodes)
                for node in nodes:
                    asked[id(node)] = _joined(option, node is nodes[-1], asked.get(id(node)))
    for option, matching in decided.items():
        with collector.catch():
            _check_operators(option, target, matching)
    collector.stop_if_any()
    return asked


class _Specificity(IntEnum):
    """How much a pattern says of an operator that it matches."""

    NONE = 0
    EVERYTHING = 1
    KIND = 2
    NAMES = 3
    NAME = 4


def _options_for(nodes: list[ir.Node], on: list[On]) -> list[On]:
    """The options that decide of an operator, the most specific first.

    Raises:
        CompileError: BW204, two that are equally specific contradict each other.
    """
    matching = [(_specificity(option.pattern, nodes), option) for option in on]
    ranked = sorted((pair for pair in matching if pair[0]), key=lambda pair: -pair[0])
    deciding: list[tuple[_Specificity, On]] = []
    for rank, option in ranked:
        other = next((each for each in deciding if _contradict(each[1], option)), None)
        if other is None:
            deciding.append((rank, option))
        elif other[0] is rank:
            raise _tie(option, other[1], rank, nodes)
    return [option for _, option in deciding]


def _contradict(one: On, other: On) -> bool:
    return one.device != other.device or (None not in (one.pool, other.pool) and one.pool != other.pool)


def _tie(option: On, other: On, rank: _Specificity, nodes: list[ir.Node]) -> CompileError:
    value = nodes[-1].outputs[0].name
    what = f"contradicts --on '{other}', which is as specific, for '{value}'"
    if option.device == other.device:
        what = f"{what}: a result lies in one pool, '{other.pool}' or '{option.pool}'"
    else:
        what = f"{what}: an operator runs on one device, '{other.device}' or '{option.device}'"
    instead = (
        f"leave out --on '{other}'"
        if rank is _Specificity.NAME
        else f"--on '{On(value, option.device, option.pool)}'"
    )
    return compile_error("BW204", f"--on '{option}' {what}", help=instead, where=f"--on '{option}'")


def _joined(option: On, is_last: bool, before: Asked | None) -> Asked:
    """The place that an option gives a node: the pool is for what the operator gives in the end."""
    text = f"--on '{option}'"
    scope = ir.pool_scope(option.pool) if option.pool is not None and is_last else None
    place = ir.VirtualDevice(option.device, None, scope)
    if before is None:
        return Asked(place, text)
    return Asked(
        ir.join_places(before.place, place), before.text if before.text == text else f"{before.text} {text}"
    )


def _own_names(nodes: list[ir.Node]) -> Iterator[str]:
    """The names of an operator: of its results, and its own in the file."""
    for node in reversed(nodes):
        for value in node.outputs:
            yield from (value.name, value.name.partition("/")[0])
        if node.where.operator is not None:
            yield node.where.operator
        if node.where.tensor is not None:
            yield node.where.tensor


def _kinds(nodes: list[ir.Node]) -> Iterator[str]:
    """What it is, in the file and in the graph."""
    for node in reversed(nodes):
        number, _, kind = (node.where.operator or "").partition(" ")
        if number:
            yield kind.strip("()") or number
        yield node.operation.name


def _names(nodes: list[ir.Node]) -> Iterator[str]:
    """All that a pattern may match of an operator."""
    yield from _own_names(nodes)
    yield from _kinds(nodes)


def _specificity(pattern: str, nodes: list[ir.Node]) -> _Specificity:
    """How a pattern matches an operator, if it does. What is all of a name and of a kind is a name."""
    own, kinds = list(_own_names(nodes)), list(_kinds(nodes))
    if not pattern.strip("*"):
        return _Specificity.EVERYTHING
    if pattern in own:
        return _Specificity.NAME
    if pattern not in kinds and any(fnmatchcase(name, pattern) for name in own):
        return _Specificity.NAMES
    return _Specificity.KIND if any(fnmatchcase(kind, pattern) for kind in kinds) else _Specificity.NONE


def _check(option: On, target: Target) -> None:
    """That the device exists, and that it may use the pool for tensors."""
    devices = [device.name for device in target.devices]
    if option.device not in devices:
        meant = closest_names(option.device, devices)
        what = f"names the device '{option.device}', which '{target.name}' does not have; {_of('devices', devices)}"
        raise _refused(option, what, On(option.pattern, meant[0], option.pool) if meant else None)
    if option.pool is None:
        return
    pools = target.pools_of(Role.WORKSPACE)
    usable = [pool.name for pool in pools if option.device in (pool.devices or devices)]
    if option.pool not in usable:
        exists = any(pool.name == option.pool for pool in pools)
        which = (
            f"which device '{option.device}' may not use"
            if exists
            else "which is no workspace pool of the target"
        )
        meant = closest_names(option.pool, usable) or usable
        what = f"names the pool '{option.pool}', {which}; {_of('its pools', usable)}"
        raise _refused(option, what, On(option.pattern, option.device, meant[0]) if meant else None)


def _check_operators(option: On, target: Target, matching: list[list[ir.Node]]) -> None:
    """That the device can run what is put on it."""
    device = target.device(option.device)
    refused = [nodes for nodes in matching if not all(can_run(device, node.operation) for node in nodes)]
    if not refused:
        return
    able = able_devices(target, [node.operation for nodes in matching for node in nodes])
    last = refused[0][-1]
    name = f"'{last.outputs[0].name}' ({last.where.operator or last.operation.name})"
    instead = On(option.pattern, able[0]) if able else None
    raise _refused(option, f"puts {name} on a device that cannot run it: {why_not(device)}", instead)


def _nothing_matches(option: On, operators: list[list[ir.Node]]) -> CompileError:
    names = list(dict.fromkeys(name for nodes in operators for name in _names(nodes)))
    some = [nodes[-1].outputs[0].name for nodes in operators]
    what = f"matches no operator; {_of('names', some)}"
    lower = option.pattern.lower()
    same = [name for name in names if fnmatchcase(name.lower(), lower)]
    meant = same or ([] if any(c in option.pattern for c in "*?[") else closest_names(option.pattern, names))
    return _refused(option, what, On(meant[0], option.device, option.pool) if meant else None)


def _of(what: str, names: list[str]) -> str:
    return (
        f"{what} are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
        if names
        else f"there are no {what}"
    )


def _refused(option: On, what: str, instead: On | None = None) -> CompileError:
    help_text = None if instead is None else f"--on '{instead}'"
    return compile_error("BW204", f"--on '{option}' {what}", help=help_text, where=f"--on '{option}'")
