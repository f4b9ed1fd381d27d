"""Progress on standard error: a line that changes while there is a terminal to show it, else nothing."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress

_WHAT_STAGES_DO = {
    "frontends": "reading the model",
    "place": "placing values on devices",
    "lower": "making kernels",
    "storage": "deciding storage",
    "plan": "planning memory",
    "codegen": "writing C",
    "bundle": "putting the bundle together",
}


@contextmanager
def status_line(what: str) -> Generator[Callable[[str], None] | None, None, None]:
    """Gives a function that changes the line, which says `what` until then; None without a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status(what) as status:
        yield status.update


@contextmanager
def shown_progress(what: str) -> Generator[Callable[[str], None], None, None]:
    """Gives a function that says which stage has begun; `what` stands before it."""
    with status_line(what) as show:

        def tell(stage: str) -> None:
            if show is not None:
                show(f"{what}: {_WHAT_STAGES_DO.get(stage, stage)}")

        yield tell


@contextmanager
def counted(what: str) -> Generator[Callable[[int, int], None] | None, None, None]:
    """A bar of so many that are done, of all; None without a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
