"""The native core of the planner, which an installation without a C compiler does without.

Everything else about the package is in pyproject.toml.
"""

from setuptools import Extension, setup

setup(
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
    ]
)
