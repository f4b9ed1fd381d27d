"""`check` reads what the C says: in whatever layout a bundle verifies, and what is wrong in it is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.ir.packed import Form
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support import arena_cases, packed_program, two_devices
from support.c_layout import printed, scattered
from support.device_memory import PRIVATE
from support.device_memory import TARGET as PRIVATE_TARGET
from support.digits_bundle import DIGITS, change_file, write_document
from support.flow_program import FLOW
from support.row_bundle import compiled_by_rows, row_model

_TYPES = (
    "context",
    "inputs",
    "outputs",
    "workspaces",
    "memory",
    "devices",
    "device",
    "span",
    "job",
    "argument",
)


@cache
def _pushed() -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.tflite"
        path.write_bytes(row_model())
        return compile_model(path, load_target("host"), Options(io=Io.ROWS)).files


@cache
def _digits(target: str, rows: Rows) -> dict[str, bytes]:
    return compile_model(DIGITS, load_target(target), Options(rows=rows)).files


BUNDLES: dict[str, Callable[[], dict[str, bytes]]] = {
    "rows": lambda: compiled_by_rows().files,
    "digits": lambda: _digits("host", Rows.OFF),
    "instructions": lambda: _digits("mps3-an547", Rows.MAX),
    "pushed rows": _pushed,
    "devices": lambda: two_devices.compiled(FLOW).files,
    "memory of devices": lambda: two_devices.compiled(PRIVATE, PRIVATE_TARGET).files,
    "requests": lambda: arena_cases.compiled("several").files,
    "packed": lambda: packed_program.compiled(calling_form=Form.PACKED, entry_form=Form.PACKED).files,
}
LAYOUTS: dict[str, Callable[[str, str], str]] = {
    "as generated": lambda text, _: text,
    "scattered": lambda text, _: scattered(text),
    "printed": lambda text, model: printed(
        text, tuple(f"{model}_{name}" for name in (*_TYPES, "core1_call"))
    ),
}


def laid_out(kind: str, layout: str, folder: Path, *changes: tuple[str, str, str]) -> Path:
    """A bundle whose entry and kernels were changed and laid out anew, with the digests that they have then."""
    write_bundle(BUNDLES[kind](), folder)
    for end, old, new in changes:
        (path,) = (path for path in BUNDLES[kind]() if path.endswith(end))
        change_file(folder, path, old, new)
    document = json.loads((folder / "plan.json").read_text())
    model = document["model"]
    for path in document["files"]:
        file = folder / path
        if path == f"src/{model}.c" or path.endswith("_kernels.c"):
            file.write_text(LAYOUTS[layout](file.read_text(), model))
        document["files"][path] = hashlib.sha256(file.read_bytes()).hexdigest()
    write_document(folder, document)
    return folder


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [kind for kind in BUNDLES if kind != "instructions"])  # no C by itself
def test_a_bundle_verifies_in_any_layout_of_the_same_words(kind: str, layout: str, tmp_path: Path) -> None:
    folder = laid_out(kind, layout, tmp_path / "b")
    if layout != "printed":
        assert check_bundle(folder).num_steps > 0
        return
    # Other words, and conditions of the preprocessor around nothing: that alone is found, whatever else is read.
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    (diagnostic,) = caught.value.diagnostics
    assert all(" where the plan asks for " in note for note in diagnostic.notes)


ENTRY, KERNELS = "rows.c", "rows_kernels.c"
EDITS: dict[str, tuple[str, tuple[str, str, str], str]] = {
    "an offset": (
        "rows",
        (ENTRY, "ROWS_AT_RAM_CONV2D_0__OUT = ", "ROWS_AT_RAM_CONV2D_0__OUT = 1"),
        "states ROWS_AT_RAM_CONV2D_0__OUT ",
    ),
    "a buffer": (
        "rows",
        (ENTRY, "rows_mean_7((const int8_t *)(ram + ROWS_AT_RAM_CONV2D_6__OUT)", "rows_mean_7(inputs->t0"),
        "step 6: plan and call differ in ROWS_AT_RAM_CONV2D_6__OUT, inputs->t0",
    ),
    "a call": (
        "rows",
        (ENTRY, "    rows_mean_7(", "    (void)sizeof("),
        "calls 6 kernels, not those of the plan's 7",
    ),
    "a call that may not happen": (
        "rows",
        (ENTRY, "    rows_mean_7(", "    (void)(context != NULL) && rows_mean_7("),
        "calls 7 kernels, not those of the plan's 7 steps in order",
    ),
    "turns": ("rows", (ENTRY, "turn < 6;", "turn < 5;"), "runs from 0 to 5, in the plan from 0 to 6"),
    "turns of another loop": (
        "rows",
        (ENTRY, "for (int32_t turn = 0; turn < 6; ++turn)", "int32_t turn = 0;\n    while (turn < 6)"),
        "the loop of steps 0 to 5 runs from what changes otherwise to what changes otherwise",
    ),
    "rows": ("rows", (ENTRY, "turn - 1,\n", "turn - 2,\n"), "step 4 asks for rows 'turn - 2' to 'turn'"),
    "a ring's modulus": ("rows", (KERNELS, "% 3", "% 4"), "otherwise than in the 3 slots of a ring"),
    "what is under it": (
        "rows",
        (KERNELS, "(iy % 3)", "(iy - (x % 3))"),
        "otherwise than in the 3 slots of a ring",
    ),
    "a row's bounds": (
        "rows",
        (KERNELS, "min_i32(row_end, 18)", "max_i32(row_end, 18)"),
        "does not leave out rows",
    ),
    "a bound beside its limit": (
        "rows",
        (KERNELS, "max_i32(row_begin, 0)", "max_i32(row_begin, 0) - 1"),
        "does not leave out rows that are not among the 18 of its output",
    ),
    "a last row more": (
        "rows",
        (KERNELS, "y < last_row;", "y <= last_row;"),
        "does not leave out rows that are not among the 18 of its output",
    ),
    "a pass": (
        "pushed rows",
        (ENTRY, "pass / 2;", "pass / 3;"),
        "the passes of 'turn', 'part' are counted as",
    ),
    "rows that are pushed": (
        "pushed rows",
        (ENTRY, "pushed * 28u", "pushed * 27u"),
        "does not pass on rows of 28 B",
    ),
    "an arm": ("devices", ("pair.c", "turn < 1)", "turn < 2)"), "the branch on (turn < 1) is on 'turn < 2'"),
    "a number": (
        "devices",
        ("pair.c", "(turn * 3) + 7", "(turn * 3) + 8"),
        "numbers are {3*turn + 8, 1}, in the plan",
    ),
    "a span": (
        "devices",
        ("pair.c", "PAIR_AT_SHARED_LENT, 64u, PAIR_SPAN_WRITE", "PAIR_AT_SHARED_LENT, 65u, PAIR_SPAN_WRITE"),
        "step 1: span 0, of 'lent': it has 65 B, in the plan 64 B",
    ),
    "what is lent": (
        "devices",
        ("pair.c", "lend(context->near, 64u", "lend(context->near, 63u"),
        "does not lend device 'dma'",
    ),
    "a device": (
        "devices",
        ("pair.c", "end_devices(uses, 2u, 2u)", "end_devices(uses, 2u, 1u)"),
        "does not begin and end",
    ),
    "an address": (
        "memory of devices",
        (
            "pair.c",
            "        if (hand_over(&devices->core1,",
            "        near[PAIR_MEMORY_LOCAL] = 1u;\n        if (hand_over(&devices->core1,",
        ),
        "names PAIR_MEMORY_LOCAL outside of spans",
    ),
    "a span's address": (
        "memory of devices",
        (
            "pair.c",
            "{NULL, size_bytes, access, memory, offset}",
            "{(void *)1, size_bytes, access, memory, offset}",
        ),
        "does not make spans of devices' memories as it is generated",
    ),
    "a request": (
        "requests",
        ("several.c", "(uint64_t)rows * 12,", "(uint64_t)rows * 11,"),
        "does not request and release",
    ),
    "a release": (
        "requests",
        (
            "several.c",
            "several_backend_free_workspace(context, SEVERAL_POOL_RAM, request_t0__scratch2)",
            "SEVERAL_OK",
        ),
        "does not request and release what the plan says: request_t0__scratch2",
    ),
    "an arena": (
        "requests",
        ("several.c", "base = ram + SEVERAL_AT_RAM_ARENA", "base = ram + SEVERAL_AT_RAM_T0__OUT"),
        "does not set the arenas",
    ),
    "what is packed": (
        "packed",
        ("mix.c", "packed_codes[1] = ", "packed_codes[2] = "),
        "plan and call differ in",
    ),
}


@pytest.mark.parametrize("layout", ["scattered", "printed"])
@pytest.mark.parametrize("edit", EDITS)
def test_what_c_says_otherwise_is_found_in_another_layout(edit: str, layout: str, tmp_path: Path) -> None:
    kind, change, sentence = EDITS[edit]
    with pytest.raises(CompileError) as caught:
        check_bundle(laid_out(kind, layout, tmp_path / "b", change))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW402"
    assert sentence in "\n".join(diagnostic.notes)


FIRST, SECOND = "    digits_conv2d_0(", "    DIGITS_STEP(1, ram);\n"
# What a compiler leaves out, or sees in place of what is there: where it is put, and what is said of it.
HIDDEN: dict[str, tuple[str, str, str, str]] = {
    "a condition": ("digits.c", SECOND, f"#if 0\n{SECOND}#endif\n", "'#if 0' is nothing that is generated"),
    "a condition with two arms": (
        "digits.c",
        FIRST,
        f"#ifdef __GNUC__\n    (void)0;\n#else\n    (void)0;\n#endif\n{FIRST}",
        "'#ifdef __GNUC__' is nothing that is generated",
    ),
    "a condition of the model's": (
        "digits.c",
        FIRST,
        f"#if DIGITS_CHECK_RANGE\n    digits_conv2d_2();\n#endif\n{FIRST}",
        "'#if DIGITS_CHECK_RANGE' is nothing that is generated",
    ),
    "a condition without an end": ("digits.c", FIRST, f"#if 0\n{FIRST}", "'#if 0' is nothing that is"),
    "a comment over two lines": (
        "digits.c",
        FIRST,
        f"    // first \\\n{FIRST}",
        "the C cannot be followed",
    ),
    "a comment over a blank": (
        "digits.c",
        FIRST,
        f"    // first \\ \n{FIRST}",
        "src/digits.c has a line that may go on in the next, which not all compilers read alike",
    ),
    "a comment over a trigraph": (
        "digits.c",
        FIRST,
        f"    // first ??/\n{FIRST}",
        "has a line that may go on",
    ),
    "a trigraph": ("digits.c", FIRST, f"??=if 0\n??=endif\n{FIRST}", "src/digits.c has a trigraph"),
    "a digraph": ("digits.c", FIRST, f"%:if 0\n%:endif\n{FIRST}", "src/digits.c has a digraph"),
    "a jump": ("digits.c", FIRST, f"    goto next;\n{FIRST}", "digits_run has 'goto next;'"),
    "a place to jump to": ("digits.c", FIRST, f"    next:;\n{FIRST}", "digits_run has 'next:'"),
    "a way out": (
        "digits.c",
        SECOND,
        f"    if (context != NULL) {{ return 0; }}\n{SECOND}",
        "digits_run ends with 'return 0;', which is neither its end nor an error's",
    ),
    "a way out for no error": (
        "digits.c",
        SECOND,
        f"    if (context != NULL) {{ return DIGITS_OK; }}\n{SECOND}",
        "digits_run ends with 'return DIGITS_OK;'",
    ),
    "a way out for all": (
        "digits.c",
        SECOND,
        f"    return DIGITS_ERROR_NULL;\n{SECOND}",
        "digits_run ends with",
    ),
    "a loop that ends": (
        "digits.c",
        SECOND,
        f"    for (int32_t i = 0; i < 1; ++i) {{ break; }}\n{SECOND}",
        "digits_run has 'break;'",
    ),
    "another function": ("digits.c", SECOND, f"    exit(0);\n{SECOND}", "digits_run calls 'exit'"),
    "a function by its address": (
        "digits.c",
        SECOND,
        f"    (*context->ram)(0);\n{SECOND}",
        "digits_run calls '*context->ram'",
    ),
    "a byte": ("digits.c", SECOND, f"    ram[0] = 1u;\n{SECOND}", "digits_run writes to 'ram[0]'"),
    "a count": ("digits.c", SECOND, f"    ++*ram;\n{SECOND}", "digits_run counts '*ram'"),
    "another base": (
        "digits.c",
        "ram = context->ram;",
        "ram = context->ram + 1;",
        "declares 'uint8_t * const ram",
    ),
    "a variable for a kernel": (
        "digits.c",
        FIRST,
        f"    void (*const digits_conv2d_0)() = NULL;\n{FIRST}",
        "digits_run declares",
    ),
    "an offset in a function": (
        "digits.c",
        FIRST,
        f"    enum {{ DIGITS_AT_RAM_CONV2D_0__OUT = 1 }};\n{FIRST}",
        "which is never generated there",
    ),
    "a size that is another before": (
        "include/digits.h",
        "#define DIGITS_RAM_WORKSPACE_SIZE ",
        "#define DIGITS_RAM_WORKSPACE_SIZE 1\n#if 0\n#define DIGITS_RAM_WORKSPACE_SIZE ",
        "include/digits.h defines DIGITS_RAM_WORKSPACE_SIZE once more, as something else",
    ),
    "a size of another file": (
        "digits.c",
        "#include",
        "#define DIGITS_RAM_WORKSPACE_SIZE 1\n#include",
        "defines DIGITS_RAM_WORKSPACE_SIZE once more, as something else",
    ),
    "a size that is undone": (
        "digits.c",
        FIRST,
        f"#undef DIGITS_RAM_WORKSPACE_SIZE\n{FIRST}",
        "'#undef DIGITS_RAM_WORKSPACE_SIZE' is nothing that is generated",
    ),
    "a macro for an offset": (
        "digits.c",
        FIRST,
        f"#define DIGITS_AT_RAM_CONV2D_0__OUT (1)\n{FIRST}",
        "defines DIGITS_AT_RAM_CONV2D_0__OUT, which the C has as something else too",
    ),
    "a macro between steps": (
        "digits.c",
        "DIGITS_STEP(...) ((void)0)",
        "DIGITS_STEP(...) if (0)",
        "'#ifndef DIGITS_STEP' is nothing that is generated",
    ),
    "a file of elsewhere": (
        "digits.c",
        "#include",
        '#include "/elsewhere/evil.h"\n#include',
        "'#include \"/elsewhere/evil.h\"' is nothing that is generated",
    ),
    "a header of elsewhere": (
        "include/digits.h",
        "#include",
        "#include <evil.h>\n#include",
        "include/digits.h:8: '#include <evil.h>' is nothing that is generated",
    ),
    "an error that is none": (
        "include/digits.h",
        "DIGITS_ERROR_NULL = -1",
        "DIGITS_ERROR_NULL = 0",
        "include/digits.h states DIGITS_ERROR_NULL = 0",
    ),
    "a success that is none": (
        "include/digits.h",
        "DIGITS_OK = 0",
        "DIGITS_OK = 1",
        "include/digits.h states DIGITS_OK = 1",
    ),
    "a pragma": (
        "digits.c",
        "#include",
        "#pragma redefine_extname digits_conv2d_0 nothing\n#include",
        "'#pragma redefine_extname digits_conv2d_0 nothing' is nothing that is generated",
    ),
    "a pragma of the code": (
        "digits.c",
        "static bool wraps(",
        '_Pragma("redefine_extname digits_conv2d_0 nothing") static bool wraps(',
        "src/digits.c has '_Pragma', which tells the compiler what C does not say",
    ),
    "another symbol": (
        "src/digits_kernels.h",
        "#endif",
        'extern int digits_conv2d_0() __asm__("nothing");\n#endif',
        "src/digits_kernels.h has '__asm__'",
    ),
    "what is behind a header": (
        "include/digits.h",
        "#endif /* DIGITS_H */",
        "#endif\nint32_t nothing;",
        "'#ifndef DIGITS_H' is nothing that is generated",
    ),
    "a condition in a kernel": (
        "digits_kernels.c",
        "        for (",
        "#if 0\n#endif\n        for (",
        "'#if 0' is nothing that is generated",
    ),
}


BEGIN, PUSHING = "    int32_t status = begin_devices(", "    for (int32_t pushed = 0;"
HIDDEN_ELSEWHERE: dict[str, tuple[str, tuple[str, str, str], str]] = {
    "a way out before devices are in use": (
        "devices",
        ("pair.c", BEGIN, f"    if (context != NULL) {{ return PAIR_OK; }}\n{BEGIN}"),
        "pair_run ends with 'return PAIR_OK;'",
    ),
    "steps without devices": (
        "devices",
        ("pair.c", "    if (status == PAIR_OK) {", "    if (status != PAIR_OK) {"),
        "pair_run does not run the steps wherever all devices are in use",
    ),
    "a job that is not launched": (
        "devices",
        ("pair.c", "    if (device->launch(device->self, &job) != 0) {", "    if (device == NULL) {"),
        "src/pair.c has another 'hand_over' than the one that is generated",
    ),
    "memory that is lent": (
        "devices",
        ("pair.c", "{(void *)(uintptr_t)base, size_bytes,", "{(void *)((uintptr_t)base + 1u), size_bytes,"),
        "src/pair.c has another 'lend' than the one that is generated",
    ),
    "an error that is forgotten": (
        "requests",
        ("several.c", "return first != SEVERAL_OK ? first : second", "return second"),
        "src/several.c has another 'first_error' than the one that is generated",
    ),
    "a way out before rows": (
        "pushed rows",
        ("rows.c", PUSHING, f"    if (context != NULL) {{ return ROWS_OK; }}\n{PUSHING}"),
        "rows_push_rows ends with 'return ROWS_OK;'",
    ),
    "what an instruction set leaves out": (
        "instructions",
        (
            "digits_kernels.c",
            "    for (int32_t y = first_row;",
            "#if DIGITS_HAS_MVE\n#else\n#endif\n    for (int32_t y = first_row;",
        ),
        "'#if DIGITS_HAS_MVE' is nothing that is generated",
    ),
    "what a core without doubles leaves out": (
        "instructions",
        (
            "digits_kernels.c",
            "    for (int32_t y = first_row;",
            "#if DIGITS_HAS_MVE\n#if defined(__ARM_FP) && (__ARM_FP & 8)\n#else\n#endif\n#else\n#endif\n"
            "    for (int32_t y = first_row;",
        ),
        "'#if DIGITS_HAS_MVE' is nothing that is generated",
    ),
    "what a compiler without it leaves out": (
        "instructions",
        ("digits_kernels.c", "static inline", "#if !DIGITS_HAS_MVE\nint a;\n#endif\nstatic inline"),
        "'#if !DIGITS_HAS_MVE' is nothing that is generated",
    ),
    "another header of an instruction set": (
        "instructions",
        ("digits_kernels.c", "#include <arm_mve.h>", '#include "arm_mve.h"'),
        " && !defined(__ARM_RWPI)' is nothing that is generated",
    ),
    "a check that does more": (
        "instructions",
        ("digits.c", "+ 0x7FFFFu)) {\n", "+ 0x7FFFFu)) {\n        context->dtcm = NULL;\n"),
        "'#if DIGITS_CHECK_RANGE' is nothing that is generated",
    ),
    "a check that calls": (
        "instructions",
        ("digits.c", "if (!lies_within(", "if (exit(0) || !lies_within("),
        "'#if DIGITS_CHECK_RANGE' is nothing that is generated",
    ),
}


@pytest.mark.parametrize("what", [*HIDDEN, *HIDDEN_ELSEWHERE])
def test_what_a_compiler_reads_otherwise_is_found(what: str, tmp_path: Path) -> None:
    if what in HIDDEN:
        kind, (*change, sentence) = "digits", HIDDEN[what]
    else:
        kind, change, sentence = HIDDEN_ELSEWHERE[what]
    with pytest.raises(CompileError) as caught:
        check_bundle(laid_out(kind, "as generated", tmp_path / "b", (change[0], change[1], change[2])))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW402"
    assert sentence in "\n".join(diagnostic.notes)


def test_c_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    folder = laid_out(
        "rows",
        "as generated",
        tmp_path / "b",
        (KERNELS, "for (int32_t y = first_row;", "for (int32_t y first_row;"),
    )
    line = (folder / "src/rows_kernels.c").read_text().partition("y first_row")[0].count("\n") + 1
    with pytest.raises(CompileError, match=rf"the C cannot be followed: src/rows_kernels\.c:{line}:"):
        check_bundle(folder)


@pytest.mark.parametrize("path", ["include/rows.h", "src/rows.c", "src/rows_kernels.c"])
def test_a_macro_that_stands_for_something_else_is_found(path: str, tmp_path: Path) -> None:
    """A compiler would see another call, another bound."""
    folder = laid_out("rows", "as generated", tmp_path / "b")
    text = (folder / path).read_text()
    (folder / path).write_text(
        f"#  define min_i32(a, b) (b)\n#define rows_mean_7 \\\n    rows_conv2d_6_rows\n{text}"
    )
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    found = "\n".join(caught.value.diagnostics[0].notes)
    for name in ("min_i32()", "rows_mean_7"):
        assert f"{path} defines {name}, which is no macro of the model" in found


def test_a_function_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """Under a condition of the preprocessor too, which a compiler may take otherwise than `check`."""
    folder = laid_out("rows", "as generated", tmp_path / "b")
    source = (folder / "src/rows.c").read_text()
    front, head, body = source.partition("int32_t rows_run(")
    (folder / "src/rows.c").write_text(f"{front}#if 0\n{head}{body}#endif\n{head}{body}")
    with pytest.raises(CompileError, match="rows_run is defined 2 times"):
        check_bundle(folder)


@pytest.mark.parametrize("deep", ["(" * 4000 + "row_begin" + ")" * 4000, " + ".join(["row_begin"] * 4000)])
def test_c_that_is_nested_too_deeply_is_refused(deep: str, tmp_path: Path) -> None:
    change = (KERNELS, "max_i32(row_begin, 0)", f"max_i32({deep}, 0)")
    with pytest.raises(CompileError, match=r"the C cannot be followed: .*recursion"):
        check_bundle(laid_out("rows", "as generated", tmp_path / "b", change))
