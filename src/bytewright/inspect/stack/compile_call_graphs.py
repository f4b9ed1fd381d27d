"""Compiles a bundle as its target would, and lets the compiler write down who calls whom with how much stack.

gcc's `-fcallgraph-info=su` gives one file for each source; for clang one is made (`clang_call_graph.py`). Without
link-time optimisation, because that would inline across sources, and the files say what each source's functions need.
"""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from bytewright.base.programs import execute
from bytewright.execute.build import LANGUAGE_FLAGS, include_flags, staged
from bytewright.execute.description import Bundle
from bytewright.execute.objects import compile_object
from bytewright.execute.tools import build_folder, cores_of, find_compiler, is_clang
from bytewright.inspect.stack.clang_call_graph import FLAGS as CLANG_FLAGS
from bytewright.inspect.stack.clang_call_graph import clang_call_graph
from bytewright.target.isa.find import ISAS
from bytewright.target.isa.isa import Isa
from bytewright.target.isa.this_machine import this_machine

_GRAPH_FLAGS = ("-fno-lto", "-fstack-usage", "-fcallgraph-info=su")


def compile_call_graphs(
    bundle: Bundle, flags: Sequence[str] = ("-O2",), core: Isa | None = None, compiler: str | None = None
) -> dict[str, str]:
    """Compiles every source of a bundle that has functions with the compiler and flags of its target.

    Args:
        bundle: The bundle; the ISA of its device chooses compiler and core.
        flags: After those that every build of a bundle has.
        core: One of `cores_of`; `None` for the first.
        compiler: `gcc`, `clang`, or a compiler's command; `None` for the usual one.

    Returns:
        By the source's name without its suffix: a call graph in gcc's format.

    Raises:
        CompileError: BW204 if the ISA names no core that a compiler is known for, BW501 or BW502 for the compiler.
    """
    command = [*_compiler(core or cores_of(bundle.plan.device.isa)[0], compiler), *LANGUAGE_FLAGS, *flags]
    is_of_clang = is_clang(command[0])
    texts: dict[str, str] = {}
    with build_folder() as folder:
        bundle = staged(bundle, folder)
        includes = include_flags(bundle, folder)
        for source in bundle.sources:
            if source.name == bundle.names.included(bundle.names.parameters_source):
                continue  # a megabyte of numbers and no function; one that it defined would count as undeclared
            compile_object(
                [*command, *includes, "-S" if is_of_clang else "-c"],
                source,
                f"{source.stem}.s" if is_of_clang else f"{source.stem}.o",
                folder=folder,
                what=f"'{command[0]}' ({source.name})",
                besides=(f"{source.stem}.su" if is_of_clang else f"{source.stem}.ci",),
                beside_flags=CLANG_FLAGS if is_of_clang else _GRAPH_FLAGS,
            )
            texts[source.stem] = (
                _graph_of(folder, source) if is_of_clang else _read(folder / f"{source.stem}.ci")
            )
    return texts


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _graph_of(folder: Path, source: Path) -> str:
    assembly, usage = (_read(folder / f"{source.stem}.{kind}") for kind in ("s", "su"))
    return clang_call_graph(source.name, assembly, usage)


def _compiler(isa: Isa, chosen: str | None) -> list[str]:
    """The compiler's command, with the flags that choose the core."""
    command = find_compiler(isa, chosen)
    return _with_whole_frames(command) if isa.is_host or this_machine().executes(isa) else command


def _with_whole_frames(compiler: list[str]) -> list[str]:
    """The compiler, told to count what leaf functions have below the stack pointer, the red zone.

    The option makes the same frame explicit; code that is compiled without it needs no byte more.
    """
    macros = execute(
        [*compiler, "-dM", "-E", "-x", "c", os.devnull],
        timeout_seconds=60,
        what=f"'{compiler[0]}'",
    ).stdout
    flags = [
        isa.whole_frame_flags for isa in ISAS.values() if f"#define {isa.macro} 1" in macros.splitlines()
    ]
    return [*compiler, *chain.from_iterable(flags)]
