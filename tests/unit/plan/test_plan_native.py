"""The C core as C: no warnings, no undefined behaviour, and an installation that does without it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src" / "bytewright" / "plan"
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-pedantic"]

# Asks for a plan of three buffers below 30, where there is one, and below 29, where there is none.
HARNESS = r"""
#include "_exact.h"
#include "_first_fit.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int64_t size[] = {10, 20, 10}, alignment[] = {1, 4, 1}, fixed[] = {-1, -1, -1};
    int64_t neighbour_row[] = {0, 1, 3, 4}, section_row[] = {0, 1, 3, 4};
    int32_t neighbour[] = {1, 0, 2, 1}, section[] = {0, 0, 1, 1}, orders[] = {0, 1, 2, 2, 1, 0};
    int64_t room[] = {10, 20, 12}, level[] = {2, 4}, aligned[] = {2, 4, 4};
    exact_instance in = {3, 2, 2, 0, 0, size, size, alignment, fixed, neighbour_row, neighbour, NULL, NULL, NULL,
                         section_row, section, orders, NULL, 0};
    int64_t offsets[3], nodes, work;
    int fits = exact_search(&in, 30, 1000, 1 << 20, NULL, NULL, offsets, &nodes, &work);
    int fails = exact_search(&in, 29, 1000, 1 << 20, NULL, NULL, offsets, &nodes, &work);
    int tired = exact_search(&in, 29, 1000, 1, NULL, NULL, offsets, &nodes, &work);
    in.alignment = aligned;
    in.room = room;
    in.level = level;
    in.num_levels = 2;
    int wasted = exact_search(&in, 29, 1000, 1 << 20, NULL, NULL, offsets, &nodes, &work);
    in.num_levels = 0;
    in.room = size;
    in.alignment = alignment;
    exact_search(&in, 30, 1000, 1 << 20, NULL, NULL, offsets, &nodes, &work);
    int64_t lifetime_row[] = {0, 1, 2, 3}, lifetime[] = {0, 2, 1, 3, 2, 4}, choice_row[] = {0, 1, 2, 3};
    int32_t choice_pool[] = {0, 0, 0}, pools[3];
    int64_t choice_alignment[] = {1, 4, 1}, capacity[] = {100}, base[] = {2}, contract_row[] = {0, 0, 0, 0};
    first_fit_problem problem = {3, 1, size, fixed, lifetime_row, lifetime, choice_row, choice_pool, choice_alignment,
                                 capacity, base, contract_row, NULL, NULL, NULL};
    first_fit_pairs pairs;
    int failed = first_fit_find_pairs(&problem, &pairs) || first_fit_place(&problem, &pairs, orders, pools, offsets);
    printf("%d %d %d %d %d", fits, fails, tired, wasted, failed);
    printf(" %d %d %d\n", (int)offsets[0], (int)offsets[1], (int)offsets[2]);
    free(pairs.row);
    free(pairs.neighbour);
    return 0;
}
"""


@pytest.mark.run
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_core_compiles_without_warnings_and_runs_clean(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    main = tmp_path / "main.c"
    main.write_text(HARNESS)
    program = tmp_path / "main"
    files = [str(main), str(SOURCES / "_exact.c"), str(SOURCES / "_first_fit.c")]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if compiler == "gcc" else []
    subprocess.run([compiler, *FLAGS, *sanitizers, f"-I{SOURCES}", *files, "-o", str(program)], check=True)
    output = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    assert output == "1 2 0 2 0 0 10 0\n"


@pytest.mark.run
def test_the_python_bindings_compile_without_warnings(tmp_path):
    import sysconfig

    include = Path(sysconfig.get_path("include"))
    if shutil.which("gcc") is None or not (include / "Python.h").exists():
        pytest.skip("gcc or Python's headers are not installed")
    source = str(SOURCES / "_nativemodule.c")
    flags = [flag for flag in FLAGS if flag != "-pedantic"]
    subprocess.run(
        ["gcc", *flags, "-isystem", str(include), "-c", source, "-o", str(tmp_path / "m.o")], check=True
    )
    assert (tmp_path / "m.o").exists()


def test_the_extension_is_optional_for_an_installation():
    text = (SOURCES.parents[2] / "setup.py").read_text()
    assert "optional=True" in text
