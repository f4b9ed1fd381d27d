"""Whether the functions that steps go through are as generated: they lend memory, hand jobs over and keep errors."""

from collections.abc import Iterator

from bytewright.inspect.c_nodes import spell
from bytewright.inspect.c_source import CSource
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def differences_of_helpers(path: str, plan: Plan, names: Names, source: CSource) -> Iterator[str]:
    """Those that are otherwise, one sentence each."""
    for name, text in _definitions(plan, names).items():
        actual = source.function(name)
        expected = None if actual is None else CSource(text).function(name)
        if actual is not None and expected is not None and spell(actual) != spell(expected):
            yield f"{path} has another '{name}' than the one that is generated"


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
