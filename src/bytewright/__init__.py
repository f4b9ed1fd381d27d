"""Bytewright: neural networks to plain C99, with a proved home for every byte."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bytewright.diagnostics import CompileError, Diagnostic

if TYPE_CHECKING:
    from bytewright.model import CompiledModel, compile  # noqa: A004
    from bytewright.sweeps.sweep import sweep

__version__ = "0.1.0"
__all__ = ["CompileError", "CompiledModel", "Diagnostic", "__version__", "compile", "sweep"]
_LOADED_LATE = {
    "CompiledModel": "bytewright.model",
    "compile": "bytewright.model",
    "sweep": "bytewright.sweeps.sweep",
}


def __getattr__(name: str) -> object:
    """What compiling needs is loaded when it is asked for, so that `import bytewright` costs nothing."""
    if name not in _LOADED_LATE:
        raise AttributeError(f"module 'bytewright' has no attribute {name!r}")
    return getattr(import_module(_LOADED_LATE[name]), name)
