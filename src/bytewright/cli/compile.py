"""`bytewright compile`: a model becomes a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bytewright.cli.option_types import parsed_by
from bytewright.cli.progress import shown_progress
from bytewright.plan_file import Plan, plan_of
from bytewright.storage.pin_buffers import Pin, parse_pin_option
from bytewright.target import (
    Overrides,
    PoolOption,
    ProviderOption,
    ResizeOption,
    Unlimited,
    apply_overrides,
    format_size,
    load_target,
    parse_max_stack_alloca_size,
    parse_max_stack_size,
    parse_pool_option,
    parse_provider_option,
    parse_resize_option,
)


@click.command("compile", short_help="Compile a model into a folder of C.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "directory",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="The bundle's folder: new, empty, or an older bundle, which is replaced; other files in it stay.",
)
@click.option("--force", is_flag=True, help="Replace an older bundle even if its files were edited.")
@click.option("--name", metavar="NAME", help="C identifier of the model; else from the file's name.")
@click.option("--target", default="host", metavar="NAME|FILE", help="What to compile for.  [default: host]")
@click.option(
    "--workspace",
    callback=parsed_by(parse_pool_option),
    multiple=True,
    metavar="NAME[=SIZE][@MEMORY]",
    help="Replace all workspace pools, preferred first.",
)
@click.option(
    "--parameters",
    callback=parsed_by(parse_pool_option),
    multiple=True,
    metavar="NAME[=SIZE][@MEMORY]",
    help="Replace all parameter pools, preferred first.",
)
@click.option(
    "--resize",
    callback=parsed_by(parse_resize_option),
    multiple=True,
    metavar="POOL=SIZE",
    help="Change the size of one pool.",
)
@click.option(
    "--provider",
    callback=parsed_by(parse_provider_option),
    multiple=True,
    metavar="POOL=caller|generated",
    help="Who declares a pool's memory.",
)
@click.option(
    "--pin",
    "pins",
    callback=parsed_by(parse_pin_option),
    multiple=True,
    metavar="PATTERN=POOL",
    help="Put every buffer whose name matches into a pool.",
)
@click.option(
    "--io",
    type=click.Choice(["caller", "workspace"]),
    default="caller",
    help="Where inputs and outputs are: the application brings them, or asks where they lie.  [default: caller]",
)
@click.option(
    "--batch-max",
    type=click.IntRange(min=1),
    metavar="N",
    help="Let each run compute 1 to N samples; the plan is made for N.",
)
@click.option(
    "--numerics",
    type=click.Choice(["litert-ref", "tflm"]),
    default="litert-ref",
    help="The reference that the output equals bit for bit.  [default: litert-ref]",
)
@click.option(
    "--embed",
    "embedding",
    type=click.Choice(["auto", "numbers", "incbin"]),
    default="auto",
    help="How the bytes of parameter pools come into the program: as C numbers, or by the assembler's .incbin, which "
    "auto takes beyond 1 MiB.  [default: auto]",
)
@click.option("--solver", default="auto", metavar="NAME", help="The planner's algorithm.  [default: auto]")
@click.option(
    "--max-stack-size",
    callback=parsed_by(parse_max_stack_size),
    metavar="SIZE",
    help="Limit of the stack along any call path.",
)
@click.option(
    "--max-stack-alloca-size",
    callback=parsed_by(parse_max_stack_alloca_size),
    metavar="SIZE",
    help="Largest scratch that may be a local array.",
)
@click.option(
    "--use-backend-alloc-workspace/--no-use-backend-alloc-workspace",
    default=None,
    help="Keep kernel scratch off the stack.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what plan.json holds, and nothing else.")
def compile_command(
    model: Path,
    directory: Path,
    force: bool,
    name: str | None,
    target: str,
    workspace: tuple[PoolOption, ...],
    parameters: tuple[PoolOption, ...],
    resize: tuple[ResizeOption, ...],
    provider: tuple[ProviderOption, ...],
    pins: tuple[Pin, ...],
    io: str,
    batch_max: int | None,
    numerics: str,
    embedding: str,
    solver: str,
    max_stack_size: int | Unlimited | None,
    max_stack_alloca_size: int | Unlimited | None,
    use_backend_alloc_workspace: bool | None,
    as_json: bool,
) -> None:
    """Compile MODEL, a .tflite file, into a folder of plain C99.

    Sizes are limits: what does not fit is refused, with the bytes that are missing. Nothing is written then.
    """
    from bytewright.bundle.write import write_bundle
    from bytewright.codegen.interface import Embedding
    from bytewright.ir.border import Io
    from bytewright.ops.arithmetic.numerics import Numerics
    from bytewright.pipeline import compile_model
    from bytewright.plan.solve import find_solver

    overrides = Overrides(
        workspace=workspace,
        parameters=parameters,
        resize=resize,
        provider=provider,
        max_stack_size=max_stack_size,
        max_stack_alloca_size=max_stack_alloca_size,
        use_backend_alloc_workspace=use_backend_alloc_workspace,
    )
    find_solver(solver)  # before anything is read
    with shown_progress(f"compiling {model.name}") as progress:
        resolved = apply_overrides(load_target(target), overrides)
        compiled = compile_model(
            model,
            resolved,
            name=name,
            numerics=Numerics(numerics),
            embedding=Embedding(embedding),
            solver=solver,
            io=Io(io),
            pins=pins,
            batch_max=batch_max,
            progress=progress,
        )
        write_bundle(compiled.files, directory, force=force)
    if as_json:
        click.echo(json.dumps(compiled.document, indent=1))
    else:
        click.echo(_summary(plan_of(compiled.document), directory))


def _summary(plan: Plan, directory: Path) -> str:
    """What was made and what it needs, in a few lines."""
    extents = f", each run with {plan.extents_text}" if plan.symbols else ""
    lines = [f"{directory}: model '{plan.model}' for {plan.target}, bit for bit {plan.numerics}{extents}"]
    for pool in (pool for pool in plan.pools.values() if pool.used_bytes):
        evidence = "optimal" if pool.optimal else f"lower bound {pool.lower_bound_bytes} B"
        facts = ", ".join(fact for fact in (evidence, pool.loading) if fact)
        lines.append(f"  {pool.role} {pool.name}: {pool.used_bytes} B{_limit(pool.capacity_bytes)}, {facts}")
    for context, stack in plan.stack.items():
        lines.append(f"  stack {context}: {stack.size_bytes} B{_limit(stack.limit_bytes)}")
    return "\n".join(lines)


def _limit(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f" of {format_size(size_bytes)}"
