"""`compile --print-after`: a module's text after a pass, to standard output, or to a file and its constants beside it.

A file is written as soon as its pass has ended, so that it is there when a later one refuses. It is IR text, which
`compile` takes; one that exists already is overwritten only if it was printed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import click

from bytewright import __version__, ir
from bytewright.base.option import OptionSyntaxError
from bytewright.compiler.run_passes import PASSES
from bytewright.diagnostics import CompileError, compile_error
from bytewright.frontends.text.constants_file import SUFFIX as CONSTANTS_SUFFIX
from bytewright.frontends.text.constants_file import constants_archive
from bytewright.frontends.text.import_text import SHARED_CONSTANTS, SUFFIX
from bytewright.ir.text.modules import module_data, named_constants, print_module

ALL = "all"
_MARK = "# Printed by Bytewright"


@dataclass(frozen=True, slots=True)
class PrintOption:
    """`PASS[=FILE]`, or `all[=DIR]`: after which pass, and where to; standard output without a file."""

    pass_name: str
    file: Path | None = None


def parse_print_option(text: str) -> PrintOption:
    """Reads `PASS[=FILE.bw]` or `all[=DIR]`.

    Raises:
        OptionSyntaxError: It is not of that form.
    """
    pass_name, equals, file = text.partition("=")
    if not pass_name or (equals and not file):
        raise OptionSyntaxError(f"'{text}' is not PASS[=FILE{SUFFIX}]")
    if file and pass_name != ALL and not file.endswith(SUFFIX):
        raise OptionSyntaxError(f"'{file}' does not end with {SUFFIX}, as IR text does")
    return PrintOption(pass_name, Path(file) if equals else None)


@dataclass(slots=True)
class Printer:
    """Prints what was asked for, as the passes run; leaving the context tells whether each of them did run.

    Args:
        options: What was asked for.
        kept: Files that must not be overwritten: the model that is compiled.
    """

    options: tuple[PrintOption, ...]
    kept: tuple[Path, ...] = ()
    ran: list[str] = field(default_factory=list[str])
    shared: dict[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])

    def __enter__(self) -> Printer:
        for option in self.options:
            if option.pass_name not in (ALL, *PASSES):
                message = (
                    f"--print-after {option.pass_name}: there is no such pass; there are {', '.join(PASSES)}"
                )
                raise compile_error("BW204", message)
            if option.file is not None and option.pass_name == ALL:
                _refuse_foreign(option.file / SHARED_CONSTANTS, option.file.glob(f"*{SUFFIX}"))
        return self

    def after_pass(self, pass_name: str, module: ir.Module) -> None:
        """Prints the module if that was asked for."""
        self.ran.append(pass_name)
        text = f"{_MARK} {__version__} after {pass_name}.\n{print_module(module)}"
        for option in self.options:
            if option.pass_name not in (ALL, pass_name):
                continue
            if option.file is None:
                click.echo(text)
            elif option.pass_name == ALL:
                self.shared |= module_data(module)
                self._write(option.file / f"{len(self.ran):02}_{pass_name}{SUFFIX}", text, None)
            else:
                self._write(option.file, text, named_constants(module))

    def _write(self, file: Path, text: str, constants: Mapping[str, ir.TensorData] | None) -> None:
        beside = file.with_suffix(CONSTANTS_SUFFIX)
        for path in (file, beside):
            if any(path.exists() and kept.exists() and path.samefile(kept) for kept in self.kept):
                raise _refused(path, "is what is compiled")
        if constants is not None:
            _refuse_foreign(beside, (file,))
        _refuse_foreign(file, (file,))
        if constants:
            _write_file(beside, constants_archive(constants))
        _write_file(file, text.encode())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for option in self.options:
            if option.pass_name == ALL and option.file is not None and self.shared:
                _write_file(option.file / SHARED_CONSTANTS, constants_archive(self.shared))
        missing = [option.pass_name for option in self.options if option.pass_name not in (ALL, *self.ran)]
        if missing and error is None:
            message = f"--print-after {missing[0]}: this pass did not run; {', '.join(self.ran)} did"
            raise compile_error("BW204", message)


def _refuse_foreign(path: Path, texts: Iterable[Path]) -> None:
    """A file that is there may be replaced if it, or the text that it belongs to, was printed."""
    if path.exists() and not any(map(_is_printed, texts)):
        raise _refused(path, "exists and was not printed by Bytewright")


def _is_printed(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(_MARK)) == _MARK.encode()
    except OSError:
        return False


def _write_file(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise _refused(path, f"cannot be written: {error.strerror or error}") from error


def _refused(path: Path, reason: str) -> CompileError:
    return compile_error("BW206", f"'{path}' {reason}", help="name another file")
