"""What a bundle consists of, and writing it: all files or none."""

import json
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from bytewright.bundle.install import install
from bytewright.bundle.packages.contents import PackageContents
from bytewright.bundle.packages.registry import package_files
from bytewright.bundle.standing import look_at, refused
from bytewright.codegen.writer import OWNERSHIP
from bytewright.options import Package
from bytewright.record.names import CMAKE_FILE, GLUE_FOLDER, names_of
from bytewright.record.placed_sections import placed_sections
from bytewright.record.plan import Plan
from bytewright.record.plan_file import PLAN_FILE, document_of, with_files

# Statements of assembler in kernels use r9. Where clang keeps it for something else a macro says so, with gcc none.
R9 = b'"r9"'
_REFUSE_R9 = """if("${CMAKE_C_FLAGS} " MATCHES "-msingle-pic-base|-mpic-register=|-ffixed-r9")
  message(FATAL_ERROR "kernels use r9, which these flags keep: compile the model with --kernels intrinsics")
endif()
"""


def bundle_files(
    c_files: Mapping[str, bytes], plan: Plan, uses_math: bool, package: Package | None = None
) -> tuple[Plan, dict[str, bytes]]:
    """The plan with the digests of its files, and path -> content of everything in the bundle, in the paths' order."""
    takes_r9 = R9 in c_files[names_of(plan).kernels_source]
    files = {**c_files, **build_files(plan, c_files, package, takes_r9=takes_r9, uses_math=uses_math)}
    plan = with_files(plan, files)
    files[PLAN_FILE] = (json.dumps(document_of(plan), indent=1) + "\n").encode()
    return plan, dict(sorted(files.items()))


def build_files(
    plan: Plan, c_files: Mapping[str, bytes], package: Package | None, *, takes_r9: bool, uses_math: bool
) -> dict[str, bytes]:
    """Path -> content of what builds the files of C: the CMake file, and what a package has besides or in its place.

    Args:
        plan: What it is for.
        c_files: The files of C, by path.
        package: For which build system the bundle is a package.
        takes_r9: Whether statements of assembler in kernels use that register.
        uses_math: Whether kernels call functions of <math.h>.
    """
    c_files = dict(sorted(c_files.items()))
    files = {CMAKE_FILE: cmake_text(plan, c_files, takes_r9=takes_r9, uses_math=uses_math).encode()}
    if package is not None:
        contents = PackageContents.of(plan, c_files, uses_math=uses_math)
        files |= package_files(package, contents, files[CMAKE_FILE].decode())
    return files


def write_bundle(files: Mapping[str, bytes], directory: str | PathLike[str], *, force: bool = False) -> None:
    """Writes the files into the directory, replacing a bundle that is there; other files in it stay.

    At every moment the old bundle or the new one is whole (`install` says how); a failure leaves what was there before.

    Args:
        files: As `bundle_files` gives them.
        directory: New, empty, or a bundle's; a link to a folder is followed.
        force: Also replaces files of the bundle that were edited since.

    Raises:
        CompileError: BW206 if the directory cannot be written, holds something that is not a bundle, a bundle that was
            edited, or something else where a file must be.
    """
    directory = Path(directory)
    try:
        install(files, look_at(directory, files, force=force))
    except OSError as error:
        raise refused(directory, f"cannot be written: {error.strerror or error}") from error


def cmake_text(plan: Plan, paths: Iterable[str], *, takes_r9: bool, uses_math: bool) -> str:
    """The CMakeLists.txt of a bundle.

    Args:
        plan: What it is for.
        paths: Of the other files.
        takes_r9: Whether statements of assembler in kernels use that register.
        uses_math: Whether kernels call functions of <math.h>.
    """
    model, names, paths = plan.model, names_of(plan), sorted(paths)
    sources = [path for path in paths if path.endswith(".c") and not path.startswith(GLUE_FOLDER)]
    included = [path for path in paths if path.startswith("include/") and path.endswith(".bin")]
    depends = " ".join(f"${{CMAKE_CURRENT_SOURCE_DIR}}/{path}" for path in included)
    binaries = (
        "# The assembler includes files, for which link-time optimisation would look in vain.\n"
        f"set_source_files_properties({names.parameters_source} PROPERTIES\n"
        f'  COMPILE_OPTIONS "-fno-lto" OBJECT_DEPENDS "{depends}")\n'
        if included
        else ""
    )
    flags, optimization = " ".join(plan.build.flags[1:]), names.optimization
    libraries = f"target_link_libraries({model} PUBLIC m)\n" if uses_math else ""
    return (
        f"# {OWNERSHIP}\n"
        "cmake_minimum_required(VERSION 3.13)\n"
        f"project({model} C)\n"
        f"add_library({model} STATIC {' '.join(sources)})\n"
        f"add_library({model}::{model} ALIAS {model})\n"
        f"target_include_directories({model} PUBLIC include)\n"
        f"set_target_properties({model} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)\n"
        "# Bytes of a pool are reused with other element types.\n"
        f"target_compile_options({model} PRIVATE {flags})\n"
        "# Kernels are optimised in builds that are not otherwise: with this, which the application may set before.\n"
        f"if(NOT DEFINED {optimization})\n"
        f"  set({optimization} -O2)\n"
        "endif()\n"
        f"target_compile_options({model} PRIVATE $<$<OR:$<CONFIG:>,$<CONFIG:Debug>>:${{{optimization}}}>)\n"
        f"{_REFUSE_R9 if takes_r9 else ''}{binaries}{libraries}{_found_by_the_linker(plan)}"
    )


def _found_by_the_linker(plan: Plan) -> str:
    """The folder of the file that the application's linker script includes, if there is one."""
    if not placed_sections(plan):
        return ""
    name = names_of(plan).sections_file
    return (
        f"# Where the linker script finds {name}, which it must INCLUDE in SECTIONS.\n"
        f'target_link_options({plan.model} INTERFACE "-L${{CMAKE_CURRENT_SOURCE_DIR}}")\n'
        f"set_property(TARGET {plan.model} APPEND PROPERTY\n"
        f'  INTERFACE_LINK_DEPENDS "${{CMAKE_CURRENT_SOURCE_DIR}}/{name}")\n'
    )
