"""The native core of the planner, which an installation without a C compiler does without; and files that come along.

Everything else about the package is in pyproject.toml.
"""

import shutil
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

# Of the tree, and in the package's folder `shipped` where it is installed (`base/shipped.py`).
SHIPPED = ("docs/errors.md", "examples/digits/digits.tflite", "examples/digits/heldout.npz")

# The stable interface of Python 3.11: one wheel of a platform serves all later releases. Interpreters without the
# global lock do not have it, and get a wheel each.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")


class BuildWithFiles(build_py):
    """Copies the files beside the modules."""

    def run(self) -> None:
        """Builds modules, then copies."""
        super().run()
        if not self.editable_mode:
            for name in SHIPPED:
                target = Path(self.build_lib, "bytewright", "shipped", name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(name, target)


setup(
    cmdclass={"build_py": BuildWithFiles},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
    ext_modules=[
        Extension(
            "bytewright.plan._native",
            sources=[
                "src/bytewright/plan/_exact.c",
                "src/bytewright/plan/_first_fit.c",
                "src/bytewright/plan/_nativemodule.c",
            ],
            depends=["src/bytewright/plan/_exact.h", "src/bytewright/plan/_first_fit.h"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
            py_limited_api=STABLE,
            extra_compile_args=["-O2"],
            optional=True,
        )
    ],
)
