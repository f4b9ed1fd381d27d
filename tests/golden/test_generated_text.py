"""Golden texts: the C of small kernels, of an entry and of the header, and the IR of small models after each pass.

The inputs are IR text, in `input/`: graphs as they are imported, and programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bytewright.codegen.kernels import kernels_source
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.compiler.run_passes import PASSES
from bytewright.ir.border import Io
from bytewright.ir.module import Module
from bytewright.ir.text.graphs import print_function
from bytewright.ir.text.modules import parse_text, print_module
from bytewright.ir.text.primfuncs import print_primfunc
from bytewright.ir.text.reader import Constants
from bytewright.ops.registry import OPERATIONS
from bytewright.options import Options, Pin
from bytewright.record.names import Names
from bytewright.target.load import load_file
from bytewright.target.registry import load_target
from support.lowering import lower_step_by_step, lowered
from support.plug_in import LOWERS_BANKS, install, plug_ins

__all__ = ["plug_ins"]
Golden = Callable[[str, str], None]
INPUT = Path(__file__).parent / "input"
GOLDEN_FOLDER = Path(__file__).parent / "expected"


def read(name: str) -> Module:
    """A module of the folder."""
    text = (INPUT / f"{name}.bw").read_text(encoding="utf-8")
    return parse_text(text, Constants(), OPERATIONS).module


def compiled(name: str, target: str) -> Compiled:
    """A program or a graph of the folder, compiled."""
    module = read(name)
    return compile_model(module if module.entries else lowered(module, target), load_target(target))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("conv2d_pointwise", "generic-cortex-m"),
        ("conv2d_pointwise", "mps3-an547"),
        ("conv2d_patch", "host"),
        ("depthwise_conv2d", "host"),
        ("add", "host"),
    ],
)
def test_a_kernel(golden: Golden, name: str, target: str) -> None:
    """The C of the module's one kernel, without what every file of kernels begins with."""
    shared = lowered(read(name), target)
    restricted = tuple(
        replace(kernel, noalias=tuple((p.buffer.name, "output") for p in kernel.buffer_parameters[:-1]))
        for kernel in shared.kernels
    )
    text = kernels_source(replace(shared, kernels=restricted), Names(shared.name))
    golden(f"{name}_{target}.c", text[text.index("/* hand.tflite") :])


def test_the_entry_of_two_layers(golden: Golden) -> None:
    text = compiled("two", "mps3-an547").files["src/two.c"].decode()
    offsets = text.index("enum {")
    golden("entry_offsets.c", text[offsets : text.index("};", offsets) + 2])
    golden("entry_run.c", text[text.index("int32_t two_run") :])


def test_an_image_that_comes_row_by_row(golden: Golden) -> None:
    """What runs for each row, and the three functions of the interface."""
    path = GOLDEN_FOLDER.parents[2] / "examples" / "digits" / "digits.tflite"
    files = compile_model(path, load_target("host"), Options(io=Io.ROWS)).files
    text = files["src/digits.c"].decode()
    row, interface = text.index("static int32_t run_row"), text.index("int32_t digits_push_rows")
    golden("rows_push.c", text[interface : text.index("\n}\n", interface) + 3])
    short = re.sub(
        r"^ +\(const \w+ \*\).*\(rodata \+ .*\n", "", text[row : text.index("\n}\n", row) + 3], flags=re.M
    )
    golden("rows_run_row.c", short)
    header = files["include/digits.h"].decode()
    golden(
        "rows_prototypes.h", header[header.index("/* Begins") : header.index("/* ---- Hook")].rstrip() + "\n"
    )


def test_a_model_before_storage(golden: Golden) -> None:
    """One file a pass; consecutive ones differ in what the pass changed."""
    imported = read("layers")
    golden("passes_0_imported.ir", print_function(imported.graph))
    passes = dict(lower_step_by_step(imported, load_target("generic-cortex-m")))
    for number, name in enumerate(("plan_devices", "fold_pad"), 1):
        golden(f"passes_{number}_{name}.ir", print_function(passes[name].graph))
    lowered_module = passes["share_kernels"]
    golden("passes_3_lower_graph_entry.ir", print_primfunc(lowered_module.main, "entry"))
    golden("passes_3_lower_graph_kernel.ir", print_primfunc(lowered_module.kernels[0]))


def test_a_program_after_each_pass_of_storage(golden: Golden, plug_ins: Path) -> None:
    """What each pass changed: the kernels, and the constants and the entry, whose texts are others than before it."""
    install(plug_ins, LOWERS_BANKS)
    before: set[str] = set()
    ran: list[str] = []
    shown: list[str] = []

    def after_pass(name: str, module: Module) -> None:
        sections = [section for section in print_module(module).split("\n\n")[1:] if section not in before]
        before.update(sections)
        ran.append(name)
        kernels = [section for section in sections if section.startswith("kernel")]
        others = [section for section in sections if section not in kernels]
        for kind, changed in (("kernels", kernels), ("entry", others)):
            if changed and name != "import_text":
                shown.append(f"storage_{len(ran) - 1:02}_{name}_{kind}.ir")
                golden(shown[-1], "\n\n".join(changed))

    options = Options(io=Io.WORKSPACE, pins=(Pin("filtered", "slow"),))
    target = load_file(INPUT / "storage.toml")
    compile_model(INPUT / "storage.bw", target, options, after_pass=after_pass)
    # Two are options', one for devices that reach no parameters; the kernels make no rows, and a program keeps copies.
    absent = ("pack_calls", "take_rows", "fetch_constants", "take_parts", "fuse_rows")
    passes = [name for name in PASSES if name not in absent]
    assert ran[1:] == passes[passes.index("pass_constants") :]
    assert sorted(shown) == sorted(path.name for path in GOLDEN_FOLDER.glob("storage_*"))


def test_the_header_of_two_layers(golden: Golden) -> None:
    """Without the comment in front, which has the plan's hash."""
    text = compiled("two", "mps3-an547").files["include/two.h"].decode()
    parts = ("#ifndef", "/* ---- Where", "/* ---- Inputs", "/* ---- Compilers", "/* ---- Types")
    begin, memories, ports, *cuts = (text.index(where) for where in parts)
    golden("header_macros.h", text[begin:memories] + text[ports : cuts[0]])
    golden("header_memories.h", text[memories:ports])
    golden("header_results.h", text[cuts[0] : cuts[1]])
    golden("header_types.h", text[cuts[1] :])


def test_requests_at_run_time(golden: Golden) -> None:
    files = compiled("requests", "host").files
    source = files["src/m.c"].decode()
    golden("request.c", source[source.index("    uint8_t *const ram") :])
    golden("backend.c", files["src/m_backend.c"].decode())


def test_branches_and_loops_of_an_entry(golden: Golden) -> None:
    """The C of a run whose graph has a conditional in a loop, from where it begins to compute."""
    text = compiled("steps", "host").files["src/steps.c"].decode()
    _, _, body = text.partition("    STEPS_STEP(0, ram);\n")
    golden("steps_run.c", body)
