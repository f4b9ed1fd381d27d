"""Bytewright: neural networks to plain C99, with a proved home for every byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING

from bytewright.diagnostics import CompileError, Diagnostic

if TYPE_CHECKING:
    from bytewright.model import CompiledModel
    from bytewright.target import Target

__version__ = "0.1.0"
__all__ = ["CompileError", "CompiledModel", "Diagnostic", "__version__", "compile"]


def compile(  # noqa: A001
    model: str | PathLike[str],
    *,
    target: str | PathLike[str] | Target = "host",
    name: str | None = None,
    workspace: str | Iterable[str] = (),
    parameters: str | Iterable[str] = (),
    resize: str | Iterable[str] = (),
    provider: str | Iterable[str] = (),
    pins: str | Iterable[str] = (),
    io: str = "caller",
    batch_max: int | None = None,
    constants: str | PathLike[str] | None = None,
    numerics: str | None = None,
    embed: str = "auto",
    solver: str = "auto",
    max_stack_size: int | str | None = None,
    max_stack_alloca_size: int | str | None = None,
    use_backend_alloc_workspace: bool | None = None,
    progress: Callable[[str], None] | None = None,
) -> CompiledModel:
    """Compiles a model; the arguments are the options of the command line.

    Args:
        model: A .tflite file, or a .bw file of IR text.
        target: A built-in target, a target file, or a `bytewright.target.Target`.
        name: C identifier of the model; else from the file's name.
        workspace: `NAME[=SIZE][@MEMORY]` each: replaces all workspace pools, preferred first. Of this and the next
            four, one text is a list of one.
        parameters: The same for parameter pools.
        resize: `POOL=SIZE` each.
        provider: `POOL=caller` or `POOL=generated` each.
        pins: `PATTERN=POOL` each; `PATTERN=POOL,POOL` in order of preference, `PATTERN=POOL+OFFSET` at an offset.
        io: "caller", or "workspace" to have inputs and outputs in workspace pools.
        batch_max: Samples that one run computes at most; None for a run of exactly one, without a batch.
        constants: The .npz file with the constants of a .bw file; the one beside it if None.
        numerics: "litert-ref" or "tflm": the reference that the output equals bit for bit; "litert-ref" if None.
        embed: How the bytes of parameter pools come into the program: as C "numbers", by the assembler's "incbin", or
            "auto" for the latter beyond 1 MiB.
        solver: The planner's algorithm, by name; "auto", another built-in one, or one that was registered.
        max_stack_size: Limit of the stack along any call path, in bytes or as "8KiB" or "unlimited".
        max_stack_alloca_size: Largest scratch that may be a local array.
        use_backend_alloc_workspace: Whether to keep kernel scratch off the stack, and request it at run time
            unless something plans it; None for what the target says.
        progress: Told the name of each stage as it begins.

    Raises:
        bytewright.diagnostics.CompileError: The model or an option is wrong, or it does not fit.
        ValueError: An argument is malformed.
    """
    # Here, so that `import bytewright` costs nothing.
    from bytewright.model import compile_to_model

    return compile_to_model(
        model,
        target=target,
        name=name,
        workspace=workspace,
        parameters=parameters,
        resize=resize,
        provider=provider,
        pins=pins,
        io=io,
        batch_max=batch_max,
        constants=constants,
        numerics=numerics,
        embed=embed,
        solver=solver,
        max_stack_size=max_stack_size,
        max_stack_alloca_size=max_stack_alloca_size,
        use_backend_alloc_workspace=use_backend_alloc_workspace,
        progress=progress,
    )


def __getattr__(name: str) -> object:
    """`bytewright.CompiledModel`, loaded when it is asked for."""
    if name == "CompiledModel":
        from bytewright.model import CompiledModel

        return CompiledModel
    raise AttributeError(f"module 'bytewright' has no attribute {name!r}")
