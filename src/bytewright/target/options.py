"""Command-line options that change a target: parsed once into values, applied all at once, checked again.

Syntax and meaning fail differently. Text that is not an option is an `OptionSyntaxError`, which needs no
target to be found out; an option that names what does not exist, or asks for more than the hardware has, is a
`CompileError` with code BW204 that shows the option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bytewright.diagnostics import Collector, CompileError, Diagnostic
from bytewright.target.check import context_path, find_problems, with_default_devices, with_remainders
from bytewright.target.model import (
    DEFAULT_PROVIDER,
    UNLIMITED,
    Device,
    Pool,
    Provider,
    Role,
    Target,
    Unlimited,
)
from bytewright.target.problem import Problem, closest, listing
from bytewright.target.reader import NAME_PATTERN
from bytewright.target.size import SizeError, format_size, parse_size
from bytewright.target.source import Path, format_path

_POOL_OPTION = re.compile(r"([^=@]+)(?:=([^=@]+))?(?:@([^=@]+))?")


class OptionSyntaxError(ValueError):
    """The text of an option is malformed; the command line exits with status 2."""


@dataclass(frozen=True, slots=True)
class PoolOption:
    """`NAME[=SIZE][@MEMORY]`: one workspace or parameter pool."""

    name: str
    size_bytes: int | None = None
    memory: str | None = None

    def __str__(self) -> str:
        size = "" if self.size_bytes is None else f"={format_size(self.size_bytes)}"
        return f"{self.name}{size}{f'@{self.memory}' if self.memory else ''}"


@dataclass(frozen=True, slots=True)
class ResizeOption:
    """`POOL=SIZE`."""

    pool: str
    size_bytes: int

    def __str__(self) -> str:
        return f"--resize {self.pool}={format_size(self.size_bytes)}"


@dataclass(frozen=True, slots=True)
class ProviderOption:
    """`POOL=caller|generated`."""

    pool: str
    provider: Provider

    def __str__(self) -> str:
        return f"--provider {self.pool}={self.provider.value}"


@dataclass(frozen=True, slots=True)
class Overrides:
    """All options that change a target.

    Attributes:
        workspace: If any, these replace all workspace pools, in preference order.
        parameters: If any, these replace all parameter pools, in preference order.
        resize: New sizes of single pools, after the replacements.
        provider: New providers of single pools, after the replacements.
        max_stack_size: Of every stack; `None` leaves them as they are.
        max_stack_alloca_size: Of every device that runs C; `None` leaves it as it is.
        use_backend_alloc_workspace: Sets it on every device that runs C.
    """

    workspace: tuple[PoolOption, ...] = ()
    parameters: tuple[PoolOption, ...] = ()
    resize: tuple[ResizeOption, ...] = ()
    provider: tuple[ProviderOption, ...] = ()
    max_stack_size: int | Unlimited | None = None
    max_stack_alloca_size: int | Unlimited | None = None
    use_backend_alloc_workspace: bool = False


def parse_pool_option(text: str) -> PoolOption:
    """Parses the value of `--workspace` and `--parameters`: `NAME[=SIZE][@MEMORY]`."""
    match = _POOL_OPTION.fullmatch(text)
    if match is None:
        raise OptionSyntaxError(f"{text!r} is not NAME[=SIZE][@MEMORY], such as dtcm=64KiB@dtcm")
    name, size, memory = match.groups()
    _check_name(name, text)
    if memory is not None:
        _check_name(memory, text)
    return PoolOption(name, None if size is None else _option_size(size, text), memory)


def parse_resize_option(text: str) -> ResizeOption:
    """Parses the value of `--resize`: `POOL=SIZE`."""
    pool, size = _split_assignment(text, "POOL=SIZE, such as dtcm=64KiB")
    return ResizeOption(pool, _option_size(size, text))


def parse_provider_option(text: str) -> ProviderOption:
    """Parses the value of `--provider`: `POOL=caller` or `POOL=generated`."""
    pool, provider = _split_assignment(text, "POOL=caller or POOL=generated")
    for member in Provider:
        if member.value == provider:
            return ProviderOption(pool, member)
    raise OptionSyntaxError(f"{text!r}: a provider is 'caller' or 'generated', not {provider!r}")


def parse_max_stack_size(text: str) -> int | Unlimited:
    """Parses the value of `--max-stack-size`: a size above zero, or `unlimited`."""
    return UNLIMITED if text == UNLIMITED.value else _option_size(text, text)


def parse_max_stack_alloca_size(text: str) -> int | Unlimited:
    """Parses the value of `--max-stack-alloca-size`: a size, which may be zero, or `unlimited`."""
    return UNLIMITED if text == UNLIMITED.value else _option_size(text, text, zero_allowed=True)


def _option_size(size: str, text: str, *, zero_allowed: bool = False) -> int:
    try:
        return parse_size(size, zero_allowed=zero_allowed)
    except SizeError as error:
        raise OptionSyntaxError(str(error) if size == text else f"{text!r}: {error}") from None


def _split_assignment(text: str, form: str) -> tuple[str, str]:
    left, separator, right = text.partition("=")
    if not (left and separator and right):
        raise OptionSyntaxError(f"{text!r} is not {form}")
    _check_name(left, text)
    return left, right


def _check_name(name: str, text: str) -> None:
    if not NAME_PATTERN.fullmatch(name):
        raise OptionSyntaxError(
            f"{text!r}: {name!r} is not a name; names are a letter, then letters, digits, '_' and '-'"
        )


def apply_overrides(target: Target, overrides: Overrides) -> Target:
    """The target as the options change it; every check of a target file runs again on the result.

    Raises:
        CompileError: BW204 for each option that names what does not exist, or that the hardware cannot give.
    """
    if overrides == Overrides():
        return target
    collector = Collector()
    pools, origins = _apply_pools(target, overrides, collector)
    collector.stop_if_any()
    changed = replace(
        target,
        devices=tuple(_override_device(device, overrides) for device in target.devices),
        # Whatever was computed before is computed again: the stacks and the other pools have changed.
        pools=tuple(replace(pool, size_bytes=None) if pool.takes_remainder else pool for pool in pools),
    )
    changed = with_default_devices(changed)
    problems = find_problems(changed, origins)
    if problems:
        raise CompileError(
            problem.to_diagnostic("BW204", _where(changed, origins, problem, overrides))
            for problem in problems
        )
    return with_remainders(changed)


def _apply_pools(target: Target, overrides: Overrides, collector: Collector) -> tuple[list[Pool], list[Path]]:
    """The pools after the options, and for each the option that shaped it, or its place in the description."""
    options = {Role.WORKSPACE: overrides.workspace, Role.PARAMETERS: overrides.parameters}
    pools: list[Pool] = []
    origins: list[Path] = []
    for role in Role:
        replacements = options.get(role, ())
        for option in replacements:
            with collector.catch():
                pools.append(_replacement(target, role, option))
                origins.append((f"--{role.value} {option}",))
        if not replacements:
            kept = target.pools_of(role)
            pools.extend(kept)
            origins.extend((role.value, index) for index in range(len(kept)))
    _refuse_repetitions([option.pool for option in overrides.resize], "--resize", collector)
    _refuse_repetitions([option.pool for option in overrides.provider], "--provider", collector)
    for resize in overrides.resize:
        with collector.catch():
            index = _index_of(pools, resize.pool, str(resize))
            pools[index] = replace(pools[index], size_bytes=resize.size_bytes, takes_remainder=False)
            origins[index] = (str(resize),)
    for choice in overrides.provider:
        with collector.catch():
            index = _index_of(pools, choice.pool, str(choice))
            pools[index] = replace(pools[index], provider=choice.provider)
            if not str(origins[index][0]).startswith("--"):
                origins[index] = (str(choice),)
    return pools, origins


def _replacement(target: Target, role: Role, option: PoolOption) -> Pool:
    """The pool that an option asks for.

    It keeps the alignment, provider and devices of the pool that it takes the place of: the one of the same
    role and name, if that is in the same memory.
    """
    existing = target.find_pool(option.name)
    memory_name = option.memory
    if memory_name is None:
        if target.find_memory(option.name) is not None:
            memory_name = option.name
        elif existing is not None:
            memory_name = existing.memory
    names = [memory.name for memory in target.memories]
    if memory_name is None or memory_name not in names:
        unknown = option.name if memory_name is None else memory_name
        message = f"there is no memory {unknown!r} for pool {option.name!r}"
        suggestion = closest(unknown, names) or f"name one: --{role.value} {replace(option, memory='MEMORY')}"
        note = listing("memories", names)
        raise CompileError(Diagnostic("BW204", message, (note,), suggestion, f"--{role.value} {option}"))
    size_bytes, takes_remainder = option.size_bytes, option.size_bytes is None
    if existing is not None and existing.role is role and existing.memory == memory_name:
        return replace(existing, size_bytes=size_bytes, takes_remainder=takes_remainder)
    return Pool(
        name=option.name,
        memory=memory_name,
        role=role,
        size_bytes=size_bytes,
        provider=DEFAULT_PROVIDER[role],
        takes_remainder=takes_remainder,
    )


def _index_of(pools: Sequence[Pool], name: str, option: str) -> int:
    names = [pool.name for pool in pools]
    if name not in names:
        note = listing("pools", names)
        raise CompileError(
            Diagnostic("BW204", f"there is no pool {name!r}", (note,), closest(name, names), option)
        )
    return names.index(name)


def _refuse_repetitions(names: Sequence[str], option: str, collector: Collector) -> None:
    for position, name in enumerate(names):
        if name in names[:position]:
            collector.add(Diagnostic("BW204", f"{option} is given twice for pool {name!r}", where=option))


def _override_device(device: Device, overrides: Overrides) -> Device:
    if not device.runs_c:
        return device
    if overrides.max_stack_size is not None:
        limit = None if isinstance(overrides.max_stack_size, Unlimited) else overrides.max_stack_size
        contexts = tuple(replace(context, max_stack_size_bytes=limit) for context in device.contexts)
        device = replace(device, contexts=contexts)
    if overrides.max_stack_alloca_size is not None:
        device = replace(device, max_stack_alloca_size_bytes=overrides.max_stack_alloca_size)
    if overrides.use_backend_alloc_workspace:
        device = replace(device, use_backend_alloc_workspace=True)
    return device


def _where(target: Target, origins: Sequence[Path], problem: Problem, overrides: Overrides) -> str:
    """The options that are to blame, or else the key of the target that they came into conflict with."""
    first = problem.path[0]
    if isinstance(first, str) and first.startswith("--"):
        return first
    guilty: list[str] = []
    for pool, origin in zip(target.pools, origins, strict=True):
        is_concerned = any(problem.path[:2] == ("memory", name) for name in (pool.memory, pool.load_memory))
        if is_concerned and str(origin[0]).startswith("--"):
            guilty.append(str(origin[0]))
    if isinstance(overrides.max_stack_size, int):
        for device in target.devices:
            for context in device.contexts:
                places = (("memory", context.memory), context_path(device, context))
                if any(problem.path[: len(place)] == place for place in places):
                    guilty.append(f"--max-stack-size {format_size(overrides.max_stack_size)}")
    if guilty:
        return " ".join(dict.fromkeys(guilty))
    return f"target {target.name!r} with the options given, key {format_path(problem.path)}"
