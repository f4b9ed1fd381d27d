"""A self-test of a bundle: the bundle itself is run here on inputs from a seed, and what came out becomes C.

Outputs are those of the C that ships. That they are the reference's is for `validate` to say; a self-test says on the
device that compiler, link and flash have left them as they are.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bytewright.bundle.write import bundle_files, write_bundle
from bytewright.codegen.self_test import Sample, checksum, self_test_header, self_test_source
from bytewright.diagnostics import compile_error
from bytewright.execute.host import HostContext, HostModel
from bytewright.execute.model_error import SizeError
from bytewright.execute.tensors import Array, random_inputs
from bytewright.execute.tools import build_folder
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def self_test_files(
    plan: Plan,
    names: Names,
    c_files: Mapping[str, bytes],
    contents: Mapping[str, bytes],
    num_samples: int,
    *,
    needs_math: bool,
) -> dict[str, bytes]:
    """The header and the C file, by path.

    Args:
        plan: Of the bundle,
        names: its names,
        c_files: and its other files of C.
        contents: The bytes of the parameter pools, by name.
        num_samples: How many inputs, of extents that are open for each of those that are tested.
        needs_math: Whether kernels call functions of <math.h>.

    Raises:
        CompileError: BW204 for a model whose runs need more than inputs and extents, or whose results a C library
            decides; BW501 or BW502 for the C compiler.
    """
    _require_plain(plan, needs_math=needs_math)
    runs = [(extents, seed) for seed in range(num_samples) for extents in _tested_extents(plan)]
    batch = [_inputs(plan, extents, seed) for extents, seed in runs]
    own, files = bundle_files(c_files, plan, needs_math)
    with build_folder() as folder:
        write_bundle(files, folder / "bundle")
        context = HostModel.build(folder / "bundle").open()
        found = [_results(own, context, inputs) for inputs in batch]
    samples = [
        Sample(
            extents,
            [array.tobytes() for array in inputs],
            [checksum(array.tobytes()) for array in results],
            [array.nbytes for array in results],
            is_refused,
        )
        for (extents, _), inputs, (results, is_refused) in zip(runs, batch, found, strict=True)
    ]
    return {
        names.self_test_header: self_test_header(own, names, len(samples)).encode(),
        names.self_test_source: self_test_source(own, names, samples, contents).encode(),
    }


def _results(plan: Plan, context: HostContext, inputs: Sequence[Array]) -> tuple[Sequence[Array], bool]:
    """What comes out, and whether the run is refused, as inputs ask for too much: then sizes alone mean something."""
    try:
        return context.run(inputs)[0], False
    except SizeError as error:
        said = [[error.asked[t.name]] if t.name in error.asked else [] for t in plan.outputs]
        return [np.array(each, np.int32) for each in said], True


def _tested_extents(plan: Plan) -> list[dict[str, int]]:
    """What runs are given: all their largest, their least, and what is in the middle; nothing where none is open."""
    found = [
        {symbol.name: symbol.upper for symbol in plan.symbols},
        {symbol.name: symbol.lower for symbol in plan.symbols},
        {symbol.name: (symbol.lower + symbol.upper) // 2 for symbol in plan.symbols},
    ]
    return [each for number, each in enumerate(found) if each not in found[:number]]


def _inputs(plan: Plan, extents: Mapping[str, int], seed: int) -> list[Array]:
    """Inputs from a seed, of a run that is given such extents."""
    pairs = zip(plan.inputs, random_inputs(plan, seed), strict=True)
    return [np.array(array[tuple(map(slice, tensor.shape_for(extents)))]) for tensor, array in pairs]


def _require_plain(plan: Plan, *, needs_math: bool) -> None:
    obstacles = {
        f"it has work for {', '.join(plan.devices)}": bool(plan.devices),
        f"it calls functions of the application ({', '.join(plan.externals)})": bool(plan.externals),
        "it requests memory at run time": bool(plan.arenas),
        "it calls functions of <math.h>, whose last bit is not the same in every C library": needs_math,
    }
    found = [text for text, holds in obstacles.items() if holds]
    if found:
        raise compile_error(
            "BW204",
            f"model '{plan.model}' can have no self-test: {'; '.join(found)}",
            help="leave out --self-test; bytewright validate DIR --on qemu compares outputs on the board",
        )
