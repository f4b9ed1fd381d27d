"""The native core of the planner, which an installation without a C compiler does without; and files that come along.

Everything else about the package is in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

# Of the tree, and in the package's folder `shipped` where it is installed (`base/shipped.py`).
SHIPPED = ("docs/errors.md", "examples/digits/digits.tflite", "examples/digits/heldout.npz")


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
    ext_modules=[
        Extension(
            "bytewright.plan._native",
            sources=[
                "src/bytewright/plan/_exact.c",
                "src/bytewright/plan/_first_fit.c",
                "src/bytewright/plan/_nativemodule.c",
            ],
            depends=["src/bytewright/plan/_exact.h", "src/bytewright/plan/_first_fit.h"],
            extra_compile_args=["-O2"],
            optional=True,
        )
    ],
)
