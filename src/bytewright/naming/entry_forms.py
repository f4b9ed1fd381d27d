"""The forms of entries: by which functions an application runs one, and what of that names depend on.

Whoever names something of an entry asks its form. What a form has in C besides is in a file of its own, which
`codegen/forms.py` lists.
"""

from dataclasses import dataclass

from bytewright import ir


@dataclass(frozen=True, slots=True)
class EntryFunction:
    """A function of an entry.

    Attributes:
        name: What its name in C ends with.
        is_private: Whether the file alone calls it.
        has_steps: Whether it has steps.
        idle: A condition on which it has nothing to do, and succeeds.
        counts: What it counts.
    """

    name: str
    is_private: bool = False
    has_steps: bool = False
    idle: str | None = None
    counts: str | None = None


@dataclass(frozen=True, slots=True)
class EntryForm:
    """A form.

    Attributes:
        name: For people.
        io: How inputs and outputs come and go.
        functions: In the order of the file; the last ends a run, and takes devices into use.
        structures: What of inputs and outputs the first of the public ones is given.
        pushed: What later ones are given in place of the input.
        variables: What they call others of theirs.
        tables: What they compare memories by, besides the table of a run.
        members: What the context keeps between them: types, of which `{outputs}` is the structure, and names.
        begun: The one of these that says that a run was begun.
        calling: The public function that calls the private ones.
    """

    name: str
    io: tuple[ir.Io, ...]
    functions: tuple[EntryFunction, ...]
    structures: tuple[str, ...]
    pushed: str | None = None
    variables: frozenset[str] = frozenset()
    tables: tuple[str, ...] = ()
    members: tuple[tuple[str, str], ...] = ()
    begun: str | None = None
    calling: str | None = None

    @property
    def public(self) -> tuple[EntryFunction, ...]:
        """The functions that an application calls for a run, in this order."""
        return tuple(function for function in self.functions if not function.is_private)

    @property
    def is_one_call(self) -> bool:
        """Whether one of them is a run."""
        return len(self.public) == 1


# One function, which is given inputs and outputs.
RUN = EntryForm(
    "run",
    (ir.Io.CALLER, ir.Io.WORKSPACE),
    (EntryFunction("run", has_steps=True),),
    ("inputs", "outputs"),
)
# One begins, one is given the input a few rows at a time, and one finishes.
ROWS = EntryForm(
    "rows",
    (ir.Io.ROWS,),
    (
        EntryFunction("run_row", is_private=True, has_steps=True),
        EntryFunction("begin", has_steps=True),
        EntryFunction("push_rows", idle="num_rows == 0", counts="context->num_rows"),
        EntryFunction("finish", has_steps=True),
    ),
    ("outputs",),
    pushed="rows",
    variables=frozenset({"row", "num_rows", "pushed", "pass", "status"}),
    tables=("pushed_rows", "drivers"),
    members=(("{outputs}", "outputs"), ("int32_t", "num_rows"), ("int32_t", "is_begun")),
    begun="is_begun",
    calling="push_rows",
)
FORMS = (RUN, ROWS)


def form_of(io: ir.Io) -> EntryForm:
    """The form of entries whose inputs and outputs come and go so."""
    return next(form for form in FORMS if io in form.io)
