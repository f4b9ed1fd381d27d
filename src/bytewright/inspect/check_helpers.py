"""Whether the functions that steps and kernels go through are as generated.

Those of steps lend memory, hand jobs over and keep errors; those of kernels are minima, limits and fixed-point
products.
"""

from collections.abc import Iterator

from bytewright.codegen.kernels import write_scalar_function
from bytewright.codegen.writer import Writer
from bytewright.inspect.c_nodes import spell
from bytewright.inspect.c_source import CSource
from bytewright.naming.operator_functions import FUNCTIONS
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def differences_of_helpers(path: str, plan: Plan, names: Names, source: CSource) -> Iterator[str]:
    """Those that are otherwise, one sentence each."""
    for name, text in _definitions(plan, names).items():
        actual = source.function(name)
        expected = None if actual is None else CSource(text).function(name)
        if actual is not None and expected is not None and spell(actual) != spell(expected):
            yield f"{path} has another '{name}' than the one that is generated"


def differences_of_operators(path: str, source: CSource) -> Iterator[str]:
    """Functions of scalars, which expressions call, that are otherwise than the one of that name."""
    for item in source.items:
        function = FUNCTIONS.get(item.function)
        if function is None or function.result is None:
            continue
        writer = Writer()
        write_scalar_function(writer, function, function.result)
        actual, expected = (text.function(item.function) for text in (source, CSource(writer.text())))
        if actual is None or expected is None or spell(actual) != spell(expected):
            yield f"{path}:{item.tokens[0][1]} has another '{function.name}' than the one that is generated"


def _definitions(plan: Plan, names: Names) -> dict[str, str]:
    """The functions, by name: not all of them are in each bundle."""
    span, job, error = names.span_type, names.job_type, names.error("DEVICE")
    place = ", 0u, 0u" if plan.device_workspaces else ""
    given = f"const void *code, uint32_t code_bytes, const {span} *spans, uint32_t num_spans"
    return {
        "lend": (
            f"static {span} lend(const void *base, uint32_t size_bytes, uint32_t access) {{"
            f" const {span} span = {{(void *)(uintptr_t)base, size_bytes, access{place}}}; return span; }}"
        ),
        "hand_over": (
            f"static int32_t hand_over(const {names.device_type} *device, {given}) {{"
            f" const {job} job = {{code, code_bytes, num_spans, spans}};"
            f" if (device->launch(device->self, &job) != 0) {{ return {error}; }}"
            f" return (device->wait(device->self) == 0) ? {names.ok} : {error}; }}"
        ),
        "first_error": (
            "static int32_t first_error(int32_t first, int32_t second) {"
            f" return first != {names.ok} ? first : second; }}"
        ),
    }
