"""Which function makes which package, and what its README says of how it is taken into a project: the one table."""

from collections.abc import Callable

from bytewright.bundle.packages.build_systems import esp_idf, makefile, zephyr
from bytewright.bundle.packages.contents import PackageContents
from bytewright.bundle.packages.libraries import VENDOR, arduino, cmsis_pack, platformio
from bytewright.bundle.packages.readme import readme
from bytewright.options import Package

Maker = Callable[[PackageContents, str], dict[str, str]]


def _nothing_more(contents: PackageContents, cmake: str) -> dict[str, str]:
    """Every bundle is a CMake library."""
    del contents, cmake
    return {}


_MAKERS: dict[Package, tuple[Maker, str]] = {
    Package.CMAKE: (
        _nothing_more,
        "`add_subdirectory({m})` and `target_link_libraries(app PRIVATE {m}::{m})` in CMakeLists.txt; then "
        "`cmake --build`.",
    ),
    Package.MAKEFILE: (
        makefile,
        "`include {m}/{m}.mk` in the Makefile, `$({M}_LIBRARY)` among what the program is linked from, "
        "`$({M}_CPPFLAGS)` where its header is included; then `make`.",
    ),
    Package.ZEPHYR: (
        zephyr,
        "A module: `CONFIG_{M}=y` in prj.conf, then `west build -- -DEXTRA_ZEPHYR_MODULES=$PWD/{m}`.",
    ),
    Package.CMSIS_PACK: (
        cmsis_pack,
        f"The folder is a pack without its archive: `cpackget add {{m}}/{VENDOR}.{{m}}.pdsc` makes the component "
        "`Machine Learning:Model:{m}` known.",
    ),
    Package.ESP_IDF: (
        esp_idf,
        "A component: the folder goes into `components/` of the project, `REQUIRES {m}` into the CMakeLists.txt of "
        "`main`; then `idf.py build`.",
    ),
    Package.ARDUINO: (
        arduino,
        "A library: the folder goes into `libraries/` of the sketchbook, `#include <{m}.h>` into the sketch. Arduino "
        "gives libraries no flags of their own: add those below, `arduino-cli compile --build-property "
        "'compiler.c.extra_flags=FLAGS'`, and let the self-test say whether the build is exact.",
    ),
    Package.PLATFORMIO: (
        platformio,
        "A library: the folder goes into `lib/` of the project, `#include <{m}.h>` into the program, then `pio run`.",
    ),
}


def package_files(package: Package, contents: PackageContents, cmake: str) -> dict[str, bytes]:
    """Path -> content of what a package has besides the C, or in place of the bundle's own CMake file."""
    make, how = _MAKERS[package]
    said = how.replace("{m}", contents.model).replace("{M}", contents.names.prefix)
    texts = {"README.md": readme(contents, said), **make(contents, cmake)}
    return {path: text.encode() for path, text in texts.items()}
