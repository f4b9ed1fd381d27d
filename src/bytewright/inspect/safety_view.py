"""`check --report`: one page about a bundle for a safety file, of what was proved just now, and what was not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bytewright.inspect.check import Verdict
from bytewright.inspect.check_elf import ImageVerdict
from bytewright.inspect.deviations import DEVIATIONS
from bytewright.inspect.stack.check_stack import StackProof
from bytewright.record.plan import Plan
from bytewright.report.report_view import facts_of_runs
from bytewright.show.view import Fact, Facts, Field, Table, View, data, table_of


@dataclass(frozen=True, slots=True)
class _Claim:
    """Something that a checker proves; `verdict` says whether it did."""

    claim: str
    checker: str
    verdict: str


NOT_PROVED = (
    "that outputs are right: bytewright validate compares them with the reference on samples",
    "that kernels keep to what they are given, but those that check counts as proved: bytewright run --paranoid and "
    "sanitizers look at runs of them",
    "what the name of a kernel that is given is for",
    "what plan.json alone says, as docs/cli.md lists it: when in a call a kernel needs a buffer, how near it lets two "
    "come, which rows it reads, and what it reads of what it changes",
    "extents of inputs and outputs: for the most their product is that of the bytes, in other runs they are at least 1",
    "self-tests, packed forms of kernels, prototypes of functions of the application, how a second core finds a kernel",
    "includes and declarations without which the C does not compile, and comments",
    "time: QEMU counts instructions exactly, and cycles are estimates",
    "the compiler, the linker and the C library; the stack is what this compiler says for these flags",
    "that instructions of the core do what their C99 beside them says, beyond the tests of Bytewright on emulators",
    "interrupts, other software, and what the application does with memory that it lent",
    "the hardware, its caches and its memory protection",
)


def safety_view(
    verdict: Verdict,
    proofs: Sequence[StackProof],
    image: ImageVerdict | None,
    flags: Sequence[str],
    *,
    has_assembler: bool,
) -> View:
    """The page.

    Args:
        verdict: What looking at the bundle showed.
        proofs: Of stacks, if they were asked for.
        image: Of a linked image, if one was given.
        flags: With which the application compiles, for the stack.
        has_assembler: Whether there are statements of assembler in the C.
    """
    plan = verdict.plan
    sections = (
        Facts(tuple(_identity(plan, flags)), title="What was looked at", indent=2),
        *_runs(plan),
        _claims(verdict, proofs, image),
        _pools(plan),
        _stacks(plan, proofs),
        _deviations(has_assembler),
        Facts(tuple(Fact((text,)) for text in NOT_PROVED), title="What is not proved", indent=2),
        Facts((data({"not_proved": NOT_PROVED}),)),
        table_of(
            "Files",
            "files",
            sorted(plan.files.items()),
            Field("path", "path", lambda item: item[0]),
            Field("sha256", "sha256", lambda item: item[1]),
        ),
    )
    return View(f"{plan.model}: proved for {plan.target}", sections)


def _identity(plan: Plan, flags: Sequence[str]) -> Iterator[Fact]:
    devices = (plan.device, *(each for each in plan.hardware.devices if each.name in plan.devices))
    facts = {
        "model": plan.model,
        "target": plan.target,
        "device": ", ".join(f"{device.name} ({device.isa.name})" for device in devices),
        "bytewright": plan.build.bytewright,
        "plan_hash": plan.plan_hash,
        "files_hash": plan.files_hash or "",
        "arithmetic": plan.arithmetic_text,
        "options": " ".join(plan.options) or "as by default",
        "flags": " ".join(plan.build.flags),
        "application_flags": " ".join(flags),
    }
    for name, digest in plan.model_files.items():
        yield Fact((f"{name}, sha256 {digest}",), head="model file")
    yield data({"model_files": dict(plan.model_files)})
    for key, text in facts.items():
        yield Fact((text,), head=key.replace("_", " "))
        yield data({key: text})


def _runs(plan: Plan) -> Iterator[Facts]:
    """What the application has to keep to, if there is more than one entry, or runs that know of each other."""
    if found := tuple(facts_of_runs(plan)):
        yield Facts(found, title="How it is run", indent=2)


def _claims(verdict: Verdict, proofs: Sequence[StackProof], image: ImageVerdict | None) -> Table:
    stack = "proved" if proofs else "not asked for: --stack"
    linked = "proved" if image is not None else "not asked for: --elf"
    claims = (
        _Claim(
            f"{verdict.num_buffers} buffers are in bounds and aligned, and no two that live at once share a byte, "
            "but as a kernel allows",
            "validator of the plan, which shares no code with the planner",
            "proved",
        ),
        _Claim(
            f"{verdict.num_steps} calls in the C are given what the plan says, while it is alive",
            "reader of the C, which shares names and the plan's classes with the generator, not the writer",
            "proved",
        ),
        _Claim(
            f"{verdict.num_proved_kernels} of {verdict.num_kernels} kernels stay inside what each call gives them, in "
            "all turns of their loops",
            "ranges of the numbers in their C, which share no code with the generator",
            "proved",
        ),
        _Claim(
            "heads and checks of functions, tables, macros, the sections file and the CMake file are, word for word, "
            "what the plan asks for",
            "writer of the compiler, from plan.json alone, which finds what was changed since",
            "proved",
        ),
        _Claim(
            f"{verdict.num_files} files are those that were written, and nothing else is in the folder",
            "digests in plan.json",
            "proved",
        ),
        _Claim(
            f"{verdict.parameter_bytes} B of parameters are those of the plan",
            "digests of the pools",
            "proved",
        ),
        _Claim(
            "each stack is at most what the header states, on every path of calls",
            "call graph and frames of the compiler",
            stack,
        ),
        _Claim(
            "the array of each pool lies in its memory in the image, apart from all else",
            "reader of the linked image",
            linked,
        ),
    )
    return table_of(
        "What is proved",
        "claims",
        claims,
        Field("claim", "claim", lambda claim: claim.claim),
        Field("by", "checker", lambda claim: claim.checker),
        Field("verdict", "verdict", lambda claim: claim.verdict),
    )


def _pools(plan: Plan) -> Table:
    used = [pool for pool in plan.pools.values() if pool.used_bytes]
    return table_of(
        "Memory",
        "pools",
        used,
        Field("pool", "name", lambda pool: pool.name),
        Field("role", "role", lambda pool: pool.role.value),
        Field("memory", "memory", lambda pool: pool.memory),
        Field("bytes", "used_bytes", lambda pool: pool.used_bytes, is_number=True),
        Field("limit", "capacity_bytes", lambda pool: pool.capacity_bytes, is_number=True),
        Field(
            "no plan needs less than",
            "lower_bound_bytes",
            lambda pool: pool.lower_bound_bytes,
            is_number=True,
        ),
    )


def _stacks(plan: Plan, proofs: Sequence[StackProof]) -> Table:
    measured = {proof.context: proof for proof in proofs}

    def path(context: str) -> str:
        proof = measured.get(context)
        return " > ".join(plan.stack[context].path) if proof is None else str(proof.measured)

    return table_of(
        "Stack",
        "stacks",
        list(plan.stack),
        Field("of", "context", lambda name: name),
        Field("arrays", "planned_bytes", lambda name: plan.stack[name].planned_bytes, is_number=True),
        Field(
            "as compiled",
            "measured_bytes",
            lambda name: measured[name].measured.total_bytes if name in measured else None,
            is_number=True,
        ),
        Field("promised", "size_bytes", lambda name: plan.stack[name].size_bytes, is_number=True),
        Field("limit", "limit_bytes", lambda name: plan.stack[name].limit_bytes, is_number=True),
        Field("worst path", "path", path),
    )


def _deviations(has_assembler: bool) -> Table:
    return table_of(
        "Deviations from MISRA C:2012",
        "deviations",
        [each for each in DEVIATIONS if has_assembler or not each.is_of_assembler],
        Field("record", "identifier", lambda each: each.identifier),
        Field("guideline", "guideline", lambda each: each.guideline),
        Field("category", "category", lambda each: each.category),
        Field("scope", "scope", lambda each: each.scope),
        Field("reason", "reason", lambda each: each.reason),
        Field("evidence", "evidence", lambda each: each.evidence),
    )
