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
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.ir.packed import Form
from bytewright.options import Options
from bytewright.pipeline import compile_model
from bytewright.target.registry import load_target
from support import arena_cases, packed_program, two_devices
from support.c_layout import printed, scattered
from support.device_memory import PRIVATE
from support.device_memory import TARGET as PRIVATE_TARGET
from support.digits_bundle import change_file, write_document
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


BUNDLES: dict[str, Callable[[], dict[str, bytes]]] = {
    "rows": lambda: compiled_by_rows().files,
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
        (path,) = folder.glob(f"src/*{end}")
        change_file(folder, str(path.relative_to(folder)), old, new)
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
@pytest.mark.parametrize("kind", BUNDLES)
def test_a_bundle_verifies_in_any_layout(kind: str, layout: str, tmp_path: Path) -> None:
    assert check_bundle(laid_out(kind, layout, tmp_path / "b")).num_steps > 0


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
