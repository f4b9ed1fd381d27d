"""Command-line options that change a target: parsed once into values, applied all at once, checked again.

Syntax and meaning fail differently. Text that is not an option is an `OptionSyntaxError`, which needs no
target to be found out; an option that names what does not exist, or asks for more than the hardware has, is a
`CompileError` with code BW204 that shows the option.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from bytewright.base.option import Option, OptionSyntaxError, Size, Switch, Texts, two_sides, words
from bytewright.diagnostics import Collector, CompileError, Diagnostic, compile_error
from bytewright.target import model
from bytewright.target.capacity import with_remainders
from bytewright.target.check import context_path, find_problems, with_default_devices
from bytewright.target.mistake import Mistake, closest_names, listing
from bytewright.target.reader import NAME_FORM, NAME_PATTERN
from bytewright.target.size import SizeError, format_size, parse_size
from bytewright.target.source import Path, format_path

_POOL_OPTION = re.compile(r"([^=@]+)(?:=([^=@]+))?(?:@([^=@]+))?")
_POOL_FORM = "NAME[=SIZE][@MEMORY]"


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
        return f"{self.pool}={self.size_bytes}"


@dataclass(frozen=True, slots=True)
class ProviderOption:
    """`POOL=caller|generated`."""

    pool: str
    provider: model.Provider

    def __str__(self) -> str:
        return f"{self.pool}={self.provider.value}"


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
    if provider not in [member.value for member in model.Provider]:
        raise OptionSyntaxError(f"{text!r}: a provider is 'caller' or 'generated', not {provider!r}")
    return ProviderOption(pool, model.Provider(provider))


def parse_max_stack_size(text: str) -> int | model.Unlimited:
    """Parses the value of `--max-stack-size`: a size above zero, or `unlimited`."""
    return model.UNLIMITED if text == model.UNLIMITED.value else _option_size(text, text)


def parse_max_stack_alloca_size(text: str) -> int | model.Unlimited:
    """Parses the value of `--max-stack-alloca-size`: a size, which may be zero, or `unlimited`."""
    return model.UNLIMITED if text == model.UNLIMITED.value else _option_size(text, text, zero_allowed=True)


def parse_capacity(text: str) -> int:
    """Parses the value of `--capacity`: a size, which may be zero."""
    return _option_size(text, text, zero_allowed=True)


def _option_size(size: str, text: str, *, zero_allowed: bool = False) -> int:
    try:
        return parse_size(size, zero_allowed=zero_allowed)
    except SizeError as error:
        raise OptionSyntaxError(str(error) if size == text else f"{text!r}: {error}") from None


def _split_assignment(text: str, form: str) -> tuple[str, str]:
    left, right = two_sides(text, form)
    _check_name(left, text)
    return left, right


def _check_name(name: str, text: str) -> None:
    if not NAME_PATTERN.fullmatch(name):
        raise OptionSyntaxError(f"{text!r}: {name!r} is not a name; names are {NAME_FORM}")


@dataclass(frozen=True, slots=True)
class Overrides:
    """All options that change a target; those of single pools come after the lists of pools that replace the target's.

    Those of stacks hold for every device that runs C; what is None stays as the target has it.
    """

    workspace: Annotated[
        tuple[PoolOption, ...],
        Option(Texts(parse_pool_option, _POOL_FORM), "Replace all workspace pools, preferred first."),
    ] = ()
    parameters: Annotated[
        tuple[PoolOption, ...],
        Option(Texts(parse_pool_option, _POOL_FORM), "Replace all parameter pools, preferred first."),
    ] = ()
    resize: Annotated[
        tuple[ResizeOption, ...],
        Option(Texts(parse_resize_option, "POOL=SIZE"), "Change the size of one pool."),
    ] = ()
    provider: Annotated[
        tuple[ProviderOption, ...],
        Option(Texts(parse_provider_option, "POOL=caller|generated"), "Who declares a pool's memory."),
    ] = ()
    max_stack_size: Annotated[
        int | model.Unlimited | None,
        Option(Size(parse_max_stack_size), "Limit of the stack along any call path."),
    ] = None
    max_stack_alloca_size: Annotated[
        int | model.Unlimited | None,
        Option(Size(parse_max_stack_alloca_size), "Largest scratch that may be a local array."),
    ] = None
    use_backend_alloc_workspace: Annotated[
        bool | None, Option(Switch(), "Keep kernel scratch off the stack, and request it at run time.")
    ] = None

    def __str__(self) -> str:
        return " ".join(words(self))


def apply_overrides(target: model.Target, overrides: Overrides) -> model.Target:
    """The target as the options change it; every check of a target file runs again on the result.

    Raises:
        CompileError: BW204 for each option that names what does not exist, or that the hardware cannot give.
    """
    if overrides == Overrides():
        return target
    changed, origins, mistakes = with_mistakes(target, overrides)
    if mistakes:
        raise CompileError(
            mistake.to_diagnostic("BW204", _where(changed, origins, mistake, overrides))
            for mistake in mistakes
        )
    return with_remainders(changed)


def with_mistakes(
    target: model.Target, overrides: Overrides
) -> tuple[model.Target, list[Path], list[Mistake]]:
    """The target without remainders, for each pool where it comes from, and what is wrong between the parts.

    Raises:
        CompileError: BW204 for each option that names what does not exist.
    """
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
    return changed, origins, find_problems(changed, origins)


def _apply_pools(
    target: model.Target, overrides: Overrides, collector: Collector
) -> tuple[list[model.Pool], list[Path]]:
    """The pools after the options, and for each the option that shaped it, or its place in the description."""
    options = {model.Role.WORKSPACE: overrides.workspace, model.Role.PARAMETERS: overrides.parameters}
    pools: list[model.Pool] = []
    origins: list[Path] = []
    for role in model.Role:
        replacements = options.get(role, ())
        for option in replacements:
            with collector.catch():
                pools.append(_replacement(target, role, option, replacements))
                origins.append((f"--{role.value} {option}",))
        kept = [pool for pool in target.pools_of(role) if pool.is_for_io or not replacements]
        pools.extend(kept)
        origins.extend((role.value, index) for index in range(len(kept)))
    _refuse_repetitions(overrides.resize, collector)
    _refuse_repetitions(overrides.provider, collector)
    for resize in overrides.resize:
        with collector.catch():
            index = _index_of(pools, resize)
            pools[index] = replace(pools[index], size_bytes=resize.size_bytes, takes_remainder=False)
            origins[index] = (_shown(resize),)
    for choice in overrides.provider:
        with collector.catch():
            index = _index_of(pools, choice)
            pools[index] = replace(pools[index], provider=choice.provider)
            if _option_of(origins[index]) is None:
                origins[index] = (_shown(choice),)
    return pools, origins


def _no_memory(
    memory_name: str,
    target: model.Target,
    role: model.Role,
    option: PoolOption,
    given: tuple[PoolOption, ...],
) -> CompileError:
    message = f"there is no memory {memory_name!r} for pool {option.name!r}"
    meant = closest_names(memory_name, [m.name for m in target.memories if _suits(m, role)])
    if meant and option.memory is None:
        other = replace(option, name=meant[0])
    else:
        other = replace(option, memory=meant[0] if meant else _suitable_memory(target, role))
    suggestion = " ".join(f"--{role.value} {other if o == option else o}" for o in given)
    note = listing("memories", [memory.name for memory in target.memories])
    return compile_error("BW204", message, (note,), suggestion, f"--{role.value} {option}")


def _replacement(
    target: model.Target, role: model.Role, option: PoolOption, given: tuple[PoolOption, ...]
) -> model.Pool:
    """The pool that an option asks for.

    It keeps the alignment, provider and devices of the pool that it takes the place of: the one of the same
    role and name, if that is in the same memory. Parameters that are brought to memory that can be written are brought
    to another such memory in the same way.
    """
    existing = target.find_pool(option.name)
    names = [memory.name for memory in target.memories]
    memory_name = option.memory or option.name
    if option.memory is None and option.name not in names and existing is not None:
        memory_name = existing.memory
    if memory_name not in names:
        raise _no_memory(memory_name, target, role, option, given)
    takes_remainder = option.size_bytes is None
    if existing is not None and existing.role is role:
        sized = replace(existing, size_bytes=option.size_bytes, takes_remainder=takes_remainder)
        if existing.memory == memory_name:
            return sized
        is_loaded = existing.load is model.Loader.COPY or existing.load_memory is not None
        if is_loaded and target.memory(memory_name).is_writable:
            return replace(sized, memory=memory_name, section=None, devices=())
    pool = model.Pool(
        name=option.name,
        memory=memory_name,
        role=role,
        size_bytes=option.size_bytes,
        provider=model.DEFAULT_PROVIDER[role],
        takes_remainder=takes_remainder,
    )
    return _loaded(pool, target)


def _loaded(pool: model.Pool, target: model.Target) -> model.Pool:
    """The pool, copied by the program where it is in memory that is empty when the power comes.

    That is so where the linker script is known, whose start-up code copies `.data` alone; elsewhere a target file says
    how parameters are loaded.
    """
    memory = target.memory(pool.memory)
    if pool.role is not model.Role.PARAMETERS or not memory.is_writable or memory.region is None:
        return pool
    sources = [found.name for found in target.memories if not found.is_writable]
    preferred = [other.memory for other in target.parameter_pools if other.memory in sources]
    source = next(iter((*preferred, *sources)), None)
    return pool if source is None else replace(pool, load=model.Loader.COPY, load_memory=source)


def _suits(memory: model.Memory, role: model.Role) -> bool:
    return memory.is_writable or role is model.Role.PARAMETERS


def _suitable_memory(target: model.Target, role: model.Role) -> str:
    """The memory of the first pool of the role, or else of the stack."""
    pools = target.pools_of(role)
    return pools[0].memory if pools else target.contexts[0].memory


def _shown(option: ResizeOption | ProviderOption) -> str:
    """An option with its flag, and a size that people can read."""
    if isinstance(option, ResizeOption):
        return f"--resize {option.pool}={format_size(option.size_bytes)}"
    return f"--provider {option}"


def _index_of(pools: Sequence[model.Pool], option: ResizeOption | ProviderOption) -> int:
    names = [pool.name for pool in pools]
    if option.pool in names:
        return names.index(option.pool)
    meant = closest_names(option.pool, names)
    help_text = _shown(replace(option, pool=meant[0])) if meant else None
    if option.pool == model.DEFAULT_STATE_POOL:
        help_text = (
            "the pool of states is made as large as they are; for another size write it into the target file: "
            f'[[state]] name = "{option.pool}", with a memory and a size'
        )
    message, note = f"there is no pool {option.pool!r}", listing("pools", names)
    raise compile_error("BW204", message, (note,), help_text, _shown(option))


def _refuse_repetitions(
    options: tuple[ResizeOption, ...] | tuple[ProviderOption, ...], collector: Collector
) -> None:
    names = [option.pool for option in options]
    for position, option in enumerate(options):
        if option.pool in names[:position]:
            name = _shown(option).partition(" ")[0]
            message = f"{name} is given twice for pool {option.pool!r}"
            collector.add(Diagnostic("BW204", message, help=_shown(option), where=name))


def _override_device(device: model.Device, overrides: Overrides) -> model.Device:
    if not device.runs_c:
        return device
    if overrides.max_stack_size is not None:
        limit = None if isinstance(overrides.max_stack_size, model.Unlimited) else overrides.max_stack_size
        contexts = tuple(replace(context, max_stack_size_bytes=limit) for context in device.contexts)
        device = replace(device, contexts=contexts)
    if overrides.max_stack_alloca_size is not None:
        device = replace(device, max_stack_alloca_size_bytes=overrides.max_stack_alloca_size)
    if overrides.use_backend_alloc_workspace is not None:
        device = replace(device, use_backend_alloc_workspace=overrides.use_backend_alloc_workspace)
    return device


def _where(target: model.Target, origins: Sequence[Path], problem: Mistake, overrides: Overrides) -> str:
    """The options that are to blame, or else the key of the target that they came into conflict with."""
    if option := _option_of(problem.path):
        return option
    guilty: list[str] = []
    for pool, origin in zip(target.pools, origins, strict=True):
        is_concerned = any(problem.path[:2] == ("memory", name) for name in (pool.memory, pool.load_memory))
        if is_concerned and (option := _option_of(origin)):
            guilty.append(option)
    if isinstance(overrides.max_stack_size, int):
        for device in target.devices:
            for context in device.contexts:
                places = (("memory", context.memory), context_path(device, context))
                if any(problem.path[: len(place)] == place for place in places):
                    guilty.append(f"--max-stack-size {format_size(overrides.max_stack_size)}")
    if guilty:
        return " ".join(dict.fromkeys(guilty))
    return f"target {target.name!r} with the options given, key {format_path(problem.path)}"


def _option_of(path: Path) -> str | None:
    """The option that a path begins with, where it is none of the target's keys."""
    first = str(path[0])
    return first if first.startswith("--") else None
