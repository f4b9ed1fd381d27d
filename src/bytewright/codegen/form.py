"""What a form of entries has to say to be C: one class of this interface for each form, which `forms.py` lists."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from bytewright import ir
from bytewright.codegen.entry_code import EntryCode
from bytewright.codegen.overlaps import SpanTable
from bytewright.codegen.writer import Writer
from bytewright.record.names import Names
from bytewright.record.plan import Plan


class StepFunctions(Protocol):
    """The functions of an entry that have steps: of what is in them, a part does not follow from the plan."""

    def write_first(self, writer: Writer) -> None:
        """Those that have nothing to do with devices."""
        ...

    def write_last(self, writer: Writer) -> None:
        """The others."""
        ...


class FormInC(ABC):
    """A form in C.

    Attributes:
        about_tensors: What the header says of inputs and outputs besides, behind a space.
        errors: Those that its functions alone return, with what they mean.
    """

    about_tensors: str = ""
    errors: tuple[tuple[str, str], ...] = ()

    def given(self, module: ir.Module) -> ir.Module:
        """The module with kernels as the functions call them."""
        return module

    def tables(self, plan: Plan, names: Names) -> tuple[SpanTable, ...]:
        """The memories that the functions compare, besides those that come with the first one."""
        del plan, names
        return ()

    @abstractmethod
    def write_prototypes(self, writer: Writer, plan: Plan, names: Names) -> None:
        """The public functions, each below its contract."""

    @abstractmethod
    def write_first(self, writer: Writer, plan: Plan, names: Names, steps: StepFunctions) -> None:
        """The functions that have nothing to do with devices."""

    @abstractmethod
    def write_last(self, writer: Writer, plan: Plan, names: Names, steps: StepFunctions) -> None:
        """The others."""

    @abstractmethod
    def calls(
        self, plan: Plan, names: Names, given: Mapping[str, str], inputs: Sequence[str]
    ) -> tuple[str, ...]:
        """The calls that are a run, in their order, of which each is made if the one before succeeded.

        Args:
            plan: As the entry sees it.
            names: The same.
            given: The arguments, as C text.
            inputs: The addresses of the inputs, for what is no structure.
        """

    @abstractmethod
    def step_functions(self, code: EntryCode) -> StepFunctions:
        """The functions with steps of an entry that was planned."""

    @abstractmethod
    def frames(self, plan: Plan, names: Names) -> Mapping[str, tuple[Writer, Writer]]:
        """What follows from the plan in each function that `step_functions` writes: how it begins, and how it ends."""
