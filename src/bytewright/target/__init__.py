"""What the hardware is: memories, devices that reach them, and the pools the compiler may use.

`load_target` gives a checked, frozen `Target` from a built-in name or a file; `apply_overrides` changes it as
the command line says; `dump` and `dump_toml` write it back. This package knows nothing of models.
"""

from bytewright.target.dump import dump, dump_toml
from bytewright.target.load import load_description, load_file, load_text
from bytewright.target.model import (
    UNLIMITED,
    Device,
    ExecutionContext,
    ExternalStack,
    Loader,
    Memory,
    MemoryAccess,
    Pool,
    Provider,
    Rank,
    Reach,
    Role,
    ScopeTag,
    Target,
    Unlimited,
)
from bytewright.target.options import (
    Overrides,
    PoolOption,
    ProviderOption,
    ResizeOption,
    apply_overrides,
)
from bytewright.target.registry import BUILTIN_TARGETS, load_target

__all__ = [
    "BUILTIN_TARGETS",
    "UNLIMITED",
    "Device",
    "ExecutionContext",
    "ExternalStack",
    "Loader",
    "Memory",
    "MemoryAccess",
    "Overrides",
    "Pool",
    "PoolOption",
    "Provider",
    "ProviderOption",
    "Rank",
    "Reach",
    "ResizeOption",
    "Role",
    "ScopeTag",
    "Target",
    "Unlimited",
    "apply_overrides",
    "dump",
    "dump_toml",
    "load_description",
    "load_file",
    "load_target",
    "load_text",
]
