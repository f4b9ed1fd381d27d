"""The user's `--on PATTERN=DEVICE[.POOL]`: which operators they mean, and that what they name exists.

An operator of the model's file is put somewhere as a whole, whatever graph operators it became.
"""

from collections.abc import Iterator
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
    asked: dict[int, Asked] = {}
    collector = Collector()
    for option in on:
        with collector.catch():
            _check(option, target)
            matching = [nodes for nodes in operators.values() if _matches(option.pattern, nodes)]
            if not matching:
                raise _nothing_matches(option, list(operators.values()))
            _check_operators(option, target, matching)
            for nodes in matching:
                for node in nodes:
                    asked[id(node)] = _joined(option, node, node is nodes[-1], asked.get(id(node)))
    collector.stop_if_any()
    return asked


def _joined(option: On, node: ir.Node, is_last: bool, before: Asked | None) -> Asked:
    """The place that an option gives a node: the pool is for what the operator gives in the end."""
    text = f"--on '{option}'"
    scope = ir.pool_scope(option.pool) if option.pool is not None and is_last else None
    place = ir.VirtualDevice(option.device, None, scope)
    if before is None:
        return Asked(place, text)
    try:
        return Asked(
            ir.join_places(before.place, place),
            before.text if before.text == text else f"{before.text} {text}",
        )
    except ValueError as error:
        name = node.outputs[0].name
        raise _refused(option, f"contradicts {before.text}, for '{name}': {error}") from None


def _names(nodes: list[ir.Node]) -> Iterator[str]:
    """What a pattern may match of an operator: its results and its kind, in the file and in the graph."""
    for node in reversed(nodes):
        for value in node.outputs:
            yield from (value.name, value.name.partition("/")[0])
        operator = node.where.operator
        if operator is not None:
            number, _, kind = operator.partition(" ")
            yield from (operator, kind.strip("()") or number)
        if node.where.tensor is not None:
            yield node.where.tensor
        yield node.operation.name


def _matches(pattern: str, nodes: list[ir.Node]) -> bool:
    return any(fnmatchcase(name, pattern) for name in _names(nodes))


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
