"""Bytewright: neural networks to plain C99, with a proved home for every byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bytewright.diagnostics import CompileError, Diagnostic

if TYPE_CHECKING:
    from bytewright.model import CompiledModel, compile  # noqa: A004

__version__ = "0.1.0"
__all__ = ["CompileError", "CompiledModel", "Diagnostic", "__version__", "compile"]


def __getattr__(name: str) -> object:
    """What compiling needs is loaded when it is asked for, so that `import bytewright` costs nothing."""
    if name not in ("CompiledModel", "compile"):
        raise AttributeError(f"module 'bytewright' has no attribute {name!r}")
    from bytewright import model

    return getattr(model, name)
