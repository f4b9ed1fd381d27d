"""Another library's operators beside Bytewright's: which element types it runs them on, and which are missing."""

import tomllib
from functools import cache
from importlib.resources import files

from bytewright.frontends.registry import ComparedOperator, Library
from bytewright.frontends.tflite.shape_arithmetic import FOLDED
from bytewright.frontends.tflite.table import OPERATORS
from bytewright.ops.arithmetic.numerics import Numerics


@cache
def tflm() -> Library:
    """TensorFlow Lite Micro, as `tflm_operators.toml` has it."""
    data = tomllib.loads(
        files("bytewright.frontends.tflite").joinpath("tflm_operators.toml").read_text(encoding="utf-8")
    )
    wrong = data["wrong"]
    operators = tuple(
        _compared(kind, tuple(types), tuple(wrong.get(kind, ()))) for kind, types in data["operators"].items()
    )
    return Library("TensorFlow Lite Micro", data["source"], data["date"], operators)


def _compared(kind: str, theirs: tuple[str, ...], wrong: tuple[str, ...]) -> ComparedOperator:
    """One operator; what the library's numerics do not have is not taken for them, and what is wrong is not missed."""
    row = OPERATORS.get(kind)
    absent = () if row is None else row.absent.get(Numerics.TFLM, ())
    own = () if row is None else tuple(each for each in row.types if each not in absent)
    missing = tuple(each for each in theirs if each not in (*own, *wrong))
    return ComparedOperator(kind, theirs, own, missing, wrong, row is not None, kind in FOLDED)
