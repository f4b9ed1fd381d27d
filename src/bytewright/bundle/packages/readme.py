"""The README of a package: what the model needs, the lines that an application needs, and the next command."""

from __future__ import annotations

from collections.abc import Iterator

from bytewright import ir
from bytewright.bundle.caller_memory import caller_arrays
from bytewright.bundle.packages.contents import PackageContents
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.writer import OWNERSHIP
from bytewright.record.entries import PlannedTensor
from bytewright.record.placed_sections import include_line


def readme(contents: PackageContents, how: str) -> str:
    """The text, as Markdown.

    Args:
        contents: Of the bundle.
        how: How this kind of package is taken into a project, ending with the next command.
    """
    plan, names = contents.plan, contents.names
    include = include_line(plan)
    parts = [
        f"# {plan.model}",
        f"{contents.summary}, {plan.arithmetic_text}. {OWNERSHIP}",
        "## What it needs",
        "\n".join(_sizes(contents)),
        "## In a project",
        how,
        f"Its C is exact with these flags: `{' '.join(contents.flags)}`.",
        *([f"The linker has to place sections of it: {include}."] if include else []),
        "## In the application",
        "\n".join(("```c", *_glue(contents), "```")),
    ]
    if contents.has_self_test:
        outputs = "" if plan.io_in_workspace else ", &outputs"
        parts += [
            "## Self-test",
            f"`{names.self_test}(&context{outputs})` of `{names.included(names.self_test_header)}` runs stored inputs "
            "and returns 0, if what comes out is what the C gave where it was generated.",
        ]
    return "\n\n".join(parts) + "\n"


def _sizes(contents: PackageContents) -> Iterator[str]:
    plan = contents.plan
    yield "| memory | bytes |"
    yield "|---|---|"
    for pool in plan.pools.values():
        if pool.used_bytes:
            yield f"| {pool.role} `{pool.name}`, in {pool.memory} | {pool.used_bytes} |"
    for context, stack in plan.stack.items():
        yield f"| stack of `{context}`, at most | {stack.size_bytes} |"
    for border in ir.SIDES if not plan.io_in_workspace else ():
        for tensor in plan.tensors(border):
            yield f"| {border.value} `{tensor.c_name}`, the application's | {tensor.size_bytes} |"


def _glue(contents: PackageContents) -> Iterator[str]:
    """A program: memory for the pools, set up once, and a run."""
    plan, names, model = contents.plan, contents.names, contents.model
    yield f'#include "{names.included(names.header)}"'
    yield ""
    yield from caller_arrays(plan, names)
    yield f"static {names.context_type} context; /* zeroed */"
    yield ""
    yield f"int32_t {model}_setup(void) {{"
    yield from _setup(contents)
    yield "}"
    is_plain = plan.form.is_one_call and not plan.stated_entries
    if is_plain and not plan.devices and not plan.symbols:
        yield ""
        yield from _run(contents)


def _setup(contents: PackageContents) -> Iterator[str]:
    plan, names = contents.plan, contents.names
    lent = ", ".join(f".{p.c_name} = {{{p.c_name}, sizeof {p.c_name}}}" for p in plan.caller_workspaces)
    calls: list[str] = []
    if plan.caller_workspaces:
        yield f"    const {names.workspaces_type} memory = {{{lent}}};"
        calls.append(f"{names.set_workspaces}(&context, &memory)")
    if plan.caller_parameters:
        members = ", ".join(
            f".{p.c_name} = {{{p.c_name}, {{{p.c_name}_copy, sizeof {p.c_name}_copy}}}}"
            if p.is_copied
            else f".{p.c_name} = {p.c_name}"
            for p in plan.caller_parameters
        )
        yield f"    const {names.parameters_type} parameters = {{{members}}};"
        calls.append(f"{names.set_parameters}(&context, &parameters)")
    elif plan.own_copies:
        calls.append(f"{names.set_parameters}(&context)")
    if plan.states:
        calls.append(f"{names.reset}(&context)")
    yield f"    int32_t status = {calls[0] if calls else names.ok};"
    for call in calls[1:]:
        yield f"    status = (status == {names.ok}) ? {call} : status;"
    yield "    return status;"


def _run(contents: PackageContents) -> Iterator[str]:
    plan, names = contents.plan, contents.names
    if plan.io_in_workspace:
        to, of = (_addresses(contents, border) for border in ir.SIDES)
        yield f"/* Write {to}, run, and read {of}. */"
        yield f"int32_t {plan.model}_infer(void) {{"
        yield f"    return {names.run}(&context);"
        yield "}"
        return
    arguments = [
        *(f"const {memory_type(t.dtype)} *{_argument('input', t)}" for t in plan.inputs),
        *(f"{memory_type(t.dtype)} *{_argument('output', t)}" for t in plan.outputs),
    ]
    yield f"int32_t {plan.model}_infer({', '.join(arguments)}) {{"
    for kind, tensors in (("input", plan.inputs), ("output", plan.outputs)):
        members = ", ".join(f".{t.c_name} = {_argument(kind, t)}" for t in tensors)
        of_type = names.inputs_type if kind == "input" else names.outputs_type
        yield f"    const {of_type} {kind}s = {{{members}}};"
    yield f"    return {names.run}(&context, &inputs, &outputs);"
    yield "}"


def _argument(kind: str, tensor: PlannedTensor) -> str:
    return f"{kind}_{tensor.c_name}"


def _addresses(contents: PackageContents, border: ir.Border) -> str:
    return ", ".join(f"{contents.names.address(border, t)}(&context)" for t in contents.plan.tensors(border))
