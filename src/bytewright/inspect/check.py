"""`check`: a bundle proved again from its files alone, as if nothing were known of how it came about."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.inspect.check_described import faults_of_references
from bytewright.inspect.check_files import faults_of_files, kernels_of
from bytewright.inspect.check_jobs import faults_of_jobs
from bytewright.inspect.check_plan import faults_of_plan
from bytewright.inspect.check_reach import KernelsRead
from bytewright.record.plan import Plan
from bytewright.record.plan_file import read_document, read_plan, understand

_MOST_NOTES = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bundle that verifies, and how much was looked at.

    Attributes:
        num_buffers: Placed in pools; of two that live at once none shares a byte that its kernel does not allow.
        num_steps: Whose calls in C touch exactly the buffers that the plan says, all of them alive.
        num_kernels: Functions that the steps call,
        num_proved_kernels: and of these those of which each access is proved to stay inside what each call gives it.
        num_files: Unchanged since they were written.
        parameter_bytes: Compared with the plan's digests.
    """

    plan: Plan
    num_buffers: int
    num_steps: int
    num_kernels: int
    num_proved_kernels: int
    num_files: int
    parameter_bytes: int


def check_bundle(directory: str | PathLike[str]) -> Verdict:
    """Checks everything that can be checked without compiling.

    Raises:
        CompileError: BW207 if it is no bundle, BW211 if another version wrote it; BW401 if the plan does not verify,
            BW402 if the files are not what it says, or both.
    """
    directory = Path(directory)
    document = read_document(directory)
    plan = understand(document, directory)
    of_plan = [*faults_of_plan(plan), *faults_of_jobs(plan)]
    # Which look up what the plan names.
    of_files = (
        []
        if any(faults_of_references(plan))
        else faults_of_files(directory, document, plan, plan_verifies=not of_plan)
    )
    kernels = KernelsRead() if of_plan or of_files else kernels_of(directory, plan)
    diagnostics = [
        *_diagnostic("BW401", f"the plan of '{directory}' does not verify", of_plan),
        *_diagnostic(
            "BW402",
            f"the files of '{directory}' are not what its plan says",
            [*of_files, *kernels.outside],
        ),
    ]
    if diagnostics:
        raise CompileError(diagnostics)
    return Verdict(
        plan,
        plan.num_buffers,
        len(plan.steps),
        len(kernels.proved) + len(kernels.others),
        len(kernels.proved),
        len(plan.files),
        plan.parameter_bytes,
    )


def verified_plan(directory: str | PathLike[str]) -> Plan:
    """The plan of a bundle for those who only read it: figures of a plan that is none would mean nothing.

    Raises:
        CompileError: BW207, BW211 or BW401; the other files of the bundle are not looked at.
    """
    plan = read_plan(directory)
    diagnostics = _diagnostic("BW401", f"the plan of '{directory}' does not verify", faults_of_plan(plan))
    if diagnostics:
        raise CompileError(diagnostics)
    return plan


def _diagnostic(code: str, message: str, faults: Sequence[str]) -> list[Diagnostic]:
    if not faults:
        return []
    notes = [*faults[:_MOST_NOTES]]
    if len(faults) > _MOST_NOTES:
        notes.append(f"and {len(faults) - _MOST_NOTES} more")
    return [Diagnostic(code, message, tuple(notes), "compile the model again")]
