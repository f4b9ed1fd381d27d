"""The error for a run that a job of a device ended: what failed, in one wording for all machines that have devices.

What lies at an address, and what is known of a fault, is each machine's own to say.
"""

from dataclasses import dataclass

from bytewright.diagnostics import CompileError, Diagnostic, InternalError
from bytewright.execute.jobs import Failure
from bytewright.execute.tools import CrashError


@dataclass(frozen=True, slots=True)
class FailedJob:
    """What a machine says of a job that failed.

    Attributes:
        device: Whose it was.
        job: Which one, and of what: "job 3 of model 'kws' on the host".
        notes: Where it was, and what is known besides.
        is_stray: Of a fault: whether it is of an address that the device was not lent.
        reasons: Of a fault, what it was.
        number: How many there were, where too many are refused; of a job that hung, the seconds that it had.
    """

    device: str
    job: str
    notes: tuple[str, ...] = ()
    is_stray: bool = False
    reasons: str = ""
    number: float = 0


def job_error(failure: Failure, failed: FailedJob) -> CompileError:
    """The error for a failure: a crash where the program itself ended badly."""
    job, notes = failed.job, failed.notes

    def diagnostic(code: str, text: str) -> Diagnostic:
        return Diagnostic(code, f"device '{failed.device}' {text}", notes)

    match failure:
        case Failure.STRAYED | Failure.FAULTED if failed.is_stray:
            return CrashError(diagnostic("BW730", f"touched what it was not lent in {job}"))
        case Failure.STRAYED | Failure.FAULTED:
            return CrashError(diagnostic("BW731", f"faulted in {job}: {failed.reasons}"))
        case Failure.ENDED:
            return CrashError(diagnostic("BW731", f"failed in {job}"))
        case Failure.REFUSED:
            return CompileError(diagnostic("BW731", f"refused {job}"))
        case Failure.OUT_OF_TURN:
            return CompileError(diagnostic("BW731", f"was given {job} out of turn"))
        case Failure.UNREACHED | Failure.NOT_LENT:
            is_reached = failure is Failure.NOT_LENT
            why = "it was not opened, or not for that"
            why = why if is_reached else f"device '{failed.device}' does not reach it"
            return CompileError(diagnostic("BW732", f"was not lent what it needs for {job}: {why}"))
        case Failure.TOO_MANY_REGIONS | Failure.TOO_MANY_SPANS:
            what = "regions of memory protection" if failure is Failure.TOO_MANY_REGIONS else "spans"
            return CompileError(diagnostic("BW732", f"needs {failed.number:g} {what} for {job}: too many"))
        case Failure.HUNG:
            return CompileError(diagnostic("BW733", f"did not finish {job} within {failed.number:g} s"))
        case Failure.NOT_STARTED:
            return CompileError(diagnostic("BW731", f"could not be begun for {job}"))
        case Failure.FINE:
            raise InternalError(f"{job} did not fail")
