"""Progress on standard error: a line that changes while there is a terminal to show it, else nothing."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console

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
def shown_progress(what: str) -> Generator[Callable[[str], None], None, None]:
    """Gives a function that says what is being done now; `what` stands before it."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(what) as status:
        yield lambda stage: status.update(f"{what}: {_WHAT_STAGES_DO.get(stage, stage)}")
